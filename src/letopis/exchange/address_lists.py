"""Import and export of lists of URLs: OPML, bookmarks of browsers, plain lists; files of sitemaps are only imported.

A list has no captures. Its URLs are watched or crawled. The folders of bookmarks and of OPML become tags.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from html import escape, unescape
from itertools import islice
from pathlib import Path
from xml.sax.saxutils import quoteattr

from letopis.archive import Archive
from letopis.errors import UsageError
from letopis.exchange.selection import ExportSelection
from letopis.exchange.sources import MOST_WATCHES, FileReader, ImportedWatch, read_whole
from letopis.extract.charsets import decode
from letopis.extract.feeds import sitemap_entries
from letopis.extract.xml import local_name, parse_xml
from letopis.lazy import etree

_MOST_LIST = 64 * 1024 * 1024
_MOST_DEPTH = 64
_WEB = ("http://", "https://")
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Comments are in no group: a list of them would be split in every possible way.
_OPML_HEAD = re.compile(rb"(?><\?xml[^>]*+>\s*+)?+(?><!--.*?-->\s*+)*+<opml[\s>]", re.IGNORECASE | re.DOTALL)
_SITEMAP_HEAD = re.compile(rb"(?>(?><\?[^>]*+>|<!--.*?-->)\s*+)*+<(?:\w++:)?(?:urlset|sitemapindex)[\s>]", re.DOTALL)
_BOOKMARKS_TOP = (
    b'<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">\n'
    b"<TITLE>Letopis</TITLE>\n<H1>Letopis</H1>\n<DL><p>\n"
)
_BOOKMARKS_HEAD = b"<!doctype netscape-bookmark-file-1>"
_MARK = re.compile(
    r"<h3\b[^<>]*>(?P<folder>[^<]*)|<a\s(?P<link>[^<>]*)>|(?P<open><dl\b)|(?P<close></dl\b)", re.IGNORECASE
)
_HREF = re.compile(r"""\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)


def opml_watches(file: Path) -> Iterator[ImportedWatch]:
    """The feeds of an OPML file, and the pages of outlines that have no feed; the outline around one is its tag."""
    root = parse_xml(read_whole(file, _MOST_LIST))
    if root is None:
        raise UsageError(f"{file} is not valid OPML; export it again")
    body = next((child for child in root.iterchildren() if local_name(child) == "body"), root)
    yield from islice(_outlines(body, "", 0), MOST_WATCHES)


def _outlines(parent: etree._Element, tag: str, depth: int) -> Iterator[ImportedWatch]:
    for outline in parent.iterchildren():
        named = {str(name).lower(): str(value) for name, value in outline.attrib.items()}
        url = next((named[name].strip() for name in ("xmlurl", "url", "htmlurl") if named.get(name, "").strip()), "")
        if url:
            yield ImportedWatch(url, tag=tag)
        if depth < _MOST_DEPTH:
            inner = tag if url else (named.get("text") or named.get("title") or tag).strip()
            yield from _outlines(outline, inner, depth + 1)


def bookmark_watches(file: Path) -> Iterator[ImportedWatch]:
    """The pages of a file of bookmarks; the innermost folder is their tag."""
    yield from islice(_bookmarks(decode(read_whole(file, _MOST_LIST)).text), MOST_WATCHES)


def _bookmarks(text: str) -> Iterator[ImportedWatch]:
    folders: list[str] = []
    named = ""
    for mark in _MARK.finditer(text):
        if mark["folder"] is not None:
            named = unescape(mark["folder"]).strip()
        elif mark["open"]:
            folders.append(named)
            named = ""
        elif mark["close"]:
            del folders[-1:]
        elif (found := _HREF.search(mark["link"])) is not None:
            url = unescape(next(value for value in found.groups() if value is not None)).strip()
            if url.lower().startswith(_WEB):  # places of the browser itself, scripts and folders are no pages
                yield ImportedWatch(url, tag=folders[-1] if folders else "")


def listed_watches(file: Path) -> Iterator[ImportedWatch]:
    """One URL per line; text after a blank, and lines that begin with #, are comments."""
    lines = decode(read_whole(file, _MOST_LIST)).text.splitlines()
    words = (_address_of(line) for line in lines if line.strip() and not line.lstrip().startswith("#"))
    yield from islice((ImportedWatch(word) for word in words), MOST_WATCHES)


def _address_of(line: str) -> str:
    """Its first word; the whole line if the word is part of a sentence, which no URL begins with."""
    word = line.split(None, 1)[0]
    return word if "." in word or ":" in word else line.strip()


def sitemap_watches(file: Path) -> Iterator[ImportedWatch]:
    """The pages of a sitemap; the sitemaps of an index are watched as sitemaps."""
    for entry in islice(sitemap_entries(read_whole(file, _MOST_LIST)), MOST_WATCHES):
        yield ImportedWatch(entry.url, is_sitemap=entry.is_sitemap)


def _is_list(head: bytes) -> bool:
    """As editors write it, some of them with two bytes per character."""
    text = head.decode("utf-16" if head.startswith(_WIDE) else "latin-1", "replace")
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return first.lower().startswith(_WEB)


LIST_READERS = (
    FileReader("opml", 81, lambda head: bool(_OPML_HEAD.match(head)), read_watches=opml_watches),
    FileReader("bookmarks", 82, lambda head: head.lower().startswith(_BOOKMARKS_HEAD), read_watches=bookmark_watches),
    FileReader("sitemap", 83, lambda head: bool(_SITEMAP_HEAD.match(head)), read_watches=sitemap_watches),
    FileReader("urls", 84, _is_list, read_watches=listed_watches),
)

# Out


def url_list(archive: Archive, selected: ExportSelection, progress: Callable[[int], None]) -> Iterator[bytes]:
    """The URL of every selected page, one per line, in the order in which they were first seen."""
    return (url.encode() + b"\n" for url in _addresses(archive, selected, progress))


def opml_list(archive: Archive, selected: ExportSelection, progress: Callable[[int], None]) -> Iterator[bytes]:
    """The same as OPML 2.0."""
    yield b'<?xml version="1.0" encoding="utf-8"?>\n<opml version="2.0"><head><title>Letopis</title></head><body>\n'
    for url in _addresses(archive, selected, progress):
        yield f'<outline type="link" text={quoteattr(url)} url={quoteattr(url)}/>\n'.encode()
    yield b"</body></opml>\n"


def bookmark_list(archive: Archive, selected: ExportSelection, progress: Callable[[int], None]) -> Iterator[bytes]:
    """The same as a file of bookmarks, which every browser imports."""
    yield _BOOKMARKS_TOP
    for url in _addresses(archive, selected, progress):
        yield f'<DT><A HREF="{escape(url)}">{escape(url)}</A>\n'.encode()
    yield b"</DL><p>\n"


def _addresses(archive: Archive, selected: ExportSelection, progress: Callable[[int], None]) -> Iterable[str]:
    """Pages with a capture in the selected span."""
    in_span = selected.since is not None or selected.until is not None
    for count, row in enumerate(selected.resources(archive), 1):
        progress(count)
        if not in_span or selected.checks(archive, row.url):
            yield row.url
