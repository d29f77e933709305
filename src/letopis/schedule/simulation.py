"""The simulator: runs the real policies on pages whose changes are known, and measures them."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import numpy as np

from letopis.config.settings import ScheduleSettings
from letopis.errors import UsageError
from letopis.model.times import parse_duration
from letopis.schedule.freshness import Floats, optimal_rates
from letopis.schedule.policies import (
    AdaptivePolicy,
    OptimalPolicy,
    RevisitPolicy,
    UniformPolicy,
    VisitResult,
    VisitState,
)
from letopis.tuples import NamedTuple

ChangePattern = Literal["poisson", "periodic", "exact"]

_SHORTEST, _LONGEST = 60.0, 7 * 86400.0
_JITTER = {"periodic": 0.25, "exact": 0.0}


class SimulatedWorld(NamedTuple):
    """Pages with their mean periods and all change times up to `seconds`."""

    periods: Floats
    changes: tuple[Floats, ...]
    seconds: float
    weights: Floats | None = None
    """How much each page is worth, 1 in the mean; None where all are worth the same."""

    @property
    def rates(self) -> Floats:
        """True changes a second."""
        return 1.0 / self.periods


def make_world(pages: int, periods: str, changes: ChangePattern, seconds: float, seed: int) -> SimulatedWorld:
    """A world from a seed: `periods` as in `draw_periods`.

    `poisson` changes come at random, `periodic` ones after the period times
    uniform(0.75, 1.25), `exact` ones after the period itself.
    """
    random = np.random.default_rng(seed)
    drawn = draw_periods(periods, pages, random)
    times = tuple(_change_times(period, changes, seconds, random) for period in drawn)
    return SimulatedWorld(drawn, times, seconds, page_weights(pages))


def page_weights(pages: int) -> Floats:
    """What pages are worth as their ranks say it: the n-th 1/n of the first, 1 in the mean."""
    weights: Floats = 1.0 / np.arange(1.0, pages + 1.0)
    weights /= weights.mean()
    return weights


def draw_periods(text: str, pages: int, random: np.random.Generator) -> Floats:
    """Periods in seconds of 'uniform:2m-80m' or 'lognormal:60m:1.8' (cut to 1 min .. 7 days)."""
    kind, _, rest = text.partition(":")
    try:
        if kind == "uniform":
            low, _, high = rest.partition("-")
            return random.uniform(*_period_range(parse_duration(low), parse_duration(high)), pages)
        if kind == "lognormal":
            median, _, sigma = rest.partition(":")
            drawn = random.lognormal(math.log(parse_duration(median)), float(sigma), pages)
            return np.clip(drawn, _SHORTEST, _LONGEST)
    except ValueError as error:
        raise _bad_periods(text) from error
    except UsageError as error:
        raise _bad_periods(text) from error
    raise _bad_periods(text)


def _period_range(low: float, high: float) -> tuple[float, float]:
    if not 0.0 < low <= high:
        raise ValueError("an empty range")
    return low, high


def _bad_periods(text: str) -> UsageError:
    return UsageError(f"'{text}' names no periods; write uniform:2m-80m or lognormal:60m:1.8")


def _change_times(period: float, changes: ChangePattern, seconds: float, random: np.random.Generator) -> Floats:
    expected = seconds / period
    count = int(expected * 1.4 + 8.0 * math.sqrt(expected) + 30.0)
    if changes == "poisson":
        times = np.cumsum(random.exponential(period, count))
    else:
        jitter = _JITTER[changes]
        gaps = period * random.uniform(1.0 - jitter, 1.0 + jitter, count)
        gaps[0] *= random.uniform()
        times = np.cumsum(gaps)
    return times[times < seconds]


class VisitMeasures(NamedTuple):
    """Means over pages and time. `captured` and `hits` are shares of changes and of visits.

    `change_ratio` is `hits` with each visit counted by what its page is worth.
    """

    captured: float
    hits: float
    freshness: float
    age: float
    visits: int
    change_ratio: float


def measure_visits(
    visits: Sequence[Sequence[float] | Floats],
    changes: Sequence[Floats],
    start: float,
    end: float,
    weights: Floats | None = None,
) -> VisitMeasures:
    """What visits achieved between two times; each page has at least one visit before `start` or none at all.

    A visit captures one change, the latest, however many it finds.
    """
    pages = [
        _measure_page(np.asarray(times, dtype=np.float64), true, start, end)
        for times, true in zip(visits, changes, strict=True)
    ]
    fresh, age = sum(page[0] for page in pages), sum(page[1] for page in pages)
    captured, found, made = (sum(page[part] for page in pages) for part in (2, 3, 4))
    happened = sum(int(np.searchsorted(true, end) - np.searchsorted(true, start)) for true in changes)
    whole = len(changes) * (end - start)
    hits = found / max(made, 1)
    if weights is not None:
        worth = sum(weight * page[4] for weight, page in zip(weights, pages, strict=True))
        ratio = sum(weight * page[3] for weight, page in zip(weights, pages, strict=True)) / max(worth, 1e-12)
    return VisitMeasures(
        captured / max(happened, 1), hits, fresh / whole, age / whole, int(made), hits if weights is None else ratio
    )


def _measure_page(visits: Floats, changes: Floats, start: float, end: float) -> tuple[float, float, int, int, int]:
    """Fresh seconds, age integrated over time, changes captured, visits that found one, visits made."""
    following = np.append(visits[1:], end)
    stale = np.minimum(np.append(changes, np.inf)[np.searchsorted(changes, visits, side="right")], following)
    fresh = np.clip(stale, start, end) - np.clip(visits, start, end)
    until = np.maximum(np.minimum(following, end) - stale, 0.0)
    already = np.clip(start - stale, 0.0, until)
    hit = (following >= start) & (following < end) & (stale < following)
    latest = np.append(-np.inf, changes)[np.searchsorted(changes, following, side="right")]
    captured = int(np.count_nonzero(hit & (latest >= start)))
    made = int(np.searchsorted(visits, end) - np.searchsorted(visits, start))
    return float(fresh.sum()), float((until**2 - already**2).sum() / 2.0), captured, int(hit.sum()), made


POLICIES = ("uniform", "adaptive", "optimal", "captured", "oracle", "proportional-oracle")
LEARNING_SECONDS = 24 * 3600.0


class Coefficients(NamedTuple):
    """How much the adaptive policy changes an interval: up after an unchanged visit, down after a changed one."""

    increase: float
    decrease: float


DEFAULT_COEFFICIENTS = Coefficients(ScheduleSettings().increase, ScheduleSettings().decrease)


class SimulationRow(NamedTuple):
    """One policy in one world. Shares are fractions, `age` is seconds.

    `change_ratio` is the share of visits that found a change, each counted by what its page is worth.
    `visits_per_budget` compares visits with those of the uniform policy. `of_oracle` is freshness over that of the
    oracle in the same world; for `captured` and `proportional-oracle` it compares captured changes with those of
    proportional-oracle.
    """

    policy: str
    captured: float
    hits: float
    change_ratio: float
    freshness: float
    age: float
    visits_per_budget: float
    of_oracle: float


def simulate(
    pages: int = 1000,
    periods: str = "uniform:2m-80m",
    changes: ChangePattern = "poisson",
    interval: float = 1200.0,
    hours: float = 24.0,
    seed: int = 0,
    policies: Sequence[str] = POLICIES,
    learning: float = LEARNING_SECONDS,
    coefficients: Coefficients = DEFAULT_COEFFICIENTS,
) -> list[SimulationRow]:
    """One row a policy: `learning` seconds unmeasured, then `hours` measured, the same changes for all.

    `coefficients` are those of the adaptive policy.
    """
    if pages < 1 or interval <= 0.0 or hours <= 0.0:
        raise UsageError("a simulation needs at least one page, an interval and measured hours above zero")
    end = learning + hours * 3600.0
    world = make_world(pages, periods, changes, end, seed)
    return simulate_world(world, interval, learning, seed, policies, coefficients)


def simulate_world(
    world: SimulatedWorld,
    interval: float,
    learning: float,
    seed: int = 0,
    policies: Sequence[str] = POLICIES,
    coefficients: Coefficients = DEFAULT_COEFFICIENTS,
) -> list[SimulationRow]:
    """One row a policy in a world that is there, at one visit a page every `interval` seconds."""
    _refuse_unknown(policies)
    run = _Simulation(world, interval, learning, seed, coefficients)
    best = {name: run.measured(name) for name in ("oracle", "proportional-oracle")}
    return [_row(name, best.get(name) or run.measured(name), best, run.allowed) for name in policies]


def _refuse_unknown(policies: Sequence[str]) -> None:
    for name in policies:
        if name not in POLICIES:
            raise UsageError(f"unknown policy '{name}'; choose from {', '.join(POLICIES)}")


def _row(name: str, got: VisitMeasures, best: dict[str, VisitMeasures], allowed: float) -> SimulationRow:
    if name in ("captured", "proportional-oracle"):
        share = got.captured / max(best["proportional-oracle"].captured, 1e-12)
    else:
        share = got.freshness / max(best["oracle"].freshness, 1e-12)
    return SimulationRow(
        name, got.captured, got.hits, got.change_ratio, got.freshness, got.age, got.visits / allowed, share
    )


class _Simulation:
    """One simulated web, visited by different policies."""

    def __init__(
        self, world: SimulatedWorld, interval: float, learning: float, seed: int, coefficients: Coefficients
    ) -> None:
        self._world, self._interval, self._learning, self._seed = world, interval, learning, seed
        self._coefficients = coefficients
        self.allowed = len(world.periods) / interval * (world.seconds - learning)

    def measured(self, name: str) -> VisitMeasures:
        visits = self._visits(name)
        world = self._world
        return measure_visits(visits, world.changes, self._learning, world.seconds, world.weights)

    def _visits(self, name: str) -> Sequence[Sequence[float] | Floats]:
        budget = len(self._world.periods) / self._interval
        if name == "oracle":
            return self._even(optimal_rates(self._world.rates, budget))
        if name == "proportional-oracle":
            return self._even(self._world.rates * budget / self._world.rates.sum())
        policy = policy_named(name, simulation_settings(self._interval, self._coefficients))
        return simulate_visits(policy, self._world, self._interval)

    def _even(self, rates: Floats) -> list[Floats]:
        """Visits at fixed rates, each page in a phase of its own; all pages are seen at the start."""
        random = np.random.default_rng(self._seed + 1)
        visits = []
        for rate in rates:
            step = 1.0 / rate if rate > 0.0 else math.inf
            if step >= self._world.seconds:
                visits.append(np.zeros(1))
                continue
            visits.append(np.append(0.0, np.arange(random.uniform(0.0, step), self._world.seconds, step)))
        return visits


def simulation_settings(interval: float, coefficients: Coefficients = DEFAULT_COEFFICIENTS) -> ScheduleSettings:
    """Settings of a simulation: bounds that do not bind."""
    return ScheduleSettings(interval=interval, min=interval * 1e-3, max=interval * 1e5, **coefficients._asdict())


class CoefficientRow(NamedTuple):
    """The adaptive policy with one coefficient for both directions; figures as those of `SimulationRow`."""

    coefficient: float
    captured: float
    hits: float
    change_ratio: float
    freshness: float
    age: float
    visits_per_budget: float


def study_coefficients(values: Sequence[float], run: Callable[[Coefficients], SimulationRow]) -> list[CoefficientRow]:
    """What each coefficient achieves in one world; `run` simulates the adaptive policy with it."""
    if not values or not all(0.0 < value < 1.0 for value in values):
        raise UsageError("coefficients lie between 0 and 1, such as 0.1,0.2,0.4")
    found = []
    for value in values:
        row = run(Coefficients(value, value))
        found.append(
            CoefficientRow(
                value, row.captured, row.hits, row.change_ratio, row.freshness, row.age, row.visits_per_budget
            )
        )
    return found


_COLOURS = {"captured": "#1f6f8b", "hits": "#b5452c", "freshness": "#4b7f3f"}


def coefficient_plot(rows: Sequence[CoefficientRow]) -> str:
    """Shares over coefficients as an SVG picture: low ones learn late, high ones come too early."""
    width, height = 640, 400
    left, bottom, top = 50, height - 40, 20
    across, up = width - left - 110, bottom - top

    def place(coefficient: float, share: float) -> str:
        return f"{left + across * coefficient:.1f},{bottom - up * min(1.0, share):.1f}"

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
             'font-size="12"><rect width="100%" height="100%" fill="white"/>']  # fmt: skip
    for tenth in range(0, 11, 2):
        share = tenth / 10
        x, y = place(share, 0.0).split(",")[0], place(0.0, share).split(",")[1]
        parts.append(f'<path d="M{left},{y}H{left + across}" stroke="#ddd"/><text x="10" y="{y}">{share:.1f}</text>')
        parts.append(f'<text x="{x}" y="{bottom + 18}">{share:.1f}</text>')
    for name, colour in _COLOURS.items():
        points = [place(row.coefficient, getattr(row, name)) for row in rows]
        parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x, y = points[-1].split(",")
        parts.append(f'<text x="{float(x) + 6:.1f}" y="{y}" fill="{colour}">{name}</text>')
    parts.append(f'<text x="{left}" y="{height - 6}">coefficient of the adaptive policy</text></svg>')
    return "\n".join(parts) + "\n"


def policy_named(name: str, settings: ScheduleSettings) -> RevisitPolicy:
    """A policy by the name it has in a simulation."""
    make: dict[str, Callable[[], RevisitPolicy]] = {
        "uniform": lambda: UniformPolicy(settings),
        "adaptive": lambda: AdaptivePolicy(settings),
        "optimal": lambda: OptimalPolicy(replace(settings, objective="freshness")),
        "captured": lambda: OptimalPolicy(replace(settings, objective="captured")),
    }
    return make[name]()


def simulate_visits(policy: RevisitPolicy, world: SimulatedWorld, spread: float) -> list[list[float]]:
    """All visits of a policy; first visits are spread evenly over `spread` seconds."""
    count = len(world.periods)
    due = [(page * spread / count, page) for page in range(count)]
    states = [VisitState()] * count
    seen = [0] * count
    changes = [times.tolist() for times in world.changes]
    visits: list[list[float]] = [[] for _ in range(count)]
    while due[0][0] < world.seconds:
        now, page = due[0]
        position = bisect_right(changes[page], now, seen[page])
        decision = policy.next_visit(states[page], VisitResult(now, position > seen[page]))
        seen[page], states[page] = position, decision.state
        visits[page].append(now)
        heapq.heapreplace(due, (decision.due, page))
    return visits


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


class RevisitAdvice(NamedTuple):
    """Recommended settings for pages that change like these. Shares are fractions, times seconds.

    `coefficient` is for the adaptive policy; `budget` is visits per second for all of these pages, and `interval` the
    mean time between visits of one.
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
