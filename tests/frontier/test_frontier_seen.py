"""Few keys in a set and many in a sieve answer the same."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.frontier import MemoryQueue, NewUrl, SeenUrls
from letopis.frontier.sieve import Sieve

KEYS = st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20)
BATCHES = st.lists(st.lists(KEYS, max_size=40), max_size=12)


@given(BATCHES, st.integers(0, 60))
@settings(max_examples=150, deadline=None)
def test_a_set_a_sieve_and_what_goes_over_from_one_to_the_other_answer_alike(
    batches: list[list[int]], few: int
) -> None:
    small, between, large = SeenUrls(few=1 << 30), SeenUrls(few=few), Sieve()
    for batch in batches:
        assert small.unseen(batch) == between.unseen(batch) == large.places(batch)
        assert len(small) == len(between) == len(large)


@pytest.mark.parametrize("few", [0, 100])
def test_of_equal_keys_the_first_passes_and_the_lowest_bit_does_not_count(few: int) -> None:
    seen = SeenUrls(few)
    assert seen.unseen([4, 5, 8, 4, 9, -1, -2]) == [0, 2, 5]
    assert seen.unseen([5, 6, 0]) == [1, 2]
    assert seen.unseen([]) == []


def test_is_rebuilt_from_the_keys_of_a_store() -> None:
    store = MemoryQueue()
    store.add([NewUrl(key, f"http://a.test/{key}", "a.test", 0) for key in (2, 4, 6)], 0)
    seen = SeenUrls.rebuilt(store.seen_keys())
    assert len(seen) == 3
    assert seen.unseen([2, 4, 6, 8]) == [3]


def test_numpy_is_loaded_when_keys_are_many() -> None:
    code = (
        "import sys\nfrom letopis.frontier import SeenUrls\nseen = SeenUrls()\n"
        "keys = [(n * 0x9E3779B97F4A7C15 % 2**64 - 2**63) | 1 for n in range(80_000)]\n"
        "seen.unseen(keys[:40_000])\nassert 'numpy' not in sys.modules\n"
        "assert seen.unseen(keys) == list(range(40_000, 80_000))\nassert 'numpy' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
