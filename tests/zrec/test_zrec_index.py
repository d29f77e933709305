from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.errors import Damaged
from letopis.zrec import chunk_index as indexes
from letopis.zrec.chunk_index import ChunkIndex, common_subsequence, group_borders


def make(hashes: list[int], ages: list[int] | None = None) -> ChunkIndex:
    column = np.array(hashes, np.uint32)
    edges = group_borders(column).tolist()
    groups = [hash(tuple(hashes[a:b])) & 0xFFFFFFFF for a, b in itertools.pairwise(edges)]
    sizes = np.array([value % 5000 + 1 for value in hashes], np.int64)
    return ChunkIndex(sizes, np.array(ages or [0] * len(hashes), np.int64), column, np.array(groups, np.uint32))


hashes = st.lists(st.integers(0, 2**32 - 1), max_size=50, unique=True)


@given(hashes, st.data())
@settings(max_examples=150)
def test_index_reads_what_it_wrote(values: list[int], data: st.DataObject) -> None:
    ages = data.draw(st.lists(st.integers(0, 63), min_size=len(values), max_size=len(values)))
    index = make(values, ages)
    again = indexes.parse_index(index.stored, len(index))
    assert again.stored == index.stored
    assert again.sizes.tolist() == index.sizes.tolist()
    assert again.ages.tolist() == index.ages.tolist()
    assert again.offsets.tolist() == index.offsets.tolist()


@given(st.binary(max_size=80), st.integers(0, 8))
@settings(max_examples=300)
def test_any_bytes_are_an_index_in_its_one_form_or_damaged(stored: bytes, chunks: int) -> None:
    try:
        index = indexes.parse_index(stored, chunks)
    except Damaged:
        return
    assert index.stored == stored


def test_newest_generation_lies_first_and_in_record_order() -> None:
    index = make([10, 20, 30, 40], [1, 0, 1, 0])
    sizes = index.sizes.tolist()
    assert index.offsets.tolist() == [sizes[1] + sizes[3], 0, sizes[1] + sizes[3] + sizes[0], sizes[1]]


@given(hashes, hashes, st.integers(0, 2**32))
@settings(max_examples=300)
def test_journal_leads_from_the_old_index_to_the_new(old: list[int], other: list[int], seed: int) -> None:
    rng = random.Random(seed)
    merged = sorted({*[value for value in old if rng.random() < 0.8], *other}, key=lambda value: hash((seed, value)))
    kept_order = [value for value in old if value in set(merged)]
    places = sorted(rng.sample(range(len(merged)), len(kept_order)))
    rest = iter([value for value in merged if value not in set(old)])
    fill = dict(zip(places, kept_order, strict=True))
    new = [fill[at] if at in fill else next(rest) for at in range(len(merged))]
    before = make(old, [rng.choice((0, 5, 63)) for _ in old])
    pairs = common_subsequence(old, new)
    ages = np.zeros(len(new), np.int64)
    ages[[b for _, b in pairs]] = indexes.next_ages(before.ages[[a for a, _ in pairs]])
    after = make(new, ages.tolist())
    step = indexes.write_journal(after, pairs, before)
    assert indexes.apply_journal(before, step.stored).stored == after.stored
    assert step.old == before.digest[:16]


@given(hashes, st.binary(max_size=60))
@settings(max_examples=300)
def test_any_journal_applies_or_is_damaged(old: list[int], stored: bytes) -> None:
    try:
        indexes.apply_journal(make(old), stored)
    except Damaged:
        return


@pytest.mark.parametrize(
    ("stored", "fault"),
    [
        (b"", "cannot be read"),
        (b"\x7f", "cut short"),
        (b"\x01\x09\x00\x00", "does not fit"),
        (b"\x01\x00\x00\x7f", "does not fit"),
        (b"\x01\x02\x00\x01\x00" + bytes(8), "impossible size"),
        (b"\x01\x02\x00\x01\x09" + bytes(2), "cut short"),
        (b"\x00\x00", "too long"),
        (b"\x02\x00\x00\x0a\x00\x00\x0a" + bytes(9), "impossibly many"),
    ],
)
def test_journal_faults_are_named(stored: bytes, fault: str) -> None:
    with pytest.raises(Damaged, match=fault):
        indexes.apply_journal(make([1, 2, 3]), stored)


def test_history_stays_below_half_an_index() -> None:
    steps = [indexes.IndexJournal(bytes(16), bytes(84))] * 100
    assert len(indexes.recent_journals(steps, 1000)) == 5
    assert len(indexes.recent_journals(steps, 10**6)) == 64
