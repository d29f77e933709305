"""`letopis publish`: an archive as plain files. The order of writes is in docs/internals/replica-format.md.

Takes no lock of the archive: rows are read from a snapshot and name only bytes that are synced, and packs that are
linked cannot be taken away. Finished packs are linked, logs cut into segments that never change.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from letopis.archive import Archive
from letopis.archive.replica import (
    DocumentRecord,
    PackGone,
    RecordCounts,
    RecordSnapshot,
    pack_bytes,
    pack_name,
    record_end,
    record_snapshot,
    text_packs,
)
from letopis.binary import exclusive_lock, file_sha256, write_errors, write_parts_durably
from letopis.errors import VERIFY, Damaged, Refused, fill_remedy
from letopis.exchange.replica import release as releases
from letopis.exchange.replica.index_records import (
    NAME_RULE,
    PACK_MARK,
    SegmentRecord,
    check_line,
    head_line,
    parse_segment,
    segment_line,
    surt_key,
)
from letopis.exchange.replica.release import PACKS, RELEASE, ArchiveRelease, index_name, is_index_name, segment_name
from letopis.model import rfc3339
from letopis.tuples import NamedTuple
from letopis.zrec import ZrecReader, describe_release, release_path
from letopis.zrec import pack as pack_records

_PIECE = 1 << 20


class PublishedPacks:
    """The `packs` folder of a published archive."""

    def __init__(self, folder: Path, known: Iterable[SegmentRecord]) -> None:
        """`known` are the files of the release before, whose digests are known."""
        self._folder = folder / PACKS
        self._folder.mkdir(parents=True, exist_ok=True)
        self._known: dict[int, list[SegmentRecord]] = {}
        for record in sorted(known):
            self._known.setdefault(record.pack, []).append(record)
        self._texts: dict[int, tuple[int, ...]] = {}
        self.added_bytes = 0
        self.added = 0

    def hold(self, archive: Archive, last: Mapping[int, int]) -> dict[int, tuple[str, int]]:
        """Makes sure that packs stay readable although a compaction may remove them: name and end of each.

        `last` gives for each pack where the last record begins that is to be
        published. `PackGone` when a pack is already removed.
        """
        found = {}
        for pack, place in sorted(last.items()):
            found[pack] = (self._hold(archive, pack), record_end(archive, pack, place))
        for pack in {text for held in found for text in self._texts_of(archive, held)} - found.keys():
            found[pack] = (self._hold(archive, pack), 0)
        return found

    def _hold(self, archive: Archive, pack: int) -> str:
        name = pack_name(archive, pack)
        if name.endswith(".pack") and pack not in self._known:
            self._link(archive.folder / PACKS / name, self._folder / name)
        return name

    def _texts_of(self, archive: Archive, pack: int) -> tuple[int, ...]:
        """The packs that a pack leans on; looked up once, since finished packs never change."""
        if pack not in self._texts:
            known = [record.texts for record in self._known.get(pack, ()) if record.file.endswith(".pack")]
            listed = known[0] if known else None
            self._texts[pack] = tuple(sorted(text_packs(archive, pack))) if listed is None else listed
        return self._texts[pack]

    def publish(self, archive: Archive, held: Mapping[int, tuple[str, int]]) -> list[SegmentRecord]:
        """The files of these packs, written if they are new."""
        return [
            record
            for pack, (name, end) in held.items()
            for record in (
                self._log(archive, pack, name, end) if name.endswith(".log") else [self._pack(archive, pack, name)]
            )
        ]

    def _link(self, source: Path, target: Path) -> None:
        """A second name costs nothing; where there can be none, the bytes are copied later."""
        # An interrupted run may have left a pack of this number that has been rewritten since.
        target.unlink(missing_ok=True)
        with suppress(OSError):
            os.link(source, target)

    def _pack(self, archive: Archive, pack: int, name: str) -> SegmentRecord:
        texts = self._texts_of(archive, pack)
        for record in self._known.get(pack, ()):
            if record.file == name:
                self._check(archive, record)
                return record._replace(texts=texts)
        target = self._folder / name
        if not target.exists():
            write_parts_durably(target, _bytes_of(archive, pack, 0, None))
        self._count(target.stat().st_size)
        return SegmentRecord(pack, 0, name, target.stat().st_size, file_sha256(target), texts)

    def _log(self, archive: Archive, pack: int, name: str, end: int) -> Iterator[SegmentRecord]:
        """What was published of a log, and its new bytes as a separate segment."""
        at = 0
        for record in self._known.get(pack, ()):
            self._check(archive, record)
            at = record.end
            yield record
        if at < end:
            target = self._folder / segment_name(name, at)
            write_parts_durably(target, _bytes_of(archive, pack, at, end))
            self._count(end - at)
            yield SegmentRecord(pack, at, target.name, end - at, file_sha256(target))

    def _check(self, archive: Archive, record: SegmentRecord) -> None:
        """An archive that was put back from an older copy uses numbers again, for other bytes."""
        path = self._folder / record.file
        size = min(record.size, 4096)
        tail = pack_bytes(archive, record.pack, record.end - size, size)
        if not path.exists() or path.stat().st_size != record.size or _tail(path, size) != tail:
            raise Damaged(f"{path} is not what this archive has there; publish into an empty folder")

    def _count(self, size: int) -> None:
        self.added += 1
        self.added_bytes += size

    def retire(self, needed: set[str]) -> int:
        """Removes files that are not needed; how many."""
        gone = [path for path in self._folder.iterdir() if path.name not in needed]
        for path in gone:
            path.unlink()
        return len(gone)


def _bytes_of(archive: Archive, pack: int, start: int, end: int | None) -> Iterator[bytes]:
    while end is None or start < end:
        data = pack_bytes(archive, pack, start, _PIECE if end is None else min(_PIECE, end - start))
        if not data:
            if end is not None:
                raise Damaged(f"pack {pack} ends at {start}, before byte {end}", VERIFY)
            return
        yield data
        start += len(data)


def _tail(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(-size, os.SEEK_END)
        return file.read()


GRACE_SECONDS = 3600.0
_TRIES = 5


class PublishReport(NamedTuple):
    """What a publish wrote. `new` is False when the last release already says it all."""

    serial: int
    new: bool
    documents: int
    versions: int
    checks: int
    index_bytes: int
    records: int
    records_kept: int
    packs: int
    packs_added: int
    bytes_added: int
    files_removed: int


class _IndexDraft(NamedTuple):
    """The text of the index and what goes with it."""

    text: bytes
    counts: RecordCounts
    segments: list[SegmentRecord]


def publish(
    archive: Archive,
    folder: Path,
    *,
    key: bytes | None = None,
    grace: float = GRACE_SECONDS,
    progress: Callable[[int], None] = lambda done: None,
) -> PublishReport:
    """Brings a published folder up to date; visible to readers all at once, at the end.

    `key` signs the release. Files that neither this release nor the one
    before names are removed once the one before is `grace` seconds old.
    """
    with write_errors(folder), exclusive_lock(folder / ".lock", f"publishes to {folder}"):
        before = _last(folder)
        known = _segments(folder / before.index) if before else []
        packs = PublishedPacks(folder, known)
        made = _drafted(archive, packs, progress)
        found, packed = _released(archive, folder, before, made, key)
        removed = _retired(folder, packs, before, found, {*known, *made.segments}, archive.clock(), grace)
    return _report(found, packed, made, packs, removed, before)


def _last(folder: Path) -> ArchiveRelease | None:
    path = folder / RELEASE
    if not path.exists():
        return None
    found = releases.parse_archive_release(path.read_bytes())
    if not (folder / found.index).exists():
        raise Damaged(f"{folder} has lost {found.index}; publish into an empty folder")
    return found


def _segments(index: Path) -> list[SegmentRecord]:
    with ZrecReader(index) as reader:
        return [parse_segment(line) for line in reader.starting(PACK_MARK)]


def _drafted(archive: Archive, packs: PublishedPacks, progress: Callable[[int], None]) -> _IndexDraft:
    """Everything there is at one moment; once more when a compaction was faster."""
    for _ in range(_TRIES - 1):
        with suppress(PackGone):
            return _draft(archive, packs, progress)
    return _draft(archive, packs, progress)


def _draft(archive: Archive, packs: PublishedPacks, progress: Callable[[int], None]) -> _IndexDraft:
    with record_snapshot(archive) as snapshot:
        held = packs.hold(archive, snapshot.last_places())
        _require_complete(snapshot)
        segments = packs.publish(archive, held)
        lines, counts = _index_lines(snapshot, progress)
    lines += [segment_line(record) for record in segments]
    lines.sort()
    return _IndexDraft(b"".join(line + b"\n" for line in lines), counts, segments)


def _index_lines(snapshot: RecordSnapshot, progress: Callable[[int], None]) -> tuple[list[bytes], RecordCounts]:
    """All header lists and checks, unsorted, and their counts; `progress` hears how many addresses are done."""
    lines = [head_line(number, headers) for number, headers in snapshot.headers()]
    heads = len(lines)
    documents = versions = raw_bytes = 0
    contents: set[tuple[bytes, int]] = set()
    for document in snapshot.documents():
        found = [check.content for check in document.checks if check.is_version and check.content]
        versions += len(found)
        raw_bytes += sum(content.raw_bytes for content in found)
        contents.update(check.content[:2] for check in document.checks if check.content)
        lines += _check_lines(document)
        documents += 1
        progress(documents)
    return lines, RecordCounts(documents, versions, len(lines) - heads, len(contents), raw_bytes)


def _check_lines(document: DocumentRecord) -> Iterator[bytes]:
    """The lines of one URL; its title is in the first."""
    key = surt_key(document.url)
    for place, check in enumerate(document.checks):
        yield check_line(key, check if place else check._replace(title=document.title))


def _require_complete(snapshot: RecordSnapshot) -> None:
    missing = snapshot.count_absent()
    if missing:
        raise Refused(
            f"this clone has not fetched {missing} of its contents and cannot publish them", fill_remedy("DIR")
        )


def _released(
    archive: Archive, folder: Path, before: ArchiveRelease | None, made: _IndexDraft, key: bytes | None
) -> tuple[ArchiveRelease, tuple[int, int]]:
    """Packs the index and replaces the release; (release, (records, records kept))."""
    serial = before.serial + 1 if before else 1
    path = folder / index_name(serial)
    path.unlink(missing_ok=True)
    older = folder / before.index if before else None
    moment = archive.clock()
    packed = pack_records(
        made.text, path, separator=b"\n", name_regex=NAME_RULE, dict_from=older, new_dict=older is None, time=moment
    )
    release_path(path).unlink()
    kept = (packed.records, packed.chunks_kept)
    if (
        before
        and older
        and _same(before, packed.release.index_sha256)
        and (key is None) == (before.hmac_sha256 is None)
    ):
        path.unlink()
        return before, kept
    name = before.archive if before else secrets.token_hex(16)
    found = ArchiveRelease(name, serial, rfc3339(moment), path.name, describe_release(path, time=moment), made.counts)
    found = found.signed(key) if key else found
    write_parts_durably(folder / RELEASE, [releases.encode_archive_release(found)])
    return found, kept


def _same(before: ArchiveRelease, index_sha256: str) -> bool:
    """Equal indexes name equal chunks, by 64 bits each; packing the same records again changes nothing."""
    return before.zrec.index_sha256 == index_sha256


def _retired(
    folder: Path,
    packs: PublishedPacks,
    before: ArchiveRelease | None,
    found: ArchiveRelease,
    segments: set[SegmentRecord],
    now: datetime,
    grace: float,
) -> int:
    """Clients that began with a release older than the last have had the grace period to finish."""
    if before is None or (now - datetime.fromisoformat(before.time)).total_seconds() < grace:
        return 0
    removed = packs.retire({record.file for record in segments})
    for path in folder.iterdir():
        if is_index_name(path.name) and path.name not in (before.index, found.index):
            path.unlink()
            removed += 1
    return removed


def _report(
    found: ArchiveRelease,
    packed: tuple[int, int],
    made: _IndexDraft,
    packs: PublishedPacks,
    removed: int,
    before: ArchiveRelease | None,
) -> PublishReport:
    counts = made.counts
    return PublishReport(
        serial=found.serial, new=before is None or found.serial != before.serial, documents=counts.documents,
        versions=counts.versions, checks=counts.checks, index_bytes=found.zrec.size, records=packed[0],
        records_kept=packed[1], packs=len(made.segments), packs_added=packs.added, bytes_added=packs.added_bytes,
        files_removed=removed,
    )  # fmt: skip
