"""Captures by sorted key and time: lists of them for CDX, and the timeline of a URL for Memento.

A capture is a check that got an HTTP answer. Lists run to millions, so their rows are plain tuples and memory stays
bounded. A query of a timeline costs a few point reads, also for a URL with a million captures; URLs that share a sorted
key share one timeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from letopis.catalog.database import Database
from letopis.catalog.schema import OUTCOME_CODES, CaptureRow, VersionRow
from letopis.catalog.versions import Versions
from letopis.model import Outcome
from letopis.tuples import NamedTuple

CHUNK = 10_000
"""Rows that are in memory at once."""

VERSION, REPEAT, TOO_LARGE, OTHER = range(4)
"""Kinds of captures: a new version, an earlier one again, over the size limit, or an error or redirect."""

CaptureTuple = tuple[str, str, int, int, int | None, bytes | None, int | None, str | None, int]
"""Key, URL, time, status, head, SHA-1, bytes, extra, kind."""

_FIRST_KEYS, _MOST_KEYS = 64, 4096
_IS_REPEAT = f"p.outcome = {OUTCOME_CODES[Outcome.UNCHANGED]} AND (p.status < 300 OR p.status = 304)"
_IS_TOO_LARGE = f"outcome = {OUTCOME_CODES[Outcome.TOO_LARGE]}"

_SELECT_VERSIONS = (
    f"SELECT s.name, r.url, v.time, v.status, v.head, c.sha1, c.raw_bytes, v.extra, {VERSION} "
    "FROM surt s JOIN resource r ON r.id = s.resource JOIN version v ON v.resource = s.resource "
    "JOIN content c ON c.id = v.content "
)
# A check that found nothing new repeats the version of its time; redirects and errors have another body or none.
_SELECT_OTHERS = (
    "SELECT s.name, r.url, p.time, p.status, "
    "CASE WHEN p.status = 304 THEN v.head ELSE coalesce(p.head, v.head) END, c.sha1, c.raw_bytes, p.extra, "
    f"CASE WHEN {_IS_REPEAT} THEN {REPEAT} WHEN p.{_IS_TOO_LARGE} THEN {TOO_LARGE} ELSE {OTHER} END "
    "FROM surt s JOIN resource r ON r.id = s.resource JOIN capture p ON p.resource = s.resource "
    f"LEFT JOIN version v ON v.resource = p.resource AND v.number = p.number AND {_IS_REPEAT} "
    "LEFT JOIN content c ON c.id = coalesce(p.content, v.content) "
)
_WITHIN_TIMES = "AND {0}.time >= ? AND {0}.time <= ? "
_BY_KEY_AND_TIME = itemgetter(0, 2)
_BY_TIME = itemgetter(2)


class KeyRange(NamedTuple):
    """Keys from `low` on and before `high`."""

    low: str
    high: str

    @classmethod
    def exactly(cls, name: str) -> KeyRange:
        """Exactly one key."""
        return cls(name, name + "\x01")

    @property
    def is_single(self) -> bool:
        """Whether it can contain no other key."""
        return self.high == self.low + "\x01"


class TimeRange(NamedTuple):
    """Times in milliseconds, both ends included."""

    since: int = -(2**62)
    until: int = 2**62


ALL_TIMES = TimeRange()


class Captures:
    """The list of captures; read-only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def batches(self, keys: KeyRange, span: TimeRange = ALL_TIMES) -> Iterator[list[CaptureTuple]]:
        """All captures of a range of keys, in lists of at most some ten thousand.

        Each list covers as many keys as fit; a key with too many captures is read piece by piece.
        """
        if keys.is_single:
            yield from self._single(keys, span)
            return
        names = _FIRST_KEYS
        while (part := self._part(keys, names)) is not None:
            rows = self._whole(part, span)
            if rows is None and names > 1:
                names = max(1, names // 4)
                continue
            yield from self._of_key(part.low, span) if rows is None else [rows] if rows else []
            keys, names = KeyRange(part.high, keys.high), min(names * 4, _MOST_KEYS)

    def _single(self, keys: KeyRange, span: TimeRange) -> Iterator[list[CaptureTuple]]:
        """The captures of one key, mostly in two statements."""
        rows = self._whole(keys, span)
        yield from self._of_key(keys.low, span) if rows is None else [rows] if rows else []

    def blocks(self, keys: KeyRange) -> int:
        """How many URLs the range holds."""
        return self._database.count("SELECT count(*) FROM surt WHERE name >= ? AND name < ?", keys)

    def block(self, keys: KeyRange, offset: int, count: int) -> KeyRange | None:
        """The part of a range that begins at its `offset`-th URL; a key is never split."""
        low = self._name_at(keys, offset)
        if low is None or (offset and low == self._name_at(keys, offset - 1)):
            low = self._name_after(keys, low)
        high = self._name_at(keys, offset + count)
        if high is not None and high == self._name_at(keys, offset + count - 1):
            high = self._name_after(keys, high)
        return KeyRange(low, high or keys.high) if low is not None else None

    def _name_at(self, keys: KeyRange, offset: int) -> str | None:
        row = self._database.one(
            "SELECT name FROM surt WHERE name >= ? AND name < ? ORDER BY name, resource LIMIT 1 OFFSET ?",
            (*keys, offset),
        )
        return str(row[0]) if row else None

    def _name_after(self, keys: KeyRange, name: str | None) -> str | None:
        return None if name is None else self._name_at(KeyRange(name + "\x01", keys.high), 0)

    def _part(self, keys: KeyRange, names: int) -> KeyRange | None:
        """The beginning of a range: about so many keys, at least one; None when it is empty."""
        low = self._name_at(keys, 0)
        if low is None:
            return None
        high = self._name_at(keys, names) or keys.high
        return KeyRange(low, high) if high != low else KeyRange.exactly(low)

    def _whole(self, keys: KeyRange, span: TimeRange) -> list[CaptureTuple] | None:
        """All captures of a range, or None when they are more than `CHUNK`."""
        within, values = "WHERE s.name >= ? AND s.name < ? ", (*keys, *span, CHUNK + 1)
        rows: list[Any] = self._database.all(_SELECT_VERSIONS + within + _WITHIN_TIMES.format("v") + "LIMIT ?", values)
        if len(rows) <= CHUNK:
            rows += self._database.all(
                _SELECT_OTHERS + within + "AND p.status > 0 " + _WITHIN_TIMES.format("p") + "LIMIT ?", values
            )
        if len(rows) > CHUNK:
            return None
        rows.sort(key=_BY_KEY_AND_TIME)
        return rows

    def _of_key(self, name: str, span: TimeRange) -> Iterator[list[CaptureTuple]]:
        """One key with very many captures, read piece by piece in the order of time."""
        numbers = self._first_numbers(name, span.since)
        owners = list(numbers)
        time, more = span.since, True
        while more:
            pieces = {owner: self._next_versions(name, owner, numbers[owner]) for owner in owners}
            others = [self._next_others(name, owner, TimeRange(time, span.until)) for owner in owners]
            full = [piece[-1][2] for piece in (*pieces.values(), *others) if len(piece) == CHUNK]
            edge, more = min(full, default=span.until), bool(full)
            for owner, piece in pieces.items():
                numbers[owner] += sum(1 for row in piece if row[2] <= edge)
            rows = [row for piece in (*pieces.values(), *others) for row in piece if time <= row[2] <= edge]
            rows.sort(key=_BY_TIME)
            if rows:
                yield rows
            time = edge + 1
            more = more and time <= span.until

    def _first_numbers(self, name: str, since: int) -> dict[int, int]:
        """By resource, the number of the first version at or after a time."""
        rows = self._database.all(
            "SELECT r.id, r.versions FROM surt s JOIN resource r ON r.id = s.resource WHERE s.name = ?", (name,)
        )
        versions = Versions(self._database)
        before = {int(row[0]): versions.at(row[0], row[1], since - 1) for row in rows}
        return {owner: row.number + 1 if row else 0 for owner, row in before.items()}

    def _next_versions(self, name: str, owner: int, number: int) -> list[CaptureTuple]:
        rows: list[Any] = self._database.all(
            _SELECT_VERSIONS + "WHERE s.name = ? AND s.resource = ? AND v.number >= ? ORDER BY v.number LIMIT ?",
            (name, owner, number, CHUNK),
        )
        return rows

    def _next_others(self, name: str, owner: int, span: TimeRange) -> list[CaptureTuple]:
        rows: list[Any] = self._database.all(
            _SELECT_OTHERS
            + "WHERE s.name = ? AND s.resource = ? AND p.status > 0 "
            + _WITHIN_TIMES.format("p")
            + "ORDER BY p.time LIMIT ?",
            (name, owner, *span, CHUNK),
        )
        return rows


_SCANNED_VERSIONS = 64
_VERSION_COLUMNS = "id, resource, number, time, content, head, status, meaningful, extra"
_CAPTURE_COLUMNS = "resource, time, status, outcome, number, head, content, extra"
# A document over the size limit cannot be shown, nor a repeat whose version was dropped since.
_SHOWN = (
    f"status > 0 AND NOT {_IS_TOO_LARGE} "
    "AND (number IS NOT NULL OR content IS NOT NULL OR (status >= 300 AND status != 304))"
)


_ANSWERED = "AND (status < 300 OR status = 304 OR status >= 400)"
"""No redirect."""


def _nearest_captures(condition: str, order: str, limit: int) -> str:
    return (
        f"SELECT * FROM (SELECT {_CAPTURE_COLUMNS} FROM capture WHERE resource = ? {condition} AND {_SHOWN} "
        f"ORDER BY time {order} LIMIT {limit}) AS part"
    )


_VERSIONS_AROUND = (
    "WITH upto (place) AS (SELECT coalesce(max(number), -1) FROM version "
    "WHERE resource = ? AND number >= ? AND number < ? AND time <= ?) "
    f"SELECT {_VERSION_COLUMNS} FROM upto JOIN version ON resource = ? "
    "AND number IN (0, place - 1, place, place + 1, ?)"
)
_CAPTURES_AROUND = " UNION ALL ".join(
    [
        _nearest_captures("AND time <= ?", "DESC", 2),
        _nearest_captures("AND time > ?", "ASC", 1),
        _nearest_captures("", "ASC", 1),
        _nearest_captures("", "DESC", 1),
    ]
)


class TimelineCapture(NamedTuple):
    """One capture: its URL, its time, and its row."""

    time: int
    url: str
    row: VersionRow | CaptureRow

    @property
    def number(self) -> int | None:
        """The number of the version that was current then."""
        return self.row.number


class CaptureNeighbours(NamedTuple):
    """The captures around a time: `upto` it, `before` the second of that one, and `after` it."""

    first: TimelineCapture
    before: TimelineCapture | None
    upto: TimelineCapture | None
    after: TimelineCapture | None
    last: TimelineCapture

    def closest(self, time: int) -> TimelineCapture:
        """The capture nearest to a time; the earlier one of two that are equally near."""
        if self.upto is None or self.after is None:
            return self.upto or self.after or self.last
        return self.upto if time - self.upto.time <= self.after.time - time else self.after


class _Owner(NamedTuple):
    resource: int
    url: str
    versions: int


class Timeline:
    """All captures of the URLs that share one sorted key, oldest first."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._versions = Versions(database)
        rows = database.all(
            "SELECT r.id, r.url, r.versions FROM surt s JOIN resource r ON r.id = s.resource WHERE s.name = ?", (name,)
        )
        self._owners = [_Owner(*row) for row in rows]
        self._last_found: tuple[_Owner, int, VersionRow | None] | None = None

    def upto(self, time: int) -> TimelineCapture | None:
        """The latest capture at or before a time."""
        return max(self._each_upto(time), key=_time_of, default=None)

    def after(self, time: int) -> TimelineCapture | None:
        """The earliest capture after a time."""
        return min(self._each_after(time), key=_time_of, default=None)

    def first(self) -> TimelineCapture | None:
        """The oldest capture."""
        return self.after(-1)

    def around(self, time: int) -> CaptureNeighbours | None:
        """First, last and neighbours of a time at once, in two statements per URL; None without captures."""
        found = sorted({moment for owner in self._owners for moment in self._near(owner, time)}, key=_time_and_url)
        if not found:
            return None
        upto = next((moment for moment in reversed(found) if moment.time <= time), None)
        after = next((moment for moment in found if moment.time > time), None)
        before = (
            self.upto(upto.time // 1000 * 1000 - 1)
            if upto is not None and self._is_crowded(found, upto)
            else (next((m for m in reversed(found) if upto is not None and m.time // 1000 < upto.time // 1000), None))
        )
        return CaptureNeighbours(found[0], before, upto, after, found[-1])

    def _is_crowded(self, found: list[TimelineCapture], upto: TimelineCapture) -> bool:
        """Whether several captures share a second, so that the one before may not be among those found."""
        return sum(1 for moment in found if moment.time // 1000 == upto.time // 1000) > 1

    def _near(self, owner: _Owner, time: int) -> Iterator[TimelineCapture]:
        if owner.versions:
            low, high = self._narrowed(owner, time)
            versions = self._database.all(
                _VERSIONS_AROUND, (owner.resource, low, high, time, owner.resource, owner.versions - 1)
            )
            yield from (TimelineCapture(found[3], owner.url, VersionRow(*found)) for found in versions)
        same = (owner.resource, time)
        captures = self._database.all(_CAPTURES_AROUND, (*same, *same, owner.resource, owner.resource))
        yield from (TimelineCapture(found[1], owner.url, CaptureRow(*found)) for found in captures)

    def closest(self, time: int) -> TimelineCapture | None:
        """The capture nearest to a time."""
        near = self.around(time)
        return near.closest(time) if near is not None else None

    def closest_answer(self, time: int) -> TimelineCapture | None:
        """The capture nearest to a time that is no redirect; of two equally near ones the later."""
        upto = max(self._each_upto(time, _ANSWERED), key=_time_of, default=None)
        after = min(self._each_after(time, _ANSWERED), key=_time_of, default=None)
        if upto is None or after is None:
            return upto or after
        return upto if time - upto.time < after.time - time else after

    def _each_upto(self, time: int, which: str = "") -> Iterator[TimelineCapture]:
        for owner in self._owners:
            yield from _timeline_capture(owner, self._version_upto(owner, time))
            yield from self._captures(owner, f"time <= ? {which}", time, "DESC")

    def _each_after(self, time: int, which: str = "") -> Iterator[TimelineCapture]:
        for owner in self._owners:
            before = self._version_upto(owner, time) if time >= 0 else None
            number = before.number + 1 if before else 0
            if number < owner.versions:
                yield from _timeline_capture(owner, self._versions.number(owner.resource, number))
            yield from self._captures(owner, f"time > ? {which}", time, "ASC")

    def _version_upto(self, owner: _Owner, time: int) -> VersionRow | None:
        if self._last_found is not None and self._last_found[:2] == (owner, time):
            return self._last_found[2]
        low, high = self._narrowed(owner, time)
        found = self._database.one(
            f"SELECT {_VERSION_COLUMNS} FROM version WHERE resource = ? AND number >= ? AND number < ? AND time <= ? "
            "ORDER BY number DESC LIMIT 1",
            (owner.resource, low, high, time),
        )
        row = VersionRow(*found) if found else None
        self._last_found = (owner, time, row)
        return row

    def _narrowed(self, owner: _Owner, time: int) -> tuple[int, int]:
        """Between which numbers the version of a time is: binary search narrows a long list for one final scan.

        A statement costs more than sixty rows.
        """
        low, high = 0, owner.versions
        while high - low > _SCANNED_VERSIONS:
            middle = (low + high) // 2
            row = self._versions.number(owner.resource, middle)
            low, high = (middle, high) if row is not None and row.time <= time else (low, middle)
        return low, high

    def _captures(self, owner: _Owner, condition: str, time: int, order: str) -> list[TimelineCapture]:
        row = self._database.one(
            f"SELECT {_CAPTURE_COLUMNS} FROM capture WHERE resource = ? AND {condition} AND {_SHOWN} "
            f"ORDER BY time {order} LIMIT 1",
            (owner.resource, time),
        )
        return _timeline_capture(owner, CaptureRow(*row) if row else None)


def _timeline_capture(owner: _Owner, row: VersionRow | CaptureRow | None) -> list[TimelineCapture]:
    return [TimelineCapture(row.time, owner.url, row)] if row is not None else []


def _time_of(moment: TimelineCapture) -> int:
    return moment.time


def _time_and_url(moment: TimelineCapture) -> tuple[int, str]:
    """Captures of one time have a fixed order in all processes."""
    return moment.time, moment.url
