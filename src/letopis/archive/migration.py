"""An archive from one place to another: files and SQLite, or PostgreSQL and an object store, either way round.

Order: packs, then the catalogue table by table, then everything compared.
Each step says what it has finished, so that a move that was killed goes on
where it was. The source is not changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from letopis.archive.archive import Archive
from letopis.catalog.table_copy import begin_copy, copy_catalogue, end_copy
from letopis.errors import Damaged
from letopis.store.backend import copy_packs


@dataclass(frozen=True, slots=True)
class MoveReport:
    """What was moved, and how much of it was there already from an earlier try."""

    packs: int
    pack_bytes: int
    rows: int
    resumed: bool


def move_archive(
    source: Archive, target: Archive, progress: Callable[[str], None] = lambda what: None, *, verify: bool = True
) -> MoveReport:
    """Copies everything and compares it; Damaged when the copy is not the same.

    Other writers of a local source wait; a shared one must be left alone by
    all agents, and a change that slips in is found by the comparison.
    """
    finished = begin_copy(target.catalog.database)
    resumed = bool(finished)
    with source.hold_writer():
        packs = []
        for copied in copy_packs(source.backend, target.backend):
            packs.append(copied)
            resumed = resumed or not copied.fresh
            progress(copied.name)
        rows = _copy_catalog(source, target, finished, progress)
    if verify:
        _verify_copy(target)
    end_copy(target.catalog.database)
    return MoveReport(len(packs), sum(pack.size for pack in packs), rows, resumed)


def _copy_catalog(source: Archive, target: Archive, finished: set[str], progress: Callable[[str], None]) -> int:
    return copy_catalogue(source.catalog.database, target.catalog.database, finished, progress)


def _verify_copy(target: Archive) -> None:
    """Every byte and every reference at the new place."""
    for problem in target.verify():
        raise Damaged(f"the copy is not sound ({problem}); migrate to an empty place again")
