"""One reader for each kind of source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from letopis.archive import Archive
from letopis.catalog.lookup import checked
from letopis.errors import BadUrl, UsageError
from letopis.exchange.capture import Capture
from letopis.exchange.migrate.asked import Asked
from letopis.exchange.migrate.changedetection import changedetection_captures, changedetection_wishes
from letopis.exchange.migrate.dated_files import dated_captures
from letopis.exchange.migrate.git_history import git_captures
from letopis.exchange.migrate.httrack import httrack_captures
from letopis.exchange.migrate.kinds import Kind, database_in
from letopis.exchange.migrate.urlwatch import urlwatch_captures, urlwatch_wishes
from letopis.exchange.migrate.wget import warcs_beside, wget_captures
from letopis.exchange.migrate.wishes import Wish
from letopis.exchange.report import ImportReport
from letopis.exchange.taking import import_captures
from letopis.exchange.warc_in import captures
from letopis.urls import normalize


def import_kept(
    archive: Archive,
    source: Path,
    kind: Kind,
    asked: Asked,
    report: ImportReport,
    progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Takes in what another tool has kept; what was committed stays when it breaks off."""
    if not source.exists():
        raise UsageError(f"there is no {source}; give a file or folder that is there")
    if kind in (Kind.WARC, Kind.WGET) and source.is_dir():
        for warc in warcs_beside(source):
            import_captures(archive, captures(warc, report), warc.name, report, progress)
    if kind is not Kind.WARC:
        import_captures(archive, _found(archive, source, kind, asked, report), source.name, report, progress)


def _found(archive: Archive, source: Path, kind: Kind, asked: Asked, report: ImportReport) -> Iterator[Capture]:
    if kind is Kind.DATED:
        return dated_captures(_folder(source), asked, report)
    if kind is Kind.GIT:
        return git_captures(_folder(source), asked, report)
    if kind is Kind.CHANGEDETECTION:
        return changedetection_captures(_folder(source), report)
    if kind is Kind.HTTRACK:
        return httrack_captures(_folder(source), asked, report)
    if kind is Kind.WGET:
        known = _known(archive) if warcs_beside(_folder(source)) else _nothing
        return wget_captures(source, asked, report, known)
    return urlwatch_captures(_database(source), asked, report)


def standing_checks(source: Path, kind: Kind, asked: Asked) -> Iterator[Wish]:
    """The standing checks that a source names; none for those that have no such thing."""
    if kind is Kind.CHANGEDETECTION:
        return changedetection_wishes(_folder(source))
    if kind is Kind.URLWATCH:
        return urlwatch_wishes(_database(source), asked)
    raise UsageError(f"{source} has no watches; leave --watches out")


def _folder(source: Path) -> Path:
    if not source.is_dir():
        raise UsageError(f"{source} is no folder; give the one that the other tool wrote")
    return source


def _database(source: Path) -> Path:
    found = database_in(source) if source.is_dir() else source
    if found is None:
        raise UsageError(f"{source} holds no database of urlwatch; give its cache.db")
    return found


def _known(archive: Archive) -> Callable[[str], bool]:
    def known(url: str) -> bool:
        try:
            return bool(checked(archive.catalog.database, [normalize(url)]))
        except BadUrl:
            return False

    return known


def _nothing(url: str) -> bool:
    return False
