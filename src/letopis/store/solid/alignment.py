"""What two versions of a document share: tokens as numbers, the cheapest base, aligned runs, moved text.

Time and memory are bounded: exact for ordinary pages, coarser for huge ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq

from letopis.store.solid import frame_format
from letopis.store.solid.frame_format import encode_number, encode_signed
from letopis.tuples import NamedTuple

TokenIds = NDArray[np.int32]
TokenPlaces = NDArray[np.int64]
TokenRuns = NDArray[np.int64]
"""A row for each run: where it starts in the version, where it stands in the base, how many tokens it has."""

# Weights found on real pages: a superfluous token costs an operation's share,
# and a base further back breaks the rhythm of the residue a little.
_SUPERFLUOUS = 4
_FAR = 8
_REMEMBERED = 16


class _Vocabulary(NamedTuple):
    """The distinct tokens of a version, how often each occurs, and the bytes of one."""

    ids: TokenPlaces
    counts: TokenPlaces
    lengths: TokenPlaces


class TokenTable:
    """All versions of a document as token numbers; equal tokens have equal numbers."""

    def __init__(self, forms: Iterable[bytes], ends: bytes) -> None:
        self._numbers: defaultdict[bytes, int] = defaultdict(count().__next__)
        self.ids: list[TokenIds] = [self._numbered(frame_format.cut_tokens(form, ends)) for form in forms]
        self._counts: dict[int, TokenPlaces] = {}
        self._offsets: dict[int, TokenPlaces] = {}
        self._costs: dict[tuple[int, int], int] = {}
        self._vocabulary: tuple[int, _Vocabulary] | None = None

    def _numbered(self, cut: list[bytes]) -> TokenIds:
        return np.fromiter(map(self._numbers.__getitem__, cut), dtype=np.int32, count=len(cut))

    @cached_property
    def lengths(self) -> TokenPlaces:
        """Bytes of each distinct token."""
        return np.fromiter(map(len, self._numbers), dtype=np.int64, count=len(self._numbers))

    def offsets(self, version: int) -> TokenPlaces:
        """Where each token of a version begins in its form, and where the last one ends; a few are remembered."""
        if version not in self._offsets:
            _make_room(self._offsets)
            self._offsets[version] = np.concatenate(([0], np.cumsum(self.lengths[self.ids[version]])))
        return self._offsets[version]

    def counts(self, version: int) -> TokenPlaces:
        """How often each distinct token occurs in a version; the last few are remembered."""
        if version not in self._counts:
            _make_room(self._counts)
            self._counts[version] = np.bincount(self.ids[version], minlength=len(self.lengths))
        return self._counts[version]

    def cheapest(self, version: int, candidates: Sequence[int], weights: Mapping[int, float]) -> int:
        """The candidate that leaves least to write, its own weight counted in; the last one counts as adjacent."""
        adjacent = candidates[-1]
        costs = {base: self._cost(version, base) + weights[base] + _FAR * (base != adjacent) for base in candidates}
        return min(candidates, key=lambda base: (costs[base], base != adjacent))

    def _cost(self, version: int, base: int) -> int:
        """Bytes of the tokens that the base lacks, and a little for each that it has too many."""
        if (version, base) not in self._costs:
            own = self._vocabulary_of(version)
            shared = np.minimum(own.counts, self.counts(base)[own.ids])
            missing = int(own.lengths @ (own.counts - shared))
            superfluous = len(self.ids[base]) - int(shared.sum())
            self._costs[version, base] = missing + _SUPERFLUOUS * superfluous
        return self._costs[version, base]

    def _vocabulary_of(self, version: int) -> _Vocabulary:
        if self._vocabulary is None or self._vocabulary[0] != version:
            counts = self.counts(version)
            ids = np.flatnonzero(counts)
            self._vocabulary = version, _Vocabulary(ids, counts[ids], self.lengths[ids])
        return self._vocabulary[1]


def _make_room(remembered: dict[int, TokenPlaces]) -> None:
    if len(remembered) > _REMEMBERED:
        remembered.pop(next(iter(remembered)))


# One bit a cell: the table of the exact alignment stays below 16 MB.
_CELLS = 128_000_000


class _Box(NamedTuple):
    """A part of the base and the part of the version that it is compared with."""

    source: int
    source_end: int
    start: int
    end: int


RunList = list[tuple[int, int, int]]


def aligned_runs(base: TokenIds, version: TokenIds) -> TokenRuns:
    """Shared runs in order, none overlapping; exact for ordinary pages, coarser for huge ones."""
    runs: RunList = []
    boxes = [_Box(0, len(base), 0, len(version))]
    while boxes:
        box = _trimmed(base, version, boxes.pop(), runs)
        rows, columns = box.source_end - box.source, box.end - box.start
        if not rows or not columns or rows == columns == 1:
            continue
        if rows * columns <= _CELLS:
            runs += _exact(base, version, box)
        else:
            boxes += _split_box(base, version, box, runs)
    return _merged(runs)


def _trimmed(base: TokenIds, version: TokenIds, box: _Box, runs: RunList) -> _Box:
    """The box without the ends that both sides share; those are added to the runs."""
    source, source_end, start, end = box
    if same := _common(base[source:source_end], version[start:end]):
        runs.append((start, source, same))
        source, start = source + same, start + same
    if same := _common(base[source:source_end][::-1], version[start:end][::-1]):
        source_end, end = source_end - same, end - same
        runs.append((end, source_end, same))
    return _Box(source, source_end, start, end)


def _common(one: TokenIds, other: TokenIds) -> int:
    """How many tokens both begin with."""
    length = min(len(one), len(other))
    if not length or one[0] != other[0]:
        return 0
    differ = one[:length] != other[:length]
    first = int(differ.argmax())
    return first if differ[first] else length


def _exact(base: TokenIds, version: TokenIds, box: _Box) -> RunList:
    codes = LCSseq.opcodes(base[box.source : box.source_end].tolist(), version[box.start : box.end].tolist())
    return [
        (box.start + code.dest_start, box.source + code.src_start, code.src_end - code.src_start)
        for code in codes
        if code.tag == "equal"
    ]


def _split_box(base: TokenIds, version: TokenIds, box: _Box, runs: RunList) -> list[_Box]:
    """Smaller boxes between the tokens that occur once on each side and keep their order; those are runs."""
    anchors = _anchors(base[box.source : box.source_end], version[box.start : box.end])
    if not len(anchors):
        return []
    fence = _merged([(start + box.start, source + box.source, 1) for start, source in anchors]).tolist()
    runs += map(tuple, fence)
    boxes = []
    at, cursor = box.start, box.source
    for start, source, length in [*fence, (box.end, box.source_end, 0)]:
        if start > at and source > cursor:
            boxes.append(_Box(cursor, source, at, start))
        at, cursor = start + length, source + length
    return boxes


def _anchors(here: TokenIds, there: TokenIds) -> list[tuple[int, int]]:
    """Places in the second and the first sequence of tokens that each has once, as many as keep their order."""
    tokens = int(max(here.max(), there.max())) + 1
    where = np.zeros(tokens, dtype=np.int64)
    where[there] = np.arange(len(there))
    single = (np.bincount(here, minlength=tokens) == 1) & (np.bincount(there, minlength=tokens) == 1)
    places = np.flatnonzero(single[here])
    return _rising(list(zip(where[here[places]].tolist(), places.tolist(), strict=True)))


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of the pairs in which the first members rise too."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (value, _) in enumerate(pairs):
        at = bisect_left(tops, value)
        before.append(ends[at - 1] if at else -1)
        tops[at : at + 1] = [value]
        ends[at : at + 1] = [index]
    chain = []
    index = ends[-1] if ends else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    return chain[::-1]


def _merged(runs: RunList) -> TokenRuns:
    """Runs in order, those that continue each other joined into one."""
    if not runs:
        return np.empty((0, 3), dtype=np.int64)
    found = np.array(sorted(runs), dtype=np.int64)
    stops = found[:-1, :2] + found[:-1, 2:]
    first = np.flatnonzero(np.concatenate(([True], (stops != found[1:, :2]).any(axis=1))))
    return np.column_stack((found[first, :2], np.add.reduceat(found[:, 2], first)))


_MOVE_WINDOW = 4
_GAP_BYTES = 128
_MOVE_BYTES = 64
_HASH_STEP = np.uint64(0x9E3779B97F4A7C15)


def runs_between(texts: TokenTable, base: int, version: int) -> TokenRuns:
    """All runs of the base that the version repeats, in the version's order, moved ones included."""
    source, target = texts.ids[base], texts.ids[version]
    runs = aligned_runs(source, target)
    offsets = texts.offsets(version)
    gaps = _gaps(runs, offsets)
    if not len(gaps):
        return runs
    moved = _moved_runs(source, target, gaps.tolist(), offsets)
    if not moved:
        return runs
    every = np.concatenate((runs, np.array(moved, dtype=np.int64)))
    return every[every[:, 0].argsort()]


