"""XML with its dangers closed, for all formats written in it, and the reading of any vocabulary."""

from __future__ import annotations

import gzip
import io
import re
import struct
import zipfile
import zlib

from letopis.extract.metadata import primary_language, read_date
from letopis.extract.pages import PageDraft, Source
from letopis.lazy import etree
from letopis.model import BlockKind, LinkType

MAX_XML = 64 * 1024 * 1024
"""Most bytes of XML that are read, after unpacking."""
_ZIP_FAULTS = (
    KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError, OSError, struct.error,
    UnicodeDecodeError,
)  # fmt: skip
"""What the library says of archives that are damaged, encrypted or packed in ways that it does not know."""


def parse_xml(data: bytes) -> etree._Element | None:
    """The root of a document as far as it can be read; no entities, no DTD, no network. None when nothing can be."""
    parser = etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        recover=True,
        remove_pis=True,
        remove_comments=True,
    )
    try:
        return etree.fromstring(data[:MAX_XML].lstrip(), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None


def local_name(element: etree._Element) -> str:
    """The local name of an element."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def inner_text(element: etree._Element) -> str:
    """The text inside an element."""
    return "".join(part for part in element.itertext() if isinstance(part, str))


class ZipParts:
    """The files of a zip archive that a document is made of. Used once; all that is unpacked is bounded together."""

    def __init__(self, archive: bytes) -> None:
        """Raises ValueError for what is no zip archive."""
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(archive))
        except _ZIP_FAULTS as fault:
            raise ValueError(f"the archive is damaged ({fault})") from None
        self._room = MAX_XML

    def data(self, name: str) -> bytes:
        """One file. Raises ValueError when it is absent or too large, before unpacking it."""
        try:
            size = self._archive.getinfo(name).file_size
            if size > self._room:
                raise ValueError(f"{name} unpacks to {size} bytes, more than is read")
            with self._archive.open(name) as part:
                found = part.read(self._room + 1)
        except _ZIP_FAULTS as fault:
            raise ValueError(f"the archive holds no readable {name} ({fault})") from None
        if len(found) > self._room:
            raise ValueError(f"{name} unpacks to more than it says")
        self._room -= len(found)
        return found

    def xml(self, name: str) -> etree._Element:
        """The root of one file. Raises ValueError when it is absent, too large or no XML."""
        root = parse_xml(self.data(name))
        if root is None:
            raise ValueError(f"{name} is not XML")
        return root

    def xml_or_none(self, name: str) -> etree._Element | None:
        """The root of a file that a document may lack."""
        try:
            return self.xml(name)
        except ValueError:
            return None


def read_properties(
    root: etree._Element | None, draft: PageDraft, *, created: str, changed: str, keywords: str
) -> None:
    """Title, dates and language that an office document may state, some of them under names of its format."""
    said: dict[str, str] = {}
    for element in root.iter() if root is not None else ():
        text = (element.text or "").strip()
        if text:
            said.setdefault(local_name(element), text)
    draft.charset = "utf-8"
    draft.head(said.get("title", ""), said.get("description") or said.get("subject", ""), said.get(keywords, ""))
    draft.published, draft.modified = read_date(said.get(created, "")), read_date(said.get(changed, ""))
    draft.declared_language = primary_language(said.get("language", ""))


def gunzipped(data: bytes) -> bytes:
    """Unpacked gzip data, cut at `MAX_XML`; a broken end is left out."""
    kept = bytearray()
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as opened:
        try:
            while len(kept) < MAX_XML:
                part = opened.read(64 * 1024)
                if not part:
                    break
                kept += part
        except (OSError, EOFError, ValueError, zlib.error):
            pass
    return bytes(kept)


_XLINK = "{http://www.w3.org/1999/xlink}href"
_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_LINK_ATTRIBUTES = {"href": LinkType.A, _XLINK: LinkType.A, "src": LinkType.IMG, "url": LinkType.A}


_DATE = re.compile(r"\s*(?:\d{4}-\d\d-\d\d(?:[T ][\d:.,+Z-]{4,20})?|\d{1,2}[./]\s?\d{1,2}[./]\s?\d{4})\s*")
"""What says nothing without the name of its element: a date of the document, or of what it tells."""


def read_xml(source: Source, draft: PageDraft) -> None:
    """Reads an XML document as far as it is sound. Raises ValueError when it is none at all."""
    root = parse_xml(source.body)
    if root is None:
        raise ValueError("the document is not XML")
    draft.charset = (root.getroottree().docinfo.encoding or "utf-8").lower()
    draft.declared_language = primary_language(root.get(_XML_LANG, ""))
    for element in root.iter():
        _read_element(element, source, draft)


def _read_element(element: etree._Element, source: Source, draft: PageDraft) -> None:
    if not draft.title and local_name(element) == "title":
        draft.head(title=inner_text(element))
    elif source.mode == "full":
        text = element.text or ""
        draft.block(BlockKind.PARAGRAPH, f"{local_name(element)}: {text}" if _DATE.fullmatch(text) else text)
    if source.mode == "full":
        draft.block(BlockKind.PARAGRAPH, element.tail or "")
    for name, kind in _LINK_ATTRIBUTES.items():
        ref = element.get(name)
        if ref:
            draft.link(ref, kind)
    if source.mode == "full" and source.content_type != "image/svg+xml":
        for field, value in element.attrib.items():
            if field not in _LINK_ATTRIBUTES and not str(field).startswith("{"):
                draft.block(BlockKind.PARAGRAPH, f"{field!s}: {value!s}")
