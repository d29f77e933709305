"""A simulation of agents that share cores, a database and an object store, and commit beside each other.

An agent fetches pages, reads them in batches, during which it fetches none and
the web that answers it alone has nothing to do, and goes on until a commit is
due. A commit computes in the agent, waits for the object store and the disks, and computes in the database; other
agents go on meanwhile, since a commit locks nothing but its own hosts.
Whoever computes shares the cores: agents that gather, the web that answers
them, commits, and the database, unless that has cores of its own. All figures
are measured; the simulation says what many agents do to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds of the start of an agent, with the first use of everything, of a page, and of a commit."""

    start: float
    page: float
    commit: float

    def of(self, agents: int, pages: int, commits: int) -> float:
        """What so many take together."""
        return self.start * agents + self.page * pages + self.commit * commits


def cost_of(crawls: Sequence[tuple[int, int, float]]) -> Cost:
    """What explains the CPU of crawls by one agent best: pages, commits and CPU seconds of each.

    Nothing costs less than nothing: what would is left out. Crawls that differ in pages and in commits a page are
    needed, and each counts alike however long it is.
    """
    spent = np.array([cpu for _, _, cpu in crawls])
    if not spent.all():
        return Cost(0.0, 0.0, 0.0)
    counted = np.array([(1.0, pages, commits) for pages, commits, _ in crawls]) / spent[:, None]
    best, least = np.zeros(3), np.inf
    for kept in product((False, True), repeat=3):
        columns = [place for place, is_kept in enumerate(kept) if is_kept]
        found = np.zeros(3)
        found[columns] = np.linalg.lstsq(counted[:, columns], np.ones(len(spent)), rcond=None)[0]
        error = float(np.square(counted @ found - 1).sum())
        if found.min() >= 0 and error < least - 1e-12:
            best, least = found, error
    return Cost(*map(float, best))


@dataclass(frozen=True, slots=True)
class Load:
    """What a page, a commit and a look at the leases cost, in seconds, and how batches are cut."""

    work_a_page: float
    """Of the agent, besides commits."""
    web_a_page: float
    commit_fixed: float
    commit_a_page: float
    """Of the agent and of the object store."""
    wait: float
    """Networks and disks, for each commit."""
    base_fixed: float
    base_a_page: float
    """Of the database."""
    tend: float = 0.0
    """Of the database, each time an agent looks at its leases."""
    count: float = 0.0
    """Of the database, to count the hosts that are to be shared out: a fiftieth of the time of all agents together."""
    read_a_page: float = 0.0
    """What of `work_a_page` is reading."""
    commit_every: float = 1.0
    read_batch: int = 256
    most: int = 512
    few: int = 64
    offered: float = 1e9
    """Pages a second that the hosts of one agent let it fetch: politeness."""


@dataclass(frozen=True, slots=True)
class Foretold:
    """Pages a second of all agents, how busy the cores are (of the database, where it has its own), what is short."""

    agents: int
    offered: float
    pages_a_second: float
    cores: float
    database: float
    polite: bool

    @property
    def bottleneck(self) -> str:
        """What to widen first."""
        if self.database >= 0.9:
            return "the database's cores"
        if self.cores >= 0.9:
            return "cores"
        return "politeness" if self.polite else "the agents, one core each"


@dataclass(slots=True)
class _Agent:
    since: float
    gathered: float = 0.0
    unread: float = 0.0
    """What of `gathered` is not read yet."""
    ready: float = 0.0
    """Pages that politeness lets it fetch now."""
    reads: float = 0.0
    computes: float = 0.0
    waits: float = 0.0
    base: float = 0.0

    @property
    def commits(self) -> bool:
        return self.computes > 0 or self.waits > 0 or self.base > 0


def simulate(
    load: Load, agents: int, cores: float, base_cores: float | None = None, seconds: float = 60.0, step: float = 0.005
) -> Foretold:
    """Runs the clock in small steps; `cores` is how many all have together, without those that the database has.

    What is told is that of the last two thirds, when everybody is at work.
    """
    crew = [_Agent(since=-load.commit_every * number / agents) for number in range(agents)]
    looks = agents / max(1.0, 0.01 * agents)
    tending = load.tend * looks + min(0.02, load.count * looks)
    pages = core_busy = base_busy = 0.0
    pace = 1.0 / (load.work_a_page - load.read_a_page)
    for tick in range(round(seconds / step)):
        now = tick * step
        if tick == round(seconds / step / 3):
            pages = core_busy = base_busy = 0.0
        for agent in crew:
            agent.ready = min(load.most, agent.ready + load.offered * step)
        gathering = [agent for agent in crew if not agent.commits and not agent.reads and agent.ready >= 1]
        computing = sum(agent.computes > 0 or agent.reads > 0 for agent in crew)
        # Cores of the database that commits would use in this step: some begin with it or end it within the step.
        asking = sum(
            min(agent.base, step - agent.waits) / step for agent in crew if agent.computes <= 0 and agent.waits < step
        )
        # The web is one process: it answers no more than a core's worth of pages.
        slowed = pace / max(1.0, len(gathering) * pace * load.web_a_page)
        wanted = len(gathering) * slowed * (1 / pace + load.web_a_page) + computing
        of_base = asking + tending
        if base_cores is None:
            wanted, of_base = wanted + of_base, 0.0
        share = min(1.0, cores / wanted) if wanted else 1.0
        base_share = share if base_cores is None else min(1.0, base_cores / of_base) if of_base else 1.0
        core_busy += min(wanted, cores) * step
        base_busy += min(of_base, base_cores or 0.0) * step
        for agent in gathering:
            got = min(slowed * share * step, agent.ready)
            agent.gathered, agent.unread, agent.ready = agent.gathered + got, agent.unread + got, agent.ready - got
        for agent in crew:
            if agent.commits:
                pages += _committed(agent, now, step, share, base_share)
            elif agent.reads:
                agent.reads = max(0.0, agent.reads - share * step)
            elif _due(load, agent, now):
                agent.computes = load.commit_fixed + load.commit_a_page * agent.gathered + _read(load, agent)
                agent.waits = load.wait
                agent.base = load.base_fixed + load.base_a_page * agent.gathered
            elif agent.unread >= load.read_batch:
                agent.reads = _read(load, agent)
    polite, seconds = load.offered < 1 / load.work_a_page, seconds * 2 / 3
    base = base_busy / seconds / base_cores if base_cores else 0.0
    return Foretold(agents, load.offered, pages / seconds, core_busy / seconds / cores, base, polite)


def _read(load: Load, agent: _Agent) -> float:
    """The CPU seconds of reading what was fetched since the last time."""
    unread, agent.unread = agent.unread, 0.0
    return load.read_a_page * unread


def _due(load: Load, agent: _Agent, now: float) -> bool:
    """As an agent decides it: a full batch at once, others in time, small ones in twice the time."""
    pause = load.commit_every * (2 if agent.gathered < load.few else 1)
    return agent.gathered >= load.most or (agent.gathered >= 1 and now - agent.since >= pause)


def _committed(agent: _Agent, now: float, step: float, share: float, base_share: float) -> float:
    """A step of a commit; how many pages became durable."""
    left = step
    for name, speed in (("computes", share), ("waits", 1.0), ("base", base_share)):
        work: float = getattr(agent, name)
        if work > 0 and left > 0:
            done = min(work, left * speed)
            setattr(agent, name, 0.0 if done >= work else work - done)
            left -= done / speed
    if agent.commits:
        return 0.0
    recorded, agent.gathered, agent.since = agent.gathered, 0.0, now
    return recorded
