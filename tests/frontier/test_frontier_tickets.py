from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_frontier import MemoryQueue

from letopis.archive.queues import FrontierState, NewUrl, QueuedUrl
from letopis.frontier.frontier import Frontier, SeenUrls
from letopis.frontier.queue import Ticket
from letopis.look.politeness import FetchResult, Politeness
from letopis.urls import url_key


def new(host: str, page: int | str, depth: int = 0, priority: float = 0.0) -> NewUrl:
    url = f"http://{host}/{page}"
    return NewUrl(url_key(url), url, host, depth, priority)


class Crawl:
    """Runs a frontier on a made-up clock and notes when each fetch began and ended."""

    def __init__(self, politeness: Politeness, ips: dict[str, str] | None = None, seed: int = 0) -> None:
        self.store = MemoryQueue()
        for host, ip in (ips or {}).items():
            self.store.host(host, ip)
        self.ips = ips or {}
        self.frontier = Frontier(self.store, politeness, SeenUrls())
        self.random = Random(seed)
        self.now = 0
        self.out: list[tuple[int, Ticket]] = []
        self.log: list[tuple[int, int, Ticket]] = []
        self.unrecorded: list[tuple[Ticket, object]] = []

    def run(self, until: int = 10**9, again_after: int = 0, most_out: int = 50, fetches: int = 10**9) -> None:
        while self.now < until and len(self.log) < fetches:
            ticket = self.frontier.take(self.now) if len(self.out) < most_out else None
            if ticket is not None:
                self.out.append((self.now + self.random.randint(1, 3000), ticket))
                continue
            wake = [end for end, _ in self.out]
            ready = self.frontier.next_ready(self.now)
            if ready is not None and len(self.out) < most_out:
                wake.append(max(ready, self.now + 1))
            if not wake and self.unrecorded:
                self._record(again_after)
                continue
            if not wake:
                break
            self.now = min(wake)
            for item in [item for item in self.out if item[0] <= self.now]:
                self.out.remove(item)
                self._finish(item[1], again_after)
        self._record(again_after)

    def _finish(self, ticket: Ticket, again_after: int) -> None:
        facts = self.frontier.give_back(ticket, FetchResult(self.now, ip=self.ips.get(ticket.host, "")))
        self.log.append((ticket.taken, self.now, ticket))
        self.unrecorded.append((ticket, facts))
        if self.random.random() < 0.5:
            self._record(again_after)

    def _record(self, again_after: int) -> None:
        for ticket, facts in self.unrecorded:
            state = FrontierState.AGAIN if again_after else FrontierState.GONE
            self.store.record(ticket.id, state, self.now + again_after, facts)
        self.frontier.recorded(ticket for ticket, _ in self.unrecorded)
        self.unrecorded.clear()


hosts = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 3)), min_size=1, max_size=12)


@given(hosts, st.floats(0, 3), st.floats(0, 3), st.integers(0, 1000), st.integers(2, 30))
@settings(max_examples=60, deadline=None)
def test_every_url_is_taken_once_and_delays_are_kept(
    sizes: list[tuple[int, int]], delay: float, ip_delay: float, seed: int, places: int
) -> None:
    names = [f"h{number}.example" for number in range(len(sizes))]
    ips = {name: f"10.0.0.{ip}" for name, (_, ip) in zip(names, sizes, strict=True)}
    crawl = Crawl(Politeness(delay=delay, ip_delay=ip_delay, most_hosts=places, batch=3), ips, seed)
    urls = [new(name, page) for name, (count, _) in zip(names, sizes, strict=True) for page in range(count)]
    crawl.frontier.add(urls, 0)
    crawl.frontier.add(urls, 0)
    crawl.run()
    assert Counter(ticket.url for *_, ticket in crawl.log) == Counter(url.url for url in urls)
    for kind, least in (("host", delay), ("ip", ip_delay)):
        by_name: dict[str, list[tuple[int, int]]] = {}
        for start, end, ticket in crawl.log:
            by_name.setdefault(ticket.host if kind == "host" else ips[ticket.host], []).append((start, end))
        for spans in by_name.values():
            spans.sort()
            for (start, end), (later, _) in pairwise(spans):
                assert later >= start + round(least * 1000)
                assert kind == "ip" or later >= end + round(least * 1000)