def kept_runs(runs: TokenRuns, offsets: TokenPlaces, least: int) -> TokenRuns:
    """The runs without those that copy fewer than `least` bytes; one at either end of the version stays."""
    starts, stops = runs[:, 0], runs[:, 0] + runs[:, 2]
    kept: TokenRuns = runs[(offsets[stops] - offsets[starts] >= least) | (starts == 0) | (stops == len(offsets) - 1)]
    return kept


def _gaps(runs: TokenRuns, offsets: TokenPlaces) -> NDArray[np.int64]:
    """Where no run is, as far as it is long enough to hold moved text: first and last place of each."""
    starts = np.concatenate(([0], runs[:, 0] + runs[:, 2]))
    stops = np.concatenate((runs[:, 0], [len(offsets) - 1]))
    return np.column_stack((starts, stops))[offsets[stops] - offsets[starts] >= _GAP_BYTES]


def _moved_runs(source: TokenIds, target: TokenIds, gaps: list[list[int]], offsets: TokenPlaces) -> RunList:
    """Runs of the base that stand elsewhere in it and are long enough to be worth two seeks."""
    if min(len(source), len(target)) < _MOVE_WINDOW:
        return []
    places = _window_places(source, target).tolist()
    have, want, at_byte = source.tolist(), target.tolist(), offsets.tolist()
    out = []
    for start, end in gaps:
        at = start
        while at + _MOVE_WINDOW <= end:
            place = places[at]
            length = _same_length(have, want, place, at, end) if place >= 0 else 0
            if length and at_byte[at + length] - at_byte[at] >= _MOVE_BYTES:
                out.append((at, place, length))
                at += length
            else:
                at += 1
    return out


