"""`verify` and `verify --repair`: finds damage, and saves what can be saved.

A repair keeps everything that can still be read. An undamaged catalogue loses the rows whose bytes are gone. Of a
damaged one every readable row is saved; the rest, or everything if the catalogue is lost, is restored from the packs,
which contain URL, time, status and headers of every version.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from letopis.archive.archive import Archive
from letopis.archive.pack_facts import TakenIn, content_fault, expect_packs, find_places, take_in_facts
from letopis.archive.records import digest_text, is_beside, url_of_key
from letopis.catalog import ABSENT, Catalog, salvage
from letopis.catalog.salvage import straighten
from letopis.config import Settings
from letopis.model import from_millis, rfc3339
from letopis.store import LocalBackend, Store, VersionFact


@dataclass(frozen=True, slots=True)
class IntegrityProblem:
    """Something that is not as it was written. `content` is the id in the catalogue, if known."""

    where: str
    what: str
    content: int | None = None

    def __str__(self) -> str:
        """One line that names the spot."""
        return f"{self.where}: {self.what}"


def find_problems(
    catalog: Catalog, store: Store, beyond: Mapping[int, int], progress: Callable[[int], None] = lambda done: None
) -> Iterator[IntegrityProblem]:
    """All problems, as they are found; nothing is changed.

    `beyond` names the packs that may hold what the catalogue does not know, and from which offset on; those of a clone
    hold more than it shows. `progress` is called with how many contents were read.
    """
    yield from (IntegrityProblem("catalogue", sentence) for sentence in catalog.integrity())
    if any(catalog.misfits()):
        return  # such rows cannot be followed; a repair comes first
    for finding in store.verify(catalog.contents.packs()):
        yield IntegrityProblem("packs", str(finding))
    yield from unreadable_contents(catalog, store, progress)
    for fact in contradicted_facts(catalog, store):
        yield IntegrityProblem(_named(fact), "the catalogue and the pack name different contents")
    for fact in unknown_facts(catalog, store, beyond):
        yield IntegrityProblem(_named(fact), "it is in a pack but not in the catalogue")


def unreadable_contents(
    catalog: Catalog, store: Store, progress: Callable[[int], None] = lambda done: None
) -> Iterator[IntegrityProblem]:
    """Contents whose bytes are gone or are no longer the same."""
    for done, row in enumerate(catalog.contents.all(), 1):
        progress(done)
        if row.method == ABSENT:
            continue
        fault = content_fault(store, row)
        if fault:
            yield IntegrityProblem(f"content {digest_text(row.sha1)}", fault, row.id)


def unknown_facts(catalog: Catalog, store: Store, beyond: Mapping[int, int]) -> Iterator[VersionFact]:
    """Versions in some packs, from an offset on, that the catalogue does not know."""
    for fact in store.scan(beyond) if beyond else ():
        row = catalog.resources.find(url_of_key(fact.key))
        if row is None or not catalog.versions.has_check(row.id, row.versions, fact.time):
            yield fact


def contradicted_facts(catalog: Catalog, store: Store) -> list[VersionFact]:
    """Versions for which every pack has another content than the catalogue.

    A put that was never acknowledged may have left a fact of the same time: one that agrees is enough.
    """
    suspects: dict[tuple[bytes, int], VersionFact] = {}
    for fact in store.scan():
        if _contradicts(catalog, fact):
            suspects[fact.key, fact.time] = fact
    for fact in store.scan() if suspects else ():
        if (fact.key, fact.time) in suspects and not _contradicts(catalog, fact):
            del suspects[fact.key, fact.time]
    return list(suspects.values())


def _contradicts(catalog: Catalog, fact: VersionFact) -> bool:
    """Whether the catalogue has a version of exactly this time with other bytes."""
    if is_beside(fact.key):
        return False
    row = catalog.resources.find(fact.key.decode())
    version = catalog.versions.at(row.id, row.versions, fact.time) if row is not None else None
    if version is None or version.time != fact.time:
        return False
    content = catalog.contents.by_id(version.content)
    return content is not None and content.sha1 != fact.digest


def correct_contents(catalog: Catalog, store: Store) -> int:
    """Restores the content of versions that their packs name; returns how many."""
    wrong = contradicted_facts(catalog, store)
    by_digest = {row.sha1: row.id for row in catalog.contents.all()} if wrong else {}
    with catalog.transaction() as cursor:
        for fact in wrong:
            row = catalog.resources.find(fact.key.decode(), cursor)
            version = catalog.versions.at(row.id, row.versions, fact.time, cursor) if row is not None else None
            if version is not None and fact.digest in by_digest:
                catalog.versions.set_content(cursor, version.id, by_digest[fact.digest])
    return len(wrong)


def _named(fact: VersionFact) -> str:
    return f"{fact.key.decode(errors='replace')} at {rfc3339(from_millis(fact.time))}"


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair did."""

    rebuilt: bool
    versions: int
    lost: tuple[str, ...]
    unread: tuple[str, ...] = ()
    """The tables whose rows in the damaged catalogue could not be saved; what the packs contain was restored."""
    packs: frozenset[int] = frozenset()
    """The packs of which contents were given up."""


