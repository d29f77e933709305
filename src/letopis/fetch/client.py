"""One bounded, conditional exchange: redirects, retries and limits over all of it.

`Transport` is the seam between deciding what to ask and asking: exactly one hop.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urldefrag, urlsplit

from letopis.config.settings import FetchSettings
from letopis.fetch.content_coding import ACCEPTED
from letopis.fetch.headers import headers_from_settings, is_sendable_header, merge_headers
from letopis.lazy import lazy
from letopis.model.web import Failure, FailureKind, Headers, Hop, Limits, Request, Response, header

if TYPE_CHECKING:
    from email import utils as email_utils

    import ada_url

    from letopis.fetch import curl
else:
    ada_url = lazy("ada_url")
    email_utils = lazy("email.utils")
    curl = lazy("letopis.fetch.curl")


class Transport(Protocol):
    """Whatever can send one request and bring one answer back.

    No redirect is followed, nothing is tried again, and what the network
    does wrong stands in `Response.failure`; it is never raised.
    """

    async def send(self, request: Request) -> Response:
        """One exchange with one server."""


class DeferredTransport:
    """A transport that is created at its first request: libcurl takes 10 MB, and a server may have nothing to fetch."""

    def __init__(self, make: Callable[[], curl.CurlTransport]) -> None:
        self._make = make
        self._made: curl.CurlTransport | None = None

    def send(self, request: Request) -> Coroutine[Any, Any, Response]:
        """One exchange with one server."""
        if self._made is None:
            self._made = self._make()
        return self._made.send(request)

    async def close(self) -> None:
        """Closes what was made."""
        if self._made is not None:
            await self._made.close()


REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_MAX_REPEATS = 3
_CREDENTIAL = re.compile("auth|cookie|token|key|secret|passw|session|signature|credential", re.IGNORECASE)
"""Names of fields that prove who sends them, also those that only some services know, such as X-Api-Key."""


def redirect_location(response: Response) -> str:
    """The raw Location of a redirect answer; empty when it is none."""
    return response.header("location") if response.status in REDIRECT_STATUSES else ""


def redirect_target(base: str, raw: str) -> str:
    """The absolute address without fragment; empty when it is not one of http or https.

    Header bytes are UTF-8 in practice, whatever the standard says.
    """
    try:
        text = raw.encode("latin-1").decode("utf-8")
    except UnicodeError:
        text = raw
    try:
        joined: str = ada_url.join_url(base, text)
    except ValueError:
        return ""
    return urldefrag(joined).url if joined.startswith(("http://", "https://")) else ""


def method_after_redirect(status: int, method: str) -> str:
    """The method of the next hop: 303 makes it GET, but for HEAD; after 301 and 302 a POST is not sent again."""
    if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
        return "GET"
    return method


def without_credentials(headers: Headers, old: str, new: str) -> Headers:
    """The user's fields for the next hop; those that prove who he is stay with their origin."""
    if _origin(old) == _origin(new):
        return headers
    return tuple(item for item in headers if not _CREDENTIAL.search(item[0]))


@dataclass(slots=True, eq=False, repr=False)
class RedirectTrail:
    """The addresses of one exchange so far.

    A site may send the same address once more after it has set a cookie, so coming back counts as a loop only when no
    cookie came meanwhile, or at the third time.
    """

    max_hops: int
    hops: int = 0
    _seen: Counter[str] = field(default_factory=Counter)
    _new_cookie: bool = False

    def step(self, response: Response, to: str) -> Failure | None:
        """Counts one redirect; the failure when following has to end here."""
        self._seen[urldefrag(response.url).url] += 1
        self._new_cookie = self._new_cookie or bool(response.header("set-cookie"))
        if not to:
            raw = response.header("location")
            return Failure(FailureKind.BAD_REDIRECT, f"the redirect to '{raw[:200]}' leads to no web address")
        if self._seen[to] and (not self._new_cookie or self._seen[to] >= _MAX_REPEATS):
            return Failure(FailureKind.REDIRECT_LOOP, f"the redirects form a loop, back to {to}")
        if self.hops >= self.max_hops:
            return Failure(FailureKind.TOO_MANY_HOPS, f"more than {self.max_hops} redirects follow one another")
        if self._seen[to]:
            self._new_cookie = False
        self.hops += 1
        return None


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port


MAX_RETRY_AFTER = 7 * 86400.0
"""A server may ask for a week; what it asks beyond that is cut to this."""
_TRANSIENT = frozenset({FailureKind.CONNECT, FailureKind.RESET})


def retry_after(response: Response, now: datetime) -> float | None:
    """Seconds that the server asks us to stay away, 0 or more; None when it does not ask.

    Understands seconds and HTTP dates. Never more than a week.
    """
    value = header(response.headers, "retry-after").strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return min(float(value[:12]), MAX_RETRY_AFTER)
    try:
        until = email_utils.parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    aware = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
    return min(max(0.0, (aware - now).total_seconds()), MAX_RETRY_AFTER)


