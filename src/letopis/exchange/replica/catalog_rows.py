"""Rows of the catalogue as records of the index, and rows of a clone made equal to such records, address by address.

Reading names every column that is ever published. Writing compares before it writes, so that it can be done again
after a kill, and a version keeps its id while its time and content stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from letopis.catalog import (
    ABSENT,
    CaptureRow,
    Catalog,
    ContentRow,
    Cursor,
    DatabaseSnapshot,
    HeaderRecords,
    ResourceRow,
    VersionRow,
)
from letopis.errors import Damaged
from letopis.exchange.replica.index_records import CheckRecord, ContentRecord, check_line, head_line, surt_key
from letopis.exchange.replica.release import ReleaseCounts
from letopis.model import Headers

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


def last_pack_places(snapshot: DatabaseSnapshot) -> dict[int, int]:
    """For each pack that something refers to, where its last such record begins."""
    return {int(pack): int(place) for pack, place in snapshot.all(_PLACES, (ABSENT,))}


def count_absent(snapshot: DatabaseSnapshot) -> int:
    """How many contents this archive itself has not got."""
    return int(snapshot.all(_ABSENT, (ABSENT,))[0][0])


def index_lines(snapshot: DatabaseSnapshot, progress: Callable[[int], None]) -> tuple[list[bytes], ReleaseCounts]:
    """All header lists and checks, unsorted, and their counts; `progress` hears how many addresses are done."""
    found = [head_line(int(number), HeaderRecords.read(bytes(data))) for number, data in snapshot.stream(_HEADS)]
    versions, captures = _Grouped(snapshot.stream(_VERSIONS)), _Grouped(snapshot.stream(_CAPTURES))
    documents = raw_bytes = seen = 0
    contents: set[tuple[bytes, int]] = set()
    for number, url, title in snapshot.stream(_RESOURCES):
        told = [_version(url, row) for row in versions.of(number)]
        seen += len(told)
        raw_bytes += sum(record.content.raw_bytes for record in told if record.content)
        told = sorted(told + [_capture(url, row) for row in captures.of(number)], key=lambda record: record.time)
        contents.update(record.content[:2] for record in told if record.content)
        found += _lines_of(url, title, told)
        documents += 1
        progress(documents)
    checks = sum(1 for line in found if not line.startswith(b"!"))
    return found, ReleaseCounts(documents, seen, checks, len(contents), raw_bytes)


def _lines_of(url: str, title: str | None, told: list[CheckRecord]) -> Iterator[bytes]:
    key = surt_key(url)
    for place, record in enumerate(told):
        yield check_line(key, record if place else record._replace(title=title))


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


HasContent = Callable[[ContentRecord], bool]
"""Whether the clone has the origin's pack file in which a content lies."""


class AppliedRows(NamedTuple):
    """How many rows a batch changed."""

    versions_added: int = 0
    versions_removed: int = 0


