"""The simulated web with a log of every byte it sent; one of its hosts dies and returns, another one lies.

All hosts but the last show the simulated world. The one before the last dies three times: nobody listens, every answer
is 503, connections end in the middle. The last one lies about its pages: see `lies`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from letopis.archive import digest_text
from letopis.binary import sha1_digest
from letopis.model import http_date, to_millis
from letopis_demo import World
from letopis_demo.resources import DemoResponse, conditional_response

Fault = Literal["silent", "busy", "cut"]
"""Nobody listens; every answer is 503; a connection ends within its answer."""

DEATHS: tuple[tuple[float, float, Fault], ...] = ((0.2, 0.35, "silent"), (0.5, 0.55, "busy"), (0.7, 0.75, "cut"))
"""From which part of the time to which other the dying host is away, and how."""
_TRIES = 20
T = TypeVar("T")


class WebLine(NamedTuple):
    """One request as the web saw it, and what it sent; times are seconds since 1970.

    `digest` is that of the body which a reader of HTTP finds in the answer,
    `whole` whether all bytes that were announced were sent.
    """

    began: float
    ended: float
    method: str
    url: str
    status: int
    digest: str
    whole: bool

    @property
    def host(self) -> str:
        """Host and port."""
        return self.url.split("/")[2]


class Silence(NamedTuple):
    """A host where nobody listened, from when to when."""

    host: str
    began: float
    ended: float


class SentAnswer(NamedTuple):
    """An answer with the length that it announces, which may be another one than it has."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    announced: int

    @classmethod
    def honest(cls, answer: DemoResponse) -> SentAnswer:
        """An answer of the world."""
        return cls(answer.status, answer.headers, answer.body, len(answer.body))

    def read(self) -> bytes:
        """The body that a reader of HTTP finds."""
        return self.body[: self.announced]


_HTML = ("Content-Type", "text/html; charset=utf-8")
LIES = ("tag", "not-modified", "new-tag", "long", "short", "digest", "future", "status")


