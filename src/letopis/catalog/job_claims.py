"""Which worker works for which package: claims with a token, a time limit, and what they may still write.

Every change of a worker begins with its row of `job_turn` under its token, which increases with every claim: two
workers of one package can never both succeed, on one machine or several.
"""

from __future__ import annotations

import zlib

from letopis.catalog.database import Cursor, Database
from letopis.catalog.jobs import JOB_ORDER, TO_CANCEL, TO_PAUSE, JobJournals, Jobs, StoredQueries
from letopis.catalog.schema import has_table
from letopis.tuples import NamedTuple

WORKER_DIED = (
    "its worker died while it ran (killed, out of memory, or the machine stopped); "
    "what it had recorded is kept, so ask again"
)
CANCELLED_WHILE_RUNNING = "cancelled while it ran; what it had recorded is kept"


class JobClaim(NamedTuple):
    """A job that this worker may run until the turn is over."""

    package: str
    token: int
    job: int


class WorkerReport(NamedTuple):
    """The progress of a running job; without a log the stored one stays."""

    step: str
    progress: float
    log: str | None


class JobOutcome(NamedTuple):
    """How a job ended: its state, a sentence, the results of its steps, its log, and the class of its error.

    `step` is the last step with its figures; empty keeps what was reported before.
    """

    state: str
    message: str
    steps: bytes
    log: str
    error: str = ""
    step: str = ""


