"""Puts an agent together and runs it: settings and seeds in, statistics out."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from letopis.archive import Archive
from letopis.archive.link_cache import LinkCacheWriter
from letopis.catalog.leases import AddressSlots, HostLeases, check_clock
from letopis.catalog.queues import Shard
from letopis.config import FetchSettings
from letopis.crawl.agent import Agent, CrawlLimits
from letopis.crawl.catalog_queue import CatalogQueue, LeaseManager
from letopis.crawl.selection import (
    CrawlPlan,
    CrawlSelection,
    moved_seeds,
    plan_scopes,
    reads_text,
    save_plan,
    saved_plans,
)
from letopis.crawl.stats import CrawlStats
from letopis.errors import LetopisError, NotReady, UsageError
from letopis.fetch import Client, CookieJar, CurlTransport, Transport, limits_of
from letopis.frontier import Frontier, politeness_of
from letopis.look import LookOptions, Visitor
from letopis.look.politeness import AddressGate, FileAddressGate, PauseJournal
from letopis.look.robots import RobotsCache
from letopis.model import to_millis
from letopis.schedule import make_policy
from letopis.urls import Scope, ScopeKind, Scopes, parse_user_url
from letopis.urls import host as host_of

_PAUSE_SECONDS = 1.0
_MAX_TRIES = 300
_LEASED_BATCH = 32
"""URLs of a host that an agent of a fleet asks for at once: its questions cross a network."""


@dataclass(frozen=True, slots=True)
class CrawlOptions:
    """What to crawl. Without seeds the crawl goes on with what is planned."""

    seeds: tuple[str, ...] = ()
    scope: ScopeKind = ScopeKind.HOST
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    depth: int | None = None
    requisites: bool = False
    revisit_now: bool = False
    private_ok: bool = True
    limits: CrawlLimits = field(default_factory=CrawlLimits)

    def plan(self) -> CrawlPlan:
        """What of it holds for whoever goes on with the crawl."""
        seeds = tuple(map(parse_user_url, self.seeds))
        return CrawlPlan(seeds, str(self.scope), self.include, self.exclude, self.depth, self.requisites)


def selection_for(archive: Archive, options: CrawlOptions) -> CrawlSelection:
    """The decision about links. Without seeds a crawl goes as far as those that it goes on with, and no further."""
    settings = archive.settings.crawl
    depth = options.depth if options.depth is not None else settings.max_depth or None
    if options.seeds or options.scope is ScopeKind.ANY:
        seeds = (*map(parse_user_url, options.seeds), *moved_seeds(archive, options.seeds))
        return CrawlSelection(Scope(options.scope, seeds, options.include, options.exclude), depth, options.requisites)
    plans = saved_plans(archive)
    chosen = Scope(ScopeKind.ANY, (), options.include, options.exclude)
    if depth is None and plans:
        depths = [plan.depth for plan in plans]
        depth = None if None in depths else max(filter(None, depths), default=0)
    requisites = options.requisites or any(plan.requisites for plan in plans)
    return CrawlSelection(Scopes(plan_scopes(archive, plans), chosen), depth, requisites)


def enqueue_seeds(archive: Archive, options: CrawlOptions) -> None:
    """Makes the seeds wait for their visit; with `revisit_now` all known pages of their hosts too."""
    now = to_millis(archive.clock())
    moved = moved_seeds(archive, options.seeds) if options.revisit_now else ()
    with archive.catalog.transaction() as cursor:
        for seed in options.seeds:
            url = parse_user_url(seed)
            archive.catalog.queues.plan(cursor, archive.catalog.resources.ensure(cursor, url).id, 0)
        if options.seeds:
            save_plan(archive, cursor, options.plan())
        for url in (*map(parse_user_url, options.seeds), *moved) if options.revisit_now else ():
            archive.catalog.queues.make_due(cursor, host_of(url), now)


@asynccontextmanager
async def open_client(archive: Archive) -> AsyncIterator[tuple[Client, str]]:
    """A client with the manners of a crawl, and the name that it gives to servers."""
    settings = archive.settings
    jar = CookieJar() if settings.fetch.cookies else None
    transport = CurlTransport(_without_retries(settings.fetch), clock=archive.clock, jar=jar)
    try:
        yield crawl_client(archive, transport)
    finally:
        await transport.close()


def crawl_client(archive: Archive, transport: Transport) -> tuple[Client, str]:
    """A client as a crawl wants it, over any transport, and the name that it gives to servers."""
    settings = archive.settings
    contact = settings.crawl.contact
    name = f"{settings.crawl.user_agent} (+{contact})" if contact else settings.crawl.user_agent
    return Client(transport, _without_retries(settings.fetch), user_agent=name, clock=archive.clock), name


def _without_retries(settings: FetchSettings) -> FetchSettings:
    """A busy server is left to the frontier: waiting inside a fetch would hold a connection and a stop."""
    return replace(settings, retry_status=())


def crawl_visitor(archive: Archive, client: Client) -> Visitor:
    """Looks at pages and, unless the settings say otherwise, hands their links over to the index."""
    return Visitor(archive, client, link_cache=LinkCacheWriter(archive.folder) if archive.settings.crawl.map else None)


Connect = Callable[[Archive], AbstractAsyncContextManager[tuple[Client, str]]]
"""How an agent gets at the web."""


@asynccontextmanager
async def open_agent(
    archive: Archive, options: CrawlOptions, shard: Shard, connect: Connect = open_client
) -> AsyncIterator[Agent]:
    """An agent with its own connections, ready to run."""
    settings = archive.settings
    holding = _lease_manager(archive)
    # Where agents on other machines share the catalogue, leases and their addresses keep the pauses.
    owed = PauseJournal(archive.folder, shard.rest, to_millis(archive.clock())) if holding is None else None
    queue = CatalogQueue(archive.catalog, shard, owed) if holding is None else holding.queue()
    gate = _address_gate(archive, shard)
    manners = politeness_of(settings.crawl)
    if holding is not None:
        manners = replace(manners, batch=_LEASED_BATCH)
    skim = not options.requisites and not reads_text(settings.crawl)
    manner = LookOptions(
        limits_of(settings.fetch), options.private_ok, follow=False, skim=skim, reread=options.revisit_now
    )
    try:
        async with connect(archive) as (client, name):
            robots = RobotsCache(archive, client, name, obey=settings.crawl.robots, private_ok=options.private_ok)
            yield Agent(
                archive, crawl_visitor(archive, client), Frontier(queue, manners), queue, robots,
                make_policy(settings.schedule, archive.catalog.queues.memory()),
                lambda: selection_for(archive, options),
                manner, gate, holding, owed,
            )  # fmt: skip
        if owed is not None:
            owed.settle()
    finally:
        if owed is not None:
            owed.close()
        if gate is not None:
            gate.close()
        if holding is not None:
            with suppress(LetopisError):
                holding.leave()


def _lease_manager(archive: Archive) -> LeaseManager | None:
    """Leases of hosts, where agents on other machines may share the catalogue."""
    if not archive.settings.database.url:
        return None
    check_clock(archive.catalog.database, time.time())
    crawling = archive.settings.crawl
    leases = HostLeases(archive.catalog.database, round(crawling.delay * 1000), crawling.max_per_host)
    return LeaseManager.named(archive.catalog, leases, crawling.lease)


def _address_gate(archive: Archive, shard: Shard) -> AddressGate | None:
    """Politeness per address, as far as agents reach."""
    if not archive.settings.crawl.delay > 0:
        return None
    if archive.settings.database.url:
        return AddressSlots(archive.catalog.database)
    return FileAddressGate(archive.folder / "addresses") if shard.agents > 1 else None


async def crawl(
    archive: Archive,
    options: CrawlOptions,
    progress: Callable[[CrawlStats], None] = lambda figures: None,
    *,
    shard: Shard | None = None,
    signals: Sequence[signal.Signals] = (),
    begun: Callable[[Agent], None] = lambda worker: None,
    connect: Connect = open_client,
) -> CrawlStats:
    """Crawls until the limits are reached or one of `signals` arrives; everything fetched is recorded.

    `begun` hears of the agent, and of each that takes its place when it was
    cut off, so that it can be stopped by other means.
    """
    if shard is None:
        enqueue_seeds(archive, options)
    if not options.seeds and not sum(archive.catalog.queues.waiting()):
        raise UsageError("nothing is planned yet; give a seed, such as 'letopis crawl https://example.org/'")
    total, fruitless = CrawlStats(), 0
    while True:
        done = CrawlStats()
        try:
            async with open_agent(archive, options, shard or Shard(), connect) as worker:
                done = worker.figures
                begun(worker)
                for number in signals:
                    asyncio.get_running_loop().add_signal_handler(number, worker.stop)
                await worker.run(options.limits.remaining(total.fetched), lambda figures: progress(total.plus(figures)))
                return total.plus(done)
        except NotReady:
            # Of a fleet, whoever was cut off begins anew; its hosts go to others meanwhile, nothing is lost.
            fruitless = 0 if done.fetched else fruitless + 1
            if not archive.settings.database.url or fruitless > _MAX_TRIES or not await _catalog_returns(archive):
                raise
            total.add(done)


async def _catalog_returns(archive: Archive) -> bool:
    """Whether the catalogue answers again within some minutes."""
    pause = max(_PAUSE_SECONDS, archive.settings.crawl.delay)
    for _ in range(_MAX_TRIES):
        await asyncio.sleep(pause)
        with suppress(LetopisError):
            archive.catalog.database.one("SELECT 1")
            return True
    return False
