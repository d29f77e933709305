"""One crawling process: takes URLs from the frontier, fetches them, records batches.

The way of a page: `Frontier.take` -> `Visitor.turn` and `ask` -> `Frontier.give_back` -> `PendingLooks`
(`Visitor.judge`) -> `BatchCommitter` (`RevisitPlanner`, then `Archive.record`, which updates the frontier in the same
transaction).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from letopis.archive import Archive
from letopis.archive.queues import FrontierQueue, NewUrl, crawl_plans
from letopis.crawl.commits import RETRY_SECONDS, BatchCommitter, CrawlPause, CrawlStats, PendingLook, PendingLooks
from letopis.crawl.selection import CrawlDecisions, CrawlSelection, PlanLimits, PrivateReach, plan_scopes
from letopis.fetch.page_steps import PageStep, parse_steps
from letopis.frontier.frontier import Frontier
from letopis.frontier.leases import LeaseManager
from letopis.frontier.queue import Ticket
from letopis.look.known import KnownVersion, known_version
from letopis.look.politeness import fetch_result
from letopis.look.robots import Robots
from letopis.look.visitor import LookOptions, NoTurn, Patience, VisitAnswer, Visitor, turn_to_record
from letopis.model import Response, from_millis, to_millis
from letopis.schedule.policies import RevisitPolicy
from letopis.tuples import NamedTuple
from letopis.urls import host as host_of
from letopis.urls import join, url_key
from letopis.urls.scope import Scope

BATCH = 512
"""Most looks in one commit."""
HEAVY = 64 * 1024 * 1024
"""Bytes of bodies after which a commit waits no longer."""
_FEW = 64
"""Looks for which an agent of a fleet waits twice `crawl.commit_every`: a commit takes the turn of all others."""
_IDLE_SECONDS = 1.0
_SHORT_PAUSE = 5_000
"""Milliseconds without anything to fetch that are not worth telling."""
_GRACE_SECONDS = 5.0
_MAPPED = 100_000
_PATIENCE = Patience(5.0)
"""A host whose turn comes later than that is put off, so that it does not keep others waiting."""
_PENDING = 4
"""Commits' worth of finished looks, by number or by bytes, that may wait; beyond it nothing new is begun."""
_READ_AGAIN_SECONDS = 5.0
"""Seconds after which plans that want whole pages are asked for again."""


@dataclass(frozen=True, slots=True)
class CrawlLimits:
    """When a crawl ends: after so many pages, bytes or seconds, or when nothing is due.

    A crawl limited by pages or bytes also ends when nothing is due, because the next visit to a page may be a year
    away. Bytes are counted on the network; fetches in progress when they are used up are finished and recorded.
    """

    pages: int | None = None
    once: bool = False
    bytes: int | None = None
    seconds: float | None = None

    @property
    def ends_idle(self) -> bool:
        """Whether it is over when nothing is due."""
        return self.once or self.pages is not None or self.bytes is not None

    def remaining(self, done: CrawlStats) -> CrawlLimits:
        """What is left of the limits after what was done."""
        return replace(
            self,
            pages=None if self.pages is None else max(0, self.pages - done.fetched),
            bytes=None if self.bytes is None else max(0, self.bytes - done.bytes),
            seconds=None if self.seconds is None else max(0.0, self.seconds - done.seconds),
        )

    def shared(self, part: int, parts: int) -> CrawlLimits:
        """The share of one of several agents that work at the same time."""
        return replace(self, pages=_share(self.pages, part, parts), bytes=_share(self.bytes, part, parts))

    def reached(self, pages: int, taken: int, seconds: float) -> bool:
        """Whether nothing may be begun after so many pages, bytes and seconds."""
        return (
            (self.pages is not None and pages >= self.pages)
            or (self.bytes is not None and taken >= self.bytes)
            or (self.seconds is not None and seconds >= self.seconds)
        )


