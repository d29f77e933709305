"""The durable side of the frontier, as a protocol: the catalogue implements it in SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from letopis.frontier.states import HostRow, NewUrl, QueuedUrl


class QueueStore(Protocol):
    """Queues of URLs by host. NEW and AGAIN URLs are two kinds, asked for apart.

    Where hosts are leased, only hosts of this agent are answered.
    """

    def hosts_due(self, now: int, new: bool, limit: int, after: int, cap: int) -> list[HostRow]:
        """Hosts with an id above `after` that have a URL of the kind due, by id.

        With a `cap` above zero and `new`, hosts with that many fetched pages are left out.
        """
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

    def seen_keys(self) -> Iterator[Sequence[int]]:
        """The keys of all URLs ever planned, in parts; what was seen is rebuilt from them."""
        ...
