"""Puts an agent together: settings and seeds in, figures out."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from letopis.archive import Archive
from letopis.catalog.queues import Shard
from letopis.config import CrawlSettings
from letopis.crawl.agent import Agent, Limits
from letopis.crawl.decisions import reads_text
from letopis.crawl.durable import CatalogQueue
from letopis.crawl.figures import Figures
from letopis.crawl.ip_gate import IpGate
from letopis.crawl.robots_book import RobotsBook
from letopis.crawl.selection import Selection
from letopis.errors import UsageError
from letopis.fetch import Client, CookieJar, CurlTransport, limits_of
from letopis.frontier import Frontier, manners_of
from letopis.model import to_millis
from letopis.schedule import make_policy
from letopis.urls import Scope, ScopeKind, parse_user
from letopis.urls import host as host_of
from letopis.visit import Manner, Visitor


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

    def selection(self, settings: CrawlSettings) -> Selection:
        """The pure decision about links."""
        seeds = tuple(parse_user(seed) for seed in self.seeds)
        kind = self.scope if seeds else ScopeKind.ANY
        depth = self.depth if self.depth is not None else settings.max_depth or None
        return Selection(Scope(kind, seeds, self.include, self.exclude), depth, self.requisites)


def plant(archive: Archive, options: CrawlOptions) -> None:
    """Makes the seeds wait for their visit; with `revisit_now` all known pages of their hosts too."""
    now = to_millis(archive.clock())
    with archive.catalog.transaction() as cursor:
        for seed in options.seeds:
            url = parse_user(seed)
            archive.catalog.queues.plan(cursor, archive.catalog.resources.ensure(cursor, url).id, 0)
            if options.revisit_now:
                archive.catalog.queues.make_due(cursor, host_of(url), now)


@asynccontextmanager
async def agent(archive: Archive, options: CrawlOptions, shard: Shard) -> AsyncIterator[Agent]:
    """An agent with its own connections, ready to run."""
    settings = archive.settings
    jar = CookieJar() if settings.fetch.cookies else None
    # A busy server is left to the frontier: waiting here would hold a connection and a stop.
    fetching = replace(settings.fetch, retry_status=())
    transport = CurlTransport(fetching, clock=archive.clock, jar=jar)
    name = (
        f"{settings.crawl.user_agent} (+{settings.crawl.contact})"
        if settings.crawl.contact
        else settings.crawl.user_agent
    )
    client = Client(transport, fetching, user_agent=name, clock=archive.clock)
    queue = CatalogQueue(archive.catalog, shard)
    robots = RobotsBook(archive, client, name, obey=settings.crawl.robots, private_ok=options.private_ok)
    gate = IpGate(archive.folder / "addresses") if shard.agents > 1 and settings.crawl.delay > 0 else None
    skim = not options.requisites and not reads_text(settings.crawl)
    manner = Manner(limits_of(settings.fetch), options.private_ok, follow=False, skim=skim)
    try:
        yield Agent(
            archive, Visitor(archive, client), Frontier(queue, manners_of(settings.crawl)), queue, robots,
            make_policy(settings.schedule, archive.catalog.queues.memory()), options.selection(settings.crawl),
            manner, gate,
        )  # fmt: skip
    finally:
        await transport.close()
        if gate is not None:
            gate.close()


async def crawl(
    archive: Archive,
    options: CrawlOptions,
    progress: Callable[[Figures], None] = lambda figures: None,
    *,
    shard: Shard | None = None,
    signals: Sequence[signal.Signals] = (),
) -> Figures:
    """Crawls until the limits are reached or one of `signals` arrives; everything fetched is recorded."""
    if shard is None:
        plant(archive, options)
    if not options.seeds and not sum(archive.catalog.queues.waiting()):
        raise UsageError("nothing is planned yet; give a seed, such as 'letopis crawl https://example.org/'")
    async with agent(archive, options, shard or Shard()) as worker:
        for number in signals:
            asyncio.get_running_loop().add_signal_handler(number, worker.stop)
        return await worker.run(options.limits, progress)
