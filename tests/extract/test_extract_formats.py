import gzip
import io
import json
import struct
import sys
import textwrap
import zipfile
import zlib
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.extract import Source, content_types, extraction, format_for, read_in_own_process, read_page, sniff, xml
from letopis.extract.feeds import sitemap_entries
from letopis.model import BlockKind, LinkType

URL = "http://example.org/dir/file"
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
ODT = "application/vnd.oasis.opendocument.text"


def read(body, content_type="", **options):
    headers = (("Content-Type", content_type),) if content_type else ()
    return read_page(body, URL, headers, detect_language=False, **options)


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("body", "claimed", "expected"),
    [
        (b"%PDF-1.7 x", "text/html", "application/pdf"),
        (b"\x89PNG\r\n\x1a\nx", "text/html", "image/png"),
        (b"<!doctype html><p>x", "text/plain", "text/html"),
        (b"<!doctype html><p>x", "", "text/html"),
        (b"<p>x", "application/octet-stream", "text/html"),
        (b"<!-- note -->\n<!DOCTYPE HTML>\n<html>", "", "text/html"),
        (b"<section class=a>x", "", "text/html"),
        (b"<?xml version='1.0'?><rss><channel/></rss>", "text/html", "application/rss+xml"),
        (b"<?xml version='1.0'?><!-- c --><feed xmlns='x'/>", "text/xml", "application/atom+xml"),
        (b"<?xml version='1.0'?><urlset/>", "application/xml", "application/sitemap+xml"),
        (b"<?xml version='1.0'?><other/>", "", "application/xml"),
        (b'{"a": 1}', "", "application/json"),
        (b"just words", "", "text/plain"),
        (b"just words", "Text/Plain; charset=x", "text/plain"),
        (b"\x00\x01\x02", "", "application/octet-stream"),
        (b"\x00\x01\x02", "text/html", "application/octet-stream"),
        (b"<title>a stray \x07 bell\x00</title>", "text/html", "text/html"),
        (b"<!doctype html><p>\x08", "", "text/html"),
        (b"", "text/html", "text/html"),
        (b"{\\rtf1 x}", "application/msword", "application/rtf"),
        (b"\x1f\x8b\x08x", "text/xml", "application/gzip"),
        (b"a { b: c }", "text/css", "text/css"),
        (b"RIFF....WEBPVP8 ", "", "image/webp"),
    ],
)
def test_types_are_seen_through(body, claimed, expected):
    assert sniff(body, claimed) == expected


def test_many_comments_are_looked_through_quickly():
    assert sniff(b"<!---->" * 600 + b"x") == "text/plain"


def test_plain_text_has_lines_as_paragraphs_and_links():
    found = read(b"A title\n\nFirst line,\nsee http://a.org/x.\n \nSecond (https://b.org/y).", "text/plain")
    assert found.title == "A title"
    assert [block.text for block in found.blocks] == [
        "A title",
        "First line,",
        "see http://a.org/x.",
        "Second (https://b.org/y).",
    ]
    assert [link.target for link in found.links] == ["http://a.org/x", "https://b.org/y"]


def test_prose_broken_at_a_fixed_width_is_one_paragraph():
    prose = (
        "The council met on Monday and spoke of the bridge, the school and of all that the town needs this year. " * 5
    )
    for width in (50, 72):
        found = read(textwrap.fill(prose, width).encode() + b"\n\nEnd", "text/plain")
        assert [block.text for block in found.blocks] == [prose.strip(), "End"]


@pytest.mark.parametrize(
    "line",
    [
        "2026-01-{:02} host app[17]: request answered with status 200 in 15 ms",
        "package_{} == 1.0",
        "a;{};c",
        "- item {}",
    ],
)
def test_logs_lists_and_tables_have_a_paragraph_a_line(line):
    lines = [line.format(n) for n in range(10, 40)]
    assert [block.text for block in read("\n".join(lines).encode(), "text/plain").blocks] == lines


def test_a_text_of_more_lines_than_a_page_may_have_paragraphs_is_read_whole():
    found = read(b"word\n" * 60_000 + b"\nlast", "text/plain")
    assert (len(found.blocks), found.blocks[-1].text, found.warnings) == (2, "last", ())