def lies(path: str, fields: dict[str, str], now: float, period: float) -> SentAnswer:
    """The answer of a host whose pages say something new every `period` seconds, and whose header says otherwise."""
    number = int(now / period)
    name = path.strip("/")
    links = "".join(f'<li><a href="/{lie}">{lie}</a>' for lie in LIES)
    text = f"<html><title>{name or 'home'}</title><p>This page is about {name or 'lies'}. "
    moving = f"{text}<p>Edition number {number} of the paper tells of {_WORDS[number % len(_WORDS)]} in the town."
    headers: tuple[tuple[str, str], ...] = (_HTML,)
    body, status, excess = moving.encode(), 200, 0
    match name:
        case "":
            body = f"{text}<ul>{links}</ul>".encode()
        case "tag":  # the same entity tag whatever the page says
            headers += (("ETag", '"always"'),)
        case "not-modified":  # nothing is ever modified, once somebody has asked
            headers += (("ETag", '"never"'), ("Last-Modified", http_date(datetime(2020, 1, 1, tzinfo=UTC))))
            if "if-none-match" in fields or "if-modified-since" in fields:
                return SentAnswer(304, headers, b"", 0)
        case "new-tag":  # another tag each time for a page that stays
            headers, body = (*headers, ("ETag", f'"{now}"')), text.encode()
        case "long":
            excess = 100
        case "short":
            excess = -20
        case "digest":
            headers += (("Digest", "sha-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),)
        case "future":
            later = datetime.fromtimestamp(now, UTC) + timedelta(days=300)
            headers += (("Last-Modified", http_date(later)),)
        case "status":
            status = (200, 404, 500)[number % 3]
        case _:
            status, body = 404, b"no such page"
    return SentAnswer(status, headers, body, len(body) + excess)


_WORDS = ("bread", "rivers", "an election", "new bridges", "the theatre", "a storm", "schools")


class WitnessWeb:
    """Serves the web for `seconds`, and keeps `lines` and `silences`. Belongs to one event loop.

    World time runs `speed` times as fast as time, and never ahead of it.
    """

    def __init__(self, hosts: int, pages: int, seconds: float, speed: float, seed: int = 1) -> None:
        self.lines: list[WebLine] = []
        self.silences: list[Silence] = []
        self._seconds, self._speed = seconds, speed
        self._period = max(2.0, seconds / 60)
        self._began = time.time()
        start = datetime.fromtimestamp(self._began - seconds * (speed + 1), UTC) - timedelta(days=10)
        self._world = World(seed, hosts - 1, pages, start, crawl_delay=0.0)
        self._ahead = timedelta(days=10)
        self.authorities: tuple[str, ...] = ()
        self._begun, self._ending, self.ended = asyncio.Event(), asyncio.Event(), threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.StreamWriter] = set()

    async def run(self, ready: threading.Event, stop: asyncio.Event) -> None:
        """Listens until `stop`."""
        self._loop = asyncio.get_running_loop()
        await self._listen()
        self._world = self._world.at(self.authorities[:-1])
        ready.set()
        dying = asyncio.ensure_future(self._die_and_return())
        ending = asyncio.ensure_future(self._end(dying))
        await stop.wait()
        for task in (ending, dying):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._close()
        await self._settle()

    async def _settle(self) -> None:
        """Returns when every connection has ended, also one that was accepted while the ports were closed."""
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for writer in self._open:
                writer.transport.abort()
            await asyncio.wait(others, timeout=0.1)

    def begin(self) -> None:
        """From now on time counts: for the world, and for the host that dies. From any thread."""
        assert self._loop is not None, "it runs"
        self._began = time.time()
        self._loop.call_soon_threadsafe(self._begun.set)

    def end(self) -> None:
        """From now on nobody listens anywhere. From any thread; returns when that is so."""
        assert self._loop is not None, "it runs"
        self._loop.call_soon_threadsafe(self._ending.set)
        self.ended.wait()

    def seeds(self) -> list[str]:
        """The home pages of all hosts."""
        return [f"http://{authority}/" for authority in self.authorities]

    @property
    def dying(self) -> str:
        """The host that dies."""
        return self.authorities[-2]

    @property
    def lying(self) -> str:
        """The host that lies."""
        return self.authorities[-1]

    async def _listen(self) -> None:
        for _ in range(_TRIES):
            port = 0
            try:
                for number in range(self._world.shape.hosts + 1):
                    self._servers.append(await self._start(number, port))
                    port = self._servers[0].sockets[0].getsockname()[1]
            except OSError:
                for server in self._servers:
                    server.close()
                self._servers.clear()
                continue
            self.authorities = tuple(f"{_address(number)}:{port}" for number in range(len(self._servers)))
            return
        raise OSError("no port is free on all addresses of the web")

    async def _start(self, number: int, port: int) -> asyncio.Server:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._connection(number, reader, writer)

        return await asyncio.start_server(handle, _address(number), port)

    async def _die_and_return(self) -> None:
        """Closes the port of the dying host for its first death, and opens it again."""
        number, port = len(self._servers) - 2, int(self.dying.rpartition(":")[2])
        first, last, _ = DEATHS[0]
        await self._begun.wait()
        await asyncio.sleep(first * self._seconds)
        self._servers[number].close()
        for writer in [each for each in self._open if each.get_extra_info("sockname")[0] == _address(number)]:
            writer.close()
        began = time.time()
        try:
            await asyncio.sleep((last - first) * self._seconds)
            self._servers[number] = await self._start(number, port)
        finally:
            self.silences.append(Silence(self.dying, began, time.time()))

    async def _end(self, dying: asyncio.Future[None]) -> None:
        """Closes every port for good, when somebody asks for it."""
        await self._ending.wait()
        dying.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await dying
        self._close()
        self.silences += [Silence(each, time.time(), math.inf) for each in self.authorities]
        self.ended.set()

    def _close(self) -> None:
        for server in self._servers:
            server.close()
        for writer in list(self._open):
            writer.close()

    def _fault(self, number: int) -> Fault | None:
        if number != len(self._servers) - 2 or not self._begun.is_set():
            return None
        part = (time.time() - self._began) / self._seconds
        return next((fault for first, last, fault in DEATHS if first <= part < last), None)

    async def _connection(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while await self._exchange(number, reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _exchange(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        began = time.time()
        method, path, _ = head.partition("\r\n")[0].split(" ")
        fields = {name.lower(): value.strip() for name, _, value in (row.partition(":") for row in head.split("\r\n"))}
        fault = self._fault(number)
        answer = self._answer(number, path, fields)
        if fault == "busy":
            answer = SentAnswer(503, (_HTML,), b"busy", 4)
        body = b"" if method == "HEAD" or answer.status == 304 else answer.body
        sent = body[: len(body) // 2] if fault == "cut" and body else body
        # What is written to a connection that was closed meanwhile reaches nobody.
        closed = writer.is_closing()
        whole = not closed and (len(sent) >= answer.announced or answer.status == 304 or method == "HEAD")
        digest = digest_text(sha1_digest(answer.read())) if whole and answer.status != 304 else ""
        # Written down before the answer can be read: no reader is ahead of the log.
        self.lines.append(
            WebLine(
                began, time.time(), method, f"http://{self.authorities[number]}{path}", answer.status, digest, whole
            )
        )
        writer.write(_head(answer) + sent)
        await writer.drain()
        return whole and len(sent) == answer.announced

    def _answer(self, number: int, path: str, fields: dict[str, str]) -> SentAnswer:
        if number == len(self._servers) - 1:
            if path == "/robots.txt":
                return SentAnswer(404, (_HTML,), b"", 0)
            return lies(path, fields, time.time(), self._period)
        passed = (time.time() - self._began) * self._speed
        at = self._world.start + self._ahead + timedelta(seconds=passed)
        return SentAnswer.honest(conditional_response(self._world.held(number, path, to_millis(at)), fields))


def _head(answer: SentAnswer) -> bytes:
    fields = [*answer.headers, ("Date", http_date(datetime.now(UTC)))]
    if answer.status != 304:
        fields.append(("Content-Length", str(answer.announced)))
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}", *(f"{n}: {v}" for n, v in fields)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _address(number: int) -> str:
    """Every host has an address of its own."""
    return f"127.0.3.{2 + number}"


@contextmanager
def serving(web: WitnessWeb) -> Iterator[WitnessWeb]:
    """The web at work in a thread of its own."""
    ready, loop, stop = threading.Event(), asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(web.run(ready, stop)), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield web
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def write_lines(file: Path, lines: Sequence[NamedTuple]) -> None:
    """One JSON object per line."""
    file.write_text("".join(json.dumps(line._asdict()) + "\n" for line in lines))


def read_lines(file: Path, kind: type[T]) -> list[T]:
    """What `write_lines` wrote."""
    return [kind(**json.loads(line)) for line in file.read_text().splitlines()]
