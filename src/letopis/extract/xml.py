"""XML with its dangers closed, for all formats written in it, and the reading of any vocabulary."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib

from lxml import etree

from letopis.extract.metadata import primary_language
from letopis.extract.pages import PageDraft, Source
from letopis.model import BlockKind, LinkType

MAX_XML = 64 * 1024 * 1024
"""Most bytes of XML that are read, after unpacking."""


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


def unzipped_part(archive: bytes, name: str) -> bytes:
    """One file of a zip archive. Raises ValueError when it is too large or absent, before unpacking it."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            size = opened.getinfo(name).file_size
            if size > MAX_XML:
                raise ValueError(f"{name} unpacks to {size} bytes, more than is read")
            with opened.open(name) as part:
                data = part.read(MAX_XML + 1)
    except (KeyError, zipfile.BadZipFile, NotImplementedError, EOFError) as fault:
        raise ValueError(f"the archive holds no readable {name} ({fault})") from None
    if len(data) > MAX_XML:
        raise ValueError(f"{name} unpacks to more than it says")
    return data


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
        draft.block(BlockKind.PARAGRAPH, element.text or "")
    if source.mode == "full":
        draft.block(BlockKind.PARAGRAPH, element.tail or "")
    for name, kind in _LINK_ATTRIBUTES.items():
        ref = element.get(name)
        if ref:
            draft.link(ref, kind)
