"""Asking: job files are read, judged, put into the queue, kept under a name, and asked again."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

from letopis.archive import Archive
from letopis.catalog import Cursor
from letopis.catalog.jobs import QUEUED, JobRow, NewJob
from letopis.catalog.stored_queries import NewQuery, QueryRow
from letopis.errors import Busy, Refused, UsageError
from letopis.jobs.asker import Asker
from letopis.jobs.query import Query
from letopis.jobs.queue import Queue
from letopis.jobs.refreshing import first_interval

MOST_PRIORITY = 1000
"""Priorities lie between this and its negative."""
MOST_BYTES = 1024 * 1024
"""Largest job file."""

Parse = Callable[[bytes], Query]


class QueueFull(Busy):
    """Somebody has too many jobs that wait."""


class Questions(Queue):
    """A queue that can be asked; `parse` reads job files."""

    def __init__(self, archive: Archive, parse: Parse) -> None:
        super().__init__(archive)
        self._parse = parse

    def submit(self, data: bytes, asker: Asker, *, keep: bool = False) -> JobRow:
        """Puts a job file into the queue; with `keep`, or when it names a refresh, it is kept under its name too."""
        return self.submit_many([data], asker, keep=keep)[0]

    def submit_many(self, files: Sequence[bytes], asker: Asker, *, keep: bool = False) -> list[JobRow]:
        """Puts job files into the queue, all or none of them."""
        queries = [self._read(data, asker) for data in files]
        every = [first_interval(query.refresh, self._bounds) for query in queries]
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

    def _read(self, data: bytes, asker: Asker) -> Query:
        if len(data) > MOST_BYTES:
            raise UsageError(f"a job file has at most {MOST_BYTES} bytes; split this one")
        query = self._parse(data)
        if not -MOST_PRIORITY <= query.priority <= MOST_PRIORITY:
            raise UsageError(f"priority='{query.priority}' is out of bounds; use -{MOST_PRIORITY} to {MOST_PRIORITY}")
        if asker.mask & query.permission != query.permission:
            raise Refused(f"'{asker.name}' may not ask with permission='{query.permission}'; ask an owner")
        return query

    def _make_room(self, cursor: Cursor, asker: Asker, more: int) -> None:
        most = self._archive.settings.jobs.queued
        if self._jobs.queued_of(cursor, asker.name) + more > most:
            raise QueueFull(f"'{asker.name}' has {most} jobs in the queue; wait, or cancel some (jobs.queued)")

    def _add(self, cursor: Cursor, query: Query, asker: Asker, stored: int | None) -> int:
        if stored is not None:
            self._stored.begun(cursor, stored)
        return self._jobs.add(
            cursor,
            NewJob(
                stored, query.package, query.name, asker.name, asker.origin, int(asker.system), query.priority, 0,
                query.permission, self._now(), query.xml,
            ),
        )  # fmt: skip

    def refresh(self, what: int | str, asker: Asker) -> JobRow:
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

    def _again(self, stored: QueryRow, asker: Asker) -> JobRow:
        query = self._parse(self._stored.xml(stored.id))
        with self._archive.catalog.transaction() as cursor:
            number = self._jobs.under_way(cursor, stored.id)
            if number is not None:
                self._jobs.ask(cursor, number)
            else:
                self._make_room(cursor, asker, 1)
                number = self._add(cursor, query, asker, stored.id)
        return self.show(number, asker)

    def keep(self, data: bytes, asker: Asker) -> QueryRow:
        """Keeps a question under its name without asking it now."""
        query = self._read(data, asker)
        every = first_interval(query.refresh, self._bounds)
        self._ensure()
        with self._archive.catalog.transaction() as cursor:
            number = self._keep(cursor, query, asker, every)
            self._stored.answered(cursor, number, None, self._now())
        return self.favourite(kept_name(query), asker)

    def _keep(self, cursor: Cursor, query: Query, asker: Asker, every: int) -> int:
        return self._stored.keep(
            cursor,
            NewQuery(
                asker.name, kept_name(query), query.package, asker.origin, int(asker.system), query.priority,
                query.permission, query.refresh, self._now(), every, query.xml,
            ),
        )  # fmt: skip


def kept_name(query: Query) -> str:
    """The name under which a question is kept; one that names none gets the same each time it is sent."""
    return query.name or f"{query.package}-{zlib.crc32(query.xml):08x}"
