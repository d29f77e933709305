"""The moments at which a URL was captured: first, last, and those around a time.

Every question costs a few point reads, also for a URL with a million
captures. Addresses that share a sorted key (`http` and `https`, with and
without `www`) share one timeline, as in other archives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from letopis.catalog.database import Database
from letopis.catalog.rows import OUTCOME_CODES, CaptureRow, VersionRow
from letopis.catalog.versions import Versions
from letopis.model import Outcome

_TOO_LARGE = OUTCOME_CODES[Outcome.TOO_LARGE]
_CAPTURE = "resource, time, status, outcome, number, head, content, extra"
# Nothing can be shown of a document over the size limit, nor of a repeat whose version was dropped since.
_SHOWN = (
    f"status > 0 AND outcome != {_TOO_LARGE} "
    "AND (number IS NOT NULL OR content IS NOT NULL OR (status >= 300 AND status != 304))"
)


class Moment(NamedTuple):
    """One capture: of which URL, when, and the row that remembers it."""

    time: int
    url: str
    row: VersionRow | CaptureRow


class _Owner(NamedTuple):
    resource: int
    url: str
    versions: int


class Timeline:
    """All captures of the addresses that share one sorted key, oldest first."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._versions = Versions(database)
        rows = database.all(
            "SELECT r.id, r.url, r.versions FROM surt s JOIN resource r ON r.id = s.resource WHERE s.name = ?", (name,)
        )
        self._owners = [_Owner(*row) for row in rows]

    def upto(self, time: int) -> Moment | None:
        """The latest capture at or before a time."""
        return max(self._each_upto(time), key=_time, default=None)

    def after(self, time: int) -> Moment | None:
        """The earliest capture after a time."""
        return min(self._each_after(time), key=_time, default=None)

    def first(self) -> Moment | None:
        """The oldest capture."""
        return self.after(-1)

    def last(self) -> Moment | None:
        """The newest capture."""
        found: list[Moment] = []
        for owner in self._owners:
            if owner.versions:
                found += _moment(owner, self._versions.number(owner.resource, owner.versions - 1))
            found += self._captures(owner, "time >= ?", -1, "DESC")
        return max(found, key=_time, default=None)

    def closest(self, time: int) -> Moment | None:
        """The capture nearest to a time; the earlier one of two that are equally near."""
        before, behind = self.upto(time), self.after(time)
        if before is None or behind is None:
            return before or behind
        return before if time - before.time <= behind.time - time else behind

    def count(self) -> int:
        """How many captures there are."""
        total = sum(owner.versions for owner in self._owners)
        for owner in self._owners:
            row = self._database.one(f"SELECT count(*) FROM capture WHERE resource = ? AND {_SHOWN}", owner[:1])
            total += int(row[0]) if row else 0
        return total

    def _each_upto(self, time: int) -> Iterator[Moment]:
        for owner in self._owners:
            yield from _moment(owner, self._versions.at(owner.resource, owner.versions, time))
            yield from self._captures(owner, "time <= ?", time, "DESC")

    def _each_after(self, time: int) -> Iterator[Moment]:
        for owner in self._owners:
            before = self._versions.at(owner.resource, owner.versions, time) if time >= 0 else None
            number = before.number + 1 if before else 0
            if number < owner.versions:
                yield from _moment(owner, self._versions.number(owner.resource, number))
            yield from self._captures(owner, "time > ?", time, "ASC")

    def _captures(self, owner: _Owner, condition: str, time: int, order: str) -> list[Moment]:
        row = self._database.one(
            f"SELECT {_CAPTURE} FROM capture WHERE resource = ? AND {condition} AND {_SHOWN} "
            f"ORDER BY time {order} LIMIT 1",
            (owner.resource, time),
        )
        return _moment(owner, CaptureRow(*row) if row else None)


def _moment(owner: _Owner, row: VersionRow | CaptureRow | None) -> list[Moment]:
    return [Moment(row.time, owner.url, row)] if row is not None else []


def _time(moment: Moment) -> int:
    return moment.time


def distinct(moments: Sequence[Moment | None]) -> list[Moment]:
    """Those that are there, each once."""
    return list(dict.fromkeys(moment for moment in moments if moment is not None))