def test_a_host_has_one_ticket_out_at_a_time() -> None:
    crawl = Crawl(Politeness(delay=0.0, ip_delay=0.0))
    crawl.frontier.add([new("a.example", page) for page in range(5)], 0)
    ticket = crawl.frontier.take(0)
    assert ticket is not None
    assert crawl.frontier.take(0) is None
    assert crawl.frontier.in_flight == 1
    crawl.frontier.give_back(ticket, FetchResult(10))
    second = crawl.frontier.take(10)
    assert second is not None
    assert second.url != ticket.url


def test_better_urls_of_a_host_come_first() -> None:
    crawl = Crawl(Politeness(delay=0.0))
    crawl.frontier.add([new("a.example", 1, 3), new("a.example", 2, 1), new("a.example", 3, 9, priority=2.0)], 0)
    crawl.run()
    assert [ticket.url[-1] for *_, ticket in crawl.log] == ["3", "2", "1"]


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_the_share_of_new_urls_is_kept_while_both_kinds_are_ready(share: float) -> None:
    crawl = Crawl(Politeness(delay=0.1, ip_delay=0.0, new_share=share))
    crawl.frontier.add([new(f"h{host}.example", page) for host in range(60) for page in range(5)], 0)
    crawl.run(again_after=1, fetches=300)
    for host in range(60):
        crawl.frontier.add([new(f"h{host}.example", f"more{page}") for page in range(40)], crawl.now)
    before = len(crawl.log)
    crawl.run(again_after=1, fetches=before + 1000)
    taken = [ticket.new for *_, ticket in crawl.log[before + 50 :]]
    assert sum(taken) / len(taken) == pytest.approx(share, abs=0.03)


def test_never_seen_urls_are_fetched_though_revisits_are_always_due() -> None:
    crawl = Crawl(Politeness(delay=0.1, ip_delay=0.0, new_share=0.1))
    crawl.frontier.add([new("a.example", page) for page in range(30)], 0)
    crawl.run(again_after=1, fetches=3000)
    assert len({ticket.url for *_, ticket in crawl.log}) == 30


def test_a_cap_of_pages_holds_for_each_host_but_not_for_revisits() -> None:
    crawl = Crawl(Politeness(delay=0.0, max_per_host=3, batch=2))
    crawl.frontier.add([new(host, page) for host in ("a.example", "b.example") for page in range(10)], 0)
    crawl.run(again_after=1000, fetches=60)
    pages = {ticket.url for *_, ticket in crawl.log}
    assert Counter(url.split("/")[2] for url in pages) == {"a.example": 3, "b.example": 3}


def test_more_hosts_than_places_all_come_round() -> None:
    crawl = Crawl(Politeness(delay=0.5, ip_delay=0.0, most_hosts=70, batch=2))
    crawl.frontier.add([new(f"h{host}.example", page) for host in range(300) for page in range(7)], 0)
    crawl.run(most_out=10)
    assert len(crawl.log) == 2100
    first_third = Counter(ticket.host for *_, ticket in crawl.log[:900])
    assert len(first_third) == 300
    assert len(crawl.frontier) <= 140


def test_refusals_slow_one_host_and_leave_the_others_alone() -> None:
    crawl = Crawl(Politeness(delay=0.0, ip_delay=0.0))
    crawl.frontier.add([new("busy.example", 1), new("busy.example", 2), new("calm.example", 1)], 0)
    tickets = {ticket.host: ticket for ticket in (crawl.frontier.take(0), crawl.frontier.take(0)) if ticket}
    facts = crawl.frontier.give_back(tickets["busy.example"], FetchResult(100, status=429, retry_after=60.0))
    crawl.frontier.give_back(tickets["calm.example"], FetchResult(100))
    assert (facts.ready, facts.failures) == (60_100, 1)
    assert crawl.frontier.take(60_099) is None
    assert crawl.frontier.next_ready(1000) == 60_100
    again = crawl.frontier.take(60_100)
    assert again is not None
    assert again.host == "busy.example"


