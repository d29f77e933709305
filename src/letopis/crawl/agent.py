"""One crawling process: takes URLs from the frontier, looks at them, records batches.

The way of a page: `Frontier.take` -> `Visitor.ask` -> `Frontier.give_back` ->
`PendingLooks` (`Visitor.judge`) -> `BatchCommitter` (`RevisitPlanner`, `Archive.record` with what
follows for the frontier in the same transaction).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from letopis.archive import Archive
from letopis.crawl.catalog_queue import CatalogQueue, LeaseManager
from letopis.crawl.commits import RETRY_SECONDS, BatchCommitter, PendingLook, PendingLooks
from letopis.crawl.selection import CrawlDecisions, CrawlSelection
from letopis.crawl.stats import CrawlStats
from letopis.fetch import retry_after
from letopis.frontier import FetchResult, Frontier, NewUrl, Ticket
from letopis.look import KnownVersion, LookOptions, Visitor, is_refused, known_version
from letopis.look.politeness import AddressGate, PauseJournal
from letopis.look.robots import Robots, RobotsCache
from letopis.model import Failure, FailureKind, Response, to_millis
from letopis.schedule import RevisitPolicy
from letopis.urls import host as host_of
from letopis.urls import join, url_key

BATCH = 512
"""Most looks in one commit."""
HEAVY = 64 * 1024 * 1024
"""Bytes of bodies after which a commit waits no longer."""
_FEW = 64
"""Looks for which an agent of a fleet waits twice `crawl.commit_every`: a commit takes the turn of all others."""
_IDLE_SECONDS = 1.0
_GRACE_SECONDS = 5.0
_MAPPED = 100_000
_PENDING = 4
"""Commits' worth of finished looks, by number or by bytes, that may wait; beyond it nothing new is begun."""


@dataclass(frozen=True, slots=True)
class CrawlLimits:
    """When a crawl is over: after so many pages, or when nothing is due (`once`)."""

    pages: int | None = None
    once: bool = False

    def remaining(self, fetched: int) -> CrawlLimits:
        """What is left of the limits after so many pages."""
        return self if self.pages is None else replace(self, pages=max(0, self.pages - fetched))


