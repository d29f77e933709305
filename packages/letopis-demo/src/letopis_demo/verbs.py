"""The verb `demo`: a year of five sites, a small simulated web in a process of its own, and the daemon over both."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import click

from letopis.api.server import listen, socket_address
from letopis.archive import Archive
from letopis.cli.context import CliContext, ProgressLine, verb
from letopis.cli.verbs.daemon import run_daemon
from letopis.crawl import CrawlOptions
from letopis.errors import NotReady
from letopis_demo.guide import serving_guide
from letopis_demo.story import index_story, tell_story
from letopis_demo.story_sites import DAYS

DEMO_SETTINGS = {"crawl.delay": 0.05, "schedule.interval": 180.0, "schedule.min": 60.0, "schedule.max": 900.0}
"""A web where an hour passes in a second is visited more often than a real one.

Not so often that its changes hide those of the year beside it.
"""


async def run_demo(cli: CliContext, archive: Archive, hosts: int, seed: int) -> None:
    """The daemon over a simulated web, with a first page that says what to click, until it is told to stop."""
    settings = archive.settings.serve
    listening = listen(settings.host, settings.port)
    interface = socket_address(listening)
    async with _simulated_web(hosts, seed) as seeds, serving_guide(interface, archive.clock()) as guide:
        sentence = (
            f"crawling a simulated web of {hosts} hosts: {seeds[0]} and others; Ctrl-C stops\nstart here: {guide}"
        )
        options = CrawlOptions(tuple(seeds), requisites=True, private_ok=True)
        await run_daemon(cli, archive, options, lambda: click.echo(sentence, err=True), listening)


def _tell(cli: CliContext, archive: Archive, seed: int) -> None:
    """The year before today, once an archive."""
    with ProgressLine("days of a year are told", total=DAYS, quiet=cli.is_unwatched) as line:
        looks = tell_story(archive, seed, line.show)
    if looks and not cli.quiet:
        click.echo(f"recorded a year of five sites: {looks} checks", err=True)


def _index(cli: CliContext, archive: Archive) -> None:
    """Before the tour is named, so that each of its stops has its answer in the first minute."""
    with ProgressLine("versions are indexed", quiet=cli.is_unwatched) as line:
        index_story(archive, line.show)


@asynccontextmanager
async def _simulated_web(hosts: int, seed: int) -> AsyncIterator[list[str]]:
    """The demo web in a process of its own, ended with us."""
    process = await _start_web(0, hosts, seed)
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        if "listening on" not in line:
            raise NotReady("the simulated web did not start; 'python -m letopis_demo' says why")
        port = line.rstrip("/\n").rpartition(":")[2]
        yield [f"http://127.0.0.{2 + number}:{port}/" for number in range(hosts)]
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def _start_web(port: int, hosts: int, seed: int) -> asyncio.subprocess.Process:
    words = ["-m", "letopis_demo", "--port", str(port), "--hosts", str(hosts), "--seed", str(seed)]
    words += ["--speed", "3600", "--skip", "20", "--crawl-delay", "0.2"]
    # A session of its own: Ctrl-C reaches us alone, and we end the web after the crawl has stopped.
    return await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )


@verb("demo", "letopis demo", "letopis demo --port 0 --archive /tmp/demo", "letopis --archive demo demo --only-story")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.")
@click.option("--hosts", type=click.IntRange(1, 200), default=6, show_default=True, help="Hosts of the simulated web.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same web.")
@click.option("--only-story", is_flag=True, help="Record the year and end.")
def demo_verb(cli: CliContext, host: str | None, port: int | None, hosts: int, seed: int, only_story: bool) -> None:
    """Record a year of five small sites, crawl a simulated web beside them, and show both; needs no network.

    It prints the address of a page that says what to click. With --only-story it ends when the year is recorded.
    """
    for name, value in {"serve.host": host, "serve.port": port, **DEMO_SETTINGS}.items():
        cli.set(name, value)
    if host in (None, "127.0.0.1", "::1", "localhost"):
        # The sites of the demo have private addresses; whoever can reach its pages sits at this machine.
        cli.set("fetch.private", "always")
    with cli.open() as archive:
        _tell(cli, archive, seed)
        if not only_story:
            _index(cli, archive)
            asyncio.run(run_demo(cli, archive, hosts, seed))
