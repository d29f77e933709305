"""The verb `demo`: a small simulated web in a process of its own, and the daemon of Letopis over it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import click

from letopis.archive import Archive
from letopis.cli.context import CliContext, verb
from letopis.cli.verbs.daemon import run_daemon
from letopis.crawl import CrawlOptions
from letopis.errors import NotReady

DEMO_PORT = 8099
DEMO_SETTINGS = {
    "crawl.delay": 0.05,
    "schedule.interval": 30.0,
    "schedule.min": 10.0,
    "schedule.max": 600.0,
}
"""A web where an hour passes in a second is visited more often than a real one."""


async def run_demo(cli: CliContext, archive: Archive, hosts: int, seed: int) -> None:
    """The daemon over a simulated web, until it is told to stop."""
    async with _simulated_web(hosts, seed) as seeds:
        sentence = f"crawling a simulated web of {hosts} hosts: {seeds[0]} and others; Ctrl-C stops"
        options = CrawlOptions(tuple(seeds), requisites=True)
        await run_daemon(cli, archive, options, lambda: click.echo(sentence, err=True))


@asynccontextmanager
async def _simulated_web(hosts: int, seed: int) -> AsyncIterator[list[str]]:
    """The demo web in a process of its own, ended with us."""
    process = await _start_web(DEMO_PORT, hosts, seed)
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        if "listening on" not in line:
            raise NotReady(f"the simulated web did not start; is port {DEMO_PORT} taken?")
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


@verb("demo", "letopis demo", "letopis demo --port 0 --archive /tmp/demo")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.")
@click.option("--hosts", type=click.IntRange(1, 200), default=6, show_default=True, help="Hosts of the simulated web.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same web.")
def demo_verb(cli: CliContext, host: str | None, port: int | None, hosts: int, seed: int) -> None:
    """Start a small simulated web on this machine, crawl it, and show it; needs no network."""
    for name, value in {"serve.host": host, "serve.port": port, **DEMO_SETTINGS}.items():
        cli.set(name, value)
    with cli.open() as archive:
        asyncio.run(run_demo(cli, archive, hosts, seed))
