"""One owner a host: leases with a fencing token.

An agent holds the right to fetch from a host until a time, and extends it
while it lives. Each new owner gets a higher fence; a record that carries an
older fence than the host's is refused by the store, so an agent that slept
through its lease can do no harm. Times are whole milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class HostLease(NamedTuple):
    """The right of `owner` to fetch from a host until a time."""

    host: int
    owner: str
    fence: int
    until: int


class LeaseStore(Protocol):
    """Where all agents see the same leases. Each call is one transaction."""

    def lease(self, owner: str, now: int, until: int, limit: int) -> list[HostLease]:
        """Hosts with due URLs that nobody holds, or whose lease is over, given to `owner` with a new fence."""
        ...

    def renew(self, leases: Sequence[HostLease], now: int, until: int) -> list[HostLease]:
        """Those leases that still held, extended; the others are lost."""
        ...

    def release(self, leases: Sequence[HostLease]) -> None:
        """Give hosts up before their time; leases lost meanwhile are passed over."""
        ...


class LeaseKeeper:
    """The leases of one agent: gets them, extends them in time, tells which were lost."""

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
        """The host was ours when we last asked."""
        return host in self._held

    def safe(self, host: int, now: int, fence: int | None = None) -> bool:
        """The host is ours for certain (under this fence), with a sixth of the time to spare for a fetch."""
        lease = self._held.get(host)
        if lease is None or (fence is not None and lease.fence != fence):
            return False
        return lease.until - self._span // 6 > now

    def give_up(self, hosts: Sequence[int] | None = None) -> None:
        """Release some hosts, or all at the end of the run."""
        names = list(self._held) if hosts is None else [host for host in hosts if host in self._held]
        self._store.release([self._held.pop(host) for host in names])


class MemoryLeases:
    """A `LeaseStore` in memory, for agents in one process and for tests."""

    def __init__(self, hosts: Sequence[int]) -> None:
        self._rows = {host: HostLease(host, "", 0, 0) for host in hosts}

    def lease(self, owner: str, now: int, until: int, limit: int) -> list[HostLease]:
        """See `LeaseStore.lease`."""
        free = [row for row in self._rows.values() if row.until <= now][:limit]
        got = [HostLease(row.host, owner, row.fence + 1, until) for row in free]
        self._rows.update((row.host, row) for row in got)
        return got

    def renew(self, leases: Sequence[HostLease], now: int, until: int) -> list[HostLease]:
        """See `LeaseStore.renew`."""
        kept = [
            lease._replace(until=until) for lease in leases if self._ours(lease) and self._rows[lease.host].until > now
        ]
        self._rows.update((row.host, row) for row in kept)
        return kept

    def release(self, leases: Sequence[HostLease]) -> None:
        """See `LeaseStore.release`."""
        self._rows.update((lease.host, lease._replace(until=0)) for lease in leases if self._ours(lease))

    def accepts(self, host: int, fence: int) -> bool:
        """Whether a record under this fence may be written."""
        return self._rows[host].fence == fence

    def _ours(self, lease: HostLease) -> bool:
        row = self._rows[lease.host]
        return (row.owner, row.fence) == (lease.owner, lease.fence)
