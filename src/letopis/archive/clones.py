"""The record of a clone: updated to what its origin published, and filled with the contents that were fetched.

Rows are compared before they are written, so that an update can be repeated after a kill, and a version keeps its id
while its time and content stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from letopis.archive.archive import Archive
from letopis.archive.details import packed_details
from letopis.archive.records import PUBLISHED_KINDS, PackNote
from letopis.archive.replica import (
    BesideRecord,
    CheckRecord,
    ContentRecord,
    MissingContent,
    RecordCounts,
    checked_body,
    text_packs,
)
from letopis.archive.requests import PartedExtra
from letopis.binary import write_parts_durably
from letopis.catalog import ABSENT, CaptureRow, ContentRow, Cursor, ResourceRow, VersionRow
from letopis.catalog.contents import RenderingSource
from letopis.catalog.schema import has_table
from letopis.catalog.sets import SetPartRow
from letopis.config import DatabaseSettings, Settings
from letopis.errors import Busy, Damaged, NotReady, Refused, UnknownVersion
from letopis.model import Headers
from letopis.store import AppendResult, PackGone, VersionItem
from letopis.store.pack_format import encode_pack_header

_OWN_NUMBERS = 1 << 23
"""The own logs of a clone are numbered from the first multiple of this above all packs of its origin."""
HasContent = Callable[[ContentRecord], bool]
"""Whether the clone has the pack file of the origin with a content."""
_KEYS_AT_ONCE = 300
"""SURT keys per transaction."""
_NO_NUMBER = 10**8
"""Names of packs have eight digits."""
_CHECK_OF_CONTENT = (
    "SELECT r.url, t.time, t.status, t.head, {version} FROM {table} t JOIN resource r ON r.id = t.resource "
    "WHERE t.content = ? LIMIT 1"
)


_SENT_CONTENT = (
    "SELECT u.url, v.time, v.status, r.head FROM rendering r JOIN version v ON v.id = r.version "
    "JOIN resource u ON u.id = v.resource WHERE r.content = ? LIMIT 1"
)
_PART_CONTENT = (
    "SELECT u.url, s.time, s.part, s.data FROM capture_set s JOIN resource u ON u.id = s.resource "
    "WHERE s.content = ? LIMIT 1"
)
_SENT, *_SET_KINDS = PUBLISHED_KINDS


class CloneRecord:
    """The record of a clone, opened by the process that updates it (`Archive(following=True)`)."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._catalog = archive.catalog

    def has(self, content: ContentRecord) -> bool:
        """Whether these bytes are here, in any pack."""
        found = self._catalog.contents.find(content.identity, content.sha1)
        return found is not None and found.method != ABSENT

    def require_body(self, content: ContentRecord) -> None:
        """Reads a content from a file that has just arrived; Damaged if it is not there."""
        checked_body(self._archive.store, content)

    def packs(self) -> set[int]:
        """The packs that the record refers to."""
        return self._catalog.contents.packs()

    def text_packs(self, pack: int) -> set[int]:
        """The other packs without which the contents of this one cannot be read; none of one that is not here."""
        with suppress(PackGone):
            return text_packs(self._archive, pack)
        return set()

    def absent(self) -> int:
        """How many contents are still to be fetched."""
        return self._catalog.contents.absent()

    def counts(self) -> RecordCounts:
        """What the clone counts now."""
        found = self._catalog.totals()
        contents = self._catalog.contents.count_checked()
        return RecordCounts(found.documents, found.versions, found.checks, contents, found.raw_bytes)

    def contradictions(self) -> Iterator[str]:
        """Sentences about tables that are inconsistent; none if there are no problems."""
        return self._catalog.integrity()

    def settle(self) -> None:
        """Marks that everything in the packs that is not in the record must stay hidden."""
        with self._archive.transaction():
            pass

    def keep(self, pairs: Sequence[tuple[MissingContent, bytes]], heads: Mapping[int, Headers]) -> None:
        """Appends contents to the clone's own log and enters their places, in one durable step."""
        with self._archive.transaction() as (cursor, store):
            placed = store.append([_pack_item(need, body, heads) for need, body in pairs])
            store.sync()
            for (need, _), where in zip(pairs, placed, strict=True):
                self._enter(cursor, need.content, where)

    def _enter(self, cursor: Cursor, content: ContentRecord, where: AppendResult) -> None:
        assert where.place is not None
        contents = self._catalog.contents
        found = contents.find(content.identity, content.sha1, cursor)
        if found is not None:
            contents.move(cursor, [(where.stored_bytes, where.method, *where.place, found.id)])
            return
        fields = (content.identity, content.sha1, content.raw_bytes, where.stored_bytes, where.method)
        contents.add(cursor, ContentRow(0, *fields, *where.place))

    def apply(
        self,
        groups: Iterable[tuple[bytes, Mapping[str, Sequence[CheckRecord]]]],
        heads: Mapping[int, Headers],
        held: HasContent,
        *,
        repack: bool,
    ) -> None:
        """Makes the URLs of some SURT keys equal to those of the origin, some hundreds of keys per transaction.

        Contents that nothing refers to any more are forgotten at the end.
        """
        reconciler = _Reconciler(self._archive, heads, held, repack=repack)
        waiting = iter(groups)
        while batch := list(islice(waiting, _KEYS_AT_ONCE)):
            self._ensure_tables(one.beside for _, found in batch for checks in found.values() for one in checks)
            with self._catalog.transaction() as cursor:
                for key, addresses in batch:
                    reconciler.key(cursor, key, addresses)
        with self._catalog.transaction() as cursor:
            self._catalog.renderings.drop_orphans(cursor)
            self._catalog.sets.drop_orphans(cursor)
            self._catalog.contents.drop_unused(cursor)

    def _ensure_tables(self, beside: Iterable[Sequence[BesideRecord]]) -> None:
        """Numbers of the stored values beside checks, once there are any."""
        kinds = {one.kind for several in beside for one in several}
        if _SENT in kinds:
            self._catalog.renderings.ensure()
        if kinds - {_SENT}:
            self._catalog.sets.ensure()


