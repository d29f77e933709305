"""An archive from one place to another: files and SQLite, or PostgreSQL and an object store, either way round.

Order: packs, then the catalogue table by table, then everything compared.
Each step says what it has finished, so that a move that was killed goes on
where it was. The source is not changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from letopis.archive.archive import Archive
from letopis.catalog.table_copy import begin_copy, copy_catalogue, end_copy, known_tables
from letopis.errors import Damaged
from letopis.store.backend import copy_packs


@dataclass(frozen=True, slots=True)
class MoveReport:
    """What was moved, and how much of it was there already from an earlier try."""

    packs: int
    pack_bytes: int
    rows: int
    resumed: bool


MoveProgress = Callable[[int, int, str], None]
"""Hears how many are done, of how many, and what is counted: parts are packs, and tables to copy and to compare."""


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
        raise Damaged(f"the copy is not sound ({problem}); migrate to an empty place again")
