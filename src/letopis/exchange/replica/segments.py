"""Packs of an archive as files that never change: finished ones linked, logs cut into segments."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from letopis.archive import Archive
from letopis.errors import Damaged
from letopis.exchange.replica.durable import settled
from letopis.exchange.replica.layout import PACKS, segment_name
from letopis.exchange.replica.records import SegmentRecord
from letopis.store import Place

_PIECE = 1 << 20


class PackShelf:
    """The `packs` folder of a published archive."""

    def __init__(self, folder: Path, known: Iterable[SegmentRecord]) -> None:
        """`known` are the files of the release before, whose digests need no second look."""
        self._folder = folder / PACKS
        self._folder.mkdir(parents=True, exist_ok=True)
        self._known: dict[int, list[SegmentRecord]] = {}
        for record in sorted(known):
            self._known.setdefault(record.pack, []).append(record)
        self.added_bytes = 0
        self.added = 0

    def hold(self, archive: Archive, last: Mapping[int, int]) -> dict[int, tuple[str, int]]:
        """Makes sure that packs stay readable although a compaction may remove them: name and end of each.

        `last` gives for each pack where the last record begins that is to be
        published. `Moved` when a pack is already gone.
        """
        found = {}
        for pack, place in sorted(last.items()):
            name = archive.store.name_of(pack)
            found[pack] = (name, archive.store.end_of(Place(pack, place, 0)))
            if name.endswith(".pack") and pack not in self._known:
                self._link(archive.folder / PACKS / name, self._folder / name)
        return found

    def publish(self, archive: Archive, held: Mapping[int, tuple[str, int]]) -> list[SegmentRecord]:
        """The files that stand for these packs, written where they are new."""
        return [
            record
            for pack, (name, end) in held.items()
            for record in (
                self._log(archive, pack, name, end) if name.endswith(".log") else [self._pack(archive, pack, name)]
            )
        ]

    def _link(self, source: Path, target: Path) -> None:
        """A second name costs nothing; where there can be none, the bytes are copied later."""
        with suppress(OSError):
            os.link(source, target)

    def _pack(self, archive: Archive, pack: int, name: str) -> SegmentRecord:
        for record in self._known.get(pack, ()):
            if record.file == name and (self._folder / name).exists():
                return record
        target = self._folder / name
        if not target.exists():
            settled(target, _bytes_of(archive, pack, 0, None))
        self._count(target.stat().st_size)
        return SegmentRecord(pack, 0, name, target.stat().st_size, _digest(target))

    def _log(self, archive: Archive, pack: int, name: str, end: int) -> Iterator[SegmentRecord]:
        """What was published of a log, and its new bytes as a segment of their own."""
        at = 0
        for record in self._known.get(pack, ()):
            self._check(archive, record)
            at = record.end
            yield record
        if at < end:
            target = self._folder / segment_name(name, at)
            settled(target, _bytes_of(archive, pack, at, end))
            self._count(end - at)
            yield SegmentRecord(pack, at, target.name, end - at, _digest(target))

    def _check(self, archive: Archive, record: SegmentRecord) -> None:
        """An archive that was put back from an older copy uses numbers again, for other bytes."""
        path = self._folder / record.file
        size = min(record.size, 4096)
        tail = archive.store.raw(record.pack, record.end - size, size)
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
        data = archive.store.raw(pack, start, _PIECE if end is None else min(_PIECE, end - start))
        if not data:
            if end is not None:
                raise Damaged(f"pack {pack} ends at {start}, before byte {end}; run 'letopis verify'")
            return
        yield data
        start += len(data)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tail(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(-size, os.SEEK_END)
        return file.read()
