"""Puts an agent together: settings and seeds in, figures out."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from letopis.archive import Archive
from letopis.archive.handover import Handover
from letopis.catalog.addresses import Addresses
from letopis.catalog.leases import HostLeases, check_clock
from letopis.catalog.queues import Shard
from letopis.config import FetchSettings
from letopis.crawl.agent import Agent, Limits
from letopis.crawl.decisions import reads_text
from letopis.crawl.durable import CatalogQueue
from letopis.crawl.figures import Figures
from letopis.crawl.holding import Holding
from letopis.crawl.ip_gate import AddressGate, IpGate
from letopis.crawl.moved import moved_seeds
from letopis.crawl.owed import Owed
from letopis.crawl.plans import Plan, keep_plan, kept_plans, scopes_of
from letopis.crawl.robots_book import RobotsBook
from letopis.crawl.selection import Selection
from letopis.errors import LetopisError, NotReady, UsageError
from letopis.fetch import Client, CookieJar, CurlTransport, Transport, limits_of
from letopis.frontier import Frontier, manners_of
from letopis.model import to_millis
from letopis.schedule import make_policy
from letopis.urls import Scope, ScopeKind, Scopes, parse_user
from letopis.urls import host as host_of
from letopis.visit import Manner, Visitor

_PAUSE_SECONDS = 1.0
_TRIES = 300
_LOADED = 32
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
    limits: Limits = field(default_factory=Limits)

    def plan(self) -> Plan:
        """What of it holds for whoever goes on with the crawl."""
        seeds = tuple(map(parse_user, self.seeds))
        return Plan(seeds, str(self.scope), self.include, self.exclude, self.depth, self.requisites)


def selection_of(archive: Archive, options: CrawlOptions) -> Selection:
    """The decision about links. Without seeds a crawl goes as far as those that it goes on with, and no further."""
    settings = archive.settings.crawl
    depth = options.depth if options.depth is not None else settings.max_depth or None
    if options.seeds or options.scope is ScopeKind.ANY:
        seeds = (*map(parse_user, options.seeds), *moved_seeds(archive, options.seeds))
        return Selection(Scope(options.scope, seeds, options.include, options.exclude), depth, options.requisites)
    plans = kept_plans(archive)
    chosen = Scope(ScopeKind.ANY, (), options.include, options.exclude)
    if depth is None and plans:
        depths = [plan.depth for plan in plans]
        depth = None if None in depths else max(filter(None, depths), default=0)
    requisites = options.requisites or any(plan.requisites for plan in plans)
    return Selection(Scopes(scopes_of(archive, plans), chosen), depth, requisites)


def plant(archive: Archive, options: CrawlOptions) -> None:
    """Makes the seeds wait for their visit; with `revisit_now` all known pages of their hosts too."""
    now = to_millis(archive.clock())
    moved = moved_seeds(archive, options.seeds) if options.revisit_now else ()
    with archive.catalog.transaction() as cursor:
        for seed in options.seeds:
            url = parse_user(seed)
            archive.catalog.queues.plan(cursor, archive.catalog.resources.ensure(cursor, url).id, 0)
        if options.seeds:
            keep_plan(archive, cursor, options.plan())
        for url in (*map(parse_user, options.seeds), *moved) if options.revisit_now else ():
            archive.catalog.queues.make_due(cursor, host_of(url), now)


@asynccontextmanager
async def connections(archive: Archive) -> AsyncIterator[tuple[Client, str]]:
    """A client with the manners of a crawl, and the name that it gives to servers."""
    settings = archive.settings
    jar = CookieJar() if settings.fetch.cookies else None
    transport = CurlTransport(_patient(settings.fetch), clock=archive.clock, jar=jar)
    try:
        yield client_over(archive, transport)
    finally:
        await transport.close()


def client_over(archive: Archive, transport: Transport) -> tuple[Client, str]:
    """A client as a crawl wants it, over any transport, and the name that it gives to servers."""
    settings = archive.settings
    contact = settings.crawl.contact
    name = f"{settings.crawl.user_agent} (+{contact})" if contact else settings.crawl.user_agent
    return Client(transport, _patient(settings.fetch), user_agent=name, clock=archive.clock), name


def _patient(settings: FetchSettings) -> FetchSettings:
    """A busy server is left to the frontier: waiting inside a fetch would hold a connection and a stop."""
    return replace(settings, retry_status=())


def visitor_of(archive: Archive, client: Client) -> Visitor:
    """Looks at pages and, unless the settings say otherwise, hands their links over to the index."""
    return Visitor(archive, client, handover=Handover(archive.folder) if archive.settings.crawl.map else None)


Connect = Callable[[Archive], AbstractAsyncContextManager[tuple[Client, str]]]
"""How an agent gets at the web."""


@asynccontextmanager
async def agent(
    archive: Archive, options: CrawlOptions, shard: Shard, connect: Connect = connections
) -> AsyncIterator[Agent]:
    """An agent with its own connections, ready to run."""
    settings = archive.settings
    holding = _holding(archive)
    # Where agents on other machines share the catalogue, leases and their addresses keep the pauses.
    owed = Owed(archive.folder, shard.rest, to_millis(archive.clock())) if holding is None else None
    queue = CatalogQueue(archive.catalog, shard, owed) if holding is None else holding.queue()
    gate = _gate(archive, shard)
    manners = manners_of(settings.crawl)
    if holding is not None:
        manners = replace(manners, batch=_LOADED)
    skim = not options.requisites and not reads_text(settings.crawl)
    manner = Manner(limits_of(settings.fetch), options.private_ok, follow=False, skim=skim, reread=options.revisit_now)
    try:
        async with connect(archive) as (client, name):
            robots = RobotsBook(archive, client, name, obey=settings.crawl.robots, private_ok=options.private_ok)
            yield Agent(
                archive, visitor_of(archive, client), Frontier(queue, manners), queue, robots,
                make_policy(settings.schedule, archive.catalog.queues.memory()),
                lambda: selection_of(archive, options),
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


def _holding(archive: Archive) -> Holding | None:
    """Leases of hosts, where agents on other machines may share the catalogue."""
    if not archive.settings.database.url:
        return None
    check_clock(archive.catalog.database, time.time())
    crawling = archive.settings.crawl
    leases = HostLeases(archive.catalog.database, round(crawling.delay * 1000), crawling.max_per_host)
    return Holding.named(archive.catalog, leases, crawling.lease)


def _gate(archive: Archive, shard: Shard) -> AddressGate | None:
    """Politeness per address, as far as agents reach."""
    if not archive.settings.crawl.delay > 0:
        return None
    if archive.settings.database.url:
        return Addresses(archive.catalog.database)
    return IpGate(archive.folder / "addresses") if shard.agents > 1 else None


async def crawl(
    archive: Archive,
    options: CrawlOptions,
    progress: Callable[[Figures], None] = lambda figures: None,
    *,
    shard: Shard | None = None,
    signals: Sequence[signal.Signals] = (),
    begun: Callable[[Agent], None] = lambda worker: None,
    connect: Connect = connections,
) -> Figures:
    """Crawls until the limits are reached or one of `signals` arrives; everything fetched is recorded.

    `begun` hears of the agent, and of each that takes its place when it was
    cut off, so that it can be stopped by other means.
    """
    if shard is None:
        plant(archive, options)
    if not options.seeds and not sum(archive.catalog.queues.waiting()):
        raise UsageError("nothing is planned yet; give a seed, such as 'letopis crawl https://example.org/'")
    total, fruitless = Figures(), 0
    while True:
        done = Figures()
        try:
            async with agent(archive, options, shard or Shard(), connect) as worker:
                done = worker.figures
                begun(worker)
                for number in signals:
                    asyncio.get_running_loop().add_signal_handler(number, worker.stop)
                await worker.run(options.limits.less(total.fetched), lambda figures: progress(total.plus(figures)))
                return total.plus(done)
        except NotReady:
            # Of a fleet, whoever was cut off begins anew; its hosts go to others meanwhile, nothing is lost.
            fruitless = 0 if done.fetched else fruitless + 1
            if not archive.settings.database.url or fruitless > _TRIES or not await _returns(archive):
                raise
            total.add(done)


async def _returns(archive: Archive) -> bool:
    """Whether the catalogue answers again within some minutes."""
    pause = max(_PAUSE_SECONDS, archive.settings.crawl.delay)
    for _ in range(_TRIES):
        await asyncio.sleep(pause)
        with suppress(LetopisError):
            archive.catalog.database.one("SELECT 1")
            return True
    return False
