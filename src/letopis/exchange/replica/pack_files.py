"""Pack files of an origin: which are fetched whole and which contents by range, and whole files fetched in pieces,
resumed where they broke off, checked before they count.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from letopis.archive.replica import ContentRecord
from letopis.binary import fsync_file, fsync_folder, make_private_folder, write_at
from letopis.errors import Damaged, Unavailable
from letopis.exchange.replica.index_records import SegmentRecord
from letopis.exchange.replica.origin import Origin
from letopis.exchange.replica.release import CloneFolder, local_name
from letopis.zrec import NoRanges, RangeCut, RangeSource

WORTH_WHOLE = 0.5
"""Share of a pack file from which it is fetched whole."""


class PackFiles:
    """The pack files that an index names."""

    def __init__(self, segments: Iterable[SegmentRecord]) -> None:
        self.of_pack: dict[int, list[SegmentRecord]] = {}
        for segment in sorted(segments):
            known = self.of_pack.setdefault(segment.pack, [])
            if segment.start != (known[-1].end if known else 0):
                raise Damaged(f"the published pack {segment.pack} has a gap; publish the archive again")
            known.append(segment)

    def at(self, pack: int, place: int) -> SegmentRecord:
        """The file in which a record begins."""
        known = self.of_pack.get(pack, [])
        found = bisect_right(known, place, key=lambda segment: segment.start) - 1
        if found < 0 or place >= known[found].end:
            raise Damaged(f"the published index names pack {pack}, offset {place}, which no file has; publish again")
        return known[found]

    def leaned_on(self, segment: SegmentRecord) -> list[SegmentRecord]:
        """The files without which the contents of this one cannot be read."""
        return [one for pack in segment.texts or () for one in self.of_pack.get(pack, ())]

    def all(self) -> list[SegmentRecord]:
        """Every file, pack by pack."""
        return [segment for known in self.of_pack.values() for segment in known]


@dataclass(slots=True)
class PackDemand:
    """How much of each pack file is needed."""

    files: PackFiles
    held: frozenset[SegmentRecord]
    bytes_of: dict[SegmentRecord, int] = field(default_factory=dict)
    _seen: set[tuple[bytes, int]] = field(default_factory=set)

    def add(self, content: ContentRecord) -> None:
        """Counts a content that the clone has not got; each one once."""
        segment = self.files.at(content.pack, content.place)
        mark = (content.sha1, content.identity)
        if segment not in self.held and mark not in self._seen:
            self._seen.add(mark)
            self.bytes_of[segment] = self.bytes_of.get(segment, 0) + content.stored_bytes

    def whole(self, lengths: Mapping[int, int]) -> list[SegmentRecord]:
        """Files to fetch whole, those that they lean on among them.

        `lengths` says how far each pack is here already: logs have no holes.
        """
        chosen: dict[SegmentRecord, None] = {}
        ends = dict(lengths)
        for segment in self.files.all():
            with_it = [one for one in self.files.leaned_on(segment) if one not in self.held and one not in chosen]
            if segment in chosen or not self._is_worth(segment, with_it) or ends.get(segment.pack, 0) != segment.start:
                continue
            ends[segment.pack] = segment.end
            chosen.update(dict.fromkeys([*with_it, segment]))
        return list(chosen)

    def _is_worth(self, segment: SegmentRecord, with_it: list[SegmentRecord]) -> bool:
        if segment in self.held or not self.bytes_of.get(segment, 0):
            return False
        together = [segment, *with_it]
        needed = sum(self.bytes_of.get(one, 0) for one in together)
        return needed >= WORTH_WHOLE * sum(one.size for one in together)


_PIECE = 512 << 10
"""Bytes per request: at most so many are lost if a run is killed."""
_IN_FLIGHT = 4
_TRIES = 3

Progress = Callable[[int], None]
"""Hears how many bytes have come."""


class PackFetcher:
    """Brings pack files of an origin into a clone's folder."""

    def __init__(self, origin: Origin, folder: CloneFolder, progress: Progress) -> None:
        self._origin = origin
        self._folder = folder
        self._progress = progress

    def is_here(self, segment: SegmentRecord, *, trusted: bool) -> bool:
        """Whether the clone has these bytes; unless `trusted` they are hashed again."""
        path = self._folder.packs / local_name(segment.file)
        if not path.exists() or path.stat().st_size < segment.end:
            return False
        return trusted or _digest(path, segment.start, segment.size) == segment.sha256

    def lengths(self, segments: Iterable[SegmentRecord]) -> dict[int, int]:
        """For each pack how far its files, in order, are among these."""
        ends: dict[int, int] = {}
        for segment in sorted(segments):
            if ends.get(segment.pack, 0) == segment.start:
                ends[segment.pack] = segment.end
        return ends

    async def fetch(self, segments: list[SegmentRecord]) -> None:
        """Fetches files, several at once; those of one pack are put in place in order."""
        make_private_folder(self._folder.parts)
        left = iter(segments)

        async def worker() -> None:
            for segment in left:
                await self._checked(segment)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(_IN_FLIGHT, len(segments))):
                    group.create_task(worker())
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None
        for segment in segments:
            self._place(segment)

    async def _checked(self, segment: SegmentRecord) -> None:
        """The part has the right digest when this returns; a damaged one is fetched again, once."""
        part = self._folder.parts / segment.file
        resumed = part.exists()
        await self._complete(segment, part)
        if _digest(part, 0, segment.size) == segment.sha256:
            return
        part.unlink()
        if resumed:
            await self._complete(segment, part)
            if _digest(part, 0, segment.size) == segment.sha256:
                return
            part.unlink()
        raise Damaged(
            f"{self._origin.address}: {segment.file} does not match the index; nothing was changed; "
            "ask the publisher to publish again"
        )

    async def _complete(self, segment: SegmentRecord, part: Path) -> None:
        async with self._origin.pack(segment.file, segment.size) as source:
            with part.open("ab") as file:
                file.truncate(min(file.tell(), segment.size))
                file.seek(0, os.SEEK_END)
                try:
                    while (at := file.tell()) < segment.size:
                        await self._piece(source, file, at, min(at + _PIECE, segment.size))
                except NoRanges:
                    file.truncate(0)
                    await self._whole(source, file, segment)
                fsync_file(file)

    async def _piece(self, source: RangeSource, file: BinaryIO, start: int, end: int) -> None:
        """A piece; requested again if the connection was cut. What has arrived until then is kept."""
        for left in reversed(range(_TRIES)):
            try:
                self._keep(file, await source.read(start, end))
                return
            except NoRanges:
                raise
            except RangeCut as cut:
                self._keep(file, cut.data)
                start += len(cut.data)
                if not left:
                    raise
            except Unavailable:
                if not left:
                    raise

    async def _whole(self, source: RangeSource, file: BinaryIO, segment: SegmentRecord) -> None:
        """The file of a server without ranges, as it comes."""
        async for part in source.stream():
            self._keep(file, part[: segment.size - file.tell()])
        if file.tell() < segment.size:
            raise Unavailable(f"{segment.file} ended after {file.tell()} of {segment.size} bytes; try again")

    def _keep(self, file: BinaryIO, data: bytes) -> None:
        file.write(data)
        file.flush()
        self._progress(len(data))

    def _place(self, segment: SegmentRecord) -> None:
        """Puts a checked part where readers find it. Writing a log's bytes twice changes nothing."""
        part, target = self._folder.parts / segment.file, self._folder.packs / local_name(segment.file)
        if part.name == target.name:
            part.replace(target)
        else:
            _write_durably_at(target, segment.start, part.read_bytes())
            part.unlink()
        fsync_folder(target.parent)


def _write_durably_at(path: Path, start: int, data: bytes) -> None:
    number = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        write_at(number, start, data)
        os.fsync(number)
    finally:
        os.close(number)


def _digest(path: Path, start: int, size: int) -> str:
    state = hashlib.sha256()
    with path.open("rb") as file:
        file.seek(start)
        while size and (data := file.read(min(size, 1 << 20))):
            state.update(data)
            size -= len(data)
    return "" if size else state.hexdigest()
