"""What happened when and where: counts and lists by day, page and host, and the latest versions that feeds show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice, starmap

from letopis.catalog.captures import KeyRange
from letopis.catalog.contents import unpack_headers
from letopis.catalog.database import Database, DatabaseSnapshot
from letopis.catalog.schema import has_table
from letopis.model import Headers, from_millis
from letopis.tuples import NamedTuple
from letopis.urls import surt, url_key

DAY = 86_400_000
"""Milliseconds."""
HOUR = 3_600_000
_RECENT_VERSIONS = 200_000
"""The number of newest versions that activity reads: bounded work on any archive."""
_OF_HOST_ALONE = (
    "FROM surt s CROSS JOIN resource r {more} WHERE s.name >= ? AND s.name < ? AND r.id = s.resource "
    "AND r.host = (SELECT id FROM host WHERE name = ?) AND r.checked IS NOT NULL"
)
"""Pages of a host are found by their sorted keys: no index of pages by host is kept. The join order is fixed."""
_OF_HOST = _OF_HOST_ALONE.format(more="LEFT JOIN version v ON v.id = r.newest")
_CHECK_TABLES = ("version", "capture")
"""A check that brought a version is in the first table, every other check in the second."""
_ASKED_AT_ONCE = 250
_PAGE_COLUMNS = "r.id, r.url, coalesce(r.title, ''), r.versions, r.checked, coalesce(v.time, 0)"


class DayRow(NamedTuple):
    """A day since 1970 and what it brought: first versions, later ones that are changes, not noise; and its last id."""

    day: int
    new: int
    changed: int
    last: int


class PageRow(NamedTuple):
    """A page in a list; `changed` is the time of its newest version."""

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


class HourRow(NamedTuple):
    """How often a page changed in an hour of the day, UTC."""

    url: str
    hour: int
    changes: int


class GrownDay(NamedTuple):
    """What was recorded on a day, counted in days since 1970."""

    day: int
    contents: int
    raw_bytes: int
    stored_bytes: int


class HostContents(NamedTuple):
    """What the contents of a host take."""

    site: str
    contents: int
    raw_bytes: int
    stored_bytes: int


class MethodRow(NamedTuple):
    """How many contents a method stores, and their sizes."""

    method: str
    contents: int
    raw_bytes: int
    stored_bytes: int


class CopyRow(NamedTuple):
    """URLs whose newest versions are the same bytes."""

    content: int
    copies: int
    raw_bytes: int
    url: str
    title: str


class StoredContents:
    """What the contents take, by method, day, header and host: now, or all of one moment."""

    def __init__(self, reader: Database | DatabaseSnapshot) -> None:
        self._reader = reader

    def methods(self) -> list[MethodRow]:
        """Contents by the method that stores them."""
        rows = self._reader.all(
            "SELECT method, count(*), sum(raw_bytes), sum(stored_bytes) FROM content GROUP BY method ORDER BY 2 DESC"
        )
        return [MethodRow(str(row[0]), int(row[1]), int(row[2]), int(row[3])) for row in rows]

    def growth(self) -> list[GrownDay]:
        """Contents by the day, in UTC, at which each was first seen."""
        rows = self._reader.all(
            f"SELECT t.first / {DAY}, count(*), sum(c.raw_bytes), sum(c.stored_bytes) "
            "FROM (SELECT content, min(time) AS first FROM version GROUP BY content) t "
            "JOIN content c ON c.id = t.content GROUP BY 1 ORDER BY 1"
        )
        return [GrownDay(*map(int, row)) for row in rows]

    def stored_by_header(self) -> Iterator[tuple[Headers, int, int, int]]:
        """Headers with how many contents came first with them, their bytes as fetched and as stored."""
        rows = self._reader.stream(
            "SELECT h.data, t.contents, t.raw, t.stored FROM (SELECT f.head AS head, count(*) AS contents, "
            "sum(c.raw_bytes) AS raw, sum(c.stored_bytes) AS stored "
            "FROM (SELECT content, min(head) AS head FROM version GROUP BY content) f "
            "JOIN content c ON c.id = f.content GROUP BY f.head) t JOIN head h ON h.id = t.head"
        )
        for data, contents, raw, stored in rows:
            yield unpack_headers(bytes(data)), int(contents), int(raw), int(stored)

    def stored_by_host(self, limit: int) -> list[HostContents]:
        """Hosts by what their contents take; a content of several hosts counts for each."""
        rows = self._reader.all(
            "SELECT h.name, count(*), sum(c.raw_bytes), sum(c.stored_bytes) "
            "FROM (SELECT DISTINCT r.host AS host, v.content AS content "
            "FROM version v JOIN resource r ON r.id = v.resource) t "
            "JOIN host h ON h.id = t.host JOIN content c ON c.id = t.content "
            "GROUP BY h.name ORDER BY 4 DESC, 1 LIMIT ?",
            (limit,),
        )
        return [HostContents(str(row[0]), *map(int, row[1:])) for row in rows]


class Activity(StoredContents):
    """Counts and lists; nothing here reads more than a bounded part of the log, or a host's pages."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._database = database

    def by_day(self, since: int) -> list[DayRow]:
        """First versions and changes a day since a time, oldest day first; days without versions are left out."""
        rows = self._database.all(
            f"SELECT time / {DAY}, sum(CASE WHEN number = 0 THEN 1 ELSE 0 END), "
            "sum(CASE WHEN number > 0 AND coalesce(meaningful, 1) = 1 THEN 1 ELSE 0 END), max(id) FROM version "
            f"WHERE id > (SELECT coalesce(max(id), 0) - {_RECENT_VERSIONS} FROM version) AND time >= ? "
            f"GROUP BY time / {DAY} ORDER BY 1",
            (since,),
        )
        return [DayRow(*map(int, row)) for row in rows]

    def title(self, resource: int) -> str:
        """The last known title of a URL."""
        row = self._database.one("SELECT title FROM resource WHERE id = ?", (resource,))
        return str(row[0] or "") if row else ""

    def pages(self, host: str, limit: int, offset: int = 0) -> list[PageRow]:
        """The pages of a host, those that changed last first; for hosts of some thousand pages."""
        rows = self._database.all(
            f"SELECT {_PAGE_COLUMNS} {_OF_HOST} ORDER BY coalesce(v.time, 0) DESC, r.id LIMIT ? OFFSET ?",
            (*_keys_of_host(host), host, limit, offset),
        )
        return [_page_row(row) for row in rows]

    def pages_after(self, host: str, limit: int, after: str = "") -> list[tuple[str, PageRow]]:
        """The pages of a host by URL, each with its sorted key; `after` a key continues: fast on any host."""
        first, last = _keys_of_host(host)
        rows = self._database.all(
            f"SELECT s.name, {_PAGE_COLUMNS} {_OF_HOST} AND s.name > ? ORDER BY s.name LIMIT ?",
            (max(first, after), last, host, after, limit),
        )
        return [(str(row[0]), _page_row(row[1:])) for row in rows]

    def count_pages(self, host: str, most: int = 2**31) -> int:
        """How many pages of a host were checked; counts at most to `most`."""
        return self._database.count(
            f"SELECT count(*) FROM (SELECT 1 {_OF_HOST} LIMIT ?) t", (*_keys_of_host(host), host, most)
        )

    def count_captured(self, host: str | None = None) -> int:
        """How many pages have a version, or those of one host."""
        if host is None:
            return self._count("FROM resource WHERE versions > 0", ())
        return self._count(f"{_OF_HOST} AND r.versions > 0", (*_keys_of_host(host), host))

    def count_checks(self, span: tuple[int, int], host: str = "") -> int:
        """How many checks of all pages, or of those of a host, were in a span of time, its ends included."""
        if not host:
            return sum(self._count(f"FROM {table} WHERE time BETWEEN ? AND ?", span) for table in _CHECK_TABLES)
        pages = [_OF_HOST_ALONE.format(more=f"CROSS JOIN {table} c") for table in _CHECK_TABLES]
        asked = (*_keys_of_host(host), host, *span)
        return sum(self._count(f"{one} AND c.resource = r.id AND c.time BETWEEN ? AND ?", asked) for one in pages)

    def count_checks_of(self, pages: Iterable[int], span: tuple[int, int]) -> int:
        """The same of some pages."""
        waiting, total = iter(pages), 0
        while some := tuple(islice(waiting, _ASKED_AT_ONCE)):
            where = f"WHERE resource IN ({', '.join('?' * len(some))}) AND time BETWEEN ? AND ?"
            total += sum(self._count(f"FROM {table} {where}", (*some, *span)) for table in _CHECK_TABLES)
        return total

    def _count(self, where: str, values: Sequence[str | int]) -> int:
        return self._database.count(f"SELECT count(*) {where}", values)

    def changes(self, host: str, since: int, until: int) -> list[ChangeRow]:
        """Changes of a host's pages by day, first versions aside; for hosts of some thousand pages."""
        return [ChangeRow(*row) for row in self._changes(f"c.time / {DAY}", host, since, until)]

    def version_times(self, host: str, since: int, span: int) -> list[tuple[int, int]]:
        """Versions of a host's pages by the number of the span of milliseconds, oldest first; for hosts of some
        thousand pages.
        """
        rows = self._database.all(
            f"SELECT c.time / {span:d}, count(*) {_OF_HOST_ALONE.format(more='CROSS JOIN version c')} "
            f"AND c.resource = r.id AND c.time >= ? GROUP BY c.time / {span:d} ORDER BY 1",
            (*_keys_of_host(host), host, since),
        )
        return [(int(number), int(count)) for number, count in rows]

    def changes_by_hour(self, host: str, since: int, until: int) -> list[HourRow]:
        """The same by hour of the day."""
        hour = f"(c.time - c.time / {DAY} * {DAY}) / {HOUR}"
        return [HourRow(*row) for row in self._changes(hour, host, since, until)]

    def _changes(self, when: str, host: str, since: int, until: int) -> list[tuple[str, int, int]]:
        rows = self._database.all(
            f"SELECT r.url, {when}, count(*) {_OF_HOST_ALONE.format(more='CROSS JOIN version c')} "
            "AND c.resource = r.id AND c.number > 0 AND c.time >= ? AND c.time <= ? AND coalesce(c.meaningful, 1) = 1 "
            f"GROUP BY r.url, {when} ORDER BY r.url, 2",
            (*_keys_of_host(host), host, since, until),
        )
        return [(str(url), int(number), int(count)) for url, number, count in rows]

    def busy_hosts(self, limit: int, now: int) -> list[tuple[str, int, int, float, str, int, int]]:
        """Hosts by requests of crawls: name, fetches, failures, delay, address, URLs never seen and due."""
        some = "(SELECT count(*) FROM (SELECT 1 FROM resource r WHERE r.host = h.id AND {} LIMIT 1000) t)"
        counted = has_table(self._database, "revisit")
        again = "coalesce((SELECT r.fetches FROM revisit r WHERE r.host = h.id), 0)" if counted else "0"
        # Chosen first, so that only the URLs of those hosts are counted.
        chosen = f"SELECT h.*, fetched + {again} AS fetches FROM host h WHERE fetched > 0 "
        return self._database.all(
            f"SELECT name, fetches, failures, crawl_delay, ip, {some.format('r.state = 1')}, "
            f"{some.format('r.state = 2 AND r.due <= ?')} FROM ({chosen}ORDER BY fetches DESC, name LIMIT ?) h "
            "ORDER BY fetches DESC, name",
            (now, limit),
        )

    def first_visits(self) -> int:
        """How many pages crawls have fetched for the first time."""
        return self._database.count("SELECT coalesce(sum(fetched), 0) FROM host")

    def revisits(self) -> int:
        """How many fetches of crawls were revisits."""
        if not has_table(self._database, "revisit"):
            return 0
        return self._database.count("SELECT coalesce(sum(fetches), 0) FROM revisit")

    def last_version(self) -> int:
        """The id of the version that was recorded last; increases by one with each."""
        return self._database.count("SELECT coalesce(max(id), 0) FROM version")

    def copies(self, limit: int, offset: int = 0) -> list[CopyRow]:
        """Contents that are the newest version of several URLs, the most frequent first."""
        rows = self._database.all(
            "SELECT g.content, g.copies, c.raw_bytes, r.url, coalesce(r.title, '') FROM "
            "(SELECT v.content AS content, count(*) AS copies, min(r.id) AS first FROM resource r "
            "JOIN version v ON v.id = r.newest GROUP BY v.content HAVING count(*) > 1) g "
            "JOIN content c ON c.id = g.content JOIN resource r ON r.id = g.first "
            "ORDER BY g.copies DESC, g.content LIMIT ? OFFSET ?",
            (limit, offset),
        )
        return [CopyRow(*row) for row in rows]

    def holders(self, contents: Sequence[int], each: int) -> dict[int, list[str]]:
        """URLs whose newest version is one of some contents, at most `each` of one; one pass over all."""
        found: dict[int, list[str]] = {content: [] for content in contents}
        if found:
            rows = self._database.stream(
                "SELECT v.content, r.url FROM resource r JOIN version v ON v.id = r.newest "
                f"WHERE v.content IN ({', '.join('?' * len(found))}) ORDER BY r.id",
                tuple(found),
            )
            for content, url in rows:
                if len(found[content]) < each:
                    found[content].append(str(url))
        return found


