"""Which runs of tokens two versions share: an alignment with bounded time and memory."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from rapidfuzz.distance import LCSseq

# One bit a cell: the table of the exact alignment stays below 16 MB.
_CELLS = 128_000_000


class Run(NamedTuple):
    """`length` tokens at `start` of the version that stand at `source` of the base."""

    start: int
    source: int
    length: int


class _Box(NamedTuple):
    """A part of the base and the part of the version that it is compared with."""

    source: int
    source_end: int
    start: int
    end: int


def aligned(base: Sequence[int], version: Sequence[int]) -> list[Run]:
    """Shared runs in order, none overlapping; exact for ordinary pages, coarser for huge ones."""
    runs: list[Run] = []
    boxes = [_Box(0, len(base), 0, len(version))]
    while boxes:
        box = _trimmed(base, version, boxes.pop(), runs)
        rows, columns = box.source_end - box.source, box.end - box.start
        if not rows or not columns:
            continue
        if rows * columns <= _CELLS:
            runs.extend(_exact(base, version, box))
        else:
            boxes.extend(_split(base, version, box))
    return _merged(sorted(runs))


def _trimmed(base: Sequence[int], version: Sequence[int], box: _Box, runs: list[Run]) -> _Box:
    """The box without the ends that both sides share; those are added to the runs."""
    source, source_end, start, end = box
    while source < source_end and start < end and base[source] == version[start]:
        source, start = source + 1, start + 1
    while source < source_end and start < end and base[source_end - 1] == version[end - 1]:
        source_end, end = source_end - 1, end - 1
    if start > box.start:
        runs.append(Run(box.start, box.source, start - box.start))
    if end < box.end:
        runs.append(Run(end, source_end, box.end - end))
    return _Box(source, source_end, start, end)


def _exact(base: Sequence[int], version: Sequence[int], box: _Box) -> list[Run]:
    codes = LCSseq.opcodes(base[box.source : box.source_end], version[box.start : box.end])
    return [
        Run(box.start + code.dest_start, box.source + code.src_start, code.src_end - code.src_start)
        for code in codes
        if code.tag == "equal"
    ]


def _split(base: Sequence[int], version: Sequence[int], box: _Box) -> list[_Box]:
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


def _merged(runs: list[Run]) -> list[Run]:
    """Runs that continue each other joined into one."""
    out: list[Run] = []
    for run in runs:
        last = out[-1] if out else None
        if last and last.start + last.length == run.start and last.source + last.length == run.source:
            out[-1] = Run(last.start, last.source, last.length + run.length)
        else:
            out.append(run)
    return out
