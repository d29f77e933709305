"""Backups: a folder that holds an archive as it was at one moment, and grows by what is new.

Order of writes: packs, which are copied once and never change; the catalogue under a new name; `backup.json`, which
names both and is replaced in one step. What it does not name is removed afterwards. A backup that is broken off
leaves the one before it whole.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from letopis.archive.archive import Archive
from letopis.archive.write_gates import is_clone
from letopis.binary import exclusive_lock, file_sha256, fsync_file, rename_durably, write_errors, write_parts_durably
from letopis.catalog import Sqlite
from letopis.config import Settings
from letopis.errors import REPAIR, VERIFY, Damaged, NewerFormat, NotFound, Refused, Remedy, UsageError, pull_remedy
from letopis.model import rfc3339
from letopis.store import LocalBackend
from letopis.store.backend import copy_packs

LISTING = "backup.json"
_PACKS = "packs"
_FORMAT, _VERSION = "letopis-backup", 1


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What a backup holds, and what this run added to it."""

    serial: int
    time: str
    versions: int
    packs: int
    packs_added: int
    bytes_added: int


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What was put back."""

    time: str
    versions: int
    packs: int


@dataclass(frozen=True, slots=True)
class BackupListing:
    """What `backup.json` names: the catalogue with its digest, and the length of each pack."""

    serial: int
    time: str
    catalogue: str
    sha256: str
    packs: dict[str, int]


def back_up(archive: Archive, folder: Path) -> BackupReport:
    """Brings a backup up to date. Writers of the archive wait meanwhile, readers do not."""
    _require_files(archive.settings)
    with write_errors(folder), exclusive_lock(folder / ".lock", f"backs up to {folder}"):
        folder.chmod(0o700)  # it holds accounts
        (folder / _PACKS).mkdir(exist_ok=True)
        before = read_listing(folder) if (folder / LISTING).exists() else None
        serial = before.serial + 1 if before else 1
        with archive.hold_writer():
            copied = list(copy_packs(archive.backend, LocalBackend(folder / _PACKS)))
            catalogue = _copied_catalogue(archive, folder / f"catalogue-{serial:08d}.sqlite")
        for pack in copied:
            if pack.fresh:
                _compare(archive.folder / _PACKS / pack.name, folder / _PACKS / pack.name, pack.size)
        sizes = {pack.name: pack.size for pack in copied}
        listing = BackupListing(serial, rfc3339(archive.clock()), catalogue.name, file_sha256(catalogue), sizes)
        write_parts_durably(folder / LISTING, [_encoded(listing)])
        _retire(folder, listing)
    fresh = [pack for pack in copied if pack.fresh]
    versions = archive.stats().versions
    return BackupReport(serial, listing.time, versions, len(copied), len(fresh), sum(pack.size for pack in fresh))


def restore(folder: Path, settings: Settings) -> RestoreReport:
    """Makes an empty folder the archive that a backup holds, and checks every byte; goes on where it was cut off."""
    _require_files(settings)
    listing, target = read_listing(folder), Path(settings.archive.path)
    unfinished = target / "restoring"
    if target.exists() and any(target.iterdir()) and not unfinished.exists():
        raise UsageError(f"{target} is not empty; name another folder")
    with write_errors(target):
        (target / _PACKS).mkdir(parents=True, exist_ok=True)
        write_parts_durably(unfinished, [b""])
        for name, size in listing.packs.items():
            _copy_start(folder / _PACKS / name, target / _PACKS / name, size)
        source, file = folder / listing.catalogue, Sqlite.file_in(target)
        if file_sha256(source) != listing.sha256:
            raise Damaged(f"{source} is not what was backed up; restore from another copy of the backup")
        _copy_start(source, target / "restored.sqlite", source.stat().st_size)
        rename_durably(target / "restored.sqlite", file)
    with Archive(settings=settings) as archive:
        for problem in archive.verify():
            raise Damaged(
                f"what was restored is not sound ({problem})", REPAIR._replace(tail=", which keeps what can be kept")
            )
        versions = archive.stats().versions
    unfinished.unlink()
    return RestoreReport(listing.time, versions, len(listing.packs))


def read_listing(folder: Path) -> BackupListing:
    """What a backup names; `NotFound` when the folder is none."""
    try:
        fields: dict[str, Any] = json.loads((folder / LISTING).read_bytes())
        if fields.pop("format") != _FORMAT:
            raise ValueError("another format")
        if fields.pop("version") > _VERSION:
            raise NewerFormat(f"{folder} was written by a later release of Letopis; update Letopis")
        listing = BackupListing(**fields)
        if any(Path(name).name != name for name in (listing.catalogue, *listing.packs)):
            raise ValueError("names another folder")
    except FileNotFoundError:
        raise NotFound(
            f"{folder} holds no backup",
            Remedy(f"backup {folder}", "letopis.archive.backups.back_up()", "make one with"),
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Damaged(f"{folder / LISTING} cannot be read; use another copy of the backup") from None
    return listing


def _require_files(settings: Settings) -> None:
    if settings.database.url or settings.store.url:
        raise UsageError("this archive lies in a database or an object store; use the backups that these have")
    if is_clone(Path(settings.archive.path)):
        raise Refused(
            "this archive is a clone, whose origin is its backup",
            pull_remedy("DIR"),
        )


def _copied_catalogue(archive: Archive, target: Path) -> Path:
    """The catalogue as it is now, in one file, found to be sound."""
    target.unlink(missing_ok=True)
    archive.catalog.database.all("VACUUM INTO ?", (str(target),))
    with closing(sqlite3.connect(target)) as connection:
        answers = connection.execute("PRAGMA integrity_check(1)").fetchall()
        connection.execute("PRAGMA journal_mode = DELETE")
    if answers != [("ok",)]:
        raise Damaged(f"the copy of the catalogue is not sound ({answers[0][0]})", VERIFY)
    with target.open("rb+") as file:
        fsync_file(file)
    return target


def _compare(source: Path, target: Path, size: int) -> None:
    with source.open("rb") as ours, target.open("rb") as theirs:
        left = size
        while left and (piece := ours.read(min(left, 1 << 20))):
            if theirs.read(len(piece)) != piece:
                raise Damaged(f"{target} is not what was copied there; look at that disk, and back up to another one")
            left -= len(piece)


def _copy_start(source: Path, target: Path, size: int) -> None:
    """The first bytes of a file, durably; the rest of a log belongs to a later backup that was cut off."""
    if not source.exists() or source.stat().st_size < size:
        raise Damaged(f"{source} is missing or too short; restore from another copy of the backup")
    shutil.copyfile(source, target)
    with target.open("rb+") as file:
        file.truncate(size)
        fsync_file(file)


def _retire(folder: Path, listing: BackupListing) -> None:
    """Removes what the backup before named and this one does not."""
    for path in (folder / _PACKS).iterdir():
        if path.name not in listing.packs and path.suffix in (".log", ".pack"):
            path.unlink()
    for path in folder.glob("catalogue-*.sqlite*"):
        if path.name != listing.catalogue:
            path.unlink()


def _encoded(listing: BackupListing) -> bytes:
    fields = {"format": _FORMAT, "version": _VERSION, "serial": listing.serial, "time": listing.time}
    fields |= {"catalogue": listing.catalogue, "sha256": listing.sha256, "packs": listing.packs}
    return json.dumps(fields, indent=1).encode() + b"\n"
