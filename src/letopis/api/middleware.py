"""Middleware around the application: trusted proxies, the access log, Prometheus metrics and the health check."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from itertools import accumulate
from logging.handlers import WatchedFileHandler
from pathlib import Path
from weakref import WeakValueDictionary

from fastapi import APIRouter, Request, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from letopis.api.access import principal_of_scope
from letopis.api.requests import ArchiveDep, problem_response
from letopis.api.sessions import network_of
from letopis.archive import Archive
from letopis.archive.audit import CountedUse, UseCounter
from letopis.bounded import Impatience
from letopis.errors import NotReady, SettingError
from letopis.operations import Context
from letopis.operations.parameters import NoParameters
from letopis.operations.totals import stats

Network = IPv4Network | IPv6Network
_PORT = re.compile(r":\d*\Z", re.ASCII)


class TrustedProxies:
    """Puts the client's address, scheme and host in place of the proxy's."""

    def __init__(self, app: ASGIApp, trusted: Sequence[str]) -> None:
        self._app = app
        self._is_trusted = trusted_addresses(trusted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and self._is_trusted((scope.get("client") or ("",))[0]):
            scope = self._behind(scope)
        await self._app(scope, receive, send)

    def _behind(self, scope: Scope) -> Scope:
        fields = {name: value.decode("latin-1") for name, value in scope["headers"]}
        scope = dict(scope)
        chain = [part.strip() for part in fields.get(b"x-forwarded-for", "").split(",") if part.strip()]
        # The last address that is not one of our own proxies is the client; what stands before it anyone can write.
        client = next((part for part in reversed(chain) if not self._is_trusted(part)), None)
        if client:
            scope["client"] = (client, 0)
        if fields.get(b"x-forwarded-proto") in ("http", "https"):
            scope["scheme"] = fields[b"x-forwarded-proto"]
        host = fields.get(b"x-forwarded-host")
        if host:
            kept = [(name, value) for name, value in scope["headers"] if name != b"host"]
            scope["headers"] = [*kept, (b"host", host.encode("latin-1"))]
        return scope


def trusted_addresses(trusted: Sequence[str]) -> Callable[[str], bool]:
    """Whether an address is one of some networks; SettingError when one of those is none."""
    networks = [_network(text) for text in trusted]

    def is_trusted(address: str) -> bool:
        try:
            found = ip_address(address) if networks else None
        except ValueError:
            return False
        return found is not None and any(found in network for network in networks)

    return is_trusted


class KnownHosts:
    """Answers 421 to whoever reached us under a name that is not ours: a site whose name was led to our address.

    Addresses, localhost and the machine's own name always count as ours.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self._app = app
        own = socket.gethostname().lower()
        self._known = frozenset({"localhost", own, own.partition(".")[0], *map(str.lower, hosts)})
        # Nearly all who ask use one of a few names.
        self._is_known = lru_cache(maxsize=256)(self._known_name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; the health check may be asked by anybody."""
        if scope["type"] != "http" or scope["path"] == "/healthz" or self._is_ours(scope):
            await self._app(scope, receive, send)
            return
        detail = "this host name is not accepted; the owner can add it to serve.hosts"
        await problem_response(421, "Misdirected", detail)(scope, receive, send)

    def _is_ours(self, scope: Scope) -> bool:
        if "*" in self._known:
            return True
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        return len(hosts) <= 1 and all(map(self._is_known, hosts))

    def _known_name(self, host: bytes) -> bool:
        name = _PORT.sub("", host.decode("latin-1").lower()).rstrip(".")
        return name in self._known or name.endswith(".localhost") or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


MOST_WAITING = 8
"""Requests that may wait for a document to be read, rewritten or compared by a helper."""
DOCUMENT_SECONDS = 5.0
"""CPU time that one document may take while a client waits."""


class DocumentBudget:
    """Whoever asks by HTTP waits for a large document only where few others do, and not for long."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; threads that work for it inherit the bound, services that run beside it do not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with Impatience(MOST_WAITING, DOCUMENT_SECONDS):
            await self._app(scope, receive, send)


_UNSHARED = (
    "/web/", "/cdx/", "/wayback/", "/replay/", "/static/", "/language/", "/login", "/logout", "/setup", "/join",
    "/healthz", "/api/v1/events",
)  # fmt: skip
"""What never takes long, is bounded in another way, or waits by itself."""


class FairShare:
    """Questions are answered a few at a time, fewer from one network: threads remain for replay, health and others.

    Others wait for their turn, which ends when an answer begins. Whoever has left by then is not answered. A body may
    take minutes to come, so requests with one only count for their network.
    """

    most = 24
    """Of the 40 threads that requests have."""
    of_one_network = 8

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._all = asyncio.Semaphore(self.most)
        self._networks: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["path"].startswith(_UNSHARED):
            await self._app(scope, receive, send)
            return
        name = network_of((scope.get("client") or ("",))[0])
        own = self._networks.get(name)
        if own is None:
            own = self._networks[name] = asyncio.Semaphore(self.of_one_network)
        turns = [own, self._all] if scope["method"] in ("GET", "HEAD") else [own]
        crowded = any(turn.locked() for turn in turns)
        async with AsyncExitStack() as stack:
            for turn in turns:
                await stack.enter_async_context(turn)

            async def begun(message: Message) -> None:
                if message["type"] == "http.response.start":
                    await stack.aclose()
                await send(message)

            if crowded and len(turns) == 2:
                receive, left = await _looked_for(receive)
                if left:
                    return
            await self._app(scope, receive, begun)


async def _looked_for(receive: Receive) -> tuple[Receive, bool]:
    """Whether a client that had to wait has left; what it has sent is handed on."""
    kept = [await receive()]
    asking = asyncio.ensure_future(receive())
    await asyncio.sleep(0)
    if asking.done():
        kept.append(asking.result())
    asking.cancel()

    async def again() -> Message:
        return kept.pop(0) if kept else await receive()

    return again, kept[-1]["type"] == "http.disconnect"


def _network(text: str) -> Network:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise SettingError(f"serve.trusted_proxies: '{text}' is not an address or network") from None


# Whoever has the code makes the first owner, or the account of an invitation: it is nobody's business but theirs.
_CODE = re.compile(r"(\b(?:setup|invitation)=)[^&]+", re.ASCII)
_ODD = re.compile(r"[\x00-\x1f\x7f\"\\]")


def open_access_log(file: Path) -> logging.Handler:
    """The file to write to; NotReady when it cannot be written."""
    try:
        return WatchedFileHandler(file, encoding="utf-8")
    except OSError as error:
        raise NotReady(f"cannot write the access log {file}: {error.strerror}; correct serve.access_log") from None


class AccessLog:
    """Writes the combined log format; whoever rotates the file may move it away at any time."""

    def __init__(self, app: ASGIApp, lines: logging.Handler, clock: Callable[[], datetime]) -> None:
        self._app = app
        self._lines = lines
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; its line is written when the answer is over, whatever became of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, size = 500, 0

        async def counted(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, counted)
        finally:
            self._write(_line(scope, self._clock(), status, size))

    def _write(self, line: str) -> None:
        self._lines.emit(logging.LogRecord("access", logging.INFO, "", 0, line, None, None))


def _line(scope: Scope, now: datetime, status: int, size: int) -> str:
    client = scope["client"][0] if scope.get("client") else "-"
    fields = {name: value.decode("latin-1") for name, value in scope["headers"] if name in (b"referer", b"user-agent")}
    query = _CODE.sub(r"\1...", scope["query_string"].decode("latin-1"))
    path = scope["path"] + (f"?{query}" if query else "")
    asked = f"{scope['method']} {path} HTTP/{scope['http_version']}"
    who = principal_of_scope(scope).name or "-"
    referer, agent = _CODE.sub(r"\1...", fields.get(b"referer", "-")), fields.get(b"user-agent", "-")
    time = now.strftime("%d/%b/%Y:%H:%M:%S %z")
    return f'{client} - {_safe(who)} [{time}] "{_safe(asked)}" {status} {size} "{_safe(referer)}" "{_safe(agent)}"'


def _safe(text: str) -> str:
    """Nothing that ends a field or a line."""
    return _ODD.sub(lambda odd: f"\\x{ord(odd[0]):02x}", text)


metrics_router = APIRouter(include_in_schema=False)

FAMILIES = frozenset({"web", "cdx", "api", "feed", "static", "healthz", "metrics", "login"})
_TOTALS_AGE = 60.0
_BUCKETS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0)
_EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"