def pause_before_retry(response: Response, attempt: int, settings: FetchSettings, now: datetime) -> float | None:
    """Seconds to wait after a passing failure, before try number `attempt + 1` (0 the first); None: leave it.

    A Retry-After longer than the settings allow is not waited for: whoever
    plans the next visit reads it from the response.
    """
    if attempt >= settings.retries:
        return None
    pause: float = settings.retry_wait * 2.0**attempt
    asked = retry_after(response, now)
    if asked is None:
        return pause
    return max(asked, pause) if asked <= settings.retry_after else None


def is_transient(response: Response, settings: FetchSettings) -> bool:
    """A failure that may be gone a moment later."""
    if response.failure is not None:
        return response.failure.kind in _TRANSIENT and response.status == 0
    return str(response.status) in settings.retry_status


BROWSER_HEADERS: Headers = (
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("Accept-Language", "en;q=0.9,*;q=0.5"),
    ("Accept-Encoding", ACCEPTED),
)
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
"""Asked again after a passing failure; what the others did may have been done."""
_SCHEMES = ("http://", "https://")
_CONDITIONAL = frozenset({"if-none-match", "if-modified-since"})


def limits_of(settings: FetchSettings) -> Limits:
    """The bounds that the settings give to an exchange."""
    return Limits(
        max_bytes=settings.max_bytes,
        max_hops=settings.max_hops,
        connect_seconds=settings.connect,
        first_byte_seconds=settings.first_byte,
        total_seconds=settings.total,
        slow_seconds=settings.slow,
    )


BetweenRequests = Callable[[str], Awaitable[float | None]]
"""Holds an exchange until its next request, to this URL, may be sent; returns how many seconds that took.

None: it may not be sent.
"""


@dataclass(slots=True, eq=False, repr=False)
class _Exchange:
    """When an exchange must be over; what its requests wait for by `between` does not count."""

    deadline: float
    between: BetweenRequests | None

    async def next_request(self, url: str) -> float | None:
        """Seconds until the next request may be sent, which are over then; None when it may not be sent."""
        if self.between is None:
            return 0.0
        waited = await self.between(url)
        self.deadline += waited or 0.0
        return waited


class Client:
    """Asks for pages.

    `fetch` never raises for what the network does. Its limits hold over all hops and tries together; its own pauses
    between tries are part of the total time. Safe for any number of concurrent calls in the loop of its transport.
    """

    def __init__(
        self,
        transport: Transport,
        settings: FetchSettings,
        *,
        user_agent: str,
        clock: Callable[[], datetime],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        default_headers: Headers = BROWSER_HEADERS,
    ) -> None:
        self._transport = transport
        self._settings = settings
        self._clock = clock
        self._sleep = sleep
        agent = (("User-Agent", user_agent),) if user_agent else ()
        self._headers = merge_headers(agent + default_headers, headers_from_settings(settings.headers))

    async def fetch(self, request: Request, between: BetweenRequests | None = None) -> Response:
        """The answer at the end of all redirects, or what went wrong on the way.

        `between` is awaited with the address before every request but the first.
        """
        exchange = _Exchange(time.monotonic() + request.limits.total_seconds, between)
        hop = self._first_hop(request)
        if isinstance(hop, Failure):
            return Response(request.url, request.url, 0, (), b"", self._clock(), failure=hop)
        response = await self._transport.send(hop)
        if is_transient(response, self._settings):
            response = await self._tried_again(hop, response, exchange)
        if not (request.follow and redirect_location(response)):
            return _as_asked(response if response.url == request.url else response._replace(url=request.url), hop)
        return await self._follow(request, hop, response, exchange)

    def _first_hop(self, request: Request) -> Request | Failure:
        if request.method not in _METHODS:
            return Failure(FailureKind.OTHER, f"the method {request.method} is not used for looking at pages")
        url = sendable_url(request.url)
        if not url:
            return Failure(FailureKind.OTHER, "this is not an address of the web; write http:// or https:// and a host")
        return self._hop(request, url, request.method, self._user_fields(request))

    def _hop(self, request: Request, url: str, method: str, fields: Headers) -> Request:
        """What is really sent to one address; validators go only where they belong."""
        mine = not request.validators_for or request.validators_for == url
        if mine and (request.etag or request.last_modified):
            fields = _with_conditions(fields, request)
        # By position, in half the time: every request comes through here.
        return Request(
            url, method, fields, "", "", request.unchanged_if if mine else (), request.limits, request.private_ok,
            True, "", request.keep_partial, request.sink,
            request.body if method == request.method else b"",
        )  # fmt: skip

    def _user_fields(self, request: Request) -> Headers:
        return merge_headers(self._headers, request.headers) if request.headers else self._headers

    async def _tried_again(self, hop: Request, response: Response, exchange: _Exchange) -> Response:
        """The answer to a hop, which is tried again while that is worth it and there is time."""
        attempt, spent = 0, (0, 0)
        while hop.method in _SAFE_METHODS and is_transient(response, self._settings):
            pause = pause_before_retry(response, attempt, self._settings, self._clock())
            left = exchange.deadline - time.monotonic()
            if pause is None or pause >= left or (waited := await exchange.next_request(hop.url)) is None:
                break
            spent = (spent[0] + response.wire_bytes, spent[1] + response.sent_bytes)
            attempt += 1
            if pause > waited:
                await self._sleep(pause - waited)
            hop = hop._replace(limits=hop.limits._replace(total_seconds=max(0.001, left - pause)))
            response = await self._transport.send(hop)
        return _with_costs(response, spent) if attempt else response

    async def _follow(self, request: Request, hop: Request, response: Response, exchange: _Exchange) -> Response:
        trail = RedirectTrail(request.limits.max_hops)
        hops: list[Hop] = []
        spent = (0, 0)
        fields = self._user_fields(request)
        while redirect_location(response):
            to = redirect_target(response.url, redirect_location(response))
            failure = trail.step(response, to) or _out_of_time(exchange.deadline, request.limits)
            if failure is None and await exchange.next_request(to) is None:
                failure = Failure(
                    FailureKind.TIMEOUT, f"the redirect leads to {to}, whose host gets no requests for now"
                )
            if failure is not None:
                response = response._replace(failure=failure)
                break
            hops.append(Hop(response.url, response.status, redirect_location(response), response.ip, response.headers))
            spent = (spent[0] + response.wire_bytes, spent[1] + response.sent_bytes)
            fields = without_credentials(fields, response.url, to)
            hop = self._hop(request, to, method_after_redirect(response.status, hop.method), fields)
            timely = _in_time(hop, exchange.deadline)
            response = await self._tried_again(timely, await self._transport.send(timely), exchange)
        started = exchange.deadline - request.limits.total_seconds
        whole = response._replace(url=request.url, hops=tuple(hops), seconds=time.monotonic() - started)
        return _with_costs(_as_asked(whole, hop), spent)


