"""A real local web that misbehaves, for any test: the fixture `misbehaving_site`.

`site.url("slow-drip")` is an address whose server drips; `site.log` lists
what was asked. `ITEMS` in `behaviours.py` names every fault with what a
bounded client has to report for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import http2
import pytest


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as the server read it; header names in lower case."""

    server: str
    method: str
    target: str
    headers: dict[str, str]


@dataclass(slots=True)
class Exchange:
    """One request with the means to answer it, well or badly."""

    asked: Asked
    writer: asyncio.StreamWriter
    keep_alive: bool = True

    @property
    def path(self) -> str:
        return self.asked.target.split("?", 1)[0]

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, status: str = "200 OK", *headers: str, body: bytes = b"", length: bool = True) -> None:
        lines = [f"HTTP/1.1 {status}", *headers]
        if length:
            lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        await self.send(head if self.asked.method == "HEAD" else head + body)

    def hang_up(self) -> None:
        """Ends the connection in order after this answer."""
        self.keep_alive = False

    def reset(self) -> None:
        """Ends it with a reset, as crashed servers and firewalls do."""
        self.keep_alive = False
        reset_connection(self.writer)


Behaviour = Callable[[Exchange], Awaitable[None]]
Route = Callable[[str, str], Behaviour]


def reset_connection(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _read_request(server: str, reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError, asyncio.LimitOverrunError):
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, _, rest = first.partition(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Asked(server, method, rest.rsplit(" ", 1)[0], headers)


@dataclass(slots=True)
class Site:
    """Servers on ports of their own, in a thread of their own."""

    folder: Path
    route: Route
    log: list[Asked] = field(default_factory=list)
    ports: dict[str, int] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _loop: asyncio.AbstractEventLoop | None = None
    _stop: asyncio.Event | None = None

    def base(self, server: str = "main", host: str = "127.0.0.1") -> str:
        scheme = "https" if server.startswith("tls") else "http"
        return f"{scheme}://{host}:{self.ports[server]}"

    def url(self, path: str = "ok", server: str = "main") -> str:
        return f"{self.base(server)}/{path.lstrip('/')}"

    def asked(self, path: str) -> list[Asked]:
        return [one for one in self.log if one.target.split("?", 1)[0] == "/" + path.lstrip("/")]

    @property
    def ca_file(self) -> Path:
        return self.folder / "authority.pem"

    async def _serve(self, ready: threading.Event, plain: tuple[str, ...], tls: dict[str, ssl.SSLContext]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        servers = []
        for name in (*plain, *tls):
            server = await asyncio.start_server(self._handler(name), "127.0.0.1", 0, ssl=tls.get(name), limit=1 << 16)
            self.ports[name] = server.sockets[0].getsockname()[1]
            servers.append(server)
        ready.set()
        await self._stop.wait()
        for server in servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _handler(self, server: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await self._converse(server, reader, writer)
            self._tasks.discard(task)
            writer.transport.abort()

        return handle

    async def _converse(self, server: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if server == "reset-on-accept":
            return reset_connection(writer)
        if server == "tls-http2":
            with contextlib.suppress(asyncio.IncompleteReadError):
                await http2.converse(reader, writer, b"<!doctype html><title>Two</title>")
            return None
        while True:
            asked = await _read_request(server, reader)
            if asked is None:
                return None
            self.log.append(asked)
            exchange = Exchange(asked, writer)
            await self.route(server, exchange.path)(exchange)
            if not exchange.keep_alive:
                if not writer.transport.is_closing():
                    writer.close()
                    await writer.wait_closed()
                return None

    def settle(self) -> None:
        """Until what was sent to it before has been read: nobody else's requests appear in the log from then on."""

        async def turns() -> None:
            for _ in range(5):
                await asyncio.sleep(0)

        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(turns(), self._loop).result(300)

    def stop(self) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)


def make_certificates(folder: Path) -> dict[str, ssl.SSLContext]:
    """A server that `ca_file` vouches for, and one that nobody does; none without the openssl command."""
    contexts = {}
    for server, file, name in (
        ("tls", "authority.pem", "IP:127.0.0.1"),
        ("tls-untrusted", "stranger.pem", "DNS:elsewhere.test"),
    ):
        key, certificate = folder / f"{server}.key", folder / file
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
        command += ["-addext", f"subjectAltName={name}", "-keyout", str(key), "-out", str(certificate)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return {}
        contexts[server] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        contexts[server].load_cert_chain(certificate, key)
    contexts["tls-http2"] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    contexts["tls-http2"].load_cert_chain(folder / "authority.pem", folder / "tls.key")
    contexts["tls-http2"].set_alpn_protocols(["h2"])
    return contexts


ROBOTS_SERVERS = ("robots-5xx", "robots-huge", "robots-html", "robots-404", "robots-loop")
PLAIN_SERVERS = ("main", "other", *ROBOTS_SERVERS, "reset-on-accept")


@contextlib.contextmanager
def running_site(folder: Path, route: Route) -> Iterator[Site]:
    """All servers, until the end of the block."""
    site, ready = Site(folder, route), threading.Event()
    tls = make_certificates(folder)
    thread = threading.Thread(target=lambda: asyncio.run(site._serve(ready, PLAIN_SERVERS, tls)), daemon=True)
    thread.start()
    assert ready.wait(300), "the site did not start"
    try:
        yield site
    finally:
        site.stop()
        thread.join(300)


@pytest.fixture(scope="session")
def _shared_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    from behaviours import route

    with running_site(tmp_path_factory.mktemp("site"), route) as site:
        yield site


@pytest.fixture
def misbehaving_site(_shared_site: Site) -> Site:
    """The misbehaving web with an empty log."""
    _shared_site.settle()
    _shared_site.log.clear()
    return _shared_site
