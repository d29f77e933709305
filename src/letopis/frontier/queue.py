"""The states of a URL in the frontier, what the durable queue behind it must promise, and hosts with URLs in memory.

    KNOWN   in the archive by other ways (a check, an import, put by hand), never planned
    NEW     waits for its first visit
    AGAIN   visited, due again at a time
    HELD    not asked: a filter, a trap or the cap of its host keeps it back
    GONE    given up; comes back only by hand

A URL that is being fetched keeps its stored state: only the record of the finished look moves it (NEW or AGAIN ->
AGAIN, GONE), in one transaction with that look. So a crash loses nothing but looks that were under way, and those are
simply taken again. All times are whole milliseconds since 1970.

Hosts in memory are ordered by the later of host and address deadlines. Those that share an address form a group. A
group stands in the heap of a kind (never-seen or due-again) under the time at which one of its hosts may be asked for
that kind. Entries are not removed when they go stale: each is checked when it comes up, and a group has one valid entry
a kind.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import count
from typing import Protocol

from letopis.archive.queues import HostState, NewestKeys, NewUrl, QueuedUrl
from letopis.tuples import NamedTuple


class Ticket(NamedTuple):
    """The right and duty to fetch one URL now. It must be returned."""

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
    """Queues of URLs by host. NEW and AGAIN URLs are two kinds, queried separately.

    If hosts are leased, only hosts of this agent are returned.
    """

    def hosts_due(self, now: int, new: bool, limit: int, after: int, cap: int) -> list[HostState]:
        """Hosts with an id above `after` that have a URL of the kind due, by id.

        With a `cap` above zero and `new`, hosts with that many fetched pages are left out.
        """
        ...

    def arrive(self, host: HostState, /) -> HostState:
        """A host of `hosts_due` is added; the answer may know more of its pauses."""
        ...

    def next_due(self, now: int) -> int | None:
        """The earliest time after `now` at which a URL becomes due."""
        ...

    def load(self, host: int, now: int, new: bool, limit: int) -> list[QueuedUrl]:
        """Due URLs of a host and kind, best first: by priority, then depth or due time, then id."""
        ...

    def add(self, rows: Sequence[NewUrl], now: int) -> list[int]:
        """Store unseen URLs as NEW and due at once; known ones are skipped. Ids of the hosts that got any."""
        ...

    def newest_keys(self, most: int) -> NewestKeys:
        """The keys of those of the last `most` URLs that were ever planned."""
        ...

    def planned(self, keys: Sequence[int]) -> set[int]:
        """Those of the keys under which a URL was ever planned."""
        ...


class NewUrlShare:
    """Holds a share of fetches for never-seen URLs, by a bounded credit."""

    _BOUND = 8.0

    def __init__(self, share: float) -> None:
        self._share = min(1.0, max(0.0, share))
        self._credit = 0.0
        self.new = 0
        self.again = 0

    @property
    def wants_new(self) -> bool:
        """Whose turn it is, if both kinds are ready."""
        return self._share > 0.0 and self._credit + self._share >= 0.5

    @property
    def shown(self) -> float:
        """The share of never-seen URLs among all fetches so far."""
        return self.new / max(1, self.new + self.again)

    def note(self, new: bool) -> None:
        """A URL of this kind was taken. What one kind could not use is not kept for long."""
        self._credit = min(self._BOUND, max(-self._BOUND, self._credit + self._share - new))
        self.new += new
        self.again += not new


NEW, AGAIN = 0, 1
KINDS = (NEW, AGAIN)
_MOST_LEFT = 65536


class Host:
    """A host on the workbench.

    `turn` changes when it is taken, which voids its heap entries. The store
    is not asked for a kind again before `empty_until`; `ahead` URLs were asked for last.
    """

    __slots__ = (
        "ahead",
        "asleep",
        "busy",
        "crawl_delay",
        "empty_until",
        "failures",
        "fence",
        "fetched",
        "group",
        "id",
        "name",
        "queues",
        "ready",
        "turn",
    )

    def __init__(self, row: HostState) -> None:
        self.id, self.name, self.ready = row.id, row.name, row.ready
        self.crawl_delay, self.fetched, self.failures, self.fence = (
            row.crawl_delay,
            row.fetched,
            row.failures,
            row.fence,
        )
        self.queues: tuple[list[QueuedUrl], list[QueuedUrl]] = ([], [])
        self.group: AddressGroup | None = None
        self.busy = self.asleep = False
        self.ahead = 0
        self.empty_until = (0, 0)
        self.turn = 0


class AddressGroup:
    """Hosts at one address, with the time from which the address may get a request."""

    __slots__ = ("entry", "heaps", "ip", "members", "ready")

    def __init__(self, ip: str, ready: int) -> None:
        self.ip, self.ready, self.members = ip, ready, 0
        self.heaps: tuple[list[tuple[int, int, int, Host]], list[tuple[int, int, int, Host]]] = ([], [])
        self.entry: list[int | None] = [None, None]


class Workbench:
    """Which host may get a request next. Not shared between threads."""

    def __init__(self) -> None:
        self._groups: dict[str, AddressGroup] = {}
        self._heaps: tuple[list[tuple[int, int, AddressGroup]], list[tuple[int, int, AddressGroup]]] = ([], [])
        self._left: dict[str, int] = {}
        self._number = count()

    def place(self, host: Host, ip: str, ip_ready: int) -> None:
        """Put a host into the group of its address (its own group while that is unknown)."""
        if host.group is not None:
            if ip in ("", host.group.ip):
                host.group.ready = max(host.group.ready, ip_ready)
                return
            self.remove(host)
        key = ip or f"#{host.id}"
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = AddressGroup(ip, self._left.pop(key, 0))
        group.ready = max(group.ready, ip_ready)
        group.members += 1
        host.group = group

    def remove(self, host: Host) -> None:
        """Take a host off the bench; an empty group goes with it."""
        group = host.group
        assert group is not None
        host.group, host.turn = None, host.turn + 1
        group.members -= 1
        if not group.members:
            del self._groups[group.ip or f"#{host.id}"]
            self._keep_deadline(group)

    def _keep_deadline(self, group: AddressGroup) -> None:
        """An address that no host uses now may be used again before its time."""
        if group.ip:
            self._left[group.ip] = group.ready
            if len(self._left) > _MOST_LEFT:
                self._left = dict(heapq.nlargest(_MOST_LEFT // 2, self._left.items(), key=lambda item: item[1]))

    def offer(self, host: Host) -> None:
        """The host may get requests from its deadline on, for each kind it has URLs of."""
        group = host.group
        assert group is not None
        for kind in KINDS:
            if host.queues[kind]:
                heapq.heappush(group.heaps[kind], (host.ready, next(self._number), host.turn, host))
                self._list(group, kind)

    def take(self, kind: int, now: int, ip_delay: int) -> Host | None:
        """A host that may get a request now for a URL of this kind; its address then waits `ip_delay`."""
        heap = self._heaps[kind]
        while heap and heap[0][0] <= now:
            key, _, group = heapq.heappop(heap)
            if group.entry[kind] != key:
                continue
            group.entry[kind] = None
            if self._key(group, kind) == key:
                host = heapq.heappop(group.heaps[kind])[3]
                host.busy, host.turn = True, host.turn + 1
                group.ready = max(group.ready, now + ip_delay)
                self._list(group, kind)
                return host
            self._list(group, kind)
        return None

    def next_ready(self) -> int | None:
        """The earliest time at which some host may get a request."""
        times = [heap[0][0] for kind in KINDS for heap in (self._settled(kind),) if heap]
        return min(times, default=None)

    def _settled(self, kind: int) -> list[tuple[int, int, AddressGroup]]:
        """The heap of a kind with a true entry at its top."""
        heap = self._heaps[kind]
        while heap:
            key, _, group = heap[0]
            if group.entry[kind] == key and self._key(group, kind) == key:
                break
            heapq.heappop(heap)
            if group.entry[kind] == key:
                group.entry[kind] = None
                self._list(group, kind)
        return heap

    def _key(self, group: AddressGroup, kind: int) -> int | None:
        """When the group may get a request for the kind; None if it has nothing."""
        heap = group.heaps[kind]
        while heap and heap[0][3].turn != heap[0][2]:
            heapq.heappop(heap)
        return max(group.ready, heap[0][0]) if heap else None

    def _list(self, group: AddressGroup, kind: int) -> None:
        """Ensures that the group is in the heap of the kind, no later than it is ready."""
        key = self._key(group, kind)
        listed = group.entry[kind]
        if key is not None and (listed is None or key < listed):
            group.entry[kind] = key
            heapq.heappush(self._heaps[kind], (key, next(self._number), group))
