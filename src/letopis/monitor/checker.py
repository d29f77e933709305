"""Checks of one or many URLs: from the record if that is recent enough, else from the web."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from letopis.archive import Archive, RecordedCapture
from letopis.archive.observers import ObserverMarks, ObserverState, last_checks_of
from letopis.archive.page_memory import content_of_version
from letopis.errors import UsageError
from letopis.fetch.browser import BrowserFetcher
from letopis.fetch.client import Client, DeferredTransport, limits_of
from letopis.fetch.page_steps import PageStep
from letopis.lazy import lazy
from letopis.look.known import KnownVersion, check_of_look, known_versions
from letopis.look.politeness import Politeness, PolitenessBook, open_book, tell_once
from letopis.look.visitor import LookOptions, NoTurn, Patience, Visitor, WebClient, turn_to_record, user_agent
from letopis.model import Check, Headers, Observation, Outcome, to_millis
from letopis.tuples import NamedTuple
from letopis.urls import host as host_of

if TYPE_CHECKING:
    from letopis.fetch import curl
else:
    curl = lazy("letopis.fetch.curl")

BATCH = 256
"""Looks that share one durable commit at most."""
_PORTION_SECONDS = 1.0
"""How long a look waits for others that are recorded with it."""


class CheckOptions(NamedTuple):
    """How a check is made.

    An empty `uid` means no observer: no mark is read or moved. `private_ok` follows from `fetch.private`
    (`letopis.fetch.private_ok`). `browser` renders pages after `steps` on them; `head` then has no effect.
    `requisites` also captures what a page refers to. `large` stores documents over the size limit, `force` too, which
    asks without conditions. `headers` are sent with the requests for pages, `logins` with those for one URL each. A
    URL that gets no turn at its host within `patience` seconds, or only after `stopped` returned true, is not
    requested. `waiting` gets a sentence about a host that has to be waited for, `recorded` the number of recorded
    checks.
    """

    uid: str = "default"
    now: bool = False
    force: bool = False
    large: bool = False
    head: bool = False
    private_ok: bool = True
    browser: bool = False
    requisites: bool = False
    steps: tuple[PageStep, ...] = ()
    headers: Headers = ()
    logins: Mapping[str, Headers] = MappingProxyType({})
    patience: float = 30.0
    waiting: Callable[[str], None] = lambda sentence: None
    stopped: Callable[[], bool] | None = None
    recorded: Callable[[int], None] = lambda looks: None


class Checker:
    """Checks URLs; every check is recorded before it is returned."""

    def __init__(
        self, archive: Archive, client: WebClient, book: PolitenessBook, browser: BrowserFetcher | None = None
    ) -> None:
        self._archive = archive
        self._visitor = Visitor(archive, client, book, browser=browser)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def check(
        self, urls: Sequence[str], options: CheckOptions, progress: Callable[[int], None] = lambda done: None
    ) -> list[Check]:
        """One answer a URL in its normal form, in the order of asking; hosts side by side, one connection each.

        A URL whose turn did not come in time was not asked: its answer says so and is not recorded.
        """
        if options.browser and options.logins:
            raise UsageError("a browser sends its own headers; leave out the name and password, or the browser")
        distinct = list(dict.fromkeys(urls))
        answers = {} if options.now else self._from_record(distinct, options)
        due = [url for url in distinct if url not in answers]
        for start in range(0, len(due), BATCH):
            batch = due[start : start + BATCH]
            found, late = await self._check_batch(batch, options, math.inf)
            now = self._archive.clock()
            answers |= {url: Check(url, url, now, None, 0, Outcome.REFUSED, error=str(late[url])) for url in late}
            answers |= found
            progress(len(batch))
        return [answers[url] for url in urls]

    async def check_some(self, urls: Sequence[str], options: CheckOptions, seconds: float) -> dict[str, Check]:
        """The same for whoever comes again: URLs whose turn does not come within some seconds are left out."""
        distinct = list(dict.fromkeys(urls))
        answers = {} if options.now else self._from_record(distinct, options)
        due = [url for url in distinct if url not in answers]
        found, _ = await self._check_batch(due, options, asyncio.get_running_loop().time() + seconds)
        return answers | found

    async def _check_batch(
        self, urls: Sequence[str], options: CheckOptions, deadline: float
    ) -> tuple[dict[str, Check], dict[str, NoTurn]]:
        """Looks and URLs that were not asked. What is known is read for all of them at once.

        Looks are recorded as they come, in portions: hosts with pauses make a batch long.
        """
        known = known_versions(self._archive, urls)
        marks = ObserverMarks(self._archive, options.uid)
        never_stored = last_checks_of(self._archive, [url for url in urls if url not in known]).values()
        seen = marks.seen([*(one.resource for one in known.values()), *(one.resource for one in never_stored)])
        answers, late = dict[str, Check](), dict[str, NoTurn]()
        async for portion in self._portions(urls, known, options, deadline):
            late |= {url: look for url, look in portion.items() if isinstance(look, NoTurn)}
            looks = {url: look for url, look in portion.items() if not isinstance(look, NoTurn)}
            done = await self._recorded_looks(list(looks.values()), marks)
            options.recorded(len(done))
            for (url, look), row in zip(looks.items(), done, strict=True):
                news = self._news(url, seen.get(row.resource), row.version, row.outcome)
                check = check_of_look(look, row, known.get(url), news)
                answers[url] = check or self._recorded(url)._replace(changed_for_you=news)
        return answers, late

    async def _recorded_looks(self, looks: list[Observation], marks: ObserverMarks) -> Sequence[RecordedCapture]:
        if not looks:
            return ()
        async with turn_to_record(self._archive):
            return self._visitor.record(looks, marks.moving_with(looks))

    def _from_record(self, urls: Sequence[str], options: CheckOptions) -> dict[str, Check]:
        """Inside the minimum interval the last check is the answer, but no refusal, nor "too large" when forced."""
        archive, marks = self._archive, ObserverMarks(self._archive, options.uid)
        now, interval = to_millis(archive.clock()), archive.settings.monitor.min_interval * 1000
        rows = last_checks_of(archive, urls).values()
        fresh = [row for row in rows if row.time is not None and 0 <= now - row.time < interval]
        seen = marks.seen([row.resource for row in fresh]) if fresh else {}
        answers: dict[str, Check] = {}
        again = (Outcome.REFUSED, Outcome.TOO_LARGE) if options.force or options.large else (Outcome.REFUSED,)
        for row in fresh:
            check = self._recorded(row.url)
            if check.outcome not in again:
                news = self._news(row.url, seen.get(row.resource), row.newest, check.outcome)
                answers[row.url] = check._replace(cached=True, changed_for_you=news)
        marks.move_to_newest(url for url, check in answers.items() if check.available)
        return answers

    async def _portions(
        self, urls: Sequence[str], known: Mapping[str, KnownVersion], options: CheckOptions, deadline: float
    ) -> AsyncIterator[dict[str, Observation | NoTurn]]:
        """What was found within a second, again and again until all URLs were looked at."""
        found = dict[str, Observation | NoTurn]()
        looking = asyncio.ensure_future(self._look_all(urls, known, options, deadline, found))
        try:
            over = False
            while not over:
                over = looking.done()  # asked before what was found is taken: more may come while that is recorded
                if not over:
                    await asyncio.wait((looking,), timeout=_PORTION_SECONDS)
                if portion := dict(found):
                    found.clear()
                    yield portion
        finally:
            looking.cancel()
        looking.result()

    async def _look_all(
        self, urls: Sequence[str], known: Mapping[str, KnownVersion], options: CheckOptions, deadline: float,
        found: dict[str, Observation | NoTurn],
    ) -> None:  # fmt: skip
        """Some hosts at a time, each by one worker that asks for one page after the other.

        Looks of this process at one host come one after the other.
        """
        looking = LookOptions(
            limits_of(self._archive.settings.fetch), options.private_ok, head=options.head, force=options.force,
            large=options.large or options.force, browser=options.browser, requisites=options.requisites,
            steps=options.steps, headers=options.headers,
        )  # fmt: skip
        hosts: dict[str, list[str]] = {}
        for url in urls:
            hosts.setdefault(host_of(url), []).append(url)
        waiting, clock = iter(hosts.items()), asyncio.get_running_loop().time
        tell = tell_once(options.waiting, options.patience, self._archive.clock)
        whole = Patience(options.patience, options.stopped, tell)

        async def work() -> None:
            for host, part in waiting:
                lock = self._locks.setdefault(host, asyncio.Lock())
                for url in part:
                    if options.stopped is not None and options.stopped():
                        found[url] = NoTurn(host, to_millis(self._archive.clock()))
                        continue
                    left = deadline - clock()
                    patience = whole if left >= whole.seconds else whole._replace(seconds=left)
                    asked = looking._replace(headers=looking.headers + options.logins.get(url, ()))
                    async with lock:
                        try:
                            found[url] = await self._visitor.look(url, known.get(url), asked, patience, host)
                        except NoTurn as error:
                            found[url] = error

        await asyncio.gather(*(work() for _ in range(min(len(hosts), self._archive.settings.monitor.concurrency))))

    def _recorded(self, url: str) -> Check:
        last = self._archive.answers.last_check(url)
        assert last is not None, "a recorded look has a check"
        return last

    def _news(self, url: str, before: ObserverState | None, current: int | None, outcome: Outcome) -> bool | None:
        """Whether it changed for an observer, None at the first look. A, B, A since the last one is no change.

        Of a document that is too large, whether its header named another one since; None where it says nothing.
        """
        if before is None or not outcome.available:
            return None
        if outcome is Outcome.TOO_LARGE:
            since = self._archive.answers.checks(url, before.looked + 1)
            named = {check.meaningful for check in since if check.outcome is Outcome.TOO_LARGE}
            return True if True in named else None if None in named else False
        if before.version == current:
            return False
        return content_of_version(self._archive, before.version) != content_of_version(self._archive, current)


@asynccontextmanager
async def open_checker(archive: Archive) -> AsyncIterator[Checker]:
    """A checker with its own connections and the archive's cookies."""
    archive.require_writable()
    settings = archive.settings

    def transport_with_cookies() -> curl.CurlTransport:
        jar = curl.CookieJar(archive.folder / "cookies.txt") if settings.fetch.cookies else None
        return curl.CurlTransport(settings.fetch, clock=archive.clock, jar=jar)

    transport = DeferredTransport(transport_with_cookies)
    client = Client(transport, settings.fetch, user_agent=user_agent(archive), clock=archive.clock)
    browser = BrowserFetcher(client, executable=settings.fetch.chromium, settings=settings.capture)
    book = open_book(archive, Politeness(delay=settings.monitor.delay, ip_delay=0.0), crawls=False)
    try:
        yield Checker(archive, client, book, browser)
    finally:
        await browser.close()
        await transport.close()
        book.close()
