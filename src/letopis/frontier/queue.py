"""The states of a URL in the frontier, and the durable queue behind it: as a protocol, and in memory.

    KNOWN   in the archive by other ways (a check, an import, put by hand), never planned
    NEW     waits for its first visit
    AGAIN   visited, due again at a time
    HELD    not asked: a filter, a trap or the cap of its host keeps it back
    GONE    given up; comes back only by hand

A URL that is being fetched keeps its stored state: only the record of the
finished look moves it (NEW or AGAIN -> AGAIN, GONE), in one transaction with
that look. So a crash loses nothing but looks that were under way, and those
are simply taken again. All times are whole milliseconds since 1970.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from typing import Protocol

from letopis.archive.queues import FrontierState, HostState, HostUpdate, NewestKeys, NewUrl, QueuedUrl
from letopis.tuples import NamedTuple


class Ticket(NamedTuple):
    """The right and duty to fetch one URL now. It must be given back."""

    host_id: int
    host: str
    id: int
    url: str
    depth: int
    new: bool
    due: int
    schedule: bytes
    fence: int
    taken: int
    known: bool = True
    priority: float = 0.0


class QueueStore(Protocol):
    """Queues of URLs by host. NEW and AGAIN URLs are two kinds, asked for apart.

    Where hosts are leased, only hosts of this agent are answered.
    """

    def hosts_due(self, now: int, new: bool, limit: int, after: int, cap: int) -> list[HostState]:
        """Hosts with an id above `after` that have a URL of the kind due, by id.

        With a `cap` above zero and `new`, hosts with that many fetched pages are left out.
        """
        ...

    def arrive(self, host: HostState, /) -> HostState:
        """A host of `hosts_due` is taken up; the answer may know more of its pauses."""
        ...

    def next_due(self, now: int) -> int | None:
        """The earliest time after `now` at which a URL gets due."""
        ...

    def load(self, host: int, now: int, new: bool, limit: int) -> list[QueuedUrl]:
        """Due URLs of a host and kind, best first: by priority, then depth or due time, then id."""
        ...

    def add(self, rows: Sequence[NewUrl], now: int) -> list[int]:
        """Store unseen URLs as NEW and due at once; known ones are passed over. Ids of the hosts that got any."""
        ...

    def newest_keys(self, most: int) -> NewestKeys:
        """The keys of those of the last `most` URLs that were ever planned."""
        ...

    def planned(self, keys: Sequence[int]) -> set[int]:
        """Those of the keys under which a URL was ever planned."""
        ...


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
