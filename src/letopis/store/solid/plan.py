"""From an alignment to the runs worth copying: moved text found, short copies dropped."""

from __future__ import annotations

from collections.abc import Sequence

from letopis.store.solid.bases import Ids, Texts
from letopis.store.solid.matching import Run, aligned

_WINDOW = 4
_GAP_BYTES = 128
_MOVE_BYTES = 64


def runs_between(texts: Texts, base: int, version: int) -> list[Run]:
    """All runs of the base that the version repeats, in the version's order, moved ones included."""
    source, target = texts.ids[base], texts.ids[version]
    runs = aligned(source.tolist(), target.tolist())
    offsets = texts.offsets(version)
    gaps = [(start, end) for start, end in _gaps(runs, len(target)) if offsets[end] - offsets[start] >= _GAP_BYTES]
    if not gaps:
        return runs
    moves = _Moves(source, target, offsets)
    return sorted(runs + [run for start, end in gaps for run in moves.between(start, end)])


def kept(texts: Texts, version: int, runs: Sequence[Run], least: int) -> list[Run]:
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


def _gaps(runs: Sequence[Run], end: int) -> list[tuple[int, int]]:
    edges = [0]
    for run in runs:
        edges += (run.start, run.start + run.length)
    edges.append(end)
    return [(start, stop) for start, stop in zip(edges[::2], edges[1::2], strict=True) if stop > start]


class _Moves:
    """Finds runs of the base that stand elsewhere in it and are long enough to be worth two seeks."""

    def __init__(self, source: Ids, target: Ids, offsets: list[int]) -> None:
        self._source = source
        self._target = target
        self._offsets = offsets
        ids = source.tolist()
        self._places: dict[tuple[int, ...], int] = {}
        for place, window in enumerate(zip(*(ids[shift:] for shift in range(_WINDOW)), strict=False)):
            self._places.setdefault(window, place)

    def between(self, start: int, end: int) -> list[Run]:
        """Moved runs in a part of the version."""
        out = []
        ids = self._target[start:end].tolist()
        at = start
        while at + _WINDOW <= end:
            place = self._places.get(tuple(ids[at - start : at - start + _WINDOW]))
            length = self._same(place, at, end) if place is not None else 0
            if place is not None and self._offsets[at + length] - self._offsets[at] >= _MOVE_BYTES:
                out.append(Run(at, place, length))
                at += length
            else:
                at += 1
        return out

    def _same(self, place: int, at: int, end: int) -> int:
        length = min(len(self._source) - place, end - at)
        differ = (self._source[place : place + length] != self._target[at : at + length]).nonzero()[0]
        return int(differ[0]) if len(differ) else length
