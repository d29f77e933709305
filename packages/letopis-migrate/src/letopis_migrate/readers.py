"""Which tool wrote a source, told by looking at it, and the reader of its captures and watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from letopis.archive import Archive
from letopis.catalog.versions import last_checks
from letopis.errors import BadUrl, UsageError
from letopis.exchange.captures import import_captures
from letopis.exchange.sources import ImportedCapture, ImportedWatch, ImportReport, SourceHints, SourceKind
from letopis.exchange.warc_import import warc_captures, warcs_in_folder
from letopis.urls import normalize
from letopis_migrate.changedetection import changedetection_captures, changedetection_watches, is_changedetection
from letopis_migrate.folders import URL_LIST, date_in_path, dated_captures
from letopis_migrate.git_history import git_captures, is_repository
from letopis_migrate.mirrors import httrack_captures, is_httrack, is_wget_mirror, wget_captures
from letopis_migrate.urlwatch import is_urlwatch, urlwatch_captures, urlwatch_watches

_LOOKED_AT = 10_000


def recognised_kind(source: Path) -> SourceKind | None:
    """The kind of a folder or database of another tool; None for files of captures."""
    if not source.is_dir():
        return SourceKind.URLWATCH if is_urlwatch(source) else None
    for kind, fits in _FOLDER_KINDS.items():
        if fits(source):
            return kind
    raise UsageError(f"{source} is no folder that import knows; say what it is with --kind")


def urlwatch_database_in(folder: Path) -> Path | None:
    """The database of urlwatch in its folder."""
    return next((file for file in sorted(folder.glob("*.db")) if is_urlwatch(file)), None)


def _has_dates(folder: Path) -> bool:
    if (folder / URL_LIST).is_file():
        return True
    for count, file in enumerate(folder.rglob("*")):
        if count > _LOOKED_AT:
            return False
        if date_in_path(str(file.relative_to(folder))) and file.is_file():
            return True
    return False


_FOLDER_KINDS = {
    SourceKind.HTTRACK: is_httrack,
    SourceKind.CHANGEDETECTION: is_changedetection,
    SourceKind.URLWATCH: lambda folder: urlwatch_database_in(folder) is not None,
    SourceKind.GIT: is_repository,
    SourceKind.WGET: is_wget_mirror,
    SourceKind.WARC: lambda folder: bool(warcs_in_folder(folder)),
    SourceKind.DATED: _has_dates,
}


def import_tool_source(
    archive: Archive,
    source: Path,
    kind: SourceKind,
    asked: SourceHints,
    report: ImportReport,
    progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Takes in what another tool has kept; what was committed stays when it breaks off."""
    if not source.exists():
        raise UsageError(f"there is no {source}; give a file or folder that is there")
    if kind in (SourceKind.WARC, SourceKind.WGET) and source.is_dir():
        for warc in warcs_in_folder(source):
            import_captures(archive, warc_captures(warc, report), warc.name, report, progress)
    if kind is not SourceKind.WARC:
        import_captures(archive, _found(archive, source, kind, asked, report), source.name, report, progress)


def _found(
    archive: Archive, source: Path, kind: SourceKind, asked: SourceHints, report: ImportReport
) -> Iterator[ImportedCapture]:
    if kind is SourceKind.DATED:
        return dated_captures(_folder(source), asked, report)
    if kind is SourceKind.GIT:
        return git_captures(_folder(source), asked, report)
    if kind is SourceKind.CHANGEDETECTION:
        return changedetection_captures(_folder(source), report)
    if kind is SourceKind.HTTRACK:
        return httrack_captures(_folder(source), asked, report)
    if kind is SourceKind.WGET:
        known = _is_recorded(archive) if warcs_in_folder(_folder(source)) else _nothing_recorded
        return wget_captures(source, asked, report, known)
    return urlwatch_captures(_database(source), asked, report)


def tool_watches(source: Path, kind: SourceKind, asked: SourceHints) -> Iterator[ImportedWatch]:
    """The standing checks that a source names; none for those that have no such thing."""
    if kind is SourceKind.CHANGEDETECTION:
        return changedetection_watches(_folder(source))
    if kind is SourceKind.URLWATCH:
        return urlwatch_watches(_database(source), asked)
    raise UsageError(f"{source} has no watches; leave --watches out")


def _folder(source: Path) -> Path:
    if not source.is_dir():
        raise UsageError(f"{source} is no folder; give the one that the other tool wrote")
    return source


def _database(source: Path) -> Path:
    found = urlwatch_database_in(source) if source.is_dir() else source
    if found is None:
        raise UsageError(f"{source} holds no database of urlwatch; give its cache.db")
    return found


def _is_recorded(archive: Archive) -> Callable[[str], bool]:
    def known(url: str) -> bool:
        try:
            return bool(last_checks(archive.catalog.database, [normalize(url)]))
        except BadUrl:
            return False

    return known


def _nothing_recorded(url: str) -> bool:
    return False
