"""Checks pages: whether a request is allowed, whose turn it is, what the answer is, and what it means.

Everything that requests pages from the web does it here: crawls, checks, watches and downloads of jobs differ in the
queue they take URLs from and in what they do with the checks. `robots_of`, `turn`, `ask` and `judge` are the steps of a
check, `look` is all of them; `record` makes checks durable.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

from letopis.archive import Archive, RecordedCapture, identify
from letopis.archive.page_memory import PageMemory, RecordExtension, in_one_transaction
from letopis.errors import Damaged, NotFound
from letopis.fetch.client import BetweenRequests
from letopis.lazy import lazy
from letopis.look.known import (
    KnownVersion,
    header_change,
    header_suffices,
    known_versions,
    validators_of,
    wrong_digest_fields,
)
from letopis.look.politeness import FetchResult, PolitenessBook, fetch_result, is_refused
from letopis.look.resources import PageResources, RecentResources, load_requisites
from letopis.model import (
    OVER_LIMIT,
    Change,
    Failure,
    FailureKind,
    Headers,
    Limits,
    Link,
    LinkType,
    Observation,
    Outcome,
    Page,
    Request,
    Response,
    SetMember,
    WholePage,
    from_millis,
    rfc3339,
    to_millis,
)
from letopis.tuples import NamedTuple
from letopis.urls import host as host_of
from letopis.urls import join

if TYPE_CHECKING:
    from letopis.archive.link_cache import LinkCacheWriter
    from letopis.fetch.page_rendering import AskResource
    from letopis.fetch.page_steps import PageStep
    from letopis.look import noise
    from letopis.look.robots import Robots, RobotsCache
else:
    # Loading parsers and rules of comparison takes longer than a thousand checks that find nothing new.
    noise = lazy("letopis.look.noise")


_NO_CHANGE = Change(same_bytes=True, same_text=True, meaningful=False)
_STOP_POLL = 0.25
"""Seconds after which a waiting party asks again whether the check is still wanted."""
_LONGEST_WRITE, _WRITE_POLL = 60.0, 0.02
"""Seconds: how long to wait for other writers, and how often to try."""
_DISALLOWED = Failure(
    FailureKind.ROBOTS, "robots.txt of this host does not allow it; a check of this page alone requests it anyway"
)
_RESOURCES_AT_ONCE = 6
"""Parallel requests of a page to one host that demands no pauses, as in browsers."""
_WORTH_TELLING = 1.0
"""Seconds of waiting from which on it is reported."""


class WebClient(Protocol):
    """Sends requests to the web: `letopis.fetch.client.Client`."""

    async def fetch(self, request: Request, between: BetweenRequests | None = None) -> Response:
        """The answer or the failure, never an exception; see `Client.fetch`."""


class Renderer(Protocol):
    """Shows a page as a browser does."""

    async def render(
        self, request: Request, response: Response, ask: AskResource, steps: tuple[PageStep, ...] = ()
    ) -> Response:
        """An answer as it is shown, or the failure, never an exception; `ask` answers requests of the page."""


class LookOptions(NamedTuple):
    """How to check: with which limits, which addresses, how far.

    `head` requests the header first and downloads only what has changed according to it, or what is not known yet.
    `skim` parses new pages only up to their links, except a sample from which is learned what the pages of their host
    have in common. `browser` records pages as a browser shows them, after `steps` on them, without a request for the
    header first. `requisites` also fetches what a page refers to; both bring whole pages. `reread` also reads the links
    of pages that stayed the same. `large` also accepts documents over the size limit. `force` requests without
    conditions, so no 304 and no digest in a header replaces the document. `headers` are sent with the request.
    """

    limits: Limits
    private_ok: bool = True
    follow: bool = True
    head: bool = False
    large: bool = False
    force: bool = False
    skim: bool = False
    browser: bool = False
    reread: bool = False
    requisites: bool = False
    steps: tuple[PageStep, ...] = ()
    headers: Headers = ()


class Patience(NamedTuple):
    """How long a check waits for its turn (seconds), whether it is still wanted, and who is notified that it waits."""

    seconds: float = math.inf
    stopped: Callable[[], bool] | None = None
    waiting: Callable[[str, float, str], None] | None = None


PATIENT = Patience()


class VisitAnswer(NamedTuple):
    """An answer, and what it means for the pauses of its host."""

    response: Response
    result: FetchResult


class NoTurn(Exception):
    """No request is sent: the turn comes too late, at `until`, or the check is no longer wanted."""

    def __init__(self, host: str, until: int, why: str = "") -> None:
        because = f": {why}" if why else ""
        super().__init__(f"{host} is left alone until {rfc3339(from_millis(until))}{because}; try again then")
        self.until = until


class Visitor:
    """Checks URLs for one party, and records the results. For one event loop."""

    def __init__(
        self,
        archive: Archive,
        client: WebClient,
        book: PolitenessBook,
        robots: RobotsCache | None = None,
        browser: Renderer | None = None,
        link_cache: LinkCacheWriter | None = None,
        *,
        reuse: float = 0.0,
    ) -> None:
        """Without `robots` no robots.txt is requested; with `link_cache` the index need not read pages again.

        Resources that were recorded within `reuse` seconds are not requested again.
        """
        self._archive = archive
        self._client = client
        self._book = book
        self._robots = robots
        self._browser = browser
        self._link_cache = link_cache
        self._memory = PageMemory(archive)
        self._reader: noise.PageReader | None = None
        self._recent = RecentResources(reuse)
        self._gates: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def look(
        self, url: str, known: KnownVersion | None, options: LookOptions, patience: Patience = PATIENT, host: str = ""
    ) -> Observation:
        """A whole check; NoTurn if its turn does not come in time. Writes nothing. `host` is that of the URL."""
        robots = await self.robots_of(url, options) if self._robots is not None else None
        if robots is not None and (refusal := self.refusal(url, robots)) is not None:
            return self.judge(refusal, known, options)
        host = host or host_of(url)
        if robots is not None:
            await self.turn(host, robots, patience)
        elif wait := self._book.begin(host, "", 0.0, self._now()):
            await self._wait_for_turn(host, "", 0.0, wait, patience)
        answer = await self.ask(url, known, options, robots, patience, host)
        return self.judge(answer.response, known, options)

    def known_robots(self, url: str, options: LookOptions) -> Robots | None:
        """The rules for a URL's host if that needs no request; None if it does."""
        return self._robots.known(url, private_ok=options.private_ok) if self._robots is not None else None

    async def robots_of(self, url: str, options: LookOptions) -> Robots | None:
        """The rules for a URL's host; None if robots.txt is not obeyed."""
        return await self._robots.of(url, private_ok=options.private_ok) if self._robots is not None else None

    def refusal(self, url: str, robots: Robots | None) -> Response | None:
        """The result if the rules of a host forbid the request."""
        if robots is None or robots.allowed(url):
            return None
        return self._without_asking(url, robots.failure or _DISALLOWED)

    def refused_by_setting(self, url: str, name: str) -> Response:
        """The result if a setting forbids the request."""
        why = f"the setting {name} excludes this address; change it, or check this page alone"
        return self._without_asking(url, Failure(FailureKind.SETTING, why))

    def refused_by_limit(self, url: str) -> Response:
        """The result if a crawl has reached its limit of bytes or time."""
        why = "its crawl has reached its limit of bytes or time; plan it again with a higher limit"
        return self._without_asking(url, Failure(FailureKind.SETTING, why))

    def _without_asking(self, url: str, failure: Failure) -> Response:
        return Response(url, url, 0, (), b"", self._archive.clock(), failure=failure)

    async def turn(self, host: str, robots: Robots | None, patience: Patience = PATIENT, ip: str = "") -> None:
        """Waits until the host may get a request, which must follow: see `ask`. NoTurn if that takes too long.

        `ip` is the address of the host, where it is known.
        """
        crawl_delay = (robots.crawl_delay or 0.0) if robots is not None else 0.0
        ip = ip or (robots.ip if robots is not None else "")
        if wait := self._book.begin(host, ip, crawl_delay, self._now()):
            await self._wait_for_turn(host, ip, crawl_delay, wait, patience)

    async def _wait_for_turn(self, host: str, ip: str, crawl_delay: float, wait: int, patience: Patience) -> None:
        clock = asyncio.get_running_loop().time
        began, tell = clock(), patience.waiting
        while wait:
            waited, left = clock() - began, wait / 1000
            if waited + left > patience.seconds or (patience.stopped is not None and patience.stopped()):
                raise NoTurn(host, self._now() + wait, self._book.reason(host, self._now()))
            if tell is not None and waited + left > _WORTH_TELLING:
                tell(host, left, self._book.reason(host, self._now()))
                tell = None
            await asyncio.sleep(left if patience.stopped is None else min(left, _STOP_POLL))
            if patience.stopped is not None and patience.stopped():
                continue
            wait = self._book.begin(host, ip, crawl_delay, self._now())

    def give_up_turn(self, host: str) -> None:
        """Ends the turn at a host without a request."""
        self._book.end(host, FetchResult(self._now(), asked=False))

    def cut_off(self, host: str) -> None:
        """Ends the turn at a host in the middle of a check: its minimum pause follows."""
        self._book.cut_off(host, self._now())

    async def ask(
        self,
        url: str,
        known: KnownVersion | None,
        options: LookOptions,
        robots: Robots | None = None,
        patience: Patience = PATIENT,
        host: str = "",
    ) -> VisitAnswer:
        """Sends the request in the turn of the URL's host and ends the turn; the caller judges the answer."""
        exchange = _Exchange(self, host or host_of(url), patience)
        try:
            if options.browser or (options.head and known is not None):
                response = await self._exchange(url, known, options, exchange)
            else:
                response = await self._client.fetch(_request(url, known, options), exchange.next_request)
        except BaseException:
            self.cut_off(exchange.host)
            raise
        crawl_delay = robots.crawl_delay if robots is not None else None
        result = fetch_result(response, crawl_delay, self._archive.clock())
        self._book.end(exchange.host, result)
        if response.warnings and not options.browser and (wrong := wrong_digest_fields(response)):
            self._memory.distrust(host_of(response.url), wrong)
        if options.browser or options.requisites:
            response = await self._with_resources(response, options)
            loaded = response.loaded.resources if response.loaded is not None else ()
            result = result._replace(bytes=result.bytes + sum(one.wire_bytes for one in loaded))
        return VisitAnswer(response, result)

    async def _with_resources(self, response: Response, options: LookOptions) -> Response:
        """The whole page of an answer; the turn of its host is over, and each of its requests takes another one."""

        async def ask(request: Request) -> Response:
            return await self._ask_resource(request, options)

        resources = PageResources(self._archive, response, ask, self._recent, private_ok=options.private_ok)
        if options.browser:
            assert self._browser is not None, "rendering pages needs a browser"
            request = _request(response.url, None, options)
            shown = await self._browser.render(request, response, resources.ask, options.steps)
            return shown._replace(loaded=resources.loaded(shown.loaded)) if shown.as_sent is not None else shown
        body = self._body_of(response)
        if not body:
            return response
        await load_requisites(resources, response, body, options.limits, self._archive.settings.capture)
        return response._replace(loaded=resources.loaded())

    def _body_of(self, response: Response) -> bytes:
        """The page, which may be the version that an answer without a body refers to; empty if there is none."""
        if response.failure is None and (response.status == 304 or response.skipped):
            try:
                return self._archive.get(response.url).body
            except (Damaged, NotFound):
                return b""
        return response.body if response.available and response.status < 300 else b""

    async def _ask_resource(self, request: Request, options: LookOptions) -> Response:
        """One request of a page, in a separate turn and as robots.txt allows; it ends with the page."""
        robots = await self.robots_of(request.url, options)
        refusal = self.refusal(request.url, robots)
        if refusal is not None:
            return refusal
        host = host_of(request.url)
        gate = self._gates.setdefault(host, asyncio.Semaphore(1 if self._book.has_pauses else _RESOURCES_AT_ONCE))
        async with gate:
            patience = Patience(options.limits.total_seconds)
            try:
                await self.turn(host, robots, patience)
            except NoTurn as late:
                return self._without_asking(request.url, Failure(FailureKind.TIMEOUT, str(late)))
            exchange = _Exchange(self, host, patience)
            try:
                response = await self._client.fetch(request, exchange.next_request)
            except BaseException:
                self.cut_off(exchange.host)
                raise
            crawl_delay = robots.crawl_delay if robots is not None else None
            self._book.end(exchange.host, fetch_result(response, crawl_delay, self._archive.clock()))
            return response

    async def _exchange(
        self, url: str, known: KnownVersion | None, options: LookOptions, exchange: _Exchange
    ) -> Response:
        """Requests a page that a browser shows, or its header first."""
        if options.browser or known is None:
            # Requested without conditions: scripts may show news on a document that stays the same.
            return await self._client.fetch(_request(url, None, options), exchange.next_request)
        header = await self._client.fetch(_request(url, known, options, "HEAD"), exchange.next_request)
        if header_suffices(header, known):
            # Nothing was downloaded: the newest version has the body.
            return header._replace(skipped=header.status < 300)
        if await exchange.next_request(url) is None:
            failure = Failure(FailureKind.TIMEOUT, "the host gets no requests for now; its page was not requested")
            return header._replace(failure=failure)
        return await self._client.fetch(_request(url, known, options), exchange.next_request)

    def expect(self, answers: Iterable[tuple[Response, KnownVersion | None]]) -> None:
        """These answers are judged next: what their first versions need from the record is read together."""
        first = [one.url for one, known in answers if known is None and one.available and one.status < 300]
        if first:
            self._reading().expect(first)

    def judge(self, response: Response, known: KnownVersion | None, options: LookOptions) -> Observation:
        """What an answer means, given what was known; each resource of a whole page is judged too."""
        if response.loaded is None:
            return self._judge_one(response, known, options)
        loaded, plain = response.loaded, options._replace(skim=False)
        before = known_versions(self._archive, [one.url for one in loaded.resources])
        looks = tuple(self._judge_one(one, before.get(one.url), plain) for one in loaded.resources)
        reused = tuple(SetMember(*one) for one in loaded.reused)
        whole = WholePage(looks, reused, loaded.screenshot, loaded.text)
        return self._judge_one(response, known, options)._replace(whole=whole)

    def _judge_one(self, response: Response, known: KnownVersion | None, options: LookOptions) -> Observation:
        if is_refused(response):
            return Observation(response, Outcome.REFUSED)
        if response.failure is not None and response.failure.kind in OVER_LIMIT:
            return Observation(response, Outcome.TOO_LARGE, change=self._header_change(response))
        if not response.available:
            return Observation(response, Outcome.UNAVAILABLE)
        if response.status == 304 or response.skipped:
            return Observation(response, Outcome.UNCHANGED)
        if response.status >= 300:
            return Observation(response, Outcome.UNCHANGED, _redirect_page(response))
        identity = identify(response.body)
        if known is not None and known.is_same(identity):
            return Observation(response, Outcome.UNCHANGED, change=_NO_CHANGE, identity=identity)
        reader = self._reading()
        if options.skim and known is None and not reader.learns_from(response.url, identity):
            page = reader.skim(response) if self._link_cache is None else reader.leads(response)
            return Observation(response, Outcome.NEW, page, identity=identity)
        return reader.read(response, known, identity)

    def _header_change(self, response: Response) -> Change | None:
        """A document that cannot be stored is compared by its header with the last check that had one."""
        before = self._archive.answers.last_seen(response.url)
        return header_change(before.headers, response.headers) if before is not None else None

    def reread(self, look: Observation, base: str, options: LookOptions) -> Observation:
        """The check of an unchanged page, with the page, which came from `base`: its links are still followed."""
        if look.outcome is not Outcome.UNCHANGED or look.page is not None:
            return look
        try:
            kept = self._archive.get(look.response.url)
        except (Damaged, NotFound):
            return look  # `verify` reports it; the crawl goes on
        return look._replace(page=self._reading().again(kept.body, base, kept.headers, skim=options.skim))

    def _reading(self) -> noise.PageReader:
        if self._reader is None:
            self._reader = noise.PageReader(self._archive, self._memory)
        return self._reader

    def record(
        self,
        looks: Sequence[Observation],
        extension: RecordExtension | None = None,
        hosts: Collection[int] | None = None,
    ) -> list[RecordedCapture]:
        """Commits checks, what they taught and what `extension` adds at once; durable when it returns.

        `hosts` names those that `extension` changes, see `Archive.commit`.
        """
        if self._reader is not None:
            self._reader.hand_over()
        done = self._archive.record(looks, in_one_transaction(self._memory.write, extension), hosts)
        if self._link_cache is not None:
            self._link_cache.add(looks, done)
        if any(look.whole is not None for look in looks):
            self._recent.keep(looks, done)
        return done

    def _now(self) -> int:
        return to_millis(self._archive.clock())


