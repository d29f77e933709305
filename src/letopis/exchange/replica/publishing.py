"""`letopis publish`: an archive as plain files. The order of writes is in docs/internals/replica-format.md.

Takes no lock of the archive: rows are read from a snapshot and name only
bytes that are synced, and packs that are linked cannot be taken away.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from letopis.archive import Archive
from letopis.catalog import Snapshot
from letopis.errors import Damaged, Refused
from letopis.exchange.replica import release as releases
from letopis.exchange.replica import snapshot as snapshots
from letopis.exchange.replica.durable import alone, settled, told
from letopis.exchange.replica.layout import RELEASE, index_name, is_index_name
from letopis.exchange.replica.records import NAME_RULE, PACK, SegmentRecord, parse_segment, segment_line
from letopis.exchange.replica.release import ArchiveRelease, Counts
from letopis.exchange.replica.segments import PackShelf
from letopis.model import rfc3339
from letopis.store import Moved
from letopis.zrec import Reader, describe, pack, release_path

GRACE_SECONDS = 3600.0
_TRIES = 5


@dataclass(frozen=True, slots=True)
class PublishReport:
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


class _Made(NamedTuple):
    """The text of the index and what goes with it."""

    text: bytes
    counts: Counts
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
    with told(folder), alone(folder / ".lock", f"publishes to {folder}"):
        before = _last(folder)
        known = _segments(folder / before.index) if before else []
        shelf = PackShelf(folder, known)
        made = _taken(archive, shelf, progress)
        found, packed = _released(archive, folder, before, made, key)
        removed = _retired(folder, shelf, before, found, {*known, *made.segments}, archive.clock(), grace)
    return _report(found, packed, made, shelf, removed, before)


def _last(folder: Path) -> ArchiveRelease | None:
    path = folder / RELEASE
    if not path.exists():
        return None
    found = releases.parse(path.read_bytes())
    if not (folder / found.index).exists():
        raise Damaged(f"{folder} has lost {found.index}; publish into an empty folder")
    return found


def _segments(index: Path) -> list[SegmentRecord]:
    with Reader(index) as reader:
        return [parse_segment(line) for line in reader.starting(PACK)]


def _taken(archive: Archive, shelf: PackShelf, progress: Callable[[int], None]) -> _Made:
    """Everything there is at one moment; once more when a compaction was faster."""
    for _ in range(_TRIES - 1):
        with suppress(Moved):
            return _once(archive, shelf, progress)
    return _once(archive, shelf, progress)


def _once(archive: Archive, shelf: PackShelf, progress: Callable[[int], None]) -> _Made:
    with archive.catalog.database.snapshot() as snapshot:
        held = shelf.hold(archive, snapshots.last_places(snapshot))
        _complete(snapshot)
        segments = shelf.publish(archive, held)
        lines, counts = snapshots.lines(snapshot, progress)
    lines += [segment_line(record) for record in segments]
    lines.sort()
    return _Made(b"".join(line + b"\n" for line in lines), counts, segments)


def _complete(snapshot: Snapshot) -> None:
    missing = snapshots.absent(snapshot)
    if missing:
        raise Refused(
            f"this clone has not fetched {missing} of its contents and cannot hand them on; "
            "fetch them with 'letopis pull DIR --fill'"
        )


def _released(
    archive: Archive, folder: Path, before: ArchiveRelease | None, made: _Made, key: bytes | None
) -> tuple[ArchiveRelease, tuple[int, int]]:
    """Packs the index and replaces the release; (release, (records, records kept))."""
    serial = before.serial + 1 if before else 1
    path = folder / index_name(serial)
    path.unlink(missing_ok=True)
    older = folder / before.index if before else None
    moment = archive.clock()
    packed = pack(
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
    found = ArchiveRelease(name, serial, rfc3339(moment), path.name, describe(path, time=moment), made.counts)
    found = found.signed(key) if key else found
    settled(folder / RELEASE, [releases.encode(found)])
    return found, kept


def _same(before: ArchiveRelease, index_sha256: str) -> bool:
    """Equal indexes name equal chunks, by 64 bits each; packing the same records again changes nothing."""
    return before.zrec.index_sha256 == index_sha256


def _retired(
    folder: Path,
    shelf: PackShelf,
    before: ArchiveRelease | None,
    found: ArchiveRelease,
    segments: set[SegmentRecord],
    now: datetime,
    grace: float,
) -> int:
    """Whoever began with a release older than the last has had the grace period to finish."""
    if before is None or (now - datetime.fromisoformat(before.time)).total_seconds() < grace:
        return 0
    removed = shelf.retire({record.file for record in segments})
    for path in folder.iterdir():
        if is_index_name(path.name) and path.name not in (before.index, found.index):
            path.unlink()
            removed += 1
    return removed


def _report(
    found: ArchiveRelease,
    packed: tuple[int, int],
    made: _Made,
    shelf: PackShelf,
    removed: int,
    before: ArchiveRelease | None,
) -> PublishReport:
    counts = made.counts
    return PublishReport(
        serial=found.serial,
        new=before is None or found.serial != before.serial,
        documents=counts.documents,
        versions=counts.versions,
        checks=counts.checks,
        index_bytes=found.zrec.size,
        records=packed[0],
        records_kept=packed[1],
        packs=len(made.segments),
        packs_added=shelf.added,
        bytes_added=shelf.added_bytes,
        files_removed=removed,
    )
