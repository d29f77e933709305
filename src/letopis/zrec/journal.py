"""Journals: the small difference that turns an older index into the next one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from letopis.errors import Damaged
from letopis.zrec import varint
from letopis.zrec.index import Hashes, Index, Ints, borders
from letopis.zrec.limits import MAX_AGE, MAX_CHUNK, MAX_CHUNKS, MAX_HISTORY

Column = TypeVar("Column", NDArray[np.int64], NDArray[np.uint32])


@dataclass(frozen=True, slots=True)
class Journal:
    """One step of history: from the index with this digest (16 bytes of it) to the next one."""

    old: bytes
    stored: bytes


def older(ages: Ints) -> Ints:
    """Ages after one more generation."""
    return np.minimum(ages + 1, MAX_AGE)


def write(new: Index, kept: Sequence[tuple[int, int]], old: Index) -> Journal:
    """The journal for chunks kept as pairs (old number, new number), both ascending."""
    edits, added = _edits(kept, len(old), len(new))
    origin = np.full(len(new), -1, np.int64)
    if kept:
        origin[[to for _, to in kept]] = [come for come, _ in kept]
    unknown = _inherited(new.borders, origin, old) < 0
    parts = (
        varint.encode(len(edits)) + varint.encode_all(number for edit in edits for number in edit),
        varint.encode_all(new.sizes[added].tolist()),
        new.hashes[added].astype("<u4").tobytes(),
        new.group_hashes[unknown].astype("<u4").tobytes(),
    )
    return Journal(old.digest[:16], b"".join(parts))


def apply(old: Index, stored: bytes) -> Index:
    """The next index; `Damaged` when the journal does not fit. Whether it is right is for the digest to say."""
    origin, at = _read_edits(stored, len(old))
    fresh = origin < 0
    count = int(fresh.sum())
    sizes, at = varint.decode_column(stored, at, count)
    if count and not 1 <= int(sizes.min()) <= int(sizes.max()) <= MAX_CHUNK:
        raise Damaged("A journal of the zrec file names a chunk of impossible size; get a fresh copy.")
    added, at = _read_hashes(stored, at, count)
    hashes = _merged(old.hashes, origin, added)
    inherited = _inherited(borders(hashes), origin, old)
    named, at = _read_hashes(stored, at, int((inherited < 0).sum()))
    if at != len(stored):
        raise Damaged("A journal of the zrec file is too long; get a fresh copy.")
    ages = _merged(older(old.ages), origin, np.zeros(count, np.int64))
    return Index(_merged(old.sizes, origin, sizes), ages, hashes, _merged(old.group_hashes, inherited, named))


def kept_history(journals: Sequence[Journal], index_size: int) -> list[Journal]:
    """The newest journals that together stay below half an index."""
    kept: list[Journal] = []
    left = index_size // 2
    for journal in journals[:MAX_HISTORY]:
        left -= len(journal.stored) + len(journal.old)
        if left < 0:
            break
        kept.append(journal)
    return kept


def _edits(kept: Sequence[tuple[int, int]], old: int, new: int) -> tuple[list[tuple[int, int, int]], Ints]:
    """(keep, drop, add) triples, and the numbers of the added chunks."""
    edits: list[tuple[int, int, int]] = []
    added: list[int] = []
    here, there, run = 0, 0, 0
    for come, to in [*kept, (old, new)]:
        if (come, to) != (here, there):
            edits.append((run, come - here, to - there))
            added.extend(range(there, to))
            run = 0
        run += 1
        here, there = come + 1, to + 1
    return edits, np.array(added, np.int64)


def _read_edits(stored: bytes, old: int) -> tuple[Ints, int]:
    """For every new chunk the number of the old one it is, or -1."""
    count, at = varint.decode(stored, 0)
    numbers, at = varint.decode_column(stored, at, _bounded(count, len(stored)) * 3)
    parts: list[Ints] = []
    here = 0
    for keep, drop, add in numbers.reshape(-1, 3).tolist():
        if keep + drop > old - here or add > len(stored):
            raise Damaged("A journal of the zrec file does not fit its index; get a fresh copy.")
        parts += [np.arange(here, here + keep), np.full(add, -1, np.int64)]
        here += keep + drop
    parts.append(np.arange(here, old))
    total = sum(map(len, parts))
    if total > MAX_CHUNKS or total - old > len(stored):
        raise Damaged("A journal of the zrec file adds impossibly many chunks; get a fresh copy.")
    return np.concatenate(parts).astype(np.int64), at


def _bounded(count: int, most: int) -> int:
    if count > most:
        raise Damaged("A journal of the zrec file is cut short; get a fresh copy.")
    return count


def _read_hashes(stored: bytes, at: int, count: int) -> tuple[Hashes, int]:
    if len(stored) < at + 4 * count:
        raise Damaged("A journal of the zrec file is cut short; get a fresh copy.")
    return np.frombuffer(stored, "<u4", count, at).astype(np.uint32), at + 4 * count


def _merged(old: Column, origin: Ints, added: Column) -> Column:
    merged = np.zeros(len(origin), old.dtype)
    merged[origin >= 0] = old[origin[origin >= 0]]
    merged[origin < 0] = added
    return merged


def _inherited(new_borders: Ints, origin: Ints, old: Index) -> Ints:
    """For every new group the number of the old group with exactly its chunks, or -1."""
    starts, ends = new_borders[:-1], new_borders[1:]
    if not len(starts) or not len(old):
        return np.full(len(starts), -1, np.int64)
    first, last = origin[starts], origin[ends - 1]
    number = np.searchsorted(old.borders, np.maximum(first, 0))
    number = np.minimum(number, len(old.borders) - 2)
    unbroken = np.concatenate((np.zeros(1, np.int64), np.cumsum((np.diff(origin) == 1) & (origin[:-1] >= 0))))
    whole = unbroken[ends - 1] - unbroken[starts] == ends - 1 - starts
    same = (first >= 0) & (old.borders[number] == first) & (old.borders[number + 1] == last + 1)
    return np.where(whole & same, number, -1)
