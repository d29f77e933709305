"""Several agents at once: processes on one machine, or long-running tasks of a Dask cluster.

On one machine a host belongs to one agent by its number. Links to the hosts of
others go through the record; pauses of hosts and addresses go through the
politeness book. An agent gets its task from whoever leads the fleet, and ends
at once when that process is killed: a crawl begun anew would otherwise ask the
same hosts beside it. On a cluster an agent leases hosts; one whose worker dies
is started again elsewhere, and what it held goes to others by lease.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple
from uuid import uuid4

from letopis.archive import Archive
from letopis.archive.queues import Shard, count_due
from letopis.config import Settings
from letopis.crawl.agent import Agent
from letopis.crawl.commits import CrawlStats
from letopis.crawl.runner import CrawlOptions, crawl, enqueue_seeds
from letopis.errors import LetopisError, NotReady, UsageError

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_AGENT = "from letopis.crawl.fleet import run_agent; run_agent()"

Around = Callable[[Archive], AbstractContextManager[object]]
"""What goes on around the work of an agent; a function of a module, so that it can be sent to a process."""


class AgentTask(NamedTuple):
    """All that an agent of a fleet needs to know."""

    settings: Settings
    options: CrawlOptions
    shard: Shard
    around: Around


class Fleet:
    """Runs agents until their work is done, and adds up what they did."""

    def __init__(self, archive: Archive, options: CrawlOptions, agents: int, around: Around = nullcontext) -> None:
        self._archive = archive
        self._options = options
        self._agents = agents
        self._around = around
        self._running: list[asyncio.subprocess.Process] = []
        self._lines: list[int] = []
        self._stopping = False

    async def run(self) -> CrawlStats:
        """One round after the other while links between agents' hosts are left to follow."""
        enqueue_seeds(self._archive, self._options)
        for number in _STOP_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._stop)
        total = CrawlStats()
        while True:
            for figures in await self._round(total):
                total.add(figures)
            if self._stopping or not self._more(total):
                return total

    def _more(self, total: CrawlStats) -> bool:
        limit = self._options.limits.pages
        if not self._options.limits.once or (limit is not None and total.fetched >= limit):
            return False
        return count_due(self._archive) > 0

    async def _round(self, total: CrawlStats) -> list[CrawlStats]:
        limit = self._options.limits.pages
        left = None if limit is None else limit - total.fetched
        try:
            self._running = [await self._start(index, left) for index in range(self._agents)]
            outputs = await asyncio.gather(*(process.communicate() for process in self._running))
        finally:
            while self._lines:
                os.close(self._lines.pop())
        for process, (_, errors) in zip(self._running, outputs, strict=True):
            if process.returncode:
                raise NotReady(f"an agent ended with status {process.returncode}: {errors.decode()[-500:].strip()}")
        return [CrawlStats.from_row(json.loads(answer)) for answer, _ in outputs]

    async def _start(self, index: int, left: int | None) -> asyncio.subprocess.Process:
        """An agent with its task on a line that stays open: it reads the end of it when this process is gone."""
        part = None if left is None else max(1, left // self._agents + (index < left % self._agents))
        options = replace(self._options, limits=replace(self._options.limits, pages=part))
        task = AgentTask(self._archive.settings, options, Shard(index, self._agents), self._around)
        line, ours = os.pipe()
        self._lines.append(ours)
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", _AGENT, stdin=line, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(line)
        await asyncio.to_thread(_write_all, ours, pickle.dumps(task))
        return process

    def _stop(self) -> None:
        self._stopping = True
        for process in self._running:
            if process.returncode is None:
                process.terminate()


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def run_agent() -> None:
    """One agent of a fleet, in a process of its own: its task comes from standard input, its figures go to output."""
    task: AgentTask = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the process that started this one
    try:
        with Archive.open(task.settings) as archive, task.around(archive):
            work = crawl(archive, task.options, shard=task.shard, signals=_STOP_SIGNALS, begun=_end_with_leader)
            figures = asyncio.run(work)
    except LetopisError as error:
        sys.exit(str(error))
    json.dump(figures.row(), sys.stdout)


def _end_with_leader(agent: Agent) -> None:
    """An agent of a fleet does not outlive it; as after any kill, what it had not recorded is fetched again."""
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _exit_when_alone)


def _exit_when_alone() -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        os._exit(1)


_STOP_POLL_SECONDS = 1.0


def _dask() -> Any:
    """Loaded only where there is a cluster."""
    return import_module("distributed")


def agent_task(settings: Settings, options: CrawlOptions, flag: str) -> CrawlStats:
    """One agent, on a worker, until nothing is due or the flag is set."""
    raised = _dask().Event(flag)
    agents: list[Agent] = []

    async def work() -> CrawlStats:
        with Archive.open(settings) as archive:
            running = asyncio.ensure_future(crawl(archive, options, shard=Shard(), begun=agents.append))
            while not running.done():
                await asyncio.wait([running], timeout=_STOP_POLL_SECONDS)
                if agents and raised.is_set():
                    agents[-1].stop()
            return running.result()

    return asyncio.run(work())


def crawl_on_cluster(
    client: Any,
    settings: Settings,
    options: CrawlOptions,
    agents: int,
    progress: Callable[[int], None] = lambda ended: None,
) -> CrawlStats:
    """Crawls with so many agents on a cluster; `client` is a `distributed.Client`. Ctrl-C stops all of them."""
    if not settings.database.url or not settings.store.url:
        raise UsageError("agents on a cluster share PostgreSQL and an object store; set database.url and store.url")
    with Archive.open(settings) as archive:
        enqueue_seeds(archive, options)
    flag = "letopis-stop-" + uuid4().hex
    limit = options.limits.pages
    total = CrawlStats()
    tasks = []
    for index in range(agents):
        part = None if limit is None else max(1, limit // agents + (index < limit % agents))
        own = replace(options, limits=replace(options.limits, pages=part))
        tasks.append(client.submit(agent_task, settings, own, flag, pure=False, retries=3))
    try:
        for ended, task in enumerate(_dask().as_completed(tasks), start=1):
            total.add(task.result())
            progress(ended)
    except BaseException:
        _dask().Event(flag, client=client).set()
        raise
    return total
