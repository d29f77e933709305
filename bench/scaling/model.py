"""A simulation of agents that share cores and take turns at one writer.

An agent gathers pages until a commit is due, waits for the turn, and holds it
for `turn_fixed + turn_a_page * pages` seconds. Whoever computes shares the
cores: agents that gather, the web that answers them, and whoever holds the
turn together with database and object store. All figures are measured; the
simulation says what many agents do to each other.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """What a page and a commit cost, in seconds, and how batches are cut.

    `turn_cpu` is the part of the held turn in which somebody computes; the
    rest waits for networks and disks.
    """

    work_a_page: float
    web_a_page: float
    turn_fixed: float
    turn_a_page: float
    turn_cpu: float = 1.0
    commit_every: float = 1.0
    most: int = 512
    few: int = 64
    offered: float = 1e9
    """Pages a second that the hosts of one agent let it fetch: politeness."""


@dataclass(frozen=True, slots=True)
class Foretold:
    """Pages a second of all agents, how busy the turn and the cores are, and what is short first."""

    agents: int
    pages_a_second: float
    turn: float
    cores: float
    polite: bool

    @property
    def bottleneck(self) -> str:
        """What to widen first."""
        if self.turn >= 0.9:
            return "the writer's turn"
        if self.cores >= 0.9:
            return "cores"
        return "politeness" if self.polite else "the agents, one core each"


@dataclass(slots=True)
class _Agent:
    gathered: float = 0.0
    since: float = 0.0
    holds: float = 0.0
    waits: bool = False


def simulate(load: Load, agents: int, cores: float, seconds: float = 60.0, step: float = 0.005) -> Foretold:
    """Runs the clock in small steps; `cores` is how many all of them have together."""
    crew = [_Agent(since=-load.commit_every * number / agents) for number in range(agents)]
    queue: list[_Agent] = []
    pages = turn_busy = core_busy = 0.0
    rate = min(load.offered, 1.0 / load.work_a_page)
    for tick in range(round(seconds / step)):
        now = tick * step
        gathering = [agent for agent in crew if not agent.waits]
        # The web is one process: it answers no more than a core's worth of pages.
        web = len(gathering) * rate * load.web_a_page
        pace = rate / max(1.0, web)
        wanted = len(gathering) * pace * (load.work_a_page + load.web_a_page) + (load.turn_cpu if queue else 0.0)
        share = min(1.0, cores / wanted) if wanted else 1.0
        core_busy += min(wanted, cores) * step
        for agent in gathering:
            agent.gathered = min(load.most, agent.gathered + pace * share * step)
            if _due(load, agent, now):
                agent.waits, agent.holds = True, load.turn_fixed + load.turn_a_page * agent.gathered
                queue.append(agent)
        if queue:
            turn_busy += step
            pages += _held(queue, now, step * share)
    polite = rate == load.offered
    return Foretold(agents, pages / seconds, turn_busy / seconds, core_busy / seconds / cores, polite)


def _due(load: Load, agent: _Agent, now: float) -> bool:
    """As an agent decides it: a full batch at once, others in time, small ones in twice the time."""
    pause = load.commit_every * (2 if agent.gathered < load.few else 1)
    return agent.gathered >= load.most or (agent.gathered >= 1 and now - agent.since >= pause)


def _held(queue: list[_Agent], now: float, step: float) -> float:
    """A step of whoever has the turn; how many pages became durable."""
    first = queue[0]
    first.holds -= step
    if first.holds > 0:
        return 0.0
    queue.pop(0)
    recorded, first.gathered, first.since, first.waits = first.gathered, 0.0, now, False
    return recorded
