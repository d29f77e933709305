"""The heartbeat of a running job: renews its lease, publishes progress and log, and learns when to stop."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from letopis.archive.jobs import TO_CANCEL, TO_PAUSE, JobClaim, JobClaims, WorkerReport
from letopis.errors import Busy
from letopis.model import rfc3339, to_millis

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
        """A line for whoever reads the log of the job."""

    def cancelled(self) -> bool:
        """Whether to stop; asked between units of work, and cheap to ask."""


class StopReason(StrEnum):
    """Why a job must stop early."""

    CANCELLED = "cancelled"
    PAUSED = "paused"
    LATE = "late"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class JobTiming:
    """Seconds: a worker without a heartbeat for `lease` counts as dead; a job may run for `run_time`, and has `grace`
    to stop when it is told to.
    """

    lease: float
    run_time: float
    grace: float

    @property
    def pause(self) -> float:
        """Between two looks at whether the job is still wanted."""
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
                # Somebody writes for long: while they do, nobody can take our turn either.
                continue
            except Exception:
                # The database is away: bearable for as long as nobody thinks us dead.
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
        """Writes when there is something new to tell, or the turn would soon be over."""
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
