"""The queue of jobs with their results, and stored queries with the time of their next refresh.

A job moves queued -> running -> done, failed or cancelled. It goes back from running to queued if its worker is
stopped, stays paused until it is resumed, and one that failed or was cancelled can be resumed too. The number of a
deleted job is kept until the cleaner runs, since numbers must never be given out twice. Times are milliseconds. Tables
are created with the first job.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from letopis.catalog.database import Cursor
from letopis.catalog.schema import TopicTables
from letopis.tuples import NamedTuple

JOB_TABLES = """
CREATE TABLE IF NOT EXISTS job (
    id {id}, stored BIGINT, package TEXT NOT NULL, name TEXT NOT NULL, owner TEXT NOT NULL, origin TEXT NOT NULL,
    system SMALLINT NOT NULL, priority INTEGER NOT NULL, automatic SMALLINT NOT NULL, permission INTEGER NOT NULL,
    state TEXT NOT NULL, submitted BIGINT NOT NULL, started BIGINT, finished BIGINT, step TEXT NOT NULL,
    progress {float} NOT NULL, message TEXT NOT NULL, unwanted SMALLINT NOT NULL, xml {blob} NOT NULL,
    rights INTEGER NOT NULL DEFAULT 3, error TEXT NOT NULL DEFAULT ''
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
JOURNAL_TABLES = """
CREATE TABLE IF NOT EXISTS job_journal (
    job BIGINT NOT NULL, number BIGINT NOT NULL, entry {blob} NOT NULL, PRIMARY KEY (job, number)
) {clustered};
"""
QUEUED, RUNNING, PAUSED, DONE, FAILED, CANCELLED = "queued", "running", "paused", "done", "failed", "cancelled"
ENDED = (DONE, FAILED, CANCELLED)
WANTED, TO_CANCEL, TO_PAUSE = 0, 1, 2
"""The values of `unwanted` for a running job."""

JOB_ORDER = "system, priority DESC, automatic, submitted, id"
"""User before system, higher priority first, requested before automatic, older first."""

_JOB = (
    "id, stored, package, name, owner, origin, system, priority, automatic, permission, state, submitted, started, "
    "finished, step, progress, message, unwanted, rights, error"
)
_INSERT_JOB = (
    "INSERT INTO job (stored, package, name, owner, origin, rights, system, priority, automatic, permission, "
    "submitted, xml, state, step, progress, message, unwanted) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', '', 0, '', 0) RETURNING id"
)


class NewJob(NamedTuple):
    """A job to be queued.

    `stored` is the stored query that it runs again; `origin` is `cli` or `http`, and `rights` are those of the
    requester.
    """

    stored: int | None
    package: str
    name: str
    owner: str
    origin: str
    rights: int
    system: int
    priority: int
    automatic: int
    permission: int
    submitted: int
    xml: bytes


class JobRow(NamedTuple):
    """A job without its text.

    `progress` is 0 to 1; `unwanted` is set if it was cancelled or paused while it ran; `error` is the class of its
    failure, if known.
    """

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
    rights: int
    error: str


class JobRowFilter(NamedTuple):
    """Which jobs a list shows: those of a state, package or owner, that a mask or name may see, before an id."""

    mask: int
    viewer: str
    state: str | None = None
    package: str | None = None
    owner: str | None = None
    before: int | None = None


class Jobs(TopicTables):
    """Reads return nothing until the first job is queued; writes happen inside the caller's transaction."""

    topic, table, ddl = "jobs", "job", JOB_TABLES

    # Writing

    def add(self, cursor: Cursor, job: NewJob) -> int:
        """Puts a job into the queue; returns its id."""
        made = cursor.one(_INSERT_JOB, (*job[:-1], zlib.compress(job.xml)))
        assert made is not None
        return int(made[0])

    def cancel(self, cursor: Cursor, number: int, now: int) -> None:
        """Cancels a job: a waiting one ends here, a running one soon."""
        touched = cursor.run(
            "UPDATE job SET state = 'cancelled', finished = ?, message = 'cancelled before it began' "
            "WHERE id = ? AND state = 'queued'",
            (now, number),
        )
        if not touched:
            cursor.run("UPDATE job SET unwanted = 1 WHERE id = ? AND state = 'running'", (number,))
            cursor.run(
                "UPDATE job SET state = 'cancelled', finished = ?, message = 'cancelled while it was paused' "
                "WHERE id = ? AND state = 'paused'",
                (now, number),
            )

    def pause(self, cursor: Cursor, number: int) -> None:
        """Pauses a job: a waiting one here, a running one soon. A cancelled one stays cancelled."""
        if not cursor.run("UPDATE job SET state = 'paused' WHERE id = ? AND state = 'queued'", (number,)):
            cursor.run("UPDATE job SET unwanted = 2 WHERE id = ? AND state = 'running' AND unwanted = 0", (number,))

    def resume(self, cursor: Cursor, number: int) -> None:
        """Queues a job that is paused, or ended without a result, again at its place in the order.

        One that was to be paused and still runs continues.
        """
        touched = cursor.run(
            "UPDATE job SET state = 'queued', started = CASE WHEN state = 'paused' THEN started END, "
            "finished = NULL, message = '', error = '', unwanted = 0 "
            "WHERE id = ? AND state IN ('paused', 'failed', 'cancelled')",
            (number,),
        )
        if not touched:
            cursor.run("UPDATE job SET unwanted = 0 WHERE id = ? AND state = 'running' AND unwanted = 2", (number,))

    def delete(self, cursor: Cursor, number: int, now: int) -> bool:
        """Deletes a job except its number; False for one that waits or runs."""
        touched = cursor.run(
            "UPDATE job SET state = 'deleted', finished = ?, stored = NULL, name = '', message = '', xml = ? "
            "WHERE id = ? AND state IN ('paused', 'done', 'failed', 'cancelled')",
            (now, zlib.compress(b""), number),
        )
        if touched:
            cursor.run("DELETE FROM job_output WHERE job = ?", (number,))
        return bool(touched)

    def ask(self, cursor: Cursor, number: int) -> None:
        """Turns a waiting automatic refresh into a requested one."""
        cursor.run("UPDATE job SET automatic = 0 WHERE id = ? AND state = 'queued'", (number,))

    def forget(self, cursor: Cursor, before: int, kept: Sequence[int]) -> list[int]:
        """Removes jobs that ended before a time, with their results; returns their ids.

        `kept` ones stay, and so does the newest of all, since ids must never be given out twice.
        """
        marks = ", ".join("?" * len(kept))
        rest = f" AND id NOT IN ({marks})" if kept else ""
        found = cursor.all(
            f"SELECT id FROM job WHERE state IN ('done', 'failed', 'cancelled', 'deleted') AND finished < ?{rest} "
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
        rows = self._all(f"SELECT {_JOB} FROM job WHERE id = ? AND state <> 'deleted'", (number,))
        return JobRow(*rows[0]) if rows else None

    def xml(self, number: int) -> bytes:
        """The text of a job."""
        rows = self._all("SELECT xml FROM job WHERE id = ?", (number,))
        return zlib.decompress(bytes(rows[0][0])) if rows else b""

    def output(self, number: int) -> tuple[bytes, bytes]:
        """The results of the steps of a job, and its log."""
        rows = self._all("SELECT steps, log FROM job_output WHERE job = ?", (number,))
        steps, log = rows[0] if rows else (None, None)
        return _decompressed(steps), _decompressed(log)

    def listed(self, chosen: JobRowFilter, limit: int) -> list[JobRow]:
        """Jobs, newest first."""
        wanted: dict[str, Any] = {
            "state = ?": chosen.state,
            "package = ?": chosen.package,
            "owner = ?": chosen.owner,
            "id < ?": chosen.before,
        }
        given = {text: value for text, value in wanted.items() if value is not None}
        more = "".join(f" AND {text}" for text in given)
        rows = self._all(
            f"SELECT {_JOB} FROM job WHERE state <> 'deleted' AND ((permission & ?) = permission OR owner = ?){more} "
            "ORDER BY id DESC LIMIT ?",
            (chosen.mask, chosen.viewer, *given.values(), limit),
        )
        return [JobRow(*row) for row in rows]

    def queued_of(self, cursor: Cursor, owner: str) -> int:
        """How many jobs of a user wait."""
        return cursor.count("SELECT count(*) FROM job WHERE owner = ? AND state = 'queued'", (owner,))

    def under_way(self, cursor: Cursor, stored: int) -> int | None:
        """The running or waiting job of a stored query."""
        row = cursor.one(
            "SELECT max(id) FROM job WHERE stored = ? AND state IN ('queued', 'running', 'paused')", (stored,)
        )
        return int(row[0]) if row and row[0] is not None else None

    def counts(self) -> dict[str, int]:
        """How many jobs are in each state."""
        rows = self._all("SELECT state, count(*) FROM job WHERE state <> 'deleted' GROUP BY state")
        return {str(state): int(count) for state, count in rows}


class JobJournals(TopicTables):
    """What jobs have done so far, as ordered entries, so that they can continue where they were."""

    topic, table, ddl = "job journals", "job_journal", JOURNAL_TABLES

    def append(self, cursor: Cursor, job: int, entry: bytes) -> None:
        """Adds an entry, in the transaction that it describes."""
        cursor.run(
            "INSERT INTO job_journal (job, number, entry) "
            "SELECT ?, coalesce(max(number), 0) + 1, ? FROM job_journal WHERE job = ?",
            (job, zlib.compress(entry), job),
        )

    def entries(self, job: int) -> list[bytes]:
        """The entries of a job, oldest first."""
        rows = self._all("SELECT entry FROM job_journal WHERE job = ? ORDER BY number", (job,))
        return [zlib.decompress(bytes(row[0])) for row in rows]

    def forget(self, cursor: Cursor, jobs: Sequence[int]) -> None:
        """Removes the journals of jobs that will not continue."""
        if self._made():
            cursor.run_many("DELETE FROM job_journal WHERE job = ?", [(job,) for job in jobs])


def _decompressed(data: Any) -> bytes:
    return zlib.decompress(bytes(data)) if data is not None else b""


QUERY_TABLES = """
CREATE TABLE IF NOT EXISTS job_query (
    id {id}, owner TEXT NOT NULL, name TEXT NOT NULL, package TEXT NOT NULL, origin TEXT NOT NULL,
    system SMALLINT NOT NULL, priority INTEGER NOT NULL, permission INTEGER NOT NULL, refresh TEXT NOT NULL,
    created BIGINT NOT NULL, every BIGINT NOT NULL, due BIGINT, answer BIGINT, uses BIGINT NOT NULL,
    weight {float} NOT NULL, used BIGINT NOT NULL, xml {blob} NOT NULL, rights INTEGER NOT NULL DEFAULT 3,
    UNIQUE (owner, name)
);
CREATE INDEX IF NOT EXISTS job_query_due ON job_query (due);
"""
_QUERY_COLUMNS = (
    "id, owner, name, package, origin, system, priority, permission, refresh, created, every, due, answer, uses, "
    "weight, used, rights"
)


class NewStoredQuery(NamedTuple):
    """A query to store. `every` is the interval of its refresh in milliseconds, 0 for none."""

    owner: str
    name: str
    package: str
    origin: str
    rights: int
    system: int
    priority: int
    permission: int
    refresh: str
    created: int
    every: int
    xml: bytes


class StoredQueryRow(NamedTuple):
    """A stored query. `answer` is the job with its last good result, `weight` how much it was used recently."""

    id: int
    owner: str
    name: str
    package: str
    origin: str
    system: int
    priority: int
    permission: int
    refresh: str
    created: int
    every: int
    due: int | None
    answer: int | None
    uses: int
    weight: float
    used: int
    rights: int


class StoredQueries(TopicTables):
    """Reads return nothing until the first query is stored; writes happen inside the caller's transaction."""

    topic, table, ddl = "job queries", "job_query", QUERY_TABLES

    def _queries(self, which: str, values: Sequence[Any] = ()) -> list[StoredQueryRow]:
        rows = self._all(f"SELECT {_QUERY_COLUMNS} FROM job_query {which}", values)
        return [StoredQueryRow(*row) for row in rows]

    def keep(self, cursor: Cursor, query: NewStoredQuery) -> int:
        """Stores a query; one of the same owner and name gets the new text. Returns its id."""
        made = cursor.one(
            "INSERT INTO job_query (owner, name, package, origin, rights, system, priority, permission, refresh, "
            "created, every, xml, uses, weight, used) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0) "
            "ON CONFLICT (owner, name) DO UPDATE SET package = excluded.package, origin = excluded.origin, "
            "rights = excluded.rights, system = excluded.system, priority = excluded.priority, "
            "permission = excluded.permission, refresh = excluded.refresh, every = excluded.every, due = NULL, "
            "xml = excluded.xml RETURNING id",
            (*query[:-1], zlib.compress(query.xml)),
        )
        assert made is not None
        return int(made[0])

    def forget(self, cursor: Cursor, number: int) -> None:
        """Removes a stored query; its results stay until the cleaner runs."""
        cursor.run("DELETE FROM job_query WHERE id = ?", (number,))
        cursor.run("UPDATE job SET stored = NULL WHERE stored = ?", (number,))

    def answered(self, cursor: Cursor, number: int, answer: int | None, now: int) -> None:
        """A job of the query ended: the next one is due an interval later. A failure keeps the last answer."""
        cursor.run(
            "UPDATE job_query SET answer = coalesce(?, answer), due = CASE WHEN every > 0 THEN every + ? END "
            "WHERE id = ?",
            (answer, now, number),
        )

    def used(self, cursor: Cursor, row: StoredQueryRow) -> None:
        """The result was read: new weight, interval and time."""
        cursor.run(
            "UPDATE job_query SET uses = ?, weight = ?, used = ?, every = ?, due = ? WHERE id = ?",
            (row.uses, row.weight, row.used, row.every, row.due, row.id),
        )

    def begun(self, cursor: Cursor, number: int) -> None:
        """A job of the query is in the queue; nothing is due until it ends."""
        cursor.run("UPDATE job_query SET due = NULL WHERE id = ?", (number,))

    def claim_due(self, cursor: Cursor, number: int, now: int) -> bool:
        """Takes a query that is due, so that no other process queues it too; False if one already did."""
        return cursor.run("UPDATE job_query SET due = NULL WHERE id = ? AND due <= ?", (number, now)) == 1

    def bring_back(self, now: int) -> int:
        """Makes queries due that wait longer than their interval; returns how many."""
        if not self._made():
            return 0
        with self._database.transaction() as cursor:
            return cursor.run("UPDATE job_query SET due = ? WHERE due > ? + every", (now, now))

    def find(self, number: int) -> StoredQueryRow | None:
        """One stored query."""
        rows = self._queries("WHERE id = ?", (number,))
        return rows[0] if rows else None

    def named(self, name: str, mask: int, viewer: str) -> list[StoredQueryRow]:
        """Queries of a name that the viewer may see, the viewer's own first."""
        return self._queries(
            "WHERE name = ? AND ((permission & ?) = permission OR owner = ?) "
            "ORDER BY CASE WHEN owner = ? THEN 0 ELSE 1 END, id",
            (name, mask, viewer, viewer),
        )

    def listed(self, mask: int, viewer: str) -> list[StoredQueryRow]:
        """All stored queries that the viewer may see, by name."""
        return self._queries("WHERE ((permission & ?) = permission OR owner = ?) ORDER BY name, owner", (mask, viewer))

    def due(self, now: int, limit: int) -> list[StoredQueryRow]:
        """Queries whose time has come, the longest waiting first."""
        return self._queries("WHERE due <= ? ORDER BY due, id LIMIT ?", (now, limit))

    def lose_answer(self, cursor: Cursor, job: int) -> None:
        """The result of a job is no longer the last good one of its query."""
        cursor.run("UPDATE job_query SET answer = NULL WHERE answer = ?", (job,))

    def answers(self) -> list[int]:
        """Jobs that hold the last good answer of a stored query."""
        return [row.answer for row in self._queries("WHERE answer IS NOT NULL") if row.answer is not None]

    def xml(self, number: int) -> bytes:
        """The text of a query."""
        row = self._database.one("SELECT xml FROM job_query WHERE id = ?", (number,))
        return zlib.decompress(bytes(row[0])) if row else b""
