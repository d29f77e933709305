"""One release taken over by a clone: index, packs, contents, rows, proof."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import NamedTuple

from letopis.archive import Archive
from letopis.catalog import ABSENT
from letopis.errors import Damaged
from letopis.exchange.replica import release as releases
from letopis.exchange.replica.applying import Reconciler
from letopis.exchange.replica.comparing import by_address, changed_keys, check_groups
from letopis.exchange.replica.durable import named, settled
from letopis.exchange.replica.fetching import PackFetcher
from letopis.exchange.replica.keeping import Keeper
from letopis.exchange.replica.layout import FIRST_OWN_PACK, CloneFolder
from letopis.exchange.replica.origin import Origin
from letopis.exchange.replica.planning import Demand, Need, PackFiles
from letopis.exchange.replica.records import (
    HEAD,
    PACK,
    CheckRecord,
    ContentRecord,
    parse_head,
    parse_segment,
)
from letopis.exchange.replica.release import ArchiveRelease, Counts
from letopis.exchange.replica.selection import Selection
from letopis.exchange.replica.taking import Taker, checked_body
from letopis.zrec import RangeSource, Reader, Traffic, encode_release, release_path, sync

_ALL = b"all"
_AT_ONCE = 300
"""SURT keys a transaction."""


class Wish(NamedTuple):
    """What the clone wants. `fill` looks at everything again, `repack` takes the origin's packs for what is here."""

    selection: Selection
    fill: bool
    repack: bool
    progress: Callable[[int], None]


class Follower:
    """Takes over one release. Begun again after a break, it finds what is already done."""

    def __init__(
        self, origin: Origin, folder: CloneFolder, archive: Archive, release: ArchiveRelease, wish: Wish
    ) -> None:
        self.release = release
        self.packs_fetched = self.packs_reused = self.contents_fetched = self.records_fetched = 0
        self._origin = origin
        self._folder = folder
        self._archive = archive
        self._wish = wish
        self._come = 0

    async def run(self) -> None:
        """The clone shows the release when this returns; before that it shows what it showed."""
        await self._index()
        with ExitStack() as stack:
            new = stack.enter_context(Reader(self._folder.incoming))
            old = stack.enter_context(Reader(self._folder.index)) if self._folder.index.exists() else None
            everything = self._wish.fill or self._wish.repack or self._is_mixed()
            step = _Step(self, new, old, None if everything else changed_keys(old, new))
            await step.fetch()
            settled(self._folder.unsettled, [_ALL if everything else releases.encode(self.release)])
            step.rows()
            step.proof()
        self._settle()

    def _is_mixed(self) -> bool:
        """Whether a run towards another release was broken off among the rows: then no difference tells what to do."""
        found = self._folder.unsettled
        return found.exists() and found.read_bytes() != releases.encode(self.release)

    async def _index(self) -> None:
        async with self._origin.file(self.release.index, self.release.zrec.size) as source:
            seed = self._folder.index if self._folder.index.exists() else None
            told = _Named(source, encode_release(self.release.zrec))
            report = await sync(told, self._folder.incoming, seed=seed, progress=self._index_progress)
        self.records_fetched = report.chunks_fetched
        self._come += report.bytes_downloaded

    def _index_progress(self, done: int, total: int) -> None:
        self._wish.progress(self._come + done)

    def arrived(self, size: int) -> None:
        """Tells the progress of further bytes."""
        self._come += size
        self._wish.progress(self._come)

    def _settle(self) -> None:
        """The release becomes the one that is here; then what it no longer needs goes."""
        release_path(self._folder.incoming).unlink(missing_ok=True)
        named(self._folder.incoming, self._folder.index)
        settled(self._folder.release, [releases.encode(self.release)])
        self._folder.unsettled.unlink()
        live = self._archive.catalog.contents.packs()
        for path in self._folder.packs.iterdir():
            number = int(path.name.split(".")[0]) if path.name[:8].isdecimal() else FIRST_OWN_PACK
            if number < FIRST_OWN_PACK and number not in live:
                path.unlink()
        for path in self._folder.parts.iterdir():
            path.unlink()


