"""OpenDocument texts (ODT): the XML inside."""

from __future__ import annotations

from lxml import etree

from letopis.extract.dates import read_date
from letopis.extract.draft import Draft
from letopis.extract.language import primary
from letopis.extract.source import Source
from letopis.extract.xml_parse import all_text, name_of, parse_xml, unzipped_part
from letopis.model import BlockKind, LinkType

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_XLINK = "{http://www.w3.org/1999/xlink}href"


def read(source: Source, draft: Draft) -> None:
    """Reads an ODT file. Raises ValueError for a damaged one."""
    root = parse_xml(unzipped_part(source.body, "content.xml"))
    if root is None:
        raise ValueError("the document's text is not XML")
    draft.charset = "utf-8"
    _meta(source.body, draft)
    for element in root.iter(_TEXT + "p", _TEXT + "h"):
        if source.mode == "full":
            draft.block(_kind(element), _spaced(element))
        for link in element.iter(_TEXT + "a"):
            draft.link(link.get(_XLINK, "#"), LinkType.A, text=all_text(link))


def _spaced(element: etree._Element) -> str:
    """Text with the blanks, tabs and line breaks that ODF writes as elements."""
    parts: list[str] = [element.text or ""]
    for child in element:
        blank = name_of(child) in ("s", "tab", "line-break")
        parts.append(" " if blank else _spaced(child))
        parts.append(child.tail or "")
    return "".join(parts)


def _kind(element: etree._Element) -> BlockKind:
    if element.tag == _TEXT + "h":
        level = element.get(_TEXT + "outline-level", "1")
        return BlockKind("h" + level) if level in "123456" else BlockKind.H6
    above = element.getparent()
    around = name_of(above) if above is not None else ""
    return {"list-item": BlockKind.ITEM, "table-cell": BlockKind.CELL}.get(around, BlockKind.PARAGRAPH)


def _meta(body: bytes, draft: Draft) -> None:
    try:
        root = parse_xml(unzipped_part(body, "meta.xml"))
    except ValueError:
        return
    said = {name_of(one): one.text or "" for one in root.iter()} if root is not None else {}
    draft.head(title=said.get("title", ""), description=said.get("description", ""), keywords=said.get("keyword", ""))
    draft.published, draft.modified = read_date(said.get("creation-date", "")), read_date(said.get("date", ""))
    draft.declared_language = primary(said.get("language", ""))
