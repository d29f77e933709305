"""The frontier's durable side, on the catalogue's tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from letopis.catalog import Catalog, Cursor
from letopis.catalog.queues import Shard
from letopis.crawl.owed import Owed
from letopis.frontier import HostRow, NewUrl, QueuedUrl


class CatalogQueue:
    """Answers the frontier from SQL. URLs are added inside the transaction of the look that found them."""

    def __init__(self, catalog: Catalog, shard: Shard, owed: Owed | None = None) -> None:
        """`owed` knows of pauses that a killed run could not record."""
        self._catalog = catalog
        self._shard = shard
        self._owed = owed
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

    def hosts_due(self, now: int, new: bool, limit: int, after: int, cap: int) -> list[HostRow]:
        """See `QueueStore.hosts_due`."""
        rows = self._catalog.queues.hosts_due(now, new, limit, after, cap, self._shard)
        hosts = [HostRow(*row) for row in rows]
        return hosts if self._owed is None else [self._owed.corrected(host) for host in hosts]

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