def test_json_gives_strings_and_addresses():
    found = read(
        json.dumps({"title": "T", "deep": [{"a": "some words"}, 1, "http://a.org/"]}).encode(), "application/json"
    )
    assert found.title == "T"
    assert ("cell", "a: some words") in [(str(block.kind), block.text) for block in found.blocks]
    assert [link.target for link in found.links] == ["http://a.org/"]


def test_deep_json_becomes_a_warning():
    assert read(b"[" * 200_000, "application/json").warnings


def test_style_sheets_give_links():
    found = read(b"@import 'a.css'; b{background:url(c.png)}", "text/css")
    assert [(link.target, link.type) for link in found.links] == [
        ("http://example.org/dir/a.css", LinkType.CSS),
        ("http://example.org/dir/c.png", LinkType.CSS),
    ]


RSS = """<?xml version="1.0"?><rss version="2.0"><channel><title>News &amp; more</title><link>http://a.org/</link><language>cs</language>
<item><title>First</title><link>http://a.org/1</link><pubDate>Mon, 06 May 2024 10:00:00 GMT</pubDate>
<description>&lt;p&gt;Text &lt;b&gt;one&lt;/b&gt;&lt;/p&gt;</description><enclosure url="http://a.org/1.mp3"/></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en"><title>F</title>
<link href="/self" rel="self"/><link href="/home"/>
<entry><title>One</title><link href="e1"/><updated>2024-01-02T03:04:05Z</updated><summary>S</summary></entry></feed>"""


def test_rss_entries_are_links_with_text_and_dates():
    found = read(RSS.encode(), "application/rss+xml")
    assert (found.title, found.declared_language) == ("News & more", "cs")
    assert ("http://a.org/1", "First", "2024-05-06T10:00:00+00:00") in [
        (link.target, link.text, link.title) for link in found.links
    ]
    assert "http://a.org/1.mp3" in [link.target for link in found.links]
    assert "Text one" in [block.text for block in found.blocks]
    assert found.published.year == 2024


def test_addresses_of_a_feed_are_relative_to_its_base():
    links = '<link rel="enclosure" href="b"/><link href="a"/><content src="c"/>'
    entries = f'<link href="./"/><entry>{links}</entry><entry DEEPER>{links}</entry>'
    feed = f'<feed xmlns="http://www.w3.org/2005/Atom" BASE>{entries}</feed>'
    given = feed.replace("BASE", 'xml:base="http://b.org/x/"').replace("DEEPER", 'xml:base="deeper/"')
    assert [link.target for link in read(given.encode()).links] == [
        f"http://b.org/x/{end}" for end in ("", "a", "c", "deeper/a", "deeper/c")
    ]
    plain = feed.replace("BASE", "").replace("DEEPER", 'xml:base="ftp://b.org/"')
    home = "http://example.org/dir/"
    assert {link.target for link in read(plain.encode()).links} == {home, f"{home}a", f"{home}c"}


def test_scripts_and_styles_in_texts_of_feeds_are_not_said():
    content = "&lt;p&gt;said&lt;/p&gt;&lt;script&gt;run()&lt;/script&gt;&lt;style&gt;p{}&lt;/style&gt;"
    found = read(f"<rss><channel><item><description>{content}</description></item></channel></rss>".encode())
    assert found.text == "said"
    entry = {"version": "https://jsonfeed.org/version/1.1", "items": [{"content_html": "<script>run()</script>said"}]}
    assert read(json.dumps(entry).encode(), "application/feed+json").text == "said"


def test_atom_entries_are_links():
    found = read(ATOM.encode(), "application/xml")
    assert found.content_type == "application/atom+xml"
    assert [link.target for link in found.links] == ["http://example.org/home", "http://example.org/dir/e1"]


JSON_FEED = {
    "version": "https://jsonfeed.org/version/1.1", "title": "Zprávy", "language": "cs", "home_page_url": "http://a.org/",
    "items": [
        {"url": "/1", "title": "První", "content_html": "<p>Text <b>jedna</b>", "date_published": "2024-05-06"},
        {"external_url": "http://b.org/", "attachments": [{"url": "http://a.org/1.mp3"}]}, 7,
    ],
}  # fmt: skip


