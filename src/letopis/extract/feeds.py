"""RSS, Atom and JSON feeds, sitemaps and their indexes: lists of addresses with titles and dates."""

from __future__ import annotations

import json
from datetime import datetime
from itertools import islice

from selectolax.lexbor import LexborHTMLParser

from letopis.errors import BadUrl
from letopis.extract.metadata import primary_language, read_date
from letopis.extract.pages import PageDraft, Source
from letopis.extract.xml import gunzipped, inner_text, local_name, parse_xml
from letopis.lazy import etree
from letopis.model import BlockKind, LinkType
from letopis.tuples import NamedTuple
from letopis.urls import join, normalize

_MOST_ENTRIES = 10_000
_TEXT_ELEMENTS = ("description", "summary", "content", "encoded", "subtitle")
_DATE_ELEMENTS = ("pubDate", "published", "updated", "date", "lastBuildDate", "modified")


def read_feed(source: Source, draft: PageDraft) -> None:
    """Reads a feed. Raises ValueError when it is none."""
    root = parse_xml(source.body)
    if root is None:
        raise ValueError("the feed is not XML")
    draft.charset = (root.getroottree().docinfo.encoding or "utf-8").lower()
    channel = next((child for child in root if local_name(child) == "channel"), root)
    draft.declared_language = primary_language(_child_text(channel, ("language",)) or root.get(_XML_LANG, ""))
    draft.head(
        title=_without_markup(_child_text(channel, ("title",))),
        description=_without_markup(_child_text(channel, _TEXT_ELEMENTS)),
    )
    draft.modified = _entry_date(channel)
    draft.base = _base(channel, source)
    home = _entry_url(channel)
    if home:
        draft.link(home, LinkType.A, text=draft.title)
    entries = (one for one in root.iter() if local_name(one) in ("item", "entry"))
    dates = [_read_feed_entry(one, source, draft) for one in islice(entries, _MOST_ENTRIES)]
    draft.published = max(filter(None, dates), default=None)


def _base(element: etree._Element, source: Source) -> str:
    """What addresses in an element are relative to: its xml:base, or that of the feed."""
    return join(source.url, element.base or "") or source.url


_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def _read_feed_entry(entry: etree._Element, source: Source, draft: PageDraft) -> datetime | None:
    """Adds one entry; gives its date."""
    title = _without_markup(_child_text(entry, ("title",)))
    address = _entry_url(entry)
    moment = _entry_date(entry)
    draft.base = _base(entry, source)
    if address:
        draft.link(address, LinkType.A, text=title, rel="entry", title=moment.isoformat() if moment else "")
    for child in entry:
        if local_name(child) in ("enclosure", "content") and (child.get("url") or child.get("src")):
            draft.link(child.get("url") or child.get("src") or "", LinkType.MEDIA)
    if source.mode == "full":
        draft.block(BlockKind.ITEM, title)
        draft.block(BlockKind.PARAGRAPH, _without_markup(_child_text(entry, _TEXT_ELEMENTS)))
    return moment


def read_json_feed(source: Source, draft: PageDraft) -> None:
    """Reads a JSON Feed. Raises ValueError when it is none."""
    decoded = source.decoded()
    draft.charset = decoded.charset
    feed = json.loads(decoded.text)
    if not isinstance(feed, dict):
        raise ValueError("the feed is not a JSON object")
    draft.head(title=_text(feed, "title"), description=_text(feed, "description"))
    draft.declared_language = primary_language(_text(feed, "language"))
    if _text(feed, "home_page_url"):
        draft.link(_text(feed, "home_page_url"), LinkType.A, text=draft.title)
    items = feed.get("items")
    entries = [one for one in items[:_MOST_ENTRIES] if isinstance(one, dict)] if isinstance(items, list) else []
    dates = [_read_json_entry(one, source, draft) for one in entries]
    draft.published = max(filter(None, dates), default=None)


