"""The index: sizes, ages and hashes of chunks, and the hashes of their groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from letopis.errors import Damaged
from letopis.zrec import varint
from letopis.zrec.cutting import cut
from letopis.zrec.hashing import digest
from letopis.zrec.limits import MAX_AGE, MAX_CHUNK, MAX_CHUNKS, MAX_INDEX

Ints = NDArray[np.int64]
Hashes = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Index:
    """Facts about chunks in record order. Where they lie follows from sizes and ages."""

    sizes: Ints
    ages: Ints
    hashes: Hashes
    group_hashes: Hashes

    @cached_property
    def borders(self) -> Ints:
        """Where groups of chunks begin, and the number of chunks at the end."""
        return borders(self.hashes)

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
        parts = (varint.encode_all(self.sizes.tolist()), _stored_ages(self.ages))
        return b"".join((*parts, self.hashes.astype("<u4").tobytes(), self.group_hashes.astype("<u4").tobytes()))

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the stored form: what names an index."""
        return digest(self.stored)

    @property
    def data_size(self) -> int:
        """Bytes of all chunks."""
        return int(self.sizes.sum())

    def __len__(self) -> int:
        return len(self.sizes)


def empty() -> Index:
    """The index of no chunks."""
    none, nothing = np.zeros(0, np.int64), np.zeros(0, np.uint32)
    return Index(none, none, nothing, nothing)


def borders(hashes: Hashes) -> Ints:
    """Borders of groups by the cutting rule."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(np.array(cut(hashes.tolist()), np.int64))))


def parse(stored: bytes, chunks: int) -> Index:
    """Reads what `Index.stored` wrote; `Damaged` for anything else."""
    if chunks > MAX_CHUNKS or len(stored) > MAX_INDEX or chunks * 5 > len(stored):
        raise Damaged("The index of the zrec file has an impossible size; get a fresh copy.")
    sizes, at = varint.decode_column(stored, 0, chunks)
    if chunks and not 1 <= int(sizes.min()) <= int(sizes.max()) <= MAX_CHUNK:
        raise Damaged("The index of the zrec file names a chunk of impossible size; get a fresh copy.")
    ages, at = _parse_ages(stored, at, chunks)
    if len(stored) < at + 4 * chunks:
        raise Damaged("The index of the zrec file is cut short; get a fresh copy.")
    hashes = np.frombuffer(stored, "<u4", chunks, at).astype(np.uint32)
    at += 4 * chunks
    groups = len(borders(hashes)) - 1
    if len(stored) != at + 4 * groups:
        raise Damaged("The index of the zrec file has too few or too many groups; get a fresh copy.")
    return Index(sizes, ages, hashes, np.frombuffer(stored, "<u4", groups, at).astype(np.uint32))


def _stored_ages(ages: Ints) -> bytes:
    starts = np.flatnonzero(np.diff(ages, prepend=-1)).tolist()
    runs = pairwise([*starts, len(ages)])
    return b"".join(varint.encode(int(ages[start])) + varint.encode(end - start) for start, end in runs)


def _parse_ages(stored: bytes, at: int, chunks: int) -> tuple[Ints, int]:
    values: list[int] = []
    runs: list[int] = []
    left = chunks
    while left > 0:
        (age, run), at = varint.decode_some(stored, at, 2)
        if age > MAX_AGE or not 0 < run <= left or values[-1:] == [age]:
            raise Damaged("The index of the zrec file names impossible generations; get a fresh copy.")
        values.append(age)
        runs.append(run)
        left -= run
    return np.repeat(np.array(values, np.int64), np.array(runs, np.int64)), at
