"""What is changed of archived pages for the replay origin, and what stays."""

from __future__ import annotations

import pytest

from letopis.replay.origin import ReplayOrigin
from letopis.replay.sites import rewrite_for_site, with_head_script

ORIGIN = ReplayOrigin("http", "letopis.localhost:1")
AT = 1_714_979_289_000


def led(url: str) -> str:
    return ORIGIN.address(url, AT) or ""


def rewritten(body: str, kind: str = "page") -> str:
    order = {
        "kind": kind,
        "url": "https://a.example/dir/",
        "time": AT,
        "content_type": "text/html",
        "origin": ["http", ORIGIN.host],
    }
    return rewrite_for_site(order, body.encode()).decode()


@pytest.mark.parametrize(
    "markup",
    ["<img src=pic.png>", '<a href="https://b.example/">b</a>', "<script>var u = 'https://b.example/x'</script>",
     '<link rel="stylesheet" href="/s.css">', "<p>https://b.example/</p>", '<img src="data:image/png;base64,xx">'],
)  # fmt: skip
def test_whatever_needs_no_change_stays_byte_for_byte(markup: str) -> None:
    assert rewritten(markup) == markup


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<img src='https://b.example/p.png'>", f'<img src="{led("https://b.example/p.png")}">'),
        ("<img srcset='//b.example/p.png 2x'>", f'<img srcset="{led("https://b.example/p.png")} 2x">'),
        ("<iframe sandbox src=https://b.example/>", f'<iframe data-archived-sandbox src="{led("https://b.example/")}">'),
        ("<p style='background:url(https://b.example/p)'>", f'<p style="background:url({led("https://b.example/p")})">'),
        ("<script>import 'https://b.example/m.js'</script>", f"<script>import '{led('https://b.example/m.js')}'</script>"),
        ("<meta http-equiv=content-security-policy>", "<meta data-http-equiv=content-security-policy>"),
    ],
)  # fmt: skip
def test_addresses_of_other_hosts_lead_to_their_archived_sites(before: str, after: str) -> None:
    assert rewritten(before) == after


def test_style_sheets_and_modules_too() -> None:
    assert (
        rewritten("a { background: url(//b.example/x) }", "style")
        == f"a {{ background: url({led('https://b.example/x')}) }}"
    )
    assert rewritten('export * from "https://b.example/m"', "script") == f'export * from "{led("https://b.example/m")}"'


@pytest.mark.parametrize(
    ("page", "before"),
    [(b"<!doctype html><html lang=en><head><title>", b"<title>"), (b"<!-- x --><!DOCTYPE html>\n<p>", b"<p>"),
     (b"\xef\xbb\xbf<html><script>", b"<script>"), (b"text", b"text"), (b"<header>x", b"<header>")],
)  # fmt: skip
def test_our_script_stands_before_everything_of_the_page_and_after_its_doctype(page: bytes, before: bytes) -> None:
    made = with_head_script(page, "")
    assert made == page.replace(before, b'<script src="/.letopis/head.js"></script>' + before, 1)
