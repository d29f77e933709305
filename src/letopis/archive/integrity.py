"""`verify` and `verify --repair`: does the archive hold what it says it holds, and what can be saved where it does not?

Repair keeps everything that can still be read. A sound catalogue loses the
rows whose bytes are gone. A damaged one is set aside, and like a missing one
built anew from the packs, which carry URL, time, status and headers of every
version.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from letopis.archive.recording import Recorder
from letopis.archive.records import SENT_PREFIX, SOURCE_PREFIX, Identity, NewCapture, PackNote, digest_text, identify
from letopis.binary import sha1_digest
from letopis.catalog import ABSENT, Catalog, ContentRow, Cursor
from letopis.catalog.contents import RenderingSource
from letopis.errors import Damaged
from letopis.model import Outcome
from letopis.store import AppendResult, ContentPlace, Store, VersionFact, VersionItem


@dataclass(frozen=True, slots=True)
class IntegrityProblem:
    """Something that is not as it was written. `content` is the catalogue's id where one is known."""

    where: str
    what: str
    content: int | None = None

    def __str__(self) -> str:
        """One line that names the spot."""
        return f"{self.where}: {self.what}"


def find_problems(catalog: Catalog, store: Store) -> Iterator[IntegrityProblem]:
    """All problems, as they are found; nothing is changed."""
    yield from _catalog_problems(catalog)
    for finding in store.verify(catalog.contents.packs()):
        yield IntegrityProblem("packs", str(finding))
    yield from unreadable_contents(catalog, store)


def _catalog_problems(catalog: Catalog) -> Iterator[IntegrityProblem]:
    for sentence in catalog.integrity():
        yield IntegrityProblem("catalogue", sentence)


def unreadable_contents(catalog: Catalog, store: Store) -> Iterator[IntegrityProblem]:
    """Contents whose bytes are gone or are no longer the same."""
    for row in catalog.contents.all():
        if row.method == ABSENT:
            continue
        fault = _content_fault(store, row)
        if fault:
            yield IntegrityProblem(f"content {digest_text(row.sha1)}", fault, row.id)


def _content_fault(store: Store, row: ContentRow) -> str:
    try:
        decoded = store.read(ContentPlace(row.pack, row.place, row.slot), row.stored_bytes)
    except Damaged as error:
        return str(error)
    return "" if sha1_digest(decoded.body) == row.sha1 else "the bytes are those of another content"


