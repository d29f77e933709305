"""The newer file in the making: its head, what the old copy gives, what is missing, whether all fits.

The file is prepared at full length beside its target. Whatever chunk in it has the right hash is there; so the part
itself is all the state that a broken transfer leaves for the next one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from letopis.binary import sha256_digest, write_at
from letopis.errors import Damaged
from letopis.lazy import np
from letopis.zrec import chunk_index as indexes
from letopis.zrec import header as heads
from letopis.zrec.chunk_index import align_chunks
from letopis.zrec.header import MiB, chunk_hash, group_hash
from letopis.zrec.published_file import ByteRange, RangeSource, ZrecRelease, limit_ranges
from letopis.zrec.reader import ZrecReader

_FIRST_READ = 4096


class ReleaseMismatch(Damaged):
    """Release and file are of different times."""


@dataclass(frozen=True, slots=True)
class PublishedHead:
    """What is known about the newer file before any chunk is fetched."""

    header: heads.ZrecHeader
    index: indexes.ChunkIndex
    known: bytes
    """The file's first bytes, as far as they were read."""


class _GrowingPrefix:
    """The first bytes of the file, read further when needed."""

    def __init__(self, source: RangeSource, size: int) -> None:
        self._source = source
        self._size = size
        self.got = b""

    async def need(self, end: int) -> bytes:
        """At least the first `end` bytes."""
        if end > self._size:
            raise Damaged("The published zrec file is shorter than its header says; publish it again.")
        for start, stop in limit_ranges([(len(self.got), end)]):
            part = await self._source.read(start, stop)
            if len(part) != stop - start:
                raise Damaged("The server sent another number of bytes than requested; try again.")
            self.got += part
        return self.got


async def read_published_head(
    source: RangeSource, release: ZrecRelease | None, old: ZrecReader | None
) -> PublishedHead:
    """Reads header and index. `ReleaseMismatch` when they are not the release's, `Damaged` when they make no sense."""
    size = release.size if release else await source.size()
    head = _GrowingPrefix(source, size)
    await head.need(min(size, _first_read(release, old)))
    header = heads.parse_header(await head.need(heads.header_size(head.got)))
    if release and (header.index_digest.hex() != release.index_sha256 or header.file_size != size):
        raise ReleaseMismatch("The release and the file are of different times; try again when both are published.")
    if header.file_size != size:
        raise Damaged("The published zrec file has another length than its header says; publish it again.")
    index = await _by_journals(head, header, old) or await _whole_index(head, header)
    if index.data_size != header.data_size:
        raise Damaged("The index of the published zrec file does not fit its chunks; publish it again.")
    return PublishedHead(header, index, head.got)


def _first_read(release: ZrecRelease | None, old: ZrecReader | None) -> int:
    """How much to ask for at first: exactly what the release promises to suffice, if it does."""
    end = release.journals_end(old.index.digest) if release and old else None
    return _FIRST_READ if end is None else end


async def _by_journals(
    head: _GrowingPrefix, header: heads.ZrecHeader, old: ZrecReader | None
) -> indexes.ChunkIndex | None:
    """The index from the old one, None when that does not lead to the right one."""
    if old is None:
        return None
    index = old.index
    length = header.journals_from(index.digest)
    if length is not None:
        data = await head.need(header.size + length)
        try:
            index = _replayed(index, header, data, length)
        except Damaged:
            return None
    return index if index.digest == header.index_digest else None


def _replayed(index: indexes.ChunkIndex, header: heads.ZrecHeader, data: bytes, length: int) -> indexes.ChunkIndex:
    steps: list[bytes] = []
    at = header.size
    for _, size in header.history:
        if at >= header.size + length:
            break
        steps.append(data[at : at + size])
        at += size
    for step in reversed(steps):
        index = indexes.apply_journal(index, step)
    return index


async def _whole_index(head: _GrowingPrefix, header: heads.ZrecHeader) -> indexes.ChunkIndex:
    data = await head.need(header.dictionary_at)
    index = indexes.parse_index(data[header.index_at : header.dictionary_at], header.chunks)
    if index.digest != header.index_digest:
        raise Damaged("The index of the published zrec file is damaged; publish it again.")
    return index