class ServiceMetrics:
    """The figures of one application, in the text form that Prometheus reads."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._counted_at = -_TOTALS_AGE
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._durations: dict[str, _Durations] = {}
        self._totals: dict[str, float] = {}

    def answered(self, family: str, status: int, seconds: float) -> None:
        """One more request."""
        with self._lock:
            self._requests[family, status] += 1
            durations = self._durations.get(family)
            if durations is None:
                durations = self._durations[family] = _Durations()
            durations.add(seconds)

    def text(self) -> str:
        """The exposition; totals are counted at most once a minute."""
        if time.monotonic() - self._counted_at >= _TOTALS_AGE:
            counted = stats(Context(self._archive), NoParameters()).value
            self._totals = {what: total for what, total in counted._asdict().items() if total is not None}
            self._counted_at = time.monotonic()
        with self._lock:
            return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield "# HELP letopis_requests_total Requests answered"
        yield "# TYPE letopis_requests_total counter"
        for (family, status), count in sorted(self._requests.items()):
            yield f'letopis_requests_total{{family="{family}",status="{status}"}} {float(count)}'
        yield "# HELP letopis_request_seconds Time until the answer was sent"
        yield "# TYPE letopis_request_seconds histogram"
        for family, durations in sorted(self._durations.items()):
            yield from durations.lines("letopis_request_seconds", f'family="{family}"')
        yield "# HELP letopis_archive Totals of the archive"
        yield "# TYPE letopis_archive gauge"
        for what, total in self._totals.items():
            yield f'letopis_archive{{what="{what}"}} {float(total)}'


class _Durations:
    """How long answers took: a histogram with fixed bounds."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_BUCKETS) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        """One more."""
        self._counts[bisect_left(_BUCKETS, seconds)] += 1
        self._sum += seconds

    def lines(self, name: str, label: str) -> Iterator[str]:
        """Counts up to each bound, all of them, and their sum."""
        below = accumulate(self._counts)
        for bound, count in zip((*map(str, map(float, _BUCKETS)), "+Inf"), below, strict=True):
            yield f'{name}_bucket{{{label},le="{bound}"}} {float(count)}'
        yield f"{name}_count{{{label}}} {float(sum(self._counts))}"
        yield f"{name}_sum{{{label}}} {self._sum}"


_REPLAYED = re.compile(r"/web/\d{1,14}/", re.ASCII)
_FROM_SEARCH = re.compile(rb"https?://[^/]+/search\?")


def use_of_request(scope: Scope, family: str) -> Iterator[CountedUse]:
    """What a request that was answered counts as; nothing for parts of pages and what the interface asks by itself."""
    fields = {name: value for name, value in scope["headers"] if name in (b"referer", b"sec-fetch-dest")}
    alone = fields.get(b"sec-fetch-dest", b"document") == b"document"
    if family in ("api", "cdx", "feed") or scope["path"] == "/mcp":
        if b"referer" not in fields:
            yield "requests"
    elif scope["method"] == "GET" and alone and _REPLAYED.match(scope["path"]):
        yield "replays"
    elif scope["method"] == "GET" and alone and family == "pages":
        yield "pages"
        if scope["path"].startswith("/url/") and _FROM_SEARCH.match(fields.get(b"referer", b"")):
            yield "clicks"


class MetricsMiddleware:
    """Counts requests by the first part of their path, and by day what they are."""

    def __init__(self, app: ASGIApp, metrics: ServiceMetrics, use: UseCounter) -> None:
        self._app = app
        self._metrics = metrics
        self._use = use

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        first = scope["path"].split("/", 2)[1] if scope["path"].startswith("/") else ""
        family = first if first in FAMILIES else "pages"
        status, started = 500, time.perf_counter()

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, counted)
        finally:
            self._metrics.answered(family, status, time.perf_counter() - started)
            if status == 200:
                for what in use_of_request(scope, family):
                    self._use.add(what)
            if self._use.is_due:
                asyncio.get_running_loop().run_in_executor(None, self._use.write)  # the client does not wait for it


@metrics_router.get("/metrics")
def metrics(request: Request) -> Response:
    """Counters, durations and totals."""
    found: ServiceMetrics = request.app.state.metrics
    return Response(found.text(), media_type=_EXPOSITION)


health_router = APIRouter()


@health_router.get("/healthz", include_in_schema=False)
def healthz(archive: ArchiveDep) -> dict[str, str]:
    """Fine when the catalogue answers."""
    archive.ping()
    return {"status": "ok"}
