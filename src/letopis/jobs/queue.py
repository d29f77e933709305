"""The job queue as people see it: submit, list, show, cancel, results and files, queries kept under a name,
and the removal of old jobs.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from letopis.archive import Archive
from letopis.catalog import Cursor
from letopis.catalog.job_claims import JobClaims
from letopis.catalog.jobs import (
    DONE,
    ENDED,
    QUEUED,
    JobRow,
    JobRowFilter,
    Jobs,
    NewJob,
    NewStoredQuery,
    StoredQueries,
    StoredQueryRow,
)
from letopis.errors import Busy, NotFound, Refused, UsageError
from letopis.jobs.query import JobQuery, RefreshBounds, Requester, after_use, first_refresh_interval
from letopis.model import from_millis, rfc3339, to_millis


def result_xml(job: JobRow, steps: bytes) -> bytes:
    """`<result id= package= started= finished= state=>` around one element a step; a failure is told in `<error>`."""
    facts = {
        "id": str(job.id),
        "package": job.package,
        "name": job.name,
        "started": _time_text(job.started),
        "finished": _time_text(job.finished),
        "state": job.state,
    }
    given = " ".join(
        f"{name}={quoteattr(_without_control_characters(value))}" for name, value in facts.items() if value
    )
    error = (
        ""
        if job.state == DONE or not job.message
        else f"<error>{escape(_without_control_characters(job.message))}</error>\n"
    )
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<result {given}>\n'
    return head.encode() + _ending_in_newline(steps) + error.encode() + b"</result>\n"


def _time_text(millis: int | None) -> str:
    return rfc3339(from_millis(millis)) if millis is not None else ""


def _ending_in_newline(steps: bytes) -> bytes:
    return steps.rstrip(b"\n") + b"\n" if steps else b""


def _without_control_characters(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return "".join(sign for sign in text if sign >= " " or sign in "\t\n").encode("utf-8", "replace").decode()


def job_output_folder(archive: Archive, job: int) -> Path:
    """The folder for files that a job writes; it is made by the job when it needs one."""
    return archive.folder / "jobs" / str(job)


def job_output_file(archive: Archive, job: int, name: str) -> Path:
    """A file that a job has written; NotFound when there is none of this name."""
    if name not in job_output_names(archive, job):
        raise NotFound(f"job {job} has written no file '{name[:70]}'")
    return job_output_folder(archive, job) / name


def job_output_names(archive: Archive, job: int) -> list[str]:
    """The names of the files that a job has written."""
    folder = job_output_folder(archive, job)
    return sorted(file.name for file in folder.iterdir() if file.is_file()) if folder.is_dir() else []


def remove_old_jobs(archive: Archive, older_than: float | None = None) -> int:
    """Forgets jobs that ended longer ago than `jobs.keep_for` (or the seconds given); answers how many.

    The last good answer of a kept question stays.
    """
    keep_for = archive.settings.jobs.keep_for if older_than is None else older_than
    if keep_for <= 0 and older_than is None:
        return 0
    database = archive.catalog.database
    jobs = Jobs(database)
    if not jobs.counts():
        return 0
    kept = StoredQueries(database).answers()
    with archive.catalog.transaction() as cursor:
        gone = jobs.forget(cursor, to_millis(archive.clock()) - round(keep_for * 1000), kept)
    for job in gone:
        shutil.rmtree(job_output_folder(archive, job), ignore_errors=True)
    return len(gone)


QueuePosition = tuple[int, int, int, int, int]


def queue_position(job: JobRow) -> QueuePosition:
    """Sorts the jobs of a package: user before system, higher priority, asked for before automatic, older first.

    The catalogue's `ORDER` says the same in SQL; a test holds the two together.
    """
    return job.system, -job.priority, job.automatic, job.submitted, job.id


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs a list shows."""

    state: str | None = None
    package: str | None = None
    owner: str | None = None
    before: int | None = None


ALL_JOBS = JobFilter()


