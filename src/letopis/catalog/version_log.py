"""The log of versions in the order of recording, for those who follow it: overviews, indexes, and API clients.

Followers remember the id of the last version they know. They see versions only up to `Database.settled`: beyond it, one
with a lower id may still become visible after one with a higher id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from letopis.catalog.database import Database
from letopis.catalog.schema import TopicTables
from letopis.catalog.versions import Versions
from letopis.model import from_millis
from letopis.tuples import NamedTuple


class RecentVersion(NamedTuple):
    """A version in a list; `id` increases in the order of recording."""

    id: int
    url: str
    title: str
    number: int
    time: datetime
    meaningful: bool | None


class HostPages(NamedTuple):
    """A host, how many of its pages were checked, their versions, the time of the newest, and the last check."""

    name: str
    pages: int
    versions: int
    changed: datetime | None
    checked: datetime


class RecentChanges:
    """The end of the log of observations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def changes(self, limit: int, before: int | None = None) -> list[RecentVersion]:
        """The latest versions of all URLs, newest first; `before` an id goes further back."""
        rows = self._database.all(
            "SELECT v.id, r.url, r.title, v.number, v.time, v.meaningful FROM version v "
            "JOIN resource r ON r.id = v.resource WHERE v.id < ? ORDER BY v.id DESC LIMIT ?",
            (before if before is not None else 2**62, limit),
        )
        return [
            RecentVersion(
                row[0], row[1], row[2] or "", row[3], from_millis(row[4]), None if row[5] is None else bool(row[5])
            )
            for row in rows
        ]

    def hosts(self, limit: int) -> list[HostPages]:
        """Hosts with the most pages."""
        rows = self._database.all(
            "SELECT f.name, f.pages, f.versions, v.time, f.checked FROM (SELECT h.name AS name, count(*) AS pages, "
            "sum(r.versions) AS versions, max(r.newest) AS newest, max(r.checked) AS checked "
            "FROM resource r JOIN host h ON h.id = r.host "
            "WHERE r.checked IS NOT NULL GROUP BY h.name ORDER BY count(*) DESC, h.name LIMIT ?) f "
            "LEFT JOIN version v ON v.id = f.newest ORDER BY f.pages DESC, f.name",
            (limit,),
        )
        return [
            HostPages(name, pages, int(versions), None if time is None else from_millis(time), from_millis(checked))
            for name, pages, versions, time, checked in rows
        ]


_LOGGED_SINCE = (
    "SELECT v.id, v.time, v.status, v.meaningful, v.extra, r.url, c.sha1, c.raw_bytes FROM version v "
    "JOIN resource r ON r.id = v.resource LEFT JOIN content c ON c.id = v.content "
    "WHERE v.id > ? AND v.id <= ? ORDER BY v.id LIMIT ?"
)


class LoggedVersion(NamedTuple):
    """A version without its bytes; the digest is empty if its content is lost."""

    id: int
    time: int
    status: int
    meaningful: int | None
    extra: str | None
    url: str
    sha1: bytes
    raw_bytes: int


_SELECT_SPANS = (
    "SELECT v.id, v.resource, v.number, v.time, n.time, r.url FROM version v "
    "JOIN resource r ON r.id = v.resource "
    "LEFT JOIN version n ON n.resource = v.resource AND n.number = v.number + 1 "
)


class VersionSpan(NamedTuple):
    """A version, valid from `time` until the next one began; `until` is None for the newest."""

    id: int
    resource: int
    number: int
    time: int
    until: int | None
    url: str


_TROUBLED_URLS = "SELECT resource FROM capture WHERE (status >= 300 AND status <> 304) OR outcome = 3"
_PAGES_AT_ONCE = 500
"""Pages in one query."""


class TroubleRow(NamedTuple):
    """One check, of a URL that at least once answered with an error or a redirect, or not at all."""

    url: str
    time: int
    status: int
    outcome: int
    head: int | None
    extra: str | None


class LogMark(NamedTuple):
    """How many versions or checks there are, and the sum of their times: equal marks mean that nothing has changed."""

    rows: int
    times: int


