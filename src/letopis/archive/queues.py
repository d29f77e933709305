"""What waits to be fetched, and who may fetch it: queues by host, leases of hosts, pauses that machines share, and
the planned crawls.

A URL that is being fetched keeps its stored state; only the transaction that records the finished check changes it
(`QueueUpdate`). Times are whole milliseconds since 1970.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import IntEnum
from typing import Any

from letopis.archive.archive import Archive, of_archive
from letopis.archive.records import RecordedCapture
from letopis.catalog import Cursor
from letopis.catalog.leases import HostLeases, PauseRow, PauseRows, check_clock
from letopis.catalog.queues import NewestKeys, QueueCounts, Shard
from letopis.errors import Busy, LetopisError
from letopis.fetch import Origin
from letopis.tuples import NamedTuple
from letopis.urls import host as host_of

__all__ = [
    "CrawlPlan", "FrontierQueue", "FrontierState", "HeldHosts", "HostLeases", "HostState", "HostUpdate",
    "LeasedQueue", "LeasesLost", "NewUrl", "NewestKeys", "PauseRow", "PauseRows", "PlanSpending", "PlannedUrl",
    "QueueUpdate", "QueuedUrl", "Shard", "count_due", "crawl_plans", "drop_site", "enqueue_crawl", "host_leases",
    "is_queue_empty", "is_within_reach", "keeps_crawl_plans", "leases_hosts", "pause_rows", "queue_counts",
    "take_figures", "take_in_links", "visited_hosts",
]  # fmt: skip


class FrontierState(IntEnum):
    """The stored state of a URL."""

    KNOWN = 0
    NEW = 1
    AGAIN = 2
    HELD = 3
    GONE = 4


class HostState(NamedTuple):
    """What is stored about a host: its identity and when it may be requested again."""

    id: int
    name: str
    ip: str = ""
    ready: int = 0
    ip_ready: int = 0
    crawl_delay: float = 0.0
    fetched: int = 0
    failures: int = 0
    fence: int = 0


class HostUpdate(NamedTuple):
    """The politeness state of a host after a fetch, stored with the record of that fetch."""

    id: int
    ip: str
    ready: int
    ip_ready: int
    crawl_delay: float
    fetched: int
    failures: int
    revisited: int = 0
    """1 when this fetch was not the first visit of its URL; `fetched` counts those that were."""


class QueuedUrl(NamedTuple):
    """A URL that is due. `schedule` is its visit record, opaque here; `known` tells whether it has a version."""

    id: int
    url: str
    depth: int = 0
    priority: float = 0.0
    due: int = 0
    schedule: bytes = b""
    known: bool = True


class NewUrl(NamedTuple):
    """A URL that passed the sieve and will be stored as NEW."""

    key: int
    url: str
    host: str
    depth: int = 0
    priority: float = 0.0


class PlannedUrl(NamedTuple):
    """The plan for a URL after a check: the new state, when it is due again, its visit record, and its id."""

    state: int
    due: int | None
    schedule: bytes
    id: int


# The queue of one agent


class FrontierQueue:
    """Provides the frontier with the hosts of one shard."""

    def __init__(
        self, archive: Archive, shard: Shard | None = None, arrive: Callable[[HostState], HostState] = lambda host: host
    ) -> None:
        """`arrive` is called with every host that is added, and may know more of its pauses than the record."""
        self._catalog = archive.catalog
        self._shard = shard or Shard()
        self.agent = None if shard is None else shard.rest
        """The number of the agent in its fleet; None for a single one, or one that leases its hosts."""
        self.arrive = arrive
        self._asked: tuple[int, int | None] | None = None
        self.for_others = _is_crawled_for_others(archive)
        """Whether a URL that was given out may come from a crawl that was started through HTTP."""

    def hosts_due(self, now: int, new: bool, limit: int, after: int, cap: int) -> list[HostState]:
        """Hosts with an id above `after` that have a URL of the kind due, by id; see `frontier.QueueStore`."""
        rows = self._catalog.queues.hosts_due(now, new, limit, after, cap, self._shard)
        return [HostState(*row) for row in rows]

    def next_due(self, now: int) -> int | None:
        """When the next URL becomes due; the answer is the same until something is recorded here."""
        if self._asked is None or self._asked[0] != now:
            self._asked = now, self._catalog.queues.next_due(now, self._shard)
        return self._asked[1]

    def load(self, host: int, now: int, new: bool, limit: int) -> list[QueuedUrl]:
        """Due URLs of a host and kind, best first."""
        rows = self._catalog.queues.load(host, now, new, limit)
        # Read with the URLs, the same in each row: the mark is written in the transaction of the first crawl of another
        # account.
        self.for_others = self.for_others or bool(rows and rows[0][-1])
        return [tuple.__new__(QueuedUrl, row[:-1]) for row in rows]

    def add(self, rows: Sequence[NewUrl], now: int) -> list[int]:
        """Stores unseen URLs in a separate transaction; ids of the hosts of this agent that got any."""
        with self._catalog.transaction() as cursor:
            return self.add_in(cursor, rows)

    def add_in(self, cursor: Cursor, rows: Sequence[NewUrl], locked: Collection[int] | None = None) -> list[int]:
        """The same as part of a transaction; where that has `locked` some hosts, URLs of others are sent to them."""
        self._asked = None
        hosts = self._catalog.resources.ensure_hosts(cursor, {row.host for row in rows})
        found = [(row.key, row.url, hosts[row.host], row.depth, row.priority) for row in rows]
        self._catalog.queues.add(cursor, [row for row in found if locked is None or row[2] in locked])
        self._catalog.queues.send(cursor, [row for row in found if locked is not None and row[2] not in locked])
        return self.own(hosts.values())

    def own(self, hosts: Iterable[int]) -> list[int]:
        """Those of the hosts that are this agent's."""
        return [host for host in hosts if host % self._shard.agents == self._shard.rest]

    def newest_keys(self, most: int) -> NewestKeys:
        """The keys of the last `most` URLs that were planned."""
        return self._catalog.queues.newest_keys(most)

    def planned(self, keys: Sequence[int]) -> set[int]:
        """Those of the keys under which a URL was ever planned."""
        return self._catalog.queues.planned(keys)