def _share(whole: int | None, part: int, parts: int) -> int | None:
    return None if whole is None else max(1, whole // parts + (part < whole % parts))


class CaptureMode(NamedTuple):
    """How a crawl captures a page: in a browser, after steps on it, or with its requisites."""

    browser: bool = False
    requisites: bool = False
    steps: tuple[PageStep, ...] = ()


_PLAIN = CaptureMode()


class WholePages:
    """Which pages a crawl captures whole: all of a run with that option, or those in the scope of a plan with it."""

    def __init__(self, archive: Archive, capture: CaptureMode, *, goes_on: bool) -> None:
        self._archive = archive
        self._capture_mode = capture
        self._goes_on = goes_on
        self._read = -_READ_AGAIN_SECONDS
        self._plans: list[tuple[CaptureMode, tuple[Scope, ...]]] = []

    def of(self, url: str) -> CaptureMode:
        """How a page is looked at."""
        if not self._goes_on or self._capture_mode != _PLAIN:
            return self._capture_mode
        fitting = (capture for capture, scopes in self._wished() if any(scope.allows(url) for scope in scopes))
        return next(fitting, _PLAIN)

    def _wished(self) -> list[tuple[CaptureMode, tuple[Scope, ...]]]:
        """Plans that want whole pages, those with a browser first; asked for again now and then."""
        if time.monotonic() - self._read >= _READ_AGAIN_SECONDS:
            wished = [plan for plan in crawl_plans(self._archive) if plan.browser or plan.requisites]
            wished.sort(key=lambda plan: not plan.browser)
            self._plans = [
                (
                    CaptureMode(plan.browser, plan.requisites, parse_steps(plan.steps)),
                    plan_scopes(self._archive, [plan]),
                )
                for plan in wished
            ]
            self._read = time.monotonic()
        return self._plans


class Agent:
    """Crawls until it is stopped or reaches its limits. All durable state is in the archive."""

    def __init__(
        self,
        archive: Archive,
        visitor: Visitor,
        frontier: Frontier,
        queue: FrontierQueue,
        policy: RevisitPolicy,
        select: Callable[[], CrawlSelection],
        options: LookOptions,
        lease_manager: LeaseManager | None = None,
        reach: PrivateReach | None = None,
        limit: Callable[[], PlanLimits] | None = None,
        whole: WholePages | None = None,
    ) -> None:
        """Without `reach` no private address is asked; without `limit` no crawl of the queue is bounded by number.

        Without `whole` pages come without their resources.
        """
        self._whole = whole
        self._archive = archive
        self._visitor = visitor
        self._frontier = frontier
        self._options = options
        self._guarded = options._replace(private_ok=False)
        self._reach = reach
        self._lease_manager = lease_manager
        self._decisions = CrawlDecisions(archive.settings.crawl)
        self._done = PendingLooks(visitor, self._decisions, options)
        self._committer = BatchCommitter(
            archive, visitor, frontier, queue, policy, select, self._decisions, lease_manager, limit
        )
        self._mapped: set[str] = set()
        self._listed: list[NewUrl] = []
        self._settings = archive.settings.crawl
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: BaseException | None = None
        self._wake = asyncio.Event()
        self._stopping = False
        self._limits = CrawlLimits()
        self._started = time.monotonic()
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
        committed = self._started = time.monotonic()
        while True:
            self._tend()
            self._begin()
            if self._stopping or await self._over():
                break
            self._note_pause(progress)
            await self._wait(committed)
            self.figures.seconds = time.monotonic() - self._started
            if self._done.is_due:
                self._done.work()
            if self._must_commit(committed):
                async with turn_to_record(self._archive):
                    self._commit()
                committed = time.monotonic()
                progress(self.figures)
        await self._settle()
        await self._commit_all()
        self.figures.seconds = time.monotonic() - self._started
        self.figures.pause = None
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
        async with turn_to_record(self._archive):
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
        """Starts as many looks as politeness, back-pressure and limits allow."""
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
        """Whether the host of the ticket before may be ready, now or soon, with nobody to turn to it."""
        return following.host_id != ticket.host_id and len(self._tasks) < self._settings.concurrency

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failed = task.exception()
        self._wake.set()

    def _has_room(self, under_way: int, limits: CrawlLimits) -> bool:
        """The one predicate of back-pressure."""
        return (
            not self._is_used_up(limits, under_way)
            and not self._stopping
            and not self._committer.is_waiting
            and under_way < self._settings.concurrency
            and len(self._done) < _PENDING * BATCH
            and self._done.held < _PENDING * HEAVY
        )

    def _is_used_up(self, limits: CrawlLimits, under_way: int = 0) -> bool:
        """Whether nothing more may be begun beside so many looks; those that wait for their commit count too."""
        figures, seconds = self.figures, time.monotonic() - self._started
        return limits.reached(figures.fetched + under_way + len(self._done), figures.bytes + self._done.held, seconds)

    async def _over(self) -> bool:
        if self._tasks:
            return False
        limits = self._limits
        if self._is_used_up(limits) and self._done:
            async with turn_to_record(self._archive):
                self._commit()  # some of it may have been asked of nobody, and counts for nothing
        if self._stopping or self._is_used_up(limits):
            return True
        # What is not yet recorded may bring new links, so it is recorded before the question is asked.
        if self._done and self._goes_on():
            return False
        if self._done or self._committer.is_waiting:
            async with turn_to_record(self._archive):
                self._commit()
            return False
        return limits.ends_idle and self._nothing_due()

    def _note_pause(self, progress: Callable[[CrawlStats], None]) -> None:
        """Tells what is waited for when that is new, so that nobody takes an idle crawl for a dead one."""
        pause = None if self._tasks or self._done or self._committer.is_waiting else self._pause()
        if pause != self.figures.pause:
            self.figures.pause = pause
            progress(self.figures)

    def _pause(self) -> CrawlPause | None:
        """None while something is ready soon."""
        now = self._now()
        ready = self._frontier.next_ready(now)
        if ready is not None and ready - now < _SHORT_PAUSE:
            return self.figures.pause
        return CrawlPause(None if ready is None else from_millis(ready), self._frontier.waits(now))

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
        if self._limits.seconds is not None:
            pause = min(pause, max(0.0, self._started + self._limits.seconds - time.monotonic()))
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
        if setting := self._decisions.refusing_setting(ticket.url, ticket.host, ticket.depth):
            refused = self._visitor.refused_by_setting(ticket.url, setting)
            return self._finish(ticket, None, None, self._not_asked(refused, None))
        if self._committer.is_used_up(ticket.url):
            return self._finish(ticket, None, None, self._not_asked(self._visitor.refused_by_limit(ticket.url), None))
        options = self._options_for(ticket.url)
        robots = self._visitor.known_robots(ticket.url, options) or await self._visitor.robots_of(ticket.url, options)
        if robots is not None and not self._meets(ticket, robots.ip):
            return False
        refusal = self._visitor.refusal(ticket.url, robots)
        if refusal is not None:
            return self._finish(ticket, robots, None, self._not_asked(refusal, robots))
        if not await self._takes_turn(ticket, robots):
            return False
        # A URL that had no version when it was queued needs no question about its last one.
        known = known_version(self._archive, ticket.url) if ticket.known else None
        answer = await self._visitor.ask(ticket.url, known, options, robots, _PATIENCE, ticket.host)
        return self._finish(ticket, robots, known, answer)

    def _options_for(self, url: str) -> LookOptions:
        """The queue is that of everybody's crawls, so what may be asked, and how, is decided URL by URL."""
        options = self._options if self._reach is not None and self._reach.allows(url) else self._guarded
        wish = self._whole.of(url) if self._whole is not None else None
        if wish is None or (options.browser, options.requisites, options.steps) == wish:
            return options
        return options._replace(**wish._asdict())

    async def _takes_turn(self, ticket: Ticket, robots: Robots | None) -> bool:
        """Waits while others are at the host or at its address; False, and the ticket is void, when that takes long."""
        try:
            await self._visitor.turn(ticket.host, robots, _PATIENCE, self._frontier.address_of(ticket.host_id))
        except NoTurn as later:
            self._put_off(ticket, later.until)
            return False
        if self._is_ours(ticket):
            return True
        self._visitor.give_up_turn(ticket.host)
        return False

    def _finish(self, ticket: Ticket, robots: Robots | None, known: KnownVersion | None, answer: VisitAnswer) -> bool:
        """Gives the host free; the answer is read later. Whether the host was asked."""
        if answer.result.asked:
            self._committer.took(ticket.url, answer.response.wire_bytes)
            self._read_sitemaps(ticket.url, robots)
        facts = self._frontier.give_back(ticket, answer.result)
        self._done.add(PendingLook(ticket, answer.response, known, answer.result, facts))
        return answer.result.asked

    def _not_asked(self, refusal: Response, robots: Robots | None) -> VisitAnswer:
        delay = robots.crawl_delay if robots is not None else None
        return VisitAnswer(refusal, fetch_result(refusal, delay, self._archive.clock())._replace(asked=False))

    def _is_ours(self, ticket: Ticket) -> bool:
        """Right before the host is asked: False, and the ticket is void, when its lease may be over."""
        if self._lease_manager is None or self._lease_manager.safe(ticket, self._now()):
            return True
        self._put_off(ticket)
        self._frontier.drop_host(ticket.host_id)
        self._frontier.notice([ticket.host_id])
        return False

    def _put_off(self, ticket: Ticket, until: int = 0) -> None:
        """Nobody was asked; the URL waits as before."""
        self._frontier.postpone(ticket, self._now(), until)
        self._wake.set()

    def _meets(self, ticket: Ticket, ip: str) -> bool:
        """At the first meeting with a host: False, and the ticket is void, while its address needs a pause."""
        known = self._frontier.address_of(ticket.host_id)
        if known or self._frontier.found_at(ticket.host_id, ip, self._now()):
            return True
        self._put_off(ticket)
        return False

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

    def _now(self) -> int:
        return to_millis(self._archive.clock())

    def _commit(self) -> None:
        """Records finished looks and all that follows from them, in one transaction."""
        listed, self._listed = self._listed, []
        self._committer.commit(self._done.take(), listed)