class Rebuild:
    """A part file that grows into the newer file."""

    def __init__(self, part: Path, head: PublishedHead) -> None:
        self._head = head
        self._index = head.index
        self._starts = (head.index.offsets + head.header.data_at).tolist()
        self._sizes = head.index.sizes.tolist()
        self._have = np.zeros(len(head.index), np.bool_)
        self.reused = self._have.copy()
        self._file = os.open(part, os.O_RDWR | os.O_CREAT, 0o666)
        self._resumed = self._is_part_of_this()

    def close(self) -> None:
        """Lets go of the part file and leaves it where it is."""
        os.close(self._file)

    def start(self, old: ZrecReader | None) -> list[ByteRange]:
        """Fills in what is known and what the old copy has; the ranges that are missing."""
        header = self._head.header
        os.ftruncate(self._file, header.file_size)
        missing = self._start_head(old)
        missing += self._start_dictionary(old)
        if old is not None:
            self._take_over(old)
        if self._resumed:
            self._find_present()
        self.reused = self._have.copy()
        if len(self._head.known) > header.data_at:
            self._find_present()
        self._forget(self._wrong_groups(self._whole_groups()))
        return missing + self.missing()

    def write(self, start: int, data: bytes) -> None:
        """Puts fetched bytes in their place."""
        write_at(self._file, start, data)

    def missing(self) -> list[ByteRange]:
        """Places of the chunks that are not there yet."""
        absent = np.flatnonzero(~self._have).tolist()
        return [(self._starts[number], self._starts[number] + self._sizes[number]) for number in absent]

    def arrived(self) -> list[ByteRange]:
        """To be called when all missing ranges were written: checks them; what must be fetched again.

        `Damaged` when a fetched chunk is not the one that the index names.
        """
        fetched = ~self._have
        for number in np.flatnonzero(fetched).tolist():
            if not self._is_right(number):
                raise Damaged("A chunk is not the one that the index names; the file changed during the transfer.")
        self._have[:] = True
        wrong = self._wrong_groups(self._groups_with(fetched))
        self._forget(wrong)
        return self.missing()

    def file_digest(self) -> str:
        """SHA-256 of the part as it is."""
        return self._digest_from(0).hex()

    def body_fits(self) -> bool:
        """Whether everything after the header is what the header promises."""
        header = self._head.header
        dictionary = self._at(header.dictionary_at, header.dictionary_size)
        # A header that lies about the dictionary alone would give a file that nobody can read.
        return (
            sha256_digest(dictionary) == header.dictionary_digest
            and self._digest_from(header.size) == header.body_digest
        )

    def settle(self) -> None:
        """Everything is on the disk when this returns."""
        os.fsync(self._file)

    def _is_part_of_this(self) -> bool:
        header = self._head.known[: self._head.header.size]
        return os.fstat(self._file).st_size == self._head.header.file_size and self._at(0, len(header)) == header

    def _start_head(self, old: ZrecReader | None) -> list[ByteRange]:
        """Header, journals and index; the range of journals that neither head nor old copy has."""
        header = self._head.header
        end = min(len(self._head.known), header.index_at)
        self.write(0, self._head.known)
        self.write(header.index_at, self._index.stored)
        rest = _journals_after(header, end, old)
        if rest is None:
            return [(end, header.index_at)]
        self.write(end, rest)
        return []

    def _start_dictionary(self, old: ZrecReader | None) -> list[ByteRange]:
        header = self._head.header
        start = header.dictionary_at
        if sha256_digest(self._at(start, header.dictionary_size)) == header.dictionary_digest:
            return []
        if old is not None and old.header.dictionary_digest == header.dictionary_digest:
            with suppress(Damaged):
                self.write(start, old.stored_dictionary)
                return []
        return [(min(max(start, len(self._head.known)), header.data_at), header.data_at)]

    def _take_over(self, old: ZrecReader) -> None:
        for come, to in align_chunks(old.index, self._index):
            stored = old.stored_chunk(come)
            if len(stored) == self._sizes[to] and chunk_hash(stored) == int(self._index.hashes[to]):
                self.write(self._starts[to], stored)
                self._have[to] = True

    def _find_present(self) -> None:
        for number in np.flatnonzero(~self._have).tolist():
            self._have[number] = self._is_right(number)

    def _is_right(self, number: int) -> bool:
        return chunk_hash(self._chunk(number)) == int(self._index.hashes[number])

    def _whole_groups(self) -> list[int]:
        starts = self._index.borders[:-1]
        return np.flatnonzero(np.logical_and.reduceat(self._have, starts)).tolist() if len(starts) else []

    def _groups_with(self, chosen: np.typing.NDArray[np.bool_]) -> list[int]:
        starts = self._index.borders[:-1]
        return np.flatnonzero(np.logical_or.reduceat(chosen, starts)).tolist() if len(starts) else []

    def _wrong_groups(self, groups: Iterable[int]) -> list[int]:
        """Groups of which every h fits, but not H."""
        borders = self._index.borders
        wrong = []
        for group in groups:
            chunks = map(self._chunk, range(int(borders[group]), int(borders[group + 1])))
            if group_hash(chunks) != int(self._index.group_hashes[group]):
                wrong.append(group)
        return wrong

    def _forget(self, groups: Iterable[int]) -> None:
        """Chunks of these groups are fetched again, each at most once."""
        borders = self._index.borders.tolist()
        for group in groups:
            place = slice(borders[group], borders[group + 1])
            if not self.reused[place].any():
                raise Damaged("A group of chunks is not the one that the index names; publish the file again.")
            self._have[place] = False
            self.reused[place] = False

    def _chunk(self, number: int) -> bytes:
        return self._at(self._starts[number], self._sizes[number])

    def _at(self, start: int, size: int) -> bytes:
        return os.pread(self._file, size, start)

    def _digest_from(self, start: int) -> bytes:
        state = hashlib.sha256()
        while part := self._at(start, MiB):
            state.update(part)
            start += len(part)
        return state.digest()


def _journals_after(header: heads.ZrecHeader, end: int, old: ZrecReader | None) -> bytes | None:
    """The journals behind `end`, from the old copy's own history; None when it lacks one."""
    places = [header.size]
    for _, length in header.history:
        places.append(places[-1] + length)
    own = {journal.old: journal.stored for journal in old.journals} if old else {}
    rest = b""
    for (name, length), (start, stop) in zip(header.history, pairwise(places), strict=True):
        if stop <= end:
            continue
        if start < end or len(own.get(name, b"")) != length:
            return None
        rest += own[name]
    return rest
