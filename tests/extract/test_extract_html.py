import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.extract import read_page
from letopis.extract.extraction import needs_own_process
from letopis.extract.html_links import srcset_urls
from letopis.extract.pages import MAX_LINKS
from letopis.model import BlockKind, LinkType

URL = "http://example.org/dir/page.html"


def read(markup, **options):
    body = markup.encode() if isinstance(markup, str) else markup
    return read_page(body, URL, (("Content-Type", "text/html; charset=utf-8"),), detect_language=False, **options)


def blocks(markup):
    return [(str(block.kind), block.text) for block in read(markup).blocks]


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<p>one<p>two", [("paragraph", "one"), ("paragraph", "two")]),
        ("<h1>J<b>oh</b>n</h1>", [("h1", "John")]),
        ("<p><b>a</b> <i>b</i>\n c", [("paragraph", "a b c")]),
        ("<p><b>a</b> <i>b</i><u>c</u>", [("paragraph", "a bc")]),
        ("<p><span><b>a</b> </span><i>b</i>", [("paragraph", "a b")]),
        ("<p>a<!-- c --><b>b</b><!-- c --> <i>c</i>", [("paragraph", "ab c")]),
        ("<p><b>a</b>\n<img src=i><i>b</i>", [("paragraph", "a b")]),
        ("<script> </script><p>a", [("paragraph", "a")]),
        ("<div>a<p>b</p>c</div>", [("paragraph", "a"), ("paragraph", "b"), ("paragraph", "c")]),
        ("<ul><li>a<li><p>b</p><li><div>c</div></ul>", [("item", "a"), ("item", "b"), ("item", "c")]),
        ("<table><tr><td>a<td><p>b</table>", [("cell", "a"), ("paragraph", "b")]),
        ("<blockquote><p>q</blockquote>", [("quote", "q")]),
        ("<pre>a  b</pre>", [("code", "a b")]),
        ("<div><a href=x>only a link</a></div>", [("link", "only a link")]),
        ("<p>a <a href=x>link</a> in text", [("paragraph", "a link in text")]),
        ("<div>a<br>b<br><br>c<br> <br>d</div>", [("paragraph", "a b"), ("paragraph", "c"), ("paragraph", "d")]),
        ("a<hr>b", [("paragraph", "a"), ("paragraph", "b")]),
        ("<p>x<img src=i alt='a  picture'>y", [("paragraph", "xy"), ("alt", "a picture")]),
        ("<script>var a='<p>no'</script><style>p{}</style><p>yes", [("paragraph", "yes")]),
        (
            "<select><option>no</select><noscript><p>no</p></noscript><svg><text>no</text></svg><p>yes",
            [("paragraph", "yes")],
        ),
        ("<textarea>no</textarea>yes", [("paragraph", "yes")]),
        ("<li><noscript><ul><li>no</ul></noscript>yes", [("item", "yes")]),
        ("\u00a0 a \u00a0\u2003 b ", [("paragraph", "a b")]),
        (
            "<title>T</title><meta name=description content=D><meta name=keywords content='k, l'>x",
            [("title", "T"), ("paragraph", "x"), ("description", "D"), ("keywords", "k, l")],
        ),
        ("", []),
        ("<", [("paragraph", "<")]),
        ("<p>&amp;&lt;&eacute;&#269;&bogus;", [("paragraph", "&<éč&bogus;")]),
        ("<h2><div>a</div></h2>", [("h2", "a")]),
        ("<p>unclosed <b>bold<p>next</b> one", [("paragraph", "unclosed bold"), ("paragraph", "next one")]),
    ],
)
def test_text_falls_into_blocks(markup, expected):
    assert blocks(markup) == expected


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<a href=a.html>A</a>", [("http://example.org/dir/a.html", "a", "A")]),
        ("<a href='a b.html'>x", [("http://example.org/dir/a%20b.html", "a", "x")]),
        ("<A HREF = '/x' >x", [("http://example.org/x", "a", "x")]),
        ("<a href>x</a><a>y</a><a href=javascript:1>z</a><a href=mailto:a@b>m</a>", []),
        ("<a href=''>x", [(URL, "a", "x")]),
        ("<a href=x><b>bo</b>ld</a>", [("http://example.org/dir/x", "a", "bold")]),
        (
            "<a href=x><img src=i.png alt=Pic></a>",
            [("http://example.org/dir/x", "a", "Pic"), ("http://example.org/dir/i.png", "img", "Pic")],
        ),
        ("<map><area href=m alt=Area></map>", [("http://example.org/dir/m", "area", "Area")]),
        ("<img src=data:x data-src=l.png>", [("http://example.org/dir/l.png", "img", "")]),
        (
            "<img src=a srcset='a 1x, b,c 2x'>",
            [("http://example.org/dir/a", "img", ""), ("http://example.org/dir/b,c", "img", "")],
        ),
        ("<script src=s.js></script>", [("http://example.org/dir/s.js", "script", "")]),
        (
            "<iframe src=f></iframe><form action=g></form>",
            [("http://example.org/dir/f", "iframe", ""), ("http://example.org/dir/g", "form", "")],
        ),
        (
            "<video src=v poster=p><source src=w></video>",
            [
                ("http://example.org/dir/v", "media", ""),
                ("http://example.org/dir/p", "img", ""),
                ("http://example.org/dir/w", "media", ""),
            ],
        ),
        (
            "<link rel=stylesheet href=s.css><link rel=alternate type=application/rss+xml href=f>",
            [("http://example.org/dir/s.css", "link", ""), ("http://example.org/dir/f", "feed", "")],
        ),
        (
            "<style>@import 'i.css'; a{b:url( \"x.png\" )} /* url(no) */</style>",
            [("http://example.org/dir/i.css", "css", ""), ("http://example.org/dir/x.png", "css", "")],
        ),
        ("<p style='background:url(b.png)'>", [("http://example.org/dir/b.png", "css", "")]),
        ("<noscript><img src=n></noscript>", [("http://example.org/dir/n", "img", "")]),
        ("<meta http-equiv=refresh content='0;URL=r.html'>", [("http://example.org/dir/r.html", "redirect", "")]),
        (
            "<frameset><frame src=a><frame src=b></frameset>",
            [("http://example.org/dir/a", "iframe", ""), ("http://example.org/dir/b", "iframe", "")],
        ),
    ],
)
def test_links_are_found_by_type(markup, expected):
    for mode in ("full", "basic"):
        assert [(link.target, str(link.type), link.text) for link in read(markup, mode=mode).links] == expected


