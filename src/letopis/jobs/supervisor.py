"""Starts a worker for each package that has queued jobs, and records what happened to those that die.

The number of workers is limited for all packages together. Packages take turns, so a long queue of one never delays
another for longer than a slice.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from letopis.archive import Archive
from letopis.archive.job_control import remove_old_jobs
from letopis.archive.jobs import WORKER_DIED, bring_back_jobs, claims_of, enqueue_due_refreshes
from letopis.errors import Busy, shell_words
from letopis.jobs.execution import GRACE_SECONDS, WorkOrder
from letopis.model import to_millis

WORKER_COMMAND = (sys.executable, "-P", "-m", "letopis.jobs.language.interpreter")
"""Without the folder it is started in, which may hold anything, among those that modules come from."""
SLICE_SECONDS = 10.0
"""Time that a worker takes new jobs for before another package may have its place."""
POLL_SECONDS = 0.5
_CLEAN_SECONDS = 3600.0
_LONGEST_PAUSE = 60.0
_TAIL = 4000


@dataclass(slots=True)
class PackageState:
    """What the supervisor remembers about a package: when it was last served, and how often in a row its workers died
    without reason.
    """

    served: float = 0.0
    failures: int = 0
    task: asyncio.Task[None] | None = None
    process: asyncio.subprocess.Process | None = None


@dataclass(slots=True)
class _HousekeepingTimes:
    cleaned: float = field(default_factory=time.monotonic)
    kept: float = 0.0
    brought_back: float = -math.inf


class Supervisor:
    """Manages the queue of one archive: all of it as a daemon, or one package."""

    def __init__(
        self,
        archive: Archive,
        *,
        only: str | None = None,
        command: Sequence[str] = WORKER_COMMAND,
        slice_seconds: float = SLICE_SECONDS,
    ) -> None:
        self._archive = archive
        self._only = only
        self._command = command
        self._slice = slice_seconds
        self._claims = claims_of(archive)
        self._name = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._packages: dict[str, PackageState] = {}
        self._times = _HousekeepingTimes()
        self._stopping = False
        self._wake = asyncio.Event()

    def stop(self) -> None:
        """Ends `run`; jobs in hand go back into the queue. Safe to call from a signal handler of the loop."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Looks after the queue until `stop`."""
        await self.run_until(lambda: False)

    async def run_until(self, over: Callable[[], bool]) -> None:
        """Looks after the queue until something holds, or `stop`."""
        try:
            while not self._stopping and not await asyncio.to_thread(over):
                with suppress(Busy):
                    for package in await asyncio.to_thread(self._look):
                        self._begin(package)
                # Not wait_for, which swallows a Ctrl-C that comes in the moment of being woken.
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._wake.wait()
                self._wake.clear()
        finally:
            await self._end()

    # Deciding

    def _look(self) -> list[str]:
        """Keeps house, and answers the packages that get a worker now."""
        now = to_millis(self._archive.clock())
        if self._only is None:
            self._keep_house(now)
        self._claims.reap(now)
        open_ones = self._claims.open_packages(now)
        wanted = [name for name in open_ones if self._only in (None, name)]
        return next_packages(wanted, self._packages, self._archive.settings.jobs.workers, time.monotonic())

    def _keep_house(self, now: int) -> None:
        lease, moment = self._archive.settings.jobs.lease, time.monotonic()
        if moment - self._times.kept > lease / 4:
            self._times.kept = moment
            self._claims.keep(self._name, now + round(lease * 1000))
        if moment - self._times.brought_back > _CLEAN_SECONDS:
            bring_back_jobs(self._archive)
            self._times.brought_back = moment
        enqueue_due_refreshes(self._archive)
        if moment - self._times.cleaned > _CLEAN_SECONDS:
            self._times.cleaned = moment
            remove_old_jobs(self._archive)

    # Workers

    def _begin(self, name: str) -> None:
        package = self._packages.setdefault(name, PackageState())
        package.served = time.monotonic()
        package.task = asyncio.create_task(self._serve(name, package))

    async def _serve(self, name: str, package: PackageState) -> None:
        """One worker from its start to its end."""
        holder = f"{self._name}:{uuid.uuid4().hex[:8]}"
        status, errors = await self._run_worker(WorkOrder(name, holder, self._slice, self._archive.settings), package)
        lost = None
        with suppress(Busy):
            lost = await asyncio.to_thread(self._account, holder, status, errors)
        # A job that killed its worker has failed and is out of the way; other deaths would come again at once.
        package.failures = package.failures + 1 if status and lost is None else 0
        package.process = package.task = None
        self._wake.set()

    async def _run_worker(self, order: WorkOrder, package: PackageState) -> tuple[int, str]:
        """Its exit status, and its last words."""
        try:
            # A separate session: Ctrl-C reaches only this process, and all that a worker started can be ended with it.
            package.process = process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            return 1, shell_words(error)
        _, errors = await process.communicate((order.to_json() + "\n").encode())
        if process.returncode:
            _kill_left_processes(process.pid)
        return process.returncode or 0, errors.decode(errors="replace")

    def _account(self, holder: str, status: int, errors: str) -> int | None:
        """Fails the job of a worker that ended during it; returns the job."""
        last_words = errors[-_TAIL:].strip()
        now = to_millis(self._archive.clock())
        return self._claims.abandon(holder, now, _cause_of_death(status), last_words + "\n" if last_words else "")

    async def _end(self) -> None:
        """Tells all workers to stop, and those that do not listen are ended."""
        tasks = [package.task for package in self._packages.values() if package.task is not None]
        self._tell_all(os.kill, signal.SIGTERM)
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=GRACE_SECONDS + 5)
            if late:
                # With all that they started: while one of these has their standard error open, it does not end.
                self._tell_all(os.killpg, signal.SIGKILL)
                await asyncio.wait(late)
        if self._only is None:
            await asyncio.to_thread(self._claims.keep, self._name, 0)

    def _tell_all(self, send: Callable[[int, int], None], number: signal.Signals) -> None:
        for package in self._packages.values():
            if package.process is not None and package.process.returncode is None:
                with suppress(ProcessLookupError, PermissionError):
                    send(package.process.pid, number)


def next_packages(open_ones: Sequence[str], known: dict[str, PackageState], workers: int, now: float) -> list[str]:
    """Those that get a worker: the ones served longest ago first, as many as there are free places.

    A package whose workers die waits longer after each death.
    """
    busy = {name for name, package in known.items() if package.task is not None}
    fresh = PackageState()

    def ready(name: str) -> bool:
        package = known.get(name, fresh)
        return name not in busy and now >= package.served + _pause(package.failures)

    waiting = sorted(filter(ready, open_ones), key=lambda name: known.get(name, fresh).served)
    return waiting[: max(0, max(1, workers) - len(busy))]


def _pause(failures: int) -> float:
    return min(_LONGEST_PAUSE, 0.5 * 2.0**failures) if failures else 0.0


def _cause_of_death(status: int) -> str:
    if status < 0:
        return f"its worker was ended by {signal.Signals(-status).name}; " + WORKER_DIED.partition("; ")[2]
    return WORKER_DIED


def _kill_left_processes(leader: int) -> None:
    """Ends the processes that a dead worker has left."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