class JobClaims:
    """Claims, heartbeats and ends; each a separate transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._jobs = Jobs(database)
        self._stored = StoredQueries(database)
        self._journals = JobJournals(database)

    # Workers

    def take(self, package: str, holder: str, now: int, until: int) -> JobClaim | None:
        """The first waiting job of a package; None if there is none, or another worker works for the package."""
        if not has_table(self._database, "job"):
            return None
        with self._database.transaction() as cursor:
            token = self._turn(cursor, package, holder, now, until)
            if token is None:
                return None
            self._bury(cursor, package, now, WORKER_DIED)
            number = self._first(cursor, package, now)
            if number is None:
                cursor.run("UPDATE job_turn SET until = 0 WHERE package = ? AND token = ?", (package, token))
                return None
        return JobClaim(package, token, number)

    def _turn(self, cursor: Cursor, package: str, holder: str, now: int, until: int) -> int | None:
        cursor.run(
            "INSERT INTO job_turn (package, token, until, holder) VALUES (?, 0, 0, '') ON CONFLICT DO NOTHING",
            (package,),
        )
        row = cursor.one(
            "UPDATE job_turn SET token = token + 1, until = ?, holder = ? WHERE package = ? AND until <= ? "
            "RETURNING token",
            (until, holder, package, now),
        )
        return int(row[0]) if row else None

    def _first(self, cursor: Cursor, package: str, now: int) -> int | None:
        """Moves the first waiting job to running; one that is cancelled meanwhile is skipped."""
        question = f"SELECT id FROM job WHERE package = ? AND state = 'queued' ORDER BY {JOB_ORDER} LIMIT 1"
        while (row := cursor.one(question, (package,))) is not None:
            touched = cursor.run(
                "UPDATE job SET state = 'running', started = coalesce(started, ?), finished = NULL, message = '', "
                "error = '', step = '', progress = 0, unwanted = 0 WHERE id = ? AND state = 'queued'",
                (now, row[0]),
            )
            if touched:
                return int(row[0])
        return None

    def beat(self, claim: JobClaim, until: int, report: WorkerReport) -> bool:
        """A heartbeat with the progress of the job; False if the turn was withdrawn."""
        with self._database.transaction() as cursor:
            if not _hold_claim(cursor, claim, until):
                return False
            cursor.run("UPDATE job SET step = ?, progress = ? WHERE id = ?", (report.step, report.progress, claim.job))
            if report.log is not None:
                _write_output(cursor, claim.job, b"", report.log)
        return True

    def unwanted(self, claim: JobClaim) -> int:
        """Whether the job was cancelled (TO_CANCEL) or paused (TO_PAUSE)."""
        row = self._database.one("SELECT unwanted FROM job WHERE id = ?", (claim.job,))
        return TO_CANCEL if row is None else int(row[0])

    def finish(self, claim: JobClaim, now: int, ended: JobOutcome) -> bool:
        """Writes how the job ended and releases the turn, all or nothing; False if the turn was withdrawn."""
        with self._database.transaction() as cursor:
            if not _hold_claim(cursor, claim, 0):
                return False
            _write_output(cursor, claim.job, ended.steps, ended.log)
            self._end(cursor, claim.job, now, ended)
        return True

    def put_back(self, claim: JobClaim, now: int, log: str) -> bool:
        """Queues the job again at its place in the order; False if the turn was withdrawn.

        One that was to be paused is paused, and one that was cancelled ends: a request that comes while a worker stops
        is not lost.
        """
        with self._database.transaction() as cursor:
            if not _hold_claim(cursor, claim, 0):
                return False
            _write_output(cursor, claim.job, b"", log)
            row = cursor.one("SELECT unwanted FROM job WHERE id = ?", (claim.job,))
            if row is not None and int(row[0]) == TO_CANCEL:
                self._end(cursor, claim.job, now, JobOutcome("cancelled", CANCELLED_WHILE_RUNNING, b"", ""))
            elif row is not None and int(row[0]) == TO_PAUSE:
                _set_paused(cursor, claim.job)
            else:
                cursor.run("UPDATE job SET state = 'queued', step = '', progress = 0 WHERE id = ?", (claim.job,))
        return True

    # Supervision of workers

    def abandon(self, holder: str, now: int, message: str, log: str) -> int | None:
        """Ends the turn of a worker that is known to be dead; returns the job that failed with it."""
        with self._database.transaction() as cursor:
            row = cursor.one(
                "UPDATE job_turn SET token = token + 1, until = 0 WHERE holder = ? AND until > 0 RETURNING package",
                (holder,),
            )
            lost = self._bury(cursor, str(row[0]), now, message) if row else None
            if lost is not None and log:
                before = cursor.one("SELECT log FROM job_output WHERE job = ?", (lost,))
                known = zlib.decompress(bytes(before[0])).decode() if before and before[0] is not None else ""
                _write_output(cursor, lost, b"", known + log)
        return lost

    def reap(self, now: int) -> list[int]:
        """Fails jobs whose worker has sent no heartbeat in time; returns them."""
        question = (
            "SELECT j.package FROM job j LEFT JOIN job_turn t ON t.package = j.package "
            "WHERE j.state = 'running' AND coalesce(t.until, 0) <= ?"
        )
        if not has_table(self._database, "job") or not self._database.one(question, (now,)):
            return []
        lost = []
        with self._database.transaction() as cursor:
            for (package,) in cursor.all(question, (now,)):
                if self._turn(cursor, package, "", now, 0) is not None:
                    lost.append(self._bury(cursor, package, now, WORKER_DIED))
        return [job for job in lost if job is not None]

    def _bury(self, cursor: Cursor, package: str, now: int, message: str) -> int | None:
        """Fails jobs that are marked as running without a turn: they were lost with their worker."""
        found = cursor.all("SELECT id, unwanted FROM job WHERE package = ? AND state = 'running'", (package,))
        for job, unwanted in found:
            if unwanted == TO_PAUSE:
                _set_paused(cursor, job)
            else:
                self._end(cursor, job, now, JobOutcome("failed", message, b"", ""))
        return int(found[0][0]) if found else None

    def _end(self, cursor: Cursor, job: int, now: int, ended: JobOutcome) -> None:
        row = cursor.one(
            "UPDATE job SET state = ?, message = ?, error = ?, finished = ?, step = coalesce(nullif(?, ''), step), "
            "progress = CASE WHEN ? = 'done' THEN 1 ELSE progress END WHERE id = ? RETURNING stored",
            (ended.state, ended.message[:2000], ended.error, now, ended.step, ended.state, job),
        )
        if row is not None and row[0] is not None:
            self._stored.answered(cursor, int(row[0]), job if ended.state == "done" else None, now)
        if ended.state == "done":
            self._journals.forget(cursor, [job])

    def end_turns(self, latest: int) -> None:
        """Ends turns, and heartbeats of daemons, that would last longer than `latest`."""
        if not has_table(self._database, "job_turn"):
            return
        with self._database.transaction() as cursor:
            cursor.run("UPDATE job_turn SET token = token + 1, until = 0 WHERE until > ?", (latest,))
            cursor.run("DELETE FROM job_keeper WHERE until > ?", (latest,))

    def open_packages(self, now: int) -> list[str]:
        """Packages that have waiting jobs and no worker."""
        if not has_table(self._database, "job"):
            return []
        rows = self._database.all(
            "SELECT DISTINCT package FROM job WHERE state = 'queued' "
            "AND package NOT IN (SELECT package FROM job_turn WHERE until > ?) ORDER BY package",
            (now,),
        )
        return [str(row[0]) for row in rows]

    def keep(self, name: str, until: int) -> None:
        """Records that a daemon serves the queue; 0 that it no longer does."""
        self._jobs.ensure()
        with self._database.transaction() as cursor:
            cursor.run("DELETE FROM job_keeper WHERE name = ? OR until = 0", (name,))
            if until:
                cursor.run("INSERT INTO job_keeper (name, until) VALUES (?, ?)", (name, until))

    def kept(self, now: int) -> bool:
        """Whether a daemon serves the queue."""
        if not has_table(self._database, "job_keeper"):
            return False
        return self._database.one("SELECT 1 FROM job_keeper WHERE until > ?", (now,)) is not None


def _set_paused(cursor: Cursor, job: int) -> None:
    """Its start time and progress are kept."""
    cursor.run("UPDATE job SET state = 'paused', unwanted = 0 WHERE id = ?", (job,))


def _hold_claim(cursor: Cursor, claim: JobClaim, until: int) -> bool:
    return (
        cursor.run("UPDATE job_turn SET until = ? WHERE package = ? AND token = ?", (until, claim.package, claim.token))
        == 1
    )


def _write_output(cursor: Cursor, job: int, steps: bytes, log: str) -> None:
    cursor.run(
        "INSERT INTO job_output (job, steps, log) VALUES (?, ?, ?) "
        "ON CONFLICT (job) DO UPDATE SET steps = excluded.steps, log = excluded.log",
        (job, zlib.compress(steps), zlib.compress(log.encode("utf-8", "replace"))),
    )
