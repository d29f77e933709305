"""Verbs that keep running: run, demo, serve."""

from __future__ import annotations

import asyncio
import socket

import click

from letopis.api.server import (
    Server,
    listen,
    run_serving,
)
from letopis.cli.context import CliContext, verb
from letopis.crawl import CrawlOptions
from letopis.daemon.event_log import configure_logging
from letopis.daemon.http_workers import announce_address, serve_as_worker, serve_until_stopped, serve_with_workers
from letopis.daemon.services import DEMO_SETTINGS, Daemon, run_demo
from letopis.fetch import private_ok


@verb("serve", "letopis serve", "letopis serve --host 0.0.0.0 --port 9000 --workers 4")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.")
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes that answer requests."
)
@click.option("--socket", "inherited", type=int, hidden=True, help="A socket that another process listens on.")
def serve_verb(given: CliContext, host: str | None, port: int | None, workers: int, inherited: int | None) -> None:
    """Web interface and HTTP API over the archive."""
    given.set("serve.host", host)
    given.set("serve.port", port)
    with given.open() as archive:
        if inherited is not None:
            serve_as_worker(archive, socket.socket(fileno=inherited))
        elif workers > 1:
            serve_with_workers(archive, workers)
        else:
            server = Server(archive, listen(archive.settings.serve.host, archive.settings.serve.port))
            run_serving(
                serve_until_stopped(lambda: server, lambda: announce_address(server.address, server.setup_address))
            )


@verb("run", "letopis run", "letopis run --port 9000 --config site.toml")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.")
def run_verb(given: CliContext, host: str | None, port: int | None) -> None:
    """The daemon: crawls what is planned, runs watches and jobs, and shows the web interface, until Ctrl-C."""
    given.set("serve.host", host)
    given.set("serve.port", port)
    with given.open() as archive:
        allowed = private_ok(archive.settings.fetch.private, "cli")
        log = configure_logging(given.verbose, as_json=given.as_json)
        asyncio.run(Daemon(archive, CrawlOptions(private_ok=allowed), log).run())


@verb("demo", "letopis demo", "letopis demo --port 0 --archive /tmp/demo")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.")
@click.option("--hosts", type=click.IntRange(1, 200), default=6, show_default=True, help="Hosts of the simulated web.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same web.")
def demo_verb(given: CliContext, host: str | None, port: int | None, hosts: int, seed: int) -> None:
    """Start a small simulated web on this machine, crawl it, and show it; needs no network."""
    for name, value in {"serve.host": host, "serve.port": port, **DEMO_SETTINGS}.items():
        given.set(name, value)
    with given.open() as archive:
        asyncio.run(run_demo(archive, hosts, seed, configure_logging(given.verbose, as_json=given.as_json)))
