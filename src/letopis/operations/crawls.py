"""Crawls: queue seeds, drop sites, show the status, and explain when a page is visited next."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from letopis.archive import OWN, READ
from letopis.archive.crawl_status import (
    HostStatus,
    NextVisit,
    PlanState,
    busiest_crawl_hosts,
    crawl_figures,
    is_known_host,
    next_visits,
    planned_visit,
    ready_hosts,
)
from letopis.archive.queues import drop_site as drop
from letopis.config import parse_size
from letopis.errors import NotFound
from letopis.fetch.page_steps import MOST_STEPS, STEP_HELP
from letopis.lazy import lazy
from letopis.model import rfc3339
from letopis.model.printing import counted
from letopis.monitor.watch_list import WatchList
from letopis.operations.context import Context
from letopis.operations.operation import Value, operation
from letopis.operations.parameters import Parameters, parameter
from letopis.schedule.policies import VisitState, format_span
from letopis.tuples import NamedTuple
from letopis.urls import parse_seed_url, parse_user_url, site
from letopis.urls.scope import ScopeKind

if TYPE_CHECKING:
    from letopis import crawl
    from letopis.fetch import browser
else:  # who asks how crawling goes needs no crawler
    browser, crawl = lazy("letopis.fetch.browser"), lazy("letopis.crawl")

CrawlScope = Literal["page", "prefix", "host", "domain", "any"]
MAX_SEEDS = 1000
_MAX_PATTERNS = 100
_MAX_PATTERN_LENGTH = 1000
_MAX_HOSTS = 1000
_MAX_RULES = 100_000
_MAX_SIZE_LENGTH = 40
_SHOWN_HOSTS = 20
_NEXT_VISITS = 8


class EnqueueSeedsCommand(Parameters):
    """Where a crawl starts, and how far it goes."""

    seeds: tuple[str, ...] = parameter("Addresses to start from.", argument=True, metavar="SEED...", at_most=MAX_SEEDS)
    scope: CrawlScope = parameter("How far from the seeds.", default="host")
    include: tuple[str, ...] = parameter(
        "Only addresses that match.", default=(), metavar="REGEX", at_most=_MAX_PATTERNS, longest=_MAX_PATTERN_LENGTH
    )
    exclude: tuple[str, ...] = parameter(
        "Exclude addresses that match.", default=(), metavar="REGEX", at_most=_MAX_PATTERNS, longest=_MAX_PATTERN_LENGTH
    )
    depth: int | None = parameter("Follow at most N links from a seed.", default=None, at_least=0, at_most=1_000_000)
    limit: int | None = parameter(
        "Plan at most N pages, seeds included; also holds when the crawl is resumed.",
        default=None, at_least=1, at_most=1_000_000_000,
    )  # fmt: skip
    max_hosts: int | None = parameter(
        "Plan pages on at most N hosts, those of the seeds included.", default=None, at_least=1, at_most=_MAX_HOSTS
    )
    max_bytes: str | None = parameter(
        "Fetch at most this much (500MiB); also holds when the crawl is resumed.",
        default=None,
        metavar="SIZE",
        longest=_MAX_SIZE_LENGTH,
    )
    max_time: timedelta | None = parameter("Stop fetching for this crawl after this time (6h).", default=None)
    rules: str | None = parameter(
        "URL rules, as the <urltransform> element of a job.", default=None, metavar="XML", longest=_MAX_RULES
    )
    requisites: bool = parameter("Fetch images, styles and scripts of pages too.", default=False)
    browser: bool = parameter("Open pages in a browser, with everything they load.", default=False)
    step: tuple[str, ...] = parameter(STEP_HELP, default=(), metavar="STEP", at_most=MOST_STEPS)
    revisit_now: bool = parameter("Visit all known pages of the seeds' hosts again now.", default=False)


class CrawlQueued(NamedTuple):
    """The accepted seeds, and how many pages are newly queued."""

    seeds: tuple[str, ...]
    queued: int


@operation(
    "enqueue_seeds", right=OWN, verb="crawls add", route=("POST", "/crawls"), status=201, audited="crawl added",
    sentence=lambda row: (
        f"new to the crawl: {counted(row.queued, 'page')}; 'letopis serve' or 'letopis run' takes them within seconds."
    ),
    examples=(
        "letopis crawls add https://example.org/",
        "letopis crawls add https://example.org/docs/ --scope prefix --depth 3",
        "letopis crawls add https://example.org/ --scope any --limit 1000 --max-hosts 20",
        "letopis crawls add https://example.org/ --max-bytes 500MiB --max-time 6h",
    ),
)  # fmt: skip
def enqueue_seeds(context: Context, asked: EnqueueSeedsCommand) -> Value[CrawlQueued]:
    """Queue seeds for the daemon, which starts on them within seconds."""
    context.archive.require_writable()
    seeds = tuple(parse_seed_url(seed) for seed in asked.seeds)
    context.refuse_private(seeds)
    options = crawl.CrawlOptions(
        seeds, ScopeKind(asked.scope), asked.include, asked.exclude, asked.depth, asked.requisites, asked.revisit_now,
        origin=context.origin, limit=asked.limit, max_hosts=asked.max_hosts, rules=asked.rules or "",
        max_bytes=None if asked.max_bytes is None else parse_size(asked.max_bytes),
        max_seconds=None if asked.max_time is None else asked.max_time.total_seconds(),
        browser=asked.browser or bool(asked.step), steps=asked.step,
    )  # fmt: skip
    if options.browser:
        browser.require_browser(context.archive.settings.fetch.chromium)
    return Value(CrawlQueued(seeds, crawl.enqueue_seeds(context.archive, options)))


class DropSiteCommand(Parameters):
    """Which site."""

    site: str = parameter("A host (host[:port]) or an address.", argument=True)


class SiteDropped(NamedTuple):
    """How many planned visits of a site were removed."""

    site: str
    dropped: int


@operation(
    "drop_site", right=OWN, verb="crawls drop", route=("DELETE", "/crawls"), errors=(404,), creates=False,
    audited="site dropped",
    sentence=lambda row: f"dropped: {counted(row.dropped, 'planned visit')} of {row.site}; what was recorded stays.",
    examples=("letopis crawls drop example.org",),
)  # fmt: skip
def drop_site(context: Context, asked: DropSiteCommand) -> Value[SiteDropped]:
    """Stop visiting a site; its records stay."""
    name = site(asked.site)
    context.archive.require_writable()
    if not is_known_host(context.archive, name):
        raise NotFound(f"no page of {name} is in the archive; crawl it first")
    return Value(SiteDropped(name, drop(context.archive, name)))


class CrawlStatusQuery(Parameters):
    """How much of the status."""

    hosts: int = parameter("How many hosts to list, the busiest first.", default=100, at_least=0, at_most=_MAX_HOSTS)
    quick: bool = parameter("Skip figures that are slow on a large archive: ready hosts, fresh copies.", default=False)


class CrawlStatus(NamedTuple):
    """The status of crawling: `new` URLs wait for a first visit, `again` are revisited regularly, `due` of them now.

    Of all fetches, `first_visits` requested a page for the first time. `ready` hosts may be requested now;
    `freshness` is the estimated share of copies that equal the live pages, None before anything is revisited. `next`
    are the pages with the earliest revisits.
    """

    time: datetime
    fetched: int
    first_visits: int
    versions: int
    new: int
    again: int
    due: int
    ready: int | None
    freshness: float | None
    hosts: tuple[HostStatus, ...]
    next: tuple[NextVisit, ...]


def _status_sentence(row: CrawlStatus) -> str:
    ready = "" if row.ready is None else f"; ready now: {counted(row.ready, 'host')}"
    fresh = "" if row.freshness is None else f"; {100 * row.freshness:.0f} % of the copies are fresh"
    lines = [
        f"{counted(row.fetched, 'fetch', 'fetches')}, {counted(row.versions, 'version')}; waiting for a first visit: "
        f"{counted(row.new, 'page')}, due again: {row.due} of {row.again}{ready}{fresh}",
        *(
            f"{host.name}: {counted(host.fetched, 'fetch', 'fetches')}, {counted(host.failures, 'failure')} in a row"
            for host in row.hosts[:_SHOWN_HOSTS]
        ),
    ]
    return "\n".join(lines)


@operation(
    "crawl_status", right=READ, verb="crawls", route=("GET", "/crawls"), sentence=_status_sentence,
    examples=("letopis crawls", "letopis crawls --json --hosts 1000"),
)  # fmt: skip
def crawl_status(context: Context, asked: CrawlStatusQuery) -> Value[CrawlStatus]:
    """Show the status of the crawl, whichever process runs it: fetches, waiting pages, hosts."""
    archive = context.archive
    ready, fresh = (None, None) if asked.quick else (ready_hosts(archive), crawl.freshness(archive))
    listed, soon = tuple(busiest_crawl_hosts(archive, asked.hosts)), tuple(next_visits(archive, _NEXT_VISITS))
    return Value(CrawlStatus(archive.clock(), *crawl_figures(archive), ready, fresh, listed, soon))


class VisitQuery(Parameters):
    """Which page."""

    url: str = parameter("Address of the page.", argument=True)


class VisitExplanation(NamedTuple):
    """When and why a page is visited next, by a crawl or by its watch; `policy` is that of crawls, or `watch`."""

    url: str
    state: str
    next_visit: datetime | None
    policy: str
    visits: int
    changes: int
    failures: int
    interval_seconds: float
    depth: int
    priority: float


_PLAN_STATES: dict[PlanState, str] = {
    "known": "known, but not planned by any crawl",
    "new": "waiting for its first visit",
    "again": "revisited regularly",
    "held": "held back by a filter, a trap, the limit of its host, or because its site was dropped",
    "gone": "not found and given up",
}


def _visit_sentence(row: VisitExplanation) -> str:
    sentence = f"{row.url}: {row.state}"
    if row.next_visit is not None:
        sentence += f"; next visit {rfc3339(row.next_visit)}"
        if row.interval_seconds:
            sentence += f", {format_span(row.interval_seconds)} after the last ({row.policy})"
    if row.visits:
        sentence += f"; {counted(row.visits, 'visit')} of crawls found {counted(row.changes, 'change')}"
    return sentence + (f"; {counted(row.failures, 'failure')} in a row" if row.failures else "")


@operation(
    "explain_visit", right=READ, verb="why", route=("GET", "/why"), errors=(404,), sentence=_visit_sentence,
    examples=("letopis why https://example.org/", "letopis why https://example.org/ --json"),
)  # fmt: skip
def explain_visit(context: Context, asked: VisitQuery) -> Value[VisitExplanation]:
    """Explain when a page is visited next."""
    url = parse_user_url(asked.url)
    plan = planned_visit(context.archive, url)
    visits = VisitState.from_bytes(plan.record)
    due, policy, interval = plan.due, str(context.archive.settings.schedule.policy), visits.interval
    watch = WatchList(context.archive).find(url)
    if watch is not None and watch.due is not None and (due is None or watch.due < due):
        due, policy, interval = watch.due, "watch", watch.watch.every
    known = (visits.visits, visits.changes, visits.failures, round(interval, 1), plan.depth, plan.priority)
    return Value(VisitExplanation(url, _PLAN_STATES[plan.state], due, policy, *known))