def test_a_crash_loses_nothing_but_what_was_under_way() -> None:
    crawl = Crawl(Politeness(delay=0.0))
    crawl.frontier.add([new("a.example", page) for page in range(6)], 0)
    crawl.run(fetches=3)
    after_crash = Frontier(crawl.store, Politeness(delay=0.0))
    assert after_crash.filter_unseen([new("a.example", page) for page in range(6)]) == []
    done = {ticket.url for *_, ticket in crawl.log}
    crawl.frontier, crawl.out = after_crash, []
    crawl.run()
    assert len({ticket.url for *_, ticket in crawl.log}) == 6
    assert len(crawl.log) == 6
    assert len(done) >= 3


def test_politeness_survives_a_restart() -> None:
    crawl = Crawl(Politeness(delay=100.0, ip_delay=100.0), {"a.example": "10.0.0.1", "b.example": "10.0.0.1"})
    crawl.frontier.add([new("a.example", 1), new("a.example", 2), new("b.example", 1)], 0)
    crawl.run(fetches=1)
    ended = crawl.log[0][1]
    after = Frontier(crawl.store, Politeness(delay=100.0, ip_delay=100.0))
    assert after.take(ended + 99_999) is None
    assert after.take(ended + 100_000) is not None


def test_waits_when_the_bandwidth_is_used_up() -> None:
    crawl = Crawl(Politeness(delay=0.0, ip_delay=0.0, bandwidth=1000))
    crawl.frontier.add([new(f"h{host}.example", 1) for host in range(3)], 0)
    ticket = crawl.frontier.take(0)
    assert ticket is not None
    crawl.frontier.give_back(ticket, FetchResult(0, bytes=5000))
    assert crawl.frontier.take(0) is None
    ready = crawl.frontier.next_ready(0)
    assert ready is not None
    assert 4000 <= ready <= 4002
    assert crawl.frontier.take(ready) is not None


def test_a_lost_host_gives_no_more_tickets() -> None:
    crawl = Crawl(Politeness(delay=0.0))
    crawl.frontier.add([new("a.example", page) for page in range(4)], 0)
    ticket = crawl.frontier.take(0)
    assert ticket is not None
    crawl.frontier.drop_host(ticket.host_id)
    crawl.frontier.drop_host(999)
    assert crawl.frontier.take(0) is None
    crawl.frontier.give_back(ticket, FetchResult(5))


def test_tells_when_nothing_is_planned_and_when_the_next_url_gets_due() -> None:
    crawl = Crawl(Politeness(delay=0.0))
    assert crawl.frontier.take(0) is None
    assert crawl.frontier.next_ready(0) is None
    crawl.frontier.add([new("a.example", 1)], 0)
    crawl.run(fetches=1, again_after=3600_000)
    now, wakes = crawl.now, 0
    while crawl.frontier.take(now) is None:
        ready = crawl.frontier.next_ready(now)
        assert ready is not None
        now, wakes = ready, wakes + 1
    assert 0 <= now - crawl.now - 3600_000 <= 1000
    assert wakes <= 3


def test_hosts_in_long_pauses_keep_no_places_and_come_back_in_time() -> None:
    crawl = Crawl(Politeness(delay=0.0, ip_delay=0.0, most_hosts=4, batch=2))
    crawl.frontier.add([new(f"h{host}.example", page) for host in range(100) for page in range(2)], 0)
    refused = 0
    while (ticket := crawl.frontier.take(1000)) is not None:
        facts = crawl.frontier.give_back(ticket, FetchResult(1000, status=503, retry_after=500.0))
        crawl.store.record(ticket.id, FrontierState.GONE, 0, facts)
        crawl.frontier.recorded([ticket])
        refused += 1
    assert refused == 100
    assert crawl.frontier.next_ready(1000) == 501_000
    assert crawl.frontier.take(500_999) is None
    crawl.now = 501_000
    crawl.run()
    assert len({ticket.host for *_, ticket in crawl.log}) == 100


