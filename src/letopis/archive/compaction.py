"""Compaction of a whole archive: retention, recompression, and freeing space.

Works in slices of a few seconds. Between two slices other writers get their turn; readers never wait. Stopping or
killing it at any point loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, compress, groupby
from typing import TYPE_CHECKING, Literal

from letopis.archive.records import SENT_PREFIX, SET_PREFIXES, SOURCE_PREFIX, PackNote, set_part_of_key, url_of_key
from letopis.catalog import Catalog, Cursor, ResourceRow, VersionRow
from letopis.config import StoreSettings
from letopis.store import ChainEntry, CompactionBatch, ContentPlace, SiteTexts, Store, VersionChain
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    from letopis.archive.shared_gate import UpkeepGate

_DAY_MILLIS = 86_400_000


def kept_versions(times: Sequence[int], settings: StoreSettings, now: int) -> list[bool]:
    """For versions oldest first, whether each is kept. The newest always is."""
    keep = [True] * len(times)
    newest = len(times) - 1
    if settings.keep_versions:
        for index in range(max(0, len(times) - settings.keep_versions)):
            keep[index] = False
    if settings.keep_for:
        horizon = now - int(settings.keep_for * 1000)
        # A version counts as old when the one after it is: until then it was what the page showed.
        for index in range(newest):
            keep[index] = keep[index] and times[index + 1] >= horizon
    if settings.thin_after:
        horizon = now - int(settings.thin_after * 1000)
        for index in range(newest):
            same_day = times[index] // _DAY_MILLIS == times[index + 1] // _DAY_MILLIS
            keep[index] = keep[index] and not (same_day and times[index + 1] < horizon)
    if times:
        keep[newest] = True
    return keep


def has_retention_rules(settings: StoreSettings) -> bool:
    """Whether any rule can drop a version."""
    return bool(settings.keep_versions or settings.keep_for or settings.thin_after)


SLICE_SECONDS = 10.0
_SOON_WRITTEN = 4 << 20
"""Compressed bytes whose rewriting is not worth waiting for."""
_SIBLINGS = 12
_DOCUMENTS_AT_ONCE = 256


class CompactReport(NamedTuple):
    """What a compaction did."""

    documents: int
    moved: int
    dropped_versions: int
    bytes_before: int
    bytes_after: int
    finished: bool


class _KeptCheck(NamedTuple):
    """A check with a body, reduced to the facts in its pack record."""

    time: int
    status: int
    head: int
    content: int


class DocumentRange(NamedTuple):
    """Documents whose sorted key and number are above `after`, up to `until`; without `until`, all that follow.

    The last range also contains the bodies that are not versions.
    """

    after: tuple[str, int]
    until: tuple[str, int] | None


class CompactionCounts(NamedTuple):
    """What was done with some documents."""

    documents: int
    moved: int
    dropped: int


ALL_DOCUMENTS = DocumentRange(("", 0), None)


class Compaction:
    """One run over all documents, or over a range of them while other workers process the rest."""

    def __init__(self, catalog: Catalog, gate: UpkeepGate, settings: StoreSettings, now: int) -> None:
        self._catalog = catalog
        self._gate = gate
        self._settings = settings
        self._now = now
        self._sites = SiteTexts(self._siblings)
        self._sparse: frozenset[int] = frozenset()
        self._ids: dict[ContentPlace, int] = {}
        self._moved = 0
        self._dropped = 0
        self._documents = 0

    def run(
        self, effort: Literal["quick", "full"], progress: Callable[[int], None], stop: Callable[[], bool]
    ) -> CompactReport:
        """Processes every document; `progress` is called with how many are done."""
        before, sparse = self.survey()
        finished = self.work(ALL_DOCUMENTS, sparse, effort, progress, stop)
        report = self.end(before, self.done, finished)
        wasteful = self._wasteful() if finished and report.bytes_after > before else frozenset[int]()
        if not wasteful:
            return report
        # Newest versions that were slow to read took more space: what they leave is freed.
        finished = self.work(ALL_DOCUMENTS, wasteful, effort, lambda done: None, stop)
        done = self.done._replace(documents=report.documents)
        return self.end(before, done, finished)

    def empty(self, packs: frozenset[int]) -> CompactReport:
        """Rewrites what is used of some packs, so that these can be removed."""
        before, sparse = self.survey()
        finished = self.work(ALL_DOCUMENTS, sparse | packs, "full")
        with self._gate.open() as store:
            store.begin_behind(packs)
        return self.end(before, self.done, finished)

    def survey(self) -> tuple[int, frozenset[int]]:
        """Bytes of all packs, and the packs that are worth emptying."""
        self._gate.close()  # our own log can be emptied like any other
        with self._gate.open() as store:
            return store.stats().pack_bytes, frozenset(store.sparse(self._catalog.contents.used()))

    def _wasteful(self) -> frozenset[int]:
        """Packs with unused contents, the emptiest first, as far as rewriting them takes little time."""
        used = self._catalog.contents.used()
        with self._gate.open() as store:
            packs = sorted(store.sparse(used, 1.0), key=lambda pack: used.get(pack, 0))
        sizes = accumulate(used.get(pack, 0) for pack in packs)
        return frozenset(pack for pack, size in zip(packs, sizes, strict=True) if size <= _SOON_WRITTEN)

    def work(
        self,
        stretch: DocumentRange,
        sparse: frozenset[int],
        effort: Literal["quick", "full"],
        progress: Callable[[int], None] = lambda done: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Processes the documents of a range; returns whether it came to the end."""
        self._sparse = sparse
        chains = self._chains(stretch)
        finished = False
        while not finished and not stop():
            finished = self._slice(chains, effort, progress, stop)
        return finished

    @property
    def done(self) -> CompactionCounts:
        """What was done so far."""
        return CompactionCounts(self._documents, self._moved, self._dropped)

    def end(self, before: int, done: CompactionCounts, finished: bool) -> CompactReport:
        """Removes packs that are empty now, and returns the totals."""
        released = self._with_store(self._release)
        if finished and done.moved:
            self._catalog.defragment()
        after = self._with_store(lambda store: store.stats().pack_bytes) if released else before
        return CompactReport(*done, before, after, finished)

    def _with_store(self, work: Callable[[Store], int]) -> int:
        with self._gate.open() as store:
            return work(store)

    def _slice(
        self,
        chains: Iterator[VersionChain],
        effort: Literal["quick", "full"],
        progress: Callable[[int], None],
        stop: Callable[[], bool],
    ) -> bool:
        """One batch; True when no chain is left."""
        with self._gate.open() as store:
            for batch in store.compact(
                chains, effort=effort, rewrite=self._sparse, stop=stop, batch_seconds=SLICE_SECONDS, sites=self._sites
            ):
                with self._catalog.transaction() as cursor:
                    self._gate.fence(cursor)
                    self._move(cursor, batch)
                    self._gate.settle(cursor, store)
                progress(self._documents)
                return False
        return True

    def _move(self, cursor: Cursor, batch: CompactionBatch) -> None:
        rows = [(move.stored_bytes, move.method, *move.new, self._ids[move.old]) for move in batch.moves]
        self._catalog.contents.move(cursor, rows)
        self._moved += len(rows)
        self._ids.clear()

    def _chains(self, stretch: DocumentRange) -> Iterator[VersionChain]:
        """The kept versions of each document, read on demand so that their places are current."""
        for name, row in documents_with_versions(self._catalog, stretch.after):
            if stretch.until is not None and (name, row.id) > stretch.until:
                return
            seen = [_KeptCheck(v.time, v.status, v.head, v.content) for v in self._retained(row)]
            yield self._chain(row, seen)._replace(site=site_of(name))
            self._documents += 1
        if stretch.until is None:
            yield from self._error_chains()
            yield from self._sent_chains()
            yield from self._source_chains()
            yield from self._set_chains()

    def _siblings(self, site: bytes) -> Iterator[ChainEntry]:
        """Newest versions of a few documents of a site."""
        for row in self._catalog.resources.under(site.decode(), _SIBLINGS):
            version = self._catalog.versions.by_id(row.newest) if row.newest is not None else None
            content = self._catalog.contents.by_id(version.content) if version is not None else None
            if version is not None and content is not None:
                yield ChainEntry(
                    version.time, b"", content.sha1, ContentPlace(content.pack, content.place, content.slot)
                )

    def _error_chains(self) -> Iterator[VersionChain]:
        """Bodies of errors and redirects: no versions, but kept with their checks."""
        for row in self._catalog.resources.with_error_bodies():
            captures = self._catalog.versions.captures(row.id)
            seen = [_KeptCheck(c.time, c.status, c.head or 0, c.content) for c in captures if c.content is not None]
            yield self._chain(row, seen, version=False)

    def _sent_chains(self) -> Iterator[VersionChain]:
        """What servers sent for versions that a browser rendered."""
        for resource, rows in groupby(self._catalog.renderings.all(), key=lambda sent: sent.resource):
            row = self._catalog.resources.by_id(resource)
            if row is not None:
                seen = [_KeptCheck(one.time, one.status, one.head, one.content) for one in rows]
                chain = self._chain(row, seen, version=False)
                yield chain._replace(key=SENT_PREFIX + chain.key)

    def _source_chains(self) -> Iterator[VersionChain]:
        """Bodies of imported records as they were in their files."""
        for resource, rows in groupby(self._catalog.imported.bodies(), key=lambda one: one.resource):
            row = self._catalog.resources.by_id(resource)
            if row is not None:
                seen = [_KeptCheck(one.time, 0, 0, one.content) for one in rows if one.content is not None]
                chain = self._chain(row, seen, version=False)
                yield chain._replace(key=SOURCE_PREFIX + chain.key)

    def _set_chains(self) -> Iterator[VersionChain]:
        """The parts of capture sets, each with the facts of its check."""
        for part, prefix in enumerate(SET_PREFIXES):
            for resource, rows in groupby(self._catalog.sets.of_part(part), key=lambda one: one.resource):
                row = self._catalog.resources.by_id(resource)
                if row is not None:
                    entries = [self._entry_of(one.content, one.time, one.data) for one in rows]
                    kept = tuple(entry for entry in reversed(entries) if entry is not None)
                    yield VersionChain(prefix + row.url.encode(), kept)

    def _chain(self, row: ResourceRow, seen: Sequence[_KeptCheck], *, version: bool = True) -> VersionChain:
        entries = (self._entry(one, version) for one in reversed(seen))
        return VersionChain(row.url.encode(), tuple(entry for entry in entries if entry is not None))

    def _retained(self, row: ResourceRow) -> list[VersionRow]:
        versions = self._catalog.versions.of(row.id)
        if not has_retention_rules(self._settings):
            return versions
        if len(keep := self._kept(versions)) == len(versions):
            return versions
        with self._catalog.transaction() as cursor:
            # Asked again: an agent on another machine may have recorded a version meanwhile.
            keep = self._kept(self._catalog.versions.of(row.id, cursor))
            self._dropped += self._catalog.versions.drop(cursor, row.id, [version.id for version in keep])
            self._catalog.resources.set_count(cursor, row.id, len(keep))
        return keep

    def _kept(self, versions: Sequence[VersionRow]) -> list[VersionRow]:
        flags = kept_versions([version.time for version in versions], self._settings, self._now)
        return list(compress(versions, flags))

    def _entry(self, seen: _KeptCheck, version: bool) -> ChainEntry | None:
        note = PackNote(seen.status, self._catalog.heads.get(seen.head), version=version)
        return self._entry_of(seen.content, seen.time, note.pack())

    def _entry_of(self, number: int, time: int, note: bytes) -> ChainEntry | None:
        content = self._catalog.contents.by_id(number)
        if content is None:
            return None
        place = ContentPlace(content.pack, content.place, content.slot)
        self._ids[place] = content.id
        return ChainEntry(time, note, content.sha1, place)

    def _release(self, store: Store) -> int:
        with self._catalog.transaction() as cursor:
            self._gate.fence(cursor)
            self._catalog.renderings.drop_orphans(cursor)
            self._catalog.imported.drop_orphans(cursor)
            self._catalog.sets.drop_orphans(cursor)
            self._catalog.contents.drop_unused(cursor)
            others = self._gate.others(cursor)
        live = self._catalog.contents.packs()
        if others is not None:
            return store.release({*live, *others.held}, self._exists, others.newest)
        released = store.release(live, self._exists)
        with self._catalog.transaction() as cursor:
            self._gate.settle(cursor, store)
        return released

    def _exists(self, key: bytes, time: int) -> bool:
        """Whether the catalogue still has a check; versions that retention dropped are gone."""
        row = self._catalog.resources.find(url_of_key(key))
        if row is not None and key.startswith(SOURCE_PREFIX):
            return self._catalog.imported.has_body(row.id, time)
        if row is not None and key.startswith(SENT_PREFIX):
            return self._catalog.renderings.has(row.id, time)
        if row is not None and (part := set_part_of_key(key)) is not None:
            return self._catalog.sets.has(row.id, time, part)
        return row is not None and self._catalog.versions.has_check(row.id, row.versions, time)


def documents_with_versions(catalog: Catalog, after: tuple[str, int] = ("", 0)) -> Iterator[tuple[str, ResourceRow]]:
    """Documents that have versions, each with its sorted key, in the order of the keys."""
    while rows := catalog.resources.with_versions(after, _DOCUMENTS_AT_ONCE):
        yield from rows
        after = (rows[-1][0], rows[-1][1].id)


def site_of(name: str) -> bytes:
    """The host part of a sorted key: the prefix of the keys of a site."""
    host, end, _ = name.partition(")")
    return (host + end).encode()