_REBUILD_BATCH = 20_000


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair did."""

    rebuilt: bool
    versions: int
    lost: tuple[str, ...]


class _NoStore:
    """Rebuilding writes no bytes: every content is already where it belongs."""

    def append(self, items: Sequence[VersionItem]) -> list[AppendResult]:
        """Facts only."""
        return [AppendResult(None, 0, "") for _ in items]

    def sync(self) -> None:
        """Nothing waits."""


def drop_lost_versions(catalog: Catalog, store: Store) -> RepairReport:
    """Takes the versions out of the catalogue whose bytes are gone, and names them."""
    gone = [problem.content for problem in unreadable_contents(catalog, store) if problem.content is not None]
    # Named before any of them goes: the numbers of the others move up then.
    lost = [name for content in gone for name in catalog.versions.named(content)]
    for content in gone:
        with catalog.transaction() as cursor:
            catalog.versions.lose(cursor, content)
            catalog.renderings.lose(cursor, content)
            catalog.imported.lose(cursor, content)
    return RepairReport(False, catalog.totals().versions, tuple(lost))


def rebuild_catalog(catalog: Catalog, store: Store, indexes: Path) -> RepairReport:
    """Fills an empty catalogue from the packs; it opens for nobody before that has come to its end.

    Versions get new numbers, so indexes made of the old ones are removed;
    whoever asks next builds them again.
    """
    with catalog.rebuilding():
        shutil.rmtree(indexes, ignore_errors=True)
        places, lost = _register_contents(catalog, store)
        recorder = Recorder(catalog, _NoStore(), record_same=True)
        for batch in _capture_batches(store, places):
            with catalog.transaction() as cursor:
                recorder.record(cursor, [one for one in batch if not _is_recorded(catalog, cursor, one)])
        _rebuild_renderings(catalog, store, places)
    return RepairReport(True, catalog.totals().versions, tuple(lost))


def _register_contents(catalog: Catalog, store: Store) -> tuple[dict[bytes, Identity], list[str]]:
    """Every readable content gets its row; of several places the last one found counts."""
    known: dict[bytes, Identity] = {}
    lost: dict[bytes, str] = {}
    with catalog.transaction() as cursor:
        for fact in store.scan():
            if fact.place is not None:
                _register_one(catalog, cursor, store, fact, known, lost)
    return known, [sentence for digest, sentence in lost.items() if digest not in known]


def _register_one(
    catalog: Catalog,
    cursor: Cursor,
    store: Store,
    fact: VersionFact,
    known: dict[bytes, Identity],
    lost: dict[bytes, str],
) -> None:
    assert fact.place is not None
    if fact.digest in known:
        return
    try:
        decoded = store.read(fact.place, fact.stored_bytes)
    except Damaged as error:
        lost[fact.digest] = f"{fact.key.decode(errors='replace')}: {error}"
        return
    identity = identify(decoded.body)
    row = ContentRow(0, identity.key, identity.sha1, len(decoded.body), fact.stored_bytes, fact.method, *fact.place)
    catalog.contents.add(cursor, row)
    known[fact.digest] = identity


def _capture_batches(store: Store, places: dict[bytes, Identity]) -> Iterator[list[NewCapture]]:
    """Versions in large batches, each in the order of time: frames tell the newest first."""
    batch: dict[tuple[bytes, int], NewCapture] = {}
    for fact in store.scan():
        if fact.digest in places and not fact.key.startswith((SENT_PREFIX, SOURCE_PREFIX)):
            batch[(fact.key, fact.time)] = _capture_of_fact(fact, places[fact.digest])
        if len(batch) >= _REBUILD_BATCH:
            yield [batch[mark] for mark in sorted(batch)]
            batch = {}
    yield [batch[mark] for mark in sorted(batch)]


def _rebuild_renderings(catalog: Catalog, store: Store, places: dict[bytes, Identity]) -> None:
    """Puts what servers sent beside the versions that browsers made of it."""
    sent = [fact for fact in store.scan() if fact.key.startswith(SENT_PREFIX) and fact.digest in places]
    if not sent:
        return
    catalog.renderings.ensure()
    with catalog.transaction() as cursor:
        for fact in sent:
            _rebuild_rendering(catalog, cursor, fact, places[fact.digest])


def _rebuild_rendering(catalog: Catalog, cursor: Cursor, fact: VersionFact, identity: Identity) -> None:
    row = catalog.resources.find(fact.key.removeprefix(SENT_PREFIX).decode(), cursor)
    version = catalog.versions.at(row.id, row.versions, fact.time, cursor) if row is not None else None
    content = catalog.contents.find(identity.key, identity.sha1, cursor)
    if version is not None and version.time == fact.time and content is not None:
        head = catalog.heads.add(cursor, PackNote.unpack(fact.note).headers)
        catalog.renderings.add(cursor, version.id, RenderingSource(content.id, head))


def _is_recorded(catalog: Catalog, cursor: Cursor, arrival: NewCapture) -> bool:
    """A version may be told of by several packs; the first one counts."""
    row = catalog.resources.find(arrival.url, cursor)
    return row is not None and catalog.versions.taken(cursor, row.id, arrival.time)


def _capture_of_fact(fact: VersionFact, identity: Identity) -> NewCapture:
    note = PackNote.unpack(fact.note)
    return NewCapture(
        url=fact.key.decode(),
        time=fact.time,
        status=note.status,
        headers=note.headers,
        body=b"",
        outcome=Outcome.NEW if note.version else Outcome.UNAVAILABLE,
        versioned=note.version,
        dated=True,
        identity=identity,
    )


def set_catalog_aside(file: Path) -> Path:
    """Moves a damaged catalogue out of the way, under a name that is free."""
    number = 1
    while (target := file.with_name(f"{file.name}.damaged-{number}")).exists():
        number += 1
    for suffix in ("", "-wal", "-shm"):
        part = file.with_name(file.name + suffix)
        if part.exists():
            part.rename(target.with_name(target.name + suffix))
    return target