class _Step:
    """The work on one pair of indexes."""

    def __init__(self, follower: Follower, new: Reader, old: Reader | None, keys: set[bytes] | None) -> None:
        self._f = follower
        self._archive = follower._archive
        self._wish = follower._wish
        self._new = new
        self._keys = keys
        self._heads = dict(parse_head(line) for line in new.starting(HEAD))
        self._files = PackFiles(parse_segment(line) for line in new.starting(PACK))
        self._fetcher = PackFetcher(follower._origin, follower._folder, follower.arrived)
        trusted = frozenset(parse_segment(line) for line in old.starting(PACK)) if old else frozenset()
        here = self._files.all()
        self._held = frozenset(one for one in here if self._fetcher.is_here(one, trusted=one in trusted))

    def _groups(self) -> Iterator[tuple[bytes, dict[str, list[CheckRecord]]]]:
        """The addresses that have to be looked at and that the clone knows."""
        for key, checks in check_groups(self._new, self._keys):
            found = by_address(checks)
            yield key, {url: told for url, told in found.items() if self._wish.selection.knows(url)}

    def _needs(self) -> Iterator[Need]:
        """Contents that are wanted and not here; several checks may tell of one."""
        for _, addresses in self._groups():
            for checks in addresses.values():
                for check in self._wish.selection.wanted(checks):
                    if check.content is not None and not self._has(check.content):
                        yield Need(check.content, check)

    def _has(self, content: ContentRecord) -> bool:
        if self._is_held(content):
            return True
        found = self._archive.catalog.contents.find(content.identity, content.sha1)
        return found is not None and found.method != ABSENT and not self._wish.repack

    def _is_held(self, content: ContentRecord) -> bool:
        return self._files.at(content.pack, content.place) in self._held

    async def fetch(self) -> None:
        """Brings everything that is wanted, checked down to the contents."""
        demand = Demand(self._files, self._held)
        for need in self._needs():
            demand.add(need.content)
        whole = demand.whole(self._fetcher.lengths(self._held))
        await self._fetcher.fetch(whole)
        fresh = frozenset(whole)
        wanted = list(self._needs())
        self._check(need for need in wanted if self._files.at(need.content.pack, need.content.place) in fresh)
        self._held |= fresh
        self._f.packs_fetched, self._f.packs_reused = len(whole), len(self._held) - len(whole)
        await self._take([need for need in wanted if not self._has_anyhow(need.content)])

    def _check(self, needs: Iterator[Need]) -> None:
        """Reads contents out of files that have just come: an index could promise what no pack holds."""
        for need in needs:
            checked_body(self._archive.store, need.content)

    def _has_anyhow(self, content: ContentRecord) -> bool:
        """By range only what is not here in any form."""
        if self._is_held(content):
            return True
        found = self._archive.catalog.contents.find(content.identity, content.sha1)
        return found is not None and found.method != ABSENT

    async def _take(self, needs: list[Need]) -> None:
        single = list({(need.content.sha1, need.content.identity): need for need in needs}.values())
        if single:
            places = self._places({need.content.pack for need in single})
            taker = Taker(self._f._origin, Keeper(self._archive, self._heads))
            await taker.take(self._files, single, places, self._f.arrived)
        self._f.contents_fetched = len(single)

    def _places(self, packs: set[int]) -> dict[int, list[int]]:
        """Where records begin in some packs, as far as the index tells."""
        found: dict[int, set[int]] = {pack: set() for pack in packs}
        for _, checks in check_groups(self._new, None):
            for check in checks:
                if check.content is not None and check.content.pack in found:
                    found[check.content.pack].add(check.content.place)
        return {pack: sorted(places) for pack, places in found.items()}

    def rows(self) -> None:
        """Makes the catalogue show the release, some hundreds of keys a transaction."""
        catalog = self._archive.catalog
        reconciler = Reconciler(catalog, self._heads, self._is_held, repack=self._wish.repack)
        groups = self._groups()
        while batch := list(islice(groups, _AT_ONCE)):
            with catalog.transaction() as cursor:
                for key, addresses in batch:
                    reconciler.key(cursor, key, addresses)
        with catalog.transaction() as cursor:
            catalog.contents.drop_unused(cursor)

    def proof(self) -> None:
        """`Damaged` unless the catalogue counts what the release counts and contradicts itself nowhere."""
        promised = self._f.release.counts if self._wish.selection.has_all_addresses else self._counted()
        totals = self._archive.catalog.totals()
        found = Counts(totals.documents, totals.versions, totals.checks, totals.contents, totals.raw_bytes)
        if found != promised:
            raise Damaged(f"the clone counts {found} and the release {promised}; ask the publisher to publish again")
        for sentence in self._archive.catalog.integrity():
            raise Damaged(f"the clone's catalogue is not sound: {sentence}; clone again into an empty folder")

    def _counted(self) -> Counts:
        """What the index holds of the addresses that the clone knows."""
        documents = versions = checks = raw_bytes = 0
        contents: set[tuple[bytes, int]] = set()
        for _, told in check_groups(self._new, None):
            for url, one in by_address(told).items():
                if self._wish.selection.knows(url):
                    documents += 1
                    checks += len(one)
                    found = [check.content for check in one if check.is_version and check.content]
                    versions += len(found)
                    raw_bytes += sum(content.raw_bytes for content in found)
                    contents.update(check.content[:2] for check in one if check.content)
        return Counts(documents, versions, checks, len(contents), raw_bytes)


class _Named:
    """A source whose release is already known."""

    def __init__(self, source: RangeSource, release: bytes) -> None:
        self._source = source
        self._release = release

    @property
    def traffic(self) -> Traffic:
        """Counted up to now."""
        return self._source.traffic

    async def size(self) -> int:
        """Length of the file."""
        return await self._source.size()

    async def read(self, start: int, end: int) -> bytes:
        """A part of the file."""
        return await self._source.read(start, end)

    async def read_release(self) -> bytes | None:
        """The release that the archive's own release contains: it costs no request."""
        return self._release

    def stream(self) -> AsyncIterator[bytes]:
        """The whole file."""
        return self._source.stream()
