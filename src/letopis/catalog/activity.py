"""What happened when and where, counted for people who look at an archive rather than at one page."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from letopis.catalog.database import Database
from letopis.model import from_millis

DAY = 86_400_000
"""Milliseconds."""
_TAIL = 200_000
"""Versions, counted from the newest, that activity looks back over: bounded work on any archive."""
_PAGE = "r.id, r.url, coalesce(r.title, ''), r.versions, r.checked, coalesce(v.time, 0)"


class DayRow(NamedTuple):
    """A day since 1970 and what it brought: first versions, and later ones."""

    day: int
    new: int
    changed: int


class PageRow(NamedTuple):
    """A page as a list shows it; `changed` is when its newest version came."""

    id: int
    url: str
    title: str
    versions: int
    checked: datetime
    changed: datetime | None


class ChangeRow(NamedTuple):
    """How often a page changed on a day since 1970."""

    url: str
    day: int
    changes: int


class MethodRow(NamedTuple):
    """How many contents a method holds, and what it made of them."""

    method: str
    contents: int
    raw_bytes: int
    stored_bytes: int


class BusyRow(NamedTuple):
    """A host as a crawl sees it. `ready` is when it may be asked again, in milliseconds."""

    name: str
    fetched: int
    failures: int
    crawl_delay: float
    ready: int
    ip: str


class CopyRow(NamedTuple):
    """Addresses whose newest versions are the same bytes."""

    content: int
    copies: int
    raw_bytes: int
    url: str
    title: str


class Activity:
    """Counts and lists; nothing here reads more than a bounded part of the log, or a host's pages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def by_day(self, since: int) -> list[DayRow]:
        """Versions a day since a time, oldest day first; days without any are left out."""
        rows = self._database.all(
            f"SELECT time / {DAY}, sum(CASE WHEN number = 0 THEN 1 ELSE 0 END), "
            "sum(CASE WHEN number > 0 THEN 1 ELSE 0 END) FROM version "
            f"WHERE id > (SELECT coalesce(max(id), 0) - {_TAIL} FROM version) AND time >= ? "
            f"GROUP BY time / {DAY} ORDER BY 1",
            (since,),
        )
        return [DayRow(int(day), int(new), int(changed)) for day, new, changed in rows]

    def title(self, resource: int) -> str:
        """The last known title of a URL."""
        row = self._database.one("SELECT title FROM resource WHERE id = ?", (resource,))
        return str(row[0] or "") if row else ""

    def pages(self, host: str, limit: int, offset: int = 0) -> list[PageRow]:
        """The pages of a host, those that changed last first."""
        rows = self._database.all(
            f"SELECT {_PAGE} FROM resource r JOIN host h ON h.id = r.host LEFT JOIN version v ON v.id = r.newest "
            "WHERE h.name = ? AND r.checked IS NOT NULL ORDER BY coalesce(v.time, 0) DESC, r.id LIMIT ? OFFSET ?",
            (host, limit, offset),
        )
        return [_page(row) for row in rows]

    def count_pages(self, host: str) -> int:
        """How many pages of a host have been looked at."""
        row = self._database.one(
            "SELECT count(*) FROM resource r JOIN host h ON h.id = r.host WHERE h.name = ? AND r.checked IS NOT NULL",
            (host,),
        )
        return int(row[0]) if row else 0

    def changes(self, host: str, since: int, until: int) -> list[ChangeRow]:
        """Changes of a host's pages by day, first versions aside."""
        rows = self._database.all(
            f"SELECT r.url, v.time / {DAY}, count(*) FROM resource r JOIN host h ON h.id = r.host "
            "JOIN version v ON v.resource = r.id "
            "WHERE h.name = ? AND v.number > 0 AND v.time >= ? AND v.time <= ? AND coalesce(v.meaningful, 1) = 1 "
            f"GROUP BY r.url, v.time / {DAY} ORDER BY r.url, 2",
            (host, since, until),
        )
        return [ChangeRow(str(url), int(day), int(count)) for url, day, count in rows]

    def methods(self) -> list[MethodRow]:
        """Contents by the method that holds them."""
        rows = self._database.all(
            "SELECT method, count(*), sum(raw_bytes), sum(stored_bytes) FROM content GROUP BY method ORDER BY 2 DESC"
        )
        return [MethodRow(str(row[0]), int(row[1]), int(row[2]), int(row[3])) for row in rows]

    def busy_hosts(self, limit: int) -> list[BusyRow]:
        """Hosts by how often a crawl asked them."""
        rows = self._database.all(
            "SELECT name, fetched, failures, crawl_delay, ready, ip FROM host WHERE fetched > 0 "
            "ORDER BY fetched DESC, name LIMIT ?",
            (limit,),
        )
        return [BusyRow(*row) for row in rows]

    def fetched(self) -> int:
        """How many fetches crawls have made."""
        row = self._database.one("SELECT coalesce(sum(fetched), 0) FROM host")
        return int(row[0]) if row else 0

    def last_version(self) -> int:
        """The id of the version that was recorded last; rises by one with each."""
        row = self._database.one("SELECT coalesce(max(id), 0) FROM version")
        return int(row[0]) if row else 0

    def copies(self, limit: int, offset: int = 0) -> list[CopyRow]:
        """Contents that are the newest version of several addresses, the most frequent first."""
        rows = self._database.all(
            "SELECT g.content, g.copies, c.raw_bytes, r.url, coalesce(r.title, '') FROM "
            "(SELECT v.content AS content, count(*) AS copies, min(r.id) AS first FROM resource r "
            "JOIN version v ON v.id = r.newest GROUP BY v.content HAVING count(*) > 1) g "
            "JOIN content c ON c.id = g.content JOIN resource r ON r.id = g.first "
            "ORDER BY g.copies DESC, g.content LIMIT ? OFFSET ?",
            (limit, offset),
        )
        return [CopyRow(*row) for row in rows]

    def holders(self, content: int, limit: int) -> list[str]:
        """Addresses whose newest version is a content."""
        rows = self._database.all(
            "SELECT r.url FROM version v JOIN resource r ON r.newest = v.id WHERE v.content = ? ORDER BY r.id LIMIT ?",
            (content, limit),
        )
        return [str(row[0]) for row in rows]


def _page(row: tuple[int, str, str, int, int, int]) -> PageRow:
    number, url, title, versions, checked, changed = row
    return PageRow(number, url, title, versions, from_millis(checked), from_millis(changed) if changed else None)
