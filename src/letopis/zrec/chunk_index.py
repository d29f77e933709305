"""The index of a zrec file: sizes, ages and hashes of chunks, the hashes of their groups, and journals between indexes.

Borders of groups depend only on hashes nearby, so that an insertion or deletion moves only borders nearby. A journal
is small: it says which chunks stayed, in common order, and what changed. Alignment is Hunt and Szymanski's: the longest
common subsequence is the longest ascending run through all pairs of equal elements, found in O((r + n) log n) for r
pairs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias, TypeVar

from letopis import binary
from letopis.binary import MAX_VARINT_BYTES, sha256_digest
from letopis.errors import Damaged
from letopis.lazy import np, npt
from letopis.tuples import NamedTuple
from letopis.zrec.header import MAX_AGE, MAX_CHUNK, MAX_CHUNKS, MAX_HISTORY, MAX_INDEX


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


ChunkPairs = list[tuple[int, int]]

_FREE_PAIRS = 1 << 16
_PAIRS_EACH = 8


def align_chunks(old: ChunkIndex, new: ChunkIndex) -> ChunkPairs:
    """Pairs (old number, new number) of chunks that are the same by their hashes, both ascending.

    Groups that are the same as a whole split the problem; between them chunks are aligned one by one.
    """
    pairs: ChunkPairs = []
    here = there = 0
    old_hashes, new_hashes = old.hashes.tolist(), new.hashes.tolist()
    old_borders, new_borders = old.borders.tolist(), new.borders.tolist()
    anchors = [
        (old_borders[a], new_borders[b], new_borders[b + 1])
        for a, b in common_subsequence(_group_keys(old), _group_keys(new))
    ]
    for come, to, end in [*anchors, (len(old), len(new), len(new))]:
        between = common_subsequence(old_hashes[here:come], new_hashes[there:to])
        pairs += [(here + a, there + b) for a, b in between]
        pairs += [(come + step, to + step) for step in range(end - to)]
        here, there = come + end - to, end
    return pairs


def common_subsequence(old: Sequence[int], new: Sequence[int]) -> ChunkPairs:
    """A longest common subsequence as pairs of positions.

    Exact unless elements repeat so often that the number of pairs outgrows the input
    (an index made to hurt): then the k-th of one side is paired only with the k-th of the other.
    """
    start = _common_length(old, new)
    end = _common_length(old[start:][::-1], new[start:][::-1])
    inside = _longest(old[start : len(old) - end], new[start : len(new) - end])
    head = [(at, at) for at in range(start)]
    tail = [(len(old) - at, len(new) - at) for at in range(end, 0, -1)]
    return head + [(start + a, start + b) for a, b in inside] + tail


def _common_length(old: Sequence[int], new: Sequence[int]) -> int:
    most = min(len(old), len(new))
    if old[:most] == new[:most]:
        return most
    return next(at for at in range(most) if old[at] != new[at])


def _longest(old: Sequence[int], new: Sequence[int]) -> ChunkPairs:
    if not old or not new:
        return []
    lasts: list[int] = []
    nodes: list[int] = []
    trail: list[tuple[int, int, int]] = []
    for at, candidates in _candidates(old, new):
        for position in candidates:
            place = bisect_left(lasts, position)
            trail.append((position, at, nodes[place - 1] if place else -1))
            lasts[place : place + 1] = [position]
            nodes[place : place + 1] = [len(trail) - 1]
    return _traced(trail, nodes)


def _candidates(old: Sequence[int], new: Sequence[int]) -> Iterable[tuple[int, Sequence[int]]]:
    """For each new position the equal old ones, greatest first, so that a position follows only smaller ones."""
    places: dict[int, list[int]] = {}
    for at in range(len(old) - 1, -1, -1):
        places.setdefault(old[at], []).append(at)
    found = ((at, places[value]) for at, value in enumerate(new) if value in places)
    if _pair_count(places, new) <= _FREE_PAIRS + _PAIRS_EACH * (len(old) + len(new)):
        return found
    return ((at, [equal.pop()]) for at, equal in found if equal)


def _pair_count(places: dict[int, list[int]], new: Sequence[int]) -> int:
    return sum(len(places.get(value, ())) * times for value, times in Counter(new).items())


def _traced(trail: list[tuple[int, int, int]], nodes: list[int]) -> ChunkPairs:
    pairs: ChunkPairs = []
    node = nodes[-1] if nodes else -1
    while node >= 0:
        position, at, node = trail[node]
        pairs.append((position, at))
    return pairs[::-1]


def _group_keys(index: ChunkIndex) -> list[int]:
    """One number a group, of its H and of all h in it."""
    if not len(index):
        return []
    starts = index.borders[:-1]
    place = np.arange(len(index)) - np.repeat(starts, np.diff(index.borders))
    mixed = (index.hashes.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B185EBCA87)
    mixed *= (2 * place + 1).astype(np.uint64)
    folded = np.add.reduceat(mixed, starts) >> np.uint64(32)
    keys: list[int] = (index.group_hashes.astype(np.uint64) << np.uint64(32) | folded).tolist()
    return keys


IndexColumn = TypeVar("IndexColumn", "npt.NDArray[np.int64]", "npt.NDArray[np.uint32]")


class IndexJournal(NamedTuple):
    """One step of history: from the index with this digest (16 bytes of it) to the next one."""

    old: bytes
    stored: bytes


def next_ages(ages: Ints) -> Ints:
    """Ages after one more generation."""
    return np.minimum(ages + 1, MAX_AGE)


def write_journal(new: ChunkIndex, kept: Sequence[tuple[int, int]], old: ChunkIndex) -> IndexJournal:
    """The journal for chunks kept as pairs (old number, new number), both ascending."""
    edits, added = _edits(kept, len(old), len(new))
    origin = np.full(len(new), -1, np.int64)
    if kept:
        origin[[to for _, to in kept]] = [come for come, _ in kept]
    unknown = _inherited_groups(new.borders, origin, old) < 0
    parts = (
        binary.encode_varint(len(edits)) + binary.encode_varints([number for edit in edits for number in edit]),
        binary.encode_varints(new.sizes[added].tolist()),
        new.hashes[added].astype("<u4").tobytes(),
        new.group_hashes[unknown].astype("<u4").tobytes(),
    )
    return IndexJournal(old.digest[:16], b"".join(parts))


def apply_journal(old: ChunkIndex, stored: bytes) -> ChunkIndex:
    """The next index; `Damaged` when the journal does not fit. Whether it is right is for the digest to say."""
    origin, at = _read_edits(stored, len(old))
    fresh = origin < 0
    count = int(fresh.sum())
    sizes, at = decode_varint_column(stored, at, count)
    if count and not 1 <= int(sizes.min()) <= int(sizes.max()) <= MAX_CHUNK:
        raise Damaged("A journal of the zrec file names a chunk of impossible size; get a fresh copy.")
    added, at = _read_hashes(stored, at, count)
    hashes = _merged_column(old.hashes, origin, added)
    inherited = _inherited_groups(group_borders(hashes), origin, old)
    named, at = _read_hashes(stored, at, int((inherited < 0).sum()))
    if at != len(stored):
        raise Damaged("A journal of the zrec file is too long; get a fresh copy.")
    ages = _merged_column(next_ages(old.ages), origin, np.zeros(count, np.int64))
    return ChunkIndex(
        _merged_column(old.sizes, origin, sizes), ages, hashes, _merged_column(old.group_hashes, inherited, named)
    )


def recent_journals(journals: Sequence[IndexJournal], index_size: int) -> list[IndexJournal]:
    """The newest journals that together stay below half an index."""
    kept: list[IndexJournal] = []
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
    count, at = binary.decode_canonical_varint(stored, 0)
    numbers, at = decode_varint_column(stored, at, _bounded(count, len(stored)) * 3)
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


def _merged_column(old: IndexColumn, origin: Ints, added: IndexColumn) -> IndexColumn:
    merged = np.zeros(len(origin), old.dtype)
    merged[origin >= 0] = old[origin[origin >= 0]]
    merged[origin < 0] = added
    return merged


def _inherited_groups(new_borders: Ints, origin: Ints, old: ChunkIndex) -> Ints:
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
