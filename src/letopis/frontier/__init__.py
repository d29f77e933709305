"""Which URL may be fetched now: states, seen set, host queues, manners, filters, traps.

The sieve of many URLs stands apart in `letopis.frontier.sieve`: it needs
numpy, which takes longer to load than a small site takes to crawl.
"""

from letopis.frontier.expressions import Facts, Filter, parse_filter
from letopis.frontier.focus import Focus, Interest, interest, score
from letopis.frontier.frontier import Frontier
from letopis.frontier.leases import Lease, LeaseKeeper, LeaseStore, MemoryLeases
from letopis.frontier.memory import MemoryQueue
from letopis.frontier.politeness import Bandwidth, Manners, Share, manners_of
from letopis.frontier.queue import QueueStore
from letopis.frontier.seen import Seen
from letopis.frontier.states import HostFacts, HostRow, NewUrl, QueuedUrl, Returned, Ticket, UrlState
from letopis.frontier.traps import TrapJudge

__all__ = [
    "Bandwidth",
    "Facts",
    "Filter",
    "Focus",
    "Frontier",
    "HostFacts",
    "HostRow",
    "Interest",
    "Lease",
    "LeaseKeeper",
    "LeaseStore",
    "Manners",
    "MemoryLeases",
    "MemoryQueue",
    "NewUrl",
    "QueueStore",
    "QueuedUrl",
    "Returned",
    "Seen",
    "Share",
    "Ticket",
    "TrapJudge",
    "UrlState",
    "interest",
    "manners_of",
    "parse_filter",
    "score",
]
