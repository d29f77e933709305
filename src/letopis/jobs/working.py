"""Working for a package: its jobs one after the other, in a process of its own.

Killed at any moment, a worker leaves a job that somebody else says has failed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from letopis.archive import Archive
from letopis.catalog.job_turns import Claim, Ended, Turns
from letopis.catalog.jobs import CANCELLED, DONE, FAILED, Jobs
from letopis.errors import LetopisError, NotFound
from letopis.fetch import private_ok
from letopis.jobs.limits import bound_memory, bound_processor, no_core_files
from letopis.jobs.orders import Order
from letopis.jobs.pulse import GRACE_SECONDS, Pulse, Reason, Rhythm
from letopis.jobs.query import Query, Surroundings
from letopis.jobs.retention import files_of
from letopis.model import to_millis


@dataclass(frozen=True, slots=True)
class Language:
    """How a job file is read, and how it is worked off; `perform` raises when it was told to stop."""

    parse: Callable[[bytes], Query]
    perform: Callable[[Query, Surroundings], bytes]


class Worker:
    """Works for one package at a time, as whoever started it has named it."""

    def __init__(
        self,
        archive: Archive,
        language: Language,
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
        self._turns = Turns(archive.catalog.database)
        self._jobs = Jobs(archive.catalog.database)
        self._rhythm = Rhythm(archive.settings.jobs.lease, archive.settings.jobs.run_time, grace)
        self._pulse: Pulse | None = None
        self._stopping = False
        self._spent = False

    def stop(self) -> None:
        """Ends `run` soon: the job in hand goes back into the queue."""
        self._stopping = True
        if self._pulse is not None:
            self._pulse.stop(Reason.STOPPED)

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

    def _work(self, claim: Claim) -> bool:
        """Does one job; False when this process should not do another one."""
        pulse = Pulse(
            self._turns, claim, self._rhythm, self._archive.clock, lambda reason: self._cut_short(claim, pulse, reason)
        )
        self._pulse = pulse
        self._bound(self._rhythm.run_time)
        with pulse:
            if self._stopping:
                pulse.stop(Reason.STOPPED)
            ended = self._perform(claim, pulse)
        self._pulse = None
        if ended is None and pulse.reason is not None:
            return self._cut_short(claim, pulse, pulse.reason) and not self._stopping
        assert ended is not None
        return self._turns.finish(claim, self._now(), ended) and not self._spent

    def _perform(self, claim: Claim, pulse: Pulse) -> Ended | None:
        """How the job ended; None when it stopped because it was told to."""
        try:
            steps = self._language.perform(*self._prepared(claim, pulse))
        except Exception as error:
            # After the limit of memory was met once, the next job gets a fresh process.
            self._spent = isinstance(error, MemoryError)
            return None if pulse.reason is not None else _failed(error, pulse)
        most = self._archive.settings.jobs.max_result
        if len(steps) > most:
            return Ended(
                FAILED, f"its result has {len(steps)} bytes; ask for less, or raise jobs.max_result", b"", pulse.text
            )
        return Ended(DONE, "", steps, pulse.text)

    def _prepared(self, claim: Claim, pulse: Pulse) -> tuple[Query, Surroundings]:
        job = self._jobs.find(claim.job)
        if job is None:
            raise NotFound(f"job {claim.job} is gone")
        around = Surroundings(
            archive=self._archive,
            settings=self._archive.settings,
            progress=pulse,
            user=job.owner,
            private_allowed=private_ok(self._archive.settings.fetch.private, "cli" if job.origin == "cli" else "http"),
            output=files_of(self._archive, job.id),
            clock=self._archive.clock,
        )
        return self._language.parse(self._jobs.xml(job.id)), around

    def _cut_short(self, claim: Claim, pulse: Pulse, reason: Reason) -> bool:
        """Writes what becomes of a job that was told to stop."""
        if reason is Reason.STOPPED:
            pulse.log("stopped with its worker; it waits again and will begin anew")
            return self._turns.put_back(claim, pulse.text)
        state, message = CANCELLED, "cancelled while it ran; what it had recorded is kept"
        if reason is Reason.LATE:
            limit = self._rhythm.run_time
            state, message = FAILED, f"it ran longer than {limit:g} s; ask for less at once, or raise jobs.run_time"
        pulse.log(message)
        return self._turns.finish(claim, self._now(), Ended(state, message, b"", pulse.text))


def _failed(error: Exception, pulse: Pulse) -> Ended:
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
    return Ended(FAILED, message, b"", pulse.text)


def obey(language: Language, grace: float = GRACE_SECONDS) -> int:
    """Carries out the order on standard input."""
    order = Order.from_json(sys.stdin.readline())
    no_core_files()
    bound_memory(order.settings.jobs.memory)
    with Archive.open(order.settings) as archive:
        worker = Worker(archive, language, order.holder, bound=bound_processor, grace=grace)
        # Ctrl-C of a terminal reaches whoever started us, and they tell us.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda number, frame: worker.stop())
        worker.run(order.package, partial(_in_time, time.monotonic() + order.seconds, os.getppid()))
    return 0


def _in_time(end: float, parent: int) -> bool:
    """Others want a turn too; and who was started by nobody any more takes nothing new on."""
    return time.monotonic() < end and os.getppid() == parent
