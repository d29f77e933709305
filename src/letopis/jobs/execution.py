"""A worker process: its limits, its order, and the jobs of one package run one after the other.

Killed at any moment, a worker leaves a job that somebody else says has failed.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from letopis.archive import Archive
from letopis.catalog.job_claims import JobClaim, JobClaims, JobOutcome
from letopis.catalog.jobs import CANCELLED, DONE, FAILED, Jobs
from letopis.config import Settings, load_settings, settings_table
from letopis.errors import LetopisError, NotFound
from letopis.fetch import private_ok
from letopis.jobs.heartbeat import GRACE_SECONDS, Heartbeat, JobTiming, StopReason
from letopis.jobs.query import JobContext, JobQuery
from letopis.jobs.queue import job_output_folder
from letopis.model import to_millis

_SPARE_SECONDS = 30


def limit_memory(most: int) -> None:
    """Allocations beyond this fail; files that are only mapped do not count. 0 sets no bound."""
    if most > 0:
        _lower(resource.RLIMIT_DATA, most)


def limit_cpu(seconds: float) -> None:
    """The process is ended when all its threads together compute for longer from now on.

    Meant for code that hears nothing else: a job that listens is told to stop long before.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    wanted = int(used.ru_utime + used.ru_stime + seconds * (os.cpu_count() or 1)) + _SPARE_SECONDS
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def disable_core_dumps() -> None:
    """A worker that dies leaves no image of its memory behind."""
    _lower(resource.RLIMIT_CORE, 0)


def _lower(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (value, hard))


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """Work for a package for about `seconds`, under the name `holder`, with these settings."""

    package: str
    holder: str
    seconds: float
    settings: Settings

    def to_json(self) -> str:
        """One line."""
        return json.dumps([self.package, self.holder, self.seconds, _changed_settings(self.settings)])

    @classmethod
    def from_json(cls, line: str) -> WorkOrder:
        """The inverse of `to_json`."""
        package, holder, seconds, changed = json.loads(line)
        return cls(package, holder, seconds, load_settings(None, {}, changed))


def _changed_settings(settings: Settings) -> dict[str, object]:
    """Settings that differ from their defaults."""
    values = {name: getattr(getattr(settings, name.split(".")[0]), name.split(".", 1)[1]) for name in settings_table()}
    return {name: value for name, value in values.items() if value != settings_table()[name].default}


@dataclass(frozen=True, slots=True)
class JobLanguage:
    """How a job file is read, and how it is worked off; `perform` raises when it was told to stop."""

    parse: Callable[[bytes], JobQuery]
    perform: Callable[[JobQuery, JobContext], bytes]