def _pack_item(need: MissingContent, body: bytes, heads: Mapping[int, Headers]) -> VersionItem:
    check, beside = need.check, need.beside
    if beside is not None:
        sent = PackNote(check.status, heads.get(beside.head or 0, ()), version=False)
        note = sent.pack() if beside.kind == _SENT else beside.data
        key = f"{beside.kind} {check.url}".encode("utf-8", "surrogatepass")
        return VersionItem(key, check.time, note, need.content.sha1, body)
    headers = heads.get(check.head, ()) if check.head is not None else ()
    plain = PackNote(check.status, headers, version=check.is_version).pack()
    return VersionItem(check.url.encode("utf-8", "surrogatepass"), check.time, plain, need.content.sha1, body)


class _Reconciler:
    """Updates rows to match records, URL by URL, inside the transaction of the caller."""

    def __init__(self, archive: Archive, heads: Mapping[int, Headers], held: HasContent, *, repack: bool) -> None:
        self._catalog = archive.catalog
        self._heads = heads
        self._held = held
        self._repack = repack

    def key(self, cursor: Cursor, key: bytes, addresses: Mapping[str, Sequence[CheckRecord]]) -> None:
        """Makes all URLs of one SURT key equal to what the index has."""
        for url, checks in addresses.items():
            self._address(cursor, url, checks)
        name = key.decode("utf-8", "surrogatepass")
        known = cursor.all("SELECT r.url FROM surt s JOIN resource r ON r.id = s.resource WHERE s.name = ?", (name,))
        for (url,) in known:
            if url not in addresses:
                self._address(cursor, url, ())

    def _address(self, cursor: Cursor, url: str, checks: Sequence[CheckRecord]) -> None:
        row = self._catalog.resources.ensure(cursor, url)
        newest = self._versions(cursor, row, [check for check in checks if check.is_version])
        self._captures(cursor, row, [check for check in checks if not check.is_version])
        self._beside(cursor, row, checks)
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

    def _versions(self, cursor: Cursor, row: ResourceRow, checks: Sequence[CheckRecord]) -> int | None:
        """The id of the newest version."""
        old = {(one.time, one.content): one for one in self._catalog.versions.of(row.id, cursor)}
        newest = None
        for number, check in enumerate(checks):
            assert check.content is not None
            content = self._content(cursor, check.content)
            fields = (content, self._head(cursor, check), check.status, check.meaningful, self._extra(cursor, check))
            wanted = VersionRow(0, row.id, number, check.time, *fields)
            known = old.pop((check.time, content), None)
            newest = self._catalog.versions.add(cursor, wanted) if known is None else known.id
            if known is not None and known[1:] != wanted[1:]:
                self._change(cursor, known.id, wanted)
        for gone in old.values():
            cursor.remove("version", "id = ?", (gone.id,))
        return newest

    def _beside(self, cursor: Cursor, row: ResourceRow, checks: Sequence[CheckRecord]) -> None:
        """Answers of servers beside rendered versions, and the parts of capture sets."""
        parts = []
        for time, one in ((check.time, one) for check in checks for one in check.beside):
            content = self._content(cursor, one.content)
            if one.kind != _SENT:
                parts.append(SetPartRow(row.id, time, _SET_KINDS.index(one.kind), content, one.data))
            elif (version := self._catalog.versions.at(row.id, len(checks), time, cursor)) is not None:
                head = self._catalog.heads.add(cursor, self._headers(one.head))
                self._catalog.renderings.add(cursor, version.id, RenderingSource(content, head))
        self._catalog.sets.replace(cursor, row.id, parts)

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
        extra = self._extra(cursor, check)
        return CaptureRow(resource, check.time, check.status, outcome, check.number, head, content, extra)

    def _extra(self, cursor: Cursor, check: CheckRecord) -> str | None:
        """The details of a check, which refer to records by the numbers that these have here."""

        def here(number: int) -> int:
            return self._catalog.heads.add(cursor, self._headers(number))

        _, request, page = parted = PartedExtra(check.extra, check.request, check.page)
        if request is not None:
            parted = parted._replace(request=request._replace(record=here(request.record)))
        if page is not None:
            parted = parted._replace(page=page._replace(record=here(page.record)))
        return packed_details(parted.joined())

    def _drop_capture(self, cursor: Cursor, resource: int, time: int) -> None:
        cursor.run("DELETE FROM capture WHERE resource = ? AND time = ?", (resource, time))

    def _head(self, cursor: Cursor, check: CheckRecord) -> int:
        return self._catalog.heads.add(cursor, self._headers(check.head))

    def _headers(self, number: int | None) -> Headers:
        try:
            return self._heads[number or 0]
        except KeyError:
            raise Damaged(f"the published index lacks headers {number}; publish the archive again") from None

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


