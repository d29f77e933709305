from __future__ import annotations

import random
from time import process_time

from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Indel

from letopis.change.sequence import Budget, Op, opcodes, trim

TOKENS = st.lists(st.integers(0, 6), max_size=60)


def rebuilt(ops: list[Op], a: list[int], b: list[int]) -> list[int]:
    made: list[int] = []
    at_a = at_b = 0
    for op in ops:
        assert (op.a1, op.b1) == (at_a, at_b)
        if op.tag == "equal":
            assert a[op.a1 : op.a2] == b[op.b1 : op.b2]
            made += a[op.a1 : op.a2]
        else:
            made += b[op.b1 : op.b2]
        at_a, at_b = op.a2, op.b2
    assert (at_a, at_b) == (len(a), len(b))
    return made


@given(TOKENS, TOKENS)
@settings(max_examples=300, deadline=None)
def test_operations_rebuild_the_new_sequence_and_are_shortest(a: list[int], b: list[int]) -> None:
    ops = opcodes(a, b)
    assert rebuilt(ops, a, b) == b
    kept = sum(op.a2 - op.a1 for op in ops if op.tag == "equal")
    assert len(a) + len(b) - 2 * kept == Indel.distance(a, b)


@given(TOKENS, TOKENS, st.integers(0, 200))
@settings(max_examples=200, deadline=None)
def test_a_small_budget_gives_coarser_but_right_operations(a: list[int], b: list[int], cells: int) -> None:
    assert rebuilt(opcodes(a, b, Budget(cells)), a, b) == b


@given(TOKENS, TOKENS)
@settings(max_examples=200, deadline=None)
def test_trim_finds_the_whole_common_head_and_tail(a: list[int], b: list[int]) -> None:
    head, end_a, end_b = trim(a, b)
    assert a[:head] == b[:head]
    assert a[end_a:] == b[end_b:]
    assert head == min(len(a), len(b)) or a[head] != b[head]
    assert min(end_a, end_b) == head or a[end_a - 1] != b[end_b - 1]


def test_long_sequences_are_split_at_unique_runs() -> None:
    rand = random.Random(5)
    a = [rand.randrange(50) if rand.random() < 0.7 else 1000 + i for i in range(40_000)]
    b = list(a)
    for at in sorted(rand.sample(range(len(b)), 200), reverse=True):
        b[at : at + 1] = [-at, -at - 1]
    ops = opcodes(a, b, Budget(1 << 24))
    assert rebuilt(ops, a, b) == b
    assert sum(op.a2 - op.a1 for op in ops if op.tag == "equal") > 39_000


def test_hostile_repeats_stay_within_bounded_work() -> None:
    rand = random.Random(6)
    a = [rand.randrange(4) for _ in range(100_000)]
    b = [rand.randrange(4) for _ in range(100_000)]
    budget = Budget()
    started = process_time()
    assert rebuilt(opcodes(a, b, budget), a, b) == b
    assert process_time() - started < 5
    assert budget.coarse
