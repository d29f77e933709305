"""Runs the application until it is told to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from letopis.archive import Archive
from letopis.errors import NotReady
from letopis.serve.app import create_app

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

    def __init__(self, archive: Archive, host: str, port: int) -> None:
        self._socket = _listen(host, port)
        self._app = create_app(archive)
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
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

    @property
    def setup_address(self) -> str:
        """Where the first owner makes an account; empty when there is one."""
        desk = self._app.state.desk
        return f"{self.address}login?setup={desk.code}" if desk.needs_owner() else ""

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serves until `stop`; answers in flight are finished."""
        serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not serving.done():
            await asyncio.sleep(0.01)
        ready()
        await serving
        self._app.state.lookout.close()

    def stop(self) -> None:
        """Ends `run` soon; safe to call from a signal handler."""
        self._app.state.stopping = True
        self._server.should_exit = True


def _listen(host: str, port: int) -> socket.socket:
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
