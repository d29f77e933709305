"""Sitemaps and their indexes, packed or not."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import NamedTuple

from lxml import etree

from letopis.errors import BadUrl
from letopis.extract.dates import read_date
from letopis.extract.draft import Draft
from letopis.extract.source import Source
from letopis.extract.xml_parse import gunzipped, name_of, parse_xml
from letopis.model import LinkType
from letopis.urls import normalize

MOST_ENTRIES = 50_000
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
        found = (_entry(child) for child in root.iterchildren() if name_of(child) in ("url", "sitemap"))
    else:
        lines = data.decode("utf-8", "replace").splitlines()
        found = (_valid(line.strip()) for line in lines)
    return list(islice((entry for entry in found if entry), MOST_ENTRIES))


def _entry(element: etree._Element) -> SitemapEntry | None:
    values = {name_of(child): (child.text or "").strip() for child in element.iterchildren()}
    lastmod = read_date(values.get("lastmod", ""))
    return _valid(values.get("loc", ""), lastmod, is_sitemap=name_of(element) == "sitemap")


def _valid(url: str, lastmod: datetime | None = None, *, is_sitemap: bool = False) -> SitemapEntry | None:
    if not url.startswith("http"):
        return None
    try:
        return SitemapEntry(normalize(url), lastmod, is_sitemap)
    except BadUrl:
        return None


def read(source: Source, draft: Draft) -> None:
    """Reads a sitemap: a link an entry, its lastmod as the link's title."""
    entries = sitemap_entries(source.body)
    if not entries:
        draft.warn("no sitemap entries were found in it")
    for url, lastmod, is_sitemap in entries:
        kind = LinkType.SITEMAP if is_sitemap else LinkType.A
        draft.link(url, kind, rel="sitemap", title=lastmod.isoformat() if lastmod else "")
    draft.modified = max(filter(None, (entry.lastmod for entry in entries)), default=None)
