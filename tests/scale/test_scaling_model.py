"""The model of a fleet: pages grow with agents until the database has no cores left, and no further."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench.scaling.model import Cost, Load, cost_of, simulate

LOAD = Load(0.001, 0.0, 0.01, 0.0002, 0.03, 0.005, 0.0001, offered=20.0)


def test_pages_grow_with_agents_while_nothing_is_short() -> None:
    few, many = (simulate(LOAD, agents, agents, 16.0, 20.0, 0.01) for agents in (10, 100))
    assert many.pages_a_second == pytest.approx(10 * few.pages_a_second, rel=0.1)
    assert many.bottleneck == "politeness"


def test_the_database_bounds_a_fleet_that_asks_more_of_it_than_it_has() -> None:
    heavy = replace(LOAD, base_fixed=0.0, base_a_page=0.001, offered=400.0)
    found = simulate(heavy, 20, 20, 2.0, 60.0, 0.01)
    assert found.pages_a_second == pytest.approx(2.0 / 0.001, rel=0.15)
    assert found.bottleneck == "the database's cores"


def test_one_machine_makes_no_more_pages_than_its_cores_compute() -> None:
    alone = replace(LOAD, offered=1e9)
    found = simulate(alone, 4, 2.0)
    assert found.pages_a_second < 2.0 / (alone.work_a_page + alone.commit_a_page + alone.base_a_page)
    assert found.bottleneck == "cores"


def test_the_web_waits_while_one_agent_reads_and_answers_others_meanwhile() -> None:
    load = Load(0.001, 0.0005, 0.0, 0.0, 0.001, 0.0, 0.0, read_a_page=0.0005)
    one, four = (simulate(load, agents, 8.0, step=0.002) for agents in (1, 4))
    assert one.pages_a_second == pytest.approx(1 / 0.001, rel=0.05)
    assert four.pages_a_second == pytest.approx(1 / 0.0005, rel=0.1), "the web has one core"
    slow = simulate(replace(load, web_a_page=0.001), 1, 8.0, step=0.002)
    assert slow.pages_a_second == pytest.approx(1 / 0.0015, rel=0.05)


def test_the_database_is_busy_for_as_long_as_commits_compute_there_however_short_that_is() -> None:
    load = Load(
        work_a_page=0.0006, web_a_page=0.0, commit_fixed=0.0068, commit_a_page=0.0001, wait=0.0592, base_fixed=0.005,
        base_a_page=0.0001, offered=20.0,
    )  # fmt: skip
    foretold = simulate(load, 60, 60.0, 4.0, 30.0, 0.01)
    commits = foretold.pages_a_second / 41  # small ones wait for two seconds
    expected = foretold.pages_a_second * load.base_a_page + commits * load.base_fixed
    assert 4.0 * foretold.database == pytest.approx(expected, rel=0.1)


def crawls(cost: Cost, noise: float = 0.0) -> list[tuple[int, int, float]]:
    """As many pages and commits as the three kinds of crawls by one agent have; every other is dearer by some noise."""
    made = [(7036, 20), (7036, 150), (170, 3)] * 2
    return [
        (pages, commits, cost.of(1, pages, commits) * (1 + noise * (place % 2)))
        for place, (pages, commits) in enumerate(made)
    ]


def test_crawls_by_one_agent_tell_what_its_start_its_pages_and_its_commits_cost() -> None:
    cost = Cost(0.09, 0.0006, 0.004)
    found = cost_of(crawls(cost))
    assert [found.start, found.page, found.commit] == pytest.approx([cost.start, cost.page, cost.commit])
    shaken = cost_of(crawls(cost, 0.1))
    for agents, pages, commits in ((1, 7036, 20), (8, 7036, 200), (8, 2744, 60)):
        assert shaken.of(agents, pages, commits) == pytest.approx(cost.of(agents, pages, commits), rel=0.1)


def test_nothing_costs_less_than_nothing() -> None:
    assert cost_of(crawls(Cost(-0.01, 0.0006, 0.0))).start == 0.0
    assert cost_of([(100, 2, 0.0), (7, 1, 0.0)]) == Cost(0.0, 0.0, 0.0)
