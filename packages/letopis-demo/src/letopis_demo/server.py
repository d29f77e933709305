"""A real HTTP/1.1 server for a world, cheap enough not to matter in a benchmark of its clients."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import IO, Literal

from letopis.errors import NotReady, UsageError
from letopis.model import http_date, to_millis
from letopis.tuples import NamedTuple
from letopis_demo.resources import DemoResponse, TimedResponse, conditional_response
from letopis_demo.world import World

Clock = Callable[[], datetime]

LOG_FIELDS = ("began", "ended", "wall_began", "wall_ended", "connection", "host", "path", "status")
"""The columns of the request log."""

_MAX_HEAD = 65_536
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class _ReadyResponse(NamedTuple):
    """An answer as it goes over the wire, and from when to when it is right."""

    held: TimedResponse
    since: int
    status: bytes
    rest: bytes
    head_only: bytes


def _wire(answer: DemoResponse) -> tuple[bytes, bytes]:
    """The status line, and the header fields with the blank line (Date goes in between)."""
    status = f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, '')}\r\n".encode()
    length = () if answer.status == 304 else (("Content-Length", str(len(answer.body))),)
    fields = "".join(f"{name}: {value}\r\n" for name, value in (*answer.headers, *length))
    return status, f"{fields}\r\n".encode("latin-1")


class ResponseCache:
    """Answers ready to send, the most recently used of them kept up to `room` bytes."""

    def __init__(self, world: World, clock: Clock, room: int) -> None:
        self.world, self.clock, self._room = world, clock, room
        self._kept: OrderedDict[tuple[int, str], _ReadyResponse] = OrderedDict()
        self._size = 0
        self._date = (0, b"")

    def take(self, host: int, address: str, at: int) -> _ReadyResponse:
        """The answer of a host for a path at a time."""
        key = (host, address)
        ready = self._kept.get(key)
        if ready is not None and ready.since <= at < ready.held.until:
            self._kept.move_to_end(key)
            return ready
        held = self.world.held(host, address, at)
        status, fields = _wire(held.answer)
        ready = _ReadyResponse(held, at, status, fields + held.answer.body, fields)
        self._keep(key, ready)
        return ready

    def _keep(self, key: tuple[int, str], ready: _ReadyResponse) -> None:
        old = self._kept.pop(key, None)
        self._size += len(ready.rest) - (len(old.rest) if old else 0)
        self._kept[key] = ready
        while self._size > self._room and len(self._kept) > 1:
            self._size -= len(self._kept.popitem(last=False)[1].rest)

    def date(self, now: datetime) -> bytes:
        """The Date field, made once a second."""
        second = int(now.timestamp())
        if self._date[0] != second:
            self._date = (second, f"Date: {http_date(now)}\r\n".encode())
        return self._date[1]


class RequestLog:
    """One line a request: times, connection, host, path, status, separated by tabs."""

    def __init__(self, out: IO[str] | None) -> None:
        self._out = out
        self.connections = 0

    def write(self, begun: float, connection: int, host: str, address: str, status: int) -> None:
        """Note one request whose answer is ready; `begun` is the monotonic time of its first byte."""
        if self._out is None:
            return
        ended, wall = time.monotonic(), time.time()
        times = f"{begun:.6f}\t{ended:.6f}\t{wall - (ended - begun):.6f}\t{wall:.6f}"
        self._out.write(f"{times}\t{connection}\t{host}\t{address}\t{status}\n")

    def flush(self) -> None:
        """Hand everything to the operating system."""
        if self._out is not None:
            self._out.flush()


def _fields(head: str) -> dict[str, str]:
    """Header fields of a request with lower-case names; of repeated ones the last."""
    pairs = (line.partition(":") for line in head.split("\r\n")[1:])
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


class DemoConnection(asyncio.Protocol):
    """One client. Requests are answered in order; `default` is the host of the socket, -1 when names decide."""

    def __init__(
        self, responses: ResponseCache, log: RequestLog, default: int, open_ones: set[asyncio.Transport]
    ) -> None:
        self._responses, self._log, self._default, self._open = responses, log, default, open_ones
        self._buffer = b""
        self._begun = 0.0
        self._number = 0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with a new client."""
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("a connection needs a stream transport")
        self._transport = transport
        self._open.add(transport)
        self._log.connections += 1
        self._number = self._log.connections

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client."""
        self._open.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        if not self._buffer:
            self._begun = time.monotonic()
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head, self._buffer = self._buffer[:end].decode("latin-1"), self._buffer[end + 4 :]
            if not self._request(head):
                self._buffer = b""
                self._transport.close()
                return
            self._begun = time.monotonic()
        if len(self._buffer) > _MAX_HEAD:
            self._refuse(431)
            self._transport.close()

    def _refuse(self, status: int) -> None:
        reason = _REASONS[status]
        self._transport.write(f"HTTP/1.1 {status} {reason}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())

    def _request(self, head: str) -> bool:
        """Answer one request; False when the connection ends with it."""
        line = head.partition("\r\n")[0].split(" ")
        if len(line) != 3 or not line[2].startswith("HTTP/1."):
            self._refuse(400)
            return False
        if line[0] not in ("GET", "HEAD"):
            self._refuse(405)
            return False
        fields, address = _fields(head), line[1]
        if address.startswith("http://"):  # whoever asks us as a proxy gives the whole address
            fields["host"], _, path = address.removeprefix("http://").partition("/")
            address = f"/{path}"
        host = self._host_of(fields)
        if host < 0:
            self._refuse(421)
            return False
        self._answer(host, address, fields, line[0] == "HEAD")
        connection = fields.get("connection", "").lower()
        return connection != "close" and (line[2] != "HTTP/1.0" or connection == "keep-alive")

    def _host_of(self, fields: dict[str, str]) -> int:
        """The host that is meant: the one named, or else the one whose address was called."""
        named = self._responses.world.number(fields.get("host", ""))
        return self._default if named is None else named

    def _answer(self, host: int, address: str, fields: dict[str, str], head_only: bool) -> None:
        now = self._responses.clock()
        ready = self._responses.take(host, address, to_millis(now))
        status, first, rest = ready.held.answer.status, ready.status, ready.rest
        if "if-none-match" in fields or "if-modified-since" in fields:
            answer = conditional_response(ready.held, fields)
            if answer.status != status:
                status, (first, rest) = answer.status, _wire(answer)
        if head_only and status == ready.held.answer.status:
            rest = ready.head_only
        # Before the answer: whoever has it finds the line.
        self._log.write(self._begun, self._number, self._responses.world.authorities[host], address, status)
        self._transport.write(first + self._responses.date(now) + rest)


Layout = Literal["addresses", "names", "ports"]


class SimulatedClock:
    """Time that starts at `start` and runs `speed` times as fast as the monotonic clock."""

    def __init__(self, start: datetime, speed: float = 1.0) -> None:
        self._start, self._speed, self._zero = start, speed, time.monotonic()

    def __call__(self) -> datetime:
        """The time now."""
        return self._start + timedelta(seconds=(time.monotonic() - self._zero) * self._speed)


def _listener(address: str, port: int) -> socket.socket:
    """A listening socket on a loopback address."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen(1024)
    except OSError as error:
        sock.close()
        raise NotReady(f"cannot listen on {address}:{port} ({error.strerror}); choose another port") from None
    sock.setblocking(False)
    return sock


