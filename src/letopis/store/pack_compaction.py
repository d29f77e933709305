"""Compaction: rewrites chains smaller, with old versions after the newest and facts in columns.

Nothing is written that takes more than it frees: contents whose packs stay are rewritten only if contents whose packs
are removed free enough, and what no frame makes smaller is copied unchanged. The only exception is a newest version
that is slow to read.

First pure decisions (what is rewritten, what shares a group), then frames and shared texts, then the run itself.
docs/internals/write-order.md explains why it can be killed anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

from letopis.binary import encode_varint, length_prefixed
from letopis.config.settings import StoreSettings
from letopis.errors import Damaged
from letopis.store.content_reader import NO_TEXT, CompactionSource, SharedText, SiteTexts, generic_text
from letopis.store.frame_groups import (
    FrameEncoder,
    FrameGroup,
    existing_shared_text,
    frame_groups,
    frames_read_back,
    proposed_shared_text,
    quick_frames,
    solid_frames,
)
from letopis.store.pack_format import (
    FLAG_SOLID,
    MAX_FACT_VERSIONS,
    ChainFacts,
    FrameRef,
    PackRecord,
    RecordKind,
    RecordMethod,
    SharedTextRef,
    VersionHead,
    encode_frame_head,
    encode_version_head,
)
from letopis.store.packs import Packs, PackWriter
from letopis.store.record_bodies import CompressedContent, ContentCompressor, body_label
from letopis.store.solid.frame_writer import SolidOptions, encode_shared_text
from letopis.store.values import ChainEntry, CompactionBatch, ContentMove, ContentPlace, VersionChain

_MERGE_FACTOR = 2


def quick_rewrite_count(
    entries: Sequence[ChainEntry], loose: Callable[[ChainEntry], bool], settled: Callable[[ChainEntry], bool]
) -> int:
    """How many of the newest versions a quick compaction rewrites.

    All down to the last loose one (still in a log), then further runs of versions as long as they are not much longer
    than what was taken, so that each version is rewritten only a logarithmic number of times. A run that is settled
    (has its final form) ends it.
    """
    taken = max((index + 1 for index, entry in enumerate(entries) if loose(entry)), default=0)
    while 0 < taken < len(entries):
        run = _same_pack(entries, taken)
        if run > _MERGE_FACTOR * taken or settled(entries[taken]):
            break
        taken += run
    return taken


def _same_pack(entries: Sequence[ChainEntry], start: int) -> int:
    pack = entries[start].place.pack
    length = 1
    while start + length < len(entries) and entries[start + length].place.pack == pack:
        length += 1
    return length


_SEGMENT_BYTES = 64 << 20
_RECORD_BYTES = 32
"""About what a record takes besides its content."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """How a compaction works: how it makes frames, how many newest versions stay whole, when a batch is returned.

    Without `framing` contents stay separate, each by the smallest of the methods that the settings allow.
    """

    framing: FrameEncoder | None
    whole: int
    pack_bytes: int
    batch_seconds: float
    rewrite: frozenset[int]
    clock: Callable[[], float]
    methods: tuple[str, ...] = ("stored", "zstd", "brotli")


def compaction_plan(
    settings: StoreSettings, *, effort: str, rewrite: Collection[int], batch_seconds: float
) -> CompactionPlan:
    """The plan that the settings define."""
    framing: FrameEncoder | None = quick_frames if "zstd" in settings.methods else None
    if effort == "full" and "brotli" in settings.methods:
        framing = solid_frames(SolidOptions(settings.chain, settings.level), settings.newest_growth)
    whole = max(1, settings.hot_min)
    return CompactionPlan(
        framing, whole, settings.pack_bytes, batch_seconds, frozenset(rewrite), monotonic, settings.methods
    )


@dataclass(slots=True)
class _Segment:
    """Consecutive versions of one document that are written together."""

    entries: list[ChainEntry] = field(default_factory=list)
    bodies: dict[ContentPlace, bytes] = field(default_factory=dict)
    raw: int = 0

    @property
    def full(self) -> bool:
        return self.raw >= _SEGMENT_BYTES or len(self.entries) >= MAX_FACT_VERSIONS


class Compactor:
    """One run over many chains. Memory holds one segment and the moves of one batch."""

    def __init__(self, packs: Packs, sources: CompactionSource, plan: CompactionPlan, sites: SiteTexts) -> None:
        self._packs = packs
        self._sources = sources
        self._plan = plan
        self._sites = sites
        sites.keep(packs.refresh())
        self._out: PackWriter | None = None
        self._made: set[int] = set()
        self._moves: dict[ContentPlace, ContentMove] = {}
        self._failed: list[ContentPlace] = []
        self._chains = 0
        self._begun = plan.clock()
        self._quick = plan.framing is quick_frames or plan.framing is None
        self._compressor = ContentCompressor(plan.methods)

    def run(self, chains: Iterable[VersionChain], stop: Callable[[], bool]) -> Iterator[CompactionBatch]:
        """Durable batches of moves; each must be committed before the next is asked for."""
        try:
            for chain in chains:
                if stop():
                    break
                self._compact(chain)
                self._chains += 1
                if self._due():
                    yield self._batch()
            if self._chains:
                yield self._batch()
        finally:
            if self._out is not None:
                self._out.discard()
                self._sites.keep(self._packs.refresh())

    def _due(self) -> bool:
        if self._out is not None and self._out.end >= self._plan.pack_bytes:
            return True
        return self._plan.clock() - self._begun >= self._plan.batch_seconds

    def _batch(self) -> CompactionBatch:
        size = 0
        if self._out is not None:
            size = self._out.commit()
            self._out = None
        done = CompactionBatch(tuple(self._moves.values()), self._chains, size, tuple(self._failed))
        self._moves, self._failed, self._chains = {}, [], 0
        self._begun = self._plan.clock()
        return done

    def _compact(self, chain: VersionChain) -> None:
        segment = _Segment()
        for entry in chain.entries[: self._share(chain)]:
            self._take(chain, entry, segment)
            if segment.full:
                self._write(chain, segment)
                segment = _Segment()
        if segment.entries:
            self._write(chain, segment)

    def _share(self, chain: VersionChain) -> int:
        """How many of the newest versions are rewritten.

        Versions whose packs stay are included only while they are no longer than those whose packs are removed: each is
        rewritten a logarithmic number of times, and none before enough space is freed.
        """
        entries = chain.entries
        last = max((index + 1 for index, entry in enumerate(entries) if self._sets_free(entry)), default=0)
        if not last:
            return 1 if self._newest_is_slow(chain) else 0
        count = quick_rewrite_count(entries, self._loose, self._settled) if self._quick else len(entries)
        own = {entry.place: self._sets_free(entry) for entry in entries[:count] if self._may_move(chain.key, entry)}
        freed = sum(self._sources.stored_bytes(place) for place, free in own.items() if free)
        again = sum(self._sources.stored_bytes(place) for place, free in own.items() if not free)
        return count if again <= freed else last

    def _sets_free(self, entry: ChainEntry) -> bool:
        """Whether the pack of a content is removed when all that compaction takes from it has moved."""
        pack = entry.place.pack
        return self._loose(entry) or not (self._quick or pack in self._made or self._sources.solid(pack))

    def _may_move(self, key: bytes, entry: ChainEntry) -> bool:
        """Whether a content belongs to this document and may be moved; those of others stay with them."""
        return self._loose(entry) or self._sources.owned(key, entry.place)

    def _newest_is_slow(self, chain: VersionChain) -> bool:
        """Whether the newest version equals an old one that needs others to be read."""
        with suppress(Damaged):
            newest = chain.entries[0] if chain.entries else None
            return newest is not None and newest.place.pack not in self._made and self._sources.slow(newest.place)
        return False

    def _loose(self, entry: ChainEntry) -> bool:
        """Whether a content has to move. A quick run never turns the final form back into the quick one."""
        pack = entry.place.pack
        if pack in self._made:
            return False
        if self._sources.in_log(pack):
            return True
        if self._quick and self._sources.solid(pack):
            return False
        return pack in self._plan.rewrite or self._needs_dying_text(entry)

    def _needs_dying_text(self, entry: ChainEntry) -> bool:
        """Whether a content needs the known text of a pack that is to be emptied."""
        at = self._sources.text_of(entry.place) if self._plan.rewrite else None
        return at is not None and at.pack in self._plan.rewrite

    def _settled(self, entry: ChainEntry) -> bool:
        return self._sources.solid(entry.place.pack)

    def _take(self, chain: VersionChain, entry: ChainEntry, segment: _Segment) -> None:
        """Reads a content that is to move; one that cannot or need not move keeps its place.

        A newest version that is slow to read moves even from the frames of another document.
        """
        segment.entries.append(entry)
        place = entry.place
        if place in segment.bodies or place in self._moves or place.pack in self._made:
            return
        if not self._may_move(chain.key, entry) and not (entry is chain.entries[0] and self._newest_is_slow(chain)):
            return
        try:
            body = self._sources.body(place, entry.digest)
            if body is None:
                self._copy_large(chain.key, entry)
                return
        except Damaged:
            self._failed.append(place)
            return
        segment.bodies[place] = body
        segment.raw += len(body)

    def _write(self, chain: VersionChain, segment: _Segment) -> None:
        """Frames of the contents of the segment, then its facts; or its contents separately, if those take less."""
        bodies = list(segment.bodies.values())
        chosen = list(frame_groups([len(body) for body in bodies], self._plan.whole))
        groups = self._coded_groups([[bodies[index] for index in group] for group in chosen], chain.site)
        apart = self._apart(segment)
        if groups is None or (apart and _size_of_frames(groups) > _size_apart(chain.key, segment, apart)):
            self._write_apart(chain.key, segment, apart)
        else:
            self._write_frames(chain, segment, chosen, groups)

    def _coded_groups(self, groups: Sequence[Sequence[bytes]], site: bytes) -> list[FrameGroup] | None:
        """None if the settings allow no frames."""
        if self._plan.framing is None:
            return None
        return [self._coded(bodies, site) for bodies in groups]

    def _apart(self, segment: _Segment) -> dict[ContentPlace, CompressedContent]:
        """What has to move, each content separately: unchanged, or by the methods of the settings if it used others.

        Empty if frames must be made, since some of it is in one now.
        """
        frames = self._plan.framing is not None
        moving = {entry.place for entry in segment.entries if not frames or self._sets_free(entry)}
        records = {place: self._sources.version_record(place) for place in segment.bodies if place in moving}
        if frames and None in records.values():
            return {}
        return {place: self._alone(record, segment.bodies[place]) for place, record in records.items()}

    def _alone(self, record: PackRecord | None, body: bytes) -> CompressedContent:
        if record is None:
            return self._compressor.compress_content(body)
        there = CompressedContent(RecordMethod(record.method), record.body, body_label(record.method, record.body))
        if there.label in self._plan.methods:
            return there
        return min(self._compressor.compress_content(body), there, key=lambda one: len(one.body))

    def _write_apart(self, key: bytes, segment: _Segment, apart: dict[ContentPlace, CompressedContent]) -> None:
        """Records of single versions, which include their facts; the facts of those that repeat them follow."""
        written: set[ContentPlace] = set()
        repeats = []
        for entry in segment.entries:
            form = apart.get(entry.place)
            if form is None:
                continue
            if entry.place in written:
                repeats.append(entry)
                continue
            written.add(entry.place)
            raw = len(segment.bodies[entry.place])
            head = encode_version_head(VersionHead(key, entry.time, entry.digest, entry.note, raw))
            out = self._open()
            offset, length = out.add(RecordKind.VERSION, form.method, head, form.body)
            new = ContentPlace(out.pack, offset, 0)
            self._moves[entry.place] = ContentMove(entry.digest, entry.place, new, length, form.label)
        if repeats:
            self._open().add_facts(_chain_facts(key, repeats, [], {}))

    def _write_frames(
        self, chain: VersionChain, segment: _Segment, chosen: Sequence[Sequence[int]], groups: Sequence[FrameGroup]
    ) -> None:
        places = list(segment.bodies)
        digests = {entry.place: entry.digest for entry in segment.entries}
        held: list[FrameRef] = []
        slots: dict[ContentPlace, int] = {}
        for indexes, group in zip(chosen, groups, strict=True):
            for index, (place, size, method) in zip(indexes, self._write_group(chain.key, group, held), strict=True):
                old = places[index]
                slots[old] = len(slots)
                self._moves[old] = ContentMove(digests[old], old, place, size, method.label)
        self._open().add_facts(_chain_facts(chain.key, segment.entries, held, slots))

    def _write_group(
        self, key: bytes, group: FrameGroup, held: list[FrameRef]
    ) -> Iterator[tuple[ContentPlace, int, RecordMethod]]:
        """Writes the frames of one group; place, share and method of each content."""
        out = self._open()
        first = out.end
        for frame in group.frames:
            head = encode_frame_head(out.end - first, frame.count, key, group.known.at)
            offset, _ = out.add(RecordKind.FRAME, frame.coder.method, head, frame.data)
            held.append(FrameRef(offset, frame.count))
            shares = frame.coder.shares(frame.data, frame.count, offset == first)
            for slot, share in enumerate(shares):
                yield ContentPlace(out.pack, offset, slot), share, frame.coder.method

    def _coded(self, bodies: Sequence[bytes], site: bytes) -> FrameGroup:
        """Frames that were decoded again and found equal and affordable; else those made the quick way."""
        assert self._plan.framing is not None
        group = self._plan.framing(bodies, self._texts(site))
        if frames_read_back(group, bodies):
            return group
        group = quick_frames(bodies)
        if not frames_read_back(group, bodies):
            raise Damaged("a new frame reads back differently; test the memory of this machine, then try again")
        return group

    def _texts(self, site: bytes) -> list[SharedText]:
        """Known texts that a document may use."""
        if self._quick:
            return []
        own = self._site_text(site) if site else NO_TEXT
        return [generic_text(), own] if own.at is not None else [generic_text()]

    def _site_text(self, site: bytes) -> SharedText:
        known = self._sites.decided(site)
        if known is None:
            sample = self._sites.sample(site)
            known = existing_shared_text(self._sources, sample, self._plan.rewrite)
            moving = [entry for entry in sample if self._loose(entry) or not self._settled(entry)]
            new = proposed_shared_text(self._sources, moving, [generic_text(), known] if known.at else [generic_text()])
            known = self._write_text(site, new) if new else known
            self._sites.decide(site, known)
        return known

    def _write_text(self, site: bytes, known: bytes) -> SharedText:
        out = self._open()
        offset, _ = out.add(
            RecordKind.TEXT, RecordMethod.SOLID, length_prefixed(site), encode_shared_text(known, generic_text().text)
        )
        return SharedText(SharedTextRef(out.pack, offset), known)

    def _copy_large(self, key: bytes, entry: ChainEntry) -> None:
        """Copies a content in pieces, one piece at a time."""
        out = self._open()
        pieces: list[tuple[int, int]] = []
        stored = 0
        for method, body, raw in self._sources.pieces(entry.place):
            offset, length = out.add(RecordKind.PIECE, method, b"", body)
            pieces.append((offset, raw))
            stored += length
        head = VersionHead(key, entry.time, entry.digest, entry.note, sum(raw for _, raw in pieces))
        listing = b"".join(encode_varint(out.end - offset) + encode_varint(raw) for offset, raw in pieces)
        offset, length = out.add(
            RecordKind.VERSION, RecordMethod.PIECES, encode_version_head(head), encode_varint(len(pieces)) + listing
        )
        place = ContentPlace(out.pack, offset, 0)
        self._moves[entry.place] = ContentMove(
            entry.digest, entry.place, place, stored + length, RecordMethod.PIECES.label
        )

    def _open(self) -> PackWriter:
        if self._out is None:
            self._out = PackWriter(self._packs, 0 if self._quick else FLAG_SOLID)
            self._made.add(self._out.pack)
        return self._out


def _size_of_frames(groups: Iterable[FrameGroup]) -> int:
    return sum(len(frame.data) + _RECORD_BYTES for group in groups for frame in group.frames)


def _size_apart(key: bytes, segment: _Segment, apart: dict[ContentPlace, CompressedContent]) -> int:
    heads = sum(len(key) + len(entry.note) + _RECORD_BYTES for entry in segment.entries if entry.place in apart)
    return heads + sum(len(form.body) for form in apart.values())


def _chain_facts(
    key: bytes, entries: Sequence[ChainEntry], held: Sequence[FrameRef], slots: dict[ContentPlace, int]
) -> ChainFacts:
    return ChainFacts(
        key,
        tuple(held),
        tuple(entry.time for entry in entries),
        tuple(entry.note for entry in entries),
        tuple(slots.get(entry.place, entry.digest) for entry in entries),
    )
