"""One owner per host: leases with a fencing token, and how agents distribute hosts with them.

An agent holds the right to fetch from a host until a time, and extends it while it lives. Each new owner gets a higher
fence; a record that carries an older fence than the host's is refused by the store, so an agent that was paused past
its lease can do no harm. No agent is special: each leases its fair part of the hosts that have something due, and
releases surplus hosts when others join. Times are whole milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol
from uuid import uuid4

from letopis.archive import Archive
from letopis.archive.queues import HeldHosts, HostLeases, HostState, LeasedQueue
from letopis.frontier.frontier import Frontier
from letopis.frontier.queue import Ticket
from letopis.tuples import NamedTuple


class HostLease(NamedTuple):
    """The right of `owner` to fetch from a host until a time."""

    host: int
    owner: str
    fence: int
    until: int


class LeaseStore(Protocol):
    """The leases as all agents see them. Each call is one transaction."""

    def lease(self, owner: str, now: int, until: int, limit: int) -> list[HostLease]:
        """Hosts with due URLs that have no lease, or an expired one, given to `owner` with a new fence."""
        ...

    def renew(self, leases: Sequence[HostLease], now: int, until: int) -> list[HostLease]:
        """Those leases that still held, extended; the others are lost."""
        ...

    def release(self, leases: Sequence[HostLease]) -> None:
        """Releases hosts before their time; leases lost meanwhile are ignored."""
        ...


class LeaseKeeper:
    """The leases of one agent: gets them, extends them in time, returns which were lost."""

    def __init__(self, store: LeaseStore, owner: str, seconds: float = 60.0) -> None:
        self._store, self._owner, self._span = store, owner, round(seconds * 1000)
        self._held: dict[int, HostLease] = {}
        self._renew_at = 0

    @property
    def held(self) -> dict[int, HostLease]:
        """The leases by host."""
        return dict(self._held)

    def want(self, now: int, limit: int) -> list[HostLease]:
        """Lease up to `limit` further hosts."""
        got = self._store.lease(self._owner, now, now + self._span, limit)
        self._held.update((lease.host, lease) for lease in got)
        if got and not self._renew_at:
            self._renew_at = now + self._span // 3
        return got

    def keep(self, now: int) -> list[int]:
        """Extend what is held once a third of the time is over. Hosts that were lost: drop them."""
        if not self._held or now < self._renew_at:
            return []
        kept = {lease.host: lease for lease in self._store.renew(list(self._held.values()), now, now + self._span)}
        lost = [host for host in self._held if host not in kept]
        self._held, self._renew_at = kept, now + self._span // 3
        return lost

    def holds(self, host: int) -> bool:
        """Whether the agent had the host at the last query."""
        return host in self._held

    def safe(self, host: int, now: int, fence: int | None = None) -> bool:
        """Whether the agent certainly has the host (under this fence), with a sixth of the time left for a fetch."""
        lease = self._held.get(host)
        if lease is None or (fence is not None and lease.fence != fence):
            return False
        return lease.until - self._span // 6 > now

    def give_up(self, hosts: Sequence[int] | None = None) -> None:
        """Release some hosts, or all at the end of the run."""
        names = list(self._held) if hosts is None else [host for host in hosts if host in self._held]
        self._store.release([self._held.pop(host) for host in names])


_MAX_HOSTS = 10_000
_TICK_MILLIS = 1000
_TICK_MILLIS_AN_AGENT = 10


class _LeaseRows:
    """The leases of one owner in the record, in the form of `LeaseStore`."""

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


class LeaseManager:
    """Tends the leases of one agent. Times are milliseconds."""

    def __init__(self, leases: HostLeases, owner: str, seconds: float) -> None:
        self.owner = owner
        self._leases = leases
        self._span = round(seconds * 1000)
        self._keeper = LeaseKeeper(_LeaseRows(leases), owner, seconds)
        self._leaving: set[int] = set()
        self._next = 0

    @classmethod
    def named(cls, leases: HostLeases, seconds: float) -> LeaseManager:
        """Creates an owner with a unique name."""
        return cls(leases, uuid4().hex, seconds)

    def queue(self, archive: Archive, arrive: Callable[[HostState], HostState] = lambda host: host) -> LeasedQueue:
        """The queue with the hosts held here."""
        return LeasedQueue(archive, self._leases, self.owner, self._holds, arrive)

    def _holds(self, host: int) -> bool:
        return self._keeper.holds(host) and host not in self._leaving

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
        taken_in = self._leases.take_in(self.owner, self._keeper.held, now)
        frontier.notice(host for host in taken_in if self._holds(host))
        unused = [host for host in self._keeper.held if frontier.idle(host) and not frontier.waiting_at(host)]
        self._free(frontier, self._leases.spent(self.owner, now, unused))
        fair = min(_MAX_HOSTS, -(-self._leases.counted_hosts(now) // agents))
        staying = [host for host in self._keeper.held if host not in self._leaving]
        self._share(frontier, staying, len(staying) - fair)
        wanted = fair - len(staying)
        if wanted > 0:
            frontier.notice(lease.host for lease in self._keeper.want(now, wanted))

    def _share(self, frontier: Frontier, hosts: list[int], surplus: int) -> None:
        """Releases surplus hosts, those with the least in memory first.

        Running fetches of a host are finished and recorded before it is released: a host that is always busy must not
        stay forever with the first agent.
        """
        if surplus > 0:
            hosts.sort(key=lambda host: (not frontier.idle(host), frontier.waiting_at(host)))
            for host in hosts[:surplus]:
                frontier.retire(host)
            self._leaving.update(hosts[:surplus])
            self._free(frontier, [host for host in hosts[:surplus] if frontier.idle(host)])

    def _free(self, frontier: Frontier, hosts: Sequence[int]) -> None:
        """Releases hosts: a host must not be held unused while another one waits for its place."""
        if hosts:
            for host in hosts:
                frontier.drop_host(host)
            self._leaving.difference_update(hosts)
            self._keeper.give_up(hosts)

    def safe(self, ticket: Ticket, now: int) -> bool:
        """Whether the agent certainly has the host of the ticket, for as long as sending a request takes."""
        return self._keeper.safe(ticket.host_id, now, ticket.fence)

    def held(self, tickets: Iterable[Ticket], now: int) -> HeldHosts:
        """The hosts of a batch, whose leases are verified and kept by the transaction that records it."""
        fences = sorted({(ticket.host_id, ticket.fence) for ticket in tickets})
        return HeldHosts(self._leases, self.owner, fences, now + self._span)

    def finished(self, now: int) -> bool:
        """Whether no host of the whole fleet has anything due."""
        return self._leases.is_idle(now)

    def leave(self) -> None:
        """Releases everything."""
        self._leases.leave(self.owner)
