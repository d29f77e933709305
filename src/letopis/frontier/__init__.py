"""Which URL may be fetched now: states, seen set, host queues, filters, traps.

The sieve of many URLs stands apart in `letopis.frontier.sieve`: it needs
numpy, which takes longer to load than a small site takes to crawl.
"""

from letopis.archive.queues import FrontierState, HostState, HostUpdate, NewUrl, QueuedUrl
from letopis.frontier.filters import (
    CrawlFilter,
    CrawlFocus,
    FilterFacts,
    LinkInterest,
    focus_score,
    link_interest,
    parse_crawl_filter,
    poor_before,
)
from letopis.frontier.frontier import Frontier, SeenUrls
from letopis.frontier.leases import HostLease, LeaseKeeper, LeaseManager
from letopis.frontier.queue import QueueStore, Ticket
from letopis.frontier.traps import TrapDetector
from letopis.frontier.workbench import NewUrlShare
from letopis.look.politeness import Bandwidth, FetchResult, Politeness, politeness_of

__all__ = [
    "Bandwidth",
    "CrawlFilter",
    "CrawlFocus",
    "FetchResult",
    "FilterFacts",
    "Frontier",
    "FrontierState",
    "HostLease",
    "HostState",
    "HostUpdate",
    "LeaseKeeper",
    "LeaseManager",
    "LinkInterest",
    "NewUrl",
    "NewUrlShare",
    "Politeness",
    "QueueStore",
    "QueuedUrl",
    "SeenUrls",
    "Ticket",
    "TrapDetector",
    "focus_score",
    "link_interest",
    "parse_crawl_filter",
    "politeness_of",
    "poor_before",
]
