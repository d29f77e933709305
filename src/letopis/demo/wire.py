"""One connection of the simulated web: requests in, ready answers out, a line in the log."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import IO, NamedTuple

from letopis.demo.answers import Answer, Held, conditional
from letopis.demo.world import World
from letopis.model import http_date, to_millis

Clock = Callable[[], datetime]

LOG_FIELDS = ("began", "ended", "wall_began", "wall_ended", "connection", "host", "path", "status")
"""The columns of the request log."""

_MAX_HEAD = 65_536
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class _Ready(NamedTuple):
    """An answer as it goes over the wire, and from when to when it is right."""

    held: Held
    since: int
    status: bytes
    rest: bytes
    head_only: bytes


def _wire(answer: Answer) -> tuple[bytes, bytes]:
    """The status line, and the header fields with the blank line (Date goes in between)."""
    status = f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, '')}\r\n".encode()
    length = () if answer.status == 304 else (("Content-Length", str(len(answer.body))),)
    fields = "".join(f"{name}: {value}\r\n" for name, value in (*answer.headers, *length))
    return status, f"{fields}\r\n".encode("latin-1")


class Kitchen:
    """Answers ready to send, the most recently used of them kept up to `room` bytes."""

    def __init__(self, world: World, clock: Clock, room: int) -> None:
        self.world, self.clock, self._room = world, clock, room
        self._kept: OrderedDict[tuple[int, str], _Ready] = OrderedDict()
        self._size = 0
        self._date = (0, b"")

    def take(self, host: int, address: str, at: int) -> _Ready:
        """The answer of a host for a path at a time."""
        key = (host, address)
        ready = self._kept.get(key)
        if ready is not None and ready.since <= at < ready.held.until:
            self._kept.move_to_end(key)
            return ready
        held = self.world.held(host, address, at)
        status, fields = _wire(held.answer)
        ready = _Ready(held, at, status, fields + held.answer.body, fields)
        self._keep(key, ready)
        return ready

    def _keep(self, key: tuple[int, str], ready: _Ready) -> None:
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
        """Note one finished request; `begun` is the monotonic time of its first byte."""
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


class Connection(asyncio.Protocol):
    """One client. Requests are answered in order; `default` is the host of the socket, -1 when names decide."""

    def __init__(self, kitchen: Kitchen, log: RequestLog, default: int, open_ones: set[asyncio.Transport]) -> None:
        self._kitchen, self._log, self._default, self._open = kitchen, log, default, open_ones
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
        fields = _fields(head)
        host = self._host_of(fields)
        if host < 0:
            self._refuse(421)
            return False
        self._answer(host, line[1], fields, line[0] == "HEAD")
        wish = fields.get("connection", "").lower()
        return wish != "close" and (line[2] != "HTTP/1.0" or wish == "keep-alive")

    def _host_of(self, fields: dict[str, str]) -> int:
        """The host that is meant: the one named, or else the one whose address was called."""
        named = self._kitchen.world.number(fields.get("host", ""))
        return self._default if named is None else named

    def _answer(self, host: int, address: str, fields: dict[str, str], head_only: bool) -> None:
        now = self._kitchen.clock()
        ready = self._kitchen.take(host, address, to_millis(now))
        status, first, rest = ready.held.answer.status, ready.status, ready.rest
        if "if-none-match" in fields or "if-modified-since" in fields:
            answer = conditional(ready.held, fields)
            if answer.status != status:
                status, (first, rest) = answer.status, _wire(answer)
        if head_only and status == ready.held.answer.status:
            rest = ready.head_only
        self._transport.write(first + self._kitchen.date(now) + rest)
        self._log.write(self._begun, self._number, self._kitchen.world.authorities[host], address, status)
