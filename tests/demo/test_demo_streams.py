"""Processes in time: what `last` and `next` say must fit together at every moment."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis_demo.streams import NEVER, Fixed, Periodic, Poisson, Stream, moments

START = 1_700_000_000_000
streams: st.SearchStrategy[Stream] = st.one_of(
    st.builds(Poisson, st.just(START), st.integers(5, 10**7), st.integers(0, 2**63)),
    st.builds(Periodic, st.just(START), st.integers(5, 10**7), st.integers(0, 2**63), st.integers(0, 20)),
    st.builds(Fixed, st.just(START), st.lists(st.integers(START + 1, START + 10**8), max_size=4).map(tuple)),
)


@given(streams, st.integers(0, 10**8))
@settings(max_examples=200, deadline=None)
def test_last_and_next_enclose_the_moment(stream: Stream, offset: int) -> None:
    at = START + offset
    last, coming = stream.last(at), stream.next(at)
    assert START <= last <= at < coming
    assert stream.last(coming - 1) == last
    if coming < NEVER:
        assert stream.last(coming) == coming


@given(streams)
@settings(max_examples=60, deadline=None)
def test_moments_are_what_stepping_through_finds(stream: Stream) -> None:
    until = START + 20 * getattr(stream, "period", 10**7)
    found = moments((stream,), START, until)
    assert found == sorted(set(found))
    half = (START + until) // 2
    assert found == moments((stream,), START, half) + moments((stream,), half, until)


def test_poisson_has_its_rate_and_its_empty_stretches() -> None:
    stream = Poisson(START, 1000, 7)
    found = moments((stream,), START, START + 4_000_000)
    assert 3700 < len(found) < 4300
    gaps = [later - earlier for earlier, later in pairwise(found)]
    assert sum(gap > 1000 for gap in gaps) / len(gaps) == pytest.approx(0.368, abs=0.03)


def test_periodic_changes_once_in_each_period_up_to_its_limit() -> None:
    stream = Periodic(START, 1000, 3, limit=50)
    found = moments((stream,), START, START + 10**6)
    assert [(moment - START) // 1000 for moment in found] == list(range(50))
    assert stream.next(found[-1]) == NEVER
    assert stream.count(START + 10**9) == 50


def test_the_tenth_year_costs_no_more_than_the_first_day() -> None:
    stream = Poisson(START, 3_600_000, 5)
    late = START + 10 * 365 * 86_400_000
    assert late - stream.last(late) < 100 * 3_600_000