def test_base_holds_for_links_before_it_too():
    found = read("<link rel=icon href=i><base href='/b/'><base href='/c/'><a href=x>")
    assert [link.target for link in found.links] == ["http://example.org/b/i", "http://example.org/b/x"]


def test_rel_and_title_of_links_are_kept():
    (link,) = read("<a href=x rel='nofollow ugc' title='about x'>x").links
    assert (link.rel, link.title) == ("nofollow ugc", "about x")


def test_the_head_is_understood():
    found = read_page(
        b"""<html lang=cs-CZ><head><title> A  title </title><link rel=canonical href=/c>
        <meta name=robots content='NOINDEX, nofollow'>
        <meta property=article:published_time content=2024-05-06T07:08:09+02:00>
        <meta http-equiv=Refresh content="5; url='next.html'"><svg><title>no</title></svg>""",
        URL,
        (
            ("X-Robots-Tag", "noarchive"),
            ("X-Robots-Tag", "otherbot: none"),
            ("Last-Modified", "Mon, 06 May 2024 10:00:00 GMT"),
        ),
        detect_language=False,
    )
    assert (found.title, found.canonical, found.refresh) == (
        "A title",
        "http://example.org/c",
        "http://example.org/dir/next.html",
    )
    assert found.robots == {"noindex", "nofollow", "noarchive"}
    assert (found.declared_language, found.language) == ("cs", "cs")
    assert found.published.isoformat() == "2024-05-06T05:08:09+00:00"
    assert found.modified.isoformat() == "2024-05-06T10:00:00+00:00"


