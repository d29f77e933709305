"""The main content of a page: what it says, without its frame, as Markdown and as text."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from letopis.extract import read_page
from letopis.extract.main_content import content_text

HTML = (("Content-Type", "text/html; charset=utf-8"),)
URL = "https://example.org/news/story.html"
PROSE = "The council met on Monday and decided, after a long debate, that the bridge will be closed for repairs. " * 3


def shown(body: str, form: str = "markdown", **about: object) -> str:
    data = body.encode()
    return content_text(read_page(data, URL, HTML), data, HTML, form, **about)


PAGE = f"""<!doctype html><html lang=en><head><title>A bridge closes</title></head><body>
<nav><a href=/>Home</a><a href=/news>News</a></nav>
<div class="sidebar"><p>Most read stories of this week and of the last one</p></div>
<main><h1>A bridge closes</h1><p>{PROSE}</p>
<p>It was <strong>said</strong> by <a href="../people/anna(1).html">Anna *Novak*</a>, see <code>plan_b</code>.</p>
<ul><li>First the <em>north</em> side<ul><li>with its lamps</li></ul></li><li>then the south side</li></ul>
<blockquote><p>We shall wait.</p></blockquote>
<pre>line one
  line two</pre>
<table><tr><th>Day</th><th>Open</th></tr><tr><td>Monday</td><td>no</td></tr></table>
<p># not a heading</p>
<ul class="links"><li><a href=/1>One more story</a></li><li><a href=/2>And another one</a></li></ul>
</main><div class="cookie-banner"><p>We use cookies to make this site work for you and for us.</p></div>
<footer><p>Copyright of everything is with the paper</p></footer></body></html>"""


def test_markdown_begins_with_where_when_and_in_which_language_a_page_said_it() -> None:
    text = shown(PAGE, time=datetime(2026, 1, 31, 12, tzinfo=UTC))
    assert text.startswith(
        '---\nurl: "https://example.org/news/story.html"\ntime: "2026-01-31T12:00:00Z"\n'
        'title: "A bridge closes"\nlanguage: "en"\n---\n\n# A bridge closes\n\nThe council met'
    )


def test_the_frame_of_a_page_is_left_out() -> None:
    text = shown(PAGE)
    for word in ("Home", "Most read", "cookies", "Copyright", "One more story"):
        assert word not in text


def test_notes_in_the_cells_of_a_table_are_content_whatever_they_are_called() -> None:
    rows = "".join(
        f'<tr><td><a href=/{number}>Registry {number}</a></td><td>RFC <span class="protocol-comment">Expert review by '
        f"the people of group {number}</span></td></tr>"
        for number in range(20)
    )
    text = shown(f"<main><h1>Registries</h1><p>All of them.</p><table>{rows}</table></main>", "text")
    assert "Expert review by the people of group 7" in text


def test_a_single_inline_note_that_calls_itself_frame_is_left_out() -> None:
    text = shown(f'<main><p>{PROSE} <span class="share">Tell your friends</span></p></main>', "text")
    assert "debate" in text
    assert "Tell your friends" not in text


def test_the_heading_of_a_teaser_is_kept_though_it_is_a_link() -> None:
    text = shown(f"<main><h2><a href=/1>The bridge of Monday</a></h2><p>{PROSE}</p></main>", "text")
    assert text.startswith("The bridge of Monday\n")


def test_marks_of_the_page_become_marks_of_markdown() -> None:
    text = shown(PAGE)
    assert r"It was **said** by [Anna \*Novak\*](https://example.org/people/anna%281%29.html), see `plan_b`." in text
    assert "- First the *north* side\n  - with its lamps\n- then the south side" in text
    assert "\n> We shall wait.\n" in text
    assert "```\nline one\n  line two\n```" in text
    assert "| Day | Open |\n| --- | --- |\n| Monday | no |" in text
    assert "\n\\# not a heading\n" in text


def test_text_has_no_marks_and_one_block_a_line() -> None:
    lines = shown(PAGE, "text").splitlines()
    assert lines[0] == "A bridge closes"
    assert "It was said by Anna *Novak*, see plan_b." in lines
    assert "Monday | no" in lines


def test_content_that_calls_itself_frame_is_content_all_the_same() -> None:
    """A page about cookies, or one whose whole body is a form, is not empty."""
    body = f"<body><form><div class='cookie-notice'><h1>Cookies</h1><p>{PROSE}</p><p>{PROSE}</p></div></form></body>"
    assert shown(body, "text").count("The council met") == 6


def test_a_document_without_markup_is_shown_block_by_block() -> None:
    plain = (("Content-Type", "text/plain"),)
    body = b"First line.\n\nSecond paragraph."
    assert content_text(read_page(body, URL, plain), body, plain, "text") == "First line.\nSecond paragraph.\n"


def test_an_empty_page_has_front_matter_alone() -> None:
    assert shown("") == f'---\nurl: "{URL}"\n---\n\n\n'


@pytest.mark.parametrize("body", ["<div>" * 4000 + "deep" + "</div>" * 4000, "<b>" * 4000 + "bold", "<ul><li>" * 3000])
def test_depth_of_a_page_is_no_danger(body: str) -> None:
    assert isinstance(shown(body), str)


def test_a_fence_is_longer_than_what_it_encloses() -> None:
    assert "``````\n```\nx\n```\n``````" in shown(f"<main><p>{PROSE}</p><pre>```\nx\n```</pre></main>")


def test_blocks_in_a_cell_are_not_glued() -> None:
    row = "<table><tr><td><p>one</p><p>two</p></td><td><ul><li>x</li><li>y</li></ul></td></tr></table>"
    assert "one two | x y" in shown(f"<main><p>{PROSE}</p>{row}</main>", "text")


def test_a_shadow_tree_is_shown_and_other_templates_in_it_and_beside_it_are_not() -> None:
    inner = (
        '<template><b>Hidden</b></template><template shadowrootmode="closed"><p>Deep <a href=/in>link</a></template>'
    )
    page = (
        f'<p>{PROSE}</p><template>Hidden</template><x-a><template shadowrootmode="open">{inner}<p>Tree</template></x-a>'
    )
    found = read_page(page.encode(), URL, HTML)
    assert found.text.endswith("Deep link\nTree")
    assert [link.text for link in found.links] == ["link"]
    assert "Hidden" not in shown(page, "text")


def test_a_page_that_a_script_fills_is_shown_with_its_templates() -> None:
    template = f"<p>Shell</p><template x-if=a><article><p>{PROSE}</p></article></template>"
    assert "The council met" in shown(template, "text")
    assert "The council met" in read_page(template.encode(), URL, HTML).text
    assert "Hidden" not in read_page(f"<p>{PROSE}</p><template>Hidden</template>".encode(), URL, HTML).text


TEASERS = "".join(
    f"<div><h3><a href=/{n}>Story {n}</a></h3><p>What else was said on day {n}.</p></div>" for n in range(4)
)


def test_teasers_of_other_pages_are_left_out_beside_an_article_and_kept_where_they_are_all() -> None:
    beside = shown(
        f"<main><h1>A bridge closes</h1><p>{PROSE}</p><p>{PROSE}</p><section>{TEASERS}</section></main>", "text"
    )
    assert "debate" in beside
    assert "Story 1" not in beside
    assert "day 1" not in beside
    assert "What else was said on day 1." in shown(f"<main><h1>News</h1>{TEASERS}</main>", "text")


def test_headings_that_lead_to_their_own_sections_are_no_teasers() -> None:
    sections = TEASERS.replace("href=/", "href=#")
    assert "day 1" in shown(f"<main><p>{PROSE}</p><p>{PROSE}</p><section>{sections}</section></main>", "text")


def test_an_article_that_stands_there_twice_is_shown_once_and_a_refrain_each_time() -> None:
    article = "".join(f"<p>{n}: {PROSE}</p>" for n in range(3))
    wide_and_narrow = f"<main><div class=wide>{article}</div><div class=narrow>{article}</div></main>"
    assert shown(wide_and_narrow, "text") == shown(f"<main>{article}</main>", "text")
    song = "".join(f"<p>Verse {n}. {PROSE}</p><p>And they all go home.</p>" for n in range(3))
    assert shown(f"<main>{song}</main>", "text").count("And they all go home.") == 3
