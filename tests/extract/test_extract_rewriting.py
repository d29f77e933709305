"""Addresses in pages and style sheets are led elsewhere, and nothing else changes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.extract.rewriter import Rewriter


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


def test_hostile_markup_is_rewritten_in_time_that_grows_with_its_size() -> None:
    for text in ("<a " * 50_000, "<a href='" * 20_000, "<style>" * 20_000, "<!--" * 50_000, '<a x="' * 30_000):
        assert len(led(text)) >= len(text)


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
