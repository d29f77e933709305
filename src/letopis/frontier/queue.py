"""The states of a URL in the frontier, and what the durable queue behind it must promise.

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

from collections.abc import Sequence
from typing import Protocol

from letopis.archive.queues import HostState, NewestKeys, NewUrl, QueuedUrl
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
