"""Runs the application until it is stopped: in this process, or in several workers on one listening socket.

The first process binds the socket and starts the workers, which inherit it; the system hands each connection to
whoever accepts it first. What all must agree on is told to each through its standard input, where nobody else reads.
A worker that dies is started again; one that cannot start ends all, and when the first process dies its workers see
that their standard input is closed.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Protocol, cast

import uvicorn
from starlette.types import ASGIApp

from letopis.api.app import create_app, create_replay_app
from letopis.api.connections import BoundedConnection, ConnectionPool, raise_descriptor_limit
from letopis.api.middleware import trusted_addresses
from letopis.archive import Archive
from letopis.archive.accounts import LOGIN_TRIES, LoginThrottle, accounts_of
from letopis.errors import NotReady
from letopis.replay.origin import NO_ORIGIN, ReplayDoor
from letopis.tuples import NamedTuple

_QUICK_SECONDS = 5.0
_QUICK_DEATHS = 5
_STOP_SECONDS = 15.0
WORKER_READY = b"ready\n"
"""What a worker writes when it answers."""


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What all workers have in common: the code for the first owner, and how many they are."""

    code: str
    workers: int

    def to_line(self) -> bytes:
        """One line for the standard input of a worker."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> WorkerConfig:
        """The inverse."""
        return cls(**json.loads(line))


class WorkerPool:
    """Keeps a number of workers running until it is stopped."""

    def __init__(self, sockets: Sequence[socket.socket], words: Sequence[str], agreement: WorkerConfig) -> None:
        """`words` are the arguments of `letopis` for one worker; the numbers of the sockets are added."""
        self._sockets = tuple(sockets)
        self._words = [*words, *(word for one in sockets for word in ("--socket", str(one.fileno())))]
        self._agreement = agreement
        self._running: set[asyncio.subprocess.Process] = set()
        self._quick_deaths = 0
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends `run` soon: workers finish what they answer. Safe to call from a signal handler."""
        self._stopping.set()
        for process in self._running:
            if process.returncode is None:
                process.terminate()

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Returns when all workers have ended; NotReady when they cannot be kept alive."""
        started = asyncio.gather(*(self._start() for _ in range(self._agreement.workers)))
        try:
            first = await started
            ready()
            await asyncio.gather(*(self._keep(process) for process in first))
        finally:
            await self._end()

    async def _keep(self, process: asyncio.subprocess.Process) -> None:
        """One place among the workers: a worker that dies is replaced by another."""
        while True:
            began = time.monotonic()
            await process.wait()
            self._running.discard(process)
            if self._stopping.is_set():
                return
            self._quick_deaths = self._quick_deaths + 1 if time.monotonic() - began < _QUICK_SECONDS else 0
            if self._quick_deaths >= _QUICK_DEATHS:
                raise NotReady("workers die as soon as they start; run 'letopis serve' without --workers to see why")
            process = await self._start()

    async def _start(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "letopis.cli", *self._words,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            pass_fds=[one.fileno() for one in self._sockets], start_new_session=True,
        )  # fmt: skip
        self._running.add(process)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(self._agreement.to_line())
        if await process.stdout.readline() != WORKER_READY and not self._stopping.is_set():
            raise NotReady("a worker could not start; run 'letopis serve' without --workers to see why")
        return process

    async def _end(self) -> None:
        """Nobody outlives this."""
        self.stop()
        waiting = [asyncio.create_task(process.wait()) for process in self._running]
        if waiting:
            await asyncio.wait(waiting, timeout=_STOP_SECONDS)
        for process in self._running:
            if process.returncode is None:
                process.kill()
                await process.wait()


try:
    from uvloop import new_event_loop
except ImportError:  # there is none for Windows
    from asyncio import new_event_loop  # type: ignore[assignment]


def run_serving(work: Coroutine[Any, Any, None]) -> None:
    """Runs on the fastest event loop that is installed."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(work)


class _SignalFreeServer(uvicorn.Server):
    """Leaves signals to whoever runs it: a crawl beside the service must stop too."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures none."""
        yield


def _connections(archive: Archive) -> ConnectionPool:
    """As many as this process may have descriptors for."""
    return ConnectionPool(raise_descriptor_limit(), is_proxy=trusted_addresses(archive.settings.serve.trusted_proxies))