def loopback(host: int) -> str:
    """The address of a host when each has its own: 127.0.0.2 and on."""
    return f"127.0.{host // 200}.{2 + host % 200}"


def _own_addresses(hosts: int, port: int) -> list[socket.socket]:
    """One socket a host, all with the same port. A free port is free on all addresses, or the next one is tried."""
    for _ in range(20):
        sockets = [_listener(loopback(0), port)]
        try:
            chosen = int(sockets[0].getsockname()[1])
            for host in range(1, hosts):
                sockets.append(_listener(loopback(host), chosen))
            return sockets
        except NotReady:
            for sock in sockets:
                sock.close()
            if port:
                raise
    raise NotReady("found no port that is free on all addresses of the simulated web; name one")


def _sockets(hosts: int, port: int, layout: Layout) -> list[socket.socket]:
    if layout == "addresses":
        if hosts > 5000:
            raise UsageError("more than 5000 hosts cannot have addresses of their own; choose the layout 'names'")
        return _own_addresses(hosts, port)
    if layout == "ports":
        return [_listener("127.0.0.1", port + host if port else 0) for host in range(hosts)]
    return [_listener("127.0.0.1", port)]


class DemoServer:
    """Serves a world until it is stopped.

    Layouts: `addresses` gives each host a loopback address of its own on one port, `ports` a port of its own on
    127.0.0.1, and `names` keeps the world's names and tells hosts apart by the Host field, or by the whole address that
    a client of a proxy sends. Afterwards `world` is the world under its real addresses. Belongs to one event loop.
    """

    def __init__(
        self,
        world: World,
        clock: Clock | None = None,
        *,
        addresses: Layout = "addresses",
        port: int = 0,
        log: IO[str] | None = None,
        cache_bytes: int = 64 << 20,
    ) -> None:
        self.world = world
        self._clock = clock or (lambda: datetime.now(UTC))
        self._layout, self._port, self._room = addresses, port, cache_bytes
        self._log = RequestLog(log)
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.Transport] = set()
        self.address = ""

    async def start(self) -> None:
        """Listen. Afterwards `world`, `address` and `seeds()` tell where."""
        sockets = _sockets(self.world.shape.hosts, self._port, self._layout)
        names = tuple("{}:{}".format(*sock.getsockname()) for sock in sockets)
        self.address = names[0]
        if self._layout != "names":
            self.world = self.world.at(names)
        responses = ResponseCache(self.world, self._clock, self._room)
        for number, sock in enumerate(sockets):
            self._servers.append(await self._listen(responses, -1 if self._layout == "names" else number, sock))

    async def _listen(self, responses: ResponseCache, default: int, sock: socket.socket) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: DemoConnection(responses, self._log, default, self._open), sock=sock)

    async def stop(self) -> None:
        """End: no new clients, the open ones are cut off, the log is complete."""
        for server in self._servers:
            server.close()
        for transport in list(self._open):
            transport.close()
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()
        self._log.flush()

    async def __aenter__(self) -> DemoServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


@contextmanager
def running(server: DemoServer) -> Iterator[DemoServer]:
    """The server at work in a thread of its own for the length of a `with` block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="letopis-demo", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result()
        try:
            yield server
        finally:
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
