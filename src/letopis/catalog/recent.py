"""What happened lately, for overviews and feeds."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from letopis.catalog.database import Database
from letopis.model import from_millis


class RecentVersion(NamedTuple):
    """A version as a list shows it; `id` rises in the order of recording."""

    id: int
    url: str
    title: str
    number: int
    time: datetime
    meaningful: bool | None


class HostRow(NamedTuple):
    """A host and how many of its pages have been looked at."""

    name: str
    pages: int


class Recent:
    """The end of the log of observations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def changes(self, limit: int, before: int | None = None) -> list[RecentVersion]:
        """The latest versions of all URLs, newest first; `before` an id goes further back."""
        rows = self._database.all(
            "SELECT v.id, r.url, r.title, v.number, v.time, v.meaningful FROM version v "
            "JOIN resource r ON r.id = v.resource WHERE v.id < ? ORDER BY v.id DESC LIMIT ?",
            (before if before is not None else 2**62, limit),
        )
        return [
            RecentVersion(
                row[0], row[1], row[2] or "", row[3], from_millis(row[4]), None if row[5] is None else bool(row[5])
            )
            for row in rows
        ]

    def hosts(self, limit: int) -> list[HostRow]:
        """Hosts with the most pages."""
        rows = self._database.all(
            "SELECT h.name, count(*) FROM resource r JOIN host h ON h.id = r.host "
            "WHERE r.checked IS NOT NULL GROUP BY h.name ORDER BY count(*) DESC, h.name LIMIT ?",
            (limit,),
        )
        return [HostRow(*row) for row in rows]
