"""Verbs that keep running: run, serve, mcp."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import click

from letopis.api.mcp import require_mcp, serve_standard_streams
from letopis.api.server import (
    Server,
    listen,
    listen_for_replay,
    open_server,
    run_serving,
    run_until_stopped,
    serve_as_worker,
)
from letopis.archive import Archive
from letopis.cli.context import CliContext, verb
from letopis.crawl import CrawlOptions
from letopis.daemon import Daemon, Service, log_event, open_event_log
from letopis.errors import UsageError
from letopis.fetch import private_ok
from letopis.jobs.supervisor import Supervisor
from letopis.operations.saved_looks import SavedSearchLoop
from letopis.operations.upkeep import exposure_warning


def announce_address(address: str, setup: str) -> None:
    """The one line that scripts wait for."""
    click.echo(f"listening on {address}")
    if setup:
        click.echo(f"no account yet: make the first owner at {setup}", err=True)


def _warn_of_exposure(archive: Archive, *, quietly: bool = False) -> None:
    """Whoever can read the accounts of an archive as a file needs no web interface."""
    warning = exposure_warning(archive.folder)
    if warning and not quietly:
        click.echo(f"warning: {warning}", err=True)


@verb("serve", "letopis serve", "letopis serve --host 0.0.0.0 --port 9000 --workers 4")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.")
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes that answer requests."
)
@click.option(
    "--socket", "inherited", type=int, multiple=True, hidden=True, help="A socket that another process listens on."
)
def serve_verb(cli: CliContext, host: str | None, port: int | None, workers: int, inherited: tuple[int, ...]) -> None:
    """Web interface and HTTP API over the archive; watches, crawls and jobs that are planned are run as well.

    Only one process runs each of them, however many serve the archive.
    """
    cli.set("serve.host", host)
    cli.set("serve.port", port)
    with cli.open() as archive:
        _warn_of_exposure(archive, quietly=bool(inherited))
        if inherited:
            serve_as_worker(archive, *(socket.socket(fileno=number) for number in inherited))
            return
        server, announce = open_server(archive, workers, ["serve", *cli.words()], announce_address)
        if not archive.settings.serve.work or not _takes_work(archive):
            run_serving(run_until_stopped(server, announce))
            return
        log = open_event_log(cli.verbose, as_json=cli.as_json)
        services = [*_workers(archive), Service(lambda: server.run(announce), server.stop)]
        run_serving(Daemon(archive, _planned(archive), log, services).run())


def _takes_work(archive: Archive) -> bool:
    """Whether anything can be recorded: not in a clone, nor on a medium that cannot be written."""
    return not archive.is_clone and not archive.is_read_only


def _workers(archive: Archive) -> list[Service]:
    """What works beside the crawl and the watches."""
    jobs, searches = Supervisor(archive), SavedSearchLoop(archive)
    return [Service(jobs.run, jobs.stop), Service(searches.run, searches.stop)]


def _planned(archive: Archive) -> CrawlOptions:
    """A crawl that goes on with what is planned."""
    return CrawlOptions(private_ok=private_ok(archive.settings.fetch.private, "cli"))


@verb("mcp", "letopis mcp", "letopis mcp --write", "letopis mcp --http --port 9000")
@click.option("--http", "over_http", is_flag=True, help="Listen at /mcp instead; a token gives rights.")
@click.option("--write", is_flag=True, help="Let the assistant check and watch pages, not only read; without --http.")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.")
def mcp_verb(cli: CliContext, over_http: bool, write: bool, host: str | None, port: int | None) -> None:
    """Let assistants ask the archive by the Model Context Protocol: over standard input and output, or over HTTP.

    Whoever comes by HTTP has the rights of their token ('letopis tokens create'); without one they read, unless
    serve.public is false. 'letopis serve' answers at /mcp too.
    """
    if write and over_http:
        raise UsageError("over HTTP the token decides about rights; leave out --write")
    require_mcp()
    cli.set("serve.host", host)
    cli.set("serve.port", port)
    with cli.open(create=write) as archive:
        if not over_http:
            asyncio.run(serve_standard_streams(archive, write=write))
            return
        _warn_of_exposure(archive)
        server = Server(archive, listen(archive.settings.serve.host, archive.settings.serve.port))
        run_serving(run_until_stopped(server, lambda: announce_address(f"{server.address}mcp", server.setup_address)))


@verb("run", "letopis run", "letopis run --port 9000 --config site.toml")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.")
def run_verb(cli: CliContext, host: str | None, port: int | None) -> None:
    """The daemon: crawls what is planned, runs watches and jobs, and shows the web interface, until Ctrl-C."""
    cli.set("serve.host", host)
    cli.set("serve.port", port)
    with cli.open() as archive:
        _warn_of_exposure(archive)
        asyncio.run(run_daemon(cli, archive, _planned(archive)))


async def run_daemon(
    cli: CliContext,
    archive: Archive,
    options: CrawlOptions,
    ready: Callable[[], None] = lambda: None,
    listening: socket.socket | None = None,
) -> None:
    """Crawl, watches, jobs and web interface until a signal; `ready` is called once requests are answered."""
    log = open_event_log(cli.verbose, as_json=cli.as_json)
    listening = listening or listen(archive.settings.serve.host, archive.settings.serve.port)
    server = Server(archive, listening, replay=listen_for_replay(archive, listening))

    def announce() -> None:
        log_event(log, "ready", address=server.address, archive=str(archive.folder))
        announce_address(server.address, server.setup_address)
        ready()

    services = [*_workers(archive), Service(lambda: server.run(announce), server.stop)]
    await Daemon(archive, options, log, services).run()
