"""EPUB books: the chapters in their order, each an HTML page inside a zip archive."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

from lxml import etree

from letopis.extract.html import read_embedded_html
from letopis.extract.metadata import primary_language, read_date
from letopis.extract.pages import PageDraft, Source
from letopis.extract.xml import ZipParts, local_name

_MOST_CHAPTERS = 5000
_CHAPTER_TYPES = ("application/xhtml+xml", "text/html", "text/x-oeb1-document")
_INSIDE = "http://book.invalid/"
"""Where chapters stand while they are read: what they link to there is inside the book."""


def read_epub(source: Source, draft: PageDraft) -> None:
    """Reads a book: its metadata, then the text and the outward links of its chapters. ValueError for a damaged one."""
    parts = ZipParts(source.body)
    name = _package_name(parts)
    package = parts.xml(name)
    draft.charset = "utf-8"
    _metadata(package, draft)
    for chapter in _chapters(package, name)[:_MOST_CHAPTERS]:
        if draft.is_full:
            break
        try:
            body = parts.data(chapter)
        except ValueError as fault:
            draft.warn(str(fault))
            continue
        read_embedded_html(body, _INSIDE + chapter, draft, _CHAPTER_TYPES[0], inside=_INSIDE)
    draft.settle_document(source.mode)


def _package_name(parts: ZipParts) -> str:
    """The file that lists what the book is made of."""
    container = parts.xml("META-INF/container.xml")
    names = (one.get("full-path", "") for one in container.iter() if local_name(one) == "rootfile")
    return next(filter(None, names), "content.opf")


def _metadata(package: etree._Element, draft: PageDraft) -> None:
    said: dict[str, list[str]] = {}
    for element in package.iter():
        if element.text and element.text.strip():
            said.setdefault(_property(element), []).append(element.text.strip())
    about = said.get("description") or [", ".join(said.get("creator", []))]
    draft.head(said.get("title", [""])[0], about[0], ", ".join(said.get("subject", [])))
    draft.published = read_date(said.get("date", [""])[0])
    draft.modified = read_date(said.get("dcterms:modified", [""])[0])
    draft.declared_language = primary_language(said.get("language", [""])[0])


def _property(element: etree._Element) -> str:
    """What an element of the metadata tells: its name, or what it says that it is."""
    name = local_name(element)
    return element.get("property", "") if name == "meta" else name


def _chapters(package: etree._Element, name: str) -> list[str]:
    """The names of the chapters in the order of reading."""
    folder = posixpath.dirname(name)
    files = {
        one.get("id", ""): posixpath.normpath(posixpath.join(folder, unquote(one.get("href", ""))))
        for one in package.iter()
        if local_name(one) == "item" and one.get("media-type", _CHAPTER_TYPES[0]) in _CHAPTER_TYPES
    }
    order = (one.get("idref", "") for one in package.iter() if local_name(one) == "itemref")
    return [files[one] for one in order if one in files]
