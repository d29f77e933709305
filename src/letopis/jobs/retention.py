"""The cleaner: ended jobs, their results and files go when they are old."""

from __future__ import annotations

import shutil
from pathlib import Path

from letopis.archive import Archive
from letopis.catalog.jobs import Jobs
from letopis.catalog.stored_queries import StoredQueries
from letopis.errors import NotFound
from letopis.model import to_millis


def files_of(archive: Archive, job: int) -> Path:
    """The folder for files that a job writes; it is made by the job when it needs one."""
    return archive.folder / "jobs" / str(job)


def file_of(archive: Archive, job: int, name: str) -> Path:
    """A file that a job has written; NotFound when there is none of this name."""
    if name not in file_names(archive, job):
        raise NotFound(f"job {job} has written no file '{name[:70]}'")
    return files_of(archive, job) / name


def file_names(archive: Archive, job: int) -> list[str]:
    """The names of the files that a job has written."""
    folder = files_of(archive, job)
    return sorted(file.name for file in folder.iterdir() if file.is_file()) if folder.is_dir() else []


def clean(archive: Archive, older_than: float | None = None) -> int:
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
        shutil.rmtree(files_of(archive, job), ignore_errors=True)
    return len(gone)
