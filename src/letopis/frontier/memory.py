"""The durable side kept in memory: for link checks that leave nothing behind, and for tests."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence

from letopis.frontier.states import HostFacts, HostRow, NewUrl, QueuedUrl, UrlState


class MemoryQueue:
    """A `QueueStore` without a disk, with the writes that the catalogue makes in its transactions."""

    def __init__(self) -> None:
        self._urls: dict[int, QueuedUrl] = {}
        self._states: dict[int, UrlState] = {}
        self._host_of: dict[int, int] = {}
        self._queues: dict[tuple[int, bool], set[int]] = {}
        self._hosts: dict[int, HostRow] = {}
        self._ids: dict[str, int] = {}
        self._keys: dict[int, int] = {}
        self._due: list[tuple[int, int]] = []

    def hosts_due(self, now: int, new: bool, limit: int, after: int, cap: int) -> list[HostRow]:
        """See `QueueStore.hosts_due`."""
        found: list[HostRow] = []
        for number in sorted(host for host, kind in self._queues if kind == new and host > after):
            row = self._hosts[number]
            if (not (new and cap) or row.fetched < cap) and self.load(number, now, new, 1):
                found.append(row)
            if len(found) == limit:
                break
        return found

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
                self._put(QueuedUrl(number, row.url, row.depth, row.priority, now), UrlState.NEW)
                hosts[host] = None
        return list(hosts)

    def seen_keys(self) -> Iterator[Sequence[int]]:
        """See `QueueStore.seen_keys`."""
        yield list(self._keys)

    def host(self, name: str, ip: str = "") -> int:
        """The id of a host, made when it is new."""
        if name not in self._ids:
            self._ids[name] = len(self._ids) + 1
            self._hosts[self._ids[name]] = HostRow(self._ids[name], name, ip)
        return self._ids[name]

    def record(self, url: int, state: UrlState, due: int, facts: HostFacts, schedule: bytes = b"") -> None:
        """What the transaction of a finished look does to the queue."""
        old = self._urls[url]
        self._withdraw(old)
        self._put(old._replace(due=due, schedule=schedule), state)
        row = self._hosts[facts.id]
        self._hosts[facts.id] = row._replace(**{name: value for name, value in facts._asdict().items() if name != "id"})

    def _put(self, row: QueuedUrl, state: UrlState) -> None:
        self._urls[row.id], self._states[row.id] = row, state
        if state in (UrlState.NEW, UrlState.AGAIN):
            self._queues.setdefault((self._host_of[row.id], state is UrlState.NEW), set()).add(row.id)
            insort(self._due, (row.due, row.id))

    def _withdraw(self, row: QueuedUrl) -> None:
        state = self._states[row.id]
        if state in (UrlState.NEW, UrlState.AGAIN):
            key = (self._host_of[row.id], state is UrlState.NEW)
            self._queues[key].discard(row.id)
            if not self._queues[key]:
                del self._queues[key]
            self._due.pop(bisect_right(self._due, (row.due, row.id)) - 1)
