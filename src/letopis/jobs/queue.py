"""The queue as people see it: jobs to look at and to cancel, and questions that are kept under a name."""

from __future__ import annotations

from dataclasses import dataclass

from letopis.archive import Archive
from letopis.catalog.job_turns import Turns
from letopis.catalog.jobs import ENDED, QUEUED, Chosen, JobRow, Jobs
from letopis.catalog.stored_queries import QueryRow, StoredQueries
from letopis.errors import NotFound, Refused, UsageError
from letopis.jobs.asker import Asker
from letopis.jobs.refreshing import Bounds, looked_at
from letopis.jobs.results import result_xml
from letopis.model import to_millis


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which jobs a list shows."""

    state: str | None = None
    package: str | None = None
    owner: str | None = None
    before: int | None = None


EVERYTHING = Wanted()


class Queue:
    """The jobs of one archive, and the questions that are kept; what is written is durable when a method returns."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._jobs = Jobs(archive.catalog.database)
        self._stored = StoredQueries(archive.catalog.database)
        self._turns = Turns(archive.catalog.database)
        self._bounds = Bounds.of(archive.settings.jobs)

    def _now(self) -> int:
        return to_millis(self._archive.clock())

    # Looking

    def listed(self, asker: Asker, wanted: Wanted = EVERYTHING, limit: int = 100) -> list[JobRow]:
        """Jobs that somebody may see, newest first."""
        self._turns.reap(self._now())
        chosen = Chosen(asker.mask, asker.name, wanted.state, wanted.package, wanted.owner, wanted.before)
        return self._jobs.listed(chosen, limit)

    def show(self, number: int, asker: Asker) -> JobRow:
        """One job; NotFound when there is none that the asker may see."""
        self._turns.reap(self._now())
        found = self._jobs.find(number)
        if found is None or not asker.may_see(found.owner, found.permission):
            raise NotFound(f"there is no job {number}; 'letopis jobs list' shows all")
        return found

    def text(self, number: int, asker: Asker) -> bytes:
        """The job file."""
        return self._jobs.xml(self.show(number, asker).id)

    def result(self, number: int, asker: Asker) -> bytes:
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
                self._stored.used(cursor, looked_at(stored, self._now(), self._bounds))

    def log(self, number: int, asker: Asker) -> str:
        """What the job has told so far."""
        return self._jobs.output(self.show(number, asker).id)[1].decode("utf-8", "replace")

    def counts(self) -> dict[str, int]:
        """How many jobs are in each state."""
        return self._jobs.counts()

    # Changing one's mind

    def cancel(self, number: int, asker: Asker) -> JobRow:
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

    def favourites(self, asker: Asker) -> list[QueryRow]:
        """Kept questions that somebody may see, by name."""
        return self._stored.listed(asker.mask, asker.name)

    def favourite(self, name: str, asker: Asker) -> QueryRow:
        """The kept question of a name, the asker's own before those of others."""
        found = self._stored.named(name, asker.mask, asker.name)
        if not found:
            raise NotFound(f"no question is kept as '{name[:70]}'; 'letopis jobs favourites' shows all")
        return found[0]

    def favourite_text(self, name: str, asker: Asker) -> bytes:
        """The job file of a kept question."""
        return self._stored.xml(self.favourite(name, asker).id)

    def forget(self, name: str, asker: Asker) -> None:
        """Keeps a question no longer, and refreshes it no longer; its answers stay until the cleaner comes."""
        found = self.favourite(name, asker)
        if not asker.may_change(found.owner):
            raise Refused(f"'{name}' belongs to '{found.owner}'; only they or an owner may remove it")
        with self._archive.catalog.transaction() as cursor:
            self._stored.forget(cursor, found.id)