def test_json_feeds_are_read_as_feeds():
    found = read(json.dumps(JSON_FEED).encode(), "application/json")
    assert (found.content_type, found.title, found.declared_language) == ("application/feed+json", "Zprávy", "cs")
    assert [(link.target, link.text) for link in found.links] == [
        ("http://a.org/", "Zprávy"), ("http://example.org/1", "První"), ("http://b.org/", ""),
        ("http://a.org/1.mp3", ""),
    ]  # fmt: skip
    assert [block.text for block in found.blocks[1:]] == ["První", "Text jedna"]
    assert found.published.year == 2024
    assert read(b"[]", "application/feed+json").warnings


SITEMAP = b"""<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc> http://a.org/x?b=1&amp;a=2 </loc><lastmod>2024-05-06</lastmod></url><url><loc>bad</loc></url><url><loc>http://a.org/y</loc></url></urlset>"""


@pytest.mark.parametrize("body", [SITEMAP, gzip.compress(SITEMAP, mtime=0)])
def test_sitemaps_give_entries_with_lastmod(body):
    first, second = sitemap_entries(body)
    assert (first.url, first.lastmod.date().isoformat()) == ("http://a.org/x?a=2&b=1", "2024-05-06")
    assert (second.url, second.lastmod) == ("http://a.org/y", None)
    assert [link.target for link in read(body).links] == [first.url, second.url]


def test_sitemap_indexes_and_text_sitemaps_are_read():
    (entry,) = sitemap_entries(b"<sitemapindex><sitemap><loc>http://a.org/s.xml</loc></sitemap></sitemapindex>")
    assert entry.is_sitemap
    assert [one.url for one in sitemap_entries(b"http://a.org/1\n\nhttp://a.org/2\n")] == [
        "http://a.org/1",
        "http://a.org/2",
    ]
    assert sitemap_entries(b"") == []
    assert sitemap_entries(b"\x1f\x8bbroken") == []


def test_a_packed_bomb_is_cut():
    bomb = gzip.compress(b"<urlset>" + b" " * 200_000_000)
    assert sitemap_entries(bomb) == []


def test_xml_entities_do_not_expand_and_files_stay_closed():
    bomb = b'<!DOCTYPE r [<!ENTITY a "AAAA"><!ENTITY b SYSTEM "file:///etc/passwd">]><r>&a;&b;<x href="y">ok</x></r>'
    found = read(bomb, "application/xml")
    assert "root:" not in found.text
    assert "AAAA" not in found.text
    assert [link.target for link in found.links] == ["http://example.org/dir/y"]


def png(width, height):
    data = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + data + struct.pack(">I", zlib.crc32(b"IHDR" + data))


@pytest.mark.parametrize(
    "body",
    [
        png(640, 480),
        b"GIF89a" + struct.pack("<HH", 640, 480) + b"\x00\x00\x00",
        b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08" + struct.pack(">HH", 480, 640) + b"\x00" * 10,
        b"RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00"
        + (639).to_bytes(3, "little")
        + (479).to_bytes(3, "little"),
    ],
    ids=["png", "gif", "jpeg", "webp"],
)
def test_pictures_tell_their_size(body):
    assert read(body).description == "640 x 480 pixels"