def test_a_long_pause_of_a_finished_host_is_not_waited_for() -> None:
    crawl = Crawl(Politeness(delay=0.0))
    crawl.frontier.add([new("a.example", 1)], 0)
    ticket = crawl.frontier.take(0)
    assert ticket is not None
    facts = crawl.frontier.give_back(ticket, FetchResult(10, status=503, retry_after=5000.0))
    crawl.store.record(ticket.id, FrontierState.GONE, 0, facts)
    crawl.frontier.recorded([ticket])
    assert crawl.frontier.take(20) is None
    assert crawl.frontier.next_ready(20) is None
    crawl.frontier.add([new("a.example", 2)], 30)
    now = 30
    while (second := crawl.frontier.take(now)) is None:
        ready = crawl.frontier.next_ready(now)
        assert ready is not None
        assert ready > now
        now = ready
    assert (now, second.url) == (5_000_010, "http://a.example/2")


def test_knows_whether_anything_still_waits() -> None:
    crawl = Crawl(Politeness(delay=5.0))
    assert crawl.frontier.take(0) is None
    assert not crawl.frontier.waits(0)
    crawl.frontier.add([new("a.example", 1), new("a.example", 2)], 0)
    ticket = crawl.frontier.take(0)
    assert ticket is not None
    facts = crawl.frontier.give_back(ticket, FetchResult(100))
    assert crawl.frontier.take(100) is None
    assert crawl.frontier.waits(100)
    crawl.store.record(ticket.id, FrontierState.AGAIN, 10**9, facts)
    crawl.frontier.recorded([ticket])
    second = crawl.frontier.take(5100)
    assert second is not None
    facts = crawl.frontier.give_back(second, FetchResult(5200))
    crawl.store.record(second.id, FrontierState.AGAIN, 10**9, facts)
    crawl.frontier.recorded([second])
    assert crawl.frontier.take(5300) is None
    assert not crawl.frontier.waits(5300)
    assert crawl.frontier.next_ready(5300) == 10**9


def test_links_of_the_last_page_are_taken_as_soon_as_they_are_recorded() -> None:
    crawl = Crawl(Politeness(delay=0.0, ip_delay=0.0))
    crawl.frontier.add([new("a.example", 0)], 0)
    for page in range(1, 50):
        ticket = crawl.frontier.take(page * 10)
        assert ticket is not None
        facts = crawl.frontier.give_back(ticket, FetchResult(page * 10 + 5))
        assert crawl.frontier.take(page * 10 + 5) is None
        crawl.store.record(ticket.id, FrontierState.AGAIN, 10**9, facts)
        hosts = crawl.store.add(crawl.frontier.filter_unseen([new("a.example", page)]), page * 10 + 6)
        crawl.frontier.recorded([ticket])
        crawl.frontier.notice(hosts)
        assert crawl.frontier.next_ready(page * 10 + 6) == page * 10 + 6


def test_no_host_is_asked_for_visits_that_are_due_again_while_none_is_due_anywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crawl, asked = Crawl(Politeness(delay=0.0, ip_delay=0.0)), []
    load = crawl.store.load

    def watched(host: int, now: int, new: bool, limit: int) -> list[QueuedUrl]:
        if not new and limit > 1:  # the queue itself looks for one
            asked.append(now)
        return load(host, now, new, limit)

    monkeypatch.setattr(crawl.store, "load", watched)
    crawl.frontier.add([new(f"h{host}.example", page) for host in range(40) for page in range(3)], 0)
    crawl.run(again_after=10**7, fetches=120)
    assert (len(crawl.log), asked) == (120, [])
    crawl.run(again_after=10**9, fetches=240)
    assert len(crawl.log) == 240
    assert min(began for began, _, _ in crawl.log[120:]) >= 10**7
    assert asked