class Server:
    """One listening socket; port 0 picks a free one. `address` is known before it serves."""

    def __init__(
        self,
        archive: Archive,
        listening: socket.socket,
        agreement: WorkerConfig | None = None,
        connections: ConnectionPool | None = None,
        replay: socket.socket | None = None,
    ) -> None:
        """With an agreement it is one of several workers on that socket; `connections` are as many as fit.

        `replay` listens for the replay origin; without it archived pages run no scripts.
        """
        self._socket = listening
        self._archive = archive
        pool = connections or _connections(archive)
        door = ReplayDoor(archive.settings.serve.replay_origin, replay.getsockname()[1]) if replay else None
        self._app = create_app(archive, door)
        if agreement is not None:
            auth = self._app.state.auth
            auth.code = agreement.code
            # Each worker counts alone: together they allow no more tries than one would.
            auth.throttle = LoginThrottle(tries=max(1, LOGIN_TRIES // agreement.workers))
        self._servers = [(_uvicorn_server(self._app, pool), listening)]
        sites = create_replay_app(archive, door, _home_of(archive, self.address)) if door is not None else None
        if sites is not None and replay is not None:
            self._servers.append((_uvicorn_server(sites, pool), replay))

    @property
    def address(self) -> str:
        """Where people can go."""
        return socket_address(self._socket)

    @property
    def setup_address(self) -> str:
        """Where the first owner makes an account; empty when there is one."""
        return setup_address(self.address, self._archive, self._app.state.auth.code)

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serves until `stop`; answers in flight are finished."""
        serving = [asyncio.create_task(server.serve(sockets=[sock])) for server, sock in self._servers]
        while not all(server.started for server, _ in self._servers) and not any(task.done() for task in serving):
            await asyncio.sleep(0.01)
        ready()
        await asyncio.gather(*serving)
        if self._app.state.access_log is not None:
            self._app.state.access_log.close()

    def stop(self) -> None:
        """Ends `run` soon; safe to call from a signal handler."""
        self._app.state.stopping = True
        for server, _ in self._servers:
            server.should_exit = True


def _uvicorn_server(app: ASGIApp, connections: ConnectionPool) -> _SignalFreeServer:
    # The word of proxies is our own business (serve.trusted_proxies), not uvicorn's. There are no web sockets: a
    # connection that became one would leave the pool without being counted out.
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="off", proxy_headers=False, server_header=False,
        timeout_graceful_shutdown=10,
        timeout_keep_alive=75, ws="none",
        http=cast("type[asyncio.Protocol]", partial(BoundedConnection, connections)),
    )  # fmt: skip
    return _SignalFreeServer(config)


def _home_of(archive: Archive, address: str) -> str:
    """The service's own origin, as readers of the replay origin know it who bring no other."""
    names = [name for name in archive.settings.serve.hosts if "*" not in name]
    if archive.settings.serve.replay_origin and names:
        return f"https://{names[0]}"
    return address.rstrip("/").replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//localhost:")


def listen_for_replay(archive: Archive, beside: socket.socket) -> socket.socket | None:
    """The socket of the replay origin: on the port that is set, else the next one, else whatever is free."""
    serve, port = archive.settings.serve, beside.getsockname()[1] + 1
    if serve.replay_origin == NO_ORIGIN:
        return None
    if serve.replay_port:
        return listen(serve.host, serve.replay_port)
    try:
        return listen(serve.host, port if serve.port and port < 65536 else 0)
    except NotReady:
        return listen(serve.host, 0)


def socket_address(listening: socket.socket) -> str:
    """Where people can go to reach a socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def setup_address(base: str, archive: Archive, code: str) -> str:
    """Where the first owner makes an account; empty when there is one, or none can be kept."""
    return "" if archive.is_read_only or accounts_of(archive).users() else f"{base}login?setup={code}"


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections; NotReady when the address is taken, not ours, or none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError, UnicodeError) as error:
        listening.close()
        why = getattr(error, "strerror", None) or error
        raise NotReady(f"cannot listen on {host}:{port}: {why}; choose another --host or --port") from None
    listening.listen(1024)
    listening.setblocking(False)
    return listening


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
Announce = Callable[[str, str], None]
"""Hears the address that answers now, and where the first owner makes an account; that is empty when there is one."""


class StoppableServer(Protocol):
    """What answers until it is stopped."""

    async def run(self, ready: Callable[[], None] = ...) -> None:
        """Until `stop`."""

    def stop(self) -> None:
        """Ends `run` soon."""


async def run_until_stopped(server: StoppableServer, ready: Callable[[], None]) -> None:
    """Serves until Ctrl-C or a polite kill."""
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, server.stop)
    await server.run(ready)


class OpenServer(NamedTuple):
    """A server that listens and is about to answer, and what tells people of it."""

    server: StoppableServer
    announce: Callable[[], None]


def open_server(archive: Archive, workers: int, words: Sequence[str], announce: Announce) -> OpenServer:
    """Listens; answers will come from this process, or from workers: `words` are the arguments of `letopis` for one."""
    listening = listen(archive.settings.serve.host, archive.settings.serve.port)
    replay = listen_for_replay(archive, listening)
    if workers == 1:
        server = Server(archive, listening, replay=replay)
        return OpenServer(server, lambda: announce(server.address, server.setup_address))
    agreement, address = WorkerConfig(secrets.token_urlsafe(9), workers), socket_address(listening)
    pool = WorkerPool([one for one in (listening, replay) if one is not None], words, agreement)
    return OpenServer(pool, lambda: announce(address, setup_address(address, archive, agreement.code)))


def serve_as_worker(archive: Archive, listening: socket.socket, replay: socket.socket | None = None) -> None:
    """One of several workers: what it must know comes by its standard input."""
    for one in (listening, replay):
        if one is not None:
            one.setblocking(False)
    server = Server(archive, listening, WorkerConfig.from_line(sys.stdin.buffer.readline()), replay=replay)

    def ready() -> None:
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _stop_when_orphaned, server)
        sys.stdout.buffer.write(WORKER_READY)
        sys.stdout.buffer.flush()

    run_serving(run_until_stopped(server, ready))


def _stop_when_orphaned(server: Server) -> None:
    """The other end of the standard input is closed by whoever leads, or by the system when they die."""
    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        server.stop()
