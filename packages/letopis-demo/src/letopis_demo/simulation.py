"""The whole crawler on the simulated web, through weeks of its history: what it believes against what is true.

Everything is the real thing, from the frontier to the archive on disk; only
the network and the waiting are left out (`TimeLapse`, `WorldTransport`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from letopis.archive import Archive
from letopis.archive.captures import checked_urls
from letopis.archive.crawl_status import planned_visit
from letopis.archive.queues import FrontierQueue, queue_counts
from letopis.config import ChangeSettings, CrawlSettings, ScheduleSettings, Settings
from letopis.crawl import Agent, CrawlOptions, CrawlStats, crawl, freshness
from letopis.crawl.runner import crawl_client
from letopis.fetch.client import Client
from letopis.schedule.policies import VisitState
from letopis_demo.time_lapse import DemoRequest, TimeLapse, WorldTransport
from letopis_demo.world import World

_NOT_PAGES = ("/busy", "/missing/", "/r/", "/feed", "/static/", "/sitemap", "/private/")
_ALL_HOSTS = 1_000_000
_PAGES_A_HOST = 50
_STEP = 20.0
"""Seconds: as fine as time needs to be where days are counted."""


@dataclass(frozen=True, slots=True)
class SimulatedDay:
    """One day of the crawl. Shares are fractions; `new_share` is None when nothing unseen was ready.

    `freshness` is the true share of copies that equal the live pages at the
    end of the day, `estimate` what the crawler believes it is.
    """

    day: int
    pages: int
    visits: int
    first_visits: int
    waiting: int
    new_share: float | None
    freshness: float
    estimate: float


class _VisitCounter:
    """Counts fetches, and those among them that had the choice between unseen pages and others."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._unseen: frozenset[str] = frozenset()
        self._visited: set[str] = set()
        self.visits = self.first_visits = self.chosen = self.chosen_new = 0

    def requested(self, request: DemoRequest) -> None:
        """A page is asked for."""
        if request.url.endswith("/robots.txt"):
            return
        first = request.url not in self._visited
        self._visited.add(request.url)
        self.visits += 1
        self.first_visits += first
        if request.host in self._unseen:
            self.chosen += 1
            self.chosen_new += first

    def committed(self, figures: CrawlStats) -> None:
        """Looks which hosts have unseen pages now."""
        now = round(self._archive.clock().timestamp() * 1000)
        hosts = FrontierQueue(self._archive).hosts_due(now, True, _ALL_HOSTS, 0, 0)
        self._unseen = frozenset(host.name for host in hosts)

    def taken(self) -> tuple[int, int, float | None]:
        """Visits, first visits and the share of unseen pages where there was a choice; begins anew."""
        share = self.chosen_new / self.chosen if self.chosen else None
        found = self.visits, self.first_visits, share
        self.visits = self.first_visits = self.chosen = self.chosen_new = 0
        return found


def true_freshness(archive: Archive, world: World) -> tuple[int, float]:
    """Pages whose last visit did not fail, and the share of them that still are what that visit saw."""
    now = archive.clock()
    pages = fresh = 0
    for row in checked_urls(archive):
        plan = planned_visit(archive, row.url)
        visits = VisitState.from_bytes(plan.record)
        if plan.state == "again" and visits.visits and not visits.failures:
            pages += 1
            before = datetime.fromtimestamp(visits.last_visit, now.tzinfo)
            fresh += _page_at(world, row.url, before) == _page_at(world, row.url, now)
    return pages, fresh / pages if pages else 1.0


def _page_at(world: World, url: str, at: datetime) -> tuple[int, bytes]:
    host, slash, path = url.partition("://")[2].partition("/")
    answer = world.answer(host, slash + path, (), at)
    return answer.status, answer.body


def crawl_demo_world(
    folder: Path, policy: str, pages: int, interval: float, days: int, seed: int
) -> list[SimulatedDay]:
    """The demo's web with about so many pages, crawled for some days by one policy.

    Copies are compared by bytes, so what is true of them is beyond doubt;
    the world has no clocks and counters on its pages then.
    """
    hosts = max(1, round(pages / _PAGES_A_HOST))
    news = timedelta(days=days) / max(1, pages // hosts // 2)
    world = World(seed, hosts, max(1, pages // hosts), noisy=0, crawl_delay=0, article_every=news)
    schedule = ScheduleSettings(policy=policy, interval=interval, min=interval / 50)  # type: ignore[arg-type]
    # Without a delay of the commits everything is recorded before time jumps on.
    crawling = CrawlSettings(commit_every=0.0)
    return crawl_world(
        folder, world, Settings(crawl=crawling, schedule=schedule, change=ChangeSettings(count="bytes")), days
    )


def crawl_world(folder: Path, world: World, settings: Settings, days: float) -> list[SimulatedDay]:
    """Crawls a world from its beginning for some days of its time; one row a day."""
    loop = TimeLapse(world.start, _STEP)
    with (
        asyncio.Runner(loop_factory=lambda: loop) as runner,
        Archive(folder, settings=settings, clock=loop.now) as archive,
    ):
        return runner.run(_crawled(archive, world, days))


async def _crawled(archive: Archive, world: World, days: float) -> list[SimulatedDay]:
    counting = _VisitCounter(archive)
    transport = WorldTransport(world, archive.clock, on_request=counting.requested)
    rows: list[SimulatedDay] = []
    agents: list[Agent] = []

    @asynccontextmanager
    async def connect(of: Archive) -> AsyncIterator[tuple[Client, str]]:
        yield crawl_client(of, transport)

    async def watch() -> None:
        while len(rows) < days:
            await asyncio.sleep(timedelta(days=1).total_seconds())
            rows.append(_day_row(archive, world, len(rows) + 1, counting))
        agents[-1].stop()

    options = CrawlOptions(tuple(world.seeds()), exclude=_NOT_PAGES)
    watching = asyncio.ensure_future(watch())
    await crawl(archive, options, counting.committed, begun=agents.append, connect=connect)
    await watching
    return rows


def _day_row(archive: Archive, world: World, day: int, counting: _VisitCounter) -> SimulatedDay:
    pages, fresh = true_freshness(archive, world)
    visits, first, share = counting.taken()
    waiting = queue_counts(archive).new
    return SimulatedDay(day, pages, visits, first, waiting, share, fresh, freshness(archive) or 0.0)
