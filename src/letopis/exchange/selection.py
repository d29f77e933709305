"""Which part of an archive is exported, and the pieces of it that can be worked out apart and put together in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from letopis.archive import Archive
from letopis.catalog import ResourceRow
from letopis.catalog.accounts import Projects
from letopis.errors import UnknownUrl
from letopis.model import Check, Outcome
from letopis.urls import host as host_of
from letopis.urls import parse_user_url
from letopis.urls import site as site_of

_NEWS = (Outcome.NEW, Outcome.CHANGED)


@dataclass(frozen=True, slots=True)
class ExportSelection:
    """Empty values select everything; several of them select what fits all."""

    site: str = ""
    since: datetime | None = None
    until: datetime | None = None
    latest: bool = False
    project: str = ""

    def resources(self, archive: Archive) -> Iterator[ResourceRow]:
        """URLs in the order in which they were first seen, so that two exports are equal.

        A site that the archive does not know is UnknownUrl, a project NotFound.
        """
        if self.project:
            return self._of_project(archive)
        if not self.site:
            return archive.catalog.resources.all()
        rows = archive.catalog.resources.of_host(site_of(self.site))
        first = next(rows, None)
        if first is None:
            raise UnknownUrl(f"nothing of {self.site} is in this archive; give another --site or none")
        return chain([first], rows)

    def _of_project(self, archive: Archive) -> Iterator[ResourceRow]:
        urls = Projects(archive.catalog.database).show(self.project).urls
        found = (archive.catalog.resources.find(parse_user_url(url)) for url in urls)
        known = {row.id: row for row in found if row is not None and row.checked is not None}
        host = site_of(self.site) if self.site else ""
        return (known[number] for number in sorted(known) if not host or host_of(known[number].url) == host)

    def checks(self, archive: Archive, url: str) -> list[Check]:
        """The checks of one URL that are meant, oldest first."""
        return self._chosen(archive.history(url))

    def replayable(self, archive: Archive, url: str) -> list[Check]:
        """The same, with the checks that brought the versions which the chosen ones found again.

        Without those, a check at the beginning of a span would refer to a page that is not there.
        """
        history = archive.history(url)
        chosen = self._chosen(history)
        own = {check.version for check in chosen if check.outcome in _NEWS}
        needed = {check.version for check in chosen if check.outcome is Outcome.UNCHANGED} - own - {None}
        if not needed:
            return chosen
        return [check for check in history if check.outcome in _NEWS and check.version in needed] + chosen

    def _chosen(self, history: list[Check]) -> list[Check]:
        chosen = [check for check in history if self._within(check.checked_at)]
        if not self.latest:
            return chosen
        return [check for check in chosen if check.outcome in _NEWS][-1:]

    def _within(self, moment: datetime) -> bool:
        return (self.since is None or moment >= self.since) and (self.until is None or moment <= self.until)


_URLS = 200
_VERSIONS = 400
"""Of one piece, about: so much fits in memory twice, on whoever works it out and on whoever writes it."""


class ExportPart(NamedTuple):
    """Some URLs whole, or a stretch of the checks of one URL; `end` None is the last stretch."""

    selected: ExportSelection
    urls: tuple[str, ...]
    start: int = 0
    end: int | None = None


def export_parts(archive: Archive, selected: ExportSelection) -> Iterator[ExportPart]:
    """The whole selection, in the order of its URLs."""
    urls: list[str] = []
    versions = 0
    for row in selected.resources(archive):
        if row.versions > _VERSIONS:
            yield from _whole(selected, urls)
            urls, versions = [], 0
            yield from _stretches(selected, row.url, row.versions)
            continue
        urls.append(row.url)
        versions += row.versions
        if versions >= _VERSIONS or len(urls) >= _URLS:
            yield ExportPart(selected, tuple(urls))
            urls, versions = [], 0
    yield from _whole(selected, urls)


def _whole(selected: ExportSelection, urls: list[str]) -> Iterator[ExportPart]:
    if urls:
        yield ExportPart(selected, tuple(urls))


def _stretches(selected: ExportSelection, url: str, versions: int) -> Iterator[ExportPart]:
    """A URL has at least as many checks as versions; what comes beyond is part of the last stretch."""
    starts = range(0, versions, _VERSIONS)
    for start in starts:
        yield ExportPart(selected, (url,), start, None if start == starts[-1] else start + _VERSIONS)
