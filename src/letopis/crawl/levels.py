"""A crawl by levels: the start pages, all that they link to, and so on; each level is recorded before the next.

It keeps a list of its own, so that it touches nothing but what was asked for,
whatever else is planned in the archive, and is over when its last level is.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from letopis.archive import Archive, RecordedCapture
from letopis.archive.page_memory import RecordExtension
from letopis.crawl.agent import CrawlLimits
from letopis.crawl.commits import CrawlStats
from letopis.crawl.runner import crawl_visitor, open_client
from letopis.crawl.selection import CrawlDecisions, CrawlSelection
from letopis.fetch import limits_of
from letopis.frontier import Bandwidth, NewUrl, politeness_of
from letopis.look import LookOptions, NoTurn, Patience, Visitor, known_version
from letopis.model import Observation, Outcome, to_millis
from letopis.urls import host as host_of
from letopis.urls import parse_user_url, url_key

NO_LIMITS = CrawlLimits()
BATCH = 256
"""Looks that share one durable commit."""
_STOP_POLL_SECONDS = 0.25
"""Seconds after which a waiting crawl asks again whether it is still wanted."""


class CrawlLevel(NamedTuple):
    """A level that is on disk: how far from the start pages, how many addresses, and all figures so far."""

    number: int
    pages: int
    figures: CrawlStats


class LevelHooks(NamedTuple):
    """What whoever started the crawl hears and says while it runs.

    `page` hears how many pages of how many of a level are done; `extend` writes in the transaction of a batch.
    """

    level: Callable[[CrawlLevel], None] = lambda level: None
    page: Callable[[int, int], None] = lambda done, of: None
    stop: Callable[[], bool] = lambda: False
    extend: RecordExtension | None = None


class LevelCrawl:
    """One crawl by levels; for one event loop."""

    def __init__(
        self, archive: Archive, visitor: Visitor, selection: CrawlSelection, options: LookOptions, hooks: LevelHooks,
        limits: CrawlLimits = NO_LIMITS,
    ) -> None:  # fmt: skip
        self._archive = archive
        self._visitor = visitor
        self._selection = selection
        self._options = options
        self._hooks = hooks
        self._patience = Patience(stopped=self._is_over)
        self._limits = limits
        self._taken = 0
        self._settings = archive.settings.crawl
        self._bandwidth = Bandwidth(self._settings.bandwidth)
        self._decisions = CrawlDecisions(self._settings)
        self._seen: set[int] = set()
        self._begun: Counter[str] = Counter()
        self._room = asyncio.Semaphore(self._settings.concurrency)
        self._finished: list[tuple[NewUrl, Observation]] = []
        self._looked = 0
        self._committed = time.monotonic()
        self._started = time.monotonic()
        self.figures = CrawlStats()

    async def run(self, seeds: Iterable[str]) -> CrawlStats:
        """All levels, or those up to where it was stopped; everything fetched is recorded."""
        addresses = (self._selection.address(parse_user_url(seed)) for seed in seeds)
        waiting = [NewUrl(url_key(url), url, host_of(url), 0) for url in addresses if url is not None]
        number = pages = 0
        while waiting and not self._is_over():
            here = self._unseen([url for url in waiting if url.depth <= number])
            later = [url for url in waiting if url.depth > number]
            pages += len(here)
            waiting = later + await self._level(here)
            if not any(url.depth <= number for url in waiting):
                self._hooks.level(CrawlLevel(number, pages, self.figures))
                number, pages = number + 1, 0
        return self.figures

    def _is_over(self) -> bool:
        """Whether nobody wants the crawl any more, or its bytes or its time are used up."""
        return self._hooks.stop() or self._limits.reached(-1, self._taken, time.monotonic() - self._started)

    def _unseen(self, urls: Iterable[NewUrl]) -> list[NewUrl]:
        """Each address once in a crawl, as many as the limits leave."""
        chosen = []
        for url in urls:
            over = self._limits.pages is not None and len(self._seen) >= self._limits.pages
            full = 0 < self._settings.max_per_host <= self._begun[url.host]
            if url.key not in self._seen and not over and not full:
                self._seen.add(url.key)
                self._begun[url.host] += 1
                chosen.append(url)
        return chosen

    async def _level(self, urls: Sequence[NewUrl]) -> list[NewUrl]:
        """Looks at all of them, hosts side by side; what they lead to, once they are recorded."""
        self._looked = 0
        by_host: defaultdict[str, list[NewUrl]] = defaultdict(list)
        for url in urls:
            by_host[url.host].append(url)
        found: list[NewUrl] = []
        try:
            async with asyncio.TaskGroup() as group:
                for part in by_host.values():
                    group.create_task(self._host(part, found, len(urls)))
        except ExceptionGroup as several:
            # What went wrong first has stopped the others; people get its sentence.
            raise several.exceptions[0] from None
        found += self._commit()
        return self._decisions.schedules(self._selection.admitted(_each_once(found)), self._archive.clock())

    async def _host(self, urls: Sequence[NewUrl], found: list[NewUrl], of: int) -> None:
        for url in urls:
            if self._is_over():
                return
            try:
                look = await self._look(url)
            except NoTurn:
                return
            self._finished.append((url, look))
            late = time.monotonic() - self._committed >= self._settings.commit_every
            if late or len(self._finished) >= BATCH:
                found += self._commit()
            self._looked += 1
            self._hooks.page(self._looked, of)

    async def _look(self, url: NewUrl) -> Observation:
        """One look; NoTurn when the crawl was stopped before it came to it."""
        visitor, options = self._visitor, self._options
        if setting := self._decisions.refusing_setting(url.url, url.host, url.depth):
            return visitor.judge(visitor.refused_by_setting(url.url, setting), None, options)
        async with self._room:
            robots = await visitor.robots_of(url.url, options)
        refusal = visitor.refusal(url.url, robots)
        if refusal is not None:
            return visitor.judge(refusal, None, options)
        await self._wait_for_bandwidth(url.host)
        await visitor.turn(url.host, robots, self._patience)
        async with self._room:
            known = known_version(self._archive, url.url)
            answer = await visitor.ask(url.url, known, options, robots, self._patience, url.host)
        self._taken += answer.result.bytes
        self._bandwidth.spend(answer.result.bytes, answer.result.finished)
        look = visitor.judge(answer.response, known, options)
        if look.outcome in (Outcome.NEW, Outcome.CHANGED) and not self._decisions.stores(look, url.depth):
            return look._replace(keep_body=False)
        return look

    async def _wait_for_bandwidth(self, host: str) -> None:
        while (wait := self._bandwidth.ready_at(self._now()) - self._now()) > 0:
            if self._is_over():
                raise NoTurn(host, self._now() + wait)
            await asyncio.sleep(min(wait / 1000, _STOP_POLL_SECONDS))

    def _now(self) -> int:
        return to_millis(self._archive.clock())

    def _commit(self) -> list[NewUrl]:
        """Records finished looks; answers the links they brought."""
        batch, self._finished = self._finished, []
        self._committed = time.monotonic()
        self.figures.seconds = self._committed - self._started
        if not batch:
            return []
        done = self._visitor.record([look for _, look in batch], self._hooks.extend)
        return [link for (url, look), row in zip(batch, done, strict=True) for link in self._links(url, look, row)]

    def _links(self, url: NewUrl, look: Observation, row: RecordedCapture) -> list[NewUrl]:
        links: list[NewUrl] = []
        if self._selection.max_depth is None or url.depth <= self._selection.max_depth:
            whole = self._visitor.reread(look, look.response.url, self._options)
            links = self._decisions.links(whole, self._selection.links(whole, url.depth), url.depth, url.priority)
        self.figures.count(look, row.first, len(links))
        return links


def _each_once(urls: Iterable[NewUrl]) -> list[NewUrl]:
    return list({url.key: url for url in reversed(list(urls))}.values())[::-1]


@asynccontextmanager
async def open_level_crawl(
    archive: Archive, selection: CrawlSelection, hooks: LevelHooks, *, private_ok: bool, limits: CrawlLimits
) -> AsyncIterator[LevelCrawl]:
    """A crawl by levels with its own connections; the depth is that of the selection."""
    options = LookOptions(limits_of(archive.settings.fetch), private_ok, follow=False)
    politeness = politeness_of(archive.settings.crawl)
    async with (
        open_client(archive) as (client, name),
        crawl_visitor(archive, client, name, politeness) as (visitor, _),
    ):
        yield LevelCrawl(archive, visitor, selection, options, hooks, limits)


async def crawl_levels(
    archive: Archive, seeds: Sequence[str], selection: CrawlSelection, hooks: LevelHooks | None = None, *,
    private_ok: bool = True, limits: CrawlLimits = NO_LIMITS,
) -> CrawlStats:  # fmt: skip
    """Crawls from the start pages to the depth of the selection, level by level, within the limits."""
    hooks = hooks or LevelHooks()
    async with open_level_crawl(archive, selection, hooks, private_ok=private_ok, limits=limits) as worker:
        return await worker.run(seeds)