class CatalogReconciler:
    """Writes inside the caller's transaction."""

    def __init__(self, catalog: Catalog, heads: Mapping[int, Headers], held: HasContent, *, repack: bool) -> None:
        self._catalog = catalog
        self._heads = heads
        self._held = held
        self._repack = repack

    def key(self, cursor: Cursor, key: bytes, addresses: Mapping[str, Sequence[CheckRecord]]) -> AppliedRows:
        """Makes all addresses of one SURT key what the index says of them."""
        done = [self._address(cursor, url, checks) for url, checks in addresses.items()]
        name = key.decode("utf-8", "surrogatepass")
        known = cursor.all("SELECT r.url FROM surt s JOIN resource r ON r.id = s.resource WHERE s.name = ?", (name,))
        done += [self._address(cursor, url, ()) for (url,) in known if url not in addresses]
        return AppliedRows(sum(one[0] for one in done), sum(one[1] for one in done))

    def _address(self, cursor: Cursor, url: str, checks: Sequence[CheckRecord]) -> AppliedRows:
        row = self._catalog.resources.ensure(cursor, url)
        newest, applied = self._versions(cursor, row, [check for check in checks if check.is_version])
        self._captures(cursor, row, [check for check in checks if not check.is_version])
        versions = sum(check.is_version for check in checks)
        last = max((check.time for check in checks), default=None)
        title = checks[0].title if checks else None
        cursor.run(
            "UPDATE resource SET versions = ?, newest = ?, checked = ?, title = ? WHERE id = ?",
            (versions, newest, last, title, row.id),
        )
        if checks:
            self._catalog.resources.list_captured(cursor, row)
        else:
            cursor.run("DELETE FROM surt WHERE resource = ?", (row.id,))
        return applied

    def _versions(
        self, cursor: Cursor, row: ResourceRow, checks: Sequence[CheckRecord]
    ) -> tuple[int | None, AppliedRows]:
        """The id of the newest version, and what changed."""
        old = {(one.time, one.content): one for one in self._catalog.versions.of(row.id, cursor)}
        newest, added = None, 0
        for number, check in enumerate(checks):
            assert check.content is not None
            content = self._content(cursor, check.content)
            fields = (content, self._head(cursor, check), check.status, check.meaningful, check.extra)
            wanted = VersionRow(0, row.id, number, check.time, *fields)
            known = old.pop((check.time, content), None)
            newest = self._catalog.versions.add(cursor, wanted) if known is None else known.id
            added += known is None
            if known is not None and known[1:] != wanted[1:]:
                self._change(cursor, known.id, wanted)
        for gone in old.values():
            cursor.run("DELETE FROM version WHERE id = ?", (gone.id,))
        return newest, AppliedRows(added, len(old))

    def _change(self, cursor: Cursor, number: int, row: VersionRow) -> None:
        cursor.run(
            "UPDATE version SET number = ?, head = ?, status = ?, meaningful = ?, extra = ? WHERE id = ?",
            (row.number, row.head, row.status, row.meaningful, row.extra, number),
        )

    def _captures(self, cursor: Cursor, row: ResourceRow, checks: Sequence[CheckRecord]) -> None:
        old = {one.time: one for one in self._catalog.versions.captures(row.id, cursor)}
        for check in checks:
            wanted = self._capture(cursor, row.id, check)
            known = old.pop(check.time, None)
            if known != wanted:
                self._drop_capture(cursor, row.id, check.time)
                self._catalog.versions.add_capture(cursor, wanted)
        for time in old:
            self._drop_capture(cursor, row.id, time)

    def _capture(self, cursor: Cursor, resource: int, check: CheckRecord) -> CaptureRow:
        head = self._head(cursor, check) if check.head is not None else None
        content = self._content(cursor, check.content) if check.content is not None else None
        outcome = check.outcome or 0
        return CaptureRow(resource, check.time, check.status, outcome, check.number, head, content, check.extra)

    def _drop_capture(self, cursor: Cursor, resource: int, time: int) -> None:
        cursor.run("DELETE FROM capture WHERE resource = ? AND time = ?", (resource, time))

    def _head(self, cursor: Cursor, check: CheckRecord) -> int:
        try:
            return self._catalog.heads.add(cursor, self._heads[check.head or 0])
        except KeyError:
            raise Damaged(f"the published index lacks headers {check.head}; publish the archive again") from None

    def _content(self, cursor: Cursor, content: ContentRecord) -> int:
        """The id of a content; one that is already here stays where it is."""
        held = self._held(content)
        method = content.method if held else ABSENT
        place = (content.pack, content.place, content.slot)
        found = self._catalog.contents.find(content.identity, content.sha1, cursor)
        if found is None:
            fields = (content.identity, content.sha1, content.raw_bytes, content.stored_bytes, method)
            return self._catalog.contents.add(cursor, ContentRow(0, *fields, *place))
        moves = found.method == ABSENT or (self._repack and held)
        if moves and (found.method, *found[6:]) != (method, *place):
            self._catalog.contents.move(cursor, [(content.stored_bytes, method, *place, found.id)])
        return found.id
