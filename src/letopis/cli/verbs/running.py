"""Verbs that keep everything going at once: run, demo."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import click

from letopis.archive import Archive
from letopis.catalog.queues import Shard
from letopis.cli.context import Given, verb
from letopis.cli.logs import BoundLogger, configure
from letopis.cli.verbs.serving import announce
from letopis.crawl import CrawlOptions, Figures, agent, plant
from letopis.errors import NotReady
from letopis.fetch import private_ok
from letopis.jobs.supervisor import Supervisor
from letopis.monitor.watcher import watcher
from letopis.serve import Server, listen

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
DEMO_PORT = 8099


class Daemon:
    """Web interface, crawl, watches and jobs over one archive, stopped together by a signal or the failure of any."""

    def __init__(
        self, archive: Archive, options: CrawlOptions, log: BoundLogger, after: Sequence[Callable[[], None]] = ()
    ) -> None:
        self._archive = archive
        self._log = log
        self._options = options
        self._server = Server(archive, listen(archive.settings.serve.host, archive.settings.serve.port))
        self._after = after

    async def run(self) -> None:
        """Returns when everything has stopped and is recorded."""
        plant(self._archive, self._options)
        async with agent(self._archive, self._options, Shard()) as worker, watcher(self._archive) as watching:
            jobs = Supervisor(self._archive)
            crawling = worker.run(self._options.limits, self._tell)
            works = [crawling, watching.run(), jobs.run(), self._server.run(self._ready)]
            stops = (worker.stop, watching.stop, jobs.stop, self._server.stop)
            with _signals(*stops):
                await _together(works, stops)

    def _tell(self, figures: Figures) -> None:
        self._log.info("crawl", **figures.row())

    def _ready(self) -> None:
        self._log.info("ready", address=self._server.address, archive=str(self._archive.folder))
        announce(self._server.address, self._server.setup_address)
        for say in self._after:
            say()


class _signals:
    """Calls all stops at Ctrl-C or a polite kill, while it lasts."""

    def __init__(self, *stops: Callable[[], None]) -> None:
        self._stops = stops

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._stop)

    def __exit__(self, *error: object) -> None:
        for number in STOP_SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(number)

    def _stop(self) -> None:
        for stop in self._stops:
            stop()


async def _together(works: Sequence[Awaitable[object]], stops: Sequence[Callable[[], None]]) -> None:
    """Runs all until all have ended; when one fails the others are stopped, and its error is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    if any(task.exception() for task in done):
        for stop in stops:
            stop()
    await asyncio.gather(*tasks)


@verb("run", "letopis run", "letopis run --port 9000 --config site.toml")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.")
def run_verb(given: Given, host: str | None, port: int | None) -> None:
    """The daemon: crawls what is planned, runs watches and jobs, and shows the web interface, until Ctrl-C."""
    given.set("serve.host", host)
    given.set("serve.port", port)
    with given.open() as archive:
        allowed = private_ok(archive.settings.fetch.private, "cli")
        log = configure(given.verbose, as_json=given.as_json)
        asyncio.run(Daemon(archive, CrawlOptions(private_ok=allowed), log).run())


@verb("demo", "letopis demo", "letopis demo --port 0 --archive /tmp/demo")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.")
@click.option("--hosts", type=click.IntRange(1, 200), default=6, show_default=True, help="Hosts of the simulated web.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same web.")
def demo_verb(given: Given, host: str | None, port: int | None, hosts: int, seed: int) -> None:
    """Start a small simulated web on this machine, crawl it, and show it; needs no network."""
    for name, value in {"serve.host": host, "serve.port": port, **_DEMO_PACE}.items():
        given.set(name, value)
    with given.open() as archive:
        asyncio.run(_demo(archive, hosts, seed, configure(given.verbose, as_json=given.as_json)))


_DEMO_PACE = {
    "crawl.delay": 0.05,
    "schedule.interval": 30.0,
    "schedule.min": 10.0,
    "schedule.max": 600.0,
}
"""A web where an hour passes in a second is looked at more often than a real one."""


async def _demo(archive: Archive, hosts: int, seed: int, log: BoundLogger) -> None:
    async with _simulated_web(hosts, seed) as seeds:
        told = f"crawling a simulated web of {hosts} hosts: {seeds[0]} and others; Ctrl-C stops"
        await Daemon(
            archive, CrawlOptions(tuple(seeds), requisites=True), log, [lambda: click.echo(told, err=True)]
        ).run()


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
    words = ["-m", "letopis.demo", "--port", str(port), "--hosts", str(hosts), "--seed", str(seed)]
    words += ["--speed", "3600", "--skip", "20", "--crawl-delay", "0.2"]
    # A session of its own: Ctrl-C reaches us alone, and we end the web after the crawl has stopped.
    return await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
