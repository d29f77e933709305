"""What one fetch costs: CPU time a page on loopback, against bare libcurl and other clients.

All clients ask the same server in another process over kept connections, 32
at a time; the rounds are interleaved and the best of each counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pycurl

from letopis.config.settings import FetchSettings
from letopis.fetch.client import Client
from letopis.fetch.curl import CookieJar, CurlTransport
from letopis.model import Limits, Request

CONCURRENCY = 32
GOAL_US = 80.0
_HEAD = (
    b"HTTP/1.1 200 OK\r\nServer: bench\r\nDate: Sun, 01 Mar 2026 12:00:00 GMT\r\n"
    b"Content-Type: text/html; charset=utf-8\r\nLast-Modified: Sun, 01 Mar 2026 12:00:00 GMT\r\n"
    b'ETag: "abc"\r\nCache-Control: no-cache\r\nContent-Length: %d\r\n\r\n'
)


class _Answering(asyncio.Protocol):
    """Answers every request with the same bytes."""

    answer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert isinstance(self.transport, asyncio.Transport)
        self.transport.write(self.answer * data.count(b"\r\n\r\n"))


async def _serve(size: int) -> None:
    """Serves pages of this size until it is ended; tells its port first."""
    _Answering.answer = _HEAD % size + b"x" * size
    listening = await asyncio.get_running_loop().create_server(_Answering, "127.0.0.1", 0)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await listening.serve_forever()


@contextmanager
def server(size: int) -> Iterator[str]:
    """The address of a server in a process of its own."""
    command = [sys.executable, __file__, "--serve", "--bytes", str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/page/"
        finally:
            process.kill()


def ours(base: str, count: int) -> float:
    """CPU seconds of `count` fetches through Client, Response included."""
    return asyncio.run(_ours(base, count))


async def _ours(base: str, count: int) -> float:
    def now() -> datetime:
        return datetime.now(UTC)

    settings, limits = FetchSettings(), Limits()
    transport = CurlTransport(settings, clock=now, jar=CookieJar())
    client = Client(transport, settings, user_agent="Letopis/0.1", clock=now)
    numbers = iter(range(count + CONCURRENCY))

    async def worker(most: int) -> None:
        for _ in range(most):
            response = await client.fetch(Request(f"{base}{next(numbers)}", limits=limits))
            assert response.status == 200

    await asyncio.gather(*(worker(1) for _ in range(CONCURRENCY)))
    begun = time.process_time()
    await asyncio.gather(*(worker(count // CONCURRENCY) for _ in range(CONCURRENCY)))
    spent = time.process_time() - begun
    await transport.close()
    return spent / (count // CONCURRENCY * CONCURRENCY)


class _Bare:
    """libcurl's multi interface with nothing around it: no limits, no headers read, no values built."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.epoll = select.epoll()
        self.watched: set[int] = set()
        self.multi = pycurl.CurlMulti()
        self.multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self.multi.setopt(pycurl.M_TIMERFUNCTION, lambda _milliseconds: None)
        self.handles = [self._handle() for _ in range(CONCURRENCY)]

    def _handle(self) -> pycurl.Curl:
        easy = pycurl.Curl()
        easy.setopt(pycurl.NOSIGNAL, 1)
        easy.setopt(pycurl.HEADERFUNCTION, lambda _line: None)
        easy.setopt(pycurl.WRITEFUNCTION, lambda _piece: None)
        return easy

    def _on_socket(self, what: int, fd: int, _multi: object, _data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            self.watched.discard(fd)
            self.epoll.unregister(fd)
            return
        events = (select.EPOLLIN if what & 1 else 0) | (select.EPOLLOUT if what & 2 else 0)
        (self.epoll.modify if fd in self.watched else self.epoll.register)(fd, events)
        self.watched.add(fd)

    def _start(self, easy: pycurl.Curl, number: int) -> None:
        easy.setopt(pycurl.URL, f"{self.base}{number}")
        self.multi.add_handle(easy)

    def run(self, count: int) -> float:
        begun = time.process_time()
        started = done = 0
        for easy in self.handles:
            self._start(easy, started)
            started += 1
        while done < count:
            self.multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
            for fd, events in self.epoll.poll(0.1):
                mask = (1 if events & select.EPOLLIN else 0) | (2 if events & select.EPOLLOUT else 0)
                self.multi.socket_action(fd, mask)
            for easy in self.multi.info_read()[1]:
                self.multi.remove_handle(easy)
                done += 1
                if started < count:
                    self._start(easy, started)
                    started += 1
        return (time.process_time() - begun) / count


def bare(base: str, count: int) -> float:
    """CPU seconds of a fetch with libcurl alone."""
    runner = _Bare(base)
    runner.run(CONCURRENCY)
    return runner.run(count)


def run(count: int = 6400, rounds: int = 5, size: int = 3000) -> dict[str, Any]:
    """The best round of each, in microseconds of CPU a fetch."""
    clients: dict[str, Callable[[str, int], float]] = {"bare libcurl": bare, "letopis": ours}
    best = dict.fromkeys(clients, float("inf"))
    with server(size) as base:
        for _ in range(rounds):
            for name, client in clients.items():
                best[name] = min(best[name], client(base, count) * 1e6)
    return {"microseconds": best, "ratio": best["letopis"] / best["bare libcurl"], "goal_us": GOAL_US, "bytes": size}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=6400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bytes", type=int, default=3000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help="be the server")
    options = parser.parse_args(argv)
    if options.serve:
        asyncio.run(_serve(options.bytes))
    result = run(options.count, options.rounds, options.bytes)
    if options.json:
        print(json.dumps(result))
        return 0
    times = result["microseconds"]
    print(f"{'client':<14}{'us CPU a fetch':>16}{'ratio':>8}{'goal':>8}")
    for name, spent in times.items():
        goal = f"{GOAL_US:.0f}" if name == "letopis" else ""
        print(f"{name:<14}{spent:>16.1f}{spent / times['bare libcurl']:>8.2f}{goal:>8}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
