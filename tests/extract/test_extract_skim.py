"""A skimmed page leads where the whole page leads."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.extract import read_page
from letopis.extract.pages import MAX_LINKS
from letopis.model import LinkType

URL = "http://example.org/dir/page.html"
LEADING = {LinkType.A, LinkType.AREA, LinkType.IFRAME, LinkType.FEED, LinkType.SITEMAP, LinkType.REDIRECT}
TAGS = st.sampled_from(
    ("<a href={}>", "<a rel=nofollow href={}>x</a>", "<area href={}>", "<iframe src={}></iframe>", "<p>", "<table>",
     "<base href=/other/>", "<link rel=alternate type=application/rss+xml href={}>", "</div>", "<svg><a href={}></svg>",
     "<script>'<a href=no>'</script>", "<!-- <a href=no> -->", "<template><a href={}></template>", "<noscript>",
     "<meta name=robots content='noindex, nofollow'>", "<link rel=canonical href={}>", "<a>", "<a href>",
     "<meta http-equiv=refresh content='3;url={}'>", "<select><a href={}>", "text & more")
)  # fmt: skip
REFS = st.sampled_from(("/a", "b?x=2&a=1", "http://other.example/", "#top", "mailto:a@b", "//c.example/d", "%zz", "'"))


def both(markup):
    headers = (("Content-Type", "text/html; charset=utf-8"),)
    return read_page(markup, URL, headers, detect_language=False), read_page(markup, URL, headers, mode="skim")


def leads(found):
    return {(link.target, link.type, link.rel) for link in found.links if link.type in LEADING}


@settings(max_examples=300)
@given(st.lists(st.tuples(TAGS, REFS), max_size=25))
def test_skimming_finds_every_address_that_a_crawl_may_follow(parts):
    whole, skimmed = both("".join(tag.format(ref) for tag, ref in parts).encode())
    assert leads(skimmed) == leads(whole)
    assert (skimmed.robots, skimmed.canonical, skimmed.refresh) == (whole.robots, whole.canonical, whole.refresh)


@settings(max_examples=100)
@given(st.binary(max_size=300))
def test_skimming_survives_any_bytes(body):
    whole, skimmed = both(b"<html>" + body)
    assert leads(skimmed) == leads(whole)


@pytest.mark.parametrize("charset", ["utf-8", "windows-1250", "iso-8859-2", "utf-16", "shift_jis", "iso-2022-jp"])
@pytest.mark.parametrize(
    "tag",
    ["<a href='/{}'>x</a>", "<iframe src='/{}'></iframe>", "<base href='/{}/'><a href=y>", "<a href=/plain>{}</a>"],
)
def test_skimming_reads_references_in_any_charset(charset, tag):
    word = "日本" if "jp" in charset or "jis" in charset else "čaj"
    body = f"<html><p>{word} {word}</p>{tag.format(word)}</html>".encode(charset)
    headers = (("Content-Type", f"text/html; charset={charset}"),)
    whole, skimmed = (read_page(body, URL, headers, detect_language=False, mode=mode) for mode in ("full", "skim"))
    assert leads(skimmed) == leads(whole)
    assert leads(whole)


def test_skimming_leaves_texts_alone():
    _, skimmed = both(b"<title>T</title><h1>H</h1><a href=/x title=t>words</a>")
    assert [(link.target, link.text) for link in skimmed.links] == [("http://example.org/x", "")]
    assert skimmed.blocks == ()


@pytest.mark.parametrize("mode", ["skim", "full"])
def test_a_million_links_are_bounded_in_any_mode(mode):
    body = b"".join(b"<a href=/%d>" % number for number in range(60_000))
    assert len(read_page(body, URL, detect_language=False, mode=mode, apart=False).links) <= MAX_LINKS + 1
