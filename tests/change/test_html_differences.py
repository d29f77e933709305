from __future__ import annotations

import random
from time import process_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from letopis.change.diff_formats import link_changes, link_diff, side_by_side_html
from letopis.change.text_diff import DiffBounds
from letopis.change.visual_diff import safe_tag, visual_html
from letopis.model import Link, LinkType, Page

HEAD = "<head><title>Old</title><style>p{color:red}</style></head>"
OLD = f"<html lang=en>{HEAD}<body><h1>News</h1><p>The quick fox</p></body></html>"
NEW = OLD.replace("quick", "slow").replace("Old", "New")


def shown(html: str) -> str:
    """The text of a marked page without what is marked as deleted."""
    document = LexborHTMLParser(html)
    document.strip_tags(["del", "head"])
    return " ".join(document.text().split())


def test_words_are_marked_in_the_new_page() -> None:
    html = visual_html(OLD, NEW)
    assert '<p>The <del class="letopis">quick </del><ins class="letopis">slow </ins>fox</p>' in html
    assert "<title>New</title>" in html
    assert "p{color:red}" in html
    assert shown(html) == "NewsThe slow fox"


def test_equal_pages_have_no_marks() -> None:
    html = visual_html(OLD, OLD)
    assert "<ins" not in html
    assert "<del" not in html


def test_volatile_attributes_are_no_difference() -> None:
    html = visual_html("<p class=a1 data-n=1>Text</p>", "<p class=b2 data-n=2>Text</p>")
    assert "<ins" not in html
    assert 'class="b2"' in html


def test_new_pictures_are_marked() -> None:
    assert '<ins class="letopis"><img src="b.png"></ins>' in visual_html(
        "<p><img src=a.png></p>", "<p><img src=b.png></p>"
    )


def test_deleted_rows_do_not_break_the_table() -> None:
    old = "<table><tr><td>one</td></tr><tr><td>two</td></tr></table><p>end</p>"
    html = visual_html(old, "<table><tr><td>one</td></tr></table><p>end</p>")
    table = LexborHTMLParser(html).css_first("table")
    assert table is not None
    assert table.text(strip=True) == "one"
    assert ">two</del>" in html


ATTACKS = [
    "<select onfocus=alert(1) autofocus><option onclick=alert(1)>x</select>",
    "<textarea onfocus=alert(1)>&lt;/textarea><img src=x onerror=alert(1)></textarea>",
    "<style onload=alert(1)>p{}</style>",
    "<svg><foreignObject><iframe src='javascript:alert(1)'></iframe></foreignObject></svg>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<p/onclick=alert(1)>x</p><p\tonclick\n=\nalert(1)>x</p>",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "<a href=' java\nscript:alert(1)'>x</a>",
    "<a href='&#106;avascript:alert(1)'>x</a>",
    "<svg><script>alert(1)</script><a xlink:href='javascript:alert(1)'>x</a></svg>",
    "<svg onload=alert(1)><p>x</svg>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<object data='javascript:alert(1)'></object><embed src='javascript:alert(1)'>",
    "<form action='javascript:alert(1)'><button formaction='javascript:alert(1)'>x</button></form>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(1)'><base href='http://evil.test/'>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "<p title='\"><img src=x onerror=alert(1)>'>x</p>",
    "<textarea></textarea><img src=x onerror=alert(1)>",
    "<style></style><img src=x onerror=alert(1)>",
    "<!-- --><img src=x onerror=alert(1)><!-- -->",
    "<link rel=stylesheet href='http://evil.test/x.css'><template><script>alert(1)</script></template>",
    "<svg><animate attributeName=href values='javascript:alert(1)'/></svg>",
    "<xmp><img src=x onerror=alert(1)></xmp><plaintext><script>alert(1)</script>",
]


def assert_inert(html: str) -> None:
    document = LexborHTMLParser(html)
    for node in document.css("*"):
        assert node.tag not in (
            "script",
            "iframe",
            "object",
            "embed",
            "base",
            "link",
            "template",
            "noscript",
            "animate",
        )
        for name, value in node.attributes.items():
            assert not name.lower().startswith("on"), html
            squeezed = "".join((value or "").split()).lower()
            assert not squeezed.startswith(("javascript:", "vbscript:")), html
    head = document.head
    assert head is not None
    policy = [
        node for node in head.css("meta[http-equiv]") if node.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policy) == 1
    assert "default-src 'none'" in (policy[0].attributes.get("content") or "")


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_in_the_result_can_run(attack: str) -> None:
    assert_inert(visual_html("<p>old text</p>", f"<p>new text</p>{attack}<p>end</p>"))
    assert_inert(visual_html(f"<p>old text</p>{attack}<p>end</p>", "<p>new</p>"))
    assert_inert(visual_html(f"<div>{attack}</div>", f"<b>{attack}</b>"))


