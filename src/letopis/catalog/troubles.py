"""Checks of URLs that did not always answer well, and whether the log of versions is still what a follower took in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from letopis.catalog.database import Database

_TROUBLED = "SELECT resource FROM capture WHERE (status >= 300 AND status <> 304) OR outcome = 3"


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


def troubled_checks(database: Database) -> Iterator[TroubleRow]:
    """All checks that brought no version, of every URL that ever was in trouble: URL by URL, oldest first."""
    rows = database.stream(
        "SELECT r.url, c.time, c.status, c.outcome, c.head, c.extra FROM capture c "
        f"JOIN resource r ON r.id = c.resource WHERE c.resource IN ({_TROUBLED}) ORDER BY c.resource, c.time"
    )
    return (TroubleRow(*row) for row in rows)


def log_mark(database: Database, last: int) -> LogMark:
    """The mark of all versions with an id up to `last`."""
    row = database.one("SELECT count(*), coalesce(sum(time), 0) FROM version WHERE id <= ?", (last,))
    return LogMark(int(row[0]), int(row[1])) if row else LogMark(0, 0)


def check_mark(database: Database) -> LogMark:
    """The mark of all checks that brought no version."""
    row = database.one("SELECT count(*), coalesce(sum(time), 0) FROM capture")
    return LogMark(int(row[0]), int(row[1])) if row else LogMark(0, 0)


def log_times(database: Database, last: int) -> Iterator[tuple[int, int]]:
    """Id and time of all versions up to `last`, by id."""
    rows = database.stream("SELECT id, time FROM version WHERE id <= ? ORDER BY id", (last,), size=10_000)
    return ((int(row[0]), int(row[1])) for row in rows)
