import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.schedule.change_rate import (
    DateTrust,
    age_of_change,
    belief_changed,
    belief_dated,
    belief_unchanged,
    fade_belief,
    prior_belief,
    rate_from_history,
)

beliefs = st.tuples(st.floats(0.3, 300), st.floats(1, 1e7))
spans = st.floats(1, 1e7)


@given(beliefs, spans)
@settings(max_examples=200)
def test_a_change_raises_the_rate_and_silence_lowers_it(belief: tuple[float, float], seconds: float) -> None:
    mean = belief[0] / belief[1]
    raised, lowered = belief_changed(belief, seconds), belief_unchanged(belief, seconds)
    assert raised[0] / raised[1] >= mean * (1 - 1e-9)
    assert lowered[0] / lowered[1] < mean


@given(beliefs, spans)
@settings(max_examples=40, deadline=None)
def test_moments_after_a_change_are_those_of_the_true_posterior(belief: tuple[float, float], seconds: float) -> None:
    shape, scale = belief
    logs = np.linspace(-60 / shape - 5, math.log(shape + 12 * math.sqrt(shape) + 20), 200001)
    exponent = shape * logs - np.exp(logs)
    density = np.exp(exponent - exponent.max()) * -np.expm1(-np.exp(logs) * seconds / scale)
    mean = float((np.exp(logs) * density).sum() / density.sum()) / scale
    got = belief_changed(belief, seconds)
    assert got[0] / got[1] == pytest.approx(mean, rel=1e-3)


def test_beliefs_agree_with_the_whole_history() -> None:
    random = np.random.default_rng(3)
    for true in (1 / 300, 1 / 3600, 1 / 40000):
        belief, with_change, without = prior_belief(3600.0), [], []
        for seconds in random.uniform(0.3, 2.0, 600) / true:
            if random.uniform() < -math.expm1(-true * seconds):
                belief = belief_changed(belief, seconds)
                with_change.append(seconds)
            else:
                belief = belief_unchanged(belief, seconds)
                without.append(seconds)
        exact = rate_from_history(with_change, without)
        assert belief[0] / belief[1] == pytest.approx(exact, rel=0.05)
        assert exact == pytest.approx(true, rel=0.15)


def test_history_without_changes_has_rate_zero_and_only_changes_no_bound() -> None:
    assert rate_from_history([], [10.0, 20.0]) == 0.0
    assert rate_from_history([10.0], []) == math.inf
    assert 0.0 < rate_from_history([10.0], [], shape=1.0, scale=100.0) < math.inf


def test_equal_intervals_have_the_closed_form() -> None:
    assert rate_from_history([60.0] * 3, [60.0] * 7) == pytest.approx(-math.log(0.7) / 60.0, rel=1e-9)


def test_dated_changes_give_changes_over_observed_time() -> None:
    belief = (0.0, 0.0)
    for age in (10.0, 30.0):
        belief = belief_dated(belief, age)
    belief = belief_unchanged(belief, 100.0)
    assert belief[0] / belief[1] == pytest.approx(2 / 140)


def test_fading_keeps_the_mean_and_bounds_the_weight() -> None:
    shape, scale = fade_belief((500.0, 1000.0), 200.0)
    assert (shape, shape / scale) == (200.0, pytest.approx(0.5))
    assert fade_belief((5.0, 10.0), 200.0) == (5.0, 10.0)


def test_trust_is_earned_by_right_dates_and_lost_by_wrong_ones() -> None:
    trust = DateTrust()
    for visit in range(10):
        trust = trust.after(True, visit * 100.0 + 50, visit * 100.0, visit * 100.0 + 100)
    assert trust.earned
    assert age_of_change(trust, 1050.0, 1000.0, 1100.0) == 50.0
    assert age_of_change(trust, 900.0, 1000.0, 1100.0) is None
    for visit in range(3):
        trust = trust.after(False, visit * 100.0 + 100, visit * 100.0, visit * 100.0 + 100)
    assert not trust.earned
    assert age_of_change(trust, 1050.0, 1000.0, 1100.0) is None
    assert trust.after(True, None, 0.0, 1.0) == trust
