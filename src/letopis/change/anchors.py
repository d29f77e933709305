"""Runs of tokens that stand once on either side: where a long comparison can be split."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import numpy.typing as npt

_MIX = np.uint64(0x9E3779B97F4A7C15)


def anchors(a: list[int], b: list[int], width: int) -> list[tuple[int, int]]:
    """Where runs of `width` tokens begin that occur once in `a` and once in `b`, in an order both share."""
    keys_a, at_a = _once(a, width)
    keys_b, at_b = _once(b, width)
    _, in_a, in_b = np.intersect1d(keys_a, keys_b, assume_unique=True, return_indices=True)
    pairs = sorted(zip(at_a[in_a].tolist(), at_b[in_b].tolist(), strict=True))
    found: list[tuple[int, int]] = []
    end_a = end_b = 0
    for i, j in _rising(pairs):
        if i >= end_a and j >= end_b and a[i : i + width] == b[j : j + width]:
            found.append((i, j))
            end_a, end_b = i + width, j + width
    return found


def _once(items: list[int], width: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Hashes of the runs that occur exactly once, and where they begin; equal hashes are only a hint."""
    size = len(items) - width + 1
    if size <= 0:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    tokens = np.array(items, dtype=np.uint64)
    hashes = np.zeros(size, dtype=np.uint64)
    for k in range(width):
        hashes = hashes * _MIX + tokens[k : k + size]
    keys, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    return keys[counts == 1], first[counts == 1].astype(np.int64)


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest chain of pairs that rises on both sides (patience sorting)."""
    tops: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for n, (_, j) in enumerate(pairs):
        pile = bisect_left(tops, j)
        before.append(at[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [j]
        at[pile : pile + 1] = [n]
    best: list[tuple[int, int]] = []
    n = at[-1] if at else -1
    while n >= 0:
        best.append(pairs[n])
        n = before[n]
    return best[::-1]
