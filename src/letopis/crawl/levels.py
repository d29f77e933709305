"""A crawl by levels: the start pages, all pages they link to, and so on; each level is recorded before the next.

It has its own list of URLs, so it fetches only what was requested, whatever else is planned in the archive, and ends
with its last level. With a journal it continues where an earlier run was interrupted: every batch is recorded
together with the requested and the found URLs.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from letopis.archive import Archive, RecordedCapture
from letopis.archive.job_control import CrawlJournal
from letopis.archive.page_memory import RecordExtension, in_one_transaction
from letopis.archive.queues import NewUrl
from letopis.crawl.agent import CaptureMode, CrawlLimits
from letopis.crawl.commits import CrawlStats
from letopis.crawl.runner import crawl_visitor, open_client
from letopis.crawl.selection import CrawlDecisions, CrawlSelection
from letopis.fetch.client import limits_of
from letopis.look.known import known_version
from letopis.look.politeness import Bandwidth, politeness_of
from letopis.look.visitor import LookOptions, NoTurn, Patience, Visitor, turn_to_record
from letopis.model import Observation, Outcome, to_millis
from letopis.tuples import NamedTuple
from letopis.urls import host as host_of
from letopis.urls import parse_seed_url, url_key

NO_LIMITS = CrawlLimits()
BATCH = 256
"""Looks that share one durable commit."""
_STOP_POLL_SECONDS = 0.25
"""Seconds after which a waiting crawl asks again whether it is still wanted."""


class CrawlLevel(NamedTuple):
    """A stored level: its distance from the start pages, its number of addresses, and all figures so far."""

    number: int
    pages: int
    figures: CrawlStats


class LevelHooks(NamedTuple):
    """Callbacks of the caller while the crawl runs.

    `page` gets the number of pages done and in total of a level, and of the crawl; `look` gets each result; `wait`
    gets the seconds for which a host pauses; `extend` writes in the transaction of a batch.
    """

    level: Callable[[CrawlLevel], None] = lambda level: None
    page: Callable[[int, int, int], None] = lambda done, of, asked: None
    stop: Callable[[], bool] = lambda: False
    extend: RecordExtension | None = None
    look: Callable[[Observation], None] = lambda look: None
    wait: Callable[[str, float], None] = lambda host, seconds: None


@dataclass(slots=True)
class CrawlProgress:
    """The progress of a crawl: requested addresses by level, waiting ones, its figures, its bytes and seconds."""

    asked: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, NewUrl] = field(default_factory=dict)
    figures: CrawlStats = field(default_factory=CrawlStats)
    taken: int = 0

    @classmethod
    def read(cls, entries: Iterable[bytes]) -> CrawlProgress:
        """What the entries of a journal tell, one after the other."""
        found = cls()
        for entry in entries:
            row = json.loads(entry)
            found.asked |= dict(row["asked"])
            for url, host, depth, priority in row["found"]:
                found.waiting.setdefault(url, NewUrl(url_key(url), url, host, depth, priority))
            found.figures = CrawlStats.from_row(row["figures"])
            found.taken = row["taken"]
        found.waiting = {url: one for url, one in found.waiting.items() if url not in found.asked}
        return found


class LevelCrawl:
    """One crawl by levels; for one event loop."""

    def __init__(
        self, archive: Archive, visitor: Visitor, selection: CrawlSelection, options: LookOptions, hooks: LevelHooks,
        limits: CrawlLimits = NO_LIMITS, journal: CrawlJournal | None = None,
    ) -> None:  # fmt: skip
        self._archive = archive
        self._journal = journal
        self._told: set[str] = set()
        self._before: Counter[int] = Counter()
        self._visitor = visitor
        self._selection = selection
        self._options = options
        self._hooks = hooks
        self._patience = Patience(stopped=self._is_over, waiting=lambda host, seconds, why: hooks.wait(host, seconds))
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
        addresses = (self._selection.address(parse_seed_url(seed)) for seed in seeds)
        waiting = [NewUrl(url_key(url), url, host_of(url), 0) for url in addresses if url is not None]
        if self._journal is not None:
            self._journal.prepare()
            waiting = self._resumed(CrawlProgress.read(self._journal.entries()), waiting)
        number = min((url.depth for url in waiting), default=len(self._before))
        for done in range(number):
            self._hooks.level(CrawlLevel(done, self._before[done], self.figures))
        pages = self._before[number]
        while waiting and not self._is_over():
            here = self._unseen([url for url in waiting if url.depth <= number])
            later = [url for url in waiting if url.depth > number]
            pages += len(here)
            waiting = later + await self._level(here)
            if not any(url.depth <= number for url in waiting):
                self._hooks.level(CrawlLevel(number, pages, self.figures))
                number, pages = number + 1, self._before[number + 1]
        return self.figures

    def _resumed(self, before: CrawlProgress, seeds: list[NewUrl]) -> list[NewUrl]:
        """What waits after an earlier run."""
        self.figures, self._taken = before.figures, before.taken
        self._started -= before.figures.seconds
        self._told = {*before.asked, *before.waiting}
        self._before.update(before.asked.values())
        for url in before.asked:
            self._seen.add(url_key(url))
            self._begun[host_of(url)] += 1
        found = self._decisions.schedules(list(before.waiting.values()), self._archive.clock())
        return [url for url in seeds if url.key not in self._seen] + found

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
        async with turn_to_record(self._archive):
            found += self._commit()
        return self._decisions.schedules(_each_once(found), self._archive.clock())

    async def _host(self, urls: Sequence[NewUrl], found: list[NewUrl], of: int) -> None:
        for url in urls:
            if self._is_over():
                return
            try:
                look = await self._look(url)
            except NoTurn:
                return
            self._finished.append((url, look))
            self._hooks.look(look)
            late = time.monotonic() - self._committed >= self._settings.commit_every
            if late or len(self._finished) >= BATCH:
                async with turn_to_record(self._archive):
                    found += self._commit()
            self._looked += 1
            self._hooks.page(self._looked, of, len(self._seen) - of + self._looked)

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
        """Records finished looks; answers the addresses they brought that may be asked for."""
        batch, self._finished = self._finished, []
        self._committed = time.monotonic()
        self.figures.seconds = self._committed - self._started
        if not batch:
            return []
        found = [self._links(url, look) for url, look in batch]

        def counted(done: Sequence[RecordedCapture]) -> CrawlStats:
            figures = self.figures.plus(CrawlStats())
            for (_, look), row, links in zip(batch, done, found, strict=True):
                figures.count(look, row.first, len(links))
            return figures

        links = self._selection.admitted(_each_once(link for some in found for link in some))
        extend = self._hooks.extend
        if self._journal is not None:
            asked, untold = [url for url, _ in batch], [link for link in links if link.url not in self._told]
            entry = self._journal.written_with(lambda done: _entry(asked, untold, counted(done), self._taken))
            self._told.update(link.url for link in untold)
            extend = in_one_transaction(extend, entry)
        self.figures = counted(self._visitor.record([look for _, look in batch], extend))
        return links

    def _links(self, url: NewUrl, look: Observation) -> list[NewUrl]:
        if self._selection.max_depth is not None and url.depth > self._selection.max_depth:
            return []
        whole = self._visitor.reread(look, look.response.url, self._options)
        return self._decisions.links(whole, self._selection.links(whole, url.depth), url.depth, url.priority)


def _entry(asked: Iterable[NewUrl], found: Iterable[NewUrl], figures: CrawlStats, taken: int) -> bytes:
    """What a batch adds to the journal."""
    row = {
        "asked": [(url.url, url.depth) for url in asked],
        "found": [(url.url, url.host, url.depth, url.priority) for url in found],
        "figures": replace(figures, pause=None).row(),
        "taken": taken,
    }
    return json.dumps(row).encode()


def _each_once(urls: Iterable[NewUrl]) -> list[NewUrl]:
    return list({url.key: url for url in reversed(list(urls))}.values())[::-1]


@asynccontextmanager
async def open_level_crawl(
    archive: Archive, selection: CrawlSelection, hooks: LevelHooks, *, private_ok: bool, limits: CrawlLimits,
    capture: CaptureMode | None = None, journal: CrawlJournal | None = None, delay: float = 0.0,
) -> AsyncIterator[LevelCrawl]:  # fmt: skip
    """A crawl by levels with its own connections; the depth is that of the selection.

    `delay` are seconds between two requests to a host, where that is more than the setting.
    """
    options = LookOptions(limits_of(archive.settings.fetch), private_ok, follow=False)
    options = options._replace(**(capture or CaptureMode())._asdict())
    politeness = politeness_of(archive.settings.crawl)
    politeness = politeness._replace(delay=max(politeness.delay, delay), ip_delay=max(politeness.ip_delay, delay))
    async with open_client(archive) as (client, name), crawl_visitor(archive, client, name, politeness) as (visitor, _):
        yield LevelCrawl(archive, visitor, selection, options, hooks, limits, journal)


async def crawl_levels(
    archive: Archive, seeds: Sequence[str], selection: CrawlSelection, hooks: LevelHooks | None = None, *,
    private_ok: bool = True, limits: CrawlLimits = NO_LIMITS, capture: CaptureMode | None = None,
    journal: CrawlJournal | None = None, delay: float = 0.0,
) -> CrawlStats:  # fmt: skip
    """Crawls from the start pages to the depth of the selection, level by level, within the limits."""
    hooks = hooks or LevelHooks()
    async with open_level_crawl(
        archive, selection, hooks, private_ok=private_ok, limits=limits, capture=capture, journal=journal, delay=delay
    ) as worker:
        return await worker.run(seeds)
