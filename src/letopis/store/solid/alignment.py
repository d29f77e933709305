"""What two versions of a document share: tokens as numbers, the cheapest base, aligned runs, moved text.

Time and memory are bounded: exact for ordinary pages, coarser for huge ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq

from letopis.store.solid import frame_format
from letopis.store.solid.frame_format import TokenRun

TokenIds = NDArray[np.int32]

# Weights found on real pages: a superfluous token costs an operation's share,
# and a base further back breaks the rhythm of the residue a little.
_SUPERFLUOUS = 4
_FAR = 8


class TokenTable:
    """All versions of a document as token numbers; equal tokens have equal numbers."""

    def __init__(self, forms: Iterable[bytes], ends: bytes) -> None:
        self._numbers: dict[bytes, int] = {}
        self.ids: list[TokenIds] = [self._numbered(frame_format.cut_tokens(form, ends)) for form in forms]
        self._counts: dict[int, NDArray[np.int64]] = {}

    def _numbered(self, cut: list[bytes]) -> TokenIds:
        known = self._numbers
        return np.fromiter((known.setdefault(token, len(known)) for token in cut), dtype=np.int32, count=len(cut))

    @cached_property
    def words(self) -> list[bytes]:
        """The distinct tokens by number."""
        return list(self._numbers)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Bytes of each distinct token."""
        return np.fromiter(map(len, self.words), dtype=np.int64, count=len(self.words))

    def literal(self, version: int) -> list[bytes]:
        """The tokens of a version."""
        words = self.words
        return [words[number] for number in self.ids[version].tolist()]

    def offsets(self, version: int) -> list[int]:
        """Where each token of a version begins in its form, and where the last one ends."""
        return list(accumulate(self.lengths[self.ids[version]].tolist(), initial=0))

    def counts(self, version: int) -> NDArray[np.int64]:
        """How often each distinct token occurs in a version; the last few are remembered."""
        if version not in self._counts:
            if len(self._counts) > 16:
                self._counts.pop(next(iter(self._counts)))
            self._counts[version] = np.bincount(self.ids[version], minlength=len(self.words))
        return self._counts[version]

    def cheapest(self, version: int, candidates: Sequence[int], weights: Mapping[int, float]) -> int:
        """The candidate that leaves least to write, its own weight counted in; the last one counts as adjacent."""
        adjacent = candidates[-1]
        costs = {base: self._cost(version, base) + weights[base] + _FAR * (base != adjacent) for base in candidates}
        return min(candidates, key=lambda base: (costs[base], base != adjacent))

    def _cost(self, version: int, base: int) -> int:
        surplus = self.counts(version) - self.counts(base)
        missing = int(self.lengths @ np.maximum(surplus, 0))
        return missing - _SUPERFLUOUS * int(np.minimum(surplus, 0).sum())


# One bit a cell: the table of the exact alignment stays below 16 MB.
_CELLS = 128_000_000


class _Box(NamedTuple):
    """A part of the base and the part of the version that it is compared with."""

    source: int
    source_end: int
    start: int
    end: int


def aligned_runs(base: Sequence[int], version: Sequence[int]) -> list[TokenRun]:
    """Shared runs in order, none overlapping; exact for ordinary pages, coarser for huge ones."""
    runs: list[TokenRun] = []
    boxes = [_Box(0, len(base), 0, len(version))]
    while boxes:
        box = _trimmed(base, version, boxes.pop(), runs)
        rows, columns = box.source_end - box.source, box.end - box.start
        if not rows or not columns:
            continue
        if rows * columns <= _CELLS:
            runs.extend(_exact(base, version, box))
        else:
            boxes.extend(_split_box(base, version, box))
    return _merged(sorted(runs))


def _trimmed(base: Sequence[int], version: Sequence[int], box: _Box, runs: list[TokenRun]) -> _Box:
    """The box without the ends that both sides share; those are added to the runs."""
    source, source_end, start, end = box
    while source < source_end and start < end and base[source] == version[start]:
        source, start = source + 1, start + 1
    while source < source_end and start < end and base[source_end - 1] == version[end - 1]:
        source_end, end = source_end - 1, end - 1
    if start > box.start:
        runs.append(TokenRun(box.start, box.source, start - box.start))
    if end < box.end:
        runs.append(TokenRun(end, source_end, box.end - end))
    return _Box(source, source_end, start, end)


