"""Verbs that keep running: serve."""

from __future__ import annotations

import asyncio
import signal

import click

from letopis.cli.context import Given, verb
from letopis.serve import Server, run_serving


def announce(server: Server) -> None:
    """The one line that scripts wait for."""
    click.echo(f"listening on {server.address}")
    if server.setup_address:
        click.echo(f"no account yet: make the first owner at {server.setup_address}", err=True)


async def serve_until_stopped(server: Server) -> None:
    """Serves until Ctrl-C or a polite kill."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.stop)
    await server.run(lambda: announce(server))


@verb("serve", "letopis serve", "letopis serve --host 0.0.0.0 --port 9000")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.")
def serve_verb(given: Given, host: str | None, port: int | None) -> None:
    """Web interface and HTTP API over the archive."""
    given.set("serve.host", host)
    given.set("serve.port", port)
    with given.open() as archive:
        server = Server(archive, archive.settings.serve.host, archive.settings.serve.port)
        run_serving(serve_until_stopped(server))
