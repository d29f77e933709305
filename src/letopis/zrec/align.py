"""Alignment of an old and a new order of chunks: what stayed, in common order.

Hunt and Szymanski's way: the longest common subsequence is the longest
ascending run through all pairs of equal elements, found in O((r + n) log n)
for r pairs. Matches that break the common order are collisions and fall out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from letopis.zrec.index import Index

Pairs = list[tuple[int, int]]

_FREE_PAIRS = 1 << 16
_PAIRS_EACH = 8


def align(old: Index, new: Index) -> Pairs:
    """Pairs (old number, new number) of chunks that are the same by their hashes, both ascending.

    Groups that are the same as a whole split the problem; between them chunks are aligned one by one.
    """
    pairs: Pairs = []
    here = there = 0
    old_hashes, new_hashes = old.hashes.tolist(), new.hashes.tolist()
    old_borders, new_borders = old.borders.tolist(), new.borders.tolist()
    anchors = [(old_borders[a], new_borders[b], new_borders[b + 1]) for a, b in common(_keys(old), _keys(new))]
    for come, to, end in [*anchors, (len(old), len(new), len(new))]:
        between = common(old_hashes[here:come], new_hashes[there:to])
        pairs += [(here + a, there + b) for a, b in between]
        pairs += [(come + step, to + step) for step in range(end - to)]
        here, there = come + end - to, end
    return pairs


def common(old: Sequence[int], new: Sequence[int]) -> Pairs:
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


def _longest(old: Sequence[int], new: Sequence[int]) -> Pairs:
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


def _traced(trail: list[tuple[int, int, int]], nodes: list[int]) -> Pairs:
    pairs: Pairs = []
    node = nodes[-1] if nodes else -1
    while node >= 0:
        position, at, node = trail[node]
        pairs.append((position, at))
    return pairs[::-1]


def _keys(index: Index) -> list[int]:
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