class Agent:
    """Crawls until it is stopped or its limits are reached. Everything durable is in the archive."""

    def __init__(
        self,
        archive: Archive,
        visitor: Visitor,
        frontier: Frontier,
        queue: CatalogQueue,
        robots: RobotsCache,
        policy: RevisitPolicy,
        select: Callable[[], CrawlSelection],
        manner: LookOptions,
        gate: AddressGate | None = None,
        lease_manager: LeaseManager | None = None,
        pause_journal: PauseJournal | None = None,
    ) -> None:
        self._archive = archive
        self._visitor = visitor
        self._frontier = frontier
        self._robots = robots
        self._manner = manner
        self._gate = gate
        self._lease_manager = lease_manager
        self._pause_journal = pause_journal
        self._decisions = CrawlDecisions(archive.settings.crawl)
        self._done = PendingLooks(visitor, self._decisions, manner)
        self._committer = BatchCommitter(
            archive, visitor, frontier, queue, policy, select, self._decisions, lease_manager
        )
        self._mapped: set[str] = set()
        self._listed: list[NewUrl] = []
        self._addresses: dict[str, str] = {}
        self._settings = archive.settings.crawl
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: BaseException | None = None
        self._wake = asyncio.Event()
        self._stopping = False
        self._limits = CrawlLimits()
        self.figures = self._committer.figures

    def stop(self) -> None:
        """Begins nothing new; what is under way is finished and recorded."""
        self._stopping = True
        self._wake.set()

    async def run(
        self, limits: CrawlLimits, progress: Callable[[CrawlStats], None] = lambda figures: None
    ) -> CrawlStats:
        """Works until the end; returns when everything is recorded."""
        self._limits = limits
        try:
            return await self._run(progress)
        finally:
            # Whoever fails must not go on asking hosts that are no longer its own.
            for task in self._tasks:
                task.cancel()

    async def _run(self, progress: Callable[[CrawlStats], None]) -> CrawlStats:
        started = committed = time.monotonic()
        while True:
            self._tend()
            self._begin()
            if self._stopping or self._over():
                break
            await self._wait(committed)
            self.figures.seconds = time.monotonic() - started
            if self._done.is_due:
                self._done.work()
            if self._must_commit(committed):
                self._commit()
                committed = time.monotonic()
                progress(self.figures)
        await self._settle()
        await self._commit_all()
        self.figures.seconds = time.monotonic() - started
        progress(self.figures)
        return self.figures

    def _tend(self) -> None:
        """Keeps the leases, and does not let a look fail in silence."""
        if self._failed is not None:
            raise self._failed
        if self._lease_manager is not None:
            self._lease_manager.tend(self._frontier, self._now())

    async def _commit_all(self) -> None:
        """What is left, as long as that takes."""
        self._commit()
        while self._committer.is_waiting:
            await asyncio.sleep(RETRY_SECONDS)
            self._tend()
            self._commit()

    async def _settle(self) -> None:
        """Lets what is under way end soon; what does not is given up and stays planned."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_GRACE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _begin(self) -> None:
        """Starts as many looks as manners, back-pressure and limits allow."""
        while (ticket := self._next(len(self._tasks))) is not None:
            task = asyncio.ensure_future(self._work(ticket))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _next(self, under_way: int) -> Ticket | None:
        """A URL to look at now, beside so many looks."""
        return self._frontier.take(self._now()) if self._has_room(under_way, self._limits) else None

    async def _work(self, ticket: Ticket) -> None:
        """One look after the other while any host is ready: tasks and turns of the loop are not paid for by the page.

        Ends where nobody was asked, so that looks which wait for nothing do not keep others waiting.
        """
        while await self._visit(ticket):
            following = self._next(len(self._tasks) - 1)
            if following is None:
                return
            if self._done.is_due or len(self._done) >= BATCH or self._leaves_a_host(ticket, following):
                self._wake.set()
            ticket = following

    def _leaves_a_host(self, ticket: Ticket, following: Ticket) -> bool:
        """Whether the host looked at before may be ready, now or soon, with nobody to turn to it."""
        return following.host_id != ticket.host_id and len(self._tasks) < self._settings.concurrency

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failed = task.exception()
        self._wake.set()

    def _has_room(self, under_way: int, limits: CrawlLimits) -> bool:
        """The one predicate of back-pressure."""
        left = limits.pages is None or self.figures.fetched + under_way + len(self._done) < limits.pages
        return (
            left
            and not self._stopping
            and not self._committer.is_waiting
            and under_way < self._settings.concurrency
            and len(self._done) < _PENDING * BATCH
            and self._done.held < _PENDING * HEAVY
        )

    def _over(self) -> bool:
        if self._tasks:
            return False
        limits = self._limits
        if self._stopping or (limits.pages is not None and self.figures.fetched + len(self._done) >= limits.pages):
            return True
        # What is not yet recorded may bring new links, so it is recorded before the question is asked.
        if self._done and self._goes_on():
            return False
        if self._done or self._committer.is_waiting:
            self._commit()
            return False
        return limits.once and self._nothing_due()

    def _goes_on(self) -> bool:
        """Whether an agent of a fleet has more to fetch before its next commit is due anyway."""
        ready = self._frontier.next_ready(self._now()) if self._lease_manager is not None else None
        return ready is not None and (ready - self._now()) / 1000 < self._settings.commit_every

    def _nothing_due(self) -> bool:
        """Of a fleet nobody leaves while anything is due: whoever is left takes over what others drop."""
        if self._frontier.waits(self._now()):
            return False
        return self._lease_manager is None or self._lease_manager.finished(self._now())

    async def _wait(self, committed: float) -> None:
        """Until a look ends, a host is ready, or a commit is due."""
        pause = self._commit_pause() - (time.monotonic() - committed) if self._done else _IDLE_SECONDS
        ready = self._frontier.next_ready(self._now()) if self._has_room(len(self._tasks), CrawlLimits()) else None
        if ready is not None:
            pause = min(pause, (ready - self._now()) / 1000)
        self._wake.clear()
        if pause > 0:
            # What `wait_for` does, without a task of its own for every page.
            alarm = asyncio.get_running_loop().call_later(pause, self._wake.set)
            try:
                await self._wake.wait()
            finally:
                alarm.cancel()
        else:
            await asyncio.sleep(0)

    def _must_commit(self, committed: float) -> bool:
        if self._committer.is_waiting:
            return time.monotonic() >= self._committer.retry_at
        if len(self._done) >= BATCH or self._done.held >= HEAVY:
            return True
        return bool(self._done) and time.monotonic() - committed >= self._commit_pause()

    def _commit_pause(self) -> float:
        """Seconds between two commits: what is acknowledged is durable, and what is not is fetched again."""
        waits = self._lease_manager is not None and len(self._done) < _FEW
        return self._settings.commit_every * (2 if waits else 1)

    async def _visit(self, ticket: Ticket) -> bool:
        """Whether the host was asked."""
        if not self._is_ours(ticket):
            return False
        robots = self._robots.known(ticket.url) or await self._robots.of(ticket.url)
        if robots is not None and not self._meets(ticket, robots.ip):
            return False
        if robots is not None and not robots.allowed(ticket.url):
            return self._finish(ticket, robots, None, self._refused(ticket.url, "robots.txt does not allow it"))
        if not self._decisions.fetches(ticket.url, ticket.host, ticket.depth):
            return self._finish(ticket, robots, None, self._refused(ticket.url, "crawl.fetch_if does not allow it"))
        if self._gate is not None:
            await self._turn(self._gate, ticket.host)
            if not self._is_ours(ticket):
                return False
        pause = self._least_pause(robots)
        if self._pause_journal is not None and pause:
            self._pause_journal.begins(ticket.host, self._frontier.address_of(ticket.host_id), self._now(), pause)
        # A URL that had no version when it was queued needs no question about its last one.
        known = known_version(self._archive, ticket.url) if ticket.known else None
        return self._finish(ticket, robots, known, await self._visitor.ask(ticket.url, known, self._manner))

    def _finish(self, ticket: Ticket, robots: Robots | None, known: KnownVersion | None, response: Response) -> bool:
        """Gives the host free; the answer is read later. Whether the host was asked."""
        self._read_sitemaps(ticket.url, robots)
        delay = robots.crawl_delay if robots is not None else None
        returned = self._returned(response, delay, asked=not is_refused(response))
        facts = self._frontier.give_back(ticket, returned)
        if self._pause_journal is not None and returned.asked:
            self._pause_journal.ended(ticket.host, facts, returned.finished)
        if self._gate is not None and response.ip:
            self._addresses[ticket.host] = response.ip
        self._done.add(PendingLook(ticket, response, known, returned, facts))
        return returned.asked

    def _is_ours(self, ticket: Ticket) -> bool:
        """Right before the host is asked: False, and the ticket is void, when its lease may be over."""
        if self._lease_manager is None or self._lease_manager.safe(ticket, self._now()):
            return True
        self._hand_back(ticket)
        self._frontier.drop_host(ticket.host_id)
        self._frontier.notice([ticket.host_id])
        return False

    def _hand_back(self, ticket: Ticket) -> None:
        """Nobody was asked; the URL waits as before."""
        self._frontier.give_back(ticket, FetchResult(self._now(), asked=False))
        self._frontier.recorded([ticket])
        self._wake.set()

    def _meets(self, ticket: Ticket, ip: str) -> bool:
        """At the first meeting with a host: False, and the ticket is void, while its address needs a pause."""
        if self._gate is not None and ip:
            self._addresses.setdefault(ticket.host, ip)
        if self._frontier.found_at(ticket.host_id, ip, self._now()):
            return True
        self._hand_back(ticket)
        self._frontier.notice([ticket.host_id])
        return False

    async def _turn(self, gate: AddressGate, host: str) -> None:
        """Waits while another agent has just asked the same address."""
        address = self._addresses.get(host, host)
        wait = gate.reserve(address, self._now(), round(self._settings.delay * 1000))
        if wait > 0:
            await asyncio.sleep(wait / 1000)

    def _least_pause(self, robots: Robots | None) -> int:
        """Milliseconds that a host is left alone after any fetch."""
        asked = robots.crawl_delay if robots is not None else None
        return round(max(self._settings.delay, asked or 0.0) * 1000)

    def _read_sitemaps(self, url: str, robots: Robots | None) -> None:
        """Plans the sitemaps of a host when it is met for the first time."""
        origin = url[: url.index("/", 8)]
        if not self._settings.sitemaps or origin in self._mapped or len(self._mapped) >= _MAPPED:
            return
        self._mapped.add(origin)
        named = robots.sitemaps if robots is not None else ()
        for address in named or (origin + "/sitemap.xml",):
            target = join(origin + "/", address)
            if target is not None:
                self._listed.append(NewUrl(url_key(target), target, host_of(target), 0))

    def _refused(self, url: str, why: str) -> Response:
        return Response(url, url, 0, (), b"", self._archive.clock(), failure=Failure(FailureKind.ROBOTS, why))

    def _returned(self, response: Response, delay: float | None, *, asked: bool) -> FetchResult:
        now = self._archive.clock()
        wait = retry_after(response, now) or 0.0
        return FetchResult(
            to_millis(now), response.seconds, response.status, response.ip, wait, response.wire_bytes, delay, asked
        )

    def _now(self) -> int:
        return to_millis(self._archive.clock())

    def _commit(self) -> None:
        """Records finished looks and all that follows from them, in one transaction."""
        listed, self._listed = self._listed, []
        self._committer.commit(self._done.take(), listed)
