"""The text around a hit."""

from __future__ import annotations

import re
from html import unescape

from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.index.page_text import BODY, FRAME, StoredPage, snippet, unpack_stored_page
from letopis.index.word_queries import _word_pattern, compiled_pattern


def stored(*lines: str) -> str:
    return "\n".join(lines)


def pattern(*words: str) -> re.Pattern[str]:
    return compiled_pattern(tuple(_word_pattern(word) for word in words))


def test_the_pages_own_text_comes_before_its_frame_and_its_head() -> None:
    text = stored(f"t{BODY}Archive", f"l{FRAME}Archive", f"p{BODY}About the archive.")
    assert snippet(text, pattern("archive")).html == "About the <mark>archive</mark>."
    assert snippet(stored(f"t{BODY}Archive", f"l{FRAME}The archive"), pattern("archive")).text == "The archive"
    assert snippet(stored(f"t{BODY}Archive"), pattern("archive")).html == "<mark>Archive</mark>"


def test_a_page_found_by_its_title_shows_how_its_text_begins() -> None:
    text = stored(
        f"t{BODY}Archive | Town", f"i{BODY}Home", f"1{BODY}Archive", f"p{BODY}How it begins.", f"l{FRAME}To the archive"
    )
    assert snippet(text, pattern("archive")).text == "How it begins."
    assert snippet(stored(f"t{BODY}Archive", f"p{BODY}Nothing"), pattern("archive")).text == "Nothing"
    assert snippet(stored(f"t{BODY}Archive", f"1{BODY}Archive of it", f"p{BODY}No"), pattern("archive")).marks


def test_a_short_block_is_shown_with_those_behind_it() -> None:
    goods = stored(
        f"t{BODY}Goods", f"i{BODY}Pen", f"c{BODY}EUR 40", f"i{BODY}A pen for left hands", f"i{BODY}Pen", f"l{FRAME}Help"
    )
    assert snippet(goods, pattern("pen")).html == "<mark>Pen</mark> · EUR 40 · A <mark>pen</mark> for left hands"
    menu = stored(f"t{BODY}Lamps", f"l{FRAME}Pens", f"l{FRAME}Lamps and {'more ' * 30}", f"p{BODY}A lamp.")
    assert snippet(menu, pattern("pens")).html.startswith("<mark>Pens</mark> · Lamps and more")
    assert snippet(menu, pattern("pens")).html.endswith("more …")
    assert snippet(menu, pattern("absent")).text == "A lamp."


def test_the_place_with_most_different_words_is_shown() -> None:
    text = stored(f"p{BODY}One thing.", f"p{BODY}One and two together.", f"l{FRAME}Two.")
    assert snippet(text, pattern("one", "two")).html == "<mark>One</mark> and <mark>two</mark> together."


def test_the_letter_of_a_kind_is_not_shown_as_a_hit() -> None:
    text = stored(f"t{BODY}Home", f"a{BODY}Logo of a town", f"p{BODY}{'Other words ' * 9}")
    assert snippet(text, pattern("a")).html.startswith("Logo of <mark>a</mark> town · Other")
    assert not snippet(stored(f"t{BODY}Home", f"a{BODY}Logo"), pattern("a")).marks


def test_everything_is_escaped() -> None:
    text = stored(f'p{BODY}<script>alert(1)</script> & word "quoted" <b>')
    shown = snippet(text, pattern("word")).html
    assert "<script>" not in shown
    assert shown.replace("<mark>", "").replace("</mark>", "").count("<") == 0
    assert "<mark>word</mark>" in shown


def test_long_blocks_are_cut_between_words() -> None:
    block = " ".join(f"filler{number}" for number in range(100)) + " needle " + " ".join(["tail"] * 100)
    shown = snippet(stored(f"p{BODY}{block}"), pattern("needle"))
    assert shown.text.startswith("… filler")
    assert shown.text.endswith("tail …")
    assert len(shown.text) < 260
    assert shown.hits == ("needle",)


def test_words_inside_words_are_not_marked() -> None:
    text = stored(f"p{BODY}archives archive rearchive archived")
    assert snippet(text, pattern("archive")).marks == ((9, 16),)


def test_without_a_hit_the_body_begins() -> None:
    text = stored(f"t{BODY}Title", f"l{FRAME}Menu", f"p{BODY}First words.")
    assert snippet(text, None).text == snippet(text, pattern("absent")).text == "First words."
    assert snippet("", None).text == ""


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=300), max_size=6),
    st.integers(0, 5),
)
@settings(max_examples=200, deadline=None)
def test_a_snippet_is_a_piece_of_the_page_and_marks_what_it_says(blocks: list[str], place: int) -> None:
    blocks = [*blocks[:place], "Some Needle here", *blocks[place:]]
    text = stored(*(f"p{BODY}{block}" for block in blocks))
    made = snippet(text, pattern("needle"))
    assert {hit.lower() for hit in made.hits} == {"needle"}
    assert all(piece in text for piece in made.text.removeprefix("… ").removesuffix(" …").split(" · "))
    assert unescape(made.html.replace("<mark>", "").replace("</mark>", "")) == unescape(made.text)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=40), st.text(max_size=80))
@settings(max_examples=100, deadline=None)
def test_stored_pages_come_back(title: str, text: str) -> None:
    page = StoredPage("http://a.example/", title, "cs", text.encode("utf-8", "replace").decode())
    assert unpack_stored_page(page.pack()) == page


def test_half_characters_are_stored_as_question_marks() -> None:
    page = StoredPage("http://a.example/", "Half \ud83d", "cs", f"p{BODY}Město \udc00")
    assert unpack_stored_page(page.pack()) == page._replace(title="Half ?", text=f"p{BODY}Město ?")
