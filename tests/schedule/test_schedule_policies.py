import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.config.settings import DAY, ScheduleSettings
from letopis.errors import Damaged
from letopis.schedule.policies import AdaptivePolicy, OptimalPolicy, UniformPolicy, VisitResult, VisitState, make_policy

HOUR = 3600.0


def test_uniform_comes_back_after_the_same_interval() -> None:
    policy = UniformPolicy(ScheduleSettings(interval=HOUR))
    first = policy.next_visit(VisitState(), VisitResult(100.0, True))
    assert first.due == 100.0 + HOUR
    assert policy.next_visit(first.state, VisitResult(first.due, True)).due == first.due + HOUR


def test_adaptive_follows_the_documents_rule_with_its_defaults() -> None:
    policy = AdaptivePolicy(ScheduleSettings())
    first = policy.next_visit(VisitState(), VisitResult(0.0, True))
    assert first.due == 5 * DAY
    shorter = policy.next_visit(first.state, VisitResult(5 * DAY, True))
    assert shorter.state.interval == pytest.approx(4 * DAY)
    longer = policy.next_visit(shorter.state, VisitResult(9 * DAY, False))
    assert longer.state.interval == pytest.approx(4.8 * DAY)
    quiet = policy.next_visit(longer.state, VisitResult(13.8 * DAY, False))
    assert quiet.state.interval == pytest.approx(8.8 * DAY)


def test_adaptive_keeps_within_its_bounds() -> None:
    policy = AdaptivePolicy(ScheduleSettings())
    state, now = VisitState(), 0.0
    for _ in range(60):
        state, now = policy.next_visit(state, VisitResult(now, True))
    assert state.interval == 0.5 * DAY
    for _ in range(60):
        state, now = policy.next_visit(state, VisitResult(now, False))
    assert state.interval == 365 * DAY


@pytest.mark.parametrize("name", ["uniform", "adaptive", "optimal"])
def test_failures_are_retried_with_growing_pauses_and_teach_nothing(name: str) -> None:
    policy = make_policy(ScheduleSettings(policy=name, min=60.0, interval=HOUR, max=DAY))
    state = policy.next_visit(VisitState(), VisitResult(0.0, True)).state
    pauses, failed = [], state
    for _ in range(12):
        failed, due = policy.next_visit(failed, VisitResult(1000.0, None))
        pauses.append(due - 1000.0)
    assert pauses[:3] == [60.0, 120.0, 240.0]
    assert pauses[-1] == DAY
    assert failed._replace(failures=0) == state
    assert policy.next_visit(failed, VisitResult(2000.0, False)).state.failures == 0


looks = st.lists(st.tuples(st.floats(1, 1e6), st.sampled_from([True, False, None])), max_size=30)


@given(looks, st.sampled_from(["uniform", "adaptive", "optimal"]), st.sampled_from(["freshness", "age", "captured"]))
@settings(max_examples=150, deadline=None)
def test_every_decision_lies_within_the_bounds(history: list, name: str, objective: str) -> None:
    chosen = ScheduleSettings(policy=name, objective=objective, interval=HOUR, min=300.0, max=30 * DAY)
    policy = make_policy(chosen)
    state, now = VisitState(), 1e9
    for seconds, changed in [(1.0, True), *history]:
        now += seconds
        state, due = policy.next_visit(state, VisitResult(now, changed))
        assert 300.0 * (1 - 1e-9) <= due - now <= 30 * DAY * (1 + 1e-9)
        assert state.changes < max(state.visits, 1)
    assert VisitState.from_bytes(state.to_bytes()).visits == state.visits


def test_optimal_visits_pages_that_change_sooner_than_those_that_do_not() -> None:
    policy = OptimalPolicy(ScheduleSettings(interval=HOUR, min=1.0))
    active = quiet = VisitState()
    now = 0.0
    for visit in range(40):
        active = policy.next_visit(active, VisitResult(now, visit % 2 == 0)).state
        quiet = policy.next_visit(quiet, VisitResult(now, visit == 0)).state
        now += HOUR
    assert active.interval < quiet.interval


def test_no_page_waits_longer_than_exploration_allows() -> None:
    policy = OptimalPolicy(ScheduleSettings(interval=HOUR, min=1.0, exploration=0.05))
    state, now = VisitState(), 0.0
    for _ in range(200):
        state, now = policy.next_visit(state, VisitResult(now, False))
    assert state.interval <= HOUR / 0.05 * (1 + 1e-9)


def test_what_was_learned_survives_a_restart() -> None:
    settings_ = ScheduleSettings(policy="optimal", interval=HOUR, min=1.0)
    policy = OptimalPolicy(settings_)
    state, now = VisitState(), 0.0
    for visit in range(50):
        state, now = policy.next_visit(state, VisitResult(now, visit % 3 == 0))
    again = OptimalPolicy(settings_, policy.remember())
    assert again.remember() == policy.remember()
    assert again.next_visit(state, VisitResult(now, True)) == policy.next_visit(state, VisitResult(now, True))
    policy.forget(state)
    assert policy.pace.pages == 0
    with pytest.raises(Damaged):
        OptimalPolicy(settings_, b"nonsense")
