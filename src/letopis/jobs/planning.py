"""Kept questions whose time has come are put into the queue, behind those that people ask for."""

from __future__ import annotations

from letopis.archive import Archive
from letopis.catalog import Cursor
from letopis.catalog.jobs import Jobs, NewJob
from letopis.catalog.stored_queries import QueryRow, StoredQueries
from letopis.jobs.query import USE_DRIVEN
from letopis.jobs.refreshing import Bounds, use_interval, weight_now
from letopis.model import to_millis

_AT_ONCE = 100


def plan_refreshes(archive: Archive) -> int:
    """Queues what is due, once each, however many processes plan; answers how many."""
    now, bounds = to_millis(archive.clock()), Bounds.of(archive.settings.jobs)
    database = archive.catalog.database
    jobs, stored = Jobs(database), StoredQueries(database)
    count = 0
    for row in stored.due(now, _AT_ONCE):
        xml = stored.xml(row.id)
        with archive.catalog.transaction() as cursor:
            if stored.claim_due(cursor, row.id, now) and jobs.under_way(cursor, row.id) is None:
                _rate(cursor, stored, row, now, bounds)
                jobs.add(cursor, _job(row, now, xml))
                count += 1
    return count


def _rate(cursor: Cursor, stored: StoredQueries, row: QueryRow, now: int, bounds: Bounds) -> None:
    """Looks that grow old count less: the interval grows again when nobody looks."""
    if row.refresh == USE_DRIVEN:
        weight = weight_now(row.weight, now - row.used)
        stored.used(cursor, row._replace(weight=weight, used=now, every=use_interval(weight, bounds), due=None))


def _job(row: QueryRow, now: int, xml: bytes) -> NewJob:
    return NewJob(
        stored=row.id,
        package=row.package,
        name=row.name,
        owner=row.owner,
        origin=row.origin,
        system=row.system,
        priority=row.priority,
        automatic=1,
        permission=row.permission,
        submitted=now,
        xml=xml,
    )
