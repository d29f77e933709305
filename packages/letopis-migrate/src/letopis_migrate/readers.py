"""The readers that Letopis finds by entry points: which tool wrote a source, what it has kept, what it watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from letopis.errors import UsageError
from letopis.exchange.sources import FileReader, ImportedCapture, ImportedWatch, ImportReport, SourceHints
from letopis_migrate.changedetection import changedetection_captures, changedetection_watches, is_changedetection
from letopis_migrate.folders import URL_LIST, date_in_path, dated_captures
from letopis_migrate.git_history import git_captures, is_repository
from letopis_migrate.mirrors import httrack_captures, is_httrack, is_wget_mirror, wget_captures
from letopis_migrate.urlwatch import is_job_list, is_urlwatch, urlwatch_captures, urlwatch_watches
from letopis_migrate.watch_lists import distill_watches, is_distill, is_visualping, visualping_watches

_LOOKED_AT = 10_000

IsRecorded = Callable[[str], bool]
CaptureReader = Callable[[Path, SourceHints, ImportReport, IsRecorded], Iterator[ImportedCapture]]
WatchReader = Callable[[Path, SourceHints], Iterator[ImportedWatch]]


def _no_watches(source: Path, hints: SourceHints) -> Iterator[ImportedWatch]:
    raise UsageError(f"{source} has no watches; import it without them")


@dataclass(frozen=True, slots=True)
class FolderReader:
    """A reader of folders."""

    kind: str
    rank: int
    fits: Callable[[Path], bool]
    read: CaptureReader
    read_watches: WatchReader = _no_watches
    with_warcs: bool = False

    def recognises(self, source: Path) -> bool:
        """Whether a folder is one of this tool."""
        return source.is_dir() and self.fits(source)

    def lists_only(self, source: Path) -> bool:
        """They all keep what they saw."""
        return False

    def captures(
        self, source: Path, hints: SourceHints, report: ImportReport, is_recorded: IsRecorded
    ) -> Iterator[ImportedCapture]:
        """What the tool has kept."""
        return self.read(self._folder(source), hints, report, is_recorded)

    def watches(self, source: Path, hints: SourceHints) -> Iterator[ImportedWatch]:
        """The pages that the tool watches."""
        return self.read_watches(self._folder(source), hints)

    def _folder(self, source: Path) -> Path:
        if not source.is_dir():
            raise UsageError(f"{source} is not a folder; give the one that {self.kind} wrote")
        return source


class UrlwatchReader:
    """A database of urlwatch, the folder that holds one, or its list of jobs alone."""

    kind = "urlwatch"
    rank = 30
    with_warcs = False

    def recognises(self, source: Path) -> bool:
        """Whether a file is such a database or list, or a folder has a database."""
        if source.is_dir():
            return urlwatch_database_in(source) is not None
        return is_urlwatch(source) or is_job_list(source)

    def lists_only(self, source: Path) -> bool:
        """Whether it is the list of jobs alone."""
        return not source.is_dir() and is_job_list(source)

    def captures(
        self, source: Path, hints: SourceHints, report: ImportReport, is_recorded: IsRecorded
    ) -> Iterator[ImportedCapture]:
        """All snapshots, oldest first."""
        return urlwatch_captures(_database(source), hints, report)

    def watches(self, source: Path, hints: SourceHints) -> Iterator[ImportedWatch]:
        """A watch for each job that has a web address."""
        if self.lists_only(source):
            return urlwatch_watches(source, SourceHints(hints.url, hints.urls or source))
        return urlwatch_watches(_database(source), hints)


def urlwatch_database_in(folder: Path) -> Path | None:
    """The database of urlwatch in its folder."""
    return next((file for file in sorted(folder.glob("*.db")) if is_urlwatch(file)), None)


def _database(source: Path) -> Path:
    found = urlwatch_database_in(source) if source.is_dir() else source
    if found is None:
        raise UsageError(f"{source} holds no database of urlwatch; give its cache.db")
    return found


def _has_dates(folder: Path) -> bool:
    if (folder / URL_LIST).is_file():
        return True
    for count, file in enumerate(folder.rglob("*")):
        if count > _LOOKED_AT:
            return False
        if date_in_path(str(file.relative_to(folder))) and file.is_file():
            return True
    return False


def _changedetection(
    source: Path, hints: SourceHints, report: ImportReport, is_recorded: IsRecorded
) -> Iterator[ImportedCapture]:
    return changedetection_captures(source, report)


def _without_record(read: Callable[[Path, SourceHints, ImportReport], Iterator[ImportedCapture]]) -> CaptureReader:
    return lambda source, hints, report, is_recorded: read(source, hints, report)


HTTRACK = FolderReader("httrack", 10, is_httrack, _without_record(httrack_captures))
CHANGEDETECTION = FolderReader(
    "changedetection", 20, is_changedetection, _changedetection, lambda source, hints: changedetection_watches(source)
)
URLWATCH = UrlwatchReader()
GIT = FolderReader("git", 40, is_repository, _without_record(git_captures))
WGET = FolderReader("wget", 50, is_wget_mirror, wget_captures, with_warcs=True)
DISTILL = FileReader("distill", 31, is_distill, read_watches=distill_watches)
VISUALPING = FileReader("visualping", 32, is_visualping, read_watches=visualping_watches)
DATED = FolderReader("dated", 70, _has_dates, _without_record(dated_captures))
