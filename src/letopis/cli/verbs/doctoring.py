"""The verb that looks at the installation itself: doctor."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pycurl

from letopis.archive import Archive
from letopis.cli.context import Given, verb
from letopis.config import Settings
from letopis.errors import LetopisError, NotReady

_LEAST_FREE = 200 * 1024 * 1024
_EXTRAS = {
    "browser": "playwright", "notify": "apprise", "parquet": "pyarrow", "postgres": "psycopg",
    "docs-formats": "pypdfium2",
}  # fmt: skip


class Finding(NamedTuple):
    """One thing that was looked at. `well` None: not needed, worth knowing."""

    name: str
    well: bool | None
    said: str


@verb("doctor", "letopis doctor", "letopis doctor --json")
def doctor_verb(given: Given) -> None:
    """Say whether this installation is sound: Python, libraries, settings, archive, disk."""
    ill = 0
    for finding in _findings(given.settings()):
        ill += finding.well is False
        mark = {True: "ok", False: "WRONG", None: "-"}[finding.well]
        given.output.row(finding._asdict(), f"{mark:6} {finding.name:14} {finding.said}")
    if ill:
        raise NotReady(f"{ill} things are wrong; mend them and ask again")


def _findings(settings: Settings) -> Iterator[Finding]:
    folder = Path(settings.archive.path)
    for look in (
        _python,
        _sqlite,
        _libcurl,
        lambda: _folder(folder),
        lambda: _disk(folder),
        lambda: _catalogue(settings),
    ):
        yield look()
    for extra, module in _EXTRAS.items():
        found = find_spec(module) is not None
        yield Finding(extra, True if found else None, "installed" if found else f"pip install letopis[{extra}]")


def _python() -> Finding:
    return Finding("python", sys.version_info >= (3, 11), sys.version.split()[0])


def _sqlite() -> Finding:
    return Finding("sqlite", sqlite3.sqlite_version_info >= (3, 35), sqlite3.sqlite_version)


def _libcurl() -> Finding:
    told = pycurl.version.split()
    spoken = "https" in pycurl.version_info()[8]
    return Finding("libcurl", spoken, " ".join(told[:2]) + (", https" if spoken else ", without https"))


def _existing(folder: Path) -> Path:
    return next(path for path in [folder.absolute(), *folder.absolute().parents] if path.exists())


def _folder(folder: Path) -> Finding:
    place = _existing(folder)
    well = os.access(place, os.W_OK)
    return Finding("archive", well, f"{folder}" if well else f"{place} cannot be written; choose another --archive")


def _disk(folder: Path) -> Finding:
    free = shutil.disk_usage(_existing(folder)).free
    return Finding("disk", free > _LEAST_FREE, f"{free // 2**20} MiB free")


def _catalogue(settings: Settings) -> Finding:
    folder = Path(settings.archive.path)
    if not settings.database.url and not folder.is_dir():
        return Finding("catalogue", None, "no archive yet; 'letopis init' makes one")
    return _tried(lambda: _opened(settings))


def _opened(settings: Settings) -> str:
    with Archive.open(settings) as archive:
        return f"{archive.catalog.totals().versions} versions"


def _tried(look: Callable[[], str]) -> Finding:
    try:
        return Finding("catalogue", True, look())
    except LetopisError as error:
        return Finding("catalogue", False, str(error))