@pytest.mark.parametrize("start", [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF....WEBPVP8L"])
def test_cut_pictures_warn(start):
    assert read(start).warnings


def test_postscript_tells_its_title():
    assert read(b"%!PS-Adobe-3.0\n%%Title: (A paper)\n%%Pages: 2\n").title == "A paper"


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
DOCX = {
    "[Content_Types].xml": "<Types/>",
    "word/document.xml": f'<w:document {W}><w:body><w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
    "<w:r><w:t>Head</w:t></w:r></w:p><w:p><w:r><w:t>Some </w:t></w:r>"
    '<w:hyperlink r:id="r1"><w:r><w:t>link</w:t></w:r></w:hyperlink></w:p></w:body></w:document>',
    "word/_rels/document.xml.rels": '<Relationships><Relationship Id="r1" Target="http://a.org/x" '
    'TargetMode="External"/></Relationships>',
    "docProps/core.xml": '<cp:core xmlns:cp="c" xmlns:dc="d"><dc:title>The title</dc:title></cp:core>',
}


def test_word_documents_are_read_apart():
    found = read(zipped(DOCX), "application/octet-stream")
    assert (found.content_type, found.title) == (WORD, "The title")
    assert [(str(block.kind), block.text) for block in found.blocks[1:]] == [("h1", "Head"), ("paragraph", "Some link")]
    assert [(link.target, link.text) for link in found.links] == [("http://a.org/x", "link")]


def test_word_documents_of_another_maker_are_read():
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_heading("Nadpis", 2)
    document.add_paragraph("Odstavec")
    document.add_paragraph("bod", style="List Bullet")
    document.add_table(1, 1).cell(0, 0).text = "cell"
    buffer = io.BytesIO()
    document.save(buffer)
    found = read(buffer.getvalue(), apart=False)
    assert [
        (str(block.kind), block.text)
        for block in found.blocks
        if block.kind not in (BlockKind.TITLE, BlockKind.DESCRIPTION)
    ] == [("h2", "Nadpis"), ("paragraph", "Odstavec"), ("item", "bod"), ("cell", "cell")]


def odt(text):
    names = 'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return zipped({"mimetype": ODT, "content.xml": f"<doc {names}>{text}</doc>"})


def test_open_documents_are_read():
    body = odt(
        '<text:h text:outline-level="2">Head</text:h><text:p>a<text:s/>b <text:a xlink:href="http://a.org/">link</text:a></text:p>'
    )
    found = read(body, ODT, apart=False)
    assert [(str(block.kind), block.text) for block in found.blocks] == [("h2", "Head"), ("paragraph", "a b link")]
    assert found.links[0].target == "http://a.org/"


def test_a_zip_bomb_is_refused_before_unpacking():
    body = zipped({"mimetype": ODT, "content.xml": b"<a>" + b" " * 100_000_000})
    found = read(body, ODT, apart=False)
    assert found.blocks == ()
    assert "unpacks to" in found.warnings[0]


def test_rtf_is_read_without_a_library():
    found = read(b"{\\rtf1\\ansi Hello \\b bold\\b0 .\\par Second http://a.org/x}", apart=False)
    assert [block.text for block in found.blocks] == ["Hello bold.", "Second http://a.org/x"]
    assert found.links[0].target == "http://a.org/x"


CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
DOCUMENTS = {
    "xlsx/whole.xlsx": (
        ("Ceník", "2024-05-06", "cs"),
        [("h2", "Ceny"), ("cell", "Zboží | Cena"), ("cell", "mléko | 2024-05-06 | 0.3 | TRUE")],
        [("http://a.test/milk", "mléko")],
    ),
    "pptx/whole.pptx": (
        ("Přednáška", "2024-05-06", "cs"),
        [("h2", "Snímek"), ("paragraph", "odkaz dál"), ("cell", "a | b"), ("paragraph", "poznámka")],
        [("http://a.test/deck", "odkaz")],
    ),
    "ods/whole.ods": (("Ceny", None, ""), [("h2", "Ceny"), ("cell", "mléko 1 l | 25 Kč")], []),
    "odp/whole.odp": (("Snímek", None, ""), [("h2", "Snímek"), ("item", "bod odkaz")], [("http://a.test/o", "odkaz")]),
    "epub/whole.epub": (
        ("Kniha", "2020-03-04", "cs"),
        [("h1", "Kapitola"), ("paragraph", "Bylo jednou, dál.")],
        [("http://a.test/kniha", "jednou")],
    ),
    "eml/whole.eml": (
        ("Předmět", "2024-05-06", ""),
        [("paragraph", "Dobrý den, odkaz r"), ("item", "smlouva.pdf")],
        [("https://example.org/m", "odkaz")],
    ),
    "mbox/whole.mbox": (
        ("Předmět", "2024-05-06", ""),
        [
            ("h2", "Předmět"),
            ("paragraph", "From: Jan Novák <jan@example.org>; To: b@example.org"),
            ("paragraph", "Dobrý den, odkaz r"),
            ("item", "smlouva.pdf"),
            ("h2", "second"),
            ("paragraph", "From here on text"),
        ],
        [("https://example.org/m", "odkaz")],
    ),
    "rtf/czech.rtf": (
        ("Závěrečná zpráva", "2020-05-06", ""),
        [
            ("h1", "Nadpis číslo"),
            ("paragraph", "Příliš žluťoučký tučný. Привет"),
            ("paragraph", "odkaz konec"),
            ("cell", "a | b"),
            ("item", "bod"),
        ],
        [("https://example.org/r", "odkaz")],
    ),
}
HEAD = (BlockKind.TITLE, BlockKind.DESCRIPTION, BlockKind.KEYWORDS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_give_title_date_text_and_links(name):
    (title, day, language), blocks, links = DOCUMENTS[name]
    body = (CORPUS / name).read_bytes()
    found = read(body, apart=False)
    assert (found.title, found.declared_language, found.warnings) == (title, language, ())
    assert (found.published.date().isoformat() if found.published else None) == day
    assert [(str(block.kind), block.text) for block in found.blocks if block.kind not in HEAD] == blocks
    assert [(link.target, link.text) for link in found.links] == links
    brief = read(body, apart=False, mode="basic")
    assert (brief.title, brief.links) == (title, found.links)
    assert all(block.kind in HEAD for block in brief.blocks)


@pytest.mark.parametrize(
    ("body", "claimed", "expected"),
    [
        (b"From a@b Mon May  6 10:00:00 2024\nSubject: x\n\n", "text/plain", "application/mbox"),
        (b"Received: x\nFrom: a@b\nDate: y\n\nbody", "", "message/rfc822"),
        (b"From: a\nTo: b\n\nDate: of a letter\nSubject: it", "text/plain", "text/plain"),
        (b"Subject: the word\nis a word", "", "text/plain"),
    ],
)
def test_mail_is_told_from_text(body, claimed, expected):
    assert sniff(body, claimed) == expected


def test_a_saved_page_in_a_message_keeps_its_address():
    part = "Content-Type: text/html\nContent-Location: http://a.org/d/\n\n<p>text <a href=x>l</a>"
    head = "From: a\nDate: b\nMIME-Version: 1.0\nContent-Type: multipart/related; boundary=q\n\n"
    found = read(f"{head}--q\n{part}\n--q\nContent-Type: text/plain\n\nhidden\n--q--".encode(), apart=False)
    assert [link.target for link in found.links] == ["http://a.org/d/x"]
    assert "hidden" not in found.text


def packed_like(name, replaced):
    """The whole document of a format with some parts replaced."""
    with zipfile.ZipFile(CORPUS / name / f"whole.{name}") as archive:
        return zipped({part: archive.read(part) for part in archive.namelist()} | replaced)


ENTITIES = "<!DOCTYPE x [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {chr(98 + at)} '{f'&{chr(97 + at)};' * 20}'>" for at in range(12)
)


def test_hostile_documents_stay_small(monkeypatch):
    sheet = f'{ENTITIES}]><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row>'
    entities = read(packed_like("xlsx", {"xl/worksheets/sheet1.xml": sheet + "<c><v>&m;</v></c>"}), apart=False)
    assert "haha" not in entities.text
    monkeypatch.setattr(xml, "MAX_XML", 10_000)
    items = "".join(f'<item id="i{at}" href="{at}.xhtml"/><itemref idref="i{at}"/>' for at in range(5))
    chapters = {f"O/{at}.xhtml": b"<p>" + b"x " * 2000 for at in range(5)}
    book = read(packed_like("epub", {"O/content.opf": f"<package>{items}</package>", **chapters}), apart=False)
    assert (len(book.blocks), "more than is read" in book.warnings[0]) == (2, True)
    assert read(b"{\\rtf1" + b"{" * 100_000, apart=False).warnings
    nested = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (at, at) for at in range(60))
    assert read(b"From: a\nDate: b\nSubject: deep\n" + nested + b"\ntext", apart=False).title == "deep"


def pdf(text, title=b"A PDF title"):
    """A page with a line, a link over it, and an outline of one entry."""
    stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj /F1 9 Tf 0 -50 Td (small print) Tj ET".encode()
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R /Outlines 7 0 R /Lang (cs-CZ) >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> /Annots [9 0 R] >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Title (%s) /CreationDate (D:20240506070809Z) >>" % title,
        b"<< /Type /Outlines /First 8 0 R /Last 8 0 R /Count 1 >>",
        b"<< /Title (Chapter) /Parent 7 0 R /Dest [3 0 R /Fit] >>",
        b"<< /Type /Annot /Subtype /Link /Rect [70 640 500 660] /A << /S /URI /URI (http://a.org/linked) >> >>",
    ]
    body, offsets = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"xref\n0 10\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return body + table + b"trailer << /Size 10 /Root 1 0 R /Info 6 0 R >>\nstartxref\n%d\n%%%%EOF" % len(body)