class _Exchange:
    """The requests of one check after its first: each has a separate turn at its host."""

    def __init__(self, visitor: Visitor, host: str, patience: Patience) -> None:
        self._visitor = visitor
        self._patience = patience
        self.host = host
        """Whose turn it is now."""

    async def next_request(self, url: str) -> float | None:
        """Ends the turn and waits for that of a URL's host: how many seconds, None if it comes too late."""
        clock = asyncio.get_running_loop().time
        began = clock()
        self._visitor.cut_off(self.host)
        host = host_of(url)
        try:
            await self._visitor.turn(host, None, self._patience)
        except NoTurn:
            return None
        self.host = host
        return clock() - began


@asynccontextmanager
async def turn_to_record(archive: Archive) -> AsyncIterator[None]:
    """Waits at most a minute until no other process writes; what the block records is written before others.

    The loop runs on while this waits, which `Visitor.record` would block: checks in progress would seem to take longer,
    and fail.
    """
    clock = asyncio.get_running_loop().time
    until = clock() + _LONGEST_WRITE
    with archive.waiting_to_write() as is_next:
        while not is_next() and clock() < until:
            await asyncio.sleep(_WRITE_POLL)
        yield


def user_agent(archive: Archive) -> str:
    """Name and contact, as they are sent to servers."""
    crawl = archive.settings.crawl
    return f"{crawl.user_agent} (+{crawl.contact})" if crawl.contact else crawl.user_agent


def _redirect_page(response: Response) -> Page:
    """A redirect that was not followed: a page with one link."""
    target = join(response.url, response.header("location"))
    links = (Link(target, LinkType.REDIRECT),) if target else ()
    return Page(response.url, "", links=links)


def _request(url: str, known: KnownVersion | None, options: LookOptions, method: str = "GET") -> Request:
    limits = options.limits._replace(max_bytes=2**40) if options.large else options.limits
    if known is None or options.force:
        return Request(url, method, options.headers, "", "", (), limits, options.private_ok, options.follow)
    etag, last_modified, _, digests = validators_of(known.headers)
    return Request(
        url, method, options.headers, etag, last_modified, known.unchanged_if() if digests else (), limits,
        options.private_ok, options.follow, known.final_url,
    )  # fmt: skip