def _window_places(source: TokenIds, target: TokenIds) -> TokenPlaces:
    """For each window of the version: where one with the same hash stands first in the base; -1 for nowhere."""
    have, want = _window_hashes(source), _window_hashes(target)
    order = have.argsort(kind="stable")
    ranked = have[order]
    found = np.minimum(ranked.searchsorted(want), len(ranked) - 1)
    return np.where(ranked[found] == want, order[found], -1)


def _window_hashes(ids: TokenIds) -> NDArray[np.uint64]:
    numbers = ids.astype(np.uint64)
    stop = len(ids) - _MOVE_WINDOW + 1
    out = numbers[:stop]
    for shift in range(1, _MOVE_WINDOW):
        out = out * _HASH_STEP + numbers[shift : shift + stop]
    return out


def _same_length(have: list[int], want: list[int], place: int, at: int, end: int) -> int:
    length = 0
    limit = min(len(have) - place, end - at)
    while length < limit and have[place + length] == want[at + length]:
        length += 1
    return length


def encode_script(runs: TokenRuns, form: bytes, offsets: TokenPlaces, base_count: int) -> bytes:
    """The operations that make a version from its base, without reference and stop; `form` ends with its last token."""
    stops = np.concatenate(([[0, 0]], runs[:, :2] + runs[:, 2:]))
    following = np.concatenate((runs, [[len(offsets) - 1, base_count, 0]]))
    # Where a run does not go on both sides at once, an operation stands before it.
    breaks = np.flatnonzero((stops != following[:, :2]).any(axis=1))
    copied = np.diff(np.concatenate(([0], np.cumsum(runs[:, 2])))[breaks], prepend=0)
    counts, moved = (following[breaks, :2] - stops[breaks]).T
    starts, ends = offsets[stops[breaks, 0]].tolist(), offsets[following[breaks, 0]].tolist()
    literals = [form[start:end] for start, end in zip(starts, ends, strict=True)]
    copies, inserts = map(encode_number, copied.tolist()), map(encode_number, counts.tolist())
    # Most insertions replace as many tokens as they bring: that seek is written as 0.
    seeks = map(encode_signed, (moved - counts).tolist())
    return b"".join(chain.from_iterable(zip(copies, inserts, seeks, literals, strict=True)))
