"""The queue of questions: jobs, the turn of each package, and what came out.

A job moves queued -> running -> done, failed or cancelled, and never back
except from running to queued when its worker was told to stop. Whoever works
for a package holds its row of `job_turn`: the token rises with every claim,
so a worker that was thought dead can neither renew its turn nor write a
result. Times are milliseconds. Tables are made with the first job.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from letopis.catalog.database import Cursor, Database
from letopis.catalog.extras import ensure, present

TABLES = """
CREATE TABLE IF NOT EXISTS job (
    id {id}, stored BIGINT, package TEXT NOT NULL, name TEXT NOT NULL, owner TEXT NOT NULL, origin TEXT NOT NULL,
    system SMALLINT NOT NULL, priority INTEGER NOT NULL, automatic SMALLINT NOT NULL, permission INTEGER NOT NULL,
    state TEXT NOT NULL, submitted BIGINT NOT NULL, started BIGINT, finished BIGINT, step TEXT NOT NULL,
    progress {float} NOT NULL, message TEXT NOT NULL, unwanted SMALLINT NOT NULL, xml {blob} NOT NULL
);
CREATE INDEX IF NOT EXISTS job_waiting ON job (package, system, priority DESC, automatic, submitted, id)
    WHERE state = 'queued';
CREATE INDEX IF NOT EXISTS job_owner ON job (owner) WHERE state = 'queued';
CREATE INDEX IF NOT EXISTS job_running ON job (package) WHERE state = 'running';
CREATE INDEX IF NOT EXISTS job_stored ON job (stored) WHERE stored IS NOT NULL;
CREATE TABLE IF NOT EXISTS job_output (job BIGINT PRIMARY KEY, steps {blob}, log {blob}) {clustered};
CREATE TABLE IF NOT EXISTS job_turn (
    package TEXT PRIMARY KEY, token BIGINT NOT NULL, until BIGINT NOT NULL, holder TEXT NOT NULL
) {clustered};
CREATE TABLE IF NOT EXISTS job_keeper (name TEXT PRIMARY KEY, until BIGINT NOT NULL) {clustered};
"""
QUEUED, RUNNING, DONE, FAILED, CANCELLED = STATES = ("queued", "running", "done", "failed", "cancelled")
ENDED = (DONE, FAILED, CANCELLED)

ORDER = "system, priority DESC, automatic, submitted, id"
"""User before system, higher priority first, asked for before automatic, older first; as `jobs.order.place`."""

_JOB = (
    "id, stored, package, name, owner, origin, system, priority, automatic, permission, state, submitted, started, "
    "finished, step, progress, message, unwanted"
)
_NEW = (
    "INSERT INTO job (stored, package, name, owner, origin, system, priority, automatic, permission, submitted, xml, "
    "state, step, progress, message, unwanted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', '', 0, '', 0) "
    "RETURNING id"
)


class NewJob(NamedTuple):
    """A job to be queued. `stored` is the kept question that it asks again, `origin` is `cli` or `http`."""

    stored: int | None
    package: str
    name: str
    owner: str
    origin: str
    system: int
    priority: int
    automatic: int
    permission: int
    submitted: int
    xml: bytes


class JobRow(NamedTuple):
    """A job without its text. `progress` is 0 to 1; `unwanted` is set once somebody cancelled it while it ran."""

    id: int
    stored: int | None
    package: str
    name: str
    owner: str
    origin: str
    system: int
    priority: int
    automatic: int
    permission: int
    state: str
    submitted: int
    started: int | None
    finished: int | None
    step: str
    progress: float
    message: str
    unwanted: int


class Chosen(NamedTuple):
    """Which jobs a list shows: those of a state, package or owner, that a mask or name may see, before an id."""

    mask: int
    viewer: str
    state: str | None = None
    package: str | None = None
    owner: str | None = None
    before: int | None = None


class Jobs:
    """Reads answer empty until the first job is queued; writes happen inside the caller's transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ensure(self) -> None:
        """Makes the tables; must not be called inside a transaction."""
        ensure(self._database, "jobs", TABLES)

    def _rows(self, question: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._database.all(question, values) if present(self._database, "job") else []

    # Writing

    def add(self, cursor: Cursor, job: NewJob) -> int:
        """Puts a job into the queue; answers its id."""
        made = cursor.one(_NEW, (*job[:-1], zlib.compress(job.xml)))
        assert made is not None
        return int(made[0])

    def cancel(self, cursor: Cursor, number: int, now: int) -> None:
        """A waiting job ends here; a running one is told, and ends soon."""
        touched = cursor.run(
            "UPDATE job SET state = 'cancelled', finished = ?, message = 'cancelled before it began' "
            "WHERE id = ? AND state = 'queued'",
            (now, number),
        )
        if not touched:
            cursor.run("UPDATE job SET unwanted = 1 WHERE id = ? AND state = 'running'", (number,))

    def ask(self, cursor: Cursor, number: int) -> None:
        """A waiting automatic refresh is now asked for by somebody."""
        cursor.run("UPDATE job SET automatic = 0 WHERE id = ? AND state = 'queued'", (number,))

    def forget(self, cursor: Cursor, before: int, kept: Sequence[int]) -> list[int]:
        """Removes jobs that ended before a time, with what came out; answers their ids.

        `kept` ones stay, and so does the newest of all, since ids must never be given out twice.
        """
        marks = ", ".join("?" * len(kept))
        rest = f" AND id NOT IN ({marks})" if kept else ""
        found = cursor.all(
            f"SELECT id FROM job WHERE state IN ('done', 'failed', 'cancelled') AND finished < ?{rest} "
            "AND id < (SELECT max(id) FROM job)",
            (before, *kept),
        )
        cursor.run_many("DELETE FROM job_output WHERE job = ?", found)
        cursor.run_many("DELETE FROM job WHERE id = ?", found)
        return [int(row[0]) for row in found]

    # Reading

    def find(self, number: int) -> JobRow | None:
        """One job."""
        if not -(2**63) <= number < 2**63:
            return None
        rows = self._rows(f"SELECT {_JOB} FROM job WHERE id = ?", (number,))
        return JobRow(*rows[0]) if rows else None

    def xml(self, number: int) -> bytes:
        """The text of a job."""
        rows = self._rows("SELECT xml FROM job WHERE id = ?", (number,))
        return zlib.decompress(bytes(rows[0][0])) if rows else b""

    def output(self, number: int) -> tuple[bytes, bytes]:
        """What the steps of a job answered, and its log."""
        rows = self._rows("SELECT steps, log FROM job_output WHERE job = ?", (number,))
        steps, log = rows[0] if rows else (None, None)
        return _unpacked(steps), _unpacked(log)

    def listed(self, chosen: Chosen, limit: int) -> list[JobRow]:
        """Jobs, newest first."""
        wanted: dict[str, Any] = {
            "state = ?": chosen.state,
            "package = ?": chosen.package,
            "owner = ?": chosen.owner,
            "id < ?": chosen.before,
        }
        given = {text: value for text, value in wanted.items() if value is not None}
        more = "".join(f" AND {text}" for text in given)
        rows = self._rows(
            f"SELECT {_JOB} FROM job WHERE ((permission & ?) = permission OR owner = ?){more} ORDER BY id DESC LIMIT ?",
            (chosen.mask, chosen.viewer, *given.values(), limit),
        )
        return [JobRow(*row) for row in rows]

    def waiting(self, package: str, limit: int) -> list[JobRow]:
        """What a package does next, first one first."""
        rows = self._rows(
            f"SELECT {_JOB} FROM job WHERE package = ? AND state = 'queued' ORDER BY {ORDER} LIMIT ?", (package, limit)
        )
        return [JobRow(*row) for row in rows]

    def queued_of(self, cursor: Cursor, owner: str) -> int:
        """How many jobs of somebody wait."""
        row = cursor.one("SELECT count(*) FROM job WHERE owner = ? AND state = 'queued'", (owner,))
        return int(row[0]) if row else 0

    def under_way(self, cursor: Cursor, stored: int) -> int | None:
        """The job that asks a kept question right now, or is about to."""
        row = cursor.one("SELECT max(id) FROM job WHERE stored = ? AND state IN ('queued', 'running')", (stored,))
        return int(row[0]) if row and row[0] is not None else None

    def counts(self) -> dict[str, int]:
        """How many jobs are in each state."""
        return {str(state): int(count) for state, count in self._rows("SELECT state, count(*) FROM job GROUP BY state")}


def _unpacked(data: Any) -> bytes:
    return zlib.decompress(bytes(data)) if data is not None else b""
