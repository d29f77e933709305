"""`letopis clone` and `pull`: an archive made of published files, and brought up to date.

The order of writes is in docs/internals/replica-format.md; every step can be done twice, so a run that was killed or
interrupted is simply restarted.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from letopis.archive import Archive, utc_now
from letopis.archive.clones import CloneRecord, begin_clone_log, clone_settings
from letopis.archive.replica import CheckRecord, ContentRecord, MissingContent, RecordCounts
from letopis.binary import exclusive_lock, rename_durably, write_errors, write_parts_durably
from letopis.config import Settings
from letopis.errors import Damaged, NotFound, Refused, Remedy, UsageError, fill_remedy, pull_remedy
from letopis.exchange.replica import clone_state as states
from letopis.exchange.replica import release as releases
from letopis.exchange.replica.clone_state import CloneSelection, CloneState
from letopis.exchange.replica.contents import ContentFetcher
from letopis.exchange.replica.index_records import (
    HEAD_MARK,
    PACK_MARK,
    SegmentRecord,
    by_address,
    changed_keys,
    check_groups,
    parse_head,
    parse_segment,
)
from letopis.exchange.replica.origin import Origin, canonical_origin, open_origin
from letopis.exchange.replica.pack_files import PackDemand, PackFetcher, PackFiles
from letopis.exchange.replica.release import ArchiveRelease, CloneFolder
from letopis.tuples import NamedTuple
from letopis.urls import site
from letopis.zrec import Traffic, ZrecReader, encode_release, release_path, sync

_EVERYTHING = b"all"
Progress = Callable[[int, int], None]
"""Called with how many bytes have arrived in total, and of how many if that is known by now."""


class PullScope(NamedTuple):
    """What the clone selects. `fill` compares everything again, `repack` takes packs of the origin again."""

    selection: CloneSelection
    fill: bool
    repack: bool
    progress: Progress


class ReleaseFollower:
    """Applies one release. Restarted after an interruption, it continues with what is missing."""

    def __init__(
        self, origin: Origin, folder: CloneFolder, archive: Archive, release: ArchiveRelease, scope: PullScope
    ) -> None:
        self.release = release
        self.packs_fetched = self.packs_reused = self.contents_fetched = self.records_fetched = 0
        self._origin = origin
        self._folder = folder
        self._record = CloneRecord(archive)
        self._scope = scope
        self._come = self._expected = 0

    async def run(self) -> None:
        """The clone shows the release when this returns; before that it shows what it showed."""
        await self._index()
        with ExitStack() as stack:
            new = stack.enter_context(ZrecReader(self._folder.incoming))
            old = stack.enter_context(ZrecReader(self._folder.index)) if self._folder.index.exists() else None
            everything = self._scope.fill or self._scope.repack or self._is_mixed()
            step = _ReleaseStep(self, new, old, None if everything else changed_keys(old, new))
            await step.fetch()
            write_parts_durably(
                self._folder.unsettled, [_EVERYTHING if everything else releases.encode_archive_release(self.release)]
            )
            step.rows()
            step.proof()
            first_own = step.first_own
        self._settle(first_own)

    def _is_mixed(self) -> bool:
        """Whether a run to another release was interrupted among the rows: then no difference says what to do."""
        found = self._folder.unsettled
        return found.exists() and found.read_bytes() != releases.encode_archive_release(self.release)

    async def _index(self) -> None:
        async with self._origin.file(self.release.index, self.release.zrec.size) as source:
            seed = self._folder.index if self._folder.index.exists() else None
            known = encode_release(self.release.zrec)  # it costs no request
            report = await sync(source, self._folder.incoming, seed=seed, progress=self._index_progress, release=known)
        self.records_fetched = report.chunks_fetched
        self._come += report.bytes_downloaded

    def _index_progress(self, done: int, total: int) -> None:
        self._scope.progress(self._come + done, self._come + total)

    def expect(self, size: int) -> None:
        """So many further bytes are expected, as far as is known."""
        self._expected = self._come + size

    def arrived(self, size: int) -> None:
        """Reports the progress of further bytes."""
        self._come += size
        self._scope.progress(self._come, self._expected)

    def _settle(self, first_own: int) -> None:
        """The release becomes the current one; then what it no longer needs is removed."""
        release_path(self._folder.incoming).unlink(missing_ok=True)
        rename_durably(self._folder.incoming, self._folder.index)
        write_parts_durably(self._folder.release, [releases.encode_archive_release(self.release)])
        self._folder.unsettled.unlink()
        self._remove_empty_packs(first_own)
        for path in self._folder.parts.iterdir():
            path.unlink()

    def _remove_empty_packs(self, first_own: int) -> None:
        """Packs of the origin with nothing that is still referred to, and that no other one needs."""
        live = self._record.packs()
        names = {path.name: path for path in self._folder.packs.iterdir() if path.name[:8].isdecimal()}
        empty = {int(name[:8]): path for name, path in names.items() if int(name[:8]) < first_own}
        for pack in empty.keys() & live:
            del empty[pack]
        if empty:
            # A pack that came earlier may need one that the origin no longer has.
            for pack in live:
                for text in self._record.text_packs(pack) & empty.keys():
                    del empty[text]
        for path in empty.values():
            path.unlink()


class _ReleaseStep:
    """The work on one pair of indexes."""

    def __init__(
        self, follower: ReleaseFollower, new: ZrecReader, old: ZrecReader | None, keys: set[bytes] | None
    ) -> None:
        self._f = follower
        self._record = follower._record
        self._scope = follower._scope
        self._new = new
        self._keys = keys
        self._heads = dict(parse_head(line) for line in new.starting(HEAD_MARK))
        self._files = PackFiles(parse_segment(line) for line in new.starting(PACK_MARK))
        self.first_own = begin_clone_log(follower._folder.packs, max(self._files.of_pack, default=0))
        self._fetcher = PackFetcher(follower._origin, follower._folder, follower.arrived)
        trusted = frozenset(parse_segment(line) for line in old.starting(PACK_MARK)) if old else frozenset()
        here = self._files.all()
        self._held = frozenset(one for one in here if self._fetcher.is_here(one, trusted=one in trusted))

    def _groups(self) -> Iterator[tuple[bytes, dict[str, list[CheckRecord]]]]:
        """The URLs that have to be compared and that the clone knows."""
        for key, group in check_groups(self._new, self._keys):
            found = by_address(group)
            yield key, {url: checks for url, checks in found.items() if self._scope.selection.knows(url)}

    def _needs(self) -> Iterator[MissingContent]:
        """Contents that are selected and not here; several checks may refer to one."""
        for _, addresses in self._groups():
            for checks in addresses.values():
                for check in self._scope.selection.wanted(checks):
                    if check.content is not None and not self._has(check.content):
                        yield MissingContent(check.content, check)
                    for one in check.beside:
                        if not self._has(one.content):
                            yield MissingContent(one.content, check, one)

    def _has(self, content: ContentRecord) -> bool:
        if self._is_held(content):
            return True
        return not self._scope.repack and self._record.has(content)

    def _is_held(self, content: ContentRecord) -> bool:
        return self._files.at(content.pack, content.place) in self._held

    async def fetch(self) -> None:
        """Fetches everything that is selected, verified down to the contents."""
        demand = PackDemand(self._files, self._held)
        for need in self._needs():
            demand.add(need.content)
        whole = demand.whole(self._fetcher.lengths(self._held))
        self._f.expect(sum(segment.size for segment in whole))
        await self._fetcher.fetch(whole)
        fresh = frozenset(whole) | await self._leaned_on(self._held.union(whole))
        wanted = list(self._needs())
        self._check(need for need in wanted if self._files.at(need.content.pack, need.content.place) in fresh)
        self._held |= fresh
        self._f.packs_fetched, self._f.packs_reused = len(fresh), len(self._held) - len(fresh)
        await self._take([need for need in wanted if not self._has_anyhow(need.content)])

    async def _leaned_on(self, here: frozenset[SegmentRecord]) -> frozenset[SegmentRecord]:
        """Fetches the files that existing ones need, if an earlier run or release has left them out."""
        packs = {pack for segment in here for pack in self._texts_of(segment)}
        lacking = [one for pack in sorted(packs) for one in self._files.of_pack.get(pack, ()) if one not in here]
        self._f.expect(sum(segment.size for segment in lacking))
        await self._fetcher.fetch(lacking)
        return frozenset(lacking)

    def _texts_of(self, segment: SegmentRecord) -> Collection[int]:
        return self._record.text_packs(segment.pack) if segment.texts is None else segment.texts

    def _check(self, needs: Iterator[MissingContent]) -> None:
        """Reads contents from files that have just arrived: an index could promise what no pack contains."""
        for need in needs:
            self._record.require_body(need.content)

    def _has_anyhow(self, content: ContentRecord) -> bool:
        """By range only what is not here in any form."""
        return self._is_held(content) or self._record.has(content)

    async def _take(self, needs: list[MissingContent]) -> None:
        single = list({(need.content.sha1, need.content.identity): need for need in needs}.values())
        if single:
            self._f.expect(sum(need.content.stored_bytes for need in single))
            places = self._places({need.content.pack for need in single})
            fetcher = ContentFetcher(self._f._origin, self._record, self._heads)
            await fetcher.take(self._files, single, places, self._f.arrived)
        self._f.contents_fetched = len(single)

    def _places(self, packs: set[int]) -> dict[int, list[int]]:
        """Where records begin in some packs, as far as the index has it."""
        found: dict[int, set[int]] = {pack: set() for pack in packs}
        for _, checks in check_groups(self._new, None):
            for check in checks:
                for content in check.contents:
                    if content.pack in found:
                        found[content.pack].add(content.place)
        return {pack: sorted(places) for pack, places in found.items()}

    def rows(self) -> None:
        """Makes the record show the release."""
        self._record.apply(self._groups(), self._heads, self._is_held, repack=self._scope.repack)

    def proof(self) -> None:
        """`Damaged` unless the catalogue has the counts of the release and is consistent."""
        promised = self._f.release.counts if self._scope.selection.has_all_addresses else self._counted()
        found = self._record.counts()
        if found != promised:
            raise Damaged(f"the clone counts {found} and the release {promised}; ask the publisher to publish again")
        for sentence in self._record.contradictions():
            raise Damaged(f"the catalogue of the clone is damaged: {sentence}; clone again into an empty folder")

    def _counted(self) -> RecordCounts:
        """What the index has about the URLs that the clone knows."""
        documents = versions = checks = raw_bytes = 0
        contents: set[tuple[bytes, int]] = set()
        for _, group in check_groups(self._new, None):
            for url, one in by_address(group).items():
                if self._scope.selection.knows(url):
                    documents += 1
                    checks += len(one)
                    found = [check.content for check in one if check.is_version and check.content]
                    versions += len(found)
                    raw_bytes += sum(content.raw_bytes for content in found)
                    contents.update(check.content[:2] for check in one if check.content)
        return RecordCounts(documents, versions, checks, len(contents), raw_bytes)


@dataclass(frozen=True, slots=True)
class CloneReport:
    """What a clone or pull did. Bytes are those on the wire, headers included."""

    serial: int
    up_to_date: bool
    bytes_downloaded: int
    bytes_sent: int
    requests: int
    packs_fetched: int
    packs_reused: int
    contents_fetched: int
    records_fetched: int
    documents: int
    versions: int
    checks: int
    absent: int
    verified: bool


@dataclass(frozen=True, slots=True)
class PullOptions:
    """How a pull differs from the usual one."""

    allow_older: bool = False
    fill: bool = False
    repack: bool = False
    key: bytes | None = None


def clone(
    address: str,
    path: Path,
    selection: CloneSelection,
    settings: Settings,
    *,
    key: bytes | None = None,
    progress: Progress = lambda done, of: None,
    clock: Callable[[], datetime] = utc_now,
) -> CloneReport:
    """Makes a folder a clone of a published archive; continues one that was interrupted."""
    folder = CloneFolder(path)
    state = CloneState(canonical_origin(address), selection, key is not None)
    with write_errors(path):
        is_new, is_made = not folder.marker.exists(), not path.exists()
        spent = _probe_origin(state.origin, settings, clock) if is_new else Traffic()
        with exclusive_lock(folder.lock, f"works on {path}"):
            states.begin_clone(folder, state)
            report = _run(folder, state, PullOptions(key=key), settings, progress, clock)
            if selection.site and not report.documents:
                if is_new:
                    _remove_clone(folder)
                if is_made:
                    path.rmdir()
                raise NotFound(f"no page of {site(selection.site)} is in the archive published there")
    return replace(
        report,
        bytes_downloaded=report.bytes_downloaded + spent.received,
        bytes_sent=report.bytes_sent + spent.sent,
        requests=report.requests + spent.requests,
    )


def _remove_clone(folder: CloneFolder) -> None:
    """Leaves the folder as empty as it was; the marker goes last, so that a kill leaves the beginning of a clone."""
    for path in folder.archive.iterdir():
        if path != folder.folder:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(folder.folder)


def _probe_origin(origin: str, settings: Settings, clock: Callable[[], datetime]) -> Traffic:
    """Creates nothing here before the origin has answered; returns what that transferred."""

    async def probe() -> Traffic:
        async with open_origin(origin, settings.fetch, clock) as source:
            releases.parse_archive_release(await source.release())
            return source.traffic

    return asyncio.run(probe())


def pull(
    path: Path,
    options: PullOptions,
    settings: Settings,
    *,
    progress: Progress = lambda done, of: None,
    clock: Callable[[], datetime] = utc_now,
) -> CloneReport:
    """Brings a clone up to date, transferring only differences."""
    folder = states.clone_folder(path)
    with write_errors(path), exclusive_lock(folder.lock, f"works on {path}"):
        state = states.read_state(folder)
        if state.signed and options.key is None:
            raise UsageError(
                "this clone was made with a key",
                Remedy(f"pull {path} --key FILE", "letopis.exchange.replica.PullOptions(key=)", "give it again with"),
            )
        if options.fill and state.selection != CloneSelection(site=state.selection.site):
            state = replace(state, selection=CloneSelection(site=state.selection.site))
            states.write_state(folder, state)
        return _run(folder, state, options, settings, progress, clock)


def detach(path: Path, settings: Settings) -> None:
    """Makes a clone an independent archive, permanently; `Refused` while contents are missing."""
    folder = states.clone_folder(path)
    with write_errors(path), exclusive_lock(folder.lock, f"works on {path}"):
        if states.applied_release(folder) is None:
            raise Refused(f"{path} is not complete", pull_remedy(path)._replace(lead="finish it first with"))
        with Archive(path, settings=clone_settings(settings), following=True) as archive:
            record = CloneRecord(archive)
            if missing := record.absent():
                raise Refused(f"{missing} contents are not fetched yet", fill_remedy(path))
            record.settle()
        folder.marker.unlink()
    shutil.rmtree(folder.folder)


def _run(
    folder: CloneFolder,
    state: CloneState,
    options: PullOptions,
    settings: Settings,
    progress: Progress,
    clock: Callable[[], datetime],
) -> CloneReport:
    async def whole() -> CloneReport:
        async with open_origin(state.origin, settings.fetch, clock) as origin:
            return await _pulled(origin, folder, state, options, archive, progress)

    with Archive(folder.archive, settings=clone_settings(settings), following=True) as archive:
        return asyncio.run(whole())


async def _pulled(
    origin: Origin, folder: CloneFolder, state: CloneState, options: PullOptions, archive: Archive, progress: Progress
) -> CloneReport:
    known = states.applied_release(folder)
    scope = PullScope(state.selection, options.fill, options.repack, progress)
    try:
        follower = await _accepted(origin, folder, options, archive, scope)
    except NotFound:
        # The publisher has published again between the two requests: its release now names another index.
        follower = await _accepted(origin, folder, options, archive, scope)
    record, traffic = CloneRecord(archive), origin.traffic
    counts = record.counts()
    return CloneReport(
        serial=follower.release.serial,
        up_to_date=follower.release == known and not follower.packs_fetched and not follower.contents_fetched,
        bytes_downloaded=traffic.received, bytes_sent=traffic.sent, requests=traffic.requests,
        packs_fetched=follower.packs_fetched, packs_reused=follower.packs_reused,
        contents_fetched=follower.contents_fetched, records_fetched=follower.records_fetched,
        documents=counts.documents, versions=counts.versions, checks=counts.checks, absent=record.absent(),
        verified=True,
    )  # fmt: skip


async def _accepted(
    origin: Origin, folder: CloneFolder, options: PullOptions, archive: Archive, scope: PullScope
) -> ReleaseFollower:
    found = releases.parse_archive_release(await origin.release())
    if options.key is not None:
        found.check_signature(options.key)
    states.require_next_release(found, states.applied_release(folder), allow_older=options.allow_older)
    follower = ReleaseFollower(origin, folder, archive, found, scope)
    known = found == states.applied_release(folder) and not folder.unsettled.exists()
    if not known or scope.fill or scope.repack:
        if known:
            shutil.copyfile(folder.index, folder.incoming)
        await follower.run()
    return follower
