import json
from pathlib import Path

import numpy as np
import pytest

from letopis.cli.main import main
from letopis.errors import UsageError
from letopis.schedule.simulation import POLICIES, Coefficients, make_world, measure_visits, simulate


def test_measures_of_a_page_worked_out_by_hand() -> None:
    got = measure_visits([[0.0, 10.0, 20.0, 30.0]], [np.array([4.0, 6.0, 25.0])], 10.0, 40.0)
    assert got.visits == 3
    assert got.freshness == pytest.approx((10 + 5 + 10) / 30)
    assert got.age == pytest.approx(5 * 5 / 2 / 30)
    assert got.captured == 1.0
    assert got.hits == pytest.approx(2 / 3)


def test_the_change_ratio_counts_visits_by_what_their_pages_are_worth() -> None:
    visits, changes = [[0.0, 10.0, 20.0], [0.0, 10.0, 20.0]], [np.array([5.0, 15.0]), np.array([99.0])]
    got = measure_visits(visits, changes, 5.0, 25.0, np.array([1.5, 0.5]))
    assert (got.hits, got.change_ratio) == (pytest.approx(0.5), pytest.approx(0.75))
    assert measure_visits(visits, changes, 5.0, 25.0).change_ratio == got.hits
    world = make_world(50, "uniform:2m-80m", "poisson", 3600.0, 1)
    assert world.weights is not None
    assert world.weights.mean() == pytest.approx(1.0)


def test_age_counts_from_the_unseen_change_also_before_the_measured_time() -> None:
    got = measure_visits([[0.0]], [np.array([5.0])], 10.0, 20.0)
    assert (got.freshness, got.visits) == (0.0, 0)
    assert got.age == pytest.approx((15.0**2 - 5.0**2) / 2 / 10)


@pytest.mark.parametrize("text", ["uniform", "uniform:9m-2m", "uniform:a-b", "lognormal:60m", "lognormal:x:1", "odd:1"])
def test_refuses_periods_it_does_not_know(text: str) -> None:
    with pytest.raises(UsageError, match="write uniform:2m-80m"):
        make_world(3, text, "poisson", 100.0, 1)


def test_refuses_unknown_policies_and_empty_worlds() -> None:
    with pytest.raises(UsageError, match="choose from uniform"):
        simulate(policies=["best"])
    with pytest.raises(UsageError):
        simulate(pages=0)


def test_worlds_have_the_rates_they_claim() -> None:
    for changes in ("poisson", "periodic", "exact"):
        world = make_world(200, "lognormal:60m:1.0", changes, 48 * 3600.0, 5)
        counts = np.array([len(times) for times in world.changes])
        assert counts.sum() == pytest.approx((world.seconds * world.rates).sum(), rel=0.05)
    long_tail = make_world(3000, "lognormal:60m:3", "poisson", 100.0, 5).periods
    assert (long_tail.min(), long_tail.max()) == (60.0, 7 * 86400.0)


def test_a_row_for_each_policy_and_the_same_again_from_the_same_seed() -> None:
    rows = simulate(pages=40, hours=6, seed=3, learning=6 * 3600.0)
    assert [row.policy for row in rows] == list(POLICIES)
    assert rows == simulate(pages=40, hours=6, seed=3, learning=6 * 3600.0)
    by_name = {row.policy: row for row in rows}
    assert by_name["uniform"].visits_per_budget == pytest.approx(1.0, abs=0.01)
    assert by_name["oracle"].of_oracle == by_name["proportional-oracle"].of_oracle == 1.0
    assert all(0.0 <= value <= 1.0 for row in rows for value in (row.captured, row.hits, row.freshness))


def test_uniform_visits_in_the_documents_world_have_the_values_of_the_formula() -> None:
    row = simulate(pages=1000, changes="exact", policies=["uniform"], seed=2, hours=12, learning=3600.0)[0]
    periods = make_world(1000, "uniform:2m-80m", "exact", 13 * 3600.0, 2).periods
    hits = np.minimum(1.0, 1200 / periods)
    assert row.hits == pytest.approx(hits.mean(), abs=0.02)
    assert row.captured == pytest.approx(hits.mean() / (1200 / periods).mean(), abs=0.02)


def test_coefficients_move_the_adaptive_policy_and_no_other() -> None:
    calm, hasty = (
        simulate(40, hours=6, seed=3, learning=6 * 3600.0, policies=["uniform", "adaptive"], coefficients=chosen)
        for chosen in (Coefficients(0.1, 0.1), Coefficients(0.8, 0.8))
    )
    assert calm[0] == hasty[0]
    assert hasty[1].hits < calm[1].hits
    assert hasty[1].visits_per_budget > calm[1].visits_per_budget


def test_the_settings_of_the_schedule_hold_in_a_simulation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["simulate", "--pages", "30", "--hours", "2", "--policy", "adaptive", "--json"]
    assert main(words) == 0
    usual = json.loads(capsys.readouterr().out)
    monkeypatch.setenv("LETOPIS_SCHEDULE_INCREASE", "0.7")
    monkeypatch.setenv("LETOPIS_SCHEDULE_DECREASE", "0.7")
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["hits"] < usual["hits"]


def test_a_study_of_coefficients_has_a_row_each_and_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "study.svg"
    words = ["simulate", "--pages", "20", "--hours", "2", "--coefficients", "0.1,0.5", "--json"]
    assert main([*words, "--plot", str(picture)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["coefficient"] for row in rows] == [0.1, 0.5]
    assert picture.read_text().count("<polyline") == 3
    assert main([*words[:-3], "--coefficients", "7"]) == 2