class Worker:
    """Works for one package at a time, as whoever started it has named it."""

    def __init__(
        self,
        archive: Archive,
        language: JobLanguage,
        holder: str,
        *,
        bound: Callable[[float], None] = lambda seconds: None,
        grace: float = GRACE_SECONDS,
    ) -> None:
        """`bound` is told before each job for how long it may run; `grace` is left to those who must stop."""
        self._archive = archive
        self._language = language
        self._holder = holder
        self._bound = bound
        self._turns = JobClaims(archive.catalog.database)
        self._jobs = Jobs(archive.catalog.database)
        self._rhythm = JobTiming(archive.settings.jobs.lease, archive.settings.jobs.run_time, grace)
        self._pulse: Heartbeat | None = None
        self._stopping = False
        self._spent = False

    def stop(self) -> None:
        """Ends `run` soon: the job in hand goes back into the queue."""
        self._stopping = True
        if self._pulse is not None:
            self._pulse.stop(StopReason.STOPPED)

    def run(self, package: str, wanted: Callable[[], bool] = lambda: True) -> int:
        """Works off the package's queue while it is `wanted`; answers how many jobs it did."""
        count = 0
        while not self._stopping and wanted():
            now = self._now()
            claim = self._turns.take(package, self._holder, now, now + round(self._rhythm.lease * 1000))
            if claim is None or not self._work(claim):
                break
            count += 1
        return count

    def _now(self) -> int:
        return to_millis(self._archive.clock())

    def _work(self, claim: JobClaim) -> bool:
        """Does one job; False when this process should not do another one."""
        pulse = Heartbeat(
            self._turns, claim, self._rhythm, self._archive.clock, lambda reason: self._cut_short(claim, pulse, reason)
        )
        self._pulse = pulse
        self._bound(self._rhythm.run_time)
        with pulse:
            if self._stopping:
                pulse.stop(StopReason.STOPPED)
            ended = self._perform(claim, pulse)
        self._pulse = None
        if ended is None and pulse.reason is not None:
            return self._cut_short(claim, pulse, pulse.reason) and not self._stopping
        assert ended is not None
        return self._turns.finish(claim, self._now(), ended) and not self._spent

    def _perform(self, claim: JobClaim, pulse: Heartbeat) -> JobOutcome | None:
        """How the job ended; None when it stopped because it was told to."""
        try:
            steps = self._language.perform(*self._prepared(claim, pulse))
        except Exception as error:
            # After the limit of memory was met once, the next job gets a fresh process.
            self._spent = isinstance(error, MemoryError)
            return None if pulse.reason is not None else _failure(error, pulse)
        most = self._archive.settings.jobs.max_result
        if len(steps) > most:
            return JobOutcome(
                FAILED, f"its result has {len(steps)} bytes; ask for less, or raise jobs.max_result", b"", pulse.text
            )
        return JobOutcome(DONE, "", steps, pulse.text)

    def _prepared(self, claim: JobClaim, pulse: Heartbeat) -> tuple[JobQuery, JobContext]:
        job = self._jobs.find(claim.job)
        if job is None:
            raise NotFound(f"job {claim.job} is gone")
        around = JobContext(
            archive=self._archive,
            settings=self._archive.settings,
            progress=pulse,
            user=job.owner,
            private_allowed=private_ok(self._archive.settings.fetch.private, "cli" if job.origin == "cli" else "http"),
            output=job_output_folder(self._archive, job.id),
            clock=self._archive.clock,
        )
        return self._language.parse(self._jobs.xml(job.id)), around

    def _cut_short(self, claim: JobClaim, pulse: Heartbeat, reason: StopReason) -> bool:
        """Writes what becomes of a job that was told to stop."""
        if reason is StopReason.STOPPED:
            pulse.log("stopped with its worker; it waits again and will begin anew")
            return self._turns.put_back(claim, pulse.text)
        state, message = CANCELLED, "cancelled while it ran; what it had recorded is kept"
        if reason is StopReason.LATE:
            limit = self._rhythm.run_time
            state, message = FAILED, f"it ran longer than {limit:g} s; ask for less at once, or raise jobs.run_time"
        pulse.log(message)
        return self._turns.finish(claim, self._now(), JobOutcome(state, message, b"", pulse.text))


def _failure(error: Exception, pulse: Heartbeat) -> JobOutcome:
    """The sentence of our own errors; of others their name, and the way to them in the log."""
    if isinstance(error, MemoryError):
        message = "it needs more memory than jobs.memory allows; ask for less at once, or raise the limit"
    elif isinstance(error, LetopisError):
        message = str(error)
    else:
        message = f"{type(error).__name__}: {error}"
        # Names of files alone: the log is read by people who need not know where things lie on this machine.
        for frame in traceback.extract_tb(error.__traceback__):
            pulse.log(f"  in {frame.name}, {Path(frame.filename).name} line {frame.lineno}")
    pulse.log(f"failed: {message}")
    return JobOutcome(FAILED, message, b"", pulse.text)


def run_worker(language: JobLanguage, grace: float = GRACE_SECONDS) -> int:
    """Carries out the order on standard input."""
    order = WorkOrder.from_json(sys.stdin.readline())
    disable_core_dumps()
    limit_memory(order.settings.jobs.memory)
    with Archive.open(order.settings) as archive:
        worker = Worker(archive, language, order.holder, bound=limit_cpu, grace=grace)
        # Ctrl-C of a terminal reaches whoever started us, and they tell us.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda number, frame: worker.stop())
        worker.run(order.package, partial(_may_take_more, time.monotonic() + order.seconds, os.getppid()))
    return 0


def _may_take_more(end: float, parent: int) -> bool:
    """Others want a turn too; and who was started by nobody any more takes nothing new on."""
    return time.monotonic() < end and os.getppid() == parent
