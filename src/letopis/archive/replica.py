"""The record as it is published: a snapshot of checks and contents as values, and contents from published packs.

Queries name every column that is published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from letopis.archive.archive import Archive
from letopis.archive.details import plain_details
from letopis.archive.records import PUBLISHED_KINDS, Identity, digest_text, identify
from letopis.archive.requests import PageReference, RequestReference, parted_extra
from letopis.catalog import ABSENT, DatabaseSnapshot, HeaderRecords
from letopis.catalog.schema import has_table
from letopis.config import StoreSettings
from letopis.errors import VERIFY, Damaged
from letopis.model import Headers
from letopis.store import ContentPlace, LocalBackend, PackGone, Store
from letopis.store.packs import pack_number
from letopis.tuples import NamedTuple

__all__ = [
    "ABSENT", "PUBLISHED_KINDS", "BesideRecord", "CheckRecord", "ContentRecord", "DocumentRecord", "MissingContent",
    "PackGone", "RecordCounts", "RecordSnapshot", "RemotePacks", "checked_body", "decode_contents", "pack_bytes",
    "pack_name", "record_end", "record_snapshot", "text_packs",
]  # fmt: skip


class ContentRecord(NamedTuple):
    """A content by both digests, and its place at the origin."""

    sha1: bytes
    identity: int
    raw_bytes: int
    stored_bytes: int
    method: str
    pack: int
    place: int
    slot: int


class BesideRecord(NamedTuple):
    """A content stored with a check: the response of a rendered page, or a part of a capture set.

    `kind` is one of `PUBLISHED_KINDS`; `head` are the headers of the response, `data` the details of a part.
    """

    kind: str
    content: ContentRecord
    head: int | None = None
    data: bytes = b""


class CheckRecord(NamedTuple):
    """One check. `outcome` is None if it created a version.

    `request` and `page` refer to header lists by their numbers, as `head` does.
    """

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
    beside: tuple[BesideRecord, ...] = ()
    request: RequestReference | None = None
    page: PageReference | None = None

    @property
    def contents(self) -> tuple[ContentRecord, ...]:
        """Its own content, and those beside it."""
        return (*((self.content,) if self.content else ()), *(one.content for one in self.beside))

    @property
    def is_version(self) -> bool:
        """Whether the check brought a version."""
        return self.outcome is None


class DocumentRecord(NamedTuple):
    """Everything that is published about one URL, its checks oldest first."""

    url: str
    title: str | None
    checks: list[CheckRecord]


class MissingContent(NamedTuple):
    """A content that must be fetched, a check that refers to it, and as which kind if it is not the content of the
    check.
    """

    content: ContentRecord
    check: CheckRecord
    beside: BesideRecord | None = None


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """The numbers of an archive, or of a complete clone of it."""

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
_SENT = (
    "SELECT v.resource, v.time, 0, r.head, NULL, "
    "c.sha1, c.identity, c.raw_bytes, c.stored_bytes, c.method, c.pack, c.place, c.slot "
    "FROM rendering r JOIN version v ON v.id = r.version JOIN content c ON c.id = r.content "
    "ORDER BY v.resource, v.number"
)
_SET_PARTS = (
    "SELECT s.resource, s.time, s.part + 1, NULL, s.data, "
    "c.sha1, c.identity, c.raw_bytes, c.stored_bytes, c.method, c.pack, c.place, c.slot "
    "FROM capture_set s JOIN content c ON c.id = s.content ORDER BY s.resource, s.time, s.part"
)
_HEADS = (
    "SELECT id, data FROM head WHERE id IN (SELECT head FROM version) "
    "OR id IN (SELECT head FROM capture WHERE head IS NOT NULL){beside}"
)
_EXTRAS = (
    "SELECT extra FROM version WHERE extra IS NOT NULL UNION ALL SELECT extra FROM capture WHERE extra IS NOT NULL"
)
_HEAD = "SELECT id, data FROM head WHERE id = ?"
_PLACES = "SELECT pack, max(place) FROM content WHERE method != ? AND ({referred}) GROUP BY pack"
_ABSENT = "SELECT count(*) FROM content WHERE method = ? AND ({referred})"
_REFERRED = "id IN (SELECT content FROM version) OR id IN (SELECT content FROM capture WHERE content IS NOT NULL)"
_REFERRED_BESIDE = {
    "rendering": " OR id IN (SELECT content FROM rendering)",
    "capture_set": " OR id IN (SELECT content FROM capture_set)",
}


class RecordSnapshot:
    """The record at one moment, whatever is written in the meantime."""

    def __init__(self, snapshot: DatabaseSnapshot, beside: Sequence[str]) -> None:
        """`beside` are the tables of contents beside checks, as far as the archive has them."""
        self._snapshot = snapshot
        self._beside = beside
        self._referred = "".join((_REFERRED, *(_REFERRED_BESIDE[table] for table in beside)))

    def last_places(self) -> dict[int, int]:
        """For each pack that is referred to, where the last such record begins."""
        return {
            int(pack): int(place)
            for pack, place in self._snapshot.all(_PLACES.format(referred=self._referred), (ABSENT,))
        }

    def count_absent(self) -> int:
        """How many contents this archive does not have."""
        return int(self._snapshot.all(_ABSENT.format(referred=self._referred), (ABSENT,))[0][0])

    def headers(self) -> Iterator[tuple[int, Headers]]:
        """All lists of headers that checks refer to, by their numbers."""
        sent = " OR id IN (SELECT head FROM rendering)" if "rendering" in self._beside else ""
        for number, data in self._snapshot.stream(_HEADS.format(beside=sent)):
            yield int(number), HeaderRecords.read(bytes(data))
        for number in sorted(self._referred_records()):
            for known, data in self._snapshot.all(_HEAD, (number,)):
                yield int(known), HeaderRecords.read(bytes(data))

    def _record(self, number: int) -> Headers:
        return next((HeaderRecords.read(bytes(data)) for _, data in self._snapshot.all(_HEAD, (number,))), ())

    def _referred_records(self) -> set[int]:
        """Numbers of the shared parts of requests, and of the pages of sets; few, however many checks refer to them."""
        parted = (parted_extra(extra) for (extra,) in self._snapshot.stream(_EXTRAS))
        return {one.record for _, *references in parted for one in references if one is not None}

    def documents(self) -> Iterator[DocumentRecord]:
        """All URLs that were ever checked."""
        versions, captures = _Grouped(self._snapshot.stream(_VERSIONS)), _Grouped(self._snapshot.stream(_CAPTURES))
        questions = {"rendering": _SENT, "capture_set": _SET_PARTS}
        beside = [_Grouped(self._snapshot.stream(questions[table])) for table in self._beside]
        record = lru_cache(maxsize=1000)(self._record)
        for number, url, title in self._snapshot.stream(_RESOURCES):
            checks = [_version(url, row) for row in versions.of(number)]
            checks += [_capture(url, row) for row in captures.of(number)]
            checks = [_with_whole_request(check, record) for check in checks]
            checks = _with_beside(checks, [row for grouped in beside for row in grouped.of(number)])
            yield DocumentRecord(url, title, sorted(checks, key=lambda check: check.time))


@contextmanager
def record_snapshot(archive: Archive) -> Iterator[RecordSnapshot]:
    """The record as it is now; readers and writers are not blocked."""
    database = archive.catalog.database
    beside = [table for table in ("rendering", "capture_set") if has_table(database, table)]
    with database.snapshot() as snapshot:
        yield RecordSnapshot(snapshot, beside)


class _Grouped:
    """Rows in the order of their first column, returned group by group."""

    def __init__(self, rows: Iterator[tuple[Any, ...]]) -> None:
        self._rows = rows
        self._next = next(rows, None)

    def of(self, number: int) -> list[tuple[Any, ...]]:
        """The rows of this resource, without its number; rows of skipped resources are dropped."""
        found = []
        while self._next is not None and self._next[0] <= number:
            if self._next[0] == number:
                found.append(self._next[1:])
            self._next = next(self._rows, None)
        return found


def _version(url: str, row: tuple[Any, ...]) -> CheckRecord:
    time, status, head, meaningful, extra, *content = row
    text, request, page = parted_extra(plain_details(extra))
    return CheckRecord(
        url, time, status, head, None, None, meaningful, text, None, _content(content), (), request, page
    )


def _capture(url: str, row: tuple[Any, ...]) -> CheckRecord:
    time, status, outcome, number, head, extra, *content = row
    kept = _content(content) if content[0] is not None else None
    text, request, page = parted_extra(plain_details(extra))
    return CheckRecord(url, time, status, head, outcome, number, None, text, None, kept, (), request, page)


def _with_whole_request(check: CheckRecord, record: Callable[[int], Headers]) -> CheckRecord:
    """Published requests quote nothing from records of this catalogue."""
    request = check.request and check.request.spelled_out(record)
    return check if request is check.request else check._replace(request=request)


def _with_beside(checks: list[CheckRecord], rows: list[tuple[Any, ...]]) -> list[CheckRecord]:
    found: dict[int, list[BesideRecord]] = {}
    for time, kind, head, data, *content in rows:
        one = BesideRecord(PUBLISHED_KINDS[kind], _content(content), head, bytes(data or b""))
        found.setdefault(time, []).append(one)
    return [check._replace(beside=tuple(found.get(check.time, ()))) for check in checks] if found else checks


def _content(row: list[Any]) -> ContentRecord:
    sha1, *rest = row
    return ContentRecord(bytes(sha1), *rest)


def pack_name(archive: Archive, pack: int) -> str:
    """The name of a pack; PackGone if a compaction has removed it."""
    return archive.store.name_of(pack)


def text_packs(archive: Archive, pack: int) -> set[int]:
    """The other packs without which the contents of this one cannot be read; PackGone when it is gone."""
    return archive.store.text_packs(pack)


def record_end(archive: Archive, pack: int, place: int) -> int:
    """Offset after the record that begins at a place."""
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
    """Remote packs, as a store reads them."""

    def __init__(self, packs: RemotePacks) -> None:
        super().__init__(Path("origin"))
        self._packs = packs

    def list(self, above: int = 0) -> Mapping[str, int]:
        """See `Backend.list`."""
        return {name: size for name, size in self._packs.sizes().items() if pack_number(name) > above}

    def size(self, name: str) -> int:
        """See `Backend.size`."""
        return self._packs.sizes()[name]

    def read(self, name: str, offset: int, length: int) -> bytes:
        """See `Backend.read`."""
        return self._packs.read(name, offset, length)


def decode_contents(packs: RemotePacks, contents: Iterable[ContentRecord]) -> list[bytes]:
    """Bodies from the packs of an origin; Damaged unless each matches the index of the origin."""
    store = Store.open(_RemoteBackend(packs), StoreSettings(), write=False)
    return [checked_body(store, content) for content in contents]


def checked_body(store: Store, content: ContentRecord) -> bytes:
    """The body at the place of a content; Damaged unless it matches the index of the origin."""
    try:
        body = store.read(ContentPlace(content.pack, content.place, content.slot), content.stored_bytes).body
    except Damaged as error:
        raise _broken(content) from error
    if identify(body) != Identity(content.sha1, content.identity):
        raise _broken(content)
    return body


def _broken(content: ContentRecord) -> Damaged:
    return Damaged(
        f"content {digest_text(content.sha1)} of the origin does not match its index; nothing was changed",
        VERIFY._replace(lead="ask the publisher to run", tail=" and publish again"),
    )