class RecordedVersions:
    """The log of versions in the order of recording. Followers remember the id of the last one they know."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def since(self, after: int, limit: int) -> list[LoggedVersion]:
        """Versions recorded after a known id, in the order of recording."""
        rows = self._database.all(_LOGGED_SINCE, (after, self._database.settled(), limit))
        return [
            LoggedVersion(number, time, status, meaningful, extra, url, bytes(sha1 or b""), size or 0)
            for number, time, status, meaningful, extra, url, sha1, size in rows
        ]

    def has_since(self, after: int) -> bool:
        """Whether a version was recorded after a known id."""
        bounds = (after, self._database.settled())
        return self._database.one("SELECT 1 FROM version WHERE id > ? AND id <= ? LIMIT 1", bounds) is not None

    def count_since(self, after: int) -> int:
        """How many versions were recorded after a known id."""
        return self._database.count(
            "SELECT count(*) FROM version WHERE id > ? AND id <= ?", (after, self._database.settled())
        )

    def spans_since(self, after: int, limit: int) -> list[VersionSpan]:
        """Versions recorded after a known id, in the order of recording."""
        question = _SELECT_SPANS + "WHERE v.id > ? AND v.id <= ? ORDER BY v.id LIMIT ?"
        return [VersionSpan(*row) for row in self._database.all(question, (after, self._database.settled(), limit))]

    def spans_of_page(self, resource: int, number: int = 0) -> list[VersionSpan]:
        """Versions of one URL from a number on."""
        question = _SELECT_SPANS + "WHERE v.resource = ? AND v.number >= ? ORDER BY v.number"
        return [VersionSpan(*row) for row in self._database.all(question, (resource, number))]

    def span_at(self, resource: int, time: int, last: int) -> VersionSpan | None:
        """The version of one URL that was valid at a time, of those up to a known id."""
        question = _SELECT_SPANS + "WHERE v.resource = ? AND v.time <= ? AND v.id <= ? ORDER BY v.number DESC LIMIT 1"
        row = self._database.one(question, (resource, time, last))
        return VersionSpan(*row) if row else None

    def spans_up_to(self, last: int) -> Iterator[VersionSpan]:
        """All versions up to a known id."""
        return (
            VersionSpan(*row)
            for row in self._database.stream(_SELECT_SPANS + "WHERE v.id <= ? ORDER BY v.id", (last,), size=10_000)
        )

    def mark(self, last: int) -> LogMark:
        """The mark of all versions with an id up to `last`."""
        row = self._database.one("SELECT count(*), coalesce(sum(time), 0) FROM version WHERE id <= ?", (last,))
        return LogMark(int(row[0]), int(row[1])) if row else LogMark(0, 0)

    def times(self, last: int) -> Iterator[tuple[int, int]]:
        """Id and time of all versions up to `last`, by id."""
        rows = self._database.stream("SELECT id, time FROM version WHERE id <= ? ORDER BY id", (last,), size=10_000)
        return ((int(row[0]), int(row[1])) for row in rows)

    def last_seen(self, resources: Sequence[int]) -> dict[tuple[int, int], int]:
        """The last check that found a version unchanged, by page and number; none of those that were seen only once."""
        found: dict[tuple[int, int], int] = {}
        for start in range(0, len(resources), _PAGES_AT_ONCE):
            part = resources[start : start + _PAGES_AT_ONCE]
            rows = self._database.all(
                f"SELECT resource, number, max(time) FROM capture WHERE resource IN ({', '.join('?' * len(part))}) "
                "AND number IS NOT NULL AND outcome = 2 AND status < 400 GROUP BY resource, number",
                part,
            )
            found.update(((int(page), int(number)), int(time)) for page, number, time in rows)
        return found

    def check_mark(self) -> LogMark:
        """The mark of all checks without a version."""
        row = self._database.one("SELECT count(*), coalesce(sum(time), 0) FROM capture")
        return LogMark(int(row[0]), int(row[1])) if row else LogMark(0, 0)

    def troubled_rows(self) -> Iterator[TroubleRow]:
        """All checks without a version, of every URL that ever failed or redirected: URL by URL, oldest first."""
        rows = self._database.stream(
            "SELECT r.url, c.time, c.status, c.outcome, c.head, c.extra FROM capture c "
            f"JOIN resource r ON r.id = c.resource WHERE c.resource IN ({_TROUBLED_URLS}) ORDER BY c.resource, c.time"
        )
        return (TroubleRow(*row) for row in rows)

    def pages_since(self, after: int, limit: int) -> list[tuple[int, int]]:
        """Versions recorded after a known id as pairs of their id and that of their page."""
        return [(row.id, row.resource) for row in Versions(self._database).since(after, limit)]


CLIENT_TABLES = (
    "CREATE TABLE IF NOT EXISTS change_client (name TEXT PRIMARY KEY, version BIGINT NOT NULL, seen BIGINT NOT NULL);"
)


class NewVersion(NamedTuple):
    """A version as followers see it; `id` increases in the order of recording."""

    id: int
    url: str
    title: str | None
    number: int
    time: int
    meaningful: int | None
    sha1: bytes
    extra: str | None


class ChangeClients(TopicTables):
    """One cursor per client, moved only by acknowledgement."""

    topic, table, ddl = "clients", "change_client", CLIENT_TABLES

    def cursor(self, name: str) -> int:
        """The id of the last version that a client has acknowledged; 0 for a new one."""
        return self._count("SELECT version FROM change_client WHERE name = ?", (name,))

    def acknowledge(self, name: str, version: int, now: int) -> int:
        """Moves a cursor forward, never back; returns its position."""
        self.ensure()
        with self._database.transaction() as cursor:
            cursor.run(
                "INSERT INTO change_client (name, version, seen) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE "
                "SET version = CASE WHEN excluded.version > change_client.version THEN excluded.version "
                "ELSE change_client.version END, seen = excluded.seen",
                (name, version, now),
            )
        return self.cursor(name)

    def since(self, after: int, limit: int) -> list[NewVersion]:
        """The versions recorded after an id, in the order of recording."""
        rows = self._database.all(
            "SELECT v.id, r.url, r.title, v.number, v.time, v.meaningful, c.sha1, v.extra FROM version v "
            "JOIN resource r ON r.id = v.resource JOIN content c ON c.id = v.content "
            "WHERE v.id > ? AND v.id <= ? ORDER BY v.id LIMIT ?",
            (after, self._database.settled(), limit),
        )
        return [NewVersion(*row) for row in rows]

    def newest(self) -> int:
        """The id of the version recorded last; 0 in an empty archive."""
        return self._database.count("SELECT max(id) FROM version WHERE id <= ?", (self._database.settled(),))
