"""Backups: copies of an archive as of one moment, updated by copying only what is new.

Order of writes: packs, which are copied once and never change; the catalogue under a new name; `backup.json`, which
names both and is replaced in one step. Files that it does not name are removed afterwards. An interrupted backup
leaves the previous one intact.

`move_archive` copies an archive to another kind of storage (files and SQLite, PostgreSQL and an object store): packs,
then the catalogue table by table; then everything is compared. Each finished step is stored, so that a killed move
can continue. The source is not changed.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from letopis.archive.archive import Archive
from letopis.archive.backup_places import BackupPlace, place_of
from letopis.archive.write_gates import is_clone
from letopis.binary import file_sha256, make_private_folder, rename_durably, write_errors
from letopis.catalog import Catalog, Sqlite
from letopis.catalog.table_copy import begin_copy, copy_catalogue, copy_tables, end_copy, known_tables
from letopis.config import Settings
from letopis.errors import (
    REPAIR,
    VERIFY,
    Damaged,
    LetopisError,
    NewerFormat,
    NotFound,
    Refused,
    Remedy,
    UsageError,
    pull_remedy,
)
from letopis.model import rfc3339
from letopis.store import Backend, LocalBackend
from letopis.store.backend import CopiedPack, copy_packs

if TYPE_CHECKING:
    from letopis.archive.shared_gate import LeasedUpkeepGate

LISTING = "backup.json"
_PACKS = "packs"
_STEP = 8 << 20
_LAST = 1 << 20
"""Bytes at the end of the newest pack of a backup that are compared again: a copy of the archive that went on for
itself, and another archive, have the same names and now and then the same sizes.
"""
_RENEWAL = 60.0
"""Seconds between two renewals of the right to upkeep, which ends after ten minutes."""
_FORMAT, _VERSION = "letopis-backup", 1


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What a backup contains, and what this run added."""

    serial: int
    time: str
    versions: int
    packs: int
    packs_added: int
    bytes_added: int


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What was restored."""

    time: str
    versions: int
    packs: int


@dataclass(frozen=True, slots=True)
class BackupListing:
    """The content of `backup.json`: the catalogue with its digest, and the length of each pack."""

    serial: int
    time: str
    catalogue: str
    sha256: str
    packs: dict[str, int]


BackupProgress = Callable[[int, int, str], None]
"""Called with how many are done, of how many, and what they are: copied packs, or contents that were read again."""


def _untold(done: int, of: int, what: str) -> None:
    """No progress is shown."""


def back_up(archive: Archive, where: str | Path, progress: BackupProgress = _untold) -> BackupReport:
    """Brings a backup up to date. Writers of files wait while the catalogue and packs are copied; readers, and writers
    of an archive that many machines share, do not.
    """
    _refuse_clone(archive.settings)
    place = place_of(str(where), archive.settings)
    with place.held(), TemporaryDirectory(prefix="letopis-backup-") as folder:
        before = find_listing(place)
        serial = before.serial + 1 if before else 1
        draft = Path(folder) / f"catalogue-{serial:08d}.sqlite"
        with _one_moment(archive, draft) as sizes:
            copied = []
            for pack in copy_packs(archive.backend, place.packs, sizes):
                _compare(archive.backend, place.packs, pack, 0 if pack.fresh else _known_to(pack, newest=max(sizes)))
                copied.append(pack)
                progress(len(copied), len(sizes), "packs")
        place.store(draft.name, draft)
        listing = BackupListing(serial, rfc3339(archive.clock()), draft.name, file_sha256(draft), dict(sizes))
        place.replace(LISTING, _encoded(listing))
        place.retire(listing.packs, listing.catalogue)
        versions = _versions_in(draft)
    fresh = [pack for pack in copied if pack.fresh]
    return BackupReport(serial, listing.time, versions, len(copied), len(fresh), sum(pack.size for pack in fresh))


@contextmanager
def _one_moment(archive: Archive, draft: Path) -> Iterator[Mapping[str, int]]:
    """The catalogue in a file, and the packs and lengths that belong to it; none of these is removed meanwhile.

    Where many machines write, they wait for the turn of the catalogue while the moment is chosen, and go on while it is
    copied: rows are those of a snapshot, and packs only grow. Nobody compacts.
    """
    if not archive.settings.store.url:
        with archive.hold_writer():
            _copy_catalogue(archive, draft)
            yield archive.backend.list()
        return
    gate = archive.joint_upkeep_gate()
    try:
        with _renewing(archive, gate):
            if archive.settings.database.url:
                sizes = _copy_shared(archive, draft)
            else:
                with archive.catalog.transaction():
                    _copy_catalogue(archive, draft)
                    sizes = archive.backend.list()
            yield sizes
    finally:
        gate.give_back()


@contextmanager
def _renewing(archive: Archive, gate: LeasedUpkeepGate) -> Iterator[None]:
    """Keeps the right to upkeep, however long one step of the block takes; Busy at its end when that was lost."""
    over = threading.Event()

    def renew() -> None:
        with archive.catalog.transaction(beside=True) as cursor:
            gate.fence(cursor)

    def keep() -> None:
        while not over.wait(_RENEWAL):
            with suppress(LetopisError):  # the last renewal shows whether it was lost
                renew()

    keeper = threading.Thread(target=keep, daemon=True)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join()
    renew()


def _copy_shared(archive: Archive, draft: Path) -> Mapping[str, int]:
    """The rows of one moment, copied while others write; the packs of that moment with their lengths."""
    database = archive.catalog.database
    known_tables(database, database)  # tables that are still missing are made before the turn is taken
    with closing(Catalog(Sqlite(draft))) as target, database.snapshot() as moment:
        finished = begin_copy(target.database)
        with archive.catalog.transaction():
            tables = known_tables(database, target.database)
            moment.all("SELECT 1 FROM meta LIMIT 1")  # the first query decides the moment
            sizes = archive.backend.list()
        copy_tables(moment, target.database, tables, finished)
        end_copy(target.database)
    _check_copy(draft)
    return sizes


def restore(where: str | Path, settings: Settings, progress: BackupProgress = _untold) -> RestoreReport:
    """Restores a backup to an empty place, and checks every byte; continues where it was interrupted."""
    _refuse_clone(settings)
    place, target = place_of(str(where), settings), Path(settings.archive.path)
    listing, unfinished = read_listing(place), target / "restoring"
    if target.exists() and any(target.iterdir()) and not unfinished.exists():
        raise UsageError(f"{target} is not empty; name another folder")
    # The catalogue gets its name last: where it is, only the check was interrupted, and the archive may be in use.
    if not Sqlite.file_in(target).exists():
        _restore_files(place, listing, settings, progress)
    elif unfinished.read_text() != listing.sha256:
        raise UsageError(f"{target} was restored from another state of the backup; name an empty folder")
    with Archive(settings=settings) as archive:
        found = archive.stats()
        for problem in archive.verify(lambda done: progress(done, found.contents, "contents")):
            raise Damaged(
                f"the restored archive is damaged ({problem})", REPAIR._replace(tail=", which keeps what can be kept")
            )
    unfinished.unlink()
    return RestoreReport(listing.time, found.versions, len(listing.packs))


def _restore_files(place: BackupPlace, listing: BackupListing, settings: Settings, progress: BackupProgress) -> None:
    """Packs and catalogue at their new place, whole when this returns."""
    target = Path(settings.archive.path)
    with write_errors(target):
        make_private_folder(target)
        # Before anything else: a folder with other files and without this one is an archive.
        (target / "restoring").write_text(listing.sha256)
        draft = _fetched_catalogue(place, listing, target / "restored.sqlite")
        if settings.database.url or settings.store.url:
            _fill(settings, place, listing, draft, progress)
            draft.unlink()
        else:
            make_private_folder(target / _PACKS)
            _copy_listed(place, LocalBackend(target / _PACKS), listing, progress)
            rename_durably(draft, Sqlite.file_in(target))


def _fill(
    settings: Settings, place: BackupPlace, listing: BackupListing, draft: Path, progress: BackupProgress
) -> None:
    """An empty database or object store gets the packs, then the rows, table by table."""
    with Archive(settings=settings) as archive, closing(Catalog(Sqlite(draft))) as source:
        theirs = archive.catalog.database
        finished = begin_copy(theirs)
        _copy_listed(place, archive.backend, listing, progress)
        copy_catalogue(source.database, theirs, finished)
        end_copy(theirs)


def _copy_listed(place: BackupPlace, target: Backend, listing: BackupListing, progress: BackupProgress) -> None:
    there = place.packs.list()
    for name, size in listing.packs.items():
        if there.get(name, 0) < size:
            raise Damaged(f"{name} in {place.where} is missing or too short; restore from another copy of the backup")
    for done, _ in enumerate(copy_packs(place.packs, target, listing.packs), 1):
        progress(done, len(listing.packs), "packs")


def _fetched_catalogue(place: BackupPlace, listing: BackupListing, draft: Path) -> Path:
    try:
        place.fetch(listing.catalogue, draft)
    except FileNotFoundError:
        raise Damaged(f"{listing.catalogue} is not in {place.where}; restore from another copy of the backup") from None
    if file_sha256(draft) != listing.sha256:
        raise Damaged(
            f"{listing.catalogue} in {place.where} has another digest than it was backed up with; "
            "restore from another copy of the backup"
        )
    return draft


def read_listing(place: BackupPlace) -> BackupListing:
    """What a backup names; `NotFound` when there is none."""
    listing = find_listing(place)
    if listing is None:
        remedy = Remedy(f"backup {place.where}", "letopis.archive.backups.back_up()", "make one with")
        raise NotFound(f"{place.where} holds no backup", remedy)
    return listing


def find_listing(place: BackupPlace) -> BackupListing | None:
    """The same; None when there is none."""
    try:
        fields: dict[str, Any] = json.loads(place.read(LISTING))
        if fields.pop("format") != _FORMAT:
            raise ValueError("another format")
        if fields.pop("version") > _VERSION:
            raise NewerFormat(f"{place.where} was written by a later release of Letopis; update Letopis")
        listing = BackupListing(**fields)
        if any(Path(name).name != name for name in (listing.catalogue, *listing.packs)):
            raise ValueError("names another folder")
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Damaged(f"{LISTING} in {place.where} cannot be read; use another copy of the backup") from None
    return listing


def _refuse_clone(settings: Settings) -> None:
    if is_clone(Path(settings.archive.path)):
        raise Refused("this archive is a clone, whose origin is its backup", pull_remedy("DIR"))


def _copy_catalogue(archive: Archive, draft: Path) -> None:
    """The catalogue as it is now, in one file, found to be sound."""
    draft.unlink(missing_ok=True)
    if archive.settings.database.url:
        with closing(Catalog(Sqlite(draft))) as target:
            finished = begin_copy(target.database)
            copy_catalogue(archive.catalog.database, target.database, finished)
            end_copy(target.database)
    else:
        archive.catalog.database.all("VACUUM INTO ?", (str(draft),))
    _check_copy(draft)


def _check_copy(draft: Path) -> None:
    with closing(sqlite3.connect(draft)) as connection:
        answers = connection.execute("PRAGMA integrity_check(1)").fetchall()
        connection.execute("PRAGMA journal_mode = DELETE")
    if answers != [("ok",)]:
        raise Damaged(f"the copy of the catalogue is damaged ({answers[0][0]})", VERIFY)


def _versions_in(draft: Path) -> int:
    with closing(sqlite3.connect(draft)) as connection:
        return int(connection.execute("SELECT count(*) FROM version").fetchone()[0])


def _known_to(pack: CopiedPack, newest: str) -> int:
    """Up to where a pack that was in the backup is taken for the same."""
    return max(0, pack.size - _LAST) if pack.name == newest else pack.size


def _compare(ours: Backend, theirs: Backend, pack: CopiedPack, known: int) -> None:
    for start in range(known, pack.size, _STEP):
        length = min(_STEP, pack.size - start)
        if ours.read(pack.name, start, length) != theirs.read(pack.name, start, length):
            raise Damaged(
                f"{pack.name} in {theirs.where} reads differently than it was written; "
                "check that disk, and back up elsewhere"
            )


def _encoded(listing: BackupListing) -> bytes:
    fields = {"format": _FORMAT, "version": _VERSION, "serial": listing.serial, "time": listing.time}
    fields |= {"catalogue": listing.catalogue, "sha256": listing.sha256, "packs": listing.packs}
    return json.dumps(fields, indent=1).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class MoveReport:
    """What was moved, and how much of it was already there from an earlier attempt."""

    packs: int
    pack_bytes: int
    rows: int
    resumed: bool


MoveProgress = Callable[[int, int, str], None]
"""Called with how many are done, of how many, and what is counted: packs, and tables to copy and to compare."""


def move_archive(
    source: Archive, target: Archive, progress: MoveProgress = lambda done, of, what: None, *, verify: bool = True
) -> MoveReport:
    """Copies everything and compares it; Damaged when the copy is not the same.

    Other writers of a local source wait; a shared one must be left alone by
    all agents, and a change that slips in is found by the comparison.
    """
    finished = begin_copy(target.catalog.database)
    resumed = bool(finished)
    with source.hold_writer():
        packs = []
        tables = known_tables(source.catalog.database, target.catalog.database)
        steps = [*source.backend.list(), *tables, *(table for table in tables if table.name not in finished)]
        done = count(1)
        for copied in copy_packs(source.backend, target.backend):
            packs.append(copied)
            resumed = resumed or not copied.fresh
            progress(next(done), len(steps), "parts")
        rows = copy_catalogue(
            source.catalog.database, target.catalog.database, finished,
            lambda name: progress(next(done), len(steps), "parts"),
        )  # fmt: skip
    if verify:
        _verify_copy(target, progress)
    end_copy(target.catalog.database)
    return MoveReport(len(packs), sum(pack.size for pack in packs), rows, resumed)


def _verify_copy(target: Archive, progress: MoveProgress) -> None:
    """Every byte and every reference at the new place."""
    contents = target.stats().contents
    for problem in target.verify(lambda done: progress(done, contents, "contents")):
        raise Damaged(f"the copy is damaged ({problem}); migrate to an empty place again")
