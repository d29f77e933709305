"""Versions with the stretch of time in which each was the valid one: what indexes by date are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from letopis.catalog.database import Database

_SELECT = (
    "SELECT v.id, v.resource, v.number, v.time, n.time, r.url FROM version v "
    "JOIN resource r ON r.id = v.resource "
    "LEFT JOIN version n ON n.resource = v.resource AND n.number = v.number + 1 "
)


class Span(NamedTuple):
    """A version, valid from `time` until the next one began; `until` is None for the newest."""

    id: int
    resource: int
    number: int
    time: int
    until: int | None
    url: str


def spans_since(database: Database, after: int, limit: int) -> list[Span]:
    """Versions recorded after a known id, in the order of recording."""
    return [Span(*row) for row in database.all(_SELECT + "WHERE v.id > ? ORDER BY v.id LIMIT ?", (after, limit))]


def spans_from(database: Database, resource: int, number: int) -> list[Span]:
    """Versions of one URL from a number on."""
    rows = database.all(_SELECT + "WHERE v.resource = ? AND v.number >= ? ORDER BY v.number", (resource, number))
    return [Span(*row) for row in rows]


def spans_up_to(database: Database, last: int) -> Iterator[Span]:
    """All versions up to a known id."""
    return (Span(*row) for row in database.stream(_SELECT + "WHERE v.id <= ? ORDER BY v.id", (last,), size=10_000))


def count_since(database: Database, after: int) -> int:
    """How many versions were recorded after a known id."""
    row = database.one("SELECT count(*) FROM version WHERE id > ?", (after,))
    return int(row[0]) if row else 0


def any_since(database: Database, after: int) -> bool:
    """Whether a version was recorded after a known id."""
    return database.one("SELECT 1 FROM version WHERE id > ? LIMIT 1", (after,)) is not None


def last_seen(database: Database, resource: int, number: int) -> int | None:
    """The last check that found a version unchanged; None when it was seen only once."""
    row = database.one(
        "SELECT max(time) FROM capture WHERE resource = ? AND number = ? AND outcome = 2 AND status < 400",
        (resource, number),
    )
    return int(row[0]) if row and row[0] is not None else None
