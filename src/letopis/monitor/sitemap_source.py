"""Sitemaps as a source of watches: which pages a sitemap, or an index of sitemaps, names now."""

from __future__ import annotations

from letopis.archive import Archive
from letopis.errors import NotFound
from letopis.extract.sitemaps import SitemapEntry, sitemap_entries
from letopis.monitor.checker import Checker, CheckOptions

MOST_SITEMAPS = 100
MOST_PAGES = 50_000
_DEPTH = 3


async def pages_of(archive: Archive, checker: Checker, url: str, options: CheckOptions) -> list[str]:
    """The pages, in order and each once; sitemaps that an index names are looked at too.

    Bounded in number and depth. Empty when the sitemap was never available.
    """
    found: dict[str, None] = {}
    seen, level = {url}, [url]
    for _ in range(_DEPTH):
        entries = [entry for one in level for entry in _entries(archive, one)]
        found.update((entry.url, None) for entry in entries if not entry.is_sitemap)
        inner = dict.fromkeys(entry.url for entry in entries if entry.is_sitemap and entry.url not in seen)
        level = list(inner)[: MOST_SITEMAPS - len(seen)]
        if not level:
            break
        seen.update(level)
        await checker.check(level, options)
    return list(found)[:MOST_PAGES]


def _entries(archive: Archive, url: str) -> list[SitemapEntry]:
    try:
        return sitemap_entries(archive.get(url).body)
    except NotFound:
        return []