def test_dates_come_from_json_ld_and_time_elements():
    ld = read(
        '<script type="application/ld+json">{"datePublished": "2023-01-02","dateModified":"2023-02-03T04:05Z"}</script>'
    )
    assert (ld.published.date().isoformat(), ld.modified.date().isoformat()) == ("2023-01-02", "2023-02-03")
    assert read("<time datetime=2022-03-04>x</time>").published.date().isoformat() == "2022-03-04"
    assert read("<time datetime=nonsense>x</time>").published is None


def test_the_frame_of_a_page_is_marked():
    found = read(
        "<header><h1>Site</h1></header><nav><ul><li>menu</ul></nav><main><header><h2>Story</h2></header><p>text</main>"
        "<aside>ad</aside><footer><p>imprint</footer>"
    )
    assert [found.blocks[at].text for at in sorted(found.frame)] == ["Site", "menu", "ad", "imprint"]


@pytest.mark.parametrize(
    "markup",
    [
        "<main><nav>aside</nav>text</main>",
        "<div role=navigation>aside</div>text",
        "<div role=contentinfo>aside</div>text",
        "<div class='top navbar'>aside</div>text",
        "<div class=page-footer>aside</div>text",
        "<div id=cookie-notice>aside</div>text",
        "<main><div role=dialog>aside</div>text</main>",
        "<article class=cookie-table>text</article><aside>aside</aside>",
        "<div class=card-footer>text</div><nav>aside</nav>",
        "<main><div class=footer>text</div></main><menu>aside</menu>",
    ],
)
def test_menus_and_what_is_named_so_are_frame(markup):
    found = read(markup)
    assert {found.blocks[at].text for at in found.frame} == {"aside"}
    assert "text" in {block.text for at, block in enumerate(found.blocks) if at not in found.frame}


def test_drawings_hold_elements_where_pages_hold_raw_text():
    assert [link.target for link in read("<svg><script><a href=x>y</a></script></svg>").links] == [
        "http://example.org/dir/x"
    ]


def test_nested_frames_cost_no_more_than_their_size():
    found = read("<nav>x" * 8000)
    assert len(found.frame) == 8000


def test_mode_basic_gives_title_and_links_only():
    found = read("<title>T</title><p>text <a href=x>y</a>", mode="basic")
    assert found.title == "T"
    assert [block.kind for block in found.blocks] == [BlockKind.TITLE]
    assert len(found.links) == 1


def test_a_million_links_are_bounded_and_said():
    found = read("<a href=/x>y</a>" * 60_000, apart=False)
    assert len(found.links) == MAX_LINKS
    assert any("links" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    "bomb",
    [b"<div>" * 60_000, b"<p " + b" ".join(b"a%d=1" % n for n in range(20_000)) + b">", b"<x><y>" * 40_000],
    ids=["deep", "wide", "mixed"],
)
def test_pages_that_would_keep_the_parser_busy_are_noticed(bomb):
    assert needs_own_process(bomb)


@pytest.mark.parametrize(
    "honest",
    [
        b"<div><p>text<p>more</div>\n" * 12_000,
        b"<img src='data:image/png;base64," + b"iVBO/+a " * 30_000 + b"'>",
        b"<ul>" + b"<li>item" * 40_000 + b"</ul>",
        b"x" * 1_000_000,
    ],
    ids=["many", "data", "list", "text"],
)
def test_large_honest_pages_are_read_here(honest):
    assert not needs_own_process(honest)


def test_a_deep_page_below_the_guard_is_read():
    found = read("<div><b>" * 4000 + "deep")
    assert found.blocks[0].text == "deep"


@pytest.mark.parametrize(
    ("srcset", "expected"),
    [
        ("a 1x, b 2x", ["a", "b"]),
        ("a,b", ["a,b"]),
        ("a 1x,b 2x", ["a", "b"]),
        ("a, b", ["a", "b"]),
        (" , ", []),
        ("a", ["a"]),
    ],
)
def test_srcset_lists_its_addresses(srcset, expected):
    assert srcset_urls(srcset) == expected


