"""Which part of an archive is meant: a site, a span of time, only the latest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from letopis.archive import Archive
from letopis.catalog import ResourceRow
from letopis.model import Check, Outcome
from letopis.urls import site as site_of


@dataclass(frozen=True, slots=True)
class Selected:
    """Empty values select everything."""

    site: str = ""
    since: datetime | None = None
    until: datetime | None = None
    latest: bool = False

    def resources(self, archive: Archive) -> Iterator[ResourceRow]:
        """URLs in the order in which they were first seen, so that two exports are equal."""
        if self.site:
            return archive.catalog.resources.of_host(site_of(self.site))
        return archive.catalog.resources.all()

    def checks(self, archive: Archive, url: str) -> list[Check]:
        """The checks of one URL that are meant, oldest first."""
        chosen = [check for check in archive.history(url) if self._within(check.checked_at)]
        if not self.latest:
            return chosen
        found = [check for check in chosen if check.outcome in (Outcome.NEW, Outcome.CHANGED)]
        return found[-1:]

    def _within(self, moment: datetime) -> bool:
        return (self.since is None or moment >= self.since) and (self.until is None or moment <= self.until)
