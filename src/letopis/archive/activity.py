"""What happened to the pages of an archive: counts and lists by day, page and host, the newest versions, and the log
of versions as each client follows it from its own position.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from letopis.archive.archive import Archive, of_archive
from letopis.archive.details import CheckDetails
from letopis.archive.records import digest_text
from letopis.catalog import CatalogTotals, ResourceRow
from letopis.catalog.activity import (
    DAY,
    HOUR,
    Activity,
    ChangeRow,
    HostContents,
    HourRow,
    LatestVersion,
    LatestVersions,
    MethodRow,
    PageRow,
    StoredContents,
)
from letopis.catalog.catalog import count_totals
from letopis.catalog.schema import partition_tables
from letopis.catalog.version_log import ChangeClients, HostPages, NewVersion, RecentVersion
from letopis.lazy import lazy
from letopis.model import from_millis, to_millis
from letopis.model.page import NOT_JUDGED
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    from letopis.archive import verdicts
else:
    verdicts = lazy("letopis.archive.verdicts")

__all__ = [
    "DAY", "HOUR", "Activity", "ChangeRow", "HostContents", "HourRow", "LatestVersion", "LatestVersions",
    "LoggedChange", "MethodRow", "PageRow", "StoredContents", "acknowledge_changes", "activity_of", "busiest_hosts",
    "catalogue_bytes", "change_position", "changes_since", "find_page", "is_checked", "latest_versions_of",
    "newest_change", "recent_versions", "spread_tables", "stored_at_once",
]  # fmt: skip


activity_of = of_archive(Activity)
"""Counts and lists by day, page and host."""


@contextmanager
def stored_at_once(archive: Archive) -> Iterator[tuple[CatalogTotals, StoredContents]]:
    """Totals and what contents take, all of one moment, however much is recorded meanwhile."""
    with archive.catalog.database.snapshot() as moment:
        yield count_totals(moment), StoredContents(moment)


def latest_versions_of(archive: Archive) -> LatestVersions:
    """The newest versions of pages, as far as `change.count` calls them changes."""
    return LatestVersions(archive.catalog.database, meaningful=archive.settings.change.count != "bytes")


def recent_versions(archive: Archive, limit: int, before: int | None = None) -> list[RecentVersion]:
    """The latest versions of all pages, newest first; `before` an id goes further back."""
    return list(verdicts.judged(archive, archive.catalog.recent.changes(limit, before)))


def busiest_hosts(archive: Archive, limit: int) -> list[HostPages]:
    """Hosts with the most pages."""
    return archive.catalog.recent.hosts(limit)


def find_page(archive: Archive, url: str) -> ResourceRow | None:
    """What is known of a URL, checked or only planned; None if nothing is."""
    return archive.catalog.resources.find(url)


def is_checked(archive: Archive, url: str) -> bool:
    """Whether a URL was ever checked."""
    row = find_page(archive, url)
    return row is not None and row.checked is not None


def catalogue_bytes(archive: Archive) -> int:
    """What the catalogue takes on disk."""
    return archive.catalog.bytes()


def spread_tables(archive: Archive) -> list[str]:
    """Brings the tables to `database.partitions`; returns which of them were rewritten."""
    wanted, database = archive.settings.database.partitions, archive.catalog.database
    if wanted == 1 and database.dialect.name != "postgresql":
        return []
    return partition_tables(database, wanted)


class LoggedChange(NamedTuple):
    """A version as followers of the log see it; `id` increases in the order of recording."""

    id: int
    url: str
    title: str
    number: int
    time: datetime
    meaningful: bool | None
    digest: str
    score: float | None
    reason: str

    @property
    def verdict(self) -> str:
        """In one word: new, changed, or noise."""
        return "new" if not self.number else "noise" if self.meaningful is False else "changed"


def changes_since(archive: Archive, after: int, limit: int) -> list[LoggedChange]:
    """The versions recorded after an id, in the order of recording."""
    rows = map(_logged_change, ChangeClients(archive.catalog.database).since(after, limit))
    return list(verdicts.judged(archive, rows))


def _logged_change(row: NewVersion) -> LoggedChange:
    judged = None if row.meaningful is None else bool(row.meaningful)
    unknown = CheckDetails(reason=NOT_JUDGED if row.number else "")
    details = CheckDetails.unpack(row.extra) if judged is not None else unknown
    return LoggedChange(
        row.id, row.url, row.title or "", row.number, from_millis(row.time), judged, digest_text(row.sha1),
        details.score, details.reason,
    )  # fmt: skip


def newest_change(archive: Archive) -> int:
    """The id of the version recorded last; 0 in an empty archive."""
    return ChangeClients(archive.catalog.database).newest()


def change_position(archive: Archive, client: str) -> int:
    """The id of the last version that a client has acknowledged; 0 for a new one."""
    return ChangeClients(archive.catalog.database).cursor(client)


def acknowledge_changes(archive: Archive, client: str, version: int) -> int:
    """Moves a client forward, never back and never beyond the newest version; returns its position."""
    clients = ChangeClients(archive.catalog.database)
    return clients.acknowledge(client, min(version, clients.newest()), to_millis(archive.clock()))