def test_pdf_is_read_apart():
    pytest.importorskip("pypdfium2")
    found = read(pdf("Hello from http://a.org/x"), "text/html")
    assert (found.content_type, found.title, found.published.year) == ("application/pdf", "A PDF title", 2024)
    assert [(str(block.kind), block.text) for block in found.blocks[1:]] == [
        ("h1", "Chapter"),
        ("paragraph", "Hello from http://a.org/x small print"),
    ]
    assert [(link.target, link.text) for link in found.links] == [
        ("http://a.org/linked", "small print"),
        ("http://a.org/x", ""),
    ]
    assert found.declared_language == "cs"


@pytest.mark.parametrize("title", [b"", b"Microsoft Word - report.doc", b"thesis.dvi"])
def test_a_pdf_without_a_title_is_called_by_its_largest_line(title):
    pytest.importorskip("pypdfium2")
    assert read(pdf("A large line", title), apart=False).title == "A large line"


def test_a_damaged_pdf_warns():
    assert read(b"%PDF-1.4 broken").warnings


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pypdfium2", None)
    assert "letopis[docs-formats]" in read(pdf("x"), apart=False).warnings[0]


def test_a_hang_is_stopped():
    source = Source(b"<div>" * 200_000, URL, "text/html")
    found = read_in_own_process(source, detect_language=False, seconds=2.0)
    assert "2 s" in found.warnings[0]


