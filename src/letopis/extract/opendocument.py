"""OpenDocument files: texts (ODT), spreadsheets (ODS) and presentations (ODP), read from the XML inside."""

from __future__ import annotations

from lxml import etree

from letopis.extract.ooxml import CELL_SEPARATOR
from letopis.extract.pages import PageDraft, Source
from letopis.extract.xml import ZipParts, inner_text, local_name, read_properties
from letopis.model import BlockKind, LinkType

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
_CLASS = "{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}class"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_DEEPEST = 100
_BLANKS = ("s", "tab", "line-break")
_NOT_SAID = ("tracked-changes", "annotation", "note-citation", "forms", "event-listeners")


def read_opendocument(source: Source, draft: PageDraft) -> None:
    """Reads an ODT, ODS or ODP file. Raises ValueError for a damaged one."""
    parts = ZipParts(source.body)
    root = parts.xml("content.xml")
    about = parts.xml_or_none("meta.xml")
    read_properties(about, draft, created="creation-date", changed="date", keywords="keyword")
    for element in root.iter(_TEXT + "p", _TEXT + "h", _TABLE + "table-row", _TABLE + "table"):
        if draft.is_full:
            break
        _read_element(element, draft)
    for link in root.iter(_TEXT + "a", _DRAW + "a"):
        draft.link(link.get(_XLINK, "#"), LinkType.A, text=inner_text(link))
    draft.settle_document(source.mode)


def _read_element(element: etree._Element, draft: PageDraft) -> None:
    """Adds a paragraph, a heading, the name of a sheet, or a row with all that stands in it."""
    names = [local_name(above) for above in element.iterancestors()]
    if "table-row" in names or any(name in names for name in _NOT_SAID):
        return
    if element.tag == _TABLE + "table":
        if "spreadsheet" in names:
            draft.block(BlockKind.H2, element.get(_TABLE + "name", ""))
    elif element.tag == _TABLE + "table-row":
        cells = [_cell_text(one) for one in element if local_name(one) == "table-cell"]
        draft.block(BlockKind.CELL, CELL_SEPARATOR.join(cells).strip(CELL_SEPARATOR) if any(cells) else "")
    else:
        draft.block(_kind(element, names), _paragraph_text(element))


def _cell_text(cell: etree._Element) -> str:
    """The text of all paragraphs of a cell; repeats of cells say nothing new."""
    return " ".join(_paragraph_text(one) for one in cell.iter(_TEXT + "p", _TEXT + "h"))


def _paragraph_text(element: etree._Element, depth: int = 0) -> str:
    """Text with the blanks, tabs and line breaks that ODF writes as elements, without paragraphs in notes."""
    parts: list[str] = [element.text or ""]
    for child in element:
        name = local_name(child)
        if name in _BLANKS:
            parts.append(" ")
        elif depth < _DEEPEST and name not in (*_NOT_SAID, "note", "frame", "p", "h"):
            parts.append(_paragraph_text(child, depth + 1))
        parts.append(child.tail or "")
    return "".join(parts)


def _kind(element: etree._Element, around: list[str]) -> BlockKind:
    if element.tag == _TEXT + "h":
        level = element.get(_TEXT + "outline-level", "1")
        return BlockKind("h" + level) if level in tuple("123456") else BlockKind.H6
    frame = next(element.iterancestors(_DRAW + "frame"), None)
    if frame is not None and frame.get(_CLASS) == "title":
        return BlockKind.H2
    return BlockKind.ITEM if "list-item" in around[:2] else BlockKind.PARAGRAPH
