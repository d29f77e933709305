"""A version with all it takes to read it, found in one statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from letopis.catalog.rows import Reader, ResourceRow, VersionRow
from letopis.urls import url_key

_SELECT = (
    "SELECT r.url, v.resource, v.number, v.time, h.data, r.versions, "
    "c.id, c.sha1, c.raw_bytes, c.stored_bytes, c.method, c.pack, c.place, c.slot "
)
_NEWEST = _SELECT + (
    "FROM resource r JOIN version v ON v.id = r.newest JOIN content c ON c.id = v.content "
    "LEFT JOIN head h ON h.id = v.head WHERE r.url_key = ? AND r.url = ?"
)
_NUMBER = _SELECT + (
    "FROM resource r JOIN version v ON v.resource = r.id AND v.number = ? JOIN content c ON c.id = v.content "
    "LEFT JOIN head h ON h.id = v.head WHERE r.url_key = ? AND r.url = ?"
)
_ALL = _SELECT + (
    "FROM resource r JOIN version v ON v.resource = r.id JOIN content c ON c.id = v.content "
    "LEFT JOIN head h ON h.id = v.head WHERE r.url_key = ? AND r.url = ? ORDER BY v.number"
)
_BY_ID = _SELECT + (
    "FROM version v JOIN resource r ON r.id = v.resource JOIN content c ON c.id = v.content "
    "LEFT JOIN head h ON h.id = v.head WHERE v.id = ?"
)

_LATEST = (
    # The last check may have brought newer validators with the same content; its time is the resource's.
    "SELECT r.url, v.id, v.resource, v.number, v.extra, c.sha1, c.raw_bytes, h.data "
    "FROM resource r JOIN version v ON v.id = r.newest JOIN content c ON c.id = v.content "
    "LEFT JOIN capture p ON p.resource = r.id AND p.time = r.checked AND p.status = 200 "
    "JOIN head h ON h.id = coalesce(p.head, v.head) WHERE r.url_key IN ({marks})"
)
_STATES = (
    "SELECT r.url, r.id, r.host, r.versions, r.newest, r.checked, v.id, v.resource, v.number, v.time, v.content, "
    "v.head, v.status, v.meaningful, v.extra, c.sha1, c.identity FROM resource r "
    "LEFT JOIN version v ON v.id = r.newest LEFT JOIN content c ON c.id = v.content WHERE r.url_key IN ({marks})"
)
_CHECKED = "SELECT url, id, checked, newest FROM resource WHERE url_key IN ({marks})"
AT_ONCE = 250
"""Names that one statement may ask for."""


class Found(NamedTuple):
    """One version joined with its URL, its content and its packed header record."""

    url: str
    resource: int
    number: int
    time: int
    head: bytes | None
    versions: int
    content: int
    sha1: bytes
    raw_bytes: int
    stored_bytes: int
    method: str
    pack: int
    place: int
    slot: int


class Latest(NamedTuple):
    """The newest version as the next check needs it; `head` is the packed header of the last full answer."""

    url: str
    version: int
    resource: int
    number: int
    extra: str | None
    sha1: bytes
    raw_bytes: int
    head: bytes


class UrlState(NamedTuple):
    """A URL before something is recorded for it: its row, its newest version, and that one's digests."""

    row: ResourceRow
    newest: VersionRow | None
    sha1: bytes
    identity: int


class Checked(NamedTuple):
    """A URL, its id, the time of its last check (None: only planned), and the id of its newest version."""

    url: str
    resource: int
    time: int | None
    newest: int | None


def latest(reader: Reader, urls: Sequence[str]) -> dict[str, Latest]:
    """What is known of those of many URLs that have a version."""
    return {row[0]: Latest(*row) for row in _of_urls(reader, _LATEST, urls)}


def states(reader: Reader, urls: Sequence[str]) -> dict[str, UrlState]:
    """Those of many URLs that the catalogue knows, ready for recording."""
    return {row[0]: _state(row) for row in _of_urls(reader, _STATES, urls)}


def _state(row: tuple[Any, ...]) -> UrlState:
    resource = ResourceRow(row[1], row[0], *row[2:6])
    if row[6] is None:
        return UrlState(resource, None, b"", 0)
    return UrlState(resource, VersionRow(*row[6:15]), bytes(row[15] or b""), row[16] or 0)


def checked(reader: Reader, urls: Sequence[str]) -> dict[str, Checked]:
    """Those of many URLs that the catalogue knows."""
    return {row[0]: Checked(*row) for row in _of_urls(reader, _CHECKED, urls)}


def _of_urls(reader: Reader, question: str, urls: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Rows whose first column is one of the URLs; two may share a 64-bit key, so the text decides."""
    wanted = set(urls)
    for start in range(0, len(urls), AT_ONCE):
        keys = [url_key(url) for url in urls[start : start + AT_ONCE]]
        rows = reader.all(question.format(marks=", ".join("?" * len(keys))), keys)
        yield from (row for row in rows if row[0] in wanted)


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
