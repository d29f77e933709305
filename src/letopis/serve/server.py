"""Runs the application until it is told to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from letopis.archive import Archive
from letopis.catalog.accounts import Accounts
from letopis.errors import NotReady
from letopis.serve.app import create_app
from letopis.serve.throttle import TRIES, Throttle
from letopis.serve.workers import Agreement

try:
    from uvloop import new_event_loop
except ImportError:  # there is none for Windows
    from asyncio import new_event_loop  # type: ignore[assignment]


def run_serving(work: Coroutine[Any, Any, None]) -> None:
    """Runs on the fastest event loop that is installed."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(work)


class _Deaf(uvicorn.Server):
    """Leaves signals to whoever runs it: a crawl beside the service must stop too."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures none."""
        yield


class Server:
    """One listening socket; port 0 picks a free one. `address` is known before it serves."""

    def __init__(self, archive: Archive, listening: socket.socket, agreement: Agreement | None = None) -> None:
        """With an agreement it is one of several workers on that socket."""
        self._socket = listening
        self._archive = archive
        self._app = create_app(archive)
        if agreement is not None:
            desk = self._app.state.desk
            desk.code = agreement.code
            # Each worker counts alone: together they allow no more tries than one would.
            desk.throttle = Throttle(tries=max(1, TRIES // agreement.workers))
        # The word of proxies is our own business (serve.trusted_proxies), not uvicorn's.
        config = uvicorn.Config(
            self._app, log_level="warning", access_log=False, lifespan="off", proxy_headers=False, server_header=False,
            timeout_graceful_shutdown=10,
            timeout_keep_alive=75, h11_max_incomplete_event_size=64 * 1024,
        )  # fmt: skip
        self._server = _Deaf(config)

    @property
    def address(self) -> str:
        """Where people can go."""
        return address_of(self._socket)

    @property
    def setup_address(self) -> str:
        """Where the first owner makes an account; empty when there is one."""
        return setup_address(self.address, self._archive, self._app.state.desk.code)

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serves until `stop`; answers in flight are finished."""
        serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not serving.done():
            await asyncio.sleep(0.01)
        ready()
        await serving
        self._app.state.lookout.close()
        if self._app.state.access_log is not None:
            self._app.state.access_log.close()

    def stop(self) -> None:
        """Ends `run` soon; safe to call from a signal handler."""
        self._app.state.stopping = True
        self._server.should_exit = True


def address_of(listening: socket.socket) -> str:
    """Where people can go to reach a socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def setup_address(base: str, archive: Archive, code: str) -> str:
    """Where the first owner makes an account; empty when there is one."""
    return "" if Accounts(archive.catalog.database).users() else f"{base}login?setup={code}"


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections; NotReady when the address is taken or not ours."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise NotReady(f"cannot listen on {host}:{port}: {error.strerror}; choose another --host or --port") from None
    listening.listen(1024)
    listening.setblocking(False)
    return listening
