"""A queue and leases of hosts without a disk, for tests of what the frontier and its leases decide."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence

from letopis.archive.queues import FrontierState, HostState, HostUpdate, NewestKeys, NewUrl, QueuedUrl
from letopis.frontier.leases import HostLease


class MemoryQueue:
    """A `QueueStore` without a disk, with the writes that the record of a look brings."""

    def __init__(self) -> None:
        self._urls: dict[int, QueuedUrl] = {}
        self._states: dict[int, FrontierState] = {}
        self._host_of: dict[int, int] = {}
        self._queues: dict[tuple[int, bool], set[int]] = {}
        self._hosts: dict[int, HostState] = {}
        self._ids: dict[str, int] = {}
        self._keys: dict[int, int] = {}
        self._due: list[tuple[int, int]] = []

    def hosts_due(self, now: int, new: bool, limit: int, after: int, cap: int) -> list[HostState]:
        """See `QueueStore.hosts_due`."""
        found: list[HostState] = []
        for number in sorted(host for host, kind in self._queues if kind == new and host > after):
            row = self._hosts[number]
            if (not (new and cap) or row.fetched < cap) and self.load(number, now, new, 1):
                found.append(row)
            if len(found) == limit:
                break
        return found

    def arrive(self, host: HostState, /) -> HostState:
        """See `QueueStore.arrive`."""
        return host

    def next_due(self, now: int) -> int | None:
        """See `QueueStore.next_due`."""
        place = bisect_right(self._due, (now, 1 << 62))
        return self._due[place][0] if place < len(self._due) else None

    def load(self, host: int, now: int, new: bool, limit: int) -> list[QueuedUrl]:
        """See `QueueStore.load`."""
        rows = (self._urls[number] for number in self._queues.get((host, new), ()))
        due = [row for row in rows if row.due <= now]
        due.sort(key=lambda row: (-row.priority, row.depth if new else row.due, row.id))
        return due[:limit]

    def add(self, rows: Sequence[NewUrl], now: int) -> list[int]:
        """See `QueueStore.add`."""
        hosts: dict[int, None] = {}
        for row in rows:
            if row.key not in self._keys:
                number = self._keys[row.key] = len(self._keys) + 1
                host = self.host(row.host)
                self._host_of[number] = host
                self._put(QueuedUrl(number, row.url, row.depth, row.priority, now), FrontierState.NEW)
                hosts[host] = None
        return list(hosts)

    def newest_keys(self, most: int) -> NewestKeys:
        """See `QueueStore.newest_keys`."""
        return NewestKeys(list(self._keys)[-most:], len(self._keys) <= most)

    def planned(self, keys: Sequence[int]) -> set[int]:
        """See `QueueStore.planned`."""
        return self._keys.keys() & set(keys)

    def host(self, name: str, ip: str = "") -> int:
        """The id of a host, made when it is new."""
        if name not in self._ids:
            self._ids[name] = len(self._ids) + 1
            self._hosts[self._ids[name]] = HostState(self._ids[name], name, ip)
        return self._ids[name]

    def record(self, url: int, state: FrontierState, due: int, facts: HostUpdate, schedule: bytes = b"") -> None:
        """What the transaction of a finished look does to the queue."""
        old = self._urls[url]
        self._withdraw(old)
        self._put(old._replace(due=due, schedule=schedule), state)
        row = self._hosts[facts.id]
        kept = {name: value for name, value in facts._asdict().items() if name in row._fields}
        self._hosts[facts.id] = row._replace(**kept)

    def _put(self, row: QueuedUrl, state: FrontierState) -> None:
        self._urls[row.id], self._states[row.id] = row, state
        if state in (FrontierState.NEW, FrontierState.AGAIN):
            self._queues.setdefault((self._host_of[row.id], state is FrontierState.NEW), set()).add(row.id)
            insort(self._due, (row.due, row.id))

    def _withdraw(self, row: QueuedUrl) -> None:
        state = self._states[row.id]
        if state in (FrontierState.NEW, FrontierState.AGAIN):
            key = (self._host_of[row.id], state is FrontierState.NEW)
            self._queues[key].discard(row.id)
            if not self._queues[key]:
                del self._queues[key]
            self._due.pop(bisect_right(self._due, (row.due, row.id)) - 1)


class MemoryLeases:
    """A `LeaseStore` in memory, for agents in one process."""

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
