"""Documents broken at random, format by format. LETOPIS_LONG=1 makes it 20,000 rounds each."""

import io
import os
import random
import zipfile

import pytest

from letopis.extract import decode, read_page
from letopis.extract.extraction import needs_own_process, sniff
from letopis.extract.html_links import srcset_urls
from letopis.extract.metadata import primary_language, read_date
from letopis.extract.simple_formats import css_refs
from letopis.model import BlockKind, LinkType

ROUNDS = 20_000 if os.environ.get("LETOPIS_LONG") else 150
URL = "http://example.org/dir/page.html"
HTML = """<!doctype html><html lang="cs"><head><base href="/b/"><title>T</title><meta name="description" content="d">
<meta http-equiv="refresh" content="5; url=x">
<script type="application/ld+json">{"datePublished": "2026-01-02"}</script>
<style>a{background:url(i.png)}</style></head><body><nav><a href="/">Home</a></nav>
<div class="navbar footer" role="dialog">
<main><h1>Příliš</h1><p style="background:url(x)">text <b>bold</b> <a href="y" rel="nofollow">link</a><br><br>more</p>
<img src="data:x" srcset="a.png 1x, b.png 2x" alt="alt" data-src="c"><table><tr><td><p>cell</td></tr></table>
<form action="f"><select><option>o</select></form>
<svg><title>s</title></svg><time datetime="2026-01-01">x</time></main></div>"""
FEED = """<?xml version="1.0"?><rss version="2.0"><channel><title>t</title><item><title>i</title><link>http://a.cz/</link>
<pubDate>Mon, 05 Jan 2026 10:00:00 GMT</pubDate><description>&lt;p&gt;d</description></item></channel></rss>"""
MAP = """<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://a.cz/x</loc>
<lastmod>2026-01-01</lastmod></url></urlset>"""
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0\x90wS\xde"
PNG += b"\0\0\0\x0btEXtTitle\0abcde\0\0\0\0\0\0\0\0IEND\xaeB`\x82"


def zipped(name, text, first=""):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        if first:
            archive.writestr("mimetype", first)
        archive.writestr(name, text)
    return out.getvalue()


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
DOCX = zipped(
    "word/document.xml",
    f'<w:document xmlns:w="{WORD}"><w:body><w:p><w:r><w:t>a</w:t></w:r></w:p></w:body></w:document>',
)
ODT_TYPE = "application/vnd.oasis.opendocument.text"
ODT = zipped(
    "content.xml", f'<o:body xmlns:o="{OFFICE}" xmlns:t="{TEXT}"><o:text><t:p>a</t:p></o:text></o:body>', ODT_TYPE
)

SEEDS = {
    "text/html": HTML.encode(),
    "text/html; charset=windows-1250": HTML.encode("cp1250"),
    "application/xhtml+xml": HTML.encode("utf-16"),
    "text/plain": "řádek\n\nodstavec 2026".encode("iso8859-2"),
    "application/rss+xml": FEED.encode(),
    "application/atom+xml": b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="/y"/></entry></feed>',
    "application/xml": MAP.encode(),
    "text/xml": b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;<y z="1">text</y></x>',
    "application/json": b'{"a": [1, {"url": "http://a.cz/", "t": "text \\u0159"}]}',
    "text/css": b"@import 'a.css'; a{background:url( \"b.png\" )}",
    "application/rtf": b"{\\rtf1\\ansi{\\info{\\title T}}Hello \\'e9 \\u345? \\par {\\*\\x y}}",
    "application/postscript": b"%!PS-Adobe-3.0\n%%Title: (T)\n(text) show\n",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": DOCX,
    ODT_TYPE: ODT,
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xd9",
}


def broken(rand, data):
    out = bytearray(data)
    for _ in range(rand.randint(1, 6)):
        at = rand.randrange(len(out) + 1)
        kind = rand.random()
        if kind < 0.4:
            out[at : at + rand.randint(0, 4)] = rand.randbytes(rand.randint(0, 4))
        elif kind < 0.7:
            start = rand.randrange(len(out) + 1)
            out[at:at] = out[start : start + rand.randint(1, 40)]
        elif kind < 0.95:
            del out[at : at + rand.randint(1, 40)]
        else:
            del out[at:]
    return bytes(out)


@pytest.mark.parametrize("content_type", SEEDS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_broken_documents_are_pages_all_the_same(content_type):
    rand = random.Random(content_type)
    for _ in range(ROUNDS):
        body = broken(rand, SEEDS[content_type])
        found = read_page(body, URL, (("Content-Type", content_type),), detect_language=False, apart=False)
        assert found.url == URL
        assert all(isinstance(block.kind, BlockKind) and block.text for block in found.blocks)
        assert all(link.target and isinstance(link.type, LinkType) for link in found.links)
        assert all(0 <= at < len(found.blocks) for at in found.frame)


def test_modes_agree_on_where_a_broken_page_leads():
    rand = random.Random(5)
    for _ in range(ROUNDS):
        body = broken(rand, HTML.encode())
        full, skimmed = (
            read_page(body, URL, detect_language=False, apart=False, mode=mode) for mode in ("full", "skim")
        )
        leading = (LinkType.A, LinkType.AREA)
        assert [x.target for x in skimmed.links if x.type in leading] == [
            x.target for x in full.links if x.type in leading
        ]


def test_small_parsers_take_any_text():
    rand = random.Random(6)
    for _ in range(ROUNDS):
        data = rand.randbytes(rand.randint(0, 60))
        text = "".join(rand.choices("urlimport(){}'\"\\/*@;:,. 0123456789TZ-+GMTJancs_\n\x00č", k=rand.randint(0, 50)))
        assert isinstance(decode(data, text[:12]).text, str)
        assert isinstance(sniff(data, text[:20]), str)
        assert all(isinstance(ref, str) for ref in css_refs(text))
        assert all(srcset_urls(text))
        read_date(text)
        assert primary_language(text).isascii()
        assert needs_own_process(data) is False
