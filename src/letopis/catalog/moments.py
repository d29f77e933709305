"""The moments at which a URL was captured: first, last, and those around a time.

Every question costs a few point reads, also for a URL with a million
captures. Addresses that share a sorted key (`http` and `https`, with and
without `www`) share one timeline, as in other archives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from letopis.catalog.database import Database
from letopis.catalog.rows import OUTCOME_CODES, CaptureRow, VersionRow
from letopis.catalog.versions import Versions
from letopis.model import Outcome

_TOO_LARGE = OUTCOME_CODES[Outcome.TOO_LARGE]
_SCANNED = 64
_VERSION = "id, resource, number, time, content, head, status, meaningful, extra"
_CAPTURE = "resource, time, status, outcome, number, head, content, extra"
# Nothing can be shown of a document over the size limit, nor of a repeat whose version was dropped since.
_SHOWN = (
    f"status > 0 AND outcome != {_TOO_LARGE} "
    "AND (number IS NOT NULL OR content IS NOT NULL OR (status >= 300 AND status != 304))"
)


def _one_way(condition: str, order: str, limit: int) -> str:
    return (
        f"SELECT * FROM (SELECT {_CAPTURE} FROM capture WHERE resource = ? {condition} AND {_SHOWN} "
        f"ORDER BY time {order} LIMIT {limit}) AS part"
    )


_CAPTURES_AROUND = " UNION ALL ".join(
    [
        _one_way("AND time <= ?", "DESC", 2),
        _one_way("AND time > ?", "ASC", 1),
        _one_way("", "ASC", 1),
        _one_way("", "DESC", 1),
    ]
)


class Moment(NamedTuple):
    """One capture: of which URL, when, and the row that remembers it."""

    time: int
    url: str
    row: VersionRow | CaptureRow


class Around(NamedTuple):
    """The captures around a time: `upto` it, `before` the second of that one, and `after` it."""

    first: Moment
    before: Moment | None
    upto: Moment | None
    after: Moment | None
    last: Moment

    def closest(self, time: int) -> Moment:
        """The capture nearest to a time; the earlier one of two that are equally near."""
        if self.upto is None or self.after is None:
            return self.upto or self.after or self.last
        return self.upto if time - self.upto.time <= self.after.time - time else self.after


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
        self._last_found: tuple[_Owner, int, VersionRow | None] | None = None

    def upto(self, time: int) -> Moment | None:
        """The latest capture at or before a time."""
        return max(self._each_upto(time), key=_time, default=None)

    def after(self, time: int) -> Moment | None:
        """The earliest capture after a time."""
        return min(self._each_after(time), key=_time, default=None)

    def first(self) -> Moment | None:
        """The oldest capture."""
        return self.after(-1)

    def around(self, time: int) -> Around | None:
        """First, last and neighbours of a time at once, in three statements a URL; None without captures."""
        found = sorted({moment for owner in self._owners for moment in self._near(owner, time)}, key=_time)
        if not found:
            return None
        upto = next((moment for moment in reversed(found) if moment.time <= time), None)
        after = next((moment for moment in found if moment.time > time), None)
        before = (
            self.upto(upto.time // 1000 * 1000 - 1)
            if upto is not None and self._is_crowded(found, upto)
            else (next((m for m in reversed(found) if upto is not None and m.time // 1000 < upto.time // 1000), None))
        )
        return Around(found[0], before, upto, after, found[-1])

    def _is_crowded(self, found: list[Moment], upto: Moment) -> bool:
        """Whether several captures share a second, so that the one before may not be among those found."""
        return sum(1 for moment in found if moment.time // 1000 == upto.time // 1000) > 1

    def _near(self, owner: _Owner, time: int) -> Iterator[Moment]:
        row = self._version_upto(owner, time)
        number = row.number if row is not None else -1
        if owner.versions:
            wanted = (0, number - 1, number, number + 1, owner.versions - 1)
            versions = self._database.all(
                f"SELECT {_VERSION} FROM version WHERE resource = ? AND number IN (?, ?, ?, ?, ?)",
                (owner.resource, *wanted),
            )
            yield from (Moment(found[3], owner.url, VersionRow(*found)) for found in versions)
        same = (owner.resource, time)
        captures = self._database.all(_CAPTURES_AROUND, (*same, *same, owner.resource, owner.resource))
        yield from (Moment(found[1], owner.url, CaptureRow(*found)) for found in captures)

    def closest(self, time: int) -> Moment | None:
        """The capture nearest to a time."""
        near = self.around(time)
        return near.closest(time) if near is not None else None

    def count(self) -> int:
        """How many captures there are."""
        total = sum(owner.versions for owner in self._owners)
        for owner in self._owners:
            row = self._database.one(f"SELECT count(*) FROM capture WHERE resource = ? AND {_SHOWN}", owner[:1])
            total += int(row[0]) if row else 0
        return total

    def _each_upto(self, time: int) -> Iterator[Moment]:
        for owner in self._owners:
            yield from _moment(owner, self._version_upto(owner, time))
            yield from self._captures(owner, "time <= ?", time, "DESC")

    def _each_after(self, time: int) -> Iterator[Moment]:
        for owner in self._owners:
            before = self._version_upto(owner, time) if time >= 0 else None
            number = before.number + 1 if before else 0
            if number < owner.versions:
                yield from _moment(owner, self._versions.number(owner.resource, number))
            yield from self._captures(owner, "time > ?", time, "ASC")

    def _version_upto(self, owner: _Owner, time: int) -> VersionRow | None:
        """Halving narrows a long list, one scan ends it: a statement costs more than sixty rows."""
        if self._last_found is not None and self._last_found[:2] == (owner, time):
            return self._last_found[2]
        low, high = 0, owner.versions
        while high - low > _SCANNED:
            middle = (low + high) // 2
            row = self._versions.number(owner.resource, middle)
            low, high = (middle, high) if row is not None and row.time <= time else (low, middle)
        found = self._database.one(
            f"SELECT {_VERSION} FROM version WHERE resource = ? AND number >= ? AND number < ? AND time <= ? "
            "ORDER BY number DESC LIMIT 1",
            (owner.resource, low, high, time),
        )
        row = VersionRow(*found) if found else None
        self._last_found = (owner, time, row)
        return row

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
