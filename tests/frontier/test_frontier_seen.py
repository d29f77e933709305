"""Few keys in a set and many in a sieve answer the same."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_frontier import MemoryQueue

from letopis.archive import Archive
from letopis.archive.queues import FrontierQueue, NewUrl
from letopis.frontier.frontier import Frontier, SeenUrls
from letopis.frontier.queue import QueueStore
from letopis.frontier.sieve import Sieve
from letopis.look.politeness import Politeness

HOST = "a.test"
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


def urls(keys: Sequence[int]) -> list[NewUrl]:
    return [NewUrl(key, f"http://{HOST}/{key}", HOST, 0) for key in keys]


def assert_each_passes_once(store: QueueStore) -> None:
    """Though memory knows but three of the keys that were planned before."""
    store.add(urls(range(0, 20, 2)), 0)
    seen = SeenUrls.rebuilt(store, most=3)
    assert (len(seen), seen.is_whole) == (3, False)
    frontier = Frontier(store, Politeness(), seen)
    assert [url.key for url in frontier.unseen(urls(range(0, 24, 2)))] == [20, 22]
    assert [url.key for url in frontier.filter_unseen(urls(range(0, 24, 2)))] == [20, 22]
    assert frontier.filter_unseen(urls(range(0, 24, 2))) == []


def test_what_memory_was_never_told_of_the_store_knows(tmp_path: Path) -> None:
    assert_each_passes_once(MemoryQueue())
    with Archive(tmp_path / "archive") as archive:
        archive.put(f"http://{HOST}/put", b"never planned")
        assert_each_passes_once(FrontierQueue(archive))


def test_is_rebuilt_from_the_keys_of_a_store() -> None:
    store = MemoryQueue()
    store.add(urls([2, 4, 6]), 0)
    seen = SeenUrls.rebuilt(store)
    assert (len(seen), seen.is_whole) == (3, True)
    assert seen.unseen([2, 4, 6, 8]) == [3]


def test_numpy_is_loaded_when_keys_are_many() -> None:
    code = (
        "import sys\nfrom letopis.frontier.frontier import SeenUrls\nseen = SeenUrls()\n"
        "keys = [(n * 0x9E3779B97F4A7C15 % 2**64 - 2**63) | 1 for n in range(80_000)]\n"
        "seen.unseen(keys[:40_000])\nassert 'numpy' not in sys.modules\n"
        "assert seen.unseen(keys) == list(range(40_000, 80_000))\nassert 'numpy' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
