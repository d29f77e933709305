import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.errors import Damaged
from letopis.schedule.policies import VisitState

spans = st.floats(0, 1e8, width=32)
states = st.builds(
    lambda visits, changes, failures, last, since, *rest: VisitState(
        visits, changes, failures, last, last - since, *rest
    ),
    st.integers(0, 65535),
    st.integers(0, 65535),
    st.integers(0, 255),
    st.floats(0, 4e9),
    *[spans] * 7,
)


@given(states)
@settings(max_examples=200)
def test_bytes_give_the_state_back(state: VisitState) -> None:
    again = VisitState.from_bytes(state.to_bytes())
    assert again._replace(last_change=0) == state._replace(last_change=0)
    assert again.last_change == pytest.approx(state.last_change, abs=10)
    assert VisitState.from_bytes(again.to_bytes()) == again


def test_a_state_takes_42_bytes_and_none_for_a_page_never_visited() -> None:
    assert len(VisitState().to_bytes()) == 42
    assert VisitState.from_bytes(b"") == VisitState()


def test_records_of_the_first_release_are_read() -> None:
    old = bytes.fromhex("0100030001000000000065cdcd4100001644000061440000e144000000400000c842")
    state = VisitState.from_bytes(old)
    assert (state.visits, state.changes, state.last_visit - state.last_change, state.window) == (3, 1, 600, 900)
    assert (state.shape, state.scale, state.quiet, state.busy) == (2.0, 100.0, 600, 900)


def test_counters_stop_instead_of_overflowing() -> None:
    state = VisitState.from_bytes(VisitState(visits=10**9, changes=10**9, failures=10**6).to_bytes())
    assert (state.visits, state.changes, state.failures) == (65535, 65535, 255)


@pytest.mark.parametrize("data", [b"\x02", b"\x02" + b"\0" * 33, b"\x01" + b"\0" * 41, b"\x03" + b"\0" * 41])
def test_refuses_bytes_it_did_not_write(data: bytes) -> None:
    with pytest.raises(Damaged):
        VisitState.from_bytes(data)
