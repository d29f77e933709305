"""The frontier: which URL may be fetched now.

Durable queues are in a store; in memory are the keys of seen URLs (a set while they are few, a sieve when they are
many) and a bounded number of hosts with the next few URLs of each. A ticket is one URL whose host and address may both
get a request now; a host has one open ticket at a time.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from letopis.archive.queues import HostState, HostUpdate, NewUrl
from letopis.frontier.queue import AGAIN, KINDS, NEW, Host, NewUrlShare, QueueStore, Ticket, Workbench
from letopis.lazy import lazy
from letopis.look.politeness import Bandwidth, FetchResult, Politeness, failures_in_a_row, host_pause

if TYPE_CHECKING:
    from letopis.frontier import sieve as sieves
else:
    sieves = lazy("letopis.frontier.sieve")  # needs numpy, which takes longer to load than a small site takes to crawl


_MAX_IN_SET = 50_000
_MOST_READ = 100_000
"""Keys that are read when a frontier starts: a tenth of a second of reading."""


class SeenUrls:
    """The keys of all URLs seen so far; each passes once.

    Up to `few` keys are in a set, which is faster for the links of a page and starts at once; with more, all move to a
    `Sieve`, which takes a fifth of the memory. Both give the same answers. Not shared between threads.
    """

    def __init__(self, few: int = _MAX_IN_SET, *, whole: bool = True) -> None:
        """Not `whole`: there are seen URLs that were never added to it."""
        self._few = few
        self._whole = whole
        self._keys: set[int] = set()
        self._sieve: sieves.Sieve | None = None

    @classmethod
    def rebuilt(cls, store: QueueStore, most: int = _MOST_READ) -> SeenUrls:
        """One with the newest keys of a store: the time to start does not depend on how many were seen before."""
        newest = store.newest_keys(most)
        seen = cls(whole=newest.whole)
        seen.unseen(newest.keys)
        return seen

    @property
    def is_whole(self) -> bool:
        """Whether a key that passes was certainly never seen; otherwise the store has to be queried."""
        return self._whole and (self._sieve is None or self._sieve.exact)

    def __len__(self) -> int:
        return len(self._keys) if self._sieve is None else len(self._sieve)

    def unseen(self, keys: Sequence[int]) -> list[int]:
        """The places of the keys that pass; they count as seen from now on.

        Of equal keys the first passes. Keys that differ in their lowest bit alone count as equal.
        """
        if self._sieve is None and len(self._keys) + len(keys) > self._few:
            self._sieve = self._handed_over()
        return self._unseen_of_few(keys) if self._sieve is None else self._sieve.places(keys)

    def missing(self, keys: Sequence[int]) -> list[int]:
        """The places of the keys that would pass; changes nothing."""
        if self._sieve is not None:
            return self._sieve.missing(keys)
        return [place for place, key in enumerate(keys) if key | 1 not in self._keys]

    def _unseen_of_few(self, keys: Sequence[int]) -> list[int]:
        seen, passing = self._keys, []
        for place, key in enumerate(keys):
            odd = key | 1
            if odd not in seen:
                seen.add(odd)
                passing.append(place)
        return passing

    def _handed_over(self) -> sieves.Sieve:
        """A sieve that has seen the keys of the set, which is emptied."""
        sieve = sieves.Sieve(expected=len(self._keys))
        sieve.places(list(self._keys))
        self._keys = set()
        return sieve


_NEAR, _FAR = 1000, 10_000  # a store without due hosts is not asked again before, nor after this
_PAGE = 64  # hosts asked for at once, at least
_FULL = 0.75  # of the places on the bench; beyond it nobody new is called
_LOW = 0.5  # of the places; below it hosts are called before they are needed
_LONG = 60_000  # a pause in which a host keeps no place
_AHEAD_SECONDS = 8.0  # a host has URLs in memory for that long
_MOST_AHEAD = 512  # URLs of one host in memory
_IN_MEMORY = 32_768  # URLs of all hosts in memory, unless the least a host needs comes to more
_UNKNOWN = (0, 0)
_NOBODY: frozenset[int] = frozenset()


class Frontier:
    """Gives out tickets and takes them back. Not shared between threads."""

    def __init__(self, store: QueueStore, politeness: Politeness, seen: SeenUrls | None = None) -> None:
        """The keys seen last are read from the store unless they are given."""
        self._store, self._politeness = store, politeness
        self._seen = seen if seen is not None else SeenUrls.rebuilt(store)
        self._bench = Workbench()
        self._hosts: dict[int, Host] = {}
        self._resting: list[tuple[int, int]] = []
        self._asleep: list[tuple[int, int]] = []
        self._taken: set[int] = set()
        self._unrecorded: dict[int, set[int]] = {}
        self._noticed: set[int] = set()
        self._cursor = [0, 0]
        self._came = [0, 0]
        self._asked = [0, 0]
        self._dry_until = [0, 0]
        self._quiet_until = self._looked_until = 0
        self._ip_pause = round(politeness.ip_delay * 1000)
        self._bandwidth = Bandwidth(politeness.bandwidth)
        self.share = NewUrlShare(politeness.new_share)

    def __len__(self) -> int:
        """Hosts in memory."""
        return len(self._hosts)

    @property
    def in_flight(self) -> int:
        """Open tickets."""
        return len(self._taken)

    def filter_unseen(self, urls: Sequence[NewUrl]) -> list[NewUrl]:
        """The URLs never seen before, to be stored by the caller in the transaction of their page.

        They count as seen from now on. After the transaction call `notice`; if it fails, the URLs must be stored by
        other means or they are lost to this run (a restart reads what is stored).
        """
        if not urls:
            return []
        return self._never_planned([urls[place] for place in self._seen.unseen([url.key for url in urls])])

    def unseen(self, urls: Sequence[NewUrl]) -> list[NewUrl]:
        """The URLs never seen before; does not mark them as seen."""
        return self._never_planned([urls[place] for place in self._seen.missing([url.key for url in urls])])

    def _never_planned(self, urls: list[NewUrl]) -> list[NewUrl]:
        """The URLs of a batch unknown in memory that are also unknown in the store, which knows all."""
        if self._seen.is_whole or not urls:
            return urls
        planned = self._store.planned([url.key for url in urls])
        return [url for url in urls if url.key not in planned]

    def add(self, urls: Sequence[NewUrl], now: int) -> int:
        """Sift and store at once: seeds and sitemaps. How many hosts got a URL."""
        hosts = self._store.add(self.filter_unseen(urls), now)
        self.notice(hosts)
        return len(hosts)

    def notice(self, hosts: Iterable[int]) -> None:
        """New URLs of these hosts were stored, or the hosts were leased: they are loaded soon."""
        for host in hosts:
            if host in self._hosts:
                self._noticed.add(host)
                self._hosts[host].empty_until = (0, self._hosts[host].empty_until[AGAIN])
            else:
                self._dry_until = [0, 0]

    def take(self, now: int) -> Ticket | None:
        """A URL to fetch now, or None: see `next_ready`."""
        if self._bandwidth.ready_at(now) > now:
            return None
        self._tidy(now)
        while True:
            ticket = self._ready_ticket(now)
            if ticket is not None or not self._refill(now):
                return ticket

    def _ready_ticket(self, now: int) -> Ticket | None:
        first = NEW if self.share.wants_new else AGAIN
        for kind in (first, 1 - first):
            host = self._bench.take(kind, now, self._ip_pause)
            if host is not None:
                return self._ticket(host, kind, now)
        return None

    def next_ready(self, now: int) -> int | None:
        """When `take` is worth calling again; `now` if something changed since it returned None.

        None: nothing will be ready before a ticket is returned or recorded, or a URL is added.
        """
        open_at = self._bandwidth.ready_at(now)
        if open_at > now:
            return open_at
        if self._noticed or (self._others_wait(now) and not self._crowded):
            return now
        rest = self._resting[0][0] if self._resting and self._others_wait(now) else None
        wakes = self._asleep[0][0] if self._asleep else None
        times = (self._bench.next_ready(), self._next_found(now), rest, wakes)
        return min((time for time in times if time is not None), default=None)

    def waits(self, now: int) -> bool:
        """Whether any URL is due, possibly held back by a pause: an ending crawl needs this after `take`.

        URLs that become due later do not count, nor do open tickets.
        """
        held_back = self._bench.next_ready() is not None or bool(self._asleep)
        return held_back or bool(self._unrecorded) or (bool(self._resting) and self._others_wait(now))

    def _next_found(self, now: int) -> int | None:
        """When a URL that became due since the last query of the store will be found there.

        While the bench is full that is when a host leaves it.
        """
        if self._others_wait(now):
            return None
        due = self._store.next_due(min(self._asked))
        return None if due is None else max(due, min(self._dry_until))

    def give_back(self, ticket: Ticket, returned: FetchResult) -> HostUpdate:
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
        again = int(returned.asked and not ticket.new)
        return HostUpdate(host.id, ip, host.ready, ip_ready, host.crawl_delay, host.fetched, host.failures, again)

    def postpone(self, ticket: Ticket, now: int, until: int = 0) -> None:
        """No request was sent: the URL waits as before, and its host until a time."""
        host = self._hosts[ticket.host_id]
        host.ready, host.empty_until = max(host.ready, until), _UNKNOWN
        self.give_back(ticket, FetchResult(now, asked=False))
        self.recorded([ticket])
        self.notice([ticket.host_id])

    def recorded(self, tickets: Iterable[Ticket]) -> None:
        """The records of these tickets are durable: their URLs have new states and times."""
        self._quiet_until = self._looked_until = 0
        for ticket in tickets:
            left = self._unrecorded.get(ticket.host_id)
            if left is not None:
                left.discard(ticket.id)
                if not left:
                    del self._unrecorded[ticket.host_id]
                    heapq.heappush(self._resting, (self._hosts[ticket.host_id].ready, ticket.host_id))

    def drop_host(self, host_id: int) -> None:
        """Removes a host whose lease another agent has now; an open ticket stays open."""
        host = self._hosts.get(host_id)
        if host is not None:
            host.queues[NEW].clear()
            host.queues[AGAIN].clear()
            if not host.busy:
                self._unrecorded.pop(host_id, None)
                self._bench.remove(host)
                del self._hosts[host_id]

    def retire(self, host_id: int) -> None:
        """Takes nothing more of a host that is passed to another agent when its running fetches are recorded.

        The store must not hand out URLs of the host any more.
        """
        host = self._hosts.get(host_id)
        if host is not None:
            host.queues[NEW].clear()
            host.queues[AGAIN].clear()
            if not host.busy:
                host.turn += 1  # voids its places on the bench
                heapq.heappush(self._resting, (host.ready, host_id))

    def idle(self, host_id: int) -> bool:
        """Whether nothing of a host is being fetched or waits to be recorded: its facts are all in the store."""
        host = self._hosts.get(host_id)
        return host_id not in self._unrecorded and (host is None or not host.busy)

    def found_at(self, host_id: int, ip: str, now: int) -> bool:
        """The address of a host with an open ticket was learned before the request.

        False if other hosts at that address got requests a moment ago: the ticket must be returned, and the host waits
        for its turn like them.
        """
        host = self._hosts[host_id]
        if not ip or host.group is None or host.group.ip:
            return True
        self._bench.place(host, ip, 0)
        if host.group.ready > now:
            return False
        host.group.ready = now + self._ip_pause
        return True

    def address_of(self, host_id: int) -> str:
        """The last known address of a host; empty while it is unknown."""
        host = self._hosts.get(host_id)
        return host.group.ip if host is not None and host.group is not None else ""

    def waiting_at(self, host_id: int) -> int:
        """How many URLs of a host are in memory."""
        host = self._hosts.get(host_id)
        return 0 if host is None else len(host.queues[NEW]) + len(host.queues[AGAIN])

    def _pause(self, host: Host, returned: FetchResult) -> None:
        if returned.crawl_delay is not None:
            host.crawl_delay = returned.crawl_delay
        host.failures = failures_in_a_row(host.failures, returned)
        host.ready = returned.finished + host_pause(self._politeness, host.crawl_delay, host.failures, returned)
        self._bench.place(host, returned.ip, returned.finished + self._ip_pause)

    def _ticket(self, host: Host, kind: int, now: int) -> Ticket:
        url = host.queues[kind].pop()
        self._taken.add(url.id)
        self.share.note(kind == NEW)
        return Ticket(
            host.id, host.name, url.id, url.url, url.depth, kind == NEW, url.due, url.schedule, host.fence, now,
            url.known, url.priority,
        )  # fmt: skip

    def _offer(self, host: Host, now: int) -> None:
        """Back on the bench with what it has, or to rest until its pause is over.

        While others wait for a place, a host that has used up its few URLs leaves, so all hosts get a turn.
        """
        if host.ready - now > _LONG:
            self._sleep(host, now)
            return
        if self._others_wait(now) and self._awake > self._politeness.most_hosts * _LOW:
            self._dry_until = [0, 0]  # it is one of the waiting hosts now
        else:
            self._load_empty(host, now)
        if host.queues[NEW] or host.queues[AGAIN]:
            self._bench.offer(host)
        else:
            heapq.heappush(self._resting, (max(host.ready, now), host.id))

    def _sleep(self, host: Host, now: int) -> None:
        """A host in a long pause gives up its place and its URLs, not its deadline."""
        if not host.asleep:
            self._load_empty(host, now)
            host.asleep = bool(host.queues[NEW] or host.queues[AGAIN])
            host.queues[NEW].clear()
            host.queues[AGAIN].clear()
            heapq.heappush(self._asleep if host.asleep else self._resting, (host.ready, host.id))

    def _wake(self, host: Host | None, now: int) -> None:
        if host is not None:
            host.asleep, host.empty_until = False, _UNKNOWN
            self._top_up(host, now)

    @property
    def _awake(self) -> int:
        return len(self._hosts) - len(self._asleep)

    def _others_wait(self, now: int) -> bool:
        """Hosts may be due that are not on the bench."""
        new, again = self._dry_until
        return new <= now or again <= now

    @property
    def _crowded(self) -> bool:
        return self._awake > self._politeness.most_hosts * _FULL

    def _load_empty(self, host: Host, now: int) -> bool:
        """Loads the kinds that have run out. Whether anything was loaded."""
        came = False
        for kind in KINDS:
            if not host.queues[kind]:
                self._load(host, kind, now)
                came = came or bool(host.queues[kind])
        return came

    def _load(self, host: Host, kind: int, now: int) -> None:
        """The next few due URLs of a host, without those that are out or not yet recorded."""
        if host.empty_until[kind] > now or (kind == AGAIN and self._none_again(now)):
            return
        cap, room = self._politeness.max_per_host, self._ahead(host)
        room = room if kind == AGAIN or not cap else min(room, cap - host.fetched)
        if room <= 0:
            return
        waiting = self._unrecorded.get(host.id, _NOBODY)
        rows = self._store.load(host.id, now, kind == NEW, room + len(waiting))
        fresh = [row for row in rows if row.id not in waiting and row.id not in self._taken]
        if not rows:
            host.empty_until = (now + _NEAR, host.empty_until[1]) if kind == NEW else (host.empty_until[0], now + _NEAR)
        host.queues[kind].extend(reversed(fresh[:room]))  # the best is popped from the end

    def _none_again(self, now: int) -> bool:
        """Whether nothing is due again anywhere, as in a first crawl: then hosts need not be asked one by one."""
        if self._looked_until <= now:
            earliest = self._store.next_due(0)
            self._quiet_until = 0 if earliest is not None and earliest <= now else _later(earliest, now)
            self._looked_until = self._quiet_until or now + _NEAR
        return self._quiet_until > now

    def _ahead(self, host: Host) -> int:
        """How many URLs are loaded for a host: a few at first, twice as many each time it has used them up.

        Never more than it can use in some seconds, nor more than its part of what fits in memory.
        """
        delay = max(self._politeness.delay, host.crawl_delay, _AHEAD_SECONDS / _MOST_AHEAD)
        most = min(int(_AHEAD_SECONDS / delay), _IN_MEMORY // max(1, len(self._hosts)))
        if self._politeness.most_ahead is not None:
            most = min(most, self._politeness.most_ahead)
        host.ahead = min(max(2 * host.ahead, self._politeness.batch), max(most, self._politeness.batch))
        return host.ahead

    def _tidy(self, now: int) -> None:
        """Hosts that got URLs meanwhile are served, those whose pause is over leave."""
        noticed, self._noticed = self._noticed, set()
        for host_id in noticed:
            self._top_up(self._hosts.get(host_id), now)
        while self._asleep and self._asleep[0][0] <= now:
            self._wake(self._hosts.get(heapq.heappop(self._asleep)[1]), now)
        while self._resting and self._resting[0][0] <= now:
            self._leave(heapq.heappop(self._resting)[1], now)
        if self._others_wait(now) and self._awake < self._politeness.most_hosts * _LOW:
            self._refill(now)

    def _refill(self, now: int) -> bool:
        """Bring some hosts with due URLs to the bench. False if there is no place or no host is left."""
        tried = False
        for kind in KINDS:
            if self._dry_until[kind] > now or self._crowded:
                continue
            if kind == AGAIN and self._none_again(now):
                self._asked[kind], self._dry_until[kind] = now, self._quiet_until
                self._cursor[kind] = self._came[kind] = 0
            else:
                self._fetch_hosts(kind, now)
                tried = True
        return tried

    def _leave(self, host_id: int, now: int) -> None:
        host = self._hosts.get(host_id)
        if host is None or host.group is None or host.busy or host.queues[NEW] or host.queues[AGAIN]:
            return
        if host.asleep or host_id in self._unrecorded:
            return  # the store does not know its facts yet: it leaves when it does
        deadline = max(host.ready, host.group.ready)
        if deadline > now:
            heapq.heappush(self._resting, (deadline, host_id))
            return
        self._bench.remove(host)
        del self._hosts[host_id]

    def _fetch_hosts(self, kind: int, now: int) -> None:
        """One page of hosts after the cursor; the kind is dry if a whole round gave no new host."""
        limit = max(_PAGE, self._politeness.most_hosts - self._awake)
        rows = self._store.hosts_due(now, kind == NEW, limit, self._cursor[kind], self._politeness.max_per_host)
        self._came[kind] += sum(self._welcome(row, kind, now) for row in rows)
        if len(rows) == limit:
            self._cursor[kind] = rows[-1].id
            return
        if not self._came[kind]:
            self._asked[kind] = now
            self._dry_until[kind] = _later(self._store.next_due(now), now)
        self._cursor[kind] = self._came[kind] = 0

    def _welcome(self, row: HostState, kind: int, now: int) -> bool:
        """Puts a host on the bench, or gives one that is there what became due meanwhile."""
        host = self._hosts.get(row.id)
        if host is not None:
            host.empty_until = _UNKNOWN
            return not host.queues[kind] and self._top_up(host, now)
        known = self._store.arrive(row)
        host = self._hosts[row.id] = Host(known)
        self._bench.place(host, known.ip, known.ip_ready)
        return self._top_up(host, now)

    def _top_up(self, host: Host | None, now: int) -> bool:
        """Load what a host has run out of; a busy one does that when it is given back."""
        if host is None or host.busy:
            return False
        if host.ready - now > _LONG:
            self._sleep(host, now)
            return False
        came = self._load_empty(host, now)
        if came:
            self._bench.offer(host)
        elif not (host.queues[NEW] or host.queues[AGAIN]):
            heapq.heappush(self._resting, (max(host.ready, now), host.id))
        return came


def _later(due: int | None, now: int) -> int:
    """When a store that has nothing due now is asked again, if the next URL becomes due then."""
    return now + _FAR if due is None else min(max(due, now + _NEAR), now + _FAR)
