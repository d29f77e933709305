"""Creates an agent and runs it: settings and seeds in, statistics out."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from letopis.archive import Archive
from letopis.archive.crawl_status import bring_back_visits, policy_memory, visit_samples
from letopis.archive.link_cache import LinkCacheWriter
from letopis.archive.queues import (
    CrawlPlan,
    FrontierQueue,
    HostState,
    Shard,
    crawl_plans,
    enqueue_crawl,
    host_leases,
    is_queue_empty,
    is_within_reach,
    leases_hosts,
    take_in_links,
)
from letopis.binary import exclusive_lock
from letopis.config import FetchSettings
from letopis.crawl.agent import Agent, CaptureMode, CrawlLimits, WholePages
from letopis.crawl.commits import CrawlStats
from letopis.crawl.selection import (
    CrawlDecisions,
    CrawlSelection,
    PlanLimits,
    PrivateReach,
    moved_seeds,
    plan_rules,
    plan_scopes,
    reads_text,
)
from letopis.errors import Busy, LetopisError, NotReady, Remedy, UsageError
from letopis.fetch import Origin
from letopis.fetch.browser import BrowserFetcher, require_browser
from letopis.fetch.client import Client, Transport, limits_of
from letopis.fetch.page_steps import parse_steps
from letopis.frontier.frontier import Frontier
from letopis.frontier.leases import LeaseManager
from letopis.lazy import lazy
from letopis.look.politeness import Politeness, PolitenessBook, open_book, politeness_of
from letopis.look.robots import RobotsCache
from letopis.look.visitor import LookOptions, Visitor, user_agent
from letopis.model import to_millis
from letopis.schedule.policies import VisitState, make_policy
from letopis.tuples import NamedTuple
from letopis.urls import host as host_of
from letopis.urls import parse_seed_url
from letopis.urls.scope import Scope, ScopeKind, Scopes

if TYPE_CHECKING:
    from letopis.fetch import curl
    from letopis.schedule import freshness as estimates
else:
    estimates = lazy("letopis.schedule.freshness")  # needs numpy, and no visit does
    curl = lazy("letopis.fetch.curl")

_PAUSE_SECONDS = 1.0
_MAX_TRIES = 300
_RANKED_AHEAD = 8
"""URLs of a host that are taken out of the queue at once where each page that is read may change their order."""
_LEASED_BATCH = 32
"""URLs of a host that an agent of a fleet asks for at once: its questions cross a network."""


class CrawlOptions(NamedTuple):
    """What to crawl. Without seeds, the planned crawls continue."""

    seeds: tuple[str, ...] = ()
    scope: ScopeKind = ScopeKind.HOST
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    depth: int | None = None
    requisites: bool = False
    revisit_now: bool = False
    private_ok: bool = True
    origin: Origin = "cli"
    limits: CrawlLimits = CrawlLimits()
    limit: int | None = None
    max_hosts: int | None = None
    rules: str = ""
    max_bytes: int | None = None
    max_seconds: float | None = None
    browser: bool = False
    steps: tuple[str, ...] = ()
    """What bounds a plan travels with it and holds for whoever goes on; `limits` are those of one run."""

    def plan(self, now: datetime) -> CrawlPlan:
        """What of it holds for whoever goes on with the crawl; UsageError where nobody could go on with it."""
        seeds = tuple(map(parse_seed_url, self.seeds))
        Scope(self.scope, seeds, self.include, self.exclude)
        plan_rules(self.rules)
        parse_steps(self.steps)
        hosts = tuple(dict.fromkeys(map(host_of, seeds)))
        for name, most, needed in (("limit", self.limit, len(seeds)), ("max_hosts", self.max_hosts, len(hosts))):
            if most is not None and needed > most:
                raise UsageError(f"{name} is {most}, but the seeds alone are {needed}; raise it or give fewer seeds")
        return CrawlPlan(
            seeds, str(self.scope), self.include, self.exclude, self.depth, self.requisites, self.origin,
            self.limit, self.max_hosts, self.rules, len(seeds), hosts, self.max_bytes,
            None if self.max_seconds is None else to_millis(now) + round(1000 * self.max_seconds),
            browser=self.browser, steps=self.steps,
        )  # fmt: skip


def selection_for(archive: Archive, options: CrawlOptions) -> CrawlSelection:
    """The decision about links. Without seeds a crawl goes as far as those that it goes on with, and no further.

    Plans that cannot be carried out are left out: see `unusable_plans`.
    """
    settings = archive.settings.crawl
    depth = options.depth if options.depth is not None else settings.max_depth or None
    if options.seeds or options.scope is ScopeKind.ANY:
        seeds = (*map(parse_seed_url, options.seeds), *moved_seeds(archive, options.seeds))
        scope = Scope(options.scope, seeds, options.include, options.exclude)
        return CrawlSelection(scope, depth, plan_rules(options.rules))
    plans = crawl_plans(archive)
    chosen = Scope(ScopeKind.ANY, (), options.include, options.exclude)
    if depth is None and plans:
        depths = [plan.depth for plan in plans]
        depth = None if None in depths else max(filter(None, depths), default=0)
    rules = sum((plan_rules(plan.rules) for plan in plans), plan_rules(options.rules))
    return CrawlSelection(Scopes(plan_scopes(archive, plans), chosen), depth, rules)


def limits_for(archive: Archive, options: CrawlOptions) -> PlanLimits:
    """The limits of the crawls that one without seeds goes on with; others end by `options.limits` alone."""
    goes_on = not options.seeds and options.scope is not ScopeKind.ANY
    return PlanLimits(archive, crawl_plans(archive) if goes_on else None)


def enqueue_seeds(archive: Archive, options: CrawlOptions) -> int:
    """Makes the seeds wait for their visit; with `revisit_now` all known pages of their hosts too.

    Nothing is stored before all of it is known to be valid. Answers how many pages wait now that did not before.
    """
    plan = options.plan(archive.clock())
    moved = moved_seeds(archive, options.seeds) if options.revisit_now else ()
    due = dict.fromkeys(map(host_of, (*plan.seeds, *moved))) if options.revisit_now else ()
    return enqueue_crawl(archive, plan, due)


@asynccontextmanager
async def open_client(archive: Archive) -> AsyncIterator[tuple[Client, str]]:
    """A client as a crawl wants it, and the name that it gives to servers."""
    settings = archive.settings
    jar = curl.CookieJar() if settings.fetch.cookies else None
    transport = curl.CurlTransport(_without_retries(settings.fetch), clock=archive.clock, jar=jar)
    try:
        yield crawl_client(archive, transport)
    finally:
        await transport.close()


def crawl_client(archive: Archive, transport: Transport) -> tuple[Client, str]:
    """A client as a crawl wants it, over any transport, and the name that it gives to servers."""
    name = user_agent(archive)
    settings = _without_retries(archive.settings.fetch)
    return Client(transport, settings, user_agent=name, clock=archive.clock), name


def _without_retries(settings: FetchSettings) -> FetchSettings:
    """A busy server is left to the frontier: waiting inside a fetch would hold a connection and a stop."""
    return replace(settings, retry_status=())


@asynccontextmanager
async def crawl_visitor(
    archive: Archive, client: Client, name: str, politeness: Politeness
) -> AsyncIterator[tuple[Visitor, PolitenessBook]]:
    """Looks at pages as a crawl does, by its politeness book, which is closed in the end.

    Unless the settings say otherwise the links of pages are handed over to the index.
    """
    crawling = archive.settings.crawl
    robots = RobotsCache(archive, client, name) if crawling.robots else None
    link_cache = LinkCacheWriter(archive.folder) if crawling.map else None
    book = open_book(archive, politeness, crawls=True)
    settings = archive.settings
    browser = BrowserFetcher(client, executable=settings.fetch.chromium, settings=settings.capture)
    try:
        yield Visitor(archive, client, book, robots, browser, link_cache, reuse=settings.capture.reuse), book
    finally:
        await browser.close()
        book.close()


Connect = Callable[[Archive], AbstractAsyncContextManager[tuple[Client, str]]]
"""How an agent gets at the web."""


@asynccontextmanager
async def open_agent(
    archive: Archive, options: CrawlOptions, shard: Shard | None = None, connect: Connect = open_client
) -> AsyncIterator[Agent]:
    """An agent with its own connections, ready to run; for all hosts unless it has a shard of them."""
    settings = archive.settings
    bring_back_visits(archive)
    take_in_links(archive)
    leases = LeaseManager.named(host_leases(archive), settings.crawl.lease) if leases_hosts(archive) else None
    politeness = politeness_of(settings.crawl)
    if leases is not None:
        politeness = politeness._replace(batch=_LEASED_BATCH)
    if settings.crawl.order == "rank":
        politeness = politeness._replace(most_ahead=_RANKED_AHEAD)
    skim = not reads_text(settings.crawl)
    looking = LookOptions(
        limits_of(settings.fetch), options.private_ok, follow=False, skim=skim, reread=options.revisit_now
    )
    try:
        async with (
            connect(archive) as (client, name),
            crawl_visitor(archive, client, name, politeness) as (visitor, book),
        ):
            arrive = _arrivals(archive, book)
            queue = FrontierQueue(archive, shard, arrive) if leases is None else leases.queue(archive, arrive)
            yield Agent(
                archive, visitor, Frontier(queue, politeness), queue,
                make_policy(settings.schedule, policy_memory(archive)),
                lambda: selection_for(archive, options), looking, leases,
                PrivateReach(archive, queue) if options.private_ok else None,
                lambda: limits_for(archive, options), _whole_pages(archive, options),
            )  # fmt: skip
    finally:
        if leases is not None:
            with suppress(LetopisError):
                leases.leave()


def _whole_pages(archive: Archive, options: CrawlOptions) -> WholePages:
    """A crawl from seeds looks at pages as it is told; one that goes on as the crawls that it goes on with."""
    goes_on = not options.seeds and options.scope is not ScopeKind.ANY
    capture = CaptureMode(options.browser, options.requisites, parse_steps(options.steps))
    if capture.browser:
        require_browser(archive.settings.fetch.chromium)
    return WholePages(archive, capture, goes_on=goes_on)


def _arrivals(archive: Archive, book: PolitenessBook) -> Callable[[HostState], HostState]:
    """Tells the book of every host that the frontier gets to know."""
    return lambda host: book.arrive(host, to_millis(archive.clock()))


@contextmanager
def crawl_lock(archive: Archive) -> Iterator[None]:
    """One process of a machine crawls an archive at a time: two would ask the same URLs. Busy while another does.

    Machines that share a record share out its hosts themselves.
    """
    if leases_hosts(archive):
        yield
        return
    with ExitStack() as held:
        try:
            held.enter_context(exclusive_lock(archive.folder / "crawl.lock", "crawls this archive"))
        except Busy:
            raise Busy(
                "another process crawls this archive",
                Remedy(
                    "crawls add URL", "letopis.crawl.enqueue_seeds()", "give it your seeds by", ", or stop it first"
                ),
            ) from None
        yield


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
    cut off, so that it can be stopped by other means. Nothing is stored where
    another process crawls already; agents of a fleet are under the lock of who leads them.
    """
    CrawlDecisions(archive.settings.crawl)  # bad filters are refused before anything is stored
    with crawl_lock(archive) if shard is None else nullcontext():
        if shard is None:
            enqueue_seeds(archive, options)
        return await _crawl_on(archive, options, progress, shard, signals, begun, connect)


