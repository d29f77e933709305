"""RSS and Atom: each entry is a link with its title, its text blocks, its date."""

from __future__ import annotations

from datetime import datetime
from itertools import islice

from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from letopis.extract.dates import read_date
from letopis.extract.draft import Draft
from letopis.extract.language import primary
from letopis.extract.source import Source
from letopis.extract.xml_parse import all_text, name_of, parse_xml
from letopis.model import BlockKind, LinkType

_MOST_ENTRIES = 10_000
_TEXTS = ("description", "summary", "content", "encoded", "subtitle")
_DATES = ("pubDate", "published", "updated", "date", "lastBuildDate", "modified")


def read(source: Source, draft: Draft) -> None:
    """Reads a feed. Raises ValueError when it is none."""
    root = parse_xml(source.body)
    if root is None:
        raise ValueError("the feed is not XML")
    draft.charset = (root.getroottree().docinfo.encoding or "utf-8").lower()
    channel = next((child for child in root if name_of(child) == "channel"), root)
    draft.declared_language = primary(_child_text(channel, ("language",)) or root.get(_XML_LANG, ""))
    draft.head(title=_plain(_child_text(channel, ("title",))), description=_plain(_child_text(channel, _TEXTS)))
    draft.modified = _date(channel)
    home = _address(channel)
    if home:
        draft.link(home, LinkType.A, text=draft.title)
    entries = (one for one in root.iter() if name_of(one) in ("item", "entry"))
    dates = [_entry(one, source, draft) for one in islice(entries, _MOST_ENTRIES)]
    draft.published = max(filter(None, dates), default=None)


_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def _entry(entry: etree._Element, source: Source, draft: Draft) -> datetime | None:
    """Adds one entry; gives its date."""
    title = _plain(_child_text(entry, ("title",)))
    address = _address(entry)
    moment = _date(entry)
    if address:
        draft.link(address, LinkType.A, text=title, rel="entry", title=moment.isoformat() if moment else "")
    for child in entry:
        if name_of(child) in ("enclosure", "content") and (child.get("url") or child.get("src")):
            draft.link(child.get("url") or child.get("src") or "", LinkType.MEDIA)
    if source.mode == "full":
        draft.block(BlockKind.ITEM, title)
        draft.block(BlockKind.PARAGRAPH, _plain(_child_text(entry, _TEXTS)))
    return moment


def _child_text(element: etree._Element, names: tuple[str, ...]) -> str:
    for child in element:
        if name_of(child) in names:
            text = all_text(child)
            if text.strip():
                return text
    return ""


def _plain(text: str) -> str:
    """Text without the HTML that feeds put into it."""
    if "<" not in text and "&" not in text:
        return text
    body = LexborHTMLParser(text[:200_000].encode("utf-8", "replace")).body
    return body.text(separator=" ") if body is not None else ""


def _address(element: etree._Element) -> str:
    """The address of an entry: RSS writes it as text, Atom as an attribute."""
    for child in element:
        if name_of(child) == "link":
            href = child.get("href")
            if href and child.get("rel", "alternate") == "alternate":
                return href
            if not href and all_text(child).strip():
                return all_text(child).strip()
    guids = (one for one in element if name_of(one) == "guid" and one.get("isPermaLink") != "false")
    return next((all_text(one).strip() for one in guids), "")


def _date(element: etree._Element) -> datetime | None:
    return read_date(_child_text(element, _DATES))
