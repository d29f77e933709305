"""Floors of Q10 on a smaller world: 250 pages, 18 h of learning, 12 h measured."""

import pytest

from letopis.schedule.simulation import simulate

WORLDS = [
    (periods, changes) for periods in ("uniform:2m-80m", "lognormal:60m:1.8") for changes in ("poisson", "periodic")
]


@pytest.mark.parametrize(("periods", "changes"), WORLDS)
def test_revisits_stay_near_the_optimum_at_equal_visits(periods: str, changes: str) -> None:
    rows = simulate(250, periods, changes, hours=12, seed=7, policies=["optimal", "captured"], learning=18 * 3600.0)
    fresh, captured = rows
    assert fresh.of_oracle >= 0.97
    assert captured.of_oracle >= 0.95
    for row in rows:
        assert row.visits_per_budget == pytest.approx(1.0, abs=0.02)
