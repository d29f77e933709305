"""The record as it is published: a snapshot of checks and contents as values, and contents out of published packs.

Reading names every column that is ever published.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from letopis.archive.archive import Archive
from letopis.archive.records import Identity, digest_text, identify
from letopis.catalog import ABSENT, DatabaseSnapshot, HeaderRecords
from letopis.config import StoreSettings
from letopis.errors import VERIFY, Damaged
from letopis.model import Headers
from letopis.store import ContentPlace, LocalBackend, PackGone, Store

__all__ = [
    "ABSENT",
    "CheckRecord",
    "ContentRecord",
    "DocumentRecord",
    "MissingContent",
    "PackGone",
    "RecordCounts",
    "RecordSnapshot",
    "RemotePacks",
    "checked_body",
    "decode_contents",
    "pack_bytes",
    "pack_name",
    "record_end",
    "record_snapshot",
    "text_packs",
]


class ContentRecord(NamedTuple):
    """Bytes by both digests, and where the origin has them."""

    sha1: bytes
    identity: int
    raw_bytes: int
    stored_bytes: int
    method: str
    pack: int
    place: int
    slot: int


class CheckRecord(NamedTuple):
    """One check. `outcome` is None when it brought a version."""

    url: str
    time: int
    status: int
    head: int | None
    outcome: int | None
    number: int | None
    meaningful: int | None
    extra: str | None
    title: str | None
    content: ContentRecord | None

    @property
    def is_version(self) -> bool:
        """Whether the check brought a version."""
        return self.outcome is None


class DocumentRecord(NamedTuple):
    """Everything that is published of one URL, its checks oldest first."""

    url: str
    title: str | None
    checks: list[CheckRecord]


class MissingContent(NamedTuple):
    """A content that has to be fetched, and one check that tells of it."""

    content: ContentRecord
    check: CheckRecord


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """What an archive, or a complete clone of it, counts."""

    documents: int
    versions: int
    checks: int
    contents: int
    raw_bytes: int


_RESOURCES = "SELECT id, url, title FROM resource WHERE checked IS NOT NULL ORDER BY id"
_VERSIONS = (
    "SELECT v.resource, v.time, v.status, v.head, v.meaningful, v.extra, "
    "c.sha1, c.identity, c.raw_bytes, c.stored_bytes, c.method, c.pack, c.place, c.slot "
    "FROM version v JOIN content c ON c.id = v.content ORDER BY v.resource, v.number"
)
_CAPTURES = (
    "SELECT p.resource, p.time, p.status, p.outcome, p.number, p.head, p.extra, "
    "c.sha1, c.identity, c.raw_bytes, c.stored_bytes, c.method, c.pack, c.place, c.slot "
    "FROM capture p LEFT JOIN content c ON c.id = p.content ORDER BY p.resource, p.time"
)
_HEADS = (
    "SELECT id, data FROM head WHERE id IN (SELECT head FROM version) "
    "OR id IN (SELECT head FROM capture WHERE head IS NOT NULL)"
)
_PLACES = (
    "SELECT pack, max(place) FROM content WHERE method != ? AND (id IN (SELECT content FROM version) "
    "OR id IN (SELECT content FROM capture WHERE content IS NOT NULL)) GROUP BY pack"
)
_ABSENT = (
    "SELECT count(*) FROM content WHERE method = ? AND (id IN (SELECT content FROM version) "
    "OR id IN (SELECT content FROM capture WHERE content IS NOT NULL))"
)


class RecordSnapshot:
    """The record at one moment, whatever is written meanwhile."""

    def __init__(self, snapshot: DatabaseSnapshot) -> None:
        self._snapshot = snapshot

    def last_places(self) -> dict[int, int]:
        """For each pack that something refers to, where its last such record begins."""
        return {int(pack): int(place) for pack, place in self._snapshot.all(_PLACES, (ABSENT,))}

    def count_absent(self) -> int:
        """How many contents this archive itself has not got."""
        return int(self._snapshot.all(_ABSENT, (ABSENT,))[0][0])

    def headers(self) -> Iterator[tuple[int, Headers]]:
        """All lists of headers that checks refer to, by their numbers."""
        for number, data in self._snapshot.stream(_HEADS):
            yield int(number), HeaderRecords.read(bytes(data))

    def documents(self) -> Iterator[DocumentRecord]:
        """All URLs that were ever checked."""
        versions, captures = _Grouped(self._snapshot.stream(_VERSIONS)), _Grouped(self._snapshot.stream(_CAPTURES))
        for number, url, title in self._snapshot.stream(_RESOURCES):
            checks = [_version(url, row) for row in versions.of(number)]
            checks += [_capture(url, row) for row in captures.of(number)]
            yield DocumentRecord(url, title, sorted(checks, key=lambda check: check.time))


@contextmanager
def record_snapshot(archive: Archive) -> Iterator[RecordSnapshot]:
    """The record as it is now; readers and writers go on beside it."""
    with archive.catalog.database.snapshot() as snapshot:
        yield RecordSnapshot(snapshot)


class _Grouped:
    """Rows in the order of their first column, handed out group by group."""

    def __init__(self, rows: Iterator[tuple[Any, ...]]) -> None:
        self._rows = rows
        self._next = next(rows, None)

    def of(self, number: int) -> list[tuple[Any, ...]]:
        """The rows of this resource, without its number; rows of resources that are passed over are dropped."""
        found = []
        while self._next is not None and self._next[0] <= number:
            if self._next[0] == number:
                found.append(self._next[1:])
            self._next = next(self._rows, None)
        return found


def _version(url: str, row: tuple[Any, ...]) -> CheckRecord:
    time, status, head, meaningful, extra, *content = row
    return CheckRecord(url, time, status, head, None, None, meaningful, extra, None, _content(content))


def _capture(url: str, row: tuple[Any, ...]) -> CheckRecord:
    time, status, outcome, number, head, extra, *content = row
    kept = _content(content) if content[0] is not None else None
    return CheckRecord(url, time, status, head, outcome, number, None, extra, None, kept)


def _content(row: list[Any]) -> ContentRecord:
    sha1, *rest = row
    return ContentRecord(bytes(sha1), *rest)


def pack_name(archive: Archive, pack: int) -> str:
    """The name of a pack where it lies; PackGone when a compaction has removed it."""
    return archive.store.name_of(pack)


def text_packs(archive: Archive, pack: int) -> set[int]:
    """The other packs without which the contents of this one cannot be read; PackGone when it is gone."""
    return archive.store.text_packs(pack)


def record_end(archive: Archive, pack: int, place: int) -> int:
    """Offset behind the record that begins at a place."""
    return archive.store.end_of(ContentPlace(pack, place, 0))


def pack_bytes(archive: Archive, pack: int, start: int, length: int) -> bytes:
    """Bytes of a pack as they are; fewer only at its end. PackGone when it is gone."""
    return archive.store.raw(pack, start, length)


class RemotePacks(Protocol):
    """Packs of an origin by their names."""

    def sizes(self) -> Mapping[str, int]:
        """All packs that the origin publishes."""

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Bytes of one of them."""


