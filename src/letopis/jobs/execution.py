"""A worker process: its limits, its order, and the jobs of one package run one after another.

If a worker is killed, another process marks its job as failed. The heartbeat of a worker renews the lease of its job,
publishes progress and log, and learns when to stop.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Protocol

from letopis import errors
from letopis.archive import Archive
from letopis.archive.job_control import CrawlJournal, job_folder, saved_result
from letopis.archive.jobs import (
    CANCELLED,
    CANCELLED_WHILE_RUNNING,
    DONE,
    FAILED,
    TO_CANCEL,
    TO_PAUSE,
    JobClaim,
    JobClaims,
    JobOutcome,
    JobQuery,
    JobQueue,
    Requester,
    WorkerReport,
    claims_of,
)
from letopis.binary import atomic_file, make_private_folder
from letopis.config import Settings, changed_settings, load_settings
from letopis.errors import Busy, LetopisError, shell_words
from letopis.fetch import Origin, private_ok
from letopis.jobs.documents import result_xml
from letopis.model import rfc3339, to_millis
from letopis.tuples import NamedTuple

MAX_LOG_LENGTH = 256 * 1024
"""Signs of a log that are kept: its beginning and its end."""
GRACE_SECONDS = 10.0
"""Time that a step has to notice that it must stop."""
_QUIET_SHARE = 0.2
_LONE_SHARE = 0.8
"""Parts of the lease: without anything new to tell, and without the database."""


class JobProgress(Protocol):
    """Passed to the steps of a job: they report their progress, and ask whether to continue."""

    def step(self, number: int, of: int, what: str) -> None:
        """A step begins, the first one being 1."""

    def share(self, done: float, figures: str = "") -> None:
        """How much of the step is done, 0 to 1; in figures, where there are some, else the last ones stay."""

    def log(self, line: str) -> None:
        """A line for readers of the log of the job."""

    def cancelled(self) -> bool:
        """Whether to stop; called between units of work, and cheap."""


class StopReason(StrEnum):
    """Why a job must stop early."""

    CANCELLED = "cancelled"
    PAUSED = "paused"
    LATE = "late"
    STOPPED = "stopped"


class JobTiming(NamedTuple):
    """Seconds: a worker without a heartbeat for `lease` counts as dead; a job may run for `run_time`, and has `grace`
    to stop when it is told to.
    """

    lease: float
    run_time: float
    grace: float

    @property
    def pause(self) -> float:
        """Seconds between two tests whether the job is still wanted."""
        return min(1.0, self.lease / 8)


def kill_process_group() -> None:
    """Ends this process and all that it started, now; nothing of it can act any more."""
    if os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


class Heartbeat:
    """The progress of a job, with its own thread for the duration of the with block."""

    def __init__(
        self,
        claims: JobClaims,
        claim: JobClaim,
        timing: JobTiming,
        clock: Callable[[], datetime],
        give_up: Callable[[StopReason], object],
        log: str = "",
    ) -> None:
        """`give_up` is called when the work goes on though it was told to stop; the process ends after it.

        `log` is what the job had logged when it ran before.
        """
        self._claims = claims
        self._claim = claim
        self._timing = timing
        self._clock = clock
        self._give_up = give_up
        self._lines = log.splitlines(keepends=True)
        self._size = len(log)
        self._step = self._figures = ""
        self._share = 0.0
        self._position = (0, 1)
        self._reported = WorkerReport("", 0.0, None)
        self._begun = self._last_sign = time.monotonic()
        self._stop_from = 0.0
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self.reason: StopReason | None = None

    # What the work sees

    def step(self, number: int, of: int, what: str) -> None:
        """A step begins."""
        self._position, self._share, self._step, self._figures = (number, max(of, 1)), 0.0, f"{number}/{of} {what}", ""
        self.log(f"step {number} of {of}: {what}")

    def share(self, done: float, figures: str = "") -> None:
        """How much of the step is done."""
        self._share, self._figures = min(max(done, 0.0), 1.0), figures or self._figures

    def log(self, line: str) -> None:
        """A line with its time; beyond the limit the middle of the log is left out."""
        with self._lock:
            self._lines.append(f"{rfc3339(self._clock())} {line.rstrip()[:4000]}\n")
            self._size += len(self._lines[-1])
            while self._size > MAX_LOG_LENGTH and len(self._lines) > 2:
                self._size -= len(self._lines.pop(len(self._lines) // 2))

    def cancelled(self) -> bool:
        """Whether to stop."""
        return self.reason is not None

    # What the worker sees

    @property
    def text(self) -> str:
        """The log so far."""
        with self._lock:
            return "".join(self._lines)

    @property
    def place(self) -> str:
        """The step that is worked at, with its last figures."""
        return f"{self._step}: {self._figures}" if self._figures else self._step

    def stop(self, reason: StopReason) -> None:
        """Asks the work to end; the first reason counts."""
        if self.reason is None:
            self._stop_from = time.monotonic()
            self.reason = reason

    def __enter__(self) -> Heartbeat:
        """Starts the signs of life."""
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Ends them; none is under way afterwards."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._timing.pause):
            try:
                self._look()
            except Busy:
                # Another process writes for long: meanwhile no other can take the turn of this one either.
                continue
            except Exception:
                # The database is unreachable: tolerable until this worker counts as dead.
                if time.monotonic() - self._last_sign > self._timing.lease * _LONE_SHARE:
                    kill_process_group()

    def _look(self) -> None:
        unwanted = self._claims.unwanted(self._claim)
        if unwanted in (TO_CANCEL, TO_PAUSE):
            self.stop(StopReason.CANCELLED if unwanted == TO_CANCEL else StopReason.PAUSED)
        if time.monotonic() - self._begun > self._timing.run_time:
            self.stop(StopReason.LATE)
        if self.reason is not None and time.monotonic() - self._stop_from > self._timing.grace:
            self._give_up(self.reason)
            kill_process_group()
        self._beat()

    def _beat(self) -> None:
        """Writes if there is something new to report, or the turn would soon be over."""
        report, now = self._report(), time.monotonic()
        if report == self._reported and now - self._last_sign < self._timing.lease * _QUIET_SHARE:
            return
        moment = to_millis(self._clock())
        fresh = report if report.log != self._reported.log else report._replace(log=None)
        if not self._claims.beat(self._claim, moment + round(self._timing.lease * 1000), fresh):
            kill_process_group()
        self._reported, self._last_sign = report, now

    def _report(self) -> WorkerReport:
        number, of = self._position
        return WorkerReport(self.place, (max(number - 1, 0) + self._share) / of if number else 0.0, self.text)


_SPARE_SECONDS = 30
_PUT_BACK = {
    StopReason.STOPPED: "stopped with its worker; it is queued again: a crawl continues, others start again",
    StopReason.PAUSED: "paused; when it is resumed, a crawl continues, others start again",
}
"""Reasons for which a job is not over, and what its log says."""


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
    """A worker that dies leaves no core dump."""
    _lower(resource.RLIMIT_CORE, 0)


def _lower(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (value, hard))


class WorkOrder(NamedTuple):
    """Work for a package for about `seconds`, under the name `holder`, with these settings."""

    package: str
    holder: str
    seconds: float
    settings: Settings

    def to_json(self) -> str:
        """One line."""
        return json.dumps([self.package, self.holder, self.seconds, changed_settings(self.settings)])

    @classmethod
    def from_json(cls, line: str) -> WorkOrder:
        """The inverse of `to_json`."""
        package, holder, seconds, changed = json.loads(line)
        return cls(package, holder, seconds, load_settings(None, {}, changed))


class JobContext(NamedTuple):
    """What the steps of one job may use: the archive, the requester, and the progress.

    `output` is a folder for files, None if none may be written.
    """

    archive: Archive
    settings: Settings
    progress: JobProgress
    requester: Requester
    private_allowed: bool
    output: Path | None
    clock: Callable[[], datetime]
    journal: Callable[[int], CrawlJournal] | None = None
    """What the first, the second... crawl of the job did before it was cut off; None outside of a queue."""

    @property
    def user(self) -> str:
        """The name of the requester, for packages of other distributions."""
        return self.requester.name


class JobLanguage(NamedTuple):
    """How a job file is read and run; `run` raises if it is told to stop."""

    parse: Callable[[bytes], JobQuery]
    run: Callable[[JobQuery, JobContext], bytes]


class Worker:
    """Works for one package at a time, as its supervisor specified."""

    def __init__(
        self,
        archive: Archive,
        language: JobLanguage,
        holder: str,
        *,
        bound: Callable[[float], None] = lambda seconds: None,
        grace: float = GRACE_SECONDS,
    ) -> None:
        """`bound` is called before each job with the time that it may run; `grace` is the time to stop."""
        self._archive = archive
        self._language = language
        self._holder = holder
        self._bound = bound
        self._claims = claims_of(archive)
        self._queue = JobQueue(archive)
        self._timing = JobTiming(archive.settings.jobs.lease, archive.settings.jobs.run_time, grace)
        self._heartbeat: Heartbeat | None = None
        self._stopping = False
        self._spent = False

    def stop(self) -> None:
        """Ends `run` soon: the current job goes back into the queue."""
        self._stopping = True
        if self._heartbeat is not None:
            self._heartbeat.stop(StopReason.STOPPED)

    def run(self, package: str, wanted: Callable[[], bool] = lambda: True) -> int:
        """Runs the queue of the package while it is `wanted`; returns how many jobs it ran."""
        count = 0
        while not self._stopping and wanted():
            now = self._now()
            claim = self._claims.take(package, self._holder, now, now + round(self._timing.lease * 1000))
            if claim is None or not self._work(claim):
                break
            count += 1
        return count

    def _now(self) -> int:
        return to_millis(self._archive.clock())

    def _work(self, claim: JobClaim) -> bool:
        """Does one job; False when this process should not do another one."""
        heartbeat = Heartbeat(
            self._claims,
            claim,
            self._timing,
            self._archive.clock,
            lambda reason: self._cut_short(claim, heartbeat, reason),
            self._queue.log_so_far(claim.job),
        )
        self._heartbeat = heartbeat
        self._bound(self._timing.run_time)
        with heartbeat:
            if self._stopping:
                heartbeat.stop(StopReason.STOPPED)
            ended = self._perform(claim, heartbeat)
        self._heartbeat = None
        if ended is None and heartbeat.reason is not None:
            return self._cut_short(claim, heartbeat, heartbeat.reason) and not self._stopping
        assert ended is not None
        return self._claims.finish(claim, self._now(), ended) and not self._spent

    def _perform(self, claim: JobClaim, heartbeat: Heartbeat) -> JobOutcome | None:
        """How the job ended; None if it was stopped."""
        try:
            query, context = self._prepared(claim, heartbeat)
            steps = self._language.run(query, context)
            if query.savefile and len(steps) <= self._archive.settings.jobs.max_result:
                self._save(claim, query.savefile, steps)
        except Exception as error:
            # After the limit of memory was met once, the next job gets a fresh process.
            self._spent = isinstance(error, MemoryError)
            return None if heartbeat.reason is not None else _failure(error, heartbeat)
        most = self._archive.settings.jobs.max_result
        if len(steps) > most:
            return JobOutcome(
                FAILED,
                f"its result has {len(steps)} bytes; ask for less, or raise jobs.max_result",
                b"",
                heartbeat.text,
            )
        return JobOutcome(DONE, "", steps, heartbeat.text, step=heartbeat.place)

    def _save(self, claim: JobClaim, name: str, steps: bytes) -> None:
        """Writes the result to its file, whole or not at all, before the job is said to be done."""
        job, _ = self._queue.claimed(claim)
        file = saved_result(self._archive, name)
        make_private_folder(file.parent)
        with atomic_file(file) as out:
            out.write(result_xml(job._replace(state=DONE, finished=self._now()), steps))

    def _prepared(self, claim: JobClaim, heartbeat: Heartbeat) -> tuple[JobQuery, JobContext]:
        job, text = self._queue.claimed(claim)
        origin: Origin = "cli" if job.origin == "cli" else "http"
        context = JobContext(
            archive=self._archive,
            settings=self._archive.settings,
            progress=heartbeat,
            requester=Requester(job.owner, job.rights, origin, bool(job.system)),
            private_allowed=private_ok(self._archive.settings.fetch.private, origin),
            output=job_folder(self._archive, job.id),
            clock=self._archive.clock,
            journal=partial(CrawlJournal, self._archive, job.id),
        )
        return self._language.parse(text), context

    def _cut_short(self, claim: JobClaim, heartbeat: Heartbeat, reason: StopReason) -> bool:
        """Writes the new state of a job that was stopped."""
        if reason in _PUT_BACK:
            heartbeat.log(_PUT_BACK[reason])
            return self._claims.put_back(claim, self._now(), heartbeat.text)
        state, message = CANCELLED, CANCELLED_WHILE_RUNNING
        if reason is StopReason.LATE:
            limit = self._timing.run_time
            state, message = FAILED, f"it ran longer than {limit:g} s; ask for less at once, or raise jobs.run_time"
        heartbeat.log(message)
        return self._claims.finish(claim, self._now(), JobOutcome(state, message, b"", heartbeat.text))


def _failure(error: Exception, heartbeat: Heartbeat) -> JobOutcome:
    """The sentence of our own errors; of others their name, and the way to them in the log."""
    if isinstance(error, MemoryError):
        message = "it needs more memory than jobs.memory allows; ask for less at once, or raise the limit"
    elif isinstance(error, LetopisError):
        message = shell_words(error)
    else:
        message = f"{type(error).__name__}: {error}"
        # Only names of files: readers of the log need not know the paths of this machine.
        for frame in traceback.extract_tb(error.__traceback__):
            heartbeat.log(f"  in {frame.name}, {Path(frame.filename).name} line {frame.lineno}")
    heartbeat.log(f"failed: {message}")
    return JobOutcome(FAILED, message, b"", heartbeat.text, _error_class(error))


def _error_class(error: Exception) -> str:
    """The nearest class of the tree of errors, by which doors choose their status; empty for other exceptions."""
    names = (kind.__name__ for kind in type(error).__mro__)
    return next((name for name in names if name in vars(errors) and name != "LetopisError"), "")


def run_worker(language: JobLanguage, grace: float = GRACE_SECONDS) -> int:
    """Carries out the order on standard input."""
    order = WorkOrder.from_json(sys.stdin.readline())
    disable_core_dumps()
    limit_memory(order.settings.jobs.memory)
    with Archive.open(order.settings) as archive:
        worker = Worker(archive, language, order.holder, bound=limit_cpu, grace=grace)
        # Ctrl-C of a terminal reaches the parent process, which stops this one.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda number, frame: worker.stop())
        worker.run(order.package, partial(_may_take_more, time.monotonic() + order.seconds, os.getppid()))
    return 0


def _may_take_more(end: float, parent: int) -> bool:
    """Others want a turn too; and a worker whose parent has ended starts no new jobs."""
    return time.monotonic() < end and os.getppid() == parent
