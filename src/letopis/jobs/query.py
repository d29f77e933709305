"""A job's query as a value: who asks, what for, what its steps may use, and when a kept query is run again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from letopis.archive import Archive
from letopis.catalog import Cursor
from letopis.catalog.jobs import Jobs, NewJob, StoredQueries, StoredQueryRow
from letopis.config import JobsSettings, Settings
from letopis.errors import UsageError
from letopis.fetch import Origin
from letopis.model import parse_duration, to_millis
from letopis.model.rights import OWN, READ, WRITE

REFRESH_BY_USE = "use"
"""The refresh of a question that is asked again the sooner, the more its answer is looked at."""


@dataclass(frozen=True, slots=True)
class JobQuery:
    """A job file that was read. `refresh` is empty, a duration as `1h`, or `use`; `xml` the whole file."""

    package: str
    name: str
    priority: int
    refresh: str
    permission: int
    xml: bytes


class JobProgress(Protocol):
    """Handed to the work: it tells how far it is, and asks whether it is still wanted."""

    def step(self, number: int, of: int, what: str) -> None:
        """A step begins, the first one being 1."""

    def share(self, done: float) -> None:
        """How much of the step is done, 0 to 1."""

    def log(self, line: str) -> None:
        """A line for whoever reads the log of the job."""

    def cancelled(self) -> bool:
        """Whether to stop; asked between units of work, and cheap to ask."""


@dataclass(frozen=True, slots=True)
class JobContext:
    """What the steps of one job may use. `output` is a folder for files, None when none may be written."""

    archive: Archive
    settings: Settings
    progress: JobProgress
    user: str
    private_allowed: bool
    output: Path | None
    clock: Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Requester:
    """Somebody with a name and a permission mask. `system` ones (daemons) stand behind people in the queue."""

    name: str
    mask: int
    origin: Origin
    system: bool = False

    def may_see(self, owner: str, permission: int) -> bool:
        """Whether a job or question of an owner is shown: to all whose mask holds its permission, and to the owner."""
        return self.mask & permission == permission or self.owns(owner)

    def owns(self, owner: str) -> bool:
        """Whether it is theirs."""
        return bool(self.name) and self.name == owner

    def may_change(self, owner: str) -> bool:
        """Whether they may cancel or forget it: their own, or anything for an owner of the archive."""
        return self.owns(owner) or bool(self.mask & OWN)


COMMAND_LINE = Requester("command line", READ | WRITE | OWN, "cli")
"""Whoever runs the archive. No account can have this name."""

USE_HALF_LIFE = 7 * 86_400_000
"""Milliseconds after which a look at an answer counts half."""
SHORTEST_REFRESH = 60_000
"""No question asks itself more often than once a minute."""
_LONGEST_REFRESH = 10 * 365 * 86_400_000


@dataclass(frozen=True, slots=True)
class RefreshBounds:
    """Shortest and longest interval of a use-driven refresh, in milliseconds."""

    least: int
    most: int

    @classmethod
    def of(cls, settings: JobsSettings) -> RefreshBounds:
        """As the settings have it."""
        return cls(round(settings.refresh_min * 1000), round(settings.refresh_max * 1000))


def first_refresh_interval(refresh: str, bounds: RefreshBounds) -> int:
    """Milliseconds until a new question is asked again; 0 for never. UsageError for what is no interval."""
    if not refresh:
        return 0
    if refresh == REFRESH_BY_USE:
        return bounds.most
    every = parse_duration(refresh) * 1000
    if not 0 < every <= _LONGEST_REFRESH:
        raise UsageError(f"refresh='{refresh[:40]}' is not an interval; write 10m, 1h, 7d or 'use'")
    return max(SHORTEST_REFRESH, round(every))


def decayed_use_weight(weight: float, since: int) -> float:
    """How much earlier looks still count, some milliseconds later."""
    return weight * math.exp2(-max(0, since) / USE_HALF_LIFE)


def refresh_interval_by_use(weight: float, bounds: RefreshBounds) -> int:
    """About one refresh a look: the mean time between the looks of late, within the bounds."""
    if weight <= 0:
        return bounds.most
    between = USE_HALF_LIFE / (weight * math.log(2))
    return round(min(max(between, bounds.least), bounds.most))


def after_use(row: StoredQueryRow, now: int, bounds: RefreshBounds) -> StoredQueryRow:
    """The question after somebody looked at its answer; a use-driven one may become due sooner."""
    weight = decayed_use_weight(row.weight, now - row.used) + 1
    seen = row._replace(uses=row.uses + 1, weight=weight, used=now)
    if row.refresh != REFRESH_BY_USE:
        return seen
    every = refresh_interval_by_use(weight, bounds)
    due = None if row.due is None else max(now, row.due - row.every + every)
    return seen._replace(every=every, due=due)


_MAX_REFRESHES = 100


def enqueue_due_refreshes(archive: Archive) -> int:
    """Queues what is due, once each, however many processes plan; answers how many."""
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
    """Looks that grow old count less: the interval grows again when nobody looks."""
    if row.refresh == REFRESH_BY_USE:
        weight = decayed_use_weight(row.weight, now - row.used)
        stored.used(
            cursor, row._replace(weight=weight, used=now, every=refresh_interval_by_use(weight, bounds), due=None)
        )


def _refresh_job(row: StoredQueryRow, now: int, xml: bytes) -> NewJob:
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