@given(
    st.lists(
        st.sampled_from([*ATTACKS, "<p>", "</p>", "<", ">", '"', "'", "<table>", "<td>", "a b ", "&lt;", "<b", "]]>"]),
        max_size=8,
    )
)
@example(["<b", '"', "<svg><style><img src=x onerror=alert(1)></style></svg>", '"'])
@example(["<b", '"', ATTACKS[4], '"', ">", "<iframe srcdoc='<script>alert(1)</script>'></iframe>"])
@example(["<p ", '"<img src=x onerror=alert(1)>', '"', "<b"])
@settings(max_examples=120, deadline=None)
def test_mixed_markup_stays_inert(parts: list[str]) -> None:
    assert_inert(visual_html("<p>old</p>" + "".join(parts[::2]), "".join(parts)))


@given(
    st.lists(
        st.sampled_from(["<p>", "</p>", "<li>", "one ", "two ", "three ", "<b>", "</b>", "<div>", "</div>"]),
        max_size=30,
    ),
    st.data(),
)
@settings(max_examples=100, deadline=None)
def test_the_new_text_is_always_whole(parts: list[str], data: st.DataObject) -> None:
    new = "".join(parts)
    old = "".join(data.draw(st.permutations(parts)))
    squeezed = "".join(shown(visual_html(old, new)).split())
    assert squeezed == "".join(shown(f"<html><body>{new}</body></html>").split())


def test_remote_pictures_load_only_when_asked() -> None:
    assert "http: https:" not in visual_html(OLD, NEW)
    far = visual_html(OLD, NEW, base_url="http://example.test/?a=1&b='\"", remote=True)
    assert "img-src data: http: https:" in far
    assert '<base href="http://example.test/?a=1&amp;b=&#x27;&quot;"' in far


def test_safe_tags_keep_harmless_attributes() -> None:
    assert safe_tag('<a class="x" href="/y" onclick="z">') == '<a class="x" href="/y">'
    assert safe_tag('<img src="data:image/png;base64,AA">') == '<img src="data:image/png;base64,AA">'
    assert safe_tag('<a href="data:text/html,x">') == "<a>"


def test_side_by_side_escapes_everything() -> None:
    html = side_by_side_html("<b>a</b>\nsame\n", "<script>x</script>\nsame\n", "<i>", '"n"', "T<T")
    document = LexborHTMLParser(html)
    assert not document.css("script, b, i")
    assert "&lt;" in html
    assert "T&lt;T" in html
    assert document.css_first("caption") is not None
    assert len(document.css('th[scope="col"]')) == 4


def test_side_by_side_marks_words_and_folds_equal_lines() -> None:
    old = "".join(f"line {n}\n" for n in range(100))
    html = side_by_side_html(old, old.replace("line 50\n", "row 50\n"))
    assert "<del>line</del> 50" in html
    assert "<ins>row</ins> 50" in html
    assert "47 equal lines" in html
    assert html.count("<tr") < 15


def test_side_by_side_says_when_rows_are_left_out() -> None:
    html = side_by_side_html("a\n" * 9000, "b\n" * 9000)
    assert "Only the first 4000 rows" in html


def huge(seed: int, size: int) -> str:
    rand = random.Random(seed)
    words = [f"w{rand.randrange(1 << 30)}" for _ in range(2000)]
    parts = []
    length = 0
    while length < size:
        tag = rand.choice(("p", "div", "li", "td", "span"))
        part = f"<{tag} class=c{rand.randrange(99)}>{' '.join(rand.choices(words, k=12))}</{tag}>\n"
        parts.append(part)
        length += len(part)
    return "".join(parts)


def test_unrelated_large_pages_are_compared_in_bounded_time() -> None:
    old, new = huge(1, 5_000_000), huge(2, 5_000_000)
    started = process_time()
    bounds = DiffBounds(seconds=0.5)
    visual_html(old, new, bounds=bounds)
    side_by_side_html(old, new)
    assert process_time() - started < 10


def test_hostile_markup_is_compared_in_bounded_time() -> None:
    pairs = [("<" * 300_000, "<a" * 150_000), ("<p>" * 60_000, "<b>" * 300), ('<p title="' * 20_000, "<!--" * 50_000)]
    for old, new in pairs:
        started = process_time()
        visual_html(old, new)
        assert process_time() - started < 5


def page_of(*targets: str) -> Page:
    return Page("u", "text/html", links=tuple(Link(target, LinkType.A, f"to  {target}") for target in targets))


def test_links_added_and_removed() -> None:
    changes = link_changes(page_of("a", "b", "b"), page_of("c", "b", "d", "c"))
    assert [link.target for link in changes.added] == ["c", "d"]
    assert [link.target for link in changes.removed] == ["a"]
    assert link_diff(page_of("a"), page_of("b")) == "- a a  to a\n+ a b  to b\n"
    assert link_diff(page_of("a"), page_of("a")) == ""


def test_comments_inside_menus_and_drawings_hide_nothing_that_runs() -> None:
    for opaque in ("<select><!--<p><script>x()</script>-->", "<svg><!--</p><script>x()</script>-->"):
        assert "<script" not in visual_html("", opaque)


def test_a_rewritten_paragraph_is_marked_as_a_whole() -> None:
    old = "<body><p>The committee met on the hill and spoke of water and of roads for hours.</p></body>"
    new = "<body><p>A storm tore the roof off the school, and the mayor of it spoke to people.</p></body>"
    marked = visual_html(old, new)
    assert marked.count("<ins ") == marked.count("<del ") == 1
