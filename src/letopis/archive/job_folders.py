"""Files of jobs: files that a job has written, files that were uploaded for it, and the removal of old ones.

An uploaded file is complete and on disk before its job is queued: it waits under its own name in `incoming`, and
moves into the folder of the job in the transaction that queues it.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from letopis.archive.archive import Archive
from letopis.binary import fsync_file, make_private_folder, rename_durably
from letopis.catalog.jobs import JobJournals, Jobs, StoredQueries
from letopis.model import to_millis

_DAY = 86_400
"""Seconds after which nobody any more queues a file that was sent."""


def job_folder(archive: Archive, job: int) -> Path:
    """The folder for files that a job writes; it is made by the job when it needs one."""
    return archive.folder / "jobs" / str(job)


def saved_result(archive: Archive, name: str) -> Path:
    """The file with the newest result of queries that name it; of job files only the name comes from outside."""
    return archive.folder / "jobs" / "saved" / name


def job_files(archive: Archive, job: int) -> dict[str, Path]:
    """The files that a job has written, by name; those that are not whole yet have names that begin with a dot."""
    folder = job_folder(archive, job)
    whole = (file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    found = sorted(whole) if folder.is_dir() else []
    return {file.name: file for file in found}


def sent_file(folder: Path, name: str) -> Path:
    """A file that was sent for a job to work off, inside the folder of the job."""
    return folder / "sent" / name


class IncomingFile:
    """An uploaded file that belongs to no job yet."""

    def __init__(self, archive: Archive, file: Path) -> None:
        self._archive = archive
        self.file = file

    def place(self, job: int, name: str) -> None:
        """Moves it to the job that will work it off."""
        target = sent_file(job_folder(self._archive, job), name)
        make_private_folder(target.parent)
        rename_durably(self.file, target)


@contextmanager
def incoming_file(archive: Archive, source: Path) -> Iterator[IncomingFile]:
    """Takes a file into the archive's folder, durably; what is not placed with a job is removed in the end."""
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
    """Forgets jobs that ended longer ago than `jobs.keep_for` (or the seconds given); answers how many.

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
    """Files that were sent while the machine stopped."""
    latest = archive.clock().timestamp() - _DAY
    for file in (archive.folder / "jobs" / "incoming").glob("*"):
        with suppress(OSError):
            if file.stat().st_mtime < latest:
                file.unlink()
