"""Pages read in C: the same as from the tree of the parser, whatever the markup, or left to it."""

import os
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from letopis.extract import html, html_blocks, read_page
from letopis.extract.html_elements import TAG_NUMBERS

READ_EVENTS: Any = html_blocks.read_events
MANY = 20_000 if os.environ.get("LETOPIS_LONG") else 400
URL = "https://example.org/folder/page.html"
HTML = (("Content-Type", "text/html"),)

pytestmark = pytest.mark.skipif(
    READ_EVENTS is None and not os.environ.get("CI"),
    reason="letopis-fast is installed without its part in C: no compiler",
)

# Elements that open and close in many ways, what they carry, and text with everything that is read in a special way.
NAMES = sorted({
    *TAG_NUMBERS, "b", "i", "em", "font", "nobr", "span", "sub", "x-y", "g", "path", "desc", "image", "math", "xmp",
    "ruby", "rt", "col", "colgroup",
} - {"-text"})  # fmt: skip
COMMON = (
    "a", "div", "p", "span", "li", "ul", "td", "tr", "table", "b", "h1", "img", "br", "script", "style", "title",
    "link", "meta", "form", "input", "select", "option", "svg", "nav",
)  # fmt: skip
ATTRIBUTES = (
    "href=x", "href='z?a=1&b=2&copy=3&amp;c&lt'", 'href="&copy;&notit;&#150;"', "HREF=U", "href",
    "href=a href=b", 'src="s.png"', "alt=picture", 'alt=""', 'title="t&quot;"', "rel=nofollow", "class=footer",
    'class="x navbar y"', 'id="cookie-banner"', "role=navigation", "role=banner",
    'style="background:url(q.png)"', "background=bg.png", "background", 'srcset="a 1x, b 2x"', "data-src=d",
    "name=description content=c", "name=robots content=noindex", "property=og:title content=OG",
    'http-equiv=refresh content="1;url=r"', "datetime=2020-01-02", "type=application/ld+json", "type=hidden",
    "cite=c", "action=go", "formaction=fa", "data=dd", "poster=po", "longdesc=ld", "lang=cs", "xml:lang=de",
    "=odd", '"odd', "/", "on=1/",
)  # fmt: skip
TEXTS = (
    "text", " ", "\n", "a &amp; b", "&nbsp;", " &#32; ", "&notit;", "x &lt y", "&unknown;", "&", "&#;", "<",
    "1 <2", "</ x>", "<!-- c -->", "<!---->", "<!-->", "<!-- a --!> b -->", "<!doctype html>", "<?php x?>",
    "<![CDATA[x]]>", "\r\n", "\r", "\u010d \xe9", "\x1e", "\x1f", "\u2003", "\xa0 x", "\ufeff",
    "<!-- <script> -->", '{"headline":"H","articleBody":"said"}', '@import "i.css";', "a{b:url(c)}",
    "&#x41;&#0;",
)  # fmt: skip
RAW = ("script", "style", "title", "textarea", "iframe")
RUBBISH = (b"", b"<", b">", b'"', b"&", b"\0", b"\xff", b"</", b"<!")
VOID = ("img", "br", "link", "meta", "input", "col", "hr", "base")
STARTS = (
    "",
    "<!doctype html>",
    "<!doctype html><html lang=cs><head><title>T</title></head><body>",
    "<html><head><noscript>",
)


def random_page(chance):
    """Markup that is mostly nested as it should be."""
    names = chance.choice((COMMON, NAMES))
    parts, waiting = [chance.choice(STARTS)], []
    for _ in range(chance.randrange(1, 25)):
        kind = chance.random()
        if kind < 0.4:
            name = chance.choice(names)
            attributes = " ".join(chance.choices(ATTRIBUTES, k=chance.choice((0, 0, 1, 1, 2, 3))))
            parts.append(f"<{name} {attributes}{'/' if chance.random() < 0.05 else ''}>")
            if name in RAW:
                parts.append(f"{chance.choice(TEXTS)}</{name}>")
            elif name not in VOID:
                waiting.append(name)
        elif kind < 0.7 and waiting:
            parts.append(f"</{waiting.pop() if chance.random() < 0.9 else chance.choice(names)}>")
        else:
            parts.append(chance.choice(TEXTS))
    if chance.random() < 0.6:
        parts += [f"</{name}>" for name in reversed(waiting)]
    return "".join(parts).encode()


def read_both_ways(monkeypatch, body, mode):
    pages = []
    for way in (READ_EVENTS, None):
        monkeypatch.setattr(html, "read_events", way)
        pages.append(read_page(body, URL, HTML, mode=mode, detect_language=False, apart=False))
    return pages