def drop_lost_versions(catalog: Catalog, store: Store, *, clone: bool = False) -> RepairReport:
    """Removes the versions whose bytes are gone from the catalogue, and names them.

    Before that all packs are searched: the row may be wrong.
    """
    correct_contents(catalog, store)
    broken = [problem.content for problem in unreadable_contents(catalog, store) if problem.content is not None]
    rows = [row for row in map(catalog.contents.by_id, broken) if row is not None]
    gone = sorted(set(broken) - find_places(catalog, store, rows))
    # Named before any is removed, since that changes the numbers of the others.
    lost = [(name, catalog.versions.owners(content)) for content in gone for name in catalog.versions.named(content)]
    given_up = frozenset(row.pack for row in rows if row.id in gone)
    for content in gone:
        with catalog.transaction() as cursor:
            expect_packs(catalog, cursor, given_up)
            catalog.versions.lose(cursor, content)
            catalog.renderings.lose(cursor, content)
            catalog.imported.lose(cursor, content)
            catalog.sets.lose(cursor, content)
    if gone and not clone:
        take_in_facts(catalog, store)
    return RepairReport(False, catalog.totals().versions, tuple(_still_lost(catalog, lost)), packs=given_up)


def _still_lost(catalog: Catalog, lost: list[tuple[str, list[tuple[str, int]]]]) -> Iterator[str]:
    """Names of versions that could not be restored from the packs either."""
    for name, owners in lost:
        for url, time in owners:
            row = catalog.resources.find(url)
            if row is None or not catalog.versions.has_check(row.id, row.versions, time):
                yield name
                break


def note_given_up(catalog: Catalog, report: RepairReport) -> None:
    """The packs of which a repair gave contents up are read when they come back."""
    with catalog.transaction() as cursor:
        expect_packs(catalog, cursor, report.packs)


def rebuild_catalog(
    catalog: Catalog, store: Store, indexes: Path, missing: tuple[str, ...] = (), *, clone: bool = False
) -> RepairReport:
    """Completes a catalogue from the packs; it cannot be opened by others before that has ended.

    It may be empty or hold rows that were saved from a damaged one; `missing` names what could not. Versions may get
    new numbers, so indexes of the old ones are removed and rebuilt at the next query.
    """
    store.refuse_misnamed()
    with catalog.rebuilding():
        shutil.rmtree(indexes, ignore_errors=True)
        gone = straighten(catalog)
        # The packs of a clone hold more than it shows: rows that were saved are what it showed.
        shown = clone and catalog.totals().versions > 0
        taken = TakenIn(0, 0, ()) if shown else take_in_facts(catalog, store)
        done = drop_lost_versions(catalog, store, clone=clone)
        straighten(catalog)
    return RepairReport(True, catalog.totals().versions, (*taken.lost, *done.lost), (*missing, *gone), done.packs)


def rebuild_file(settings: Settings, file: Path) -> RepairReport:
    """Fills a new catalogue file from what can be read of the old one, and from the packs, and replaces the old one."""
    draft = file.with_name(f"{file.name}.new")
    lease = LocalBackend(file.parent / "packs").lease()  # other writers wait, and then find the file replaced
    try:
        salvage.remove_draft(draft)
        whole = salvage.salvage_rows(file, draft)[0] if file.exists() else False
        with Archive(settings=settings, rebuilding=True, draft=draft) as archive:
            missing = salvage.salvage_rows(file, draft)[1] if file.exists() and not whole else ()
            indexes = archive.folder / "index"
            report = rebuild_catalog(archive.catalog, archive.store, indexes, missing, clone=archive.is_clone)
            archive.catalog.tidy()
        salvage.put_in_place(draft, file)
    finally:
        lease.release()
    return report
