"""Word (DOCX) and OpenDocument (ODT) texts: the XML inside, read without unpacking more than is needed."""

from __future__ import annotations

from lxml import etree

from letopis.extract.metadata import primary_language, read_date
from letopis.extract.pages import PageDraft, Source
from letopis.extract.xml import inner_text, local_name, parse_xml, unzipped_part
from letopis.model import BlockKind, LinkType

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


def read_docx(source: Source, draft: PageDraft) -> None:
    """Reads a DOCX file. Raises ValueError for a damaged one."""
    root = parse_xml(unzipped_part(source.body, "word/document.xml"))
    if root is None:
        raise ValueError("the document's text is not XML")
    draft.charset = "utf-8"
    _docx_metadata(source.body, draft)
    targets = _docx_targets(source.body)
    for paragraph in root.iter(_W + "p"):
        if source.mode == "full":
            draft.block(_docx_kind(paragraph), _docx_text(paragraph))
        for link in paragraph.iter(_W + "hyperlink"):
            draft.link(targets.get(link.get(_R + "id", ""), "#"), LinkType.A, text=_docx_text(link))


def _docx_metadata(body: bytes, draft: PageDraft) -> None:
    """Title, dates and language; a document may lack them."""
    try:
        root = parse_xml(unzipped_part(body, "docProps/core.xml"))
    except ValueError:
        return
    said = {local_name(child): child.text or "" for child in root} if root is not None else {}
    draft.head(title=said.get("title", ""), description=said.get("description", ""), keywords=said.get("keywords", ""))
    draft.published, draft.modified = read_date(said.get("created", "")), read_date(said.get("modified", ""))
    draft.declared_language = primary_language(said.get("language", ""))


def _docx_targets(body: bytes) -> dict[str, str]:
    try:
        root = parse_xml(unzipped_part(body, "word/_rels/document.xml.rels"))
    except ValueError:
        return {}
    external = [one for one in root if one.get("TargetMode") == "External"] if root is not None else []
    return {one.get("Id", ""): one.get("Target", "") for one in external}


def _docx_text(element: etree._Element) -> str:
    parts: list[str] = []
    for node in element.iter(_W + "t", _W + "tab", _W + "br"):
        parts.append(node.text or "" if node.tag == _W + "t" else " ")
    return "".join(parts)


def _docx_kind(paragraph: etree._Element) -> BlockKind:
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


_ODF = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_XLINK = "{http://www.w3.org/1999/xlink}href"


def read_odt(source: Source, draft: PageDraft) -> None:
    """Reads an ODT file. Raises ValueError for a damaged one."""
    root = parse_xml(unzipped_part(source.body, "content.xml"))
    if root is None:
        raise ValueError("the document's text is not XML")
    draft.charset = "utf-8"
    _odt_metadata(source.body, draft)
    for element in root.iter(_ODF + "p", _ODF + "h"):
        if source.mode == "full":
            draft.block(_odt_kind(element), _odt_text(element))
        for link in element.iter(_ODF + "a"):
            draft.link(link.get(_XLINK, "#"), LinkType.A, text=inner_text(link))


def _odt_text(element: etree._Element) -> str:
    """Text with the blanks, tabs and line breaks that ODF writes as elements."""
    parts: list[str] = [element.text or ""]
    for child in element:
        blank = local_name(child) in ("s", "tab", "line-break")
        parts.append(" " if blank else _odt_text(child))
        parts.append(child.tail or "")
    return "".join(parts)


def _odt_kind(element: etree._Element) -> BlockKind:
    if element.tag == _ODF + "h":
        level = element.get(_ODF + "outline-level", "1")
        return BlockKind("h" + level) if level in "123456" else BlockKind.H6
    above = element.getparent()
    around = local_name(above) if above is not None else ""
    return {"list-item": BlockKind.ITEM, "table-cell": BlockKind.CELL}.get(around, BlockKind.PARAGRAPH)


def _odt_metadata(body: bytes, draft: PageDraft) -> None:
    try:
        root = parse_xml(unzipped_part(body, "meta.xml"))
    except ValueError:
        return
    said = {local_name(one): one.text or "" for one in root.iter()} if root is not None else {}
    draft.head(title=said.get("title", ""), description=said.get("description", ""), keywords=said.get("keyword", ""))
    draft.published, draft.modified = read_date(said.get("creation-date", "")), read_date(said.get("date", ""))
    draft.declared_language = primary_language(said.get("language", ""))