@pytest.mark.parametrize("mode", ["basic", "full"])
def test_any_page_is_read_the_same_with_and_without_a_tree(monkeypatch, mode):
    read = 0
    for seed in range(MANY):
        body = random_page(random.Random(seed))
        read += READ_EVENTS(body, True) is not None
        in_c, from_tree = read_both_ways(monkeypatch, body, mode)
        assert in_c == from_tree, body
    assert read > MANY // 5, "a test of pages that nearly all go to the parser shows nothing"


def test_damaged_pages_are_read_the_same(monkeypatch):
    for seed in range(MANY):
        chance = random.Random(seed)
        body = random_page(chance)
        cut = chance.randrange(len(body) + 1)
        damaged = body[:cut] + chance.choice(RUBBISH) + body[cut + 1 :]
        in_c, from_tree = read_both_ways(monkeypatch, damaged, "full")
        assert in_c == from_tree, damaged


@given(st.binary(max_size=200))
def test_no_bytes_do_harm(body):
    found = READ_EVENTS(body, True)
    assert found is None or len(found) == 5


@pytest.mark.parametrize(
    "body",
    [
        "<!doctype html><p>one<p>two<ul><li>a<li>b</ul><dl><dt>c<dd>d</dl>",
        "<!doctype html><p>one<table><tr><td>a<th>b<tr><td><table><tr><td>c</table></table>",
        "<table><caption>t</caption><colgroup><col></colgroup><tr><th>a</tbody><form><input type=hidden></table>",
        "<head><noscript><img src=a></noscript></head><body class=b><p>text</p></body></html>",
        "<html><!-- c --><html lang=cs><body><body><h1>a<h2>b</h2>",
        "<svg><title>t</title><style>a{b:url(c)}</style><path d=x /><image href=y /></svg>text",
        "<template><p>not shown</template><select><option>a<option>b</select><textarea>\n</p></textarea>",
        "<a href=x>one<a href=y>two</a></br>three</p>four</b></x-y>",
        "<script>if (a <b) '<p>'</script><div>1 <2 & 3 < 4</div><iframe><p></iframe>",
        "<a href=x><noframes>\x1e</noframes></a>",
        "<div><button>a</button><object data=o><b>c</object></div><nobr>d</nobr>",
        "u</l>\n<t><script>}</script>1",
        "a</x> </y><i>b</i></z>\n</z> c",
        "<option><li></option>text",
        "<option><p class=footer></option>text",
    ],
)
def test_what_many_pages_do_needs_no_tree(monkeypatch, body):
    assert READ_EVENTS(body.encode(), True) is not None
    in_c, from_tree = read_both_ways(monkeypatch, body.encode(), "full")
    assert in_c == from_tree


@pytest.mark.parametrize(
    "body",
    [
        "<p><b>goes on</p><p>here",
        "<a href=x><div>moves</a></div>",
        "<table>moves</table>",
        "<table><tr><div>moves</div></table>",
        "<p>one<table><tr><td>two</table>",
        "<form><div></form></div>",
        "<frameset><frame src=a></frameset>",
        "<math><mi>x</math>",
        "<svg><p>leaves</svg>",
        "<svg><a href=x></a></svg>",
        "<script><!--<script></script>--></script>",
        "<select><div>",
        "<plaintext>x",
        "a<!doctype html>\n<b>c</b>",
        "&#32<noscript>x",
        "<p title=",
        "<!-- open",
        "\0",
        "<div>" * 61,
        "<a href=x>" + "long " * 900 + "</a>",
    ],
)
def test_what_takes_a_tree_is_left_to_the_parser(body):
    assert READ_EVENTS(body.encode(), True) is None


def test_text_that_is_not_utf_8_is_left_to_the_parser():
    assert READ_EVENTS(b"<p>\xe9</p>", True) is None


def test_what_frames_hold_is_taken_once_however_deep_they_nest():
    frames = [(first, 0, None, 100_000) for first in range(1, 20_000)]
    assert html_blocks._framed_numbers(frames) == set(range(1, 100_001))


def test_without_the_part_in_c_pages_are_read_from_their_tree(monkeypatch):
    monkeypatch.setattr(html, "read_events", None)
    page = read_page(b"<title>T</title><p>Text <a href=x>link</a>", URL, HTML)
    assert [block.text for block in page.blocks] == ["T", "Text link"]
    assert [link.target for link in page.links] == ["https://example.org/folder/x"]
