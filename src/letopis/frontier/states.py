"""The states of a URL in the frontier, and the rows that pass its border.

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

from enum import IntEnum
from typing import NamedTuple


class UrlState(IntEnum):
    """The stored state of a URL."""

    KNOWN = 0
    NEW = 1
    AGAIN = 2
    HELD = 3
    GONE = 4


class HostRow(NamedTuple):
    """What is stored of a host: who it is and when it may be asked again."""

    id: int
    name: str
    ip: str = ""
    ready: int = 0
    ip_ready: int = 0
    crawl_delay: float = 0.0
    fetched: int = 0
    failures: int = 0
    fence: int = 0


class QueuedUrl(NamedTuple):
    """A URL that is due. `schedule` is its visit record, opaque here; `known` tells whether it has a version."""

    id: int
    url: str
    depth: int = 0
    priority: float = 0.0
    due: int = 0
    schedule: bytes = b""
    known: bool = True


class NewUrl(NamedTuple):
    """A URL that passed the sieve and is to be stored as NEW."""

    key: int
    url: str
    host: str
    depth: int = 0
    priority: float = 0.0


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


class Returned(NamedTuple):
    """How a ticket's fetch went. `status` is 0 when no answer came.

    Without `asked` the host was not troubled (robots.txt forbids the URL), so
    nothing is owed to it.
    """

    finished: int
    seconds: float = 0.0
    status: int = 200
    ip: str = ""
    retry_after: float = 0.0
    bytes: int = 0
    crawl_delay: float | None = None
    asked: bool = True


class HostFacts(NamedTuple):
    """A host's politeness after a fetch, to be stored with the record of that fetch."""

    id: int
    ip: str
    ready: int
    ip_ready: int
    crawl_delay: float
    fetched: int
    failures: int