def clone_settings(settings: Settings) -> Settings:
    """A clone is in its folder, wherever other archives of these settings are."""
    return replace(settings, database=DatabaseSettings(), store=replace(settings.store, url=""))


def begin_clone_log(packs: Path, origin: int) -> int:
    """The log for the clone's own contents, whose numbers never collide with those of the origin; its first number.

    `origin` is the highest number there: an origin may have been a clone earlier.
    """
    numbers = [int(path.stem) for path in packs.glob("*.log") if path.stem.isdecimal()]
    begun = max((number for number in numbers if number % _OWN_NUMBERS == 0), default=0)
    if origin < begun:
        return begun
    if begun:
        raise Refused(f"the origin has pack {origin}, and numbers from {begun} on belong to this clone; clone it again")
    first = (origin // _OWN_NUMBERS + 1) * _OWN_NUMBERS
    if first >= _NO_NUMBER:
        raise Refused(f"the origin has pack {origin}, and no numbers are left for a clone of it")
    write_parts_durably(packs / f"{first:08d}.log", [encode_pack_header(0, first)])
    return first


def fetch_missing_with(archive: Archive, fetch: Callable[[MissingContent], bytes]) -> None:
    """Lets a clone fetch missing contents when they are read, and keep them; usable from any thread."""

    def supply(number: int) -> bytes:
        row = archive.catalog.contents.by_id(number)
        if row is None:
            raise UnknownVersion(f"content {number} is not in this archive any more")
        if row.method != ABSENT:
            return archive.answers.content(row.id)
        need = _missing(archive, row)
        body = fetch(need)
        with suppress(NotReady, Busy):
            # Without the right to write the content can still be read.
            _keep(archive, need, body)
        return body

    archive.answers.supplier = supply


def _missing(archive: Archive, row: ContentRow) -> MissingContent:
    ask = archive.catalog.database.one
    place = (row.pack, row.place, row.slot)
    content = ContentRecord(row.sha1, row.identity, row.raw_bytes, row.stored_bytes, row.method, *place)
    found = ask(_CHECK_OF_CONTENT.format(table="version", version=1), (row.id,))
    found = found or ask(_CHECK_OF_CONTENT.format(table="capture", version=0), (row.id,))
    if found is not None:
        url, time, status, head, version = found
        check = CheckRecord(url, time, status, head, None if version else 0, None, None, None, None, None)
        return MissingContent(content, check)
    return _missing_beside(archive, content, row.id)


def _missing_beside(archive: Archive, content: ContentRecord, number: int) -> MissingContent:
    database = archive.catalog.database
    sent = database.one(_SENT_CONTENT, (number,)) if has_table(database, "rendering") else None
    part = database.one(_PART_CONTENT, (number,)) if has_table(database, "capture_set") and sent is None else None
    if sent is not None:
        url, time, status, head = sent
        beside = BesideRecord(_SENT, content, int(head))
    elif part is not None:
        url, time, kind, data = part
        status, beside = 0, BesideRecord(_SET_KINDS[kind], content, None, bytes(data))
    else:
        raise UnknownVersion(f"content {number} belongs to no version any more")
    check = CheckRecord(url, time, status, None, 0, None, None, None, None, None)
    return MissingContent(content, check, beside)


def _keep(archive: Archive, need: MissingContent, body: bytes) -> None:
    head = need.check.head if need.beside is None else need.beside.head
    heads = {} if head is None else {head: archive.catalog.heads.get(head)}
    with Archive(archive.folder, settings=clone_settings(archive.settings), following=True) as clone:
        CloneRecord(clone).keep([(need, body)], heads)
