import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.frontier.sieve import Sieve

keys = st.integers(-(2**63), 2**63 - 1).map(lambda key: key | 1)
batches = st.lists(st.lists(keys | st.integers(-20, 20).map(lambda key: key | 1), max_size=40), max_size=12)


def array(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@given(batches)
@settings(max_examples=150, deadline=None)
def test_behaves_as_a_set(parts: list[list[int]]) -> None:
    sieve, seen = Sieve(), set()
    for part in parts:
        expected = []
        for key in part:
            expected.append(key not in seen)
            seen.add(key)
        assert sieve.unseen(array(part)).tolist() == expected
        assert sieve.contains(array(part)).all()
    assert len(sieve) == len(seen)


def test_nothing_is_lost_while_it_grows_and_keys_crowd_one_row() -> None:
    random = np.random.default_rng(1)
    spread = random.integers(-(2**63), 2**63 - 1, 60_000, dtype=np.int64) | 1
    crowded = (np.arange(500, dtype=np.int64) << 2) | 1
    last_row = (np.int64(-1) - (np.arange(500, dtype=np.int64) << 2)) | 1
    everything = np.unique(np.concatenate([spread, crowded, last_row]))
    sieve = Sieve()
    for part in np.array_split(random.permutation(everything), 37):
        assert sieve.unseen(part).all()
    assert sieve.contains(everything).all()
    assert not sieve.unseen(everything).any()
    assert len(sieve) == len(everything)
    assert sieve.exact


def test_takes_at_most_twenty_bytes_a_url() -> None:
    random = np.random.default_rng(2)
    sieve, total = Sieve(), 0
    for _ in range(60):
        total += int(sieve.unseen(random.integers(-(2**63), 2**63 - 1, 10_000, dtype=np.int64)).sum())
        assert sieve.nbytes / total <= 20 or total < 50_000


def test_beyond_its_bound_it_forgets_but_never_invents() -> None:
    random = np.random.default_rng(3)
    sieve = Sieve(most_bytes=64 * 1024)
    first = random.integers(-(2**63), 2**63 - 1, 200_000, dtype=np.int64)
    for part in np.array_split(first, 400):
        assert sieve.unseen(part).all()
    assert not sieve.exact
    assert sieve.nbytes <= 64 * 1024
    recent = first[-1000:]
    assert sieve.contains(recent).mean() > 0.8
    assert not sieve.contains(random.integers(-(2**63), 2**63 - 1, 1000, dtype=np.int64)).any()


def test_tells_the_places_of_plain_numbers_that_pass() -> None:
    sieve = Sieve(expected=100)
    assert sieve.places([1, 3, 5, 3, -7]) == [0, 1, 2, 4]
    assert sieve.places([5, 9, -7]) == [1]
    assert sieve.places([]) == []
