"""The index of a zrec file: sizes, ages and hashes of chunks, and the hashes of their groups.

Borders of groups depend only on hashes nearby, so that an insertion or deletion moves only borders nearby.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

from letopis import binary
from letopis.binary import MAX_VARINT_BYTES, sha256_digest
from letopis.errors import Damaged
from letopis.lazy import np, npt
from letopis.zrec.header import MAX_AGE, MAX_CHUNK, MAX_CHUNKS, MAX_INDEX


def decode_varint_column(data: bytes, at: int, count: int) -> tuple[npt.NDArray[np.int64], int]:
    """`count` values that follow each other, as one array; memory stays near that of the bytes."""
    if count == 0:
        return np.zeros(0, np.int64), at
    window = np.frombuffer(data, np.uint8)[at : at + count * MAX_VARINT_BYTES]
    ends = np.flatnonzero(window < 0x80)[:count]
    if len(ends) < count:
        raise Damaged("A column of the zrec file ends too early; get a fresh copy.")
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    if int(lengths.max()) > MAX_VARINT_BYTES or bool(np.any((window[ends] == 0) & (lengths > 1))):
        raise Damaged("A column of the zrec file holds a number that cannot be read; get a fresh copy.")
    return _gather_varints(window, starts, lengths), at + int(ends[-1]) + 1


def _gather_varints(
    window: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    values = np.zeros(len(starts), np.int64)
    for step in range(int(lengths.max())):
        longer = lengths > step
        values[longer] |= (window[starts[longer] + step].astype(np.int64) & 0x7F) << (7 * step)
    return values


def cut_groups(hashes: Sequence[int]) -> list[int]:
    """Sizes of the groups, in order. The last group may hold a single element."""
    sizes = []
    at, count = 0, len(hashes)
    while at < count:
        size = _group_size(hashes, at, count)
        sizes.append(size)
        at += size
    return sizes


def _group_size(hashes: Sequence[int], at: int, count: int) -> int:
    left = count - at
    if left <= 2 or hashes[at + 1] > hashes[at + 2]:
        return min(left, 2)
    if left == 3 or hashes[at + 2] > hashes[at + 3]:
        return 3
    return 4


Ints: TypeAlias = "npt.NDArray[np.int64]"
Hashes: TypeAlias = "npt.NDArray[np.uint32]"


@dataclass(frozen=True, eq=False)
class ChunkIndex:
    """Facts about chunks in record order. Where they lie follows from sizes and ages."""

    sizes: Ints
    ages: Ints
    hashes: Hashes
    group_hashes: Hashes

    @cached_property
    def borders(self) -> Ints:
        """Where groups of chunks begin, and the number of chunks at the end."""
        return group_borders(self.hashes)

    @cached_property
    def offsets(self) -> Ints:
        """Start of each chunk, counted from the first stored one: by age, then in record order."""
        order = np.argsort(self.ages, kind="stable")
        starts = np.zeros(len(order), np.int64)
        starts[order] = np.cumsum(self.sizes[order]) - self.sizes[order]
        return starts

    @cached_property
    def stored(self) -> bytes:
        """The one form in bytes; equal indexes have equal forms."""
        parts = (binary.encode_varints(self.sizes.tolist()), _stored_ages(self.ages))
        return b"".join((*parts, self.hashes.astype("<u4").tobytes(), self.group_hashes.astype("<u4").tobytes()))

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the stored form: what names an index."""
        return sha256_digest(self.stored)

    @property
    def data_size(self) -> int:
        """Bytes of all chunks."""
        return int(self.sizes.sum())

    def __len__(self) -> int:
        return len(self.sizes)


def group_borders(hashes: Hashes) -> Ints:
    """Borders of groups by the cutting rule."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(np.array(cut_groups(hashes.tolist()), np.int64))))


def parse_index(stored: bytes, chunks: int) -> ChunkIndex:
    """Reads what `Index.stored` wrote; `Damaged` for anything else."""
    if chunks > MAX_CHUNKS or len(stored) > MAX_INDEX or chunks * 5 > len(stored):
        raise Damaged("The index of the zrec file has an impossible size; get a fresh copy.")
    sizes, at = decode_varint_column(stored, 0, chunks)
    if chunks and not 1 <= int(sizes.min()) <= int(sizes.max()) <= MAX_CHUNK:
        raise Damaged("The index of the zrec file names a chunk of impossible size; get a fresh copy.")
    ages, at = _parse_ages(stored, at, chunks)
    if len(stored) < at + 4 * chunks:
        raise Damaged("The index of the zrec file is cut short; get a fresh copy.")
    hashes = np.frombuffer(stored, "<u4", chunks, at).astype(np.uint32)
    at += 4 * chunks
    groups = len(group_borders(hashes)) - 1
    if len(stored) != at + 4 * groups:
        raise Damaged("The index of the zrec file has too few or too many groups; get a fresh copy.")
    return ChunkIndex(sizes, ages, hashes, np.frombuffer(stored, "<u4", groups, at).astype(np.uint32))


def _stored_ages(ages: Ints) -> bytes:
    starts = np.flatnonzero(np.diff(ages, prepend=-1)).tolist()
    runs = pairwise([*starts, len(ages)])
    return b"".join(binary.encode_varint(int(ages[start])) + binary.encode_varint(end - start) for start, end in runs)


def _parse_ages(stored: bytes, at: int, chunks: int) -> tuple[Ints, int]:
    values: list[int] = []
    runs: list[int] = []
    left = chunks
    while left > 0:
        (age, run), at = binary.decode_canonical_varints(stored, at, 2)
        if age > MAX_AGE or not 0 < run <= left or values[-1:] == [age]:
            raise Damaged("The index of the zrec file names impossible generations; get a fresh copy.")
        values.append(age)
        runs.append(run)
        left -= run
    return np.repeat(np.array(values, np.int64), np.array(runs, np.int64)), at
