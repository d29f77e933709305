"""Hosts go from agents that have too many to those that come later, however busy they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from letopis.archive import Archive
from letopis.archive.queues import host_leases
from letopis.catalog import Catalog, dialect_for
from letopis.config import CrawlSettings, DatabaseSettings, Settings
from letopis.frontier.frontier import Frontier
from letopis.frontier.leases import LeaseManager
from letopis.frontier.queue import Ticket
from letopis.look.politeness import FetchResult, politeness_of
from letopis.urls import url_key

HOSTS, PAGES = 4, 50
START = 1_000_000


class Member:
    """One agent's side of the fleet, without its requests."""

    def __init__(self, database: str, folder: Path, stack: ExitStack) -> None:
        crawling = CrawlSettings(delay=0)
        settings = Settings(database=DatabaseSettings(url=database), crawl=crawling)
        self.archive = stack.enter_context(Archive(folder, settings=settings))
        self.lease_manager = LeaseManager.named(host_leases(self.archive), 60)
        self.frontier = Frontier(self.lease_manager.queue(self.archive), politeness_of(crawling))

    def tend(self, now: int) -> None:
        self.lease_manager.tend(self.frontier, now)

    def begin_all(self, now: int) -> list[Ticket]:
        """A look at every host that is ready."""
        return list(iter(lambda: self.frontier.take(now), None))

    def give_back(self, tickets: list[Ticket], now: int) -> None:
        for ticket in tickets:
            self.frontier.give_back(ticket, FetchResult(now, asked=True))

    def record(self, tickets: list[Ticket], now: int) -> None:
        with self.archive.catalog.transaction() as cursor:
            self.lease_manager.held(tickets, now).check(cursor)
            cursor.run_many("UPDATE resource SET state = 0 WHERE id = ?", [(ticket.id,) for ticket in tickets])
        self.frontier.recorded(tickets)


@pytest.fixture
def join(new_database: Callable[[], str], tmp_path: Path) -> Iterator[Callable[[], Member]]:
    database = new_database()
    with ExitStack() as stack:
        catalog = Catalog(dialect_for(database, Path()))
        stack.callback(catalog.close)
        with catalog.transaction() as cursor:
            for host in range(HOSTS):
                number = catalog.resources.ensure_host(cursor, f"h{host}.example")
                urls = [f"http://h{host}.example/{page}" for page in range(PAGES)]
                catalog.queues.add(cursor, [(url_key(url), url, number, 0, 0.0) for url in urls])
        yield lambda: Member(database, tmp_path / "a", stack)


def hosts(tickets: list[Ticket]) -> set[str]:
    return {ticket.host for ticket in tickets}


def test_busy_hosts_move_when_what_was_begun_is_recorded(join: Callable[[], Member]) -> None:
    first, second = join(), join()
    first.tend(START)
    under_way = first.begin_all(START)
    assert len(under_way) == HOSTS
    second.tend(START + 10)
    assert second.begin_all(START + 10) == [], "all hosts are held"
    first.tend(START + 1100)
    first.give_back(under_way, START + 1200)
    kept = first.begin_all(START + 1200)
    assert len(hosts(kept)) == HOSTS // 2, "nothing more is taken of hosts that go"
    first.tend(START + 1300)
    second.tend(START + 1310)
    assert second.begin_all(START + 1310) == [], "what was begun is not recorded yet"
    first.record(under_way, START + 1400)
    first.tend(START + 1400)
    second.tend(START + 2400)
    moved = second.begin_all(START + 2400)
    assert len(hosts(moved)) == HOSTS // 2
    assert not hosts(moved) & hosts(kept), "no host has two owners"
    assert not {ticket.id for ticket in moved} & {ticket.id for ticket in under_way}, "nothing is fetched twice"
    first.give_back(kept, START + 2500)
    first.record(kept, START + 2500)
    assert hosts(first.begin_all(START + 2600)) == hosts(kept)
