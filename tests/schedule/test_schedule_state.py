import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.errors import Damaged
from letopis.schedule import VisitState

spans = st.floats(0, 1e8, width=32)
states = st.builds(
    lambda visits, changes, failures, last, since, window, interval, shape, scale: VisitState(
        visits, changes, failures, last, last - since, window, interval, shape, scale
    ),
    st.integers(0, 65535),
    st.integers(0, 65535),
    st.integers(0, 255),
    st.floats(0, 4e9),
    *[spans] * 5,
)


@given(states)
@settings(max_examples=200)
def test_bytes_give_the_state_back(state: VisitState) -> None:
    again = VisitState.from_bytes(state.to_bytes())
    assert again._replace(last_change=0) == state._replace(last_change=0)
    assert again.last_change == pytest.approx(state.last_change, abs=10)
    assert VisitState.from_bytes(again.to_bytes()) == again


def test_a_state_takes_34_bytes_and_none_for_a_page_never_visited() -> None:
    assert len(VisitState().to_bytes()) == 34
    assert VisitState.from_bytes(b"") == VisitState()


def test_counters_stop_instead_of_overflowing() -> None:
    state = VisitState.from_bytes(VisitState(visits=10**9, changes=10**9, failures=10**6).to_bytes())
    assert (state.visits, state.changes, state.failures) == (65535, 65535, 255)


@pytest.mark.parametrize("data", [b"\x01", b"\x02" + b"\0" * 33, b"\x01" + b"\0" * 34])
def test_refuses_bytes_it_did_not_write(data: bytes) -> None:
    with pytest.raises(Damaged):
        VisitState.from_bytes(data)
