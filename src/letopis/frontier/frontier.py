"""The frontier: which URL may be fetched now.

Durable queues lie in a store; in memory are the sieve and a bounded number
of hosts with the next few URLs of each. A ticket is one URL whose host and
address may both be asked now; a host has one ticket out at a time.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import numpy as np

from letopis.frontier.politeness import Bandwidth, Manners, Share, failures_after, pause
from letopis.frontier.queue import QueueStore
from letopis.frontier.sieve import Sieve
from letopis.frontier.states import HostFacts, HostRow, NewUrl, Returned, Ticket
from letopis.frontier.workbench import AGAIN, KINDS, NEW, Host, Workbench

_POLL = 1000  # a store that shares its queues may get URLs from elsewhere
_PAGE = 64  # hosts asked for at once, at least
_FULL = 0.75  # of the places on the bench; beyond it nobody new is called
_NOBODY: frozenset[int] = frozenset()


class Frontier:
    """Gives out tickets and takes them back. Not shared between threads."""

    def __init__(self, store: QueueStore, manners: Manners, sieve: Sieve | None = None) -> None:
        """Without a sieve one is rebuilt from the store."""
        self._store, self._manners = store, manners
        self._sieve = sieve if sieve is not None else Sieve.rebuilt(store.seen_keys())
        self._bench = Workbench()
        self._hosts: dict[int, Host] = {}
        self._resting: list[tuple[int, int]] = []
        self._taken: set[int] = set()
        self._unrecorded: dict[int, set[int]] = {}
        self._noticed: set[int] = set()
        self._cursor = [0, 0]
        self._dry_until = [0, 0]
        self._bandwidth = Bandwidth(manners.bandwidth)
        self.share = Share(manners.new_share)

    def __len__(self) -> int:
        """Hosts in memory."""
        return len(self._hosts)

    @property
    def in_flight(self) -> int:
        """Tickets that are out."""
        return len(self._taken)

    def sift(self, urls: Sequence[NewUrl]) -> list[NewUrl]:
        """The URLs never seen before, to be stored by the caller in the transaction of their page.

        They count as seen from now on. After the transaction call `notice`;
        if it fails, the URLs must be stored by other means or they are lost
        to this run (a restart rebuilds the sieve from what is stored).
        """
        if not urls:
            return []
        keys = np.fromiter((url.key for url in urls), dtype=np.int64, count=len(urls))
        return [urls[place] for place in self._sieve.unseen(keys).nonzero()[0].tolist()]

    def add(self, urls: Sequence[NewUrl], now: int) -> int:
        """Sift and store at once: seeds and sitemaps. How many hosts got a URL."""
        hosts = self._store.add(self.sift(urls), now)
        self.notice(hosts)
        return len(hosts)

    def notice(self, hosts: Iterable[int]) -> None:
        """URLs of these hosts were stored or made due: look for them soon."""
        for host in hosts:
            if host in self._hosts:
                self._noticed.add(host)
            else:
                self._dry_until = [0, 0]

    def take(self, now: int) -> Ticket | None:
        """A URL to fetch now, or None: see `next_ready`."""
        if self._bandwidth.ready_at(now) > now:
            return None
        self._refill(now)
        first = NEW if self.share.wants_new else AGAIN
        for kind in (first, 1 - first):
            host = self._bench.take(kind, now, round(self._manners.ip_delay * 1000))
            if host is not None:
                return self._ticket(host, kind, now)
        return None

    def next_ready(self, now: int) -> int | None:
        """When `take` is worth calling again; None when nothing is planned at all."""
        times = [self._bench.next_ready(), self._store.next_due(now)]
        known = [time for time in times if time is not None]
        if not known:
            return None
        return max(min(known), self._bandwidth.ready_at(now))

    def give_back(self, ticket: Ticket, returned: Returned) -> HostFacts:
        """A ticket's fetch is over. The facts are to be stored with its record.

        The URL is not taken again before `recorded` names it.
        """
        host = self._hosts[ticket.host_id]
        self._taken.discard(ticket.id)
        self._unrecorded.setdefault(host.id, set()).add(ticket.id)
        self._bandwidth.spend(returned.bytes, returned.finished)
        if returned.asked:
            host.fetched += ticket.new
            self._pause(host, returned)
        host.busy = False
        self._offer(host, returned.finished)
        group = host.group
        ip, ip_ready = (group.ip, group.ready) if group else (returned.ip, host.ready)
        return HostFacts(host.id, ip, host.ready, ip_ready, host.crawl_delay, host.fetched, host.failures)

    def recorded(self, tickets: Iterable[Ticket]) -> None:
        """The records of these tickets are durable: their URLs have new states and times."""
        for ticket in tickets:
            left = self._unrecorded.get(ticket.host_id)
            if left is not None:
                left.discard(ticket.id)
                if not left:
                    del self._unrecorded[ticket.host_id]

    def drop_host(self, host_id: int) -> None:
        """Forget a host whose lease went to somebody else; a ticket that is out stays out."""
        host = self._hosts.get(host_id)
        if host is not None:
            host.queues[NEW].clear()
            host.queues[AGAIN].clear()
            if not host.busy:
                self._bench.remove(host)
                del self._hosts[host_id]

    def _pause(self, host: Host, returned: Returned) -> None:
        if returned.crawl_delay is not None:
            host.crawl_delay = returned.crawl_delay
        host.failures = failures_after(host.failures, returned)
        host.ready = returned.finished + pause(self._manners, host.crawl_delay, host.failures, returned)
        self._bench.place(host, returned.ip, returned.finished + round(self._manners.ip_delay * 1000))

    def _ticket(self, host: Host, kind: int, now: int) -> Ticket:
        url = host.queues[kind].pop()
        self._taken.add(url.id)
        self.share.note(kind == NEW)
        return Ticket(
            host.id, host.name, url.id, url.url, url.depth, kind == NEW, url.due, url.schedule, host.fence, now
        )

    def _offer(self, host: Host, now: int) -> None:
        """Back on the bench with what it has, or to rest until its pause is over.

        While others wait for a place, a host that has used up its few URLs
        makes room, so all hosts come round.
        """
        if not self._crowded:
            self._load_empty(host, now)
        if host.queues[NEW] or host.queues[AGAIN]:
            self._bench.offer(host)
        else:
            heapq.heappush(self._resting, (max(host.ready, now), host.id))

    @property
    def _crowded(self) -> bool:
        return len(self._hosts) > self._manners.most_hosts * _FULL

    def _load_empty(self, host: Host, now: int) -> bool:
        """Load the kinds that have run out. Whether anything came."""
        came = False
        for kind in KINDS:
            if not host.queues[kind]:
                self._load(host, kind, now)
                came = came or bool(host.queues[kind])
        return came

    def _load(self, host: Host, kind: int, now: int) -> None:
        """The next few due URLs of a host, without those that are out or not yet recorded."""
        cap = self._manners.max_per_host
        room = self._manners.batch if kind == AGAIN or not cap else min(self._manners.batch, cap - host.fetched)
        if room <= 0:
            return
        waiting = self._unrecorded.get(host.id, _NOBODY)
        rows = self._store.load(host.id, now, kind == NEW, room + len(waiting))
        fresh = [row for row in rows if row.id not in waiting and row.id not in self._taken]
        host.queues[kind].extend(reversed(fresh[:room]))  # the best is popped from the end

    def _refill(self, now: int) -> None:
        """Bring hosts with due URLs to the bench, while there is room."""
        while self._resting and self._resting[0][0] <= now:
            self._leave(heapq.heappop(self._resting)[1], now)
        if self._noticed:
            for host_id in self._noticed:
                self._top_up(self._hosts.get(host_id), now)
            self._noticed.clear()
        for kind in KINDS:
            if self._dry_until[kind] <= now and not self._crowded:
                self._fetch_hosts(kind, now)

    def _leave(self, host_id: int, now: int) -> None:
        host = self._hosts.get(host_id)
        if host is None or host.group is None or host.busy or host.queues[NEW] or host.queues[AGAIN]:
            return
        deadline = max(host.ready, host.group.ready)
        if deadline > now:
            heapq.heappush(self._resting, (deadline, host_id))
            return
        self._bench.remove(host)
        del self._hosts[host_id]

    def _fetch_hosts(self, kind: int, now: int) -> None:
        """One page of hosts after the cursor; the kind is dry when a whole round gave nobody new."""
        limit = max(_PAGE, self._manners.most_hosts - len(self._hosts))
        rows = self._store.hosts_due(now, kind == NEW, limit, self._cursor[kind], self._manners.max_per_host)
        came = sum(self._welcome(row, kind, now) for row in rows)
        if len(rows) == limit:
            self._cursor[kind] = rows[-1].id
            return
        whole_round, self._cursor[kind] = self._cursor[kind] == 0, 0
        if whole_round and not came:
            later = self._store.next_due(now)
            self._dry_until[kind] = now + _POLL if later is None else min(later, now + _POLL)

    def _welcome(self, row: HostRow, kind: int, now: int) -> bool:
        """Put a host on the bench, or give one that is there what got due meanwhile."""
        host = self._hosts.get(row.id)
        if host is not None:
            return not host.queues[kind] and self._top_up(host, now)
        host = self._hosts[row.id] = Host(row)
        self._bench.place(host, row.ip, row.ip_ready)
        return self._top_up(host, now)

    def _top_up(self, host: Host | None, now: int) -> bool:
        """Load what a host has run out of; a busy one does that when it is given back."""
        if host is None or host.busy:
            return False
        came = self._load_empty(host, now)
        if came:
            self._bench.offer(host)
        elif not (host.queues[NEW] or host.queues[AGAIN]):
            heapq.heappush(self._resting, (max(host.ready, now), host.id))
        return came
