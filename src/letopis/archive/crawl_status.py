"""The state of crawling, whichever process crawls; when one page is visited next; and what the policy knows about
visits.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from letopis.archive.archive import Archive, of_archive
from letopis.catalog.activity import Activity
from letopis.catalog.queues import AGAIN, GONE, HELD, KNOWN, NEW, visit_records
from letopis.errors import UnknownUrl
from letopis.model import from_millis, to_millis
from letopis.tuples import NamedTuple

PlanState = Literal["known", "new", "again", "held", "gone"]
_STATES: dict[int, PlanState] = {KNOWN: "known", NEW: "new", AGAIN: "again", HELD: "held", GONE: "gone"}


class HostStatus(NamedTuple):
    """A host that was crawled; `failures` in a row, `crawl_delay` in seconds.

    `waiting` pages were never visited, `due` ones should be revisited; both are counted up to a thousand.
    """

    name: str
    fetched: int
    failures: int
    crawl_delay: float
    ip: str
    waiting: int
    due: int


class NextVisit(NamedTuple):
    """A page that will be revisited, and when."""

    url: str
    due: datetime


class CrawlFigures(NamedTuple):
    """Fetches and versions so far; URLs that wait for a first visit, that are revisited, and that are due now.

    `first_visits` are fetches that requested a page for the first time.
    """

    fetched: int
    first_visits: int
    versions: int
    new: int
    again: int
    due: int


def crawl_figures(archive: Archive) -> CrawlFigures:
    """The progress of all crawls."""
    activity, queues = Activity(archive.catalog.database), archive.catalog.queues
    waiting, due = queues.waiting(), queues.due_again(to_millis(archive.clock()))
    first = activity.first_visits()
    return CrawlFigures(first + activity.revisits(), first, activity.last_version(), waiting.new, waiting.again, due)


def busiest_crawl_hosts(archive: Archive, limit: int) -> list[HostStatus]:
    """Hosts by how many requests crawls sent to them."""
    rows = Activity(archive.catalog.database).busy_hosts(limit, to_millis(archive.clock()))
    return [HostStatus(*row) for row in rows]


def next_visits(archive: Archive, limit: int) -> list[NextVisit]:
    """What is revisited next."""
    return [NextVisit(url, from_millis(due)) for url, due in archive.catalog.queues.next_visits(limit)]


def ready_hosts(archive: Archive) -> int:
    """How many hosts could get requests now: they have no pause, and one of their URLs waits or is due."""
    return archive.catalog.queues.ready_hosts(to_millis(archive.clock()))


class PlannedVisit(NamedTuple):
    """What crawls plan for a page: its state, when it is due, and the record of its visits."""

    state: PlanState
    due: datetime | None
    record: bytes
    depth: int
    priority: float


def planned_visit(archive: Archive, url: str) -> PlannedVisit:
    """The plan of a page; UnknownUrl if it was never checked, stored or linked to."""
    row = archive.catalog.resources.find(url)
    if row is None:
        raise UnknownUrl(f"{url} is not in the archive; check it or crawl its site first")
    state, due, record, depth, priority = archive.catalog.queues.plan_of(row.id)
    return PlannedVisit(_STATES[state], None if due is None else from_millis(due), record, depth, priority)


def is_known_host(archive: Archive, host: str) -> bool:
    """Whether any page of a host was checked, stored or planned."""
    return archive.catalog.queues.knows_host(host)


_LONGEST_PAUSE = 25 * 3600.0
"""Seconds: a server may demand a pause of a day."""


def bring_back_visits(archive: Archive) -> int:
    """Makes pages due, and ends pauses, that only a wrong clock can have set so far ahead; returns how many pages.

    Nothing is planned further ahead than the longest interval of the settings.
    """
    settings, now = archive.settings, round(archive.clock().timestamp() * 1000)
    interval = max(settings.schedule.max, settings.schedule.interval)
    pause = max(_LONGEST_PAUSE, settings.crawl.delay, settings.crawl.delay_factor * settings.fetch.total)
    with archive.catalog.transaction() as cursor:
        archive.catalog.queues.end_pauses(cursor, now + round(pause * 1000))
        return archive.catalog.queues.bring_back(cursor, now, now + round(interval * 1000))


def policy_memory(archive: Archive) -> bytes:
    """What the revisit policy remembers of all pages; empty at the start."""
    return archive.catalog.queues.memory()


visit_samples = of_archive(visit_records)
"""The visit records of pages that are revisited: of all, or of about `most`, evenly chosen."""
