"""Recorded histories replayed: which policy, coefficient and budget would have served these pages best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from letopis.errors import UsageError
from letopis.schedule.simulation import Coefficients, SimulatedWorld, SimulationRow, simulate_world, study_coefficients

RecordedVisits = Sequence[tuple[float, bool]]
"""The visits of a page in their order: when, in seconds, and whether it had changed since the one before."""
_LEAST_VISITS = 3
_POLICIES = ("uniform", "optimal", "captured")
"""Those that keep to a budget, and so can be compared at one."""
_COEFFICIENTS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6)
_INTERVALS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Of the median time between two changes of a page."""
_NEARLY = 0.95
_LEAST_HITS = 0.5
"""Share of visits that should find a change: what comes too early costs others their turn."""


@dataclass(frozen=True, slots=True)
class RevisitAdvice:
    """What to set for pages that change like these. Shares are fractions, times seconds.

    `coefficient` is for the adaptive policy; `budget` is visits a second for
    all of these pages, and `interval` the mean time between visits of one.
    """

    pages: int
    changes: int
    days: float
    policy: str
    interval: float
    budget: float
    freshness: float
    captured: float
    coefficient: float


def recorded_world(histories: Iterable[RecordedVisits]) -> SimulatedWorld:
    """The pages that were visited at least three times; each change is taken to lie halfway between two visits."""
    kept = [history for history in histories if len(history) >= _LEAST_VISITS]
    start = min((history[0][0] for history in kept), default=0.0)
    seconds = max((history[-1][0] for history in kept), default=0.0) - start
    changes = [[(a + b) / 2 - start for (a, _), (b, changed) in pairwise(history) if changed] for history in kept]
    if not any(changes) or seconds <= 0.0:
        raise UsageError("no page here was visited three times and found changed; crawl or check for a while first")
    spans = [history[-1][0] - history[0][0] for history in kept]
    # A page without a change in so long a time is taken to change half as often as once.
    periods = [span / max(len(times), 0.5) for span, times in zip(spans, changes, strict=True)]
    return SimulatedWorld(np.maximum(np.array(periods), 1.0), tuple(map(np.array, changes)), seconds)


def revisit_advice(world: SimulatedWorld, seed: int = 0) -> tuple[RevisitAdvice, list[SimulationRow]]:
    """The cheapest way that is nearly as fresh as the dearest tried, and how the policies do at its budget.

    The first half of the time is for learning, the second is measured.
    """
    middle = float(np.median(world.periods))
    tried = {
        share * middle: simulate_world(world, share * middle, world.seconds / 2, seed, _POLICIES)
        for share in _INTERVALS
    }
    freshest = max(row.freshness for rows in tried.values() for row in rows)
    enough = [interval for interval, rows in tried.items() if _best(rows).freshness >= _NEARLY * freshest]
    interval = max(enough)
    best = _best(tried[interval])
    advice = RevisitAdvice(
        len(world.periods), sum(map(len, world.changes)), world.seconds / 86_400, best.policy, interval,
        len(world.periods) / interval, best.freshness, best.captured, _coefficient(world, interval, seed),
    )  # fmt: skip
    return advice, tried[interval]


def _best(rows: Sequence[SimulationRow]) -> SimulationRow:
    return max(rows, key=lambda row: row.freshness)


def _coefficient(world: SimulatedWorld, interval: float, seed: int) -> float:
    """The one that captures most of those whose visits find a change often enough, else the one that finds most."""

    def run(chosen: Coefficients) -> SimulationRow:
        return simulate_world(world, interval, world.seconds / 2, seed, ["adaptive"], chosen)[0]

    rows = study_coefficients(_COEFFICIENTS, run)
    fair = [row for row in rows if row.hits >= _LEAST_HITS]
    chosen = max(fair, key=lambda row: row.captured) if fair else max(rows, key=lambda row: row.hits)
    return chosen.coefficient
