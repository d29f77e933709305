"""Single contents out of the origin's packs: fetched by range, decoded, both digests compared, and kept in a log of the
clone's own.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from letopis.archive import Archive
from letopis.archive.clones import CloneRecord, fetch_missing_with
from letopis.archive.replica import ContentRecord, MissingContent, decode_contents
from letopis.errors import NotFound, Unavailable, pull_remedy
from letopis.exchange.replica.clone_state import read_state
from letopis.exchange.replica.index_records import PACK_MARK, SegmentRecord, parse_segment
from letopis.exchange.replica.origin import Origin, open_origin
from letopis.exchange.replica.pack_files import PackFiles
from letopis.exchange.replica.release import CloneFolder, local_name
from letopis.model import Headers
from letopis.zrec import ZrecReader

BATCH_BYTES = 8 << 20
_GAP = 1024
"""Bytes between two records that cost less than another request."""
_MOST_RANGE = 4 << 20
_IN_FLIGHT = 4
_FIRST_READ = 32 * 1024
_START_READ = 1024
"""What a store asks for at least, and beyond the length that it expects."""

PackRange = tuple[SegmentRecord, int, int]
FetchRange = Callable[[SegmentRecord, int, int], bytes]


class OriginPacks:
    """The origin's packs as a store reads them: what was fetched beforehand, the rest on demand.

    Where records begin is known from the index (`places`), so that a read which asks for more than one record, to be
    safe, costs one record only: what lies behind it is filled with zeros, which its check would not pass.
    """

    def __init__(self, files: PackFiles, fetch: FetchRange, places: Mapping[int, Sequence[int]]) -> None:
        self._fetch = fetch
        self._places = places
        self._known: dict[tuple[int, int], bytes] = {}
        self._packs = {local_name(known[0].file): known for known in files.of_pack.values()}

    def sizes(self) -> Mapping[str, int]:
        """All packs that the origin publishes."""
        return {name: known[-1].end for name, known in self._packs.items()}

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Bytes of a pack; zeros after the record that begins at the offset."""
        known = self._packs[name]
        length = max(0, min(length, known[-1].end - offset))
        end = min(offset + length, self.record_end(known[0].pack, offset))
        return self._span(known, offset, end).ljust(length, b"\0")

    def remember(self, segment: SegmentRecord, start: int, data: bytes) -> None:
        """Takes in bytes that were fetched beforehand."""
        self._known[segment.pack, start] = data

    def forget_all(self) -> None:
        """Lets go of what was fetched."""
        self._known.clear()

    def record_end(self, pack: int, offset: int) -> int:
        """Where the next record begins at the latest; far away when the index does not know."""
        places = self._places.get(pack, ())
        found = bisect_right(places, offset)
        if not found or places[found - 1] != offset:
            return 1 << 62
        return places[found] if found < len(places) else 1 << 62

    def _span(self, known: Sequence[SegmentRecord], start: int, end: int) -> bytes:
        data = self._remembered(known[0].pack, start, end)
        if data is not None:
            return data
        parts = [
            self._fetch(segment, max(start, segment.start), min(end, segment.end))
            for segment in known
            if segment.start < end and segment.end > start
        ]
        return b"".join(parts)

    def _remembered(self, pack: int, start: int, end: int) -> bytes | None:
        for (owner, at), data in self._known.items():
            if owner == pack and at <= start and at + len(data) >= end:
                return data[start - at : end - at]
        return None


class ContentFetcher:
    """Takes contents by range into a clone."""

    def __init__(self, origin: Origin, record: CloneRecord, heads: Mapping[int, Headers]) -> None:
        self._origin = origin
        self._record = record
        self._heads = heads

    async def take(
        self,
        files: PackFiles,
        needs: Sequence[MissingContent],
        places: Mapping[int, Sequence[int]],
        progress: Callable[[int], None],
    ) -> None:
        """Fetches, checks and keeps contents, batch by batch; each batch is durable."""
        packs = OriginPacks(files, _from_thread(self._origin), places)
        for batch in _batches(sorted(needs, key=lambda need: need.content[5:])):
            await self._ahead(packs, _ranges(packs, files, batch))
            bodies = await asyncio.to_thread(decode_contents, packs, [need.content for need in batch])
            self._record.keep(list(zip(batch, bodies, strict=True)), self._heads)
            packs.forget_all()
            progress(sum(need.content.stored_bytes for need in batch))

    async def _ahead(self, packs: OriginPacks, ranges: list[PackRange]) -> None:
        left = iter(ranges)

        async def worker() -> None:
            for span in left:
                packs.remember(span[0], span[1], await _read_range(self._origin, span))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(_IN_FLIGHT, len(ranges))):
                    group.create_task(worker())
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None


