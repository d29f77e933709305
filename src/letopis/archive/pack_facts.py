"""Reads facts from the packs into the catalogue: all for a new one, or those beyond its mark for an older one.

The packs are authoritative. In each transaction the catalogue marks up to where it knows them. What lies beyond the
mark was written by a process that was killed before its commit, or an older copy of the catalogue was restored.
Nothing beyond the mark may be dropped before it has been read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from letopis.archive.recording import Recorder
from letopis.archive.records import (
    SENT_PREFIX,
    Identity,
    NewCapture,
    PackNote,
    identify,
    is_beside,
    set_part_of_key,
    url_of_key,
)
from letopis.binary import sha1_digest
from letopis.catalog import OUTCOME_CODES, CaptureRow, Catalog, ContentRow, Cursor
from letopis.catalog.contents import RenderingSource
from letopis.catalog.sets import SetPartRow
from letopis.errors import Damaged
from letopis.model import Outcome
from letopis.store import AppendResult, ContentPlace, HighWaterMark, Store, VersionFact, VersionItem
from letopis.tuples import NamedTuple

_BATCH = 20_000


def known_mark(catalog: Catalog) -> HighWaterMark:
    """Up to where the catalogue knows the packs; for one of an earlier release this is derived from its contents."""
    mark = catalog.contents.mark()
    if mark is not None:
        return HighWaterMark(*mark)
    last = catalog.contents.last()
    # The record of the last content begins there: what follows is read again, and found to be known.
    return HighWaterMark(catalog.contents.highest(), last[0] if last else 0, last[1] + 1 if last else 0)


def returned_packs(catalog: Catalog, store: Store) -> frozenset[int]:
    """Packs that are here again, after a repair had to give up what was in them."""
    lost = catalog.contents.lost_packs()
    return lost.intersection(store.sizes()) if lost else lost


def expect_packs(catalog: Catalog, cursor: Cursor, more: Collection[int], here: Collection[int] = ()) -> None:
    """Notes packs whose contents were given up, and forgets those that were read again."""
    lost = catalog.contents.lost_packs()
    if changed := lost.union(more).difference(here).symmetric_difference(lost):
        catalog.contents.set_lost_packs(cursor, lost ^ changed)


class TakenIn(NamedTuple):
    """What was read: new versions, contents that got a place, and those that no pack contains any more."""

    versions: int
    contents: int
    lost: tuple[str, ...]


def take_in_facts(catalog: Catalog, store: Store, since: Mapping[int, int] | None = None) -> TakenIn:
    """Records what is in the packs and not in the catalogue: of all packs, or of some from an offset on.

    Known facts stay unchanged; a content whose bytes are not where the catalogue says gets the place where they were
    found.
    """
    return _FactIntake(catalog, store, since).run()


class _NoStore:
    """A store that writes no bytes, because every content is already in its place."""

    def append(self, items: Sequence[VersionItem]) -> list[AppendResult]:
        """Facts only."""
        return [AppendResult(None, 0, "") for _ in items]

    def sync(self) -> None:
        """Nothing is buffered."""


class _FactIntake:
    """One pass for the contents, one for the versions, then the responses of rendered pages, and sets."""

    def __init__(self, catalog: Catalog, store: Store, since: Mapping[int, int] | None) -> None:
        self._catalog = catalog
        self._store = store
        self._since = since
        self._known: dict[bytes, Identity] = {}
        self._lost: dict[bytes, str] = {}
        self._placed = 0

    def run(self) -> TakenIn:
        with self._catalog.transaction() as cursor:
            for fact in self._facts():
                if fact.place is not None and fact.digest not in self._known:
                    self._register(cursor, fact)
        self._find_elsewhere()
        before = self._catalog.totals().versions
        recorder = Recorder(self._catalog, _NoStore(), record_same=True)
        for batch in self._batches():
            with self._catalog.transaction() as cursor:
                recorder.record(cursor, [one for one in batch if not self._is_recorded(cursor, one)])
        self._take_in_renderings()
        self._take_in_sets()
        lost = tuple(sentence for digest, sentence in self._lost.items() if digest not in self._known)
        return TakenIn(self._catalog.totals().versions - before, self._placed, lost)

    def _facts(self) -> Iterator[VersionFact]:
        return self._store.scan(self._since)

    def _register(self, cursor: Cursor, fact: VersionFact) -> None:
        """Adds the row of a readable content, or corrects the place in its row."""
        assert fact.place is not None
        try:
            body = self._store.read(fact.place, fact.stored_bytes).body
        except Damaged as error:
            self._lost[fact.digest] = f"{fact.key.decode(errors='replace')}: {error}"
            return
        identity = identify(body)
        found = self._catalog.contents.find(identity.key, identity.sha1, cursor)
        if found is None:
            row = ContentRow(0, identity.key, identity.sha1, len(body), fact.stored_bytes, fact.method, *fact.place)
            self._catalog.contents.add(cursor, row)
            self._placed += 1
        elif content_fault(self._store, found):
            self._catalog.contents.move(cursor, [(fact.stored_bytes, fact.method, *fact.place, found.id)])
            self._placed += 1
        self._known[fact.digest] = identity

    def _find_elsewhere(self) -> None:
        """Contents that facts name only by their digest, and that the catalogue has in packs which were not read."""
        wanted = {fact.digest for fact in self._facts() if fact.digest not in self._known} if self._since else set()
        for row in self._catalog.contents.all() if wanted else ():
            if row.sha1 in wanted:
                self._known[row.sha1] = Identity(row.sha1, row.identity)

    def _batches(self) -> Iterator[list[NewCapture]]:
        """Versions in large batches, each in the order of time: frames have the newest first."""
        batch: dict[tuple[bytes, int], NewCapture] = {}
        for fact in self._facts():
            if fact.digest in self._known and not is_beside(fact.key):
                batch[(fact.key, fact.time)] = _capture_of_fact(fact, self._known[fact.digest])
            if len(batch) >= _BATCH:
                yield [batch[mark] for mark in sorted(batch)]
                batch = {}
        yield [batch[mark] for mark in sorted(batch)]

    def _is_recorded(self, cursor: Cursor, arrival: NewCapture) -> bool:
        """A version may be recorded in several packs; the first one counts."""
        row = self._catalog.resources.find(arrival.url, cursor)
        return row is not None and self._catalog.versions.taken(cursor, row.id, arrival.time)

    def _take_in_renderings(self) -> None:
        """Stores what servers sent for the versions that browsers made of it."""
        sent = [fact for fact in self._facts() if fact.key.startswith(SENT_PREFIX) and fact.digest in self._known]
        if not sent:
            return
        self._catalog.renderings.ensure()
        with self._catalog.transaction() as cursor:
            for fact in sent:
                self._take_in_rendering(cursor, fact, self._known[fact.digest])

    def _take_in_rendering(self, cursor: Cursor, fact: VersionFact, identity: Identity) -> None:
        row = self._catalog.resources.find(url_of_key(fact.key), cursor)
        version = self._catalog.versions.at(row.id, row.versions, fact.time, cursor) if row is not None else None
        content = self._catalog.contents.find(identity.key, identity.sha1, cursor)
        if version is not None and version.time == fact.time and content is not None:
            head = self._catalog.heads.add(cursor, PackNote.unpack(fact.note).headers)
            self._catalog.renderings.add(cursor, version.id, RenderingSource(content.id, head))

    def _take_in_sets(self) -> None:
        """Capture sets, after the versions of their members."""
        parts = [
            (part, fact)
            for fact in self._facts()
            if fact.digest in self._known and (part := set_part_of_key(fact.key)) is not None
        ]
        if not parts:
            return
        self._catalog.sets.ensure()
        with self._catalog.transaction() as cursor:
            for part, fact in parts:
                self._take_in_part(cursor, part, fact, self._known[fact.digest])

    def _take_in_part(self, cursor: Cursor, part: int, fact: VersionFact, identity: Identity) -> None:
        """A set proves that its page was checked; packs do not contain checks that found nothing new."""
        row = self._catalog.resources.find(url_of_key(fact.key), cursor)
        version = self._catalog.versions.at(row.id, row.versions, fact.time, cursor) if row is not None else None
        content = self._catalog.contents.find(identity.key, identity.sha1, cursor)
        if row is None or version is None or content is None:
            return
        if not self._catalog.versions.taken(cursor, row.id, fact.time):
            unchanged = OUTCOME_CODES[Outcome.UNCHANGED]
            seen = CaptureRow(row.id, fact.time, version.status, unchanged, version.number, version.head, None, None)
            self._catalog.versions.add_capture(cursor, seen)
            newest = self._catalog.versions.number(row.id, row.versions - 1, cursor)
            last = max(fact.time, row.checked or 0)
            self._catalog.resources.touch(cursor, [(row.versions, newest.id if newest else None, last, None, row.id)])
        self._catalog.sets.add(cursor, [SetPartRow(row.id, fact.time, part, content.id, fact.note)])


def find_places(catalog: Catalog, store: Store, broken: Sequence[ContentRow]) -> set[int]:
    """Searches all packs for contents that are not where their rows say, and corrects these; ids of those found."""
    wanted = {row.sha1: row for row in broken}
    found: set[int] = set()
    with catalog.transaction() as cursor:
        for fact in store.scan() if wanted else ():
            row = wanted.get(fact.digest)
            if row is None or fact.place is None or row.id in found:
                continue
            with suppress(Damaged):
                body = store.read(fact.place, fact.stored_bytes).body
                if sha1_digest(body) == row.sha1:
                    fields = (identify(body).key, row.sha1, len(body), fact.stored_bytes, fact.method, *fact.place)
                    catalog.contents.correct(cursor, ContentRow(row.id, *fields))
                    found.add(row.id)
    return found


def content_fault(store: Store, row: ContentRow) -> str:
    """What is wrong with the bytes at the place in a row; empty if they are right."""
    try:
        body = store.read(ContentPlace(row.pack, row.place, row.slot), row.stored_bytes).body
    except Damaged as error:
        return error.message
    right = identify(body) == Identity(row.sha1, row.identity) and len(body) == row.raw_bytes
    return "" if right else "the bytes are those of another content"


def _capture_of_fact(fact: VersionFact, identity: Identity) -> NewCapture:
    note = PackNote.unpack(fact.note)
    return NewCapture(
        url=fact.key.decode(), time=fact.time, status=note.status, headers=note.headers, body=b"",
        outcome=Outcome.NEW if note.version else Outcome.UNAVAILABLE, versioned=note.version, dated=True,
        identity=identity,
    )  # fmt: skip
