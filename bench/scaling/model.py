"""A simulation of agents that share cores and take turns at one writer.

An agent gathers pages on one of the cores of its machine, then commits the
batch: it waits for the turn and holds it for `fixed + a_page * pages`
seconds. All figures are measured on one agent and on one writer; the
simulation says what many of them do to each other.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """What one agent and one commit cost, in seconds, and how batches are cut."""

    work_a_page: float
    turn_fixed: float
    turn_a_page: float
    commit_every: float = 1.0
    most: int = 512
    offered: float = 1e9
    """Pages a second that the hosts of one agent let it fetch: politeness."""


@dataclass(frozen=True, slots=True)
class Foretold:
    """Pages a second of all agents, how busy the turn and the cores are, and what is short first."""

    agents: int
    pages_a_second: float
    turn: float
    cores: float

    @property
    def bottleneck(self) -> str:
        """What to widen first."""
        if self.turn >= 0.9:
            return "the writer's turn"
        return "cores" if self.cores >= 0.9 else "the agents (politeness, one core each)"


def simulate(load: Load, agents: int, cores: float, seconds: float = 120.0) -> Foretold:
    """Runs the clock; `cores` is how many all agents have together."""
    rate = min(load.offered, 1.0 / load.work_a_page)
    events = [(0.001 * number, number) for number in range(agents)]
    heapq.heapify(events)
    free = [0.0] * max(1, round(min(cores, agents)))
    turn_free = turn_busy = core_busy = 0.0
    pages = 0
    while events:
        now, agent = heapq.heappop(events)
        if now >= seconds:
            break
        batch = max(1, min(load.most, int(rate * load.commit_every)))
        core = heapq.heappop(free)
        begun = max(now, core)
        worked = begun + batch * load.work_a_page
        heapq.heappush(free, worked)
        core_busy += batch * load.work_a_page
        gathered = max(worked, now + batch / rate)
        held = load.turn_fixed + load.turn_a_page * batch
        turn_free = max(turn_free, gathered) + held
        turn_busy += held
        pages += batch
        heapq.heappush(events, (turn_free, agent))
    span = max(seconds, turn_free)
    return Foretold(agents, pages / span, min(1.0, turn_busy / span), min(1.0, core_busy / span / len(free)))
