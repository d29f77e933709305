"""Several agents at once: processes on one machine, or long-running tasks of a Dask cluster.

On one machine a host belongs to one agent by its number. Links to the hosts of others go through the record; pauses
of hosts and addresses go through the politeness book. An agent gets its task from the leader of the fleet, and exits
at once when that process is killed: otherwise a new crawl would request the same hosts in parallel. An agent that is
killed is replaced at once. On a cluster an agent leases hosts; if its worker dies, it is started elsewhere, and other
agents get its hosts by lease.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import reduce
from importlib import import_module
from typing import Any
from uuid import uuid4

from letopis.archive import Archive
from letopis.archive.queues import Shard, count_due, leases_hosts, take_figures
from letopis.config import Settings
from letopis.crawl.agent import Agent, CrawlLimits
from letopis.crawl.commits import CrawlStats, earliest_pause
from letopis.crawl.runner import CrawlOptions, crawl, crawl_lock, enqueue_seeds
from letopis.errors import LetopisError, NotReady, UsageError, shell_words
from letopis.tuples import NamedTuple

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_AGENT = "from letopis.crawl.fleet import run_agent; run_agent()"
_MAX_FRUITLESS = 3
"""Agents in a row that end early without having recorded a page."""

Around = Callable[[Archive], AbstractContextManager[object]]
"""What goes on around the work of an agent; a function of a module, so that it can be sent to a process."""


class AgentTask(NamedTuple):
    """All that an agent of a fleet needs to know."""

    settings: Settings
    options: CrawlOptions
    shard: Shard
    around: Around


class Fleet:
    """Runs agents until their work is done, and adds up their figures.

    Hosts belong to an agent by its number, so an agent that ends early is replaced by another with the same number,
    which continues with the same hosts. If an agent cannot start, or ends repeatedly, the whole crawl ends.
    """

    def __init__(
        self,
        archive: Archive,
        options: CrawlOptions,
        agents: int,
        around: Around = nullcontext,
        progress: Callable[[CrawlStats], None] = lambda figures: None,
        remark: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """`progress` hears the figures of all agents together, `remark` of agents that were replaced."""
        self._archive = archive
        self._options = options
        self._agents = agents
        self._around = around
        self._progress = progress
        self._remark = remark
        self._running: set[asyncio.subprocess.Process] = set()
        self._figures: list[CrawlStats] = []
        self._stopping = False

    async def run(self) -> CrawlStats:
        """One round after the other while links between agents' hosts are left to follow."""
        with crawl_lock(self._archive):
            return await self._run()

    async def _run(self) -> CrawlStats:
        enqueue_seeds(self._archive, self._options)
        for number in _STOP_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._stop)
        total, began = CrawlStats(), time.monotonic()
        while True:
            total = await self._round(total)
            total.seconds = time.monotonic() - began
            if self._stopping or not self._more(total):
                return total

    def _more(self, total: CrawlStats) -> bool:
        limits = self._options.limits.remaining(total)
        return limits.ends_idle and not limits.reached(0, 0, 0.0) and count_due(self._archive) > 0

    async def _round(self, total: CrawlStats) -> CrawlStats:
        """All agents until each has ended; what was done so far, with theirs."""
        left = self._options.limits.remaining(total)
        self._figures = [total] + [CrawlStats()] * self._agents
        agents = [asyncio.ensure_future(self._keep_running(index, left)) for index in range(self._agents)]
        try:
            await asyncio.gather(*agents)
        except BaseException:
            # Of a crawl that fails nobody goes on; what the others have fetched they record before they end.
            self._stop()
            await asyncio.gather(*agents, return_exceptions=True)
            raise
        return self._total()

    def _total(self) -> CrawlStats:
        total = reduce(CrawlStats.plus, self._figures)
        total.pause = earliest_pause([figures.pause for figures in self._figures[1:]])
        return total

    async def _keep_running(self, index: int, left: CrawlLimits) -> None:
        """One agent after the other for a share of the hosts, until one of them has come to the end of its work."""
        share, fruitless = left.shared(index, self._agents), 0
        while True:
            before = self._figures[index + 1]
            limits = share.remaining(before)
            self._recorded(index)  # left by a crawl that was killed
            process = await self._start(index, limits)
            errors = await self._listen(index, process)
            recorded = self._recorded(index)
            if process.returncode and recorded is not None:
                self._figures[index + 1] = before.plus(recorded)
            after = self._figures[index + 1]
            done = after.fetched - before.fetched
            how = _how_it_ended(process.returncode, errors)
            if self._stopping or (not how and (limits.ends_idle or share.remaining(after).reached(0, 0, 0.0))):
                return
            fruitless = 0 if done else fruitless + 1
            if errors or fruitless >= _MAX_FRUITLESS:
                raise NotReady(
                    f"an agent {how or 'ended early'}; what was fetched is recorded; "
                    "remove the cause and start the crawl again"
                )
            unsure = process.returncode and leases_hosts(self._archive)
            last = "; the figures may lack what it recorded last" if unsure else ""
            self._remark(f"agent {index + 1} {how or 'ended early'}; another goes on with its hosts{last}")

    def _recorded(self, index: int) -> CrawlStats | None:
        """What an agent that has ended did, by the record: it knows of commits that a killed one told nobody of."""
        text = take_figures(self._archive, index)
        return CrawlStats.from_row(json.loads(text)) if text else None

    async def _listen(self, index: int, process: asyncio.subprocess.Process) -> str:
        """Takes in the figures of an agent until it ends; what it said of errors, from its end."""
        assert process.stdout is not None
        assert process.stderr is not None
        before = self._figures[index + 1]
        errors = asyncio.ensure_future(process.stderr.read())
        async for line in process.stdout:
            if line.startswith(b"{") and line.endswith(b"\n"):
                self._figures[index + 1] = before.plus(CrawlStats.from_row(json.loads(line)))
                self._progress(self._total())
        await process.wait()
        self._running.discard(process)
        return (await errors).decode(errors="replace")[-500:].strip() if process.returncode else ""

    async def _start(self, index: int, limits: CrawlLimits) -> asyncio.subprocess.Process:
        """An agent with its task on a line that stays open: it reads the end of it when this process is gone."""
        options = self._options._replace(limits=limits)
        task = AgentTask(self._archive.settings, options, Shard(index, self._agents), self._around)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _AGENT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._running.add(process)
        assert process.stdin is not None
        with suppress(ConnectionError):
            process.stdin.write(pickle.dumps(task))
            await process.stdin.drain()
        if self._stopping:
            process.terminate()
        return process

    def _stop(self) -> None:
        self._stopping = True
        for process in self._running:
            if process.returncode is None:
                process.terminate()


