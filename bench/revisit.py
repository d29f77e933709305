"""Q10: revisits against the optimum at equal visits, in four worlds; and the document's own set-up.

python bench/revisit.py [--seeds 1,2,3] [--pages 1000] [--hours 24] [--document] [--plot FILE.html] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from letopis.schedule.policies import AdaptivePolicy
from letopis.schedule.simulation import (
    POLICIES,
    ChangePattern,
    SimulatedWorld,
    SimulationRow,
    make_world,
    measure_visits,
    simulate,
    simulate_visits,
    simulation_settings,
)

WORLDS: tuple[tuple[str, ChangePattern], ...] = (
    ("uniform:2m-80m", "poisson"),
    ("uniform:2m-80m", "periodic"),
    ("lognormal:60m:1.8", "poisson"),
    ("lognormal:60m:1.8", "periodic"),
)
GOALS = {"optimal": 0.99, "captured": 0.97}
DOCUMENT = {"uniform": (0.6153, 0.5440, 0.6650, 198.0), "adaptive": (0.9577, 0.5755, 0.6540, 212.0)}
DAY = 86400.0


@dataclass(frozen=True, slots=True)
class RevisitRow:
    """One policy in one world from one seed, with the goal it is held to (0: none)."""

    periods: str
    changes: str
    seed: int
    cpu_seconds: float
    goal: float
    result: SimulationRow

    @property
    def held(self) -> bool:
        """The goal is reached at equal visits."""
        equal = abs(self.result.visits_per_budget - 1.0) <= 0.01
        return self.goal == 0.0 or (equal and self.result.of_oracle >= self.goal)


@dataclass(frozen=True, slots=True)
class SweepRow:
    """The adaptive rule with one coefficient on pages of one period (a year, default interval 5 days)."""

    coefficient: float
    period_days: float
    hits: float
    captured: float


def run(pages: int = 1000, hours: float = 24.0, seeds: Sequence[int] = (1, 2, 3)) -> Iterator[RevisitRow]:
    """All policies in the four worlds."""
    for periods, changes in WORLDS:
        for seed in seeds:
            for policy in POLICIES:
                begin = time.process_time()
                row = simulate(pages, periods, changes, 1200.0, hours, seed, [policy])[0]
                spent = time.process_time() - begin
                yield RevisitRow(periods, changes, seed, spent, GOALS.get(policy, 0.0), row)


def document() -> list[SimulationRow]:
    """The document's simulation: 1000 pages, exact periods of 2-80 min, interval 20 min, coefficient 0.2."""
    return simulate(1000, "uniform:2m-80m", "exact", 1200.0, 24.0, 1, ["uniform", "adaptive", "optimal", "captured"])


def sweep(coefficients: Sequence[float], days: Sequence[float]) -> Iterator[SweepRow]:
    """Share of visits with a change and of changes captured for each coefficient and period (figures 5.1, 5.2)."""
    for coefficient in coefficients:
        for period in days:
            visits, world = _adaptive_year(coefficient, period)
            got = measure_visits(visits, world.changes, 1.0, world.seconds)
            yield SweepRow(coefficient, period, got.hits, got.captured)


def over_time(
    coefficients: Sequence[float], until: int = 160, step: int = 5
) -> Iterator[tuple[float, int, float, float]]:
    """The same up to each day for pages that change daily (figures 5.3, 5.4)."""
    for coefficient in coefficients:
        visits, world = _adaptive_year(coefficient, 1.0)
        for day in range(step, until + 1, step):
            got = measure_visits(visits, world.changes, 1.0, day * DAY)
            yield coefficient, day, got.hits, got.captured


def _adaptive_year(coefficient: float, period_days: float) -> tuple[list[list[float]], SimulatedWorld]:
    text = f"uniform:{period_days * DAY}s-{period_days * DAY}s"
    world = make_world(20, text, "exact", 365 * DAY, 1)
    settings = replace(simulation_settings(5 * DAY), increase=coefficient, decrease=coefficient)
    return simulate_visits(AdaptivePolicy(settings), world, DAY), world


def plot(file: Path) -> None:
    """Four pictures like the document's figures 5.1 to 5.4, in one page that needs no network."""
    titles = ("visits with a change", "changes captured", "visits with a change, in time", "changes captured, in time")
    figure = make_subplots(2, 2, subplot_titles=titles)
    steps, days = [round(0.05 * k, 2) for k in range(20)], (1.0, 3.0, 10.0, 30.0)
    rows = list(sweep(steps, days))
    for period in days:
        mine = [row for row in rows if row.period_days == period]
        for column, values in ((1, [row.hits for row in mine]), (2, [row.captured for row in mine])):
            figure.add_trace(go.Scatter(x=steps, y=values, name=f"period {period:g} d"), 1, column)
    timed = list(over_time((0.1, 0.2, 0.3, 0.6)))
    for coefficient in (0.1, 0.2, 0.3, 0.6):
        own = [row for row in timed if row[0] == coefficient]
        for column in (1, 2):
            trace = go.Scatter(x=[row[1] for row in own], y=[row[column + 1] for row in own], name=f"{coefficient}")
            figure.add_trace(trace, 2, column)
    figure.write_html(file, include_plotlyjs=True)


def _print_worlds(rows: Sequence[RevisitRow]) -> None:
    print(f"{'world':28}{'seed':>5} {'policy':20}{'captured':>9}{'hits':>7}{'fresh':>8}{'age s':>9}", end="")
    print(f"{'v/budget':>10}{'of_oracle':>10}{'goal':>6}{'held':>6}{'cpu s':>7}")
    for row in rows:
        got, world = row.result, f"{row.periods} {row.changes}"
        print(f"{world:28}{row.seed:5} {got.policy:20}{got.captured:9.4f}{got.hits:7.4f}{got.freshness:8.4f}", end="")
        goal = f"{row.goal:6.2f}{'yes' if row.held else 'NO':>6}" if row.goal else f"{'-':>6}{'-':>6}"
        print(f"{got.age:9.0f}{got.visits_per_budget:10.4f}{got.of_oracle:10.4f}{goal}{row.cpu_seconds:7.1f}")


def _print_document(rows: Sequence[SimulationRow]) -> None:
    print("\nthe document's set-up (exact periods); its own comparison was not at equal visits")
    print(f"{'policy':12}{'captured':>10}{'hits':>8}{'fresh':>8}{'age s':>8}{'v/budget':>10}   document's figures")
    for row in rows:
        said = DOCUMENT.get(row.policy)
        theirs = " ".join(f"{value:.4g}" for value in said) if said else "-"
        print(f"{row.policy:12}{row.captured:10.4f}{row.hits:8.4f}{row.freshness:8.4f}{row.age:8.0f}", end="")
        print(f"{row.visits_per_budget:10.3f}   {theirs}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", help="not needed: the worlds are generated")
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--document", action="store_true", help="the document's set-up alone")
    parser.add_argument("--plot", type=Path, help="write the coefficient pictures to this HTML file")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    seeds = [int(seed) for seed in args.seeds.split(",")]
    rows = [] if args.document else list(run(args.pages, args.hours, seeds))
    of_document = document()
    if args.json:
        print(json.dumps({"worlds": [asdict(row) for row in rows], "document": [row._asdict() for row in of_document]}))
    else:
        if rows:
            _print_worlds(rows)
        _print_document(of_document)
    if args.plot:
        plot(args.plot)
    return 0 if all(row.held for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