def test_what_nobody_reads_keeps_its_type():
    found = read(b"\x00\x01", "video/mp4")
    assert (found.content_type, found.blocks, found.links) == ("video/mp4", (), ())


SAID = "[letopis.formats]\nlines = {module}:found\n"
MADE = """from letopis.extract import Format

def read(source, draft):
    draft.title = f"{{source.body.count(b'x') {fault}}} lines"

found = Format(("application/x-lines",), read)
"""


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Installs a package with a format: in a folder, told by a folder of the name `about`, or zipped."""

    def forget():
        extraction._installed_formats.cache_clear()
        format_for.cache_clear()

    def install(module, about="{}-1.dist-info", fault="", packed=False):
        files = {
            f"{module}.py": MADE.format(fault=fault),
            f"{about.format(module)}/entry_points.txt": SAID.format(module=module),
            f"{about.format(module)}/METADATA": f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n",
        }
        place = tmp_path / ("packages.zip" if packed else "packages")
        if packed:
            place.write_bytes(zipped(files))
        else:
            for name, text in files.items():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_text(text)
        monkeypatch.syspath_prepend(place)
        forget()

    yield install
    monkeypatch.undo()
    forget()


@pytest.mark.parametrize(
    ("module", "about", "packed"),
    [
        ("lines_wheel", "{}-1.dist-info", False),
        ("lines_egg", "{}.egg-info", False),
        ("lines_zipped", "{}-1.dist-info", True),
    ],
)
def test_a_format_comes_in_by_an_entry_point(installed, module, about, packed):
    installed(module, about, packed=packed)
    assert "application/x-lines" in content_types()
    assert read(b"x x", "application/x-lines").title == "2 lines"


def test_a_fault_of_a_format_becomes_a_warning(installed):
    installed("lines_faulty", fault="/ 0")
    assert "ZeroDivisionError" in read(b"x", "application/x-lines").warnings[0]


def test_finders_of_packages_that_lie_in_no_folder_are_asked(installed, monkeypatch):
    class Told(Distribution):
        def read_text(self, filename):
            said = {"METADATA": "Metadata-Version: 2.1\nName: told\nVersion: 1\n", "entry_points.txt": SAID}
            return said.get(filename, "").format(module="lines_kept")

        def locate_file(self, path):
            return path

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            return None

        @staticmethod
        def find_distributions(context=None):
            return [Told()]

    installed("lines_kept", about="{}-1.nothing")
    assert "application/x-lines" not in content_types()
    extraction._installed_formats.cache_clear()
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert "application/x-lines" in content_types()


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([*content_types(), "", "image/x", "text/x"]).filter(lambda name: name != "application/pdf"),
    st.one_of(
        st.binary(max_size=200),
        st.sampled_from([b"PK\x03\x04", b"{\\rtf1 \\'", b"<rss><item>", b"<a", b"\xff\xd8\xff"]),
    ),
)
def test_no_bytes_of_any_type_make_it_fail(content_type, body):
    assert read(body, content_type, apart=False).url == URL
