"""The estimate of freshness against pages whose changes are known."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import pytest

from letopis.config import ScheduleSettings
from letopis.schedule.freshness import estimated_freshness
from letopis.schedule.policies import RevisitPolicy, UniformPolicy, VisitResult, VisitState, make_policy
from letopis.schedule.simulation import make_world

HOUR = 3600.0


def test_nothing_visited_is_no_estimate() -> None:
    assert estimated_freshness([], 0.0) is None
    assert estimated_freshness([VisitState(), VisitState(visits=3, failures=1)], 0.0) is None


def test_pages_that_never_changed_and_were_watched_for_long_are_fresh() -> None:
    state = VisitState(visits=50, last_visit=50 * HOUR, quiet=49 * HOUR)
    assert estimated_freshness([state] * 100, 51 * HOUR) == pytest.approx(1.0, abs=0.01)


def test_pages_that_change_all_the_time_are_stale_soon_and_fresh_at_once() -> None:
    state = VisitState(visits=50, changes=49, last_visit=50 * HOUR, busy=49 * HOUR)
    assert estimated_freshness([state] * 100, 50 * HOUR) == pytest.approx(1.0)
    assert (estimated_freshness([state] * 100, 54 * HOUR) or 0.0) < 0.05


def test_a_change_in_no_time_breaks_nothing() -> None:
    odd = VisitState(visits=2, changes=1, last_visit=HOUR)
    assert 0.0 <= (estimated_freshness([odd], 2 * HOUR) or -1.0) <= 1.0


@pytest.mark.parametrize("policy", ["uniform", "adaptive", "optimal"])
@pytest.mark.parametrize("periods", ["uniform:2h-80h", "lognormal:20h:1.8"])
def test_the_estimate_is_within_three_points_of_the_truth(policy: str, periods: str) -> None:
    settings = ScheduleSettings(policy=policy, interval=10 * HOUR, min=HOUR / 10)  # type: ignore[arg-type]
    world = make_world(1500, periods, "poisson", 240 * HOUR, 5)
    off = [_off(make_policy(settings), world.changes, until * HOUR) for until in (120, 175, 239)]
    assert max(off) < 0.03


def _off(policy: RevisitPolicy, changes: list[np.ndarray], until: float) -> float:
    """How far the estimate is from the truth at one time, pages being first visited over ten hours."""
    states, fresh = [], 0
    for page, times in enumerate(changes):
        state, due, known = VisitState(), 10 * HOUR * page / len(changes), times.tolist()
        seen = bisect_right(known, due)
        while due <= until:
            now, position = due, bisect_right(known, due)
            decision = policy.next_visit(state, VisitResult(now, position > seen))
            state, due, seen = decision.state, decision.due, position
        states.append(state)
        fresh += bisect_right(known, until) == seen
    return abs((estimated_freshness(states, until) or 0.0) - fresh / len(changes))


def test_time_between_visits_is_summed_by_what_they_found() -> None:
    policy = UniformPolicy(ScheduleSettings())
    state = VisitState()
    for now, changed in ((0.0, False), (10.0, False), (30.0, True), (60.0, False)):
        state = policy.next_visit(state, VisitResult(now, changed)).state
    assert (state.quiet, state.busy, state.changes) == (40.0, 20.0, 1)