class LeasedQueue(FrontierQueue):
    """The same for an agent that owns hosts by lease; `holds` tells which it owns now."""

    def __init__(
        self,
        archive: Archive,
        leases: HostLeases,
        owner: str,
        holds: Callable[[int], bool],
        arrive: Callable[[HostState], HostState] = lambda host: host,
    ) -> None:
        super().__init__(archive, None, arrive)
        self._leases, self._owner, self._holds = leases, owner, holds

    def hosts_due(self, now: int, new: bool, limit: int, after: int, cap: int) -> list[HostState]:
        """Hosts of this agent only."""
        rows = self._leases.held_due(self._owner, now, new, limit, after)
        return [HostState(*row) for row in rows]

    def load(self, host: int, now: int, new: bool, limit: int) -> list[QueuedUrl]:
        """Writes nothing about hosts that belong to others."""
        return super().load(host, now, new, limit) if self._holds(host) else []

    def own(self, hosts: Iterable[int]) -> list[int]:
        """Those that are leased now."""
        return [host for host in hosts if self._holds(host)]


class LeasesLost(Busy):
    """Some hosts of a batch now belong to other agents; nothing of the batch was written."""

    def __init__(self, hosts: set[int]) -> None:
        super().__init__(f"{len(hosts)} hosts moved to other agents, which fetch their pages again")
        self.hosts = hosts


class HeldHosts(NamedTuple):
    """The hosts of a batch with the fences with which their owner requested them; if still valid, the leases are
    extended until a time.
    """

    leases: HostLeases
    owner: str
    fences: Sequence[tuple[int, int]]
    until: int

    def check(self, cursor: Cursor) -> None:
        """LeasesLost when a host has another owner or fence; else all stay with the owner until the commit."""
        lost = self.leases.lost(cursor, self.owner, self.fences, self.until)
        if lost:
            raise LeasesLost(lost)


