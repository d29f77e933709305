"""A real HTTP/1.1 server for a world, cheap enough not to matter in a benchmark of its clients."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import IO, Literal

from letopis.demo.wire import Clock, Connection, Kitchen, RequestLog
from letopis.demo.world import World
from letopis.errors import NotReady, UsageError

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

    Layouts: `addresses` gives each host a loopback address of its own on one
    port, `ports` a port of its own on 127.0.0.1, and `names` keeps the
    world's names and tells hosts apart by the Host field alone. Afterwards
    `world` is the world under its real addresses. Belongs to one event loop.
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
        kitchen = Kitchen(self.world, self._clock, self._room)
        for number, sock in enumerate(sockets):
            self._servers.append(await self._listen(kitchen, -1 if self._layout == "names" else number, sock))

    async def _listen(self, kitchen: Kitchen, default: int, sock: socket.socket) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: Connection(kitchen, self._log, default, self._open), sock=sock)

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
        yield server
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