class JobQueue:
    """The jobs of one archive, and the questions that are kept; what is written is durable when a method returns."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._jobs = Jobs(archive.catalog.database)
        self._stored = StoredQueries(archive.catalog.database)
        self._turns = JobClaims(archive.catalog.database)
        self._bounds = RefreshBounds.of(archive.settings.jobs)

    def _now(self) -> int:
        return to_millis(self._archive.clock())

    # Looking

    def listed(self, asker: Requester, wanted: JobFilter = ALL_JOBS, limit: int = 100) -> list[JobRow]:
        """Jobs that somebody may see, newest first."""
        self._turns.reap(self._now())
        chosen = JobRowFilter(asker.mask, asker.name, wanted.state, wanted.package, wanted.owner, wanted.before)
        return self._jobs.listed(chosen, limit)

    def show(self, number: int, asker: Requester) -> JobRow:
        """One job; NotFound when there is none that the asker may see."""
        self._turns.reap(self._now())
        found = self._jobs.find(number)
        if found is None or not asker.may_see(found.owner, found.permission):
            raise NotFound(f"there is no job {number}; 'letopis jobs list' shows all")
        return found

    def text(self, number: int, asker: Requester) -> bytes:
        """The job file."""
        return self._jobs.xml(self.show(number, asker).id)

    def result(self, number: int, asker: Requester) -> bytes:
        """The result document of a job that has ended; looking at it counts as a use of its question."""
        job = self.show(number, asker)
        if job.state not in ENDED:
            raise NotFound(f"job {number} is {job.state}; it has no result yet")
        self._use(job)
        return result_xml(job, self._jobs.output(job.id)[0])

    def _use(self, job: JobRow) -> None:
        stored = self._stored.find(job.stored) if job.stored is not None else None
        if stored is not None and stored.answer == job.id:
            with self._archive.catalog.transaction() as cursor:
                self._stored.used(cursor, after_use(stored, self._now(), self._bounds))

    def log(self, number: int, asker: Requester) -> str:
        """What the job has told so far."""
        return self._jobs.output(self.show(number, asker).id)[1].decode("utf-8", "replace")

    def counts(self) -> dict[str, int]:
        """How many jobs are in each state."""
        return self._jobs.counts()

    # Changing one's mind

    def cancel(self, number: int, asker: Requester) -> JobRow:
        """A waiting job ends at once, a running one within seconds."""
        job = self.show(number, asker)
        if not asker.may_change(job.owner):
            raise Refused(f"job {number} belongs to '{job.owner}'; only they or an owner may cancel it")
        if job.state in ENDED:
            raise UsageError(f"job {number} is already {job.state}; there is nothing to cancel")
        with self._archive.catalog.transaction() as cursor:
            self._jobs.cancel(cursor, number, self._now())
            if job.stored is not None and job.state == QUEUED:
                self._stored.answered(cursor, job.stored, None, self._now())
        return self.show(number, asker)

    # Kept questions

    def favourites(self, asker: Requester) -> list[StoredQueryRow]:
        """Kept questions that somebody may see, by name."""
        return self._stored.listed(asker.mask, asker.name)

    def favourite(self, name: str, asker: Requester) -> StoredQueryRow:
        """The kept question of a name, the asker's own before those of others."""
        found = self._stored.named(name, asker.mask, asker.name)
        if not found:
            raise NotFound(f"no question is kept as '{name[:70]}'; 'letopis jobs favourites' shows all")
        return found[0]

    def favourite_text(self, name: str, asker: Requester) -> bytes:
        """The job file of a kept question."""
        return self._stored.xml(self.favourite(name, asker).id)

    def forget(self, name: str, asker: Requester) -> None:
        """Keeps a question no longer, and refreshes it no longer; its answers stay until the cleaner comes."""
        found = self.favourite(name, asker)
        if not asker.may_change(found.owner):
            raise Refused(f"'{name}' belongs to '{found.owner}'; only they or an owner may remove it")
        with self._archive.catalog.transaction() as cursor:
            self._stored.forget(cursor, found.id)


MAX_PRIORITY = 1000
"""Priorities lie between this and its negative."""
MAX_JOB_FILE_BYTES = 1024 * 1024
"""Largest job file."""

ParseJobFile = Callable[[bytes], JobQuery]


class QueueFull(Busy):
    """Somebody has too many jobs that wait."""


