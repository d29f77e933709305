"""The log of versions as a follower reads it: stretch by stretch, each version with its URL and its content."""

from __future__ import annotations

from typing import NamedTuple

from letopis.catalog.database import Database

_SINCE = (
    "SELECT v.id, v.time, v.status, v.meaningful, v.extra, r.url, c.sha1, c.raw_bytes FROM version v "
    "JOIN resource r ON r.id = v.resource LEFT JOIN content c ON c.id = v.content "
    "WHERE v.id > ? ORDER BY v.id LIMIT ?"
)


class Logged(NamedTuple):
    """A version without its bytes; the digest is empty where its content is lost."""

    id: int
    time: int
    status: int
    meaningful: int | None
    extra: str | None
    url: str
    sha1: bytes
    raw_bytes: int


def logged_since(database: Database, after: int, limit: int) -> list[Logged]:
    """Versions recorded after a known id, in the order of recording."""
    rows = database.all(_SINCE, (after, limit))
    return [
        Logged(number, time, status, meaningful, extra, url, bytes(sha1 or b""), size or 0)
        for number, time, status, meaningful, extra, url, sha1, size in rows
    ]
