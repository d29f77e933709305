"""Captures in the order in which archives list them: by sorted key, then by time.

A capture is a check that got an HTTP answer. Rows leave here as plain tuples,
because lists of them run to millions; memory stays bounded however many
captures a key or a range of keys has.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from letopis.catalog.database import Database
from letopis.catalog.rows import OUTCOME_CODES
from letopis.catalog.versions import Versions
from letopis.model import Outcome

CHUNK = 10_000
"""Rows that are held at once."""

IS_VERSION = -1
"""Stands in the place of the outcome where the capture brought a version."""

CaptureTuple = tuple[str, str, int, int, int | None, bytes | None, int | None, str | None, int]
"""Key, URL, time, status, head, SHA-1, bytes, extra, outcome or `IS_VERSION`."""

_FIRST_NAMES, _MOST_NAMES = 64, 4096
_UNCHANGED = OUTCOME_CODES[Outcome.UNCHANGED]

_VERSIONS = (
    "SELECT s.name, r.url, v.time, v.status, v.head, c.sha1, c.raw_bytes, v.extra, -1 "
    "FROM surt s JOIN resource r ON r.id = s.resource JOIN version v ON v.resource = s.resource "
    "JOIN content c ON c.id = v.content "
)
# A check that found nothing new repeats the version of its time; redirects and errors have a body of their own or none.
_OTHERS = (
    "SELECT s.name, r.url, p.time, p.status, p.head, c.sha1, c.raw_bytes, p.extra, p.outcome "
    "FROM surt s JOIN resource r ON r.id = s.resource JOIN capture p ON p.resource = s.resource "
    "LEFT JOIN version v ON v.resource = p.resource AND v.number = p.number "
    f"AND p.outcome = {_UNCHANGED} AND (p.status < 300 OR p.status = 304) "
    "LEFT JOIN content c ON c.id = coalesce(p.content, v.content) "
)
_TIMED = "AND {0}.time >= ? AND {0}.time <= ? "
_BY_KEY_AND_TIME = itemgetter(0, 2)
_BY_TIME = itemgetter(2)


class KeyRange(NamedTuple):
    """Keys from `low` on and before `high`."""

    low: str
    high: str

    @classmethod
    def exactly(cls, name: str) -> KeyRange:
        """One key alone."""
        return cls(name, name + "\x01")


class Span(NamedTuple):
    """Times in milliseconds, both ends included."""

    since: int = 0
    until: int = 2**62


ALL_TIMES = Span()


class Captures:
    """The list of captures; read-only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def batches(self, keys: KeyRange, span: Span = ALL_TIMES) -> Iterator[list[CaptureTuple]]:
        """All captures of a range of keys, in lists of at most some ten thousand.

        Each list covers as many keys as fit; a key that alone has too many
        captures is read piece by piece.
        """
        names = _FIRST_NAMES
        while (part := self._part(keys, names)) is not None:
            rows = self._whole(part, span)
            if rows is None and names > 1:
                names = max(1, names // 4)
                continue
            yield from self._of_key(part.low, span) if rows is None else [rows] if rows else []
            keys, names = KeyRange(part.high, keys.high), min(names * 4, _MOST_NAMES)

    def blocks(self, keys: KeyRange) -> int:
        """How many URLs the range holds."""
        row = self._database.one("SELECT count(*) FROM surt WHERE name >= ? AND name < ?", keys)
        return int(row[0]) if row else 0

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

    def _whole(self, keys: KeyRange, span: Span) -> list[CaptureTuple] | None:
        """All captures of a range, or None when they are more than `CHUNK`."""
        within, values = "WHERE s.name >= ? AND s.name < ? ", (*keys, *span, CHUNK + 1)
        rows: list[Any] = self._database.all(_VERSIONS + within + _TIMED.format("v") + "LIMIT ?", values)
        if len(rows) <= CHUNK:
            rows += self._database.all(_OTHERS + within + "AND p.status > 0 " + _TIMED.format("p") + "LIMIT ?", values)
        if len(rows) > CHUNK:
            return None
        rows.sort(key=_BY_KEY_AND_TIME)
        return rows

    def _of_key(self, name: str, span: Span) -> Iterator[list[CaptureTuple]]:
        """One key with very many captures, read piece by piece in the order of time."""
        numbers = self._first_numbers(name, span.since)
        owners = list(numbers)
        time, more = span.since, True
        while more:
            pieces = {owner: self._next_versions(name, owner, numbers[owner]) for owner in owners}
            others = [self._next_others(name, owner, Span(time, span.until)) for owner in owners]
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
            _VERSIONS + "WHERE s.name = ? AND s.resource = ? AND v.number >= ? ORDER BY v.number LIMIT ?",
            (name, owner, number, CHUNK),
        )
        return rows

    def _next_others(self, name: str, owner: int, span: Span) -> list[CaptureTuple]:
        rows: list[Any] = self._database.all(
            _OTHERS
            + "WHERE s.name = ? AND s.resource = ? AND p.status > 0 "
            + _TIMED.format("p")
            + "ORDER BY p.time LIMIT ?",
            (name, owner, *span, CHUNK),
        )
        return rows