def _exact(base: Sequence[int], version: Sequence[int], box: _Box) -> list[TokenRun]:
    codes = LCSseq.opcodes(base[box.source : box.source_end], version[box.start : box.end])
    return [
        TokenRun(box.start + code.dest_start, box.source + code.src_start, code.src_end - code.src_start)
        for code in codes
        if code.tag == "equal"
    ]


def _split_box(base: Sequence[int], version: Sequence[int], box: _Box) -> list[_Box]:
    """Smaller boxes between the tokens that occur once on each side and keep their order."""
    anchors = _anchors(base, version, box)
    if not anchors:
        return []
    fence = [(box.source - 1, box.start - 1), *anchors, (box.source_end, box.end)]
    # Each box begins with its anchor, which trimming then takes as a shared end.
    return [
        _Box(max(left[0], box.source), right[0], max(left[1], box.start), right[1]) for left, right in pairwise(fence)
    ]


def _anchors(base: Sequence[int], version: Sequence[int], box: _Box) -> list[tuple[int, int]]:
    here = base[box.source : box.source_end]
    there = version[box.start : box.end]
    single = {token for token, count in Counter(here).items() if count == 1}
    single &= {token for token, count in Counter(there).items() if count == 1}
    where = {token: place for place, token in enumerate(there, box.start) if token in single}
    pairs = [(place, where[token]) for place, token in enumerate(here, box.source) if token in single]
    return _rising(pairs)


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of the pairs in which the second members rise too."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, value) in enumerate(pairs):
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


def _merged(runs: list[TokenRun]) -> list[TokenRun]:
    """Runs that continue each other joined into one."""
    out: list[TokenRun] = []
    for run in runs:
        last = out[-1] if out else None
        if last and last.start + last.length == run.start and last.source + last.length == run.source:
            out[-1] = TokenRun(last.start, last.source, last.length + run.length)
        else:
            out.append(run)
    return out


_MOVE_WINDOW = 4
_GAP_BYTES = 128
_MOVE_BYTES = 64


def runs_between(texts: TokenTable, base: int, version: int) -> list[TokenRun]:
    """All runs of the base that the version repeats, in the version's order, moved ones included."""
    source, target = texts.ids[base], texts.ids[version]
    runs = aligned_runs(source.tolist(), target.tolist())
    offsets = texts.offsets(version)
    gaps = [(start, end) for start, end in _gaps(runs, len(target)) if offsets[end] - offsets[start] >= _GAP_BYTES]
    if not gaps:
        return runs
    moves = _MovedRuns(source, target, offsets)
    return sorted(runs + [run for start, end in gaps for run in moves.between(start, end)])


def kept_runs(texts: TokenTable, version: int, runs: Sequence[TokenRun], least: int) -> list[TokenRun]:
    """The runs without those that copy fewer than `least` bytes; one at either end of the version stays."""
    offsets = texts.offsets(version)
    end = len(offsets) - 1
    return [
        run
        for run in runs
        if offsets[run.start + run.length] - offsets[run.start] >= least
        or not run.start
        or run.start + run.length == end
    ]


def _gaps(runs: Sequence[TokenRun], end: int) -> list[tuple[int, int]]:
    edges = [0]
    for run in runs:
        edges += (run.start, run.start + run.length)
    edges.append(end)
    return [(start, stop) for start, stop in zip(edges[::2], edges[1::2], strict=True) if stop > start]


class _MovedRuns:
    """Finds runs of the base that stand elsewhere in it and are long enough to be worth two seeks."""

    def __init__(self, source: TokenIds, target: TokenIds, offsets: list[int]) -> None:
        self._source = source
        self._target = target
        self._offsets = offsets
        ids = source.tolist()
        self._places: dict[tuple[int, ...], int] = {}
        for place, window in enumerate(zip(*(ids[shift:] for shift in range(_MOVE_WINDOW)), strict=False)):
            self._places.setdefault(window, place)

    def between(self, start: int, end: int) -> list[TokenRun]:
        """Moved runs in a part of the version."""
        out = []
        ids = self._target[start:end].tolist()
        at = start
        while at + _MOVE_WINDOW <= end:
            place = self._places.get(tuple(ids[at - start : at - start + _MOVE_WINDOW]))
            length = self._same(place, at, end) if place is not None else 0
            if place is not None and self._offsets[at + length] - self._offsets[at] >= _MOVE_BYTES:
                out.append(TokenRun(at, place, length))
                at += length
            else:
                at += 1
        return out

    def _same(self, place: int, at: int, end: int) -> int:
        length = min(len(self._source) - place, end - at)
        differ = (self._source[place : place + length] != self._target[at : at + length]).nonzero()[0]
        return int(differ[0]) if len(differ) else length
