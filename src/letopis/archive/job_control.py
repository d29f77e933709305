"""Cancelling, pausing, resuming and deleting jobs; the journals with which a crawl continues where it was; files of
jobs.

Order of writes: what a crawl fetched and the entry in its journal are one transaction, so a run that is interrupted
at any moment, by a pause, a restart or `kill -9`, continues without requesting again what is recorded. A deleted job
loses its rows in one transaction, and its files afterwards; the cleaner removes files that a crash left behind.

An uploaded file is complete and on disk before its job is queued: it waits under its own name in `incoming`, and moves
into the folder of the job in the transaction that queues it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from letopis.archive.archive import Archive
from letopis.archive.jobs import ENDED, JobQueue, JobRow, Requester
from letopis.archive.page_memory import RecordExtension
from letopis.archive.records import RecordedCapture
from letopis.binary import fsync_file, make_private_folder, rename_durably
from letopis.catalog.database import Cursor
from letopis.catalog.jobs import DONE, PAUSED, QUEUED, JobJournals, Jobs, StoredQueries
from letopis.errors import Refused, UsageError
from letopis.lazy import lazy
from letopis.model import to_millis

if TYPE_CHECKING:
    import shutil
else:
    shutil = lazy("shutil")


class CrawlJournal:
    """What one of the crawls of a job has done so far; empty for a new one."""

    def __init__(self, archive: Archive, job: int, part: int = 1) -> None:
        self._journals = JobJournals(archive.catalog.database)
        self._job = job
        self._mark = f"{part}:".encode()

    def prepare(self) -> None:
        """Prepares for entries; called before the first."""
        self._journals.ensure()

    def entries(self) -> Iterator[bytes]:
        """What was written, oldest first."""
        for entry in self._journals.entries(self._job):
            if entry.startswith(self._mark):
                yield entry.removeprefix(self._mark)

    def written_with(self, entry: Callable[[list[RecordedCapture]], bytes]) -> RecordExtension:
        """Writes an entry in the transaction that records a batch of checks; it may be created more than once."""

        def extend(cursor: Cursor, recorded: list[RecordedCapture]) -> None:
            self._journals.append(cursor, self._job, self._mark + entry(recorded))

        return extend


class JobControl:
    """Cancel, pause, resume and delete; each is durable when it returns, and allowed to the owner of the job and owners
    of the archive.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._queue = JobQueue(archive)
        self._jobs = Jobs(archive.catalog.database)
        self._stored = StoredQueries(archive.catalog.database)
        self._journals = JobJournals(archive.catalog.database)

    def cancel(self, number: int, requester: Requester) -> JobRow:
        """Cancels a waiting job at once, a running one within seconds."""
        job = self._changeable(number, requester, "cancel")
        if job.state in ENDED:
            raise UsageError(f"job {number} is already {job.state}; there is nothing to cancel")
        now = to_millis(self._archive.clock())
        with self._archive.catalog.transaction() as cursor:
            self._jobs.cancel(cursor, number, now)
            if job.stored is not None and job.state in (QUEUED, PAUSED):
                self._stored.answered(cursor, job.stored, None, now)
        return self._queue.show(number, requester)

    def pause(self, number: int, requester: Requester) -> JobRow:
        """A waiting job is paused at once, a running one within seconds; it stays so until it is resumed."""
        job = self._changeable(number, requester, "pause")
        if job.state in ENDED:
            raise UsageError(f"job {number} is already {job.state}; there is nothing to pause")
        with self._archive.catalog.transaction() as cursor:
            self._jobs.pause(cursor, number)
        return self._queue.show(number, requester)

    def resume(self, number: int, requester: Requester) -> JobRow:
        """Queues a paused job again, or one that failed or was cancelled."""
        job = self._changeable(number, requester, "resume")
        if job.state == DONE:
            raise UsageError(f"job {number} is done; refresh it to run it again")
        with self._archive.catalog.transaction() as cursor:
            if job.state != QUEUED:
                self._queue.require_room(cursor, job.owner)
            self._jobs.resume(cursor, number)
        return self._queue.show(number, requester)

    def delete(self, number: int, requester: Requester) -> JobRow:
        """Removes a job with its result, log, journal and files; what it recorded stays. Returns the job."""
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


_DAY = 86_400
"""Seconds after which an uploaded file that was not queued is removed."""


def job_folder(archive: Archive, job: int) -> Path:
    """The folder for files that a job writes; it is made by the job when it needs one."""
    return archive.folder / "jobs" / str(job)


def saved_result(archive: Archive, name: str) -> Path:
    """The file with the newest result of queries that name it; only the name comes from the job file."""
    return archive.folder / "jobs" / "saved" / name


def job_files(archive: Archive, job: int) -> dict[str, Path]:
    """The files that a job has written, by name; incomplete ones have names that begin with a dot."""
    folder = job_folder(archive, job)
    whole = (file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    found = sorted(whole) if folder.is_dir() else []
    return {file.name: file for file in found}


def sent_file(folder: Path, name: str) -> Path:
    """A file that was uploaded for a job, inside the folder of the job."""
    return folder / "sent" / name


class IncomingFile:
    """A file that was uploaded and belongs to no job yet."""

    def __init__(self, archive: Archive, file: Path) -> None:
        self._archive = archive
        self.file = file

    def place(self, job: int, name: str) -> None:
        """Moves it to the folder of its job."""
        target = sent_file(job_folder(self._archive, job), name)
        make_private_folder(target.parent)
        rename_durably(self.file, target)


@contextmanager
def incoming_file(archive: Archive, source: Path) -> Iterator[IncomingFile]:
    """Stores a file in the folder of the archive, durably; it is removed later unless it is moved to a job."""
    folder = archive.folder / "jobs" / "incoming"
    make_private_folder(folder)
    file = folder / uuid.uuid4().hex
    try:
        shutil.move(source, file)
        with file.open("rb+") as moved:
            fsync_file(moved)
        yield IncomingFile(archive, file)
    finally:
        file.unlink(missing_ok=True)


def remove_old_jobs(archive: Archive, older_than: float | None = None) -> int:
    """Removes jobs that ended longer ago than `jobs.keep_for` (or the seconds given); returns how many.

    The last good result of a stored query stays.
    """
    _remove_left_files(archive)
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
        JobJournals(database).forget(cursor, gone)
    for job in gone:
        shutil.rmtree(job_folder(archive, job), ignore_errors=True)
    return len(gone)


def _remove_left_files(archive: Archive) -> None:
    """Removes uploaded files that belong to no job, for example after a crash of the machine."""
    latest = archive.clock().timestamp() - _DAY
    for file in (archive.folder / "jobs" / "incoming").glob("*"):
        with suppress(OSError):
            if file.stat().st_mtime < latest:
                file.unlink()
