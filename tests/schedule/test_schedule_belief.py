import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.schedule.worth import belief_changed, belief_unchanged, fade_belief, prior_belief

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


def exact_rate(with_change: list[float], without: list[float]) -> float:
    """The likeliest rate given all intervals: the sum of t / (e^(dt) - 1) over changes is that of quiet ones."""
    low, high = 1e-9, 1.0
    for _ in range(100):
        middle = (low + high) / 2.0
        falling = sum(t / math.expm1(min(middle * t, 700.0)) for t in with_change) - sum(without)
        low, high = (middle, high) if falling > 0.0 else (low, middle)
    return low


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
        exact = exact_rate(with_change, without)
        assert belief[0] / belief[1] == pytest.approx(exact, rel=0.05)
        assert exact == pytest.approx(true, rel=0.15)


def test_fading_keeps_the_mean_and_bounds_the_weight() -> None:
    shape, scale = fade_belief((500.0, 1000.0), 200.0)
    assert (shape, shape / scale) == (200.0, pytest.approx(0.5))
    assert fade_belief((5.0, 10.0), 200.0) == (5.0, 10.0)
