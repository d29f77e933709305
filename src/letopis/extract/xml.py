"""XML of any vocabulary: text of elements as paragraphs, the usual attributes as links."""

from __future__ import annotations

from lxml import etree

from letopis.extract.draft import Draft
from letopis.extract.language import primary
from letopis.extract.source import Source
from letopis.extract.xml_parse import all_text, name_of, parse_xml
from letopis.model import BlockKind, LinkType

_XLINK = "{http://www.w3.org/1999/xlink}href"
_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_LINKS = {"href": LinkType.A, _XLINK: LinkType.A, "src": LinkType.IMG, "url": LinkType.A}


def read(source: Source, draft: Draft) -> None:
    """Reads an XML document as far as it is sound. Raises ValueError when it is none at all."""
    root = parse_xml(source.body)
    if root is None:
        raise ValueError("the document is not XML")
    draft.charset = (root.getroottree().docinfo.encoding or "utf-8").lower()
    draft.declared_language = primary(root.get(_XML_LANG, ""))
    for element in root.iter():
        _element(element, source, draft)


def _element(element: etree._Element, source: Source, draft: Draft) -> None:
    if not draft.title and name_of(element) == "title":
        draft.head(title=all_text(element))
    elif source.mode == "full":
        draft.block(BlockKind.PARAGRAPH, element.text or "")
    if source.mode == "full":
        draft.block(BlockKind.PARAGRAPH, element.tail or "")
    for name, kind in _LINKS.items():
        ref = element.get(name)
        if ref:
            draft.link(ref, kind)