def _read_json_entry(entry: dict[str, object], source: Source, draft: PageDraft) -> datetime | None:
    title, moment = _text(entry, "title"), read_date(_text(entry, "date_published", "date_modified"))
    address = _text(entry, "url", "external_url")
    if address:
        draft.link(address, LinkType.A, text=title, rel="entry", title=moment.isoformat() if moment else "")
    attached = entry.get("attachments")
    for one in attached[:_MOST_ENTRIES] if isinstance(attached, list) else ():
        if isinstance(one, dict) and _text(one, "url"):
            draft.link(_text(one, "url"), LinkType.MEDIA)
    if source.mode == "full":
        draft.block(BlockKind.ITEM, title)
        draft.block(BlockKind.PARAGRAPH, _without_markup(_text(entry, "content_html", "content_text", "summary")))
    return moment


def _text(data: dict[str, object], *names: str) -> str:
    """The first of the values that is a text and says something."""
    return next((value for name in names if isinstance(value := data.get(name), str) and value), "")


def _child_text(element: etree._Element, names: tuple[str, ...]) -> str:
    for child in element:
        if local_name(child) in names:
            text = inner_text(child)
            if text.strip():
                return text
    return ""


def _without_markup(text: str) -> str:
    """Text without the HTML that feeds put into it."""
    if "<" not in text and "&" not in text:
        return text
    tree = LexborHTMLParser(text[:200_000].encode("utf-8", "replace"))
    tree.strip_tags(["script", "style", "template"])
    return tree.body.text(separator=" ") if tree.body is not None else ""


def _entry_url(element: etree._Element) -> str:
    """The address of an entry: RSS writes it as text, Atom as an attribute."""
    for child in element:
        if local_name(child) == "link":
            href = child.get("href")
            if href and child.get("rel", "alternate") == "alternate":
                return href
            if not href and inner_text(child).strip():
                return inner_text(child).strip()
    guids = (one for one in element if local_name(one) == "guid" and one.get("isPermaLink") != "false")
    return next((inner_text(one).strip() for one in guids), "")


def _entry_date(element: etree._Element) -> datetime | None:
    return read_date(_child_text(element, _DATE_ELEMENTS))


MAX_SITEMAP_ENTRIES = 50_000
"""As many as the protocol allows in one file."""


class SitemapEntry(NamedTuple):
    """One address of a sitemap. `is_sitemap` marks the entries of an index."""

    url: str
    lastmod: datetime | None = None
    is_sitemap: bool = False


def sitemap_entries(body: bytes) -> list[SitemapEntry]:
    """The entries of a sitemap or an index, XML or one address a line, gzip or plain; nothing when it is neither."""
    data = gunzipped(body) if body.startswith(b"\x1f\x8b") else body
    root = parse_xml(data) if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") else None
    if root is not None:
        found = (_sitemap_entry(child) for child in root.iterchildren() if local_name(child) in ("url", "sitemap"))
    else:
        lines = data.decode("utf-8", "replace").splitlines()
        found = (_valid_entry(line.strip()) for line in lines)
    return list(islice((entry for entry in found if entry), MAX_SITEMAP_ENTRIES))


def _sitemap_entry(element: etree._Element) -> SitemapEntry | None:
    values = {local_name(child): (child.text or "").strip() for child in element.iterchildren()}
    lastmod = read_date(values.get("lastmod", ""))
    return _valid_entry(values.get("loc", ""), lastmod, is_sitemap=local_name(element) == "sitemap")


def _valid_entry(url: str, lastmod: datetime | None = None, *, is_sitemap: bool = False) -> SitemapEntry | None:
    if not url.startswith("http"):
        return None
    try:
        return SitemapEntry(normalize(url), lastmod, is_sitemap)
    except BadUrl:
        return None


def read_sitemap(source: Source, draft: PageDraft) -> None:
    """Reads a sitemap: a link an entry, its lastmod as the link's title."""
    entries = sitemap_entries(source.body)
    if not entries:
        draft.warn("no sitemap entries were found in it")
    for url, lastmod, is_sitemap in entries:
        kind = LinkType.SITEMAP if is_sitemap else LinkType.A
        draft.link(url, kind, rel="sitemap", title=lastmod.isoformat() if lastmod else "")
    draft.modified = max(filter(None, (entry.lastmod for entry in entries)), default=None)