def _keys_of_host(host: str) -> KeyRange:
    """The sorted keys of a host, and of those that share its keys."""
    name = surt(f"http://{host}/").partition(")")[0]
    return KeyRange(name + ")/", name + "*")


def _page_row(row: tuple[int, str, str, int, int, int]) -> PageRow:
    number, url, title, versions, checked, changed = row
    return PageRow(number, url, title, versions, from_millis(checked), from_millis(changed) if changed else None)


_SELECT_LATEST = (
    "SELECT v.id, r.url, coalesce(r.title, ''), v.number, v.time FROM resource r JOIN version v ON v.resource = r.id "
)
_MEANINGFUL = "AND (v.meaningful IS NULL OR v.meaningful != 0) "
_VERSIONS_PER_PAGE = 5
"""Versions that are read of each page of a host: a feed is about what is new."""


_LAST_RECORDED = 100_000


class LatestVersion(NamedTuple):
    """A version in a feed."""

    id: int
    url: str
    title: str
    number: int
    time: int


class LatestVersions:
    """Read-only queries; `meaningful` leaves out versions that count as noise."""

    def __init__(self, database: Database, *, meaningful: bool) -> None:
        self._database = database
        self._also = _MEANINGFUL if meaningful else ""

    def of_page(self, url: str, limit: int) -> list[LatestVersion]:
        """Versions of one page."""
        return self._found("WHERE r.url_key = ? AND r.url = ? ", (url_key(url), url), limit)

    def of_pages(self, urls: Sequence[str], limit: int) -> list[LatestVersion]:
        """Versions of a set of pages."""
        found = [version for url in urls for version in self.of_page(url, limit)]
        return sorted(found, key=lambda version: (version.time, version.id), reverse=True)[:limit]

    def that_fit(self, fits: Callable[[str], bool], limit: int) -> list[LatestVersion]:
        """Versions of pages whose URLs match, among those that were recorded last: a feed is about what is new."""
        rows = self._database.stream(
            f"{_SELECT_LATEST}WHERE v.id > (SELECT coalesce(max(id), 0) FROM version) - ? {self._also}"
            "ORDER BY v.id DESC",
            (_LAST_RECORDED,),
        )
        return list(islice((version for version in starmap(LatestVersion, rows) if fits(version.url)), limit))

    def of_host(self, host: str, limit: int) -> list[LatestVersion]:
        """The last few versions of every page of a host."""
        condition = (
            "WHERE r.id IN (SELECT resource FROM surt WHERE name >= ? AND name < ?) "
            "AND r.host = (SELECT id FROM host WHERE name = ?) AND v.number >= r.versions - ? "
        )
        return self._found(condition, (*_keys_of_host(host), host, _VERSIONS_PER_PAGE), limit)

    def _found(self, condition: str, values: Sequence[object], limit: int) -> list[LatestVersion]:
        rows = self._database.all(
            f"{_SELECT_LATEST}{condition}{self._also}ORDER BY v.time DESC, v.id DESC LIMIT ?", (*values, limit)
        )
        return [LatestVersion(*row) for row in rows]
