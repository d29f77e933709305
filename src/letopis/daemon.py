"""Crawl, watches and further services over one archive, started and stopped together; and the log of what they do.

The web interface and the queue of jobs stand above this module: whoever runs the daemon passes them in as services.
Several daemons may run on one archive: watches and jobs are shared out among them, and one of them crawls.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from letopis.archive import Archive
from letopis.archive.queues import is_queue_empty
from letopis.crawl import Agent, CrawlOptions, CrawlStats, crawl_lock, enqueue_seeds, open_agent, unusable_plans
from letopis.errors import Busy, shell_words
from letopis.model.printing import printable, printable_json
from letopis.monitor.notifications import FailedDelivery
from letopis.monitor.watcher import open_watcher
from letopis.tuples import NamedTuple

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOOK_SECONDS = 1.0
"""How soon a new plan is seen, and the end of whoever crawled until now."""
_LEVELS = {0: logging.WARNING, 1: logging.INFO}


class Service(NamedTuple):
    """Something that runs until it is stopped; `stop` is safe to call from a signal handler."""

    run: Callable[[], Awaitable[object]]
    stop: Callable[[], None]


class Daemon:
    """Crawl, watches and other services over one archive, stopped together by a signal or the failure of any."""

    def __init__(
        self, archive: Archive, options: CrawlOptions, log: logging.Logger, services: Sequence[Service] = ()
    ) -> None:
        self._archive = archive
        self._options = options
        self._log = log
        self._services = services

    async def run(self) -> None:
        """Returns when everything has stopped and is recorded."""
        enqueue_seeds(self._archive, self._options)
        for sentence in unusable_plans(self._archive):
            self._log.warning(sentence)
        crawl = BackgroundCrawl(self._archive, self._options, self._log)
        async with open_watcher(self._archive, undelivered=self._log_undelivered) as watcher:
            lasting = [Service(partial(self._outlasting, one.run), one.stop) for one in (crawl, watcher)]
            services = (*lasting, *self._services)
            with _StopSignals([service.stop for service in services]):
                await _run_together(services)

    async def _outlasting(self, run: Callable[[], Awaitable[object]]) -> None:
        """Goes on after others have kept a service from writing for long; what it could not record it asks again."""
        while True:
            try:
                await run()
            except Busy as busy:
                self._log.warning(shell_words(busy))
            else:
                return

    def _log_undelivered(self, failed: FailedDelivery) -> None:
        self._log.warning(str(failed))


class BackgroundCrawl:
    """The crawl of what is planned: begun when there is something and nobody else crawls."""

    def __init__(self, archive: Archive, options: CrawlOptions, log: logging.Logger) -> None:
        self._archive = archive
        self._options = options
        self._log = log
        self._agent: Agent | None = None
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends `run` when what is under way is recorded; safe to call from a signal handler."""
        self._stopping.set()
        if self._agent is not None:
            self._agent.stop()

    async def run(self) -> None:
        """Goes on until `stop`."""
        with ExitStack() as held:
            while not self._stopping.is_set() and not self._may_begin(held):
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), _LOOK_SECONDS)
            if not self._stopping.is_set():
                await self._crawl()

    def _may_begin(self, held: ExitStack) -> bool:
        """Whether anything is planned and nobody else crawls, whom we keep out from now on."""
        if is_queue_empty(self._archive):
            return False
        try:
            held.enter_context(crawl_lock(self._archive))
        except Busy:
            return False
        return True

    async def _crawl(self) -> None:
        async with open_agent(self._archive, self._options) as agent:
            self._agent = agent
            if not self._stopping.is_set():
                await agent.run(self._options.limits, self._log_figures)

    def _log_figures(self, figures: CrawlStats) -> None:
        log_event(self._log, "crawl", **figures.row())


class _StopSignals:
    """Calls all stops at Ctrl-C or a polite kill, while it lasts."""

    def __init__(self, stops: Sequence[Callable[[], None]]) -> None:
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


async def _run_together(services: Sequence[Service]) -> None:
    """Runs all until all have ended; when one fails the others are stopped, and its error is raised."""
    tasks = [asyncio.ensure_future(service.run()) for service in services]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    if any(task.exception() for task in done):
        for service in services:
            service.stop()
    await asyncio.gather(*tasks)


def open_event_log(verbose: int, *, as_json: bool) -> logging.Logger:
    """A log of events on standard error, one a line; -v shows what happens, -vv everything."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_EventFormatter(as_json=as_json))
    log = logging.getLogger("letopis.events")
    log.handlers = [handler]
    log.propagate = False
    log.setLevel(_LEVELS.get(verbose, logging.DEBUG))
    return log


def log_event(log: logging.Logger, event: str, **fields: Any) -> None:
    """Something happened."""
    log.info(event, extra={"fields": fields})


class _EventFormatter(logging.Formatter):
    """An event with its fields on one line: a JSON object, or words for people."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        fields: dict[str, Any] = getattr(record, "fields", {})
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        level, event = record.levelname.lower(), record.getMessage()
        if record.exc_info:
            fields = {**fields, "exception": self.formatException(record.exc_info)}
        if self._as_json:
            row = {**fields, "event": event, "level": level, "timestamp": time}
            return printable_json(json.dumps(row, ensure_ascii=False, default=str))
        return printable(" ".join([time, f"[{level}]", event, *(f"{name}={value}" for name, value in fields.items())]))