class JobSubmitter(JobQueue):
    """A queue that can be asked; `parse` reads job files."""

    def __init__(self, archive: Archive, parse: ParseJobFile) -> None:
        super().__init__(archive)
        self._parse = parse

    def submit(self, data: bytes, asker: Requester, *, keep: bool = False) -> JobRow:
        """Puts a job file into the queue; with `keep`, or when it names a refresh, it is kept under its name too."""
        return self.submit_many([data], asker, keep=keep)[0]

    def submit_many(self, files: Sequence[bytes], asker: Requester, *, keep: bool = False) -> list[JobRow]:
        """Puts job files into the queue, all or none of them."""
        queries = [self._read(data, asker) for data in files]
        every = [first_refresh_interval(query.refresh, self._bounds) for query in queries]
        self._ensure()
        with self._archive.catalog.transaction() as cursor:
            self._make_room(cursor, asker, len(queries))
            numbers = [
                self._add(cursor, query, asker, self._keep(cursor, query, asker, often) if keep or often else None)
                for query, often in zip(queries, every, strict=True)
            ]
        return [self.show(number, asker) for number in numbers]

    def _ensure(self) -> None:
        self._jobs.ensure()
        self._stored.ensure()

    def _read(self, data: bytes, asker: Requester) -> JobQuery:
        if len(data) > MAX_JOB_FILE_BYTES:
            raise UsageError(f"a job file has at most {MAX_JOB_FILE_BYTES} bytes; split this one")
        query = self._parse(data)
        if not -MAX_PRIORITY <= query.priority <= MAX_PRIORITY:
            raise UsageError(f"priority='{query.priority}' is out of bounds; use -{MAX_PRIORITY} to {MAX_PRIORITY}")
        if asker.mask & query.permission != query.permission:
            raise Refused(f"'{asker.name}' may not ask with permission='{query.permission}'; ask an owner")
        return query

    def _make_room(self, cursor: Cursor, asker: Requester, more: int) -> None:
        most = self._archive.settings.jobs.queued
        if self._jobs.queued_of(cursor, asker.name) + more > most:
            raise QueueFull(f"'{asker.name}' has {most} jobs in the queue; wait, or cancel some (jobs.queued)")

    def _add(self, cursor: Cursor, query: JobQuery, asker: Requester, stored: int | None) -> int:
        if stored is not None:
            self._stored.begun(cursor, stored)
        return self._jobs.add(
            cursor,
            NewJob(
                stored, query.package, query.name, asker.name, asker.origin, int(asker.system), query.priority, 0,
                query.permission, self._now(), query.xml,
            ),
        )  # fmt: skip

    def refresh(self, what: int | str, asker: Requester) -> JobRow:
        """Asks a job again by its number, or a kept question by its name; one that waits already is not doubled."""
        if isinstance(what, str):
            return self._again(self.favourite(what, asker), asker)
        job = self.show(what, asker)
        stored = self._stored.find(job.stored) if job.stored is not None else None
        if stored is not None:
            return self._again(stored, asker)
        if job.state == QUEUED:
            return job
        return self.submit(self._jobs.xml(job.id), asker)

    def _again(self, stored: StoredQueryRow, asker: Requester) -> JobRow:
        query = self._parse(self._stored.xml(stored.id))
        with self._archive.catalog.transaction() as cursor:
            number = self._jobs.under_way(cursor, stored.id)
            if number is not None:
                self._jobs.ask(cursor, number)
            else:
                self._make_room(cursor, asker, 1)
                number = self._add(cursor, query, asker, stored.id)
        return self.show(number, asker)

    def keep(self, data: bytes, asker: Requester) -> StoredQueryRow:
        """Keeps a question under its name without asking it now."""
        query = self._read(data, asker)
        every = first_refresh_interval(query.refresh, self._bounds)
        self._ensure()
        with self._archive.catalog.transaction() as cursor:
            number = self._keep(cursor, query, asker, every)
            self._stored.answered(cursor, number, None, self._now())
        return self.favourite(stored_query_name(query), asker)

    def _keep(self, cursor: Cursor, query: JobQuery, asker: Requester, every: int) -> int:
        return self._stored.keep(
            cursor,
            NewStoredQuery(
                asker.name, stored_query_name(query), query.package, asker.origin, int(asker.system), query.priority,
                query.permission, query.refresh, self._now(), every, query.xml,
            ),
        )  # fmt: skip


def stored_query_name(query: JobQuery) -> str:
    """The name under which a question is kept; one that names none gets the same each time it is sent."""
    return query.name or f"{query.package}-{zlib.crc32(query.xml):08x}"
