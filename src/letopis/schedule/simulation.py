"""The simulator: real policies against pages whose changes are known."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from letopis.config.sections import ScheduleSettings
from letopis.errors import UsageError
from letopis.schedule.allot import Floats, best_rates
from letopis.schedule.measures import Measured, measure
from letopis.schedule.optimal import Optimal
from letopis.schedule.policies import Adaptive, Look, Policy, Uniform
from letopis.schedule.state import VisitState
from letopis.schedule.worlds import Changes, World, make_world

POLICIES = ("uniform", "adaptive", "optimal", "captured", "oracle", "proportional-oracle")
LEARNING = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class SimulateRow:
    """One policy in one world. Shares are fractions, `age` is seconds.

    `visits_per_budget` compares visits with those of the uniform policy.
    `of_oracle` is freshness over that of the oracle in the same world; for
    `captured` and `proportional-oracle` it compares captured changes with
    those of proportional-oracle.
    """

    policy: str
    captured: float
    hits: float
    freshness: float
    age: float
    visits_per_budget: float
    of_oracle: float


def simulate(
    pages: int = 1000,
    periods: str = "uniform:2m-80m",
    changes: Changes = "poisson",
    interval: float = 1200.0,
    hours: float = 24.0,
    seed: int = 0,
    policies: Sequence[str] = POLICIES,
    learning: float = LEARNING,
) -> list[SimulateRow]:
    """One row a policy: `learning` seconds unmeasured, then `hours` measured, the same changes for all."""
    _refuse_unknown(policies)
    if pages < 1 or interval <= 0.0 or hours <= 0.0:
        raise UsageError("a simulation needs at least one page, an interval and measured hours above zero")
    end = learning + hours * 3600.0
    world = make_world(pages, periods, changes, end, seed)
    run = _Run(world, interval, learning, seed)
    best = {name: run.measured(name) for name in ("oracle", "proportional-oracle")}
    return [_row(name, best.get(name) or run.measured(name), best, run.allowed) for name in policies]


def _refuse_unknown(policies: Sequence[str]) -> None:
    for name in policies:
        if name not in POLICIES:
            raise UsageError(f"there is no policy '{name}'; choose from {', '.join(POLICIES)}")


def _row(name: str, got: Measured, best: dict[str, Measured], allowed: float) -> SimulateRow:
    if name in ("captured", "proportional-oracle"):
        share = got.captured / max(best["proportional-oracle"].captured, 1e-12)
    else:
        share = got.freshness / max(best["oracle"].freshness, 1e-12)
    return SimulateRow(name, got.captured, got.hits, got.freshness, got.age, got.visits / allowed, share)


class _Run:
    """One world, visited again and again by different policies."""

    def __init__(self, world: World, interval: float, learning: float, seed: int) -> None:
        self._world, self._interval, self._learning, self._seed = world, interval, learning, seed
        self.allowed = len(world.periods) / interval * (world.seconds - learning)

    def measured(self, name: str) -> Measured:
        visits = self._visits(name)
        return measure(visits, self._world.changes, self._learning, self._world.seconds)

    def _visits(self, name: str) -> Sequence[Sequence[float] | Floats]:
        budget = len(self._world.periods) / self._interval
        if name == "oracle":
            return self._even(best_rates(self._world.rates, budget))
        if name == "proportional-oracle":
            return self._even(self._world.rates * budget / self._world.rates.sum())
        policy = policy_named(name, settings_for(self._interval))
        return visits_of(policy, self._world, self._interval)

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


def settings_for(interval: float) -> ScheduleSettings:
    """Settings of a simulation: bounds that do not bind."""
    return ScheduleSettings(interval=interval, min=interval * 1e-3, max=interval * 1e5)


def policy_named(name: str, settings: ScheduleSettings) -> Policy:
    """A policy by the name it has in a simulation."""
    make: dict[str, Callable[[], Policy]] = {
        "uniform": lambda: Uniform(settings),
        "adaptive": lambda: Adaptive(settings),
        "optimal": lambda: Optimal(replace(settings, objective="freshness")),
        "captured": lambda: Optimal(replace(settings, objective="captured")),
    }
    return make[name]()


def visits_of(policy: Policy, world: World, spread: float) -> list[list[float]]:
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
        decision = policy.next_visit(states[page], Look(now, position > seen[page]))
        seen[page], states[page] = position, decision.state
        visits[page].append(now)
        heapq.heapreplace(due, (decision.due, page))
    return visits
