"""Which of two waiting jobs is done first."""

from __future__ import annotations

from letopis.catalog.jobs import JobRow

Place = tuple[int, int, int, int, int]


def place(job: JobRow) -> Place:
    """Sorts the jobs of a package: user before system, higher priority, asked for before automatic, older first.

    The catalogue's `ORDER` says the same in SQL; a test holds the two together.
    """
    return job.system, -job.priority, job.automatic, job.submitted, job.id