def _how_it_ended(status: int | None, errors: str) -> str:
    """Empty for an agent that ended as it should."""
    if not status:
        return ""
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with status {status}" + (f": {errors}" if errors else "")


def run_agent() -> None:
    """One agent of a fleet, in a process of its own: its task comes from standard input, its figures go to output."""
    task: AgentTask = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the process that started this one
    try:
        with Archive.open(task.settings) as archive, task.around(archive):
            work = crawl(
                archive, task.options, _tell_leader, shard=task.shard, signals=_STOP_SIGNALS, begun=_end_with_leader
            )
            asyncio.run(work)
    except LetopisError as error:
        sys.exit(shell_words(error))


def _tell_leader(figures: CrawlStats) -> None:
    """After each commit: whoever leads knows what was recorded, also of an agent that is killed afterwards."""
    sys.stdout.write(json.dumps(figures.row()) + "\n")
    sys.stdout.flush()


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


def crawl_on_cluster(client: Any, settings: Settings, options: CrawlOptions, agents: int) -> CrawlStats:
    """Crawls with so many agents on a cluster; `client` is a `distributed.Client`. Ctrl-C stops all of them."""
    if not settings.database.url or not settings.store.url:
        raise UsageError("agents on a cluster share PostgreSQL and an object store; set database.url and store.url")
    with Archive.open(settings) as archive:
        enqueue_seeds(archive, options)
    flag = "letopis-stop-" + uuid4().hex
    total = CrawlStats()
    tasks = []
    for index in range(agents):
        own = options._replace(limits=options.limits.shared(index, agents))
        tasks.append(client.submit(agent_task, settings, own, flag, pure=False, retries=3))
    try:
        for task in _dask().as_completed(tasks):
            total.add(task.result())
    except BaseException:
        _dask().Event(flag, client=client).set()
        raise
    return total
