"""The frontier's queue on the catalogue's tables: by share of the hosts, or by hosts that an agent leases.

Every agent works the same way and none is special: it leases its fair part
of the hosts that have something due, extends the leases while it lives, and
gives surplus hosts back when others join. What it records is checked against
the fences of its hosts inside the same transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from uuid import uuid4

from letopis.catalog import Catalog, Cursor
from letopis.catalog.leases import HostLeases
from letopis.catalog.queues import Shard
from letopis.errors import Busy
from letopis.frontier import Frontier, HostLease, HostState, LeaseKeeper, NewUrl, QueuedUrl, Ticket
from letopis.look.politeness import PauseJournal


class CatalogQueue:
    """Answers the frontier from SQL. URLs are added inside the transaction of the look that found them."""

    def __init__(self, catalog: Catalog, shard: Shard, pause_journal: PauseJournal | None = None) -> None:
        """`owed` knows of pauses that a killed run could not record."""
        self._catalog = catalog
        self._shard = shard
        self._pause_journal = pause_journal
        self._cursor: Cursor | None = None
        self._asked: tuple[int, int | None] | None = None

    @contextmanager
    def inside(self, cursor: Cursor) -> Iterator[None]:
        """While it lasts, additions are part of that transaction."""
        self._cursor = cursor
        try:
            yield
        finally:
            self._cursor = self._asked = None

    def hosts_due(self, now: int, new: bool, limit: int, after: int, cap: int) -> list[HostState]:
        """See `QueueStore.hosts_due`."""
        rows = self._catalog.queues.hosts_due(now, new, limit, after, cap, self._shard)
        hosts = [HostState(*row) for row in rows]
        return hosts if self._pause_journal is None else [self._pause_journal.corrected(host) for host in hosts]

    def next_due(self, now: int) -> int | None:
        """See `QueueStore.next_due`; the same question has the same answer until something is recorded here."""
        if self._asked is None or self._asked[0] != now:
            self._asked = now, self._catalog.queues.next_due(now, self._shard)
        return self._asked[1]

    def load(self, host: int, now: int, new: bool, limit: int) -> list[QueuedUrl]:
        """See `QueueStore.load`."""
        return [QueuedUrl(*row) for row in self._catalog.queues.load(host, now, new, limit)]

    def add(self, rows: Sequence[NewUrl], now: int) -> list[int]:
        """See `QueueStore.add`."""
        if self._cursor is not None:
            return self._add(self._cursor, rows)
        with self._catalog.transaction() as cursor:
            return self._add(cursor, rows)

    def _add(self, cursor: Cursor, rows: Sequence[NewUrl]) -> list[int]:
        resources = self._catalog.resources
        hosts = {name: resources.ensure_host(cursor, name) for name in {row.host for row in rows}}
        self._catalog.queues.add(cursor, [(row.key, row.url, hosts[row.host], row.depth, row.priority) for row in rows])
        return self._mine(hosts.values())

    def _mine(self, hosts: Iterable[int]) -> list[int]:
        return [host for host in hosts if host % self._shard.agents == self._shard.rest]

    def seen_keys(self) -> Iterator[Sequence[int]]:
        """See `QueueStore.seen_keys`."""
        return self._catalog.queues.all_keys()


_MAX_HOSTS = 10_000
_TICK_MILLIS = 1000
_TICK_MILLIS_AN_AGENT = 10


class LeasesLost(Busy):
    """Some hosts of a batch belong to others by now; nothing of it was written."""

    def __init__(self, hosts: set[int]) -> None:
        super().__init__(f"{len(hosts)} hosts went to other agents meanwhile; their pages are fetched again by those")
        self.hosts = hosts


class _CatalogLeaseStore:
    """The rows of one owner, as the keeper of leases wants them."""

    def __init__(self, leases: HostLeases) -> None:
        self._leases = leases

    def lease(self, owner: str, now: int, until: int, limit: int) -> list[HostLease]:
        """See `LeaseStore.lease`."""
        return [HostLease(host, owner, fence, until) for host, fence in self._leases.take(owner, now, until, limit)]

    def renew(self, leases: Sequence[HostLease], now: int, until: int) -> list[HostLease]:
        """See `LeaseStore.renew`."""
        if not leases:
            return []
        held = set(self._leases.extend(leases[0].owner, now, until))
        return [lease._replace(until=until) for lease in leases if (lease.host, lease.fence) in held]

    def release(self, leases: Sequence[HostLease]) -> None:
        """See `LeaseStore.release`."""
        if leases:
            self._leases.give_back(leases[0].owner, [lease.host for lease in leases])


class LeasedQueue(CatalogQueue):
    """The frontier's durable side for an agent that owns hosts by lease."""

    def __init__(self, catalog: Catalog, leases: HostLeases, owner: str) -> None:
        super().__init__(catalog, Shard())
        self._leases = leases
        self._owner = owner
        self.holds: Callable[[int], bool] = lambda host: False

    def hosts_due(self, now: int, new: bool, limit: int, after: int, cap: int) -> list[HostState]:
        """See `QueueStore.hosts_due`; only hosts of this agent."""
        return [HostState(*row) for row in self._leases.held_due(self._owner, now, new, limit, after)]

    def load(self, host: int, now: int, new: bool, limit: int) -> list[QueuedUrl]:
        """See `QueueStore.load`; nothing of hosts that went to others."""
        return super().load(host, now, new, limit) if self.holds(host) else []

    def _mine(self, hosts: Iterable[int]) -> list[int]:
        return [host for host in hosts if self.holds(host)]


