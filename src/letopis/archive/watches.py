"""What monitoring stores in the record: watches, the defaults of their tags, their alerts and deliveries, and saved
searches.

`watches_of` gives access to the watches of an archive; each change is one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from letopis.archive.archive import Archive, of_archive
from letopis.archive.details import CheckDetails
from letopis.catalog import ResourceRow
from letopis.catalog.activity import Activity
from letopis.catalog.saved_searches import CLAIM_MILLIS, FoundResult, SavedLook, SavedSearches, SavedSearchRow
from letopis.catalog.watches import (
    FOUND,
    NEVER,
    TEST,
    AlertRow,
    DeliveryRow,
    JudgedWatch,
    NewAlert,
    UndeliveredAlerts,
    Watches,
    WatchRow,
    saved_key,
    stored_json,
    watch_key,
)
from letopis.lazy import lazy
from letopis.model import Check, from_millis
from letopis.model.page import NOT_JUDGED
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    from letopis.archive import verdicts
else:
    verdicts = lazy("letopis.archive.verdicts")

__all__ = [
    "CLAIM_MILLIS", "FOUND", "NEVER", "TEST", "AlertRow", "DeliveryRow", "FoundResult", "JudgedWatch",
    "LatestChange", "NewAlert", "SavedLook", "SavedSearchRow", "UndeliveredAlerts", "WatchRow", "WatchedPage",
    "saved_key", "saved_searches_of", "stored_json", "watch_key", "watched_pages", "watches_of",
]  # fmt: skip


watches_of = of_archive(Watches)
"""Its watches, the defaults of their tags, their alerts, and the outbox of notifications."""
saved_searches_of = of_archive(SavedSearches)
"""Its saved searches, and what each has found."""


class LatestChange(NamedTuple):
    """The newest version of a page at a glance; a changed block is "added p: its text"."""

    url: str
    time: datetime
    number: int
    meaningful: bool | None
    blocks: tuple[str, ...]
    reason: str


class WatchedPage(NamedTuple):
    """What the record knows about a page in a list of watches; empty for one that was never checked."""

    title: str = ""
    last: Check | None = None
    change: LatestChange | None = None


def watched_pages(archive: Archive, urls: Iterable[str]) -> list[WatchedPage]:
    """Title, last check and newest version of pages, in their order."""
    found = [archive.catalog.resources.find(url) for url in urls]
    newest = filter(None, (_latest_change(archive, row) for row in found if row is not None))
    changes = {change.url: change for change in verdicts.judged(archive, newest)}
    title, last = Activity(archive.catalog.database).title, archive.answers.last_check
    return [WatchedPage(title(row.id), last(row.url), changes.get(row.url)) if row else WatchedPage() for row in found]


def _latest_change(archive: Archive, row: ResourceRow) -> LatestChange | None:
    version = archive.catalog.versions.by_id(row.newest) if row.newest is not None else None
    if version is None:
        return None
    known = None if version.meaningful is None else bool(version.meaningful)
    unknown = CheckDetails(reason=NOT_JUDGED if version.number else "")
    details = unknown if known is None else CheckDetails.unpack(version.extra)
    return LatestChange(row.url, from_millis(version.time), version.number, known, details.blocks, details.reason)