def _as_asked(response: Response, hop: Request) -> Response:
    """The answer, or a failure if it does not match the request: it is unknown which document it is."""
    if response.failure is not None or not (response.status == 206 or 300 <= response.status < 400):
        return response
    asked = {name.lower() for name, _ in hop.headers}
    if response.status == 304:
        wrong = (
            "" if asked & _CONDITIONAL else "the server says that nothing changed since a version that was not named"
        )
    elif response.status == 206:
        wrong = "" if "range" in asked else "the server sent a part of the document, although all of it was requested"
    else:
        wrong = "" if response.header("location") else "the server answered with a redirect that names no address"
    if not wrong:
        return response
    kind = FailureKind.PROTOCOL if response.status in (206, 304) else FailureKind.BAD_REDIRECT
    return response._replace(failure=Failure(kind, f"{wrong} (status {response.status})"))


def sendable_url(url: str) -> str:
    """The URL in the ASCII form that is sent; empty if it is none of http or https."""
    if not (url.startswith(_SCHEMES) or url[:8].lower().startswith(_SCHEMES)):
        return ""
    if url.isascii() and url.isprintable() and " " not in url:
        return url
    try:
        return str(ada_url.URL(url).href)
    except ValueError:
        return ""


def _with_conditions(fields: Headers, request: Request) -> Headers:
    """The fields with our validators, which replace the user's; servers wrote them, so each is judged."""
    etag = (("If-None-Match", request.etag),) if request.etag else ()
    since = (("If-Modified-Since", request.last_modified),) if request.last_modified else ()
    conditions = tuple([field for field in etag + since if is_sendable_header(*field)])
    return merge_headers(fields, conditions) if _has_conditions(fields) else fields + conditions


@lru_cache(maxsize=64)
def _has_conditions(fields: Headers) -> bool:
    """Cached: nearly all requests have the same fields besides their own conditions."""
    return any(name.lower() in _CONDITIONAL for name, _ in fields)


def _with_costs(response: Response, spent: tuple[int, int]) -> Response:
    return response._replace(wire_bytes=response.wire_bytes + spent[0], sent_bytes=response.sent_bytes + spent[1])


def _out_of_time(deadline: float, limits: Limits) -> Failure | None:
    if time.monotonic() < deadline:
        return None
    return Failure(FailureKind.TIMEOUT, f"the redirects took longer than {limits.total_seconds:g} s in all")


def _in_time(hop: Request, deadline: float) -> Request:
    left = max(0.001, deadline - time.monotonic())
    return hop._replace(limits=hop.limits._replace(total_seconds=left))