class QueueUpdate:
    """What a batch of checks changes for their URLs and hosts and for the links they found.

    `write` is called by `Archive.record`, in the transaction that records the checks.
    """

    def __init__(
        self,
        archive: Archive,
        queue: FrontierQueue,
        visits: Sequence[PlannedUrl],
        hosts: Iterable[HostUpdate],
        found: Sequence[NewUrl],
        memory: bytes | None = None,
        held: HeldHosts | None = None,
        spent: Sequence[PlanSpending] = (),
        linked: Sequence[NewUrl] = (),
        figures: str = "",
    ) -> None:
        """`memory` is what the revisit policy remembers now, None if it has none.

        `figures` count what an agent of a fleet has done with this batch: valid however it ends. `linked` are known
        URLs that were found again; their priorities are added to those of the waiting URLs.
        """
        self._archive, self._queue, self._queues = archive, queue, archive.catalog.queues
        self._visits, self._found, self._linked = visits, found, linked
        self._memory, self._held, self._spent, self._figures = memory, held, spent, figures
        updates = list(hosts)
        self._hosts = {host.id: host for host in updates}
        self._revisits = Counter(host.id for host in updates if host.revisited)
        if self._revisits:
            self._queues.ensure_revisits()
        self.noticed: list[int] = []
        """Hosts of this agent that got URLs, once it is written."""
        self.hosts = self._own_hosts()
        """Hosts that it changes besides those of the checks; None if it changes rows that belong to no host."""

    def _own_hosts(self) -> set[int] | None:
        catalog, held = self._archive.catalog, self._held
        of_no_host = self._memory is not None or self._linked or self._spent
        if held is None or of_no_host or not catalog.database.dialect.beside:
            return None
        found = catalog.resources.ensure_hosts(None, {row.host for row in self._found})
        return {*self._queue.own(found.values()), *(host for host, _ in held.fences)}

    def write(self, cursor: Cursor, done: list[RecordedCapture]) -> None:
        """Writes all of it; LeasesLost, and nothing is written, if a host belongs to another agent now."""
        if self._held is not None:
            self._held.check(cursor)
        self._queues.finish(cursor, self._visits)
        if self._memory is not None:
            self._queues.set_memory(cursor, self._memory)
        if self._queue.agent is not None:
            self._queues.set_figures(cursor, self._queue.agent, self._figures)
        self._queues.set_hosts(cursor, [(*update[1:7], number) for number, update in self._hosts.items()])
        if self._revisits:
            self._queues.add_revisits(cursor, self._revisits.items())
        if self._linked:
            self._queues.raise_priority(cursor, ((link.priority, link.key, link.url) for link in self._linked))
        self.noticed = self._queue.add_in(cursor, self._found, self.hosts)
        if self._spent:
            self._queues.set_plans(cursor, json.dumps(_after(crawl_plans(self._archive), self._spent)))


def take_figures(archive: Archive, agent: int) -> str:
    """Takes the figures that an agent of a fleet has left in the record; they are removed there."""
    return archive.catalog.queues.take_figures(agent)


# What machines share


def leases_hosts(archive: Archive) -> bool:
    """Whether agents lease their hosts, since others on other machines may share the record."""
    return bool(archive.settings.database.url)


def host_leases(archive: Archive) -> HostLeases:
    """Leases of hosts; NotReady when this machine's clock is far from that of the database."""
    check_clock(archive.catalog.database, time.time())
    crawling = archive.settings.crawl
    return HostLeases(archive.catalog.database, round(crawling.delay * 1000), crawling.max_per_host)


pause_rows = of_archive(PauseRows)
"""Pauses of hosts and addresses as all machines see them."""


def is_within_reach(archive: Archive) -> bool:
    """Whether the record answers."""
    try:
        archive.catalog.database.one("SELECT 1")
    except LetopisError:
        return False
    return True


# Planned crawls


class CrawlPlan(NamedTuple):
    """A planned crawl; its limits also apply when another process continues it.

    `origin` is who planned it: the owner on the command line, or a caller through HTTP, whose crawls never reach
    private addresses with the rights of the owner. `limit` and `max_hosts` limit what is planned, including seeds;
    `planned` and `hosts` count what was planned, so that the limits hold across restarts. After `max_bytes` from the
    network, of which `taken` were received, or at the time `until` in milliseconds, nothing more is requested for it.
    `rules` apply to its addresses, as an `<urltransform>` element. Its pages are opened in a `browser`, after `steps`
    on each, or captured with their `requisites`.
    """

    seeds: tuple[str, ...]
    scope: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    depth: int | None
    requisites: bool
    origin: Origin = "cli"
    limit: int | None = None
    max_hosts: int | None = None
    rules: str = ""
    planned: int = 0
    hosts: tuple[str, ...] = ()
    max_bytes: int | None = None
    until: int | None = None
    taken: int = 0
    browser: bool = False
    steps: tuple[str, ...] = ()

    @property
    def is_limited(self) -> bool:
        """Whether its pages, hosts, bytes or time are bounded."""
        return any(one is not None for one in (self.limit, self.max_hosts, self.max_bytes, self.until))


class PlanSpending(NamedTuple):
    """What a limited crawl has used since the last commit: pages, new hosts, bytes from the network."""

    seeds: tuple[str, ...]
    origin: Origin
    pages: int
    hosts: tuple[str, ...]
    taken: int = 0


_MAX_PLANS = 1000
_TAKEN_IN_AT_ONCE = 10_000


