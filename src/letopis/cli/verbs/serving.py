"""Verbs that keep running: serve."""

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

from letopis.archive import Archive
from letopis.cli.context import Given, verb
from letopis.serve import Server, listen, run_serving
from letopis.serve.server import address_of, setup_address
from letopis.serve.workers import READY, Agreement, Workers


class Serving(Protocol):
    """What answers until it is stopped."""

    async def run(self, ready: Callable[[], None] = ...) -> None:
        """Until `stop`."""

    def stop(self) -> None:
        """Ends `run` soon."""


def announce(address: str, setup: str) -> None:
    """The one line that scripts wait for."""
    click.echo(f"listening on {address}")
    if setup:
        click.echo(f"no account yet: make the first owner at {setup}", err=True)


async def serve_until_stopped(serving: Callable[[], Serving], ready: Callable[[], None]) -> None:
    """Serves until Ctrl-C or a polite kill."""
    loop, made = asyncio.get_running_loop(), serving()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, made.stop)
    await made.run(ready)


@verb("serve", "letopis serve", "letopis serve --host 0.0.0.0 --port 9000 --workers 4")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.")
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes that answer requests."
)
@click.option("--socket", "inherited", type=int, hidden=True, help="A socket that another process listens on.")
def serve_verb(given: Given, host: str | None, port: int | None, workers: int, inherited: int | None) -> None:
    """Web interface and HTTP API over the archive."""
    given.set("serve.host", host)
    given.set("serve.port", port)
    with given.open() as archive:
        if inherited is not None:
            _work(archive, socket.socket(fileno=inherited))
        elif workers > 1:
            _lead(archive, workers)
        else:
            server = Server(archive, listen(archive.settings.serve.host, archive.settings.serve.port))
            run_serving(serve_until_stopped(lambda: server, lambda: announce(server.address, server.setup_address)))


def _work(archive: Archive, listening: socket.socket) -> None:
    """One of several workers: what it must know comes by its standard input."""
    listening.setblocking(False)
    server = Server(archive, listening, Agreement.from_line(sys.stdin.buffer.readline()))

    def ready() -> None:
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _when_alone, server)
        sys.stdout.buffer.write(READY)
        sys.stdout.buffer.flush()

    run_serving(serve_until_stopped(lambda: server, ready))


def _when_alone(server: Server) -> None:
    """The other end of the standard input is closed by whoever leads, or by the system when they die."""
    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        server.stop()


def _lead(archive: Archive, count: int) -> None:
    """Listens, and leaves answering to workers."""
    listening = listen(archive.settings.serve.host, archive.settings.serve.port)
    agreement = Agreement(secrets.token_urlsafe(9), count)
    address = address_of(listening)
    run_serving(
        serve_until_stopped(
            lambda: Workers(listening, sys.argv[1:], agreement),
            lambda: announce(address, setup_address(address, archive, agreement.code)),
        )
    )
