"""What monitoring keeps in the record: watches, the defaults of their tags, their alerts and deliveries, and searches.

`watches_of` is the way to the watches of an archive; each of its changes is
one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from letopis.archive.archive import Archive
from letopis.archive.records import CheckDetails
from letopis.catalog import ResourceRow
from letopis.catalog.activity import Activity
from letopis.catalog.saved_searches import CLAIM_MILLIS, FoundResult, SavedLook, SavedSearches, SavedSearchRow
from letopis.catalog.watches import (
    FOUND,
    NEVER,
    AlertRow,
    DeliveryRow,
    JudgedWatch,
    NewAlert,
    UndeliveredAlerts,
    Watches,
    WatchRow,
    saved_key,
    watch_key,
)
from letopis.model import Check, from_millis
from letopis.tuples import NamedTuple

__all__ = [
    "CLAIM_MILLIS",
    "FOUND",
    "NEVER",
    "AlertRow",
    "DeliveryRow",
    "FoundResult",
    "JudgedWatch",
    "LatestChange",
    "NewAlert",
    "SavedLook",
    "SavedSearchRow",
    "SavedSearches",
    "UndeliveredAlerts",
    "WatchRow",
    "WatchedPage",
    "Watches",
    "saved_key",
    "saved_searches_of",
    "watch_key",
    "watched_pages",
    "watches_of",
]


def watches_of(archive: Archive) -> Watches:
    """Its watches, the defaults of their tags, their alerts, and the outbox of notifications."""
    return Watches(archive.catalog.database)


def saved_searches_of(archive: Archive) -> SavedSearches:
    """Its saved searches, and what each has found."""
    return SavedSearches(archive.catalog.database)


class LatestChange(NamedTuple):
    """The newest version of a page at a glance: when it came, and the first text that it brought and took."""

    time: datetime
    number: int
    added: str
    removed: str
    verdict: str
    reason: str


class WatchedPage(NamedTuple):
    """What the record says of a page in a list of watches; empty for one that was never checked."""

    title: str = ""
    last: Check | None = None
    change: LatestChange | None = None


def watched_pages(archive: Archive, urls: Iterable[str]) -> list[WatchedPage]:
    """Title, last check and newest version of pages, in their order."""
    return [_watched_page(archive, url) for url in urls]


def _watched_page(archive: Archive, url: str) -> WatchedPage:
    row = archive.catalog.resources.find(url)
    if row is None:
        return WatchedPage()
    title = Activity(archive.catalog.database).title(row.id)
    return WatchedPage(title, archive.answers.last_check(url), _latest_change(archive, row))


def _latest_change(archive: Archive, row: ResourceRow) -> LatestChange | None:
    version = archive.catalog.versions.by_id(row.newest) if row.newest is not None else None
    if version is None:
        return None
    # A changed block is "added p: its text".
    details = CheckDetails.unpack(version.extra)
    blocks = [block.partition(": ") for block in details.blocks]
    first = {head.partition(" ")[0]: text for head, _, text in reversed(blocks)}
    verdict = "noise" if version.number and version.meaningful == 0 else "changed" if version.number else "new"
    return LatestChange(
        from_millis(version.time), version.number, first.get("added", ""), first.get("removed", ""), verdict,
        details.reason,
    )  # fmt: skip
