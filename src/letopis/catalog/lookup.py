"""A version with all it takes to read it, found in one statement."""

from __future__ import annotations

from typing import Any, NamedTuple

from letopis.catalog.rows import Reader
from letopis.urls import url_key

_SELECT = (
    "SELECT r.url, v.id, v.resource, v.number, v.time, v.status, v.head, v.extra, r.versions, "
    "c.id, c.sha1, c.raw_bytes, c.stored_bytes, c.method, c.pack, c.place, c.slot "
)
_NEWEST = _SELECT + (
    "FROM resource r JOIN version v ON v.id = r.newest JOIN content c ON c.id = v.content "
    "WHERE r.url_key = ? AND r.url = ?"
)
_NUMBER = _SELECT + (
    "FROM resource r JOIN version v ON v.resource = r.id AND v.number = ? JOIN content c ON c.id = v.content "
    "WHERE r.url_key = ? AND r.url = ?"
)
_ALL = _SELECT + (
    "FROM resource r JOIN version v ON v.resource = r.id JOIN content c ON c.id = v.content "
    "WHERE r.url_key = ? AND r.url = ? ORDER BY v.number"
)
_BY_ID = _SELECT + (
    "FROM version v JOIN resource r ON r.id = v.resource JOIN content c ON c.id = v.content WHERE v.id = ?"
)


class Found(NamedTuple):
    """One version joined with its URL and content."""

    url: str
    id: int
    resource: int
    number: int
    time: int
    status: int
    head: int
    extra: str | None
    versions: int
    content: int
    sha1: bytes
    raw_bytes: int
    stored_bytes: int
    method: str
    pack: int
    place: int
    slot: int


def newest(reader: Reader, url: str) -> Found | None:
    """The newest version; needs no number."""
    return _found(reader.one(_NEWEST, (url_key(url), url)))


def numbered(reader: Reader, url: str, number: int) -> Found | None:
    """Version `number`."""
    return _found(reader.one(_NUMBER, (number, url_key(url), url)))


def all_of(reader: Reader, url: str) -> list[Found]:
    """All versions of a URL, oldest first."""
    return [Found(*row) for row in reader.all(_ALL, (url_key(url), url))]


def by_id(reader: Reader, number: int) -> Found | None:
    """The version recorded under an id."""
    return _found(reader.one(_BY_ID, (number,)))


def _found(row: tuple[Any, ...] | None) -> Found | None:
    return Found(*row) if row else None
