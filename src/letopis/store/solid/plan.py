"""From an alignment to the runs worth copying: moved text found, short copies dropped."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from letopis.store.solid.bases import Ids, Texts
from letopis.store.solid.matching import Run, aligned

_WINDOW = 6
_GAP_BYTES = 320
_MOVE_BYTES = 160


def runs_between(texts: Texts, base: int, version: int) -> list[Run]:
    """All runs of the base that the version repeats, in the version's order, moved ones included."""
    source, target = texts.ids[base], texts.ids[version]
    runs = aligned(source.tolist(), target.tolist())
    offsets = _offsets(texts, target)
    gaps = [gap for gap in _gaps(runs, len(target)) if offsets[gap[1]] - offsets[gap[0]] >= _GAP_BYTES]
    if gaps:
        places = _places(source.tolist())
        moved = [run for gap in gaps for run in _moves(source, target, places, gap, offsets)]
        runs = sorted(runs + moved)
    return runs


def kept(texts: Texts, version: int, runs: Sequence[Run], least: int) -> list[Run]:
    """The runs without those that copy fewer than `least` bytes; the first and last token runs stay."""
    offsets = _offsets(texts, texts.ids[version])
    end = len(offsets) - 1
    return [
        run
        for run in runs
        if offsets[run.start + run.count] - offsets[run.start] >= least or not run.start or run.start + run.count == end
    ]


def _offsets(texts: Texts, ids: Ids) -> list[int]:
    return list(accumulate(texts.lengths[ids].tolist(), initial=0))


def _gaps(runs: Sequence[Run], end: int) -> list[tuple[int, int]]:
    edges = [0]
    for run in runs:
        edges += (run.start, run.start + run.count)
    edges.append(end)
    return [(start, stop) for start, stop in zip(edges[::2], edges[1::2], strict=True) if stop > start]


def _places(ids: list[int]) -> dict[tuple[int, ...], int]:
    """Where each window of tokens first stands."""
    windows = zip(*(ids[shift:] for shift in range(_WINDOW)), strict=False)
    places: dict[tuple[int, ...], int] = {}
    for place, window in enumerate(windows):
        places.setdefault(window, place)
    return places


def _moves(
    source: Ids, target: Ids, places: dict[tuple[int, ...], int], gap: tuple[int, int], offsets: list[int]
) -> list[Run]:
    """Runs of the base, long enough to be worth two seeks, that stand elsewhere in it."""
    out = []
    at, stop = gap
    ids = target[at:stop].tolist()
    first = at
    while at + _WINDOW <= stop:
        place = places.get(tuple(ids[at - first : at - first + _WINDOW]))
        count = _same(source, target, place, at, stop) if place is not None else 0
        if place is not None and offsets[at + count] - offsets[at] >= _MOVE_BYTES:
            out.append(Run(at, place, count))
            at += count
        else:
            at += 1
    return out


def _same(source: Ids, target: Ids, place: int, at: int, stop: int) -> int:
    count = min(len(source) - place, stop - at)
    differ = (source[place : place + count] != target[at : at + count]).nonzero()[0]
    return int(differ[0]) if len(differ) else count