def _after(plans: Iterable[CrawlPlan], spent: Iterable[PlanSpending]) -> list[CrawlPlan]:
    """The plans with the counts of what was planned; one that was dropped meanwhile stays dropped."""
    by_plan = {(one.seeds, one.origin): one for one in spent}
    found = []
    for plan in plans:
        one = by_plan.get((plan.seeds, plan.origin))
        hosts = plan.hosts if one is None else tuple(dict.fromkeys((*plan.hosts, *one.hosts)))
        pages, taken = (one.pages, one.taken) if one else (0, 0)
        found.append(plan._replace(planned=plan.planned + pages, hosts=hosts, taken=plan.taken + taken))
    return found


def enqueue_crawl(archive: Archive, plan: CrawlPlan, due_hosts: Iterable[str] = ()) -> int:
    """Queues the seeds of a crawl, which replaces an earlier one from the same seeds.

    A crawl of another account does not replace one of the owner. Every visited page of `due_hosts` becomes due at once.
    Returns how many pages were not waiting before. Of very many crawls the oldest are forgotten.
    """
    now = round(archive.clock().timestamp() * 1000)
    queues, resources = archive.catalog.queues, archive.catalog.resources
    with archive.catalog.transaction() as cursor:
        added = sum(queues.plan(cursor, resources.ensure(cursor, seed).id, 0) for seed in plan.seeds)
        if plan.seeds:
            others = [kept for kept in crawl_plans(archive) if (kept.seeds, kept.origin) != (plan.seeds, plan.origin)]
            queues.set_plans(cursor, json.dumps([*others, plan][-_MAX_PLANS:]))
            if plan.origin != "cli":
                queues.mark_foreign(cursor)
        for host in due_hosts:
            added += queues.make_due(cursor, host, now)
    return added


def crawl_plans(archive: Archive) -> list[CrawlPlan]:
    """The planned crawls of this archive, oldest first."""
    rows = json.loads(archive.catalog.queues.plans() or "[]")
    # Earlier releases did not record who planned a crawl. Crawls came through HTTP only if there were accounts.
    said = all(len(row) > _ORIGIN for row in rows)
    unsaid: Origin = "cli" if said or not archive.catalog.queues.has_accounts() else "http"
    return [_plan_of([*row, unsaid] if len(row) == _ORIGIN else row) for row in rows]


def _plan_of(row: list[Any]) -> CrawlPlan:
    """A stored plan; newer fields are missing in those of earlier releases."""
    values: list[Any] = [tuple(value) if isinstance(value, list) else value for value in row]
    return CrawlPlan(*values)


_ORIGIN = CrawlPlan._fields.index("origin")


def _is_crawled_for_others(archive: Archive) -> bool:
    """Whether crawls ever came through HTTP: their URLs may wait here even if the crawl is dropped."""
    return archive.catalog.queues.has_foreign() or any(plan.origin != "cli" for plan in crawl_plans(archive))


def keeps_crawl_plans(archive: Archive) -> bool:
    """Whether any crawl was ever stored here; False in archives of earlier releases."""
    return bool(archive.catalog.queues.plans())


def drop_site(archive: Archive, host: str) -> int:
    """Drops all planned visits and crawls of a host; returns how many URLs waited.

    Crawls from several seeds keep the other seeds.
    """
    with archive.catalog.transaction() as cursor:
        left = [
            plan._replace(seeds=tuple(seed for seed in plan.seeds if host_of(seed) != host))
            for plan in crawl_plans(archive)
        ]
        archive.catalog.queues.set_plans(cursor, json.dumps([plan for plan in left if plan.seeds]))
        return archive.catalog.queues.drop(cursor, host)


def visited_hosts(archive: Archive, most: int) -> list[str]:
    """Names of hosts that crawls have requested."""
    return archive.catalog.queues.visited_hosts(most)


# Plans of visits


def take_in_links(archive: Archive) -> None:
    """Moves URLs that agents of a fleet left for hosts of others, and that no agent handles now, into their queues."""
    while archive.catalog.queues.take_in(_TAKEN_IN_AT_ONCE):
        pass


def queue_counts(archive: Archive) -> QueueCounts:
    """How many URLs wait for a first visit, and how many are revisited."""
    return archive.catalog.queues.waiting()


def is_queue_empty(archive: Archive) -> bool:
    """Whether no URL waits for a visit, first or other; however many there are, they are not counted."""
    return archive.catalog.queues.is_empty()


def count_due(archive: Archive) -> int:
    """How many URLs could be visited now: all that wait for a first visit, and those that are due again."""
    now = round(archive.clock().timestamp() * 1000)
    return queue_counts(archive).new + archive.catalog.queues.due_again(now)
