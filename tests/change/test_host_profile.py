from __future__ import annotations

import contextlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.change.fingerprints import Fingerprint
from letopis.change.profiles import HostProfile, PageHabits
from letopis.errors import Damaged
from letopis.model import BlockKind


def prints(*hashes: int) -> Fingerprint:
    return Fingerprint(0, hashes, tuple(9 for _ in hashes), tuple(BlockKind.ITEM for _ in hashes))


def test_blocks_of_a_third_of_the_documents_are_frame() -> None:
    host = HostProfile()
    for n in range(10):
        host.observe(prints(1, 2 if n < 3 else 50, 100 + n))
    assert 1 in host.boilerplate()
    assert 2 in host.boilerplate()
    assert 105 not in host.boilerplate()
    assert host.boilerplate() == {1, 2, 50}


def test_nothing_is_frame_before_five_documents() -> None:
    host = HostProfile()
    for _ in range(4):
        host.observe(prints(1))
    assert 1 not in host.boilerplate()
    assert not host.boilerplate()


def test_visiting_one_document_often_makes_nothing_frame() -> None:
    host = HostProfile()
    for n in range(10):
        host.observe(prints(1000 + n))
    state = prints(7)
    host.observe(state)
    for _ in range(100):
        host.observe(state, state)
    assert host.pages == 11
    assert 7 not in host.boilerplate()


def test_a_document_takes_its_old_blocks_away() -> None:
    host = HostProfile()
    for _ in range(10):
        host.observe(prints(1))
    for _ in range(9):
        host.observe(prints(2), prints(1))
    assert host.pages == 10
    assert 2 in host.boilerplate()
    assert 1 not in host.boilerplate()


def test_memory_is_bounded_and_the_frame_survives() -> None:
    host = HostProfile(capacity=256)
    for n in range(300):
        host.observe(prints(1, 2, *range(1000 + 50 * n, 1050 + 50 * n)))
    assert host.boilerplate() == {1, 2}
    assert len(host.to_bytes()) < 256 * 10 + 20


def test_old_counts_fade_so_that_a_redesign_is_learned() -> None:
    host = HostProfile()
    for _ in range(25_000):
        host.observe(prints(1))
    assert host.pages < 20_000
    for _ in range(20_000):
        host.observe(prints(2))
    assert 2 in host.boilerplate()


@given(st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=20), max_size=12))
@settings(max_examples=80, deadline=None)
def test_stored_profile_answers_the_same(pages: list[list[int]]) -> None:
    host = HostProfile()
    for hashes in pages:
        host.observe(prints(*hashes))
    again = HostProfile.from_bytes(host.to_bytes())
    assert again.pages == host.pages
    assert again.boilerplate() == host.boilerplate()
    assert again.to_bytes() == host.to_bytes()


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=12), min_size=2, max_size=10))
@settings(max_examples=80, deadline=None)
def test_stored_habits_answer_the_same(states: list[list[int]]) -> None:
    habits = PageHabits()
    for old, new in pairwise(states):
        habits.observe(prints(*old), prints(*new))
    again = PageHabits.from_bytes(habits.to_bytes())
    assert again.to_bytes() == habits.to_bytes()
    assert [again.flapping(n) for n in range(10)] == [habits.flapping(n) for n in range(10)]
    assert [again.settled(n) for n in range(10)] == [habits.settled(n) for n in range(10)]


def test_habits_stay_bounded_on_pages_that_are_always_new() -> None:
    habits = PageHabits()
    for n in range(100):
        old, new = prints(*range(n * 100, n * 100 + 100)), prints(*range(n * 100 + 100, n * 100 + 200))
        habits.observe(old, new)
    assert len(habits.to_bytes()) < 2 * 1200 * 14


@pytest.mark.parametrize("kind", [HostProfile, PageHabits])
@given(data=st.binary(max_size=60))
@settings(max_examples=100, deadline=None)
def test_garbage_is_damaged(kind: type[HostProfile] | type[PageHabits], data: bytes) -> None:
    with contextlib.suppress(Damaged):
        assert kind.from_bytes(data).to_bytes()


def test_the_stored_profile_stays_as_it_is() -> None:
    host = HostProfile(capacity=8)
    for n in range(140):
        host.observe(prints(2**64 - 1, 1 << 63 if n % 2 else 300, n))
    assert host.to_bytes().hex() == (
        "b1088c010887000000000000008800000000000000890000000000000"
        "08a000000000000008b000000000000002c010000000000000000000000000080ffffffffffffffff010101010146468c01"
    )