class _RemoteBackend(LocalBackend):
    """Packs that lie elsewhere, as a store reads them."""

    def __init__(self, packs: RemotePacks) -> None:
        super().__init__(Path("origin"))
        self._packs = packs

    def list(self) -> Mapping[str, int]:
        """See `Backend.list`."""
        return self._packs.sizes()

    def read(self, name: str, offset: int, length: int) -> bytes:
        """See `Backend.read`."""
        return self._packs.read(name, offset, length)


def decode_contents(packs: RemotePacks, contents: Iterable[ContentRecord]) -> list[bytes]:
    """Bodies out of an origin's packs; Damaged unless each is what the origin's index promises."""
    store = Store.open(_RemoteBackend(packs), StoreSettings(), write=False)
    return [checked_body(store, content) for content in contents]


def checked_body(store: Store, content: ContentRecord) -> bytes:
    """The body at a content's place; Damaged unless it is the content that the origin's index promises."""
    try:
        body = store.read(ContentPlace(content.pack, content.place, content.slot), content.stored_bytes).body
    except Damaged as error:
        raise _broken(content) from error
    if identify(body) != Identity(content.sha1, content.identity):
        raise _broken(content)
    return body


def _broken(content: ContentRecord) -> Damaged:
    return Damaged(
        f"content {digest_text(content.sha1)} of the origin is not what its index promises; nothing was taken over",
        VERIFY._replace(lead="ask the publisher to run", tail=" and publish again"),
    )
