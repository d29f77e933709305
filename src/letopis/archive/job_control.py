"""Pausing, resuming and deleting jobs, and the journals with which a crawl continues where it was.

Order of writes: what a crawl fetched and the entry in its journal are one transaction, so a run that is interrupted
at any moment, by a pause, a restart or `kill -9`, continues without requesting again what is recorded. A deleted job
loses its rows in one transaction, and its files afterwards; the cleaner removes files that a crash left behind.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

from letopis.archive.archive import Archive
from letopis.archive.job_folders import job_folder
from letopis.archive.jobs import ENDED, JobQueue, JobRow, QueueFull, Requester
from letopis.archive.page_memory import RecordExtension
from letopis.archive.records import RecordedCapture
from letopis.catalog.database import Cursor
from letopis.catalog.jobs import DONE, PAUSED, QUEUED, JobJournals, Jobs, StoredQueries
from letopis.errors import Refused, UsageError
from letopis.model import to_millis


class CrawlJournal:
    """What one of the crawls of a job has done so far; empty for a new one."""

    def __init__(self, archive: Archive, job: int, part: int = 1) -> None:
        self._journals = JobJournals(archive.catalog.database)
        self._job = job
        self._mark = f"{part}:".encode()

    def prepare(self) -> None:
        """Makes room for entries; before the first of them."""
        self._journals.ensure()

    def entries(self) -> Iterator[bytes]:
        """What was written, the oldest first."""
        for entry in self._journals.entries(self._job):
            if entry.startswith(self._mark):
                yield entry.removeprefix(self._mark)

    def written_with(self, entry: Callable[[list[RecordedCapture]], bytes]) -> RecordExtension:
        """Writes an entry in the transaction that records a batch of looks; it may be made more than once."""

        def extend(cursor: Cursor, recorded: list[RecordedCapture]) -> None:
            self._journals.append(cursor, self._job, self._mark + entry(recorded))

        return extend


class JobControl:
    """Pause, resume and delete; each is durable when it returns, and allowed to the owner of the job and owners of
    the archive.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._queue = JobQueue(archive)
        self._jobs = Jobs(archive.catalog.database)
        self._stored = StoredQueries(archive.catalog.database)
        self._journals = JobJournals(archive.catalog.database)

    def pause(self, number: int, requester: Requester) -> JobRow:
        """A waiting job is paused at once, a running one within seconds; it stays so until it is resumed."""
        job = self._changeable(number, requester, "pause")
        if job.state in ENDED:
            raise UsageError(f"job {number} is already {job.state}; there is nothing to pause")
        with self._archive.catalog.transaction() as cursor:
            self._jobs.pause(cursor, number)
        return self._queue.show(number, requester)

    def resume(self, number: int, requester: Requester) -> JobRow:
        """A paused job waits for its turn again; so does one that failed or was cancelled."""
        job = self._changeable(number, requester, "resume")
        if job.state == DONE:
            raise UsageError(f"job {number} is done; refresh it to run it again")
        with self._archive.catalog.transaction() as cursor:
            most = self._archive.settings.jobs.queued
            if job.state != QUEUED and self._jobs.queued_of(cursor, job.owner) >= most:
                raise QueueFull(f"'{job.owner}' has {most} jobs in the queue; wait, or cancel some (jobs.queued)")
            self._jobs.resume(cursor, number)
        return self._queue.show(number, requester)

    def delete(self, number: int, requester: Requester) -> JobRow:
        """Removes a job with its result, log, journal and files; what it recorded stays. Answers what it was."""
        job = self._changeable(number, requester, "delete")
        if job.state not in (*ENDED, PAUSED):
            raise UsageError(f"job {number} is {job.state}; cancel it first")
        with self._archive.catalog.transaction() as cursor:
            if not self._jobs.delete(cursor, number, to_millis(self._archive.clock())):
                raise UsageError(f"job {number} was started again meanwhile; cancel it first")
            self._journals.forget(cursor, [number])
            if job.stored is not None:
                self._stored.lose_answer(cursor, number)
        shutil.rmtree(job_folder(self._archive, number), ignore_errors=True)
        return job

    def _changeable(self, number: int, requester: Requester, what: str) -> JobRow:
        job = self._queue.show(number, requester)
        if not requester.may_change(job.owner):
            raise Refused(f"job {number} belongs to '{job.owner}'; only they or an owner may {what} it")
        return job
