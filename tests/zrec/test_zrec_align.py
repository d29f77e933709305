from __future__ import annotations

import itertools
import time
from functools import lru_cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.zrec import chunk_index as aligning
from letopis.zrec.chunk_index import ChunkIndex, align_chunks, common_subsequence, group_borders


def _slow(old: list[int], new: list[int]) -> int:
    @lru_cache(None)
    def best(a: int, b: int) -> int:
        if not a or not b:
            return 0
        if old[a - 1] == new[b - 1]:
            return best(a - 1, b - 1) + 1
        return max(best(a - 1, b), best(a, b - 1))

    return best(len(old), len(new))


def _fits(pairs: list[tuple[int, int]], old: list[int], new: list[int]) -> bool:
    ascending = all(a < c and b < d for (a, b), (c, d) in itertools.pairwise(pairs))
    return ascending and all(old[a] == new[b] for a, b in pairs)


small = st.lists(st.integers(0, 6), max_size=18)


@given(small, small)
@settings(max_examples=400)
def test_common_is_as_long_as_the_slow_answer(old: list[int], new: list[int]) -> None:
    pairs = common_subsequence(old, new)
    assert _fits(pairs, old, new)
    assert len(pairs) == _slow(old, new)


def _index(hashes: list[int]) -> ChunkIndex:
    column = np.array(hashes, np.uint32)
    edges = group_borders(column).tolist()
    groups = [hash(tuple(hashes[a:b])) & 0xFFFFFFFF for a, b in itertools.pairwise(edges)]
    ones = np.ones(len(hashes), np.int64)
    return ChunkIndex(ones, ones, column, np.array(groups, np.uint32))


@given(st.lists(st.integers(0, 2**32 - 1), max_size=60, unique=True), st.data())
@settings(max_examples=200)
def test_align_finds_everything_that_stayed_in_order(old: list[int], data: st.DataObject) -> None:
    kept = [value for value in old if data.draw(st.booleans())]
    at = data.draw(st.integers(0, len(kept)))
    new = [*kept[:at], 2**32 - 1, *kept[at:]] if 2**32 - 1 not in old else kept
    pairs = align_chunks(_index(old), _index(new))
    assert _fits(pairs, old, new)
    assert len(pairs) == len(kept)


@given(small, small)
@settings(max_examples=200)
def test_align_of_any_indexes_is_a_common_order(old: list[int], new: list[int]) -> None:
    assert _fits(align_chunks(_index(old), _index(new)), old, new)


def test_matches_that_break_the_order_are_dropped() -> None:
    assert common_subsequence([1, 2, 3, 4, 9], [9, 1, 2, 3, 4]) == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_an_index_made_to_hurt_takes_no_quadratic_time() -> None:
    old = [7, 8] * 30_000
    new = [8, 7, 7] * 20_000
    before = time.process_time()
    pairs = common_subsequence(old, new)
    assert time.process_time() - before < 5
    assert _fits(pairs, old, new)
    assert pairs


def test_pairs_stay_below_the_bound_that_the_module_names() -> None:
    places = {1: [0] * 1000}
    assert aligning._pair_count(places, [1] * 1000) == 10**6
    assert aligning._pair_count(places, [2] * 1000) == 0
