"""The main content of a page: what it says, without its frame, as Markdown and as text."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from letopis.extract import content_text, read_page

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
