"""Web interface, crawl, watches and jobs over one archive, started and stopped together; also on the demo web."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import click

from letopis.api.server import Server, listen
from letopis.archive import Archive
from letopis.catalog.queues import Shard
from letopis.crawl import CrawlOptions, CrawlStats, enqueue_seeds, open_agent
from letopis.daemon.event_log import BoundLogger
from letopis.daemon.http_workers import announce_address
from letopis.errors import NotReady
from letopis.jobs.supervisor import Supervisor
from letopis.monitor.watcher import open_watcher

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
        enqueue_seeds(self._archive, self._options)
        async with open_agent(self._archive, self._options, Shard()) as worker, open_watcher(self._archive) as watching:
            jobs = Supervisor(self._archive)
            crawling = worker.run(self._options.limits, self._tell)
            works = [crawling, watching.run(), jobs.run(), self._server.run(self._ready)]
            stops = (worker.stop, watching.stop, jobs.stop, self._server.stop)
            with _StopSignals(*stops):
                await _run_together(works, stops)

    def _tell(self, figures: CrawlStats) -> None:
        self._log.info("crawl", **figures.row())

    def _ready(self) -> None:
        self._log.info("ready", address=self._server.address, archive=str(self._archive.folder))
        announce_address(self._server.address, self._server.setup_address)
        for say in self._after:
            say()


class _StopSignals:
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


async def _run_together(works: Sequence[Awaitable[object]], stops: Sequence[Callable[[], None]]) -> None:
    """Runs all until all have ended; when one fails the others are stopped, and its error is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    if any(task.exception() for task in done):
        for stop in stops:
            stop()
    await asyncio.gather(*tasks)


DEMO_SETTINGS = {
    "crawl.delay": 0.05,
    "schedule.interval": 30.0,
    "schedule.min": 10.0,
    "schedule.max": 600.0,
}
"""A web where an hour passes in a second is looked at more often than a real one."""


async def run_demo(archive: Archive, hosts: int, seed: int, log: BoundLogger) -> None:
    """The daemon over a simulated web, until it is told to stop."""
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
    words = ["-m", "letopis_demo", "--port", str(port), "--hosts", str(hosts), "--seed", str(seed)]
    words += ["--speed", "3600", "--skip", "20", "--crawl-delay", "0.2"]
    # A session of its own: Ctrl-C reaches us alone, and we end the web after the crawl has stopped.
    return await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
