"""The HTTP service as processes: one that answers until it is stopped, or one that listens and workers that answer."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from typing import Protocol

import click

from letopis.api.server import (
    WORKER_READY,
    Server,
    WorkerConfig,
    WorkerPool,
    listen,
    run_serving,
    setup_address,
    socket_address,
)
from letopis.archive import Archive


class StoppableServer(Protocol):
    """What answers until it is stopped."""

    async def run(self, ready: Callable[[], None] = ...) -> None:
        """Until `stop`."""

    def stop(self) -> None:
        """Ends `run` soon."""


def announce_address(address: str, setup: str) -> None:
    """The one line that scripts wait for."""
    click.echo(f"listening on {address}")
    if setup:
        click.echo(f"no account yet: make the first owner at {setup}", err=True)


async def serve_until_stopped(serving: Callable[[], StoppableServer], ready: Callable[[], None]) -> None:
    """Serves until Ctrl-C or a polite kill."""
    loop, made = asyncio.get_running_loop(), serving()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, made.stop)
    await made.run(ready)


def serve_as_worker(archive: Archive, listening: socket.socket) -> None:
    """One of several workers: what it must know comes by its standard input."""
    listening.setblocking(False)
    server = Server(archive, listening, WorkerConfig.from_line(sys.stdin.buffer.readline()))

    def ready() -> None:
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _stop_when_orphaned, server)
        sys.stdout.buffer.write(WORKER_READY)
        sys.stdout.buffer.flush()

    run_serving(serve_until_stopped(lambda: server, ready))


def _stop_when_orphaned(server: Server) -> None:
    """The other end of the standard input is closed by whoever leads, or by the system when they die."""
    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        server.stop()


def serve_with_workers(archive: Archive, count: int) -> None:
    """Listens, and leaves answering to workers."""
    listening = listen(archive.settings.serve.host, archive.settings.serve.port)
    agreement = WorkerConfig(secrets.token_urlsafe(9), count)
    address = socket_address(listening)
    run_serving(
        serve_until_stopped(
            lambda: WorkerPool(listening, sys.argv[1:], agreement),
            lambda: announce_address(address, setup_address(address, archive, agreement.code)),
        )
    )
