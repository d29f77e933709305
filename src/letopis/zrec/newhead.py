"""The head of the newer file: header, journals and index, with as few bytes as the old copy allows."""

from __future__ import annotations

from dataclasses import dataclass

from letopis.errors import Damaged
from letopis.zrec import header as heads
from letopis.zrec import index as indexes
from letopis.zrec import journal
from letopis.zrec.ranges import limited
from letopis.zrec.reader import Reader
from letopis.zrec.releasing import Release
from letopis.zrec.source import RangeSource

_FIRST = 4096


class MixedPair(Damaged):
    """Release and file are of different times."""


@dataclass(frozen=True, slots=True)
class NewHead:
    """What is known about the newer file before any chunk is fetched."""

    header: heads.Header
    index: indexes.Index
    known: bytes
    """The file's first bytes, as far as they were read."""


class _Growing:
    """The first bytes of the file, read further when needed."""

    def __init__(self, source: RangeSource, size: int) -> None:
        self._source = source
        self._size = size
        self.got = b""

    async def need(self, end: int) -> bytes:
        """At least the first `end` bytes."""
        if end > self._size:
            raise Damaged("The published zrec file is shorter than its header says; publish it again.")
        for start, stop in limited([(len(self.got), end)]):
            part = await self._source.read(start, stop)
            if len(part) != stop - start:
                raise Damaged("The server sent another number of bytes than asked for; try again.")
            self.got += part
        return self.got


async def read(source: RangeSource, release: Release | None, old: Reader | None) -> NewHead:
    """Reads header and index. `MixedPair` when they are not the release's, `Damaged` when they make no sense."""
    size = release.size if release else await source.size()
    head = _Growing(source, size)
    await head.need(min(size, _first(release, old)))
    header = heads.parse(await head.need(heads.size_of(head.got)))
    if release and (header.index_digest.hex() != release.index_sha256 or header.file_size != size):
        raise MixedPair("The release and the file are of different times; try again when both are published.")
    if header.file_size != size:
        raise Damaged("The published zrec file has another length than its header says; publish it again.")
    index = await _by_journals(head, header, old) or await _whole(head, header)
    if index.data_size != header.data_size:
        raise Damaged("The index of the published zrec file does not fit its chunks; publish it again.")
    return NewHead(header, index, head.got)


def _first(release: Release | None, old: Reader | None) -> int:
    """How much to ask for at first: exactly what the release promises to suffice, if it does."""
    end = release.journals_end(old.index.digest) if release and old else None
    return _FIRST if end is None else end


async def _by_journals(head: _Growing, header: heads.Header, old: Reader | None) -> indexes.Index | None:
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


def _replayed(index: indexes.Index, header: heads.Header, data: bytes, length: int) -> indexes.Index:
    steps: list[bytes] = []
    at = header.size
    for _, size in header.history:
        if at >= header.size + length:
            break
        steps.append(data[at : at + size])
        at += size
    for step in reversed(steps):
        index = journal.apply(index, step)
    return index


async def _whole(head: _Growing, header: heads.Header) -> indexes.Index:
    data = await head.need(header.dictionary_at)
    index = indexes.parse(data[header.index_at : header.dictionary_at], header.chunks)
    if index.digest != header.index_digest:
        raise Damaged("The index of the published zrec file is damaged; publish it again.")
    return index
