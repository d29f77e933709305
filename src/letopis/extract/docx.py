"""Word documents (DOCX): the XML inside, read without unpacking more than is needed."""

from __future__ import annotations

from lxml import etree

from letopis.extract.dates import read_date
from letopis.extract.draft import Draft
from letopis.extract.language import primary
from letopis.extract.source import Source
from letopis.extract.xml_parse import name_of, parse_xml, unzipped_part
from letopis.model import BlockKind, LinkType

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


def read(source: Source, draft: Draft) -> None:
    """Reads a DOCX file. Raises ValueError for a damaged one."""
    root = parse_xml(unzipped_part(source.body, "word/document.xml"))
    if root is None:
        raise ValueError("the document's text is not XML")
    draft.charset = "utf-8"
    _core(source.body, draft)
    targets = _targets(source.body)
    for paragraph in root.iter(_W + "p"):
        if source.mode == "full":
            draft.block(_kind(paragraph), _text(paragraph))
        for link in paragraph.iter(_W + "hyperlink"):
            draft.link(targets.get(link.get(_R + "id", ""), "#"), LinkType.A, text=_text(link))


def _core(body: bytes, draft: Draft) -> None:
    """Title, dates and language; a document may lack them."""
    try:
        root = parse_xml(unzipped_part(body, "docProps/core.xml"))
    except ValueError:
        return
    said = {name_of(child): child.text or "" for child in root} if root is not None else {}
    draft.head(title=said.get("title", ""), description=said.get("description", ""), keywords=said.get("keywords", ""))
    draft.published, draft.modified = read_date(said.get("created", "")), read_date(said.get("modified", ""))
    draft.declared_language = primary(said.get("language", ""))


def _targets(body: bytes) -> dict[str, str]:
    try:
        root = parse_xml(unzipped_part(body, "word/_rels/document.xml.rels"))
    except ValueError:
        return {}
    external = [one for one in root if one.get("TargetMode") == "External"] if root is not None else []
    return {one.get("Id", ""): one.get("Target", "") for one in external}


def _text(element: etree._Element) -> str:
    parts: list[str] = []
    for node in element.iter(_W + "t", _W + "tab", _W + "br"):
        parts.append(node.text or "" if node.tag == _W + "t" else " ")
    return "".join(parts)


def _kind(paragraph: etree._Element) -> BlockKind:
    style = paragraph.find(f"{_W}pPr/{_W}pStyle")
    name = style.get(_W + "val", "").lower() if style is not None else ""
    if name.startswith("heading") and name[-1:] in "123456":
        return BlockKind("h" + name[-1])
    if name == "title":
        return BlockKind.H1
    if "list" in name or paragraph.find(f"{_W}pPr/{_W}numPr") is not None:
        return BlockKind.ITEM
    above = paragraph.getparent()
    return BlockKind.CELL if above is not None and above.tag == _W + "tc" else BlockKind.PARAGRAPH
