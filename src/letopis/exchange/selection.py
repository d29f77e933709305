"""Which part of an archive is exported, and the pieces of it that can be worked out apart and put together in order."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from letopis.archive import Archive
from letopis.archive.accounts import project_pages, projects_of
from letopis.archive.captures import (
    VERSION,
    CaptureList,
    ListedCapture,
    ResourceRow,
    TimeRange,
    checked_urls,
    count_checked,
    count_checks,
)
from letopis.archive.index_facts import require_site
from letopis.model import Check, Outcome, from_millis, to_millis
from letopis.tuples import NamedTuple
from letopis.urls import host as host_of
from letopis.urls import site as site_of

_NEWS = (Outcome.NEW, Outcome.CHANGED)


class ExportSelection(NamedTuple):
    """Empty values select everything; several of them select what fits all."""

    site: str = ""
    since: datetime | None = None
    until: datetime | None = None
    latest: bool = False
    project: str = ""

    def resources(self, archive: Archive) -> Iterator[ResourceRow]:
        """URLs in the order in which they were first seen, so that two exports are equal.

        A site or a project that the archive does not know is NotFound, at once.
        """
        if self.project:
            return self._of_project(archive)
        return checked_urls(archive, require_site(archive, self.site) if self.site else "")

    def _of_project(self, archive: Archive) -> Iterator[ResourceRow]:
        pages = project_pages(archive, projects_of(archive).show(self.project))
        host = site_of(self.site) if self.site else ""
        return (row for row in pages if not host or host_of(row.url) == host)

    def count_pages(self, archive: Archive) -> int:
        """About how many these are, by the catalogue alone."""
        if self.project:
            return sum(1 for _ in self._of_project(archive))
        return count_checked(archive, site_of(self.site) if self.site else "")

    def count_checks(self, archive: Archive) -> int:
        """About how many of their checks are meant, by the catalogue alone."""
        if self.latest and self.since is None and self.until is None:
            return self.count_pages(archive)
        pages = (row.id for row in self._of_project(archive)) if self.project else None
        return count_checks(archive, self._span(), site_of(self.site) if self.site else "", pages)

    def _span(self) -> TimeRange:
        given = {"since": self.since, "until": self.until}
        return TimeRange(**{name: to_millis(moment) for name, moment in given.items() if moment is not None})

    def checks(self, archive: Archive, url: str) -> list[Check]:
        """The checks of one URL that are meant, oldest first."""
        return self._chosen(archive.answers.history(url))

    def captures(self, captures: CaptureList, url: str) -> Iterator[ListedCapture]:
        """The captures of one URL that are meant, oldest first: its checks that got an answer."""
        found = captures.of_url(url, self._span())
        return _latest(found) if self.latest else found

    def replayable(self, archive: Archive, url: str) -> list[Check]:
        """The same, with the checks that brought the versions which the chosen ones found again.

        Without those, a check at the beginning of a span would refer to a page that is not there.
        """
        history = archive.answers.history(url)
        chosen = self._chosen(history)
        own = {check.version for check in chosen if check.outcome in _NEWS}
        needed = {check.version for check in chosen if check.outcome is Outcome.UNCHANGED} - own - {None}
        if not needed:
            return chosen
        return [check for check in history if check.outcome in _NEWS and check.version in needed] + chosen

    def includes(self, url: str, time: int) -> bool:
        """Whether a capture that is no check yet is meant, by its URL and its time in milliseconds."""
        if self.project or self.latest or (self.site and host_of(url) != site_of(self.site)):
            return False
        return self._within(from_millis(time))

    def _chosen(self, history: list[Check]) -> list[Check]:
        chosen = [check for check in history if self._within(check.checked_at)]
        if not self.latest:
            return chosen
        return [check for check in chosen if check.outcome in _NEWS][-1:]

    def _within(self, moment: datetime) -> bool:
        return (self.since is None or moment >= self.since) and (self.until is None or moment <= self.until)


def _latest(captures: Iterator[ListedCapture]) -> Iterator[ListedCapture]:
    """The last capture that brought new bytes."""
    newest: ListedCapture | None = None
    for capture in captures:
        if capture[8] == VERSION and (newest is None or capture[5] != newest[5]):
            newest = capture
    return iter(() if newest is None else (newest,))


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
    """The whole selection, in the order of its URLs; what the archive does not know is NotFound at once."""
    return _parts(selected, selected.resources(archive))


def _parts(selected: ExportSelection, rows: Iterator[ResourceRow]) -> Iterator[ExportPart]:
    urls: list[str] = []
    versions = 0
    for row in rows:
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
    """A URL has at least as many checks as versions; further ones are part of the last stretch."""
    starts = range(0, versions, _VERSIONS)
    for start in starts:
        yield ExportPart(selected, (url,), start, None if start == starts[-1] else start + _VERSIONS)