async def _crawl_on(
    archive: Archive,
    options: CrawlOptions,
    progress: Callable[[CrawlStats], None],
    shard: Shard | None,
    signals: Sequence[signal.Signals],
    begun: Callable[[Agent], None],
    connect: Connect,
) -> CrawlStats:
    """What is planned, by one agent after the other where the record is away for a while."""
    # Agents of a fleet may be started before anybody plans a crawl: they wait for it.
    waits = leases_hosts(archive) and not options.limits.ends_idle
    if not options.seeds and not waits and is_queue_empty(archive):
        raise UsageError(
            "nothing is planned yet",
            Remedy("crawl https://example.org/", "CrawlOptions(('https://example.org/',))", "give a seed, as"),
        )
    total, fruitless = CrawlStats(), 0
    while True:
        done = CrawlStats()
        try:
            async with open_agent(archive, options, shard, connect) as worker:
                done = worker.figures
                begun(worker)
                for number in signals:
                    asyncio.get_running_loop().add_signal_handler(number, worker.stop)
                await worker.run(options.limits.remaining(total), lambda figures: progress(total.plus(figures)))
                return total.plus(done)
        except NotReady:
            # Of a fleet, whoever was cut off begins anew; its hosts go to others meanwhile, nothing is lost.
            fruitless = 0 if done.fetched else fruitless + 1
            if not leases_hosts(archive) or fruitless > _MAX_TRIES or not await _record_returns(archive):
                raise
            total.add(done)


async def _record_returns(archive: Archive) -> bool:
    """Whether the record answers again within some minutes."""
    pause = max(_PAUSE_SECONDS, archive.settings.crawl.delay)
    for _ in range(_MAX_TRIES):
        await asyncio.sleep(pause)
        if is_within_reach(archive):
            return True
    return False


_MOST_SAMPLED = 20_000
"""Pages asked at most: the error of so large a sample is a third of a point."""


def freshness(archive: Archive) -> float | None:
    """The estimated share of copies that equal the live pages now; None before anything is visited again."""
    states = map(VisitState.from_bytes, visit_samples(archive, _MOST_SAMPLED))
    return estimates.estimated_freshness(states, archive.clock().timestamp())