class LeaseManager:
    """Tends the leases of one agent. Times are milliseconds."""

    def __init__(self, catalog: Catalog, leases: HostLeases, owner: str, seconds: float) -> None:
        self.owner = owner
        self._catalog = catalog
        self._leases = leases
        self._span = round(seconds * 1000)
        self._keeper = LeaseKeeper(_CatalogLeaseStore(leases), owner, seconds)
        self._leaving: set[int] = set()
        self._next = 0

    @classmethod
    def named(cls, catalog: Catalog, leases: HostLeases, seconds: float) -> LeaseManager:
        """With a name that nobody else has."""
        return cls(catalog, leases, uuid4().hex, seconds)

    def queue(self) -> LeasedQueue:
        """The queue that answers with the hosts held here."""
        queue = LeasedQueue(self._catalog, self._leases, self.owner)
        queue.holds = lambda host: self._keeper.holds(host) and host not in self._leaving
        return queue

    def tend(self, frontier: Frontier, now: int) -> None:
        """Extends what is held, drops what was lost, and moves towards a fair share."""
        for host in self._keeper.keep(now):
            frontier.drop_host(host)
            self._leaving.discard(host)
        if self._leaving:
            self._free(frontier, [host for host in self._leaving if frontier.idle(host)])
        if now < self._next:
            return
        if not self._keeper.held:
            self._leases.extend(self.owner, now, now + self._span)
        agents = max(1, self._leases.agents(now))
        self._next = now + max(_TICK_MILLIS, _TICK_MILLIS_AN_AGENT * agents)
        self._free(frontier, [host for host in self._leases.spent(self.owner, now) if frontier.idle(host)])
        fair = min(_MAX_HOSTS, -(-self._leases.busy_hosts(now) // agents))
        staying = [host for host in self._keeper.held if host not in self._leaving]
        self._share(frontier, staying, len(staying) - fair)
        wanted = fair - len(staying)
        if wanted > 0:
            frontier.notice(lease.host for lease in self._keeper.want(now, wanted))

    def _share(self, frontier: Frontier, hosts: list[int], surplus: int) -> None:
        """Gives surplus hosts away, those with the least in memory first.

        What was begun of a host is finished and recorded before it goes: a
        host that is always busy must not stay for ever with whoever came first.
        """
        if surplus > 0:
            hosts.sort(key=lambda host: (not frontier.idle(host), frontier.waiting_at(host)))
            for host in hosts[:surplus]:
                frontier.retire(host)
            self._leaving.update(hosts[:surplus])
            self._free(frontier, [host for host in hosts[:surplus] if frontier.idle(host)])

    def _free(self, frontier: Frontier, hosts: Sequence[int]) -> None:
        """Gives hosts back: a host in whose place another one waits must not be held for nothing."""
        if hosts:
            for host in hosts:
                frontier.drop_host(host)
            self._leaving.difference_update(hosts)
            self._keeper.give_up(hosts)

    def safe(self, ticket: Ticket, now: int) -> bool:
        """Whether the ticket's host is ours for certain, for as long as a fetch begun now takes to be sent."""
        return self._keeper.safe(ticket.host_id, now, ticket.fence)

    def check(self, cursor: Cursor, tickets: Iterable[Ticket], now: int) -> None:
        """LeasesLost when a host of the batch has another owner or fence; else all stay ours until the commit."""
        fences = sorted({(ticket.host_id, ticket.fence) for ticket in tickets})
        lost = self._leases.lost(cursor, self.owner, fences, now + self._span)
        if lost:
            raise LeasesLost(lost)

    def finished(self, now: int) -> bool:
        """Whether no host of the whole fleet has anything due."""
        return not self._leases.busy_hosts(now)

    def leave(self) -> None:
        """Gives everything back."""
        self._leases.leave(self.owner)
