"""The job queue of an archive: jobs with their results and files, stored queries, and the order of work.

A job is queued by its submitter, taken by one worker per package, and ends done, failed or cancelled. A stored query
has a name and may run again automatically. This module does not interpret the text of a query.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence

from letopis.archive.archive import Archive, of_archive
from letopis.catalog.audit import DAY, UseCounts
from letopis.catalog.database import Cursor
from letopis.catalog.job_claims import (
    CANCELLED_WHILE_RUNNING,
    WORKER_DIED,
    JobClaim,
    JobClaims,
    JobOutcome,
    WorkerReport,
)
from letopis.catalog.jobs import (
    CANCELLED,
    DONE,
    ENDED,
    FAILED,
    PAUSED,
    QUEUED,
    TO_CANCEL,
    TO_PAUSE,
    JobRow,
    JobRowFilter,
    Jobs,
    NewJob,
    NewStoredQuery,
    StoredQueries,
    StoredQueryRow,
)
from letopis.config import JobsSettings
from letopis.errors import Busy, NotFound, Refused, UsageError
from letopis.fetch import Origin
from letopis.model import parse_duration, to_millis
from letopis.model.rights import OWN, READ, WRITE
from letopis.tuples import NamedTuple

__all__ = [
    "CANCELLED", "CANCELLED_WHILE_RUNNING", "COMMAND_LINE", "DONE", "ENDED", "FAILED", "PAUSED", "TO_CANCEL",
    "TO_PAUSE", "WORKER_DIED", "JobClaim", "JobClaims", "JobOutcome", "JobQuery", "JobQueue", "JobRow", "QueueFull",
    "RefreshBounds", "Requester", "StoredQueryRow", "WorkerReport", "bring_back_jobs", "claims_of",
    "enqueue_due_refreshes",
]  # fmt: skip

MAX_PRIORITY = 1000
"""Priorities lie between this and its negative."""
REFRESH_BY_USE = "use"
"""The refresh of a query that runs more often the more its result is read."""
USE_HALF_LIFE = 7 * 86_400_000
"""Milliseconds after which a read of a result counts half."""
SHORTEST_REFRESH = 60_000
"""No query runs automatically more often than once a minute."""
_LONGEST_REFRESH = 10 * 365 * 86_400_000
_MAX_REFRESHES = 100
_SPARE_LEASE = 86_400_000
"""Milliseconds that a worker with other settings may hold its turn for longer than ours."""


class QueueFull(Busy):
    """A user has too many queued jobs."""

    http_status = 429


class JobQuery(NamedTuple):
    """A parsed job file. `refresh` is empty, a duration such as `1h`, or `use`; `xml` is the whole file.

    `savefile` names the file that gets a copy of every result; empty for none.
    """

    package: str
    name: str
    priority: int
    refresh: str
    permission: int
    xml: bytes
    savefile: str = ""

    @property
    def stored_name(self) -> str:
        """The name under which it is stored; a query without one gets the same each time it is sent."""
        return self.name or f"{self.package}-{zlib.crc32(self.xml):08x}"


class Requester(NamedTuple):
    """A name with rights. Jobs of `system` requesters (daemons) come after those of people in the queue."""

    name: str
    rights: int
    origin: Origin
    system: bool = False

    def may_see(self, owner: str, permission: int) -> bool:
        """Whether a job or query of an owner is shown: to all whose rights hold its permission, and to the owner."""
        return self.rights & permission == permission or self.owns(owner)

    def owns(self, owner: str) -> bool:
        """Whether the job or query belongs to the requester."""
        return bool(self.name) and self.name == owner

    def may_change(self, owner: str) -> bool:
        """Whether the requester may cancel or remove it: their own, or anything for an owner of the archive."""
        return self.owns(owner) or bool(self.rights & OWN)


COMMAND_LINE = Requester("command line", READ | WRITE | OWN, "cli")
"""The operator of the archive. No account can have this name."""


# When a stored query runs again


class RefreshBounds(NamedTuple):
    """Shortest and longest interval of a use-driven refresh, in milliseconds."""

    least: int
    most: int

    @classmethod
    def of(cls, settings: JobsSettings) -> RefreshBounds:
        """The interval in the settings."""
        return cls(round(settings.refresh_min * 1000), round(settings.refresh_max * 1000))


def first_refresh_interval(refresh: str, bounds: RefreshBounds) -> int:
    """Milliseconds until a new query runs again; 0 for never. UsageError for what is no interval."""
    if not refresh:
        return 0
    if refresh == REFRESH_BY_USE:
        return bounds.most
    every = parse_duration(refresh) * 1000
    if not 0 < every <= _LONGEST_REFRESH:
        raise UsageError(f"refresh='{refresh[:40]}' is not an interval; write 10m, 1h, 7d or 'use'")
    return max(SHORTEST_REFRESH, round(every))


def decayed_use_weight(weight: float, since: int) -> float:
    """How much earlier reads still count after some milliseconds."""
    return weight * math.exp2(-max(0, since) / USE_HALF_LIFE)


def refresh_interval_by_use(weight: float, bounds: RefreshBounds) -> int:
    """About one refresh per read: the mean time between recent reads, within the bounds."""
    if weight <= 0:
        return bounds.most
    between = USE_HALF_LIFE / (weight * math.log(2))
    return round(min(max(between, bounds.least), bounds.most))


def after_use(row: StoredQueryRow, now: int, bounds: RefreshBounds) -> StoredQueryRow:
    """The query after its result was read; a use-driven one may become due sooner."""
    weight = decayed_use_weight(row.weight, now - row.used) + 1
    seen = row._replace(uses=row.uses + 1, weight=weight, used=now)
    if row.refresh != REFRESH_BY_USE:
        return seen
    every = refresh_interval_by_use(weight, bounds)
    due = None if row.due is None else max(now, row.due - row.every + every)
    return seen._replace(every=every, due=due)


def bring_back_jobs(archive: Archive) -> int:
    """Makes refreshes due, and ends turns, that only a wrong clock can have set so far ahead; counts refreshes.

    The job of such a turn fails, as that of any worker that died.
    """
    now = to_millis(archive.clock())
    JobClaims(archive.catalog.database).end_turns(now + round(archive.settings.jobs.lease * 1000) + _SPARE_LEASE)
    return StoredQueries(archive.catalog.database).bring_back(now)


def enqueue_due_refreshes(archive: Archive) -> int:
    """Queues what is due, once each, however many processes plan; returns how many."""
    now, bounds = to_millis(archive.clock()), RefreshBounds.of(archive.settings.jobs)
    database = archive.catalog.database
    jobs, stored = Jobs(database), StoredQueries(database)
    count = 0
    for row in stored.due(now, _MAX_REFRESHES):
        xml = stored.xml(row.id)
        with archive.catalog.transaction() as cursor:
            if stored.claim_due(cursor, row.id, now) and jobs.under_way(cursor, row.id) is None:
                _update_interval(cursor, stored, row, now, bounds)
                jobs.add(cursor, _refresh_job(row, now, xml))
                count += 1
    return count


def _update_interval(
    cursor: Cursor, stored: StoredQueries, row: StoredQueryRow, now: int, bounds: RefreshBounds
) -> None:
    """Older reads count less: the interval grows again if the result is not read."""
    if row.refresh == REFRESH_BY_USE:
        weight = decayed_use_weight(row.weight, now - row.used)
        stored.used(
            cursor, row._replace(weight=weight, used=now, every=refresh_interval_by_use(weight, bounds), due=None)
        )


def _refresh_job(row: StoredQueryRow, now: int, xml: bytes) -> NewJob:
    return NewJob(
        stored=row.id, package=row.package, name=row.name, owner=row.owner, origin=row.origin, rights=row.rights,
        system=row.system, priority=row.priority, automatic=1, permission=row.permission, submitted=now, xml=xml,
    )  # fmt: skip


# Turns of workers


claims_of = of_archive(JobClaims)
"""Which worker works for which package."""


class JobQueue:
    """The jobs and stored queries of one archive; changes are durable when a method returns."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._jobs = Jobs(archive.catalog.database)
        self._stored = StoredQueries(archive.catalog.database)
        self._use = UseCounts(archive.catalog.database)
        self._claims = claims_of(archive)
        self._bounds = RefreshBounds.of(archive.settings.jobs)

    def _now(self) -> int:
        return to_millis(self._archive.clock())

    # Reading

    def listed(
        self,
        requester: Requester,
        limit: int = 100,
        *,
        state: str | None = None,
        package: str | None = None,
        owner: str | None = None,
        before: int | None = None,
    ) -> list[JobRow]:
        """Jobs that the requester may see, newest first."""
        self._claims.reap(self._now())
        chosen = JobRowFilter(requester.rights, requester.name, state, package, owner, before)
        return self._jobs.listed(chosen, limit)

    def show(self, number: int, requester: Requester) -> JobRow:
        """One job; NotFound when there is none that the requester may see."""
        self._claims.reap(self._now())
        found = self._jobs.find(number)
        if found is None or not requester.may_see(found.owner, found.permission):
            raise NotFound(f"there is no job {number}; see the list of jobs")
        return found

    def claimed(self, claim: JobClaim) -> tuple[JobRow, bytes]:
        """A job and its file, for the worker that runs it."""
        found = self._jobs.find(claim.job)
        if found is None:
            raise NotFound(f"job {claim.job} is gone; submit it again")
        return found, self._jobs.xml(found.id)

    def text(self, number: int, requester: Requester) -> bytes:
        """The job file."""
        return self._jobs.xml(self.show(number, requester).id)

    def output(self, number: int, requester: Requester) -> tuple[JobRow, bytes]:
        """A job that has ended, and the results of its steps; reading it counts as a use of its query."""
        job = self.show(number, requester)
        if job.state not in ENDED:
            raise NotFound(f"job {number} is {job.state} and has no result yet; wait until it has ended")
        self._count_use(job)
        return job, self._jobs.output(job.id)[0]

    def _count_use(self, job: JobRow) -> None:
        stored = self._stored.find(job.stored) if job.stored is not None else None
        if stored is not None and stored.answer == job.id:
            with self._archive.catalog.transaction() as cursor:
                self._stored.used(cursor, after_use(stored, self._now(), self._bounds))

    def log(self, number: int, requester: Requester) -> str:
        """The log of a job so far."""
        return self.log_so_far(self.show(number, requester).id)

    def log_so_far(self, number: int) -> str:
        """The same for its worker, which continues it."""
        return self._jobs.output(number)[1].decode("utf-8", "replace")

    def counts(self) -> dict[str, int]:
        """How many jobs are in each state."""
        return self._jobs.counts()

    # Asking

    def submit(
        self,
        query: JobQuery,
        requester: Requester,
        *,
        keep: bool = False,
        before: Callable[[int], None] = lambda number: None,
    ) -> JobRow:
        """Queues a query; with `keep`, or when it names a refresh, it is stored under its name too.

        `before` is called with the number of the job before any worker can take it.
        """
        return self.submit_many([query], requester, keep=keep, before=before)[0]

    def submit_many(
        self,
        queries: Sequence[JobQuery],
        requester: Requester,
        *,
        keep: bool = False,
        before: Callable[[int], None] = lambda number: None,
    ) -> list[JobRow]:
        """Queues queries, all or none of them."""
        every = [self._interval(query, requester) for query in queries]
        self._ensure_tables()
        with self._archive.catalog.transaction() as cursor:
            self.require_room(cursor, requester.name, len(queries))
            numbers = [
                self._add(
                    cursor, query, requester, self._store(cursor, query, requester, often) if keep or often else None
                )
                for query, often in zip(queries, every, strict=True)
            ]
            for number in numbers:
                before(number)
        return [self.show(number, requester) for number in numbers]

    def _ensure_tables(self) -> None:
        self._jobs.ensure()
        self._stored.ensure()
        self._use.ensure()

    def _interval(self, query: JobQuery, requester: Requester) -> int:
        """The interval of a query's refresh; refuses what the requester may not set."""
        if not -MAX_PRIORITY <= query.priority <= MAX_PRIORITY:
            raise UsageError(f"priority='{query.priority}' is out of bounds; use -{MAX_PRIORITY} to {MAX_PRIORITY}")
        if requester.rights & query.permission != query.permission:
            raise Refused(f"'{requester.name}' may not submit with permission='{query.permission}'; ask an owner")
        return first_refresh_interval(query.refresh, self._bounds)

    def require_room(self, cursor: Cursor, owner: str, more: int = 1) -> None:
        """Raises QueueFull where a user may not queue so many more jobs."""
        most = self._archive.settings.jobs.queued
        if self._jobs.queued_of(cursor, owner) + more > most:
            raise QueueFull(f"'{owner}' has {most} jobs in the queue; wait, or cancel some (jobs.queued)")

    def _add(self, cursor: Cursor, query: JobQuery, requester: Requester, stored: int | None) -> int:
        if stored is not None:
            self._stored.begun(cursor, stored)
        if self._archive.settings.serve.statistics:
            self._use.add(cursor, self._now() // DAY, {"jobs": 1})
        return self._jobs.add(
            cursor,
            NewJob(
                stored, query.package, query.name, requester.name, requester.origin, requester.rights,
                int(requester.system), query.priority, 0, query.permission, self._now(), query.xml,
            ),
        )  # fmt: skip

    def refresh(self, what: int | str, query: JobQuery, requester: Requester) -> JobRow:
        """Runs the query of a job, or the one stored under a name, again; it is never queued twice."""
        if isinstance(what, str):
            return self._run_stored(self.stored_query(what, requester), query, requester)
        job = self.show(what, requester)
        stored = self._stored.find(job.stored) if job.stored is not None else None
        if stored is not None:
            return self._run_stored(stored, query, requester)
        if job.state == QUEUED:
            return job
        return self.submit(query, requester)

    def _run_stored(self, stored: StoredQueryRow, query: JobQuery, requester: Requester) -> JobRow:
        with self._archive.catalog.transaction() as cursor:
            number = self._jobs.under_way(cursor, stored.id)
            if number is not None:
                self._jobs.ask(cursor, number)
            else:
                self.require_room(cursor, requester.name)
                number = self._add(cursor, query, requester, stored.id)
        return self.show(number, requester)

    # Stored queries

    def stored_queries(self, requester: Requester) -> list[StoredQueryRow]:
        """Stored queries that the requester may see, by name."""
        return self._stored.listed(requester.rights, requester.name)

    def stored_query(self, name: str, requester: Requester) -> StoredQueryRow:
        """The query stored under a name, the requester's own before those of others."""
        found = self._stored.named(name, requester.rights, requester.name)
        if not found:
            raise NotFound(f"no query is stored as '{name[:70]}'; see the list of favourites")
        return found[0]

    def stored_text(self, name: str, requester: Requester) -> bytes:
        """The job file of a stored query."""
        return self._stored.xml(self.stored_query(name, requester).id)

    def store_query(self, query: JobQuery, requester: Requester) -> StoredQueryRow:
        """Stores a query under its name without running it now."""
        every = self._interval(query, requester)
        self._ensure_tables()
        with self._archive.catalog.transaction() as cursor:
            number = self._store(cursor, query, requester, every)
            self._stored.answered(cursor, number, None, self._now())
        return self.stored_query(query.stored_name, requester)

    def _store(self, cursor: Cursor, query: JobQuery, requester: Requester, every: int) -> int:
        return self._stored.keep(
            cursor,
            NewStoredQuery(
                requester.name, query.stored_name, query.package, requester.origin, requester.rights,
                int(requester.system), query.priority, query.permission, query.refresh, self._now(), every, query.xml,
            ),
        )  # fmt: skip

    def forget(self, name: str, requester: Requester) -> StoredQueryRow:
        """Removes a stored query and its refresh; its results stay until old jobs are removed."""
        found = self.stored_query(name, requester)
        if not requester.may_change(found.owner):
            raise Refused(f"'{name}' belongs to '{found.owner}'; only they or an owner may remove it")
        with self._archive.catalog.transaction() as cursor:
            self._stored.forget(cursor, found.id)
        return found
