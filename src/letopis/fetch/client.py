"""One polite, bounded, conditional exchange: redirects, retries and limits over all of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import datetime

from letopis.config.sections import FetchSettings
from letopis.fetch.coding import ACCEPTED
from letopis.fetch.fields import from_settings, is_sendable, merged
from letopis.fetch.redirects import Trail, location, method_after, target, without_secrets
from letopis.fetch.retry import is_passing, pause_before_retry
from letopis.fetch.transport import Transport
from letopis.model.web import Failure, FailureKind, Headers, Hop, Limits, Request, Response

BROWSER_HEADERS: Headers = (
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("Accept-Language", "en;q=0.9,*;q=0.5"),
    ("Accept-Encoding", ACCEPTED),
)
_METHODS = ("GET", "HEAD")
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


class Client:
    """Asks for pages.

    `fetch` never raises for what the network does. Its limits hold over all
    hops and tries together; pauses between tries are part of the total time.
    Safe for any number of concurrent calls in the loop of its transport.
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
        self._headers = merged(agent + default_headers, from_settings(settings.headers))

    async def fetch(self, request: Request) -> Response:
        """The answer at the end of all redirects, or what went wrong on the way."""
        deadline = time.monotonic() + request.limits.total_seconds
        hop = self._first_hop(request)
        if isinstance(hop, Failure):
            return Response(request.url, request.url, 0, (), b"", self._clock(), failure=hop)
        response = await self._try(hop, deadline)
        if not (request.follow and location(response)):
            return response if response.url == request.url else response._replace(url=request.url)
        return await self._follow(request, hop, response, deadline)

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
        return Request(
            url=url,
            method=method,
            headers=fields,
            unchanged_if=request.unchanged_if if mine else (),
            limits=request.limits,
            private_ok=request.private_ok,
            keep_wire=request.keep_wire,
            keep_partial=request.keep_partial,
        )

    def _user_fields(self, request: Request) -> Headers:
        return merged(self._headers, request.headers) if request.headers else self._headers

    async def _try(self, hop: Request, deadline: float) -> Response:
        """One hop, tried again while that is worth it and there is time."""
        attempt, spent = 0, (0, 0)
        while True:
            response = await self._transport.send(hop)
            if not is_passing(response, self._settings):
                return _with_costs(response, spent) if attempt else response
            pause = pause_before_retry(response, attempt, self._settings, self._clock())
            left = deadline - time.monotonic()
            if pause is None or pause >= left:
                return _with_costs(response, spent) if attempt else response
            spent = (spent[0] + response.wire_bytes, spent[1] + response.sent_bytes)
            attempt += 1
            await self._sleep(pause)
            hop = hop._replace(limits=hop.limits._replace(total_seconds=max(0.001, left - pause)))

    async def _follow(self, request: Request, hop: Request, response: Response, deadline: float) -> Response:
        trail = Trail(request.limits.max_hops)
        hops: list[Hop] = []
        spent = (0, 0)
        fields = self._user_fields(request)
        started = deadline - request.limits.total_seconds
        while location(response):
            to = target(response.url, location(response))
            failure = trail.step(response, to) or _out_of_time(deadline, request.limits)
            if failure is not None:
                response = response._replace(failure=failure)
                break
            hops.append(Hop(response.url, response.status, location(response), response.ip, response.headers))
            spent = (spent[0] + response.wire_bytes, spent[1] + response.sent_bytes)
            fields = without_secrets(fields, response.url, to)
            hop = self._hop(request, to, method_after(response.status, hop.method), fields)
            response = await self._try(_in_time(hop, deadline), deadline)
        whole = response._replace(url=request.url, hops=tuple(hops), seconds=time.monotonic() - started)
        return _with_costs(whole, spent)


def sendable_url(url: str) -> str:
    """The address in the ASCII form that goes over the wire; empty when it is none of http or https."""
    if not url[:8].lower().startswith(("http://", "https://")):
        return ""
    if url.isascii() and url.isprintable() and " " not in url:
        return url
    import ada_url  # noqa: PLC0415 - plain addresses never need it, and every check starts

    try:
        return str(ada_url.URL(url).href)
    except ValueError:
        return ""


def _with_conditions(fields: Headers, request: Request) -> Headers:
    """The fields with our validators, which replace the user's; servers wrote them, so each is judged."""
    etag = (("If-None-Match", request.etag),) if request.etag else ()
    since = (("If-Modified-Since", request.last_modified),) if request.last_modified else ()
    conditions = tuple([field for field in etag + since if is_sendable(*field)])
    own = [field for field in fields if field[0].lower() in _CONDITIONAL]
    return merged(fields, conditions) if own else fields + conditions


def _with_costs(response: Response, spent: tuple[int, int]) -> Response:
    return response._replace(wire_bytes=response.wire_bytes + spent[0], sent_bytes=response.sent_bytes + spent[1])


def _out_of_time(deadline: float, limits: Limits) -> Failure | None:
    if time.monotonic() < deadline:
        return None
    return Failure(FailureKind.TIMEOUT, f"the redirects took longer than {limits.total_seconds:g} s in all")


def _in_time(hop: Request, deadline: float) -> Request:
    left = max(0.001, deadline - time.monotonic())
    return hop._replace(limits=hop.limits._replace(total_seconds=left))
