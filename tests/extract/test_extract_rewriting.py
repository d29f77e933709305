"""Addresses in pages and style sheets are led elsewhere, and nothing else changes."""

from collections.abc import Callable

import pytest
from growth import grows_with_the_square
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.extract.rewriter import Rewriter
from letopis.extract.simple_formats import css_refs


def led(text: str) -> str:
    """A page with its addresses led to an archive."""
    return Rewriter("http://example.org/", lambda target, _: f"/web/2024/{target}").html(text)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.sampled_from("<>\"'=/ abhrefsrcstylecriptmeta#&;!-url()")))
def test_rewriting_never_fails_and_leaves_text_alone(text: str) -> None:
    led(text)
    plain = text.replace("<", "")
    assert led(plain) == plain


@pytest.mark.parametrize(
    ("given_html", "wanted"),
    [
        ('<a href="x">', '<a href="/web/2024/http://example.org/x">'),
        ("<A HREF = 'x y'>", '<A HREF = "/web/2024/http://example.org/x%20y">'),
        ("<a href=#top>", "<a href=#top>"),
        ('<a href="javascript:alert(1)">', '<a href="javascript:alert(1)">'),
        ('<a title="a>b" href=x>', '<a title="a>b" href="/web/2024/http://example.org/x">'),
        (
            '<base href="http://b.example/d/"><a href=x>',
            '<base href="/web/2024/http://b.example/d/"><a href="/web/2024/http://b.example/d/x">',
        ),
        (
            '<meta http-equiv="refresh" content="5; url=next">',
            '<meta http-equiv="refresh" content="5; url=/web/2024/http://example.org/next">',
        ),
        ('<meta name="description" content="5; url=next">', '<meta name="description" content="5; url=next">'),
        (
            "<p style=\"background:url('a.png')\">",
            '<p style="background:url(&#x27;/web/2024/http://example.org/a.png&#x27;)">',
        ),
        (
            "<style>@import 'a.css'; b{c:url(d)}</style>",
            "<style>@import '/web/2024/http://example.org/a.css'; b{c:url(/web/2024/http://example.org/d)}</style>",
        ),
        ("<!-- <a href=x> -->", "<!-- <a href=x> -->"),
        ("<script>'<a href=x>'</script>", "<script>'<a href=x>'</script>"),
        (
            '<script src="a.js" integrity="sha256-x"></script>',
            '<script src="/web/2024/http://example.org/a.js" ></script>',
        ),
        ("<object data=a.swf><input data=b>", '<object data="/web/2024/http://example.org/a.swf"><input data=b>'),
    ],
)
def test_addresses_in_pages(given_html: str, wanted: str) -> None:
    assert led(given_html) == wanted


HOSTILE_PAGES: dict[str, Callable[[int], str]] = {
    "blanks in srcset": lambda n: f"<img srcset='{' ' * n}'>",
    "commas in srcset": lambda n: f"<img srcset='{' ,' * n}'>",
    "words in srcset": lambda n: f"<img srcset='{'a ' * n}'>",
    "base after base": lambda n: "<base " * n,
    "names in base": lambda n: f"<base {'href ' * n}",
    "rel after rel": lambda n: f"<link x=1 {'rel=' * n}>",
    "blanks after rel": lambda n: f"<link x=1 rel{' ' * n}>",
    "blanks in a refresh": lambda n: f"<meta http-equiv=refresh content='1{' ' * n};{' ' * n}url{' ' * n}'>",
    "digits in a refresh": lambda n: f"<meta http-equiv=refresh content='{'1.' * n}'>",
    "tags that do not end": lambda n: "<a " * n,
    "values that do not end": lambda n: '<a x="' * n,
    "quotes of both kinds": lambda n: "<a href='x\" " * n,
    "names without values": lambda n: f"<a {' href' * n}>",
    "blanks before values": lambda n: f"<a href{' ' * n}={' ' * n}>",
    "comments that do not end": lambda n: "<!--" * n,
    "scripts that do not end": lambda n: "<script>" * n,
    "styles everywhere": lambda n: "style=url(<b " * n,
    "a style attribute": lambda n: f"<b style='{'url( ' * n}'>",
}
HOSTILE_SHEETS: dict[str, Callable[[int], str]] = {
    "blanks in url": lambda n: "url(" + " " * n,
    "blanks after url": lambda n: "url('a'" + " " * n,
    "url after url": lambda n: "url(" * n,
    "url and blank": lambda n: "url( " * n,
    "quotes in url": lambda n: "url('" * n,
    "backslashes in url": lambda n: "url('" + "\\'" * n,
    "blanks in import": lambda n: "@import" + " " * n,
    "import after import": lambda n: "@import '" * n,
}


def led_sheet(text: str) -> str:
    """A style sheet with its addresses led to an archive."""
    return Rewriter("http://example.org/", lambda target, _: f"/web/2024/{target}").css(text)


@pytest.mark.parametrize("kind", HOSTILE_PAGES)
def test_the_time_to_rewrite_a_hostile_page_grows_with_its_size(kind: str) -> None:
    assert not grows_with_the_square(led, HOSTILE_PAGES[kind])


@pytest.mark.parametrize("kind", HOSTILE_SHEETS)
def test_the_time_to_rewrite_a_hostile_style_sheet_grows_with_its_size(kind: str) -> None:
    assert not grows_with_the_square(led_sheet, HOSTILE_SHEETS[kind])
    assert not grows_with_the_square(css_refs, HOSTILE_SHEETS[kind])


@pytest.mark.parametrize(
    ("given_css", "wanted"),
    [
        ('a{b:URL( "x" )}', 'a{b:URL( "/web/2024/http://example.org/x" )}'),
        ("url(x) url('y z')", "url(/web/2024/http://example.org/x) url('/web/2024/http://example.org/y%20z')"),
        ('@import"x";', '@import"/web/2024/http://example.org/x";'),
        ("url(data:image/png;base64,AA==)", "url(data:image/png;base64,AA==)"),
        ("url(x", "url(x"),
        ("url('x)", "url('x)"),
    ],
)
def test_addresses_in_style_sheets(given_css: str, wanted: str) -> None:
    assert led_sheet(given_css) == wanted


def test_every_picture_of_a_srcset_is_led_elsewhere_with_or_without_a_width() -> None:
    assert led('<img srcset="a.png, b.png 2x,c.png 3x">') == (
        '<img srcset="/web/2024/http://example.org/a.png, /web/2024/http://example.org/b.png 2x,'
        '/web/2024/http://example.org/c.png 3x">'
    )


def test_a_base_in_a_comment_or_a_script_is_none() -> None:
    page = "<!-- <base href='/no/'> --><script>'<base href=/no/>'</script><base target=_top><base href=/yes/><a href=x>"
    assert led(page).endswith('<a href="/web/2024/http://example.org/yes/x">')


def test_whoever_leads_is_told_what_a_page_needs() -> None:
    asked: dict[str, bool] = {}
    page = (
        "<a href=/page><img src=/picture><link rel=stylesheet href=/style><link rel=next href=/next>"
        "<video poster=/poster></video><p style='background:url(/back)'><img srcset='/small 1x, /large 2x'>"
    )

    def lead(target: str, needed: bool) -> None:
        asked[target.removeprefix("http://example.org")] = needed

    assert Rewriter("http://example.org/", lead).html(page)
    assert {path for path, needed in asked.items() if not needed} == {"/page", "/next"}
