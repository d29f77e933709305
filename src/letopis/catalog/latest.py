"""The latest versions of a page, a host or a set of pages, newest first: what feeds show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from letopis.catalog.captures import KeyRange
from letopis.catalog.database import Database
from letopis.urls import surt, url_key

_SELECT = (
    "SELECT v.id, r.url, coalesce(r.title, ''), v.number, v.time FROM resource r JOIN version v ON v.resource = r.id "
)
_JUDGED = "AND (v.meaningful IS NULL OR v.meaningful != 0) "
_RECENT = 5
"""Versions of each page of a host that are looked at: a feed is about what is new."""


class LatestVersion(NamedTuple):
    """A version as a feed names it."""

    id: int
    url: str
    title: str
    number: int
    time: int


class Latest:
    """Read-only questions; `meaningful` leaves out what nobody would call a change."""

    def __init__(self, database: Database, *, meaningful: bool) -> None:
        self._database = database
        self._also = _JUDGED if meaningful else ""

    def of_page(self, url: str, limit: int) -> list[LatestVersion]:
        """Versions of one page."""
        return self._found("WHERE r.url_key = ? AND r.url = ? ", (url_key(url), url), limit)

    def of_pages(self, urls: Sequence[str], limit: int) -> list[LatestVersion]:
        """Versions of a set of pages."""
        found = [version for url in urls for version in self.of_page(url, limit)]
        return sorted(found, key=lambda version: (version.time, version.id), reverse=True)[:limit]

    def of_host(self, host: str, limit: int) -> list[LatestVersion]:
        """The last few versions of every page of a host."""
        name = surt(f"http://{host}/").partition(")")[0]
        keys = KeyRange(name + ")/", name + "*")
        condition = (
            "WHERE r.id IN (SELECT resource FROM surt WHERE name >= ? AND name < ?) "
            "AND r.host = (SELECT id FROM host WHERE name = ?) AND v.number >= r.versions - ? "
        )
        return self._found(condition, (*keys, host, _RECENT), limit)

    def _found(self, condition: str, values: Sequence[object], limit: int) -> list[LatestVersion]:
        rows = self._database.all(
            f"{_SELECT}{condition}{self._also}ORDER BY v.time DESC, v.id DESC LIMIT ?", (*values, limit)
        )
        return [LatestVersion(*row) for row in rows]
