"""Versions and the other checks of a URL: written in batches, read as rows or with all that reading bodies needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from letopis.catalog.database import Cursor, Database
from letopis.catalog.schema import OUTCOME_CODES, CaptureRow, ResourceRow, RowReader, VersionRow
from letopis.model import Outcome
from letopis.tuples import NamedTuple
from letopis.urls import surt, url_key

_VERSION = "id, resource, number, time, content, head, status, meaningful, extra"
_CAPTURE = "resource, time, status, outcome, number, head, content, extra"
VERSION_COLUMNS = tuple(_VERSION.split(", "))
CAPTURE_COLUMNS = tuple(_CAPTURE.split(", "))


class Versions:
    """The log of observations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, cursor: Cursor, row: VersionRow) -> int:
        """Appends a version (its id is given out here)."""
        (number,) = cursor.numbers("version", 1)
        cursor.run(f"INSERT INTO version ({_VERSION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (number, *row[1:]))
        return number

    def add_capture(self, cursor: Cursor, row: CaptureRow) -> None:
        """Appends a check that found nothing new."""
        cursor.run(f"INSERT INTO capture ({_CAPTURE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def by_id(self, number: int, reader: RowReader | None = None) -> VersionRow | None:
        """The row of a known id."""
        row = (reader or self._database).one(f"SELECT {_VERSION} FROM version WHERE id = ?", (number,))
        return VersionRow(*row) if row else None

    def number(self, resource: int, number: int, reader: RowReader | None = None) -> VersionRow | None:
        """Version `number` of a URL."""
        row = (reader or self._database).one(
            f"SELECT {_VERSION} FROM version WHERE resource = ? AND number = ?", (resource, number)
        )
        return VersionRow(*row) if row else None

    def at(self, resource: int, count: int, time: int, reader: RowReader | None = None) -> VersionRow | None:
        """The newest of `count` versions with a time <= `time`, found by halving."""
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            row = self.number(resource, middle, reader)
            if row is not None and row.time <= time:
                low = middle + 1
            else:
                high = middle
        return self.number(resource, low - 1, reader) if low else None

    def of(self, resource: int, reader: RowReader | None = None) -> list[VersionRow]:
        """All versions of a URL, oldest first."""
        return self.numbers(resource, 0, 2**62, reader)

    def numbers(self, resource: int, first: int, end: int, reader: RowReader | None = None) -> list[VersionRow]:
        """Versions of a URL from one number to before another, oldest first."""
        rows = (reader or self._database).all(
            f"SELECT {_VERSION} FROM version WHERE resource = ? AND number >= ? AND number < ? ORDER BY number",
            (resource, first, end),
        )
        return [VersionRow(*row) for row in rows]

    def captures(
        self, resource: int, reader: RowReader | None = None, since: int = -(2**62), until: int = 2**62
    ) -> Iterator[CaptureRow]:
        """The checks of a URL in a span of time that found no new version, oldest first, read as they are taken."""
        span = "resource = ? AND time >= ? AND time <= ?"
        question = f"SELECT {_CAPTURE} FROM capture WHERE {span} ORDER BY time LIMIT ?"
        while rows := (reader or self._database).all(question, (resource, since, until, _ROWS_AT_ONCE)):
            found = [CaptureRow(*row) for row in rows]
            yield from found
            if len(found) < _ROWS_AT_ONCE:
                return
            since = found[-1].time + 1

    def extras(self, resource: int, since: int, until: int) -> list[tuple[Any, ...]]:
        """Times and details of the checks of a URL in a span of time, both ends included, as far as they have some."""
        span = "resource = ? AND time >= ? AND time <= ? AND extra IS NOT NULL"
        return self._database.all(
            f"SELECT time, extra FROM version WHERE {span} UNION ALL SELECT time, extra FROM capture WHERE {span}",
            (resource, since, until, resource, since, until),
        )

    def newest_captures(self, resource: int, most: int) -> list[CaptureRow]:
        """The last checks of a URL that found no new version, newest first."""
        question = f"SELECT {_CAPTURE} FROM capture WHERE resource = ? ORDER BY time DESC LIMIT ?"
        return [CaptureRow(*row) for row in self._database.all(question, (resource, most))]

    def count_captures(self, resource: int) -> int:
        """How many checks of a URL found no new version."""
        return int((self._database.one("SELECT count(*) FROM capture WHERE resource = ?", (resource,)) or (0,))[0])

    def capture_at(self, resource: int, time: int) -> CaptureRow | None:
        """The check at exactly this time, if it has no version."""
        row = self._database.one(f"SELECT {_CAPTURE} FROM capture WHERE resource = ? AND time = ?", (resource, time))
        return CaptureRow(*row) if row else None

    def drop_check(self, cursor: Cursor, resource: int, time: int) -> None:
        """Removes the check at exactly this time, with its version; later ones move up.

        A URL without another check then counts as never checked.
        """
        cursor.run("DELETE FROM capture WHERE resource = ? AND time = ?", (resource, time))
        versions = self.of(resource, cursor)
        kept = [row for row in versions if row.time != time]
        if len(kept) < len(versions):
            self._keep(cursor, resource, kept)
        capture = self.last_capture(resource, cursor)
        times = [row.time for row in kept[-1:]] + ([capture.time] if capture else [])
        last = max(times, default=None)
        cursor.run("UPDATE resource SET checked = ? WHERE id = ?", (last, resource))
        if last is None:
            cursor.run("DELETE FROM surt WHERE resource = ?", (resource,))

    def give_head(
        self, cursor: Cursor, resource: int, time: int, head: int, details: Callable[[str | None], str | None]
    ) -> None:
        """Gives the check at exactly this time another head, and the result of `details` for its details."""
        for table in ("version", "capture"):
            where = f"FROM {table} WHERE resource = ? AND time = ?"
            for (extra,) in cursor.all(f"SELECT extra {where}", (resource, time)):
                cursor.run(
                    f"UPDATE {table} SET head = ?, extra = ? WHERE resource = ? AND time = ?",
                    (head, details(extra), resource, time),
                )

    def last_capture(self, resource: int, reader: RowReader | None = None) -> CaptureRow | None:
        """The latest check that found no new version."""
        row = (reader or self._database).one(
            f"SELECT {_CAPTURE} FROM capture WHERE resource = ? ORDER BY time DESC LIMIT 1", (resource,)
        )
        return CaptureRow(*row) if row else None

    def since(self, after: int, limit: int = 1000) -> list[VersionRow]:
        """Versions recorded after a known id, in the order of recording."""
        rows = self._database.all(
            f"SELECT {_VERSION} FROM version WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
            (after, self._database.settled(), limit),
        )
        return [VersionRow(*row) for row in rows]

    def make_room(self, cursor: Cursor, resource: int, number: int) -> None:
        """Raises the numbers from `number` on by one, for a version that arrives late."""
        self.forget_verdict(cursor, resource, number)
        cursor.run("UPDATE version SET number = number + 1 WHERE resource = ? AND number >= ?", (resource, number))
        cursor.run("UPDATE capture SET number = number + 1 WHERE resource = ? AND number >= ?", (resource, number))

    def seen_again(self, cursor: Cursor, row: VersionRow, after: int) -> CaptureRow | None:
        """The first check after a time that found this version unchanged."""
        found = cursor.one(
            f"SELECT {_CAPTURE} FROM capture WHERE resource = ? AND number = ? AND time > ? AND outcome = ? "
            "AND status IN (304, ?) AND content IS NULL ORDER BY time LIMIT 1",
            (row.resource, row.number, after, OUTCOME_CODES[Outcome.UNCHANGED], row.status),
        )
        return CaptureRow(*found) if found else None

    def follow(self, cursor: Cursor, row: VersionRow, before: int) -> None:
        """Checks that named version `before` and are after this one now name this one."""
        cursor.run(
            "UPDATE capture SET number = ? WHERE resource = ? AND number = ? AND time > ?",
            (row.number, row.resource, before, row.time),
        )

    def drop_capture(self, cursor: Cursor, row: CaptureRow) -> None:
        """Removes a check that found nothing new."""
        cursor.run("DELETE FROM capture WHERE resource = ? AND time = ?", (row.resource, row.time))

    def set_verdict(self, cursor: Cursor, version: int, meaningful: bool | None, extra: str | None) -> None:
        """Stores whether a version is a meaningful change, and the details that say why."""
        verdict = None if meaningful is None else int(meaningful)
        cursor.run("UPDATE version SET meaningful = ?, extra = ? WHERE id = ?", (verdict, extra, version))

    def forget_verdict(self, cursor: Cursor, resource: int, number: int) -> None:
        """Removes the verdict of a version that has another neighbour now."""
        cursor.run("UPDATE version SET meaningful = NULL WHERE resource = ? AND number = ?", (resource, number))

    def begin_earlier(self, cursor: Cursor, row: VersionRow) -> None:
        """A late arrival equals this version: the version began earlier, with the answer of that time."""
        cursor.run(
            "UPDATE version SET time = ?, head = ?, status = ?, extra = ? WHERE id = ?",
            (row.time, row.head, row.status, row.extra, row.id),
        )

    def set_content(self, cursor: Cursor, version: int, content: int) -> None:
        """Corrects a reference that damage has changed."""
        cursor.run("UPDATE version SET content = ? WHERE id = ?", (content, version))

    def taken(self, cursor: Cursor, resource: int, time: int) -> bool:
        """Whether a check of the URL already has exactly this millisecond."""
        capture = cursor.one("SELECT 1 FROM capture WHERE resource = ? AND time = ?", (resource, time))
        version = cursor.one("SELECT 1 FROM version WHERE resource = ? AND time = ?", (resource, time))
        return capture is not None or version is not None

    def has_check(self, resource: int, count: int, time: int) -> bool:
        """Whether the URL has a version or another check at exactly this time."""
        version = self.at(resource, count, time)
        if version is not None and version.time == time:
            return True
        return self._database.one("SELECT 1 FROM capture WHERE resource = ? AND time = ?", (resource, time)) is not None

    def drop(self, cursor: Cursor, resource: int, keep: Iterable[int]) -> int:
        """Removes versions that are not in `keep` (ids) and renumbers the rest."""
        kept = set(keep)
        rows = self.of(resource, cursor)
        for row in rows:
            if row.id not in kept:
                cursor.remove("version", "id = ?", (row.id,))
                self.forget_verdict(cursor, resource, row.number + 1)
        renumbered = {row.number: new for new, row in enumerate(row for row in rows if row.id in kept)}
        self._renumber(cursor, resource, renumbered)
        return len(rows) - len(renumbered)

    def named(self, content: int) -> list[str]:
        """The displayed names of the versions of a content."""
        rows = self._database.all(
            "SELECT version.number, resource.url FROM version "
            "JOIN resource ON resource.id = version.resource WHERE version.content = ?",
            (content,),
        )
        return [f"version {number} of {url}" for number, url in rows]

    def owners(self, content: int) -> list[tuple[str, int]]:
        """URL and time of the versions of a content."""
        rows = self._database.all(
            "SELECT resource.url, version.time FROM version "
            "JOIN resource ON resource.id = version.resource WHERE version.content = ?",
            (content,),
        )
        return [(str(url), int(time)) for url, time in rows]

    def lose(self, cursor: Cursor, content: int) -> None:
        """Removes a content whose bytes are gone with all its versions; later ones move up."""
        rows = cursor.all("SELECT id, resource FROM version WHERE content = ?", (content,))
        for resource in {row[1] for row in rows}:
            gone = {row[0] for row in rows if row[1] == resource}
            self._keep(cursor, resource, [row for row in self.of(resource, cursor) if row.id not in gone])
        cursor.run("UPDATE capture SET content = NULL WHERE content = ?", (content,))
        cursor.run("DELETE FROM content WHERE id = ?", (content,))

    def _keep(self, cursor: Cursor, resource: int, kept: Sequence[VersionRow]) -> None:
        """Removes all other versions of a URL."""
        self.drop(cursor, resource, [row.id for row in kept])
        newest = kept[-1].id if kept else None
        cursor.run("UPDATE resource SET versions = ?, newest = ? WHERE id = ?", (len(kept), newest, resource))

    def _renumber(self, cursor: Cursor, resource: int, numbers: dict[int, int]) -> None:
        for old, new in sorted(numbers.items()):
            cursor.run("UPDATE version SET number = ? WHERE resource = ? AND number = ?", (new, resource, old))
        for capture in self.captures(resource, cursor):
            if capture.number is not None:
                moved = numbers.get(capture.number)
                cursor.run(
                    "UPDATE capture SET number = ? WHERE resource = ? AND time = ?", (moved, resource, capture.time)
                )

    def all(self) -> Iterator[VersionRow]:
        """Every version in the order of recording."""
        return (VersionRow(*row) for row in self._database.stream(f"SELECT {_VERSION} FROM version ORDER BY id"))


class PendingRows:
    """Versions, other checks and sorted keys of one batch, inside the caller's transaction.

    At most `most` versions are added. Call `write` before reading one of these tables in the same transaction.
    """

    def __init__(self, cursor: Cursor, most: int) -> None:
        self._cursor = cursor
        self._most = most
        self._numbers: Iterator[int] | None = None
        self._versions: list[VersionRow] = []
        self._captures: list[CaptureRow] = []
        self._listed: list[tuple[str, int]] = []

    def version(self, row: VersionRow) -> VersionRow:
        """Appends a version; returns the row with its new id."""
        if self._numbers is None:
            self._numbers = iter(self._cursor.numbers("version", self._most))
        row = VersionRow(next(self._numbers), *row[1:])
        self._versions.append(row)
        return row

    def capture(self, row: CaptureRow) -> None:
        """Appends a check that found nothing new."""
        self._captures.append(row)

    def listed(self, row: ResourceRow) -> None:
        """Makes a URL findable by its sorted key, at its first capture."""
        self._listed.append((surt(row.url), row.id))

    def write(self) -> None:
        """Writes everything collected so far."""
        if self._versions:
            self._cursor.bulk("version", VERSION_COLUMNS, self._versions)
        if self._captures:
            self._cursor.bulk("capture", CAPTURE_COLUMNS, self._captures)
        if self._listed:
            self._cursor.run_many(
                "INSERT INTO surt (name, resource) VALUES (?, ?) ON CONFLICT DO NOTHING", self._listed, _LISTED
            )
        self._versions, self._captures, self._listed = [], [], []


_SELECT_STORED = (
    "SELECT r.url, v.resource, v.number, v.time, h.data, r.versions, "
    "c.id, c.identity, c.sha1, c.raw_bytes, c.stored_bytes, c.method, c.pack, c.place, c.slot, v.extra "
)
_NEWEST = _SELECT_STORED + (
    "FROM resource r JOIN version v ON v.id = r.newest AND v.resource = r.id JOIN content c ON c.id = v.content "
    "LEFT JOIN head h ON h.id = v.head WHERE r.url_key = ? AND r.url = ?"
)
_NUMBERED = _SELECT_STORED + (
    "FROM resource r JOIN version v ON v.resource = r.id AND v.number = ? JOIN content c ON c.id = v.content "
    "LEFT JOIN head h ON h.id = v.head WHERE r.url_key = ? AND r.url = ?"
)
_NUMBERS = _SELECT_STORED + (
    "FROM resource r JOIN version v ON v.resource = r.id AND v.number >= ? AND v.number < ? "
    "JOIN content c ON c.id = v.content "
    "LEFT JOIN head h ON h.id = v.head WHERE r.url_key = ? AND r.url = ? ORDER BY v.number"
)
_BY_ID = _SELECT_STORED + (
    "FROM version v JOIN resource r ON r.id = v.resource JOIN content c ON c.id = v.content "
    "LEFT JOIN head h ON h.id = v.head WHERE v.id = ?"
)

_NEWEST_OF_URLS = (
    # The last check may have brought newer validators with the same content; its time is the resource's. One that
    # found another content and did not take it (too large, left out by a filter) says nothing of the version.
    "SELECT r.url, v.id, v.resource, v.number, v.extra, c.sha1, c.raw_bytes, h.data "
    "FROM resource r JOIN version v ON v.id = r.newest JOIN content c ON c.id = v.content "
    "LEFT JOIN capture p ON p.resource = r.id AND p.time = r.checked AND p.status = 200 "
    f"AND p.outcome = {OUTCOME_CODES[Outcome.UNCHANGED]} "
    "JOIN head h ON h.id = coalesce(p.head, v.head) WHERE r.url_key IN ({marks})"
)
_STATES = (
    "SELECT r.url, r.id, r.host, r.versions, r.newest, r.checked, v.id, v.resource, v.number, v.time, v.content, "
    "v.head, v.status, v.meaningful, v.extra, c.sha1, c.identity FROM resource r "
    "LEFT JOIN version v ON v.id = r.newest LEFT JOIN content c ON c.id = v.content WHERE r.url_key IN ({marks})"
)
_LAST_CHECKS = "SELECT url, id, checked, newest FROM resource WHERE url_key IN ({marks})"
_LISTED = ("text", "bigint")
_ROWS_AT_ONCE = 1000
URLS_AT_ONCE = 250
"""Names that one statement may contain."""


class StoredVersion(NamedTuple):
    """One version joined with its URL, its content and its packed header record."""

    url: str
    resource: int
    number: int
    time: int
    head: bytes | None
    versions: int
    content: int
    identity: int
    sha1: bytes
    raw_bytes: int
    stored_bytes: int
    method: str
    pack: int
    place: int
    slot: int
    extra: str | None


class NewestVersion(NamedTuple):
    """The newest version as the next check needs it; `head` is the packed header of the last full answer."""

    url: str
    version: int
    resource: int
    number: int
    extra: str | None
    sha1: bytes
    raw_bytes: int
    head: bytes


class ResourceState(NamedTuple):
    """A URL before something is recorded for it: its row, its newest version, and that one's digests."""

    row: ResourceRow
    newest: VersionRow | None
    sha1: bytes
    identity: int


class LastCheck(NamedTuple):
    """A URL, its id, the time of its last check (None: only planned), and the id of its newest version."""

    url: str
    resource: int
    time: int | None
    newest: int | None


def newest_versions(reader: RowReader, urls: Sequence[str]) -> dict[str, NewestVersion]:
    """What is known of those of many URLs that have a version."""
    new = tuple.__new__  # here and below in half the time of the classes: this runs for every check
    return {row[0]: new(NewestVersion, row) for row in _rows_of_urls(reader, _NEWEST_OF_URLS, urls)}


def resource_states(reader: RowReader, urls: Sequence[str]) -> dict[str, ResourceState]:
    """Those of many URLs that the catalogue knows, ready for recording."""
    return {row[0]: _resource_state(row) for row in _rows_of_urls(reader, _STATES, urls)}


def _resource_state(row: tuple[Any, ...]) -> ResourceState:
    resource = ResourceRow(row[1], row[0], *row[2:6])
    if row[6] is None:
        return ResourceState(resource, None, b"", 0)
    return ResourceState(resource, tuple.__new__(VersionRow, row[6:15]), bytes(row[15] or b""), row[16] or 0)


def last_checks(reader: RowReader, urls: Sequence[str]) -> dict[str, LastCheck]:
    """Those of many URLs that the catalogue knows."""
    return {row[0]: LastCheck(*row) for row in _rows_of_urls(reader, _LAST_CHECKS, urls)}


class CheckedContent(NamedTuple):
    """A check by its time, and what it found."""

    time: int
    status: int
    sha1: bytes | None


_CHECKED_CONTENTS = (
    "SELECT v.time, v.status, c.sha1 FROM version v JOIN content c ON c.id = v.content "
    "WHERE v.resource = ? AND v.time >= ? AND v.time < ? UNION ALL "
    "SELECT p.time, p.status, coalesce(k.sha1, c.sha1) FROM capture p "
    "LEFT JOIN content k ON k.id = p.content "
    "LEFT JOIN version v ON v.resource = p.resource AND v.number = p.number LEFT JOIN content c ON c.id = v.content "
    "WHERE p.resource = ? AND p.time >= ? AND p.time < ? ORDER BY 1"
)


def checked_contents(reader: RowReader, resource: int, since: int, before: int) -> list[CheckedContent]:
    """The checks of a URL in a span of time, oldest first."""
    span = (resource, since, before)
    return [CheckedContent(*row) for row in reader.all(_CHECKED_CONTENTS, (*span, *span))]


def _rows_of_urls(reader: RowReader, question: str, urls: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Rows whose first column is one of the URLs; two may share a 64-bit key, so the text decides."""
    wanted = set(urls)
    for start in range(0, len(urls), URLS_AT_ONCE):
        keys = [url_key(url) for url in urls[start : start + URLS_AT_ONCE]]
        rows = reader.all(question.format(marks=", ".join("?" * len(keys))), keys)
        yield from (row for row in rows if row[0] in wanted)


def find_newest(reader: RowReader, url: str) -> StoredVersion | None:
    """The newest version; needs no number."""
    return _stored_version(reader.one(_NEWEST, (url_key(url), url)))


def find_numbered(reader: RowReader, url: str, number: int) -> StoredVersion | None:
    """Version `number`."""
    return _stored_version(reader.one(_NUMBERED, (number, url_key(url), url)))


def find_numbers(reader: RowReader, url: str, first: int, end: int) -> list[StoredVersion]:
    """Versions of a URL from one number to before another, oldest first."""
    return [StoredVersion(*row) for row in reader.all(_NUMBERS, (first, end, url_key(url), url))]


def find_by_id(reader: RowReader, number: int) -> StoredVersion | None:
    """The version recorded under an id."""
    return _stored_version(reader.one(_BY_ID, (number,)))


def _stored_version(row: tuple[Any, ...] | None) -> StoredVersion | None:
    # In half the time that the class takes: every read of a version comes through here.
    return tuple.__new__(StoredVersion, row) if row else None