tags = st.sampled_from(
    [
        "<p>",
        "</p>",
        "<div>",
        "</div>",
        "<a href=x>",
        "</a>",
        "<b>",
        "<li>",
        "<table>",
        "<td>",
        "<svg>",
        "<script>",
        "</script>",
        "<br>",
        "<title>",
        "<!--",
        "-->",
        "<img alt=x src=",
        ">",
        "text",
        " ",
        "&amp",
        "\x00",
        "<select>",
        "<template>",
        "č",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(tags, max_size=40).map("".join))
def test_no_markup_is_too_broken(markup):
    found = read(markup)
    assert all(block.text and block.text == " ".join(block.text.split()) for block in found.blocks)
    assert all(link.target.startswith("http") and isinstance(link.type, LinkType) for link in found.links)


@pytest.mark.parametrize("mode", ["full", "basic"])
@pytest.mark.parametrize(
    "markup",
    ["<P BACKGROUND=b.png>", "<p style='background:url(b.png)'>", "<p style='background:&#117;rl(b.png)'>",
     "<p style='list-style:url&lpar;b.png)'>", "<p StYlE='list-style: url(b.png)'>"],
)  # fmt: skip
def test_pictures_in_attributes_are_found_however_these_are_written(markup, mode):
    headers = (("Content-Type", "text/html"),)
    found = read_page(markup.encode(), "http://a.org/", headers, mode=mode, detect_language=False)
    assert [link.target for link in found.links] == ["http://a.org/b.png"]


@pytest.mark.parametrize("mode", ["full", "basic"])
def test_objects_backgrounds_quotations_and_buttons_refer_to_documents_too(mode):
    page = (
        b"<body background=/back.png><object data=/film.swf></object><blockquote cite=/source>q</blockquote>"
        b"<form><button formaction=/send>x</button></form><p data=/no>p</p>"
    )
    found = read_page(page, "http://a.org/", (("Content-Type", "text/html"),), mode=mode, detect_language=False)
    assert {(link.target, link.type.value, link.rel) for link in found.links} == {
        ("http://a.org/back.png", "img", "background"),
        ("http://a.org/film.swf", "media", ""),
        ("http://a.org/source", "link", "cite"),
        ("http://a.org/send", "form", ""),
    }


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<a href=x><h3>Title</h3><p>Text</p></a>", "Title Text"),
        ("<a href=x>one<br>two</a>", "one two"),
        ("<a href=x><div>1</div>2</a>", "1 2"),
        ("<a href=x><b>wo</b>rd</a>", "word"),
    ],
)
def test_texts_of_a_link_are_not_glued(markup, text):
    assert [link.text for link in read(markup).links] == [text]


DATA = (
    '{"@graph": [{"headline": "Data &amp; head", "description": "x", "keywords": ["a", "b"], "articleBody": "Long"}]}'
)


@pytest.mark.parametrize("mode", ["basic", "full"])
def test_open_graph_and_json_ld_say_what_a_page_does_not(mode):
    found = read(f"<script type=application/ld+json>{DATA}</script><meta property=og:image content=/i.png>", mode=mode)
    assert found.title == "Data & head"
    assert [(link.target, str(link.type), link.rel) for link in found.links] == [
        ("http://example.org/i.png", "link", "og:image")
    ]
    if mode == "full":
        assert (found.description, found.keywords, found.blocks[-1].text) == ("x", "a, b", "Long")


def test_a_page_that_speaks_for_itself_keeps_its_words():
    own = (
        "<title>Own</title><meta property=og:title content=Other><meta name=description content=mine><p>" + "word " * 80
    )
    found = read(f"{own}<script type=application/ld+json>{DATA}</script><script type=application/ld+json>{{</script>")
    assert (found.title, found.description, found.keywords) == ("Own", "mine", "")
    assert "Long" not in found.text