async def fetch_content(origin: Origin, files: PackFiles, content: ContentRecord) -> bytes:
    """One content, checked."""
    packs = OriginPacks(files, _from_thread(origin), {})
    return (await asyncio.to_thread(decode_contents, packs, [content]))[0]


async def _read_range(origin: Origin, span: PackRange) -> bytes:
    segment, start, end = span
    return await origin.part(segment.file, segment.size, start - segment.start, end - segment.start)


def _from_thread(origin: Origin) -> FetchRange:
    """Reads for decoders in another thread, through this loop."""
    loop = asyncio.get_running_loop()

    def fetch(segment: SegmentRecord, start: int, end: int) -> bytes:
        return asyncio.run_coroutine_threadsafe(_read_range(origin, (segment, start, end)), loop).result()

    return fetch


def _batches(needs: Sequence[MissingContent]) -> Iterator[list[MissingContent]]:
    batch: list[MissingContent] = []
    size = 0
    for need in needs:
        batch.append(need)
        size += max(need.content.stored_bytes, need.content.raw_bytes)
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _records(batch: Sequence[MissingContent]) -> dict[tuple[int, int], int]:
    """The records with the contents of a batch, each with the length to expect."""
    found: dict[tuple[int, int], int] = {}
    for need in batch:
        mark = (need.content.pack, need.content.place)
        found[mark] = max(found.get(mark, 0), need.content.stored_bytes)
    return found


def _ranges(packs: OriginPacks, files: PackFiles, batch: Sequence[MissingContent]) -> list[PackRange]:
    """The records of a batch, neighbours joined."""
    found: list[PackRange] = []
    for (pack, place), size in sorted(_records(batch).items()):
        segment = files.at(pack, place)
        guess = place + max(size + _START_READ, _FIRST_READ)
        known = packs.record_end(pack, place)
        end = min(known if known <= segment.end else guess, segment.end)
        last = found[-1] if found else None
        if last and last[0] == segment and place - last[2] <= _GAP and end - last[1] <= _MOST_RANGE:
            found[-1] = (segment, last[1], max(end, last[2]))
        else:
            found.append((segment, place, end))
    return found


def fetch_on_demand(archive: Archive) -> Archive:
    """Lets a clone fetch missing contents when they are read."""
    folder = CloneFolder(archive.folder)

    def fetch(need: MissingContent) -> bytes:
        # In a separate loop: the caller may be inside one, or have none.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, _fetched(archive, folder, need.content)).result()

    fetch_missing_with(archive, fetch)
    return archive


async def _fetched(archive: Archive, folder: CloneFolder, content: ContentRecord) -> bytes:
    """One content from the origin; `Unavailable` when that is away."""
    address = read_state(folder).origin
    try:
        async with open_origin(address, archive.settings.fetch, archive.clock) as origin:
            return await fetch_content(origin, _files_of_pack(folder, content.pack), content)
    except NotFound:
        raise Unavailable(
            f"{address} was published again and no longer has that content at that place",
            pull_remedy(folder.archive)._replace(lead="run", tail=", then try again"),
        ) from None
    except Unavailable as error:
        raise Unavailable(
            f"this clone has not fetched that content yet, and its origin is away ({error}); try again later"
        ) from None


def _files_of_pack(folder: CloneFolder, pack: int) -> PackFiles:
    """The files of a pack and of those that it needs; of all packs if the index does not say."""
    with ZrecReader(folder.index) as reader:

        def segments(*packs: int) -> list[SegmentRecord]:
            lines = (line for number in packs for line in reader.starting(PACK_MARK + b"%08d" % number))
            return [parse_segment(line) for line in lines]

        found = segments(pack)
        if any(segment.texts is None for segment in found):
            return PackFiles(parse_segment(line) for line in reader.starting(PACK_MARK))
        return PackFiles([*found, *segments(*{text for one in found for text in one.texts or ()})])
