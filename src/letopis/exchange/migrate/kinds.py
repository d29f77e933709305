"""What a source is, told by looking at it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from letopis.errors import UsageError
from letopis.exchange.migrate.changedetection import is_changedetection
from letopis.exchange.migrate.dated_files import LIST
from letopis.exchange.migrate.git_history import is_repository
from letopis.exchange.migrate.httrack import is_httrack
from letopis.exchange.migrate.naming import dated
from letopis.exchange.migrate.urlwatch import is_urlwatch
from letopis.exchange.migrate.wget import is_mirror, warcs_beside

_LOOKED_AT = 10_000


class Kind(StrEnum):
    """The words of `--kind`."""

    WARC = "warc"
    WACZ = "wacz"
    CDXJ = "cdxj"
    DATED = "dated"
    GIT = "git"
    URLWATCH = "urlwatch"
    CHANGEDETECTION = "changedetection"
    WGET = "wget"
    HTTRACK = "httrack"


def recognised(source: Path) -> Kind | None:
    """The kind of a folder or database of another tool; None for files of captures."""
    if not source.is_dir():
        return Kind.URLWATCH if is_urlwatch(source) else None
    for kind, fits in _FOLDERS.items():
        if fits(source):
            return kind
    raise UsageError(f"{source} is no folder that import knows; say what it is with --kind")


def database_in(folder: Path) -> Path | None:
    """The database of urlwatch in its folder."""
    return next((file for file in sorted(folder.glob("*.db")) if is_urlwatch(file)), None)


def _has_dates(folder: Path) -> bool:
    if (folder / LIST).is_file():
        return True
    for count, file in enumerate(folder.rglob("*")):
        if count > _LOOKED_AT:
            return False
        if dated(str(file.relative_to(folder))) and file.is_file():
            return True
    return False


_FOLDERS = {
    Kind.HTTRACK: is_httrack,
    Kind.CHANGEDETECTION: is_changedetection,
    Kind.URLWATCH: lambda folder: database_in(folder) is not None,
    Kind.GIT: is_repository,
    Kind.WGET: is_mirror,
    Kind.WARC: lambda folder: bool(warcs_beside(folder)),
    Kind.DATED: _has_dates,
}
