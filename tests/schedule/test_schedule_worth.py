import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.schedule.freshness import Floats, optimal_rates
from letopis.schedule.worth import AgeObjective, ChangeRhythm, FreshnessObjective

beliefs = st.tuples(st.floats(0.3, 300), st.floats(1, 1e7))
alphas = st.sampled_from([0.0, 0.3, 0.5, 1.0])


def expected_freshness(rates: Floats, visits: Floats) -> Floats:
    """Of pages visited evenly: (1 - e^-r) / r, 0 without visits."""
    ratio = np.divide(rates, visits, out=np.full_like(rates, np.inf), where=visits > 0.0)
    return np.where(np.isfinite(ratio), -np.expm1(-ratio) / ratio, 0.0)


@given(beliefs, alphas, st.floats(1e-3, 50))
@settings(max_examples=300)
def test_a_visit_pays_when_it_is_worth_the_price(belief: tuple[float, float], alpha: float, times: float) -> None:
    objective = FreshnessObjective(alpha)
    seconds = times * belief[1] / belief[0]
    price = objective.worth(belief, seconds)
    again = objective.pays_after(belief, price)
    if math.isfinite(again):
        assert objective.worth(belief, again) == pytest.approx(price, rel=1e-4)


@given(beliefs, st.floats(1e-3, 50))
@settings(max_examples=200)
def test_age_always_pays_some_day(belief: tuple[float, float], times: float) -> None:
    price = AgeObjective().worth(belief, times * belief[1] / belief[0])
    again = AgeObjective().pays_after(belief, price)
    assert math.isfinite(again)
    assert AgeObjective().worth(belief, again) == pytest.approx(price, rel=1e-3)


def test_well_known_rates_have_the_worth_of_the_formula() -> None:
    rate, seconds = 1 / 3600, 5000.0
    belief = (1e6, 1e6 / rate)
    expected = (1 - (1 + rate * seconds) * math.exp(-rate * seconds)) / rate
    assert FreshnessObjective(0.0).worth(belief, seconds) == pytest.approx(expected, rel=1e-4)
    assert FreshnessObjective(1.0).worth(belief, seconds) == pytest.approx(expected * rate, rel=1e-4)


def test_freshness_abandons_pages_that_change_too_fast_and_age_never_does() -> None:
    fast = (200.0, 200.0 * 5.0)
    assert FreshnessObjective(0.0).pays_after(fast, 60.0) == math.inf
    assert AgeObjective().pays_after(fast, 60.0**2) < math.inf


@given(beliefs, alphas, st.floats(0, 3), st.floats(0.01, 3))
@settings(max_examples=200)
def test_a_flat_rhythm_changes_nothing(belief: tuple[float, float], alpha: float, phase: float, times: float) -> None:
    objective = FreshnessObjective(alpha)
    price = objective.worth(belief, times * belief[1] / belief[0])
    flat = ChangeRhythm().pays_after(objective, belief, phase, price)
    assert flat == pytest.approx(objective.pays_after(belief, price), rel=5e-3)


def test_a_rhythm_is_found_in_regular_pages_and_not_in_random_ones() -> None:
    random = np.random.default_rng(1)
    regular, chance = ChangeRhythm(), ChangeRhythm()
    for _ in range(6000):
        start = random.uniform(0, 1.2)
        end = start + random.uniform(0.05, 0.5)
        chance.learn(start, end, bool(random.uniform() < -math.expm1(start - end)))
        regular.learn(start, end, start < 1.0 <= end)
    assert regular.regular
    assert not chance.regular
    assert regular.hazard[1] < 0.2 < regular.hazard[7]
    again = ChangeRhythm.from_bytes(regular.to_bytes())
    assert again.hazard == regular.hazard
    assert again.to_bytes() == regular.to_bytes()


def test_best_rates_use_the_budget_and_beat_even_and_proportional_visits() -> None:
    rates = 1.0 / np.random.default_rng(2).lognormal(8.0, 1.5, 500)
    budget = 500 / 1200.0
    best = optimal_rates(rates, budget)
    assert best.sum() == pytest.approx(budget, rel=1e-6)
    for other in (np.full(500, budget / 500), rates * budget / rates.sum()):
        assert expected_freshness(rates, best).mean() > expected_freshness(rates, other).mean()
