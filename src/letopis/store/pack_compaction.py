"""Compaction: chains written anew, smaller, with old versions behind the newest and facts in columns.

First pure decisions (what is written anew, what shares a group), then frames and shared texts, then the run itself.
docs/internals/write-order.md tells why it can be killed anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

from letopis.binary import encode_varint, length_prefixed
from letopis.config.settings import StoreSettings
from letopis.errors import Damaged
from letopis.store import record_bodies
from letopis.store.content_reader import (
    GENERIC_TEXT,
    NO_TEXT,
    CompactionSource,
    SharedText,
    SiteTexts,
    generic_text,
    text_read_cost,
)
from letopis.store.pack_format import (
    FLAG_SOLID,
    MAX_FACT_VERSIONS,
    ChainFacts,
    FrameRef,
    RecordKind,
    RecordMethod,
    SharedTextRef,
    VersionHead,
    encode_frame_head,
    encode_version_head,
)
from letopis.store.packs import Packs, PackWriter
from letopis.store.record_bodies import FrameCoder
from letopis.store.solid.frame_writer import (
    SolidFrame,
    SolidOptions,
    best_shared_text,
    encode_shared_text,
    encode_solid,
    encode_solid_behind,
    paying_shared_text,
)
from letopis.store.values import ChainEntry, CompactionBatch, ContentMove, ContentPlace, VersionChain

READ_BOUND = 2_000_000
"""Coder output that reading any content may take, whatever its size."""
READ_FACTOR = 8
"""Reading a content may take this many times its size, when that is more."""
_MERGE_FACTOR = 2


def affordable_to_read(newest: int, length: int) -> bool:
    """Whether a content may be coded against a newest content of that length."""
    return newest + length <= max(READ_BOUND, READ_FACTOR * length)


def quick_rewrite_count(
    entries: Sequence[ChainEntry], loose: Callable[[ChainEntry], bool], settled: Callable[[ChainEntry], bool]
) -> int:
    """How many of the newest versions a quick compaction writes anew.

    All down to the last loose one (still in a log), then further runs of
    versions as long as they are not much longer than what was taken: each
    version is so written anew only a logarithmic number of times. A run that
    is settled (has its final form) ends it.
    """
    taken = max((index + 1 for index, entry in enumerate(entries) if loose(entry)), default=0)
    while 0 < taken < len(entries):
        run = _same_pack(entries, taken)
        if run > _MERGE_FACTOR * taken or settled(entries[taken]):
            break
        taken += run
    return taken


def frame_groups(lengths: Sequence[int], whole: int) -> Iterator[list[int]]:
    """Splits contents, newest first, into groups that each have a newest of their own.

    The first `whole` contents head groups; a content that is too small for
    the head of its group to be decoded with it goes to the next one.
    """
    for index in range(min(whole - 1, len(lengths))):
        yield [index]
    rest = list(range(max(whole - 1, 0), len(lengths)))
    while rest:
        head = lengths[rest[0]]
        group = [index for index in rest if index == rest[0] or affordable_to_read(head, lengths[index])]
        yield group
        taken = set(group)
        rest = [index for index in rest if index not in taken]


def _same_pack(entries: Sequence[ChainEntry], start: int) -> int:
    pack = entries[start].place.pack
    length = 1
    while start + length < len(entries) and entries[start + length].place.pack == pack:
        length += 1
    return length


_QUICK_BOUND = READ_BOUND // 16


@dataclass(frozen=True, slots=True)
class CodedFrame:
    """Bytes that hold `count` contents, and who reads them."""

    coder: FrameCoder
    data: bytes
    count: int


@dataclass(frozen=True, slots=True)
class FrameGroup:
    """The frames of some contents, newest first, and the text that they need."""

    known: SharedText
    frames: tuple[CodedFrame, ...]


FrameEncoder = Callable[[Sequence[bytes], Sequence[SharedText]], FrameGroup]
"""From contents, newest first, and texts they may lean on."""


def quick_frames(bodies: Sequence[bytes], texts: Sequence[SharedText] = ()) -> FrameGroup:
    """Frames that are made fast. They are kept short, so that they are read fast as well."""
    made = record_bodies.encode_runs(bodies, bound=_QUICK_BOUND)
    return FrameGroup(NO_TEXT, tuple(CodedFrame(record_bodies.RUN_CODER, frame.data, frame.count) for frame in made))


def solid_frames(way: SolidOptions, growth: float) -> FrameEncoder:
    """Frames as small as they get; the newest content may be larger by `growth` if that makes it faster to read."""

    def framing(bodies: Sequence[bytes], texts: Sequence[SharedText]) -> FrameGroup:
        choice = (NO_TEXT, *texts)
        best, size = best_shared_text(bodies[0], [one.text for one in choice])
        known = choice[best]
        fast = record_bodies.encode_newest_run(bodies[0]) if growth else b""
        if fast and len(fast) <= (1 + growth) * size:
            behind = encode_solid_behind(bodies, bound=READ_BOUND, known=known.text, way=way)
            return FrameGroup(known, (CodedFrame(record_bodies.RUN_CODER, fast, 1), *_solid_coded(behind)))
        return FrameGroup(known, tuple(_solid_coded(encode_solid(bodies, bound=READ_BOUND, known=known.text, way=way))))

    return framing


def _solid_coded(frames: Iterable[SolidFrame]) -> Iterator[CodedFrame]:
    return (CodedFrame(record_bodies.SOLID_CODER, frame.data, frame.count) for frame in frames)


def frames_read_back(group: FrameGroup, bodies: Sequence[bytes]) -> bool:
    """Whether the frames give the very same bodies back, within the bound."""
    start = 0
    for number, frame in enumerate(group.frames):
        expected = bodies[start : start + frame.count]
        outside = bodies[0] if number and frame.coder.needs_newest(frame.data) else None
        if frame.coder.decode_all(frame.data, outside, group.known.text) != list(expected):
            return False
        smallest = min(range(frame.count), key=lambda slot: (len(expected[slot]), -slot))
        if any(
            _read_cost(group, frame, slot, outside) > _max_read_cost(expected[slot])
            for slot in {smallest, frame.count - 1}
        ):
            return False
        start += frame.count
    return start == len(bodies)


def _read_cost(group: FrameGroup, frame: CodedFrame, slot: int, outside: bytes | None) -> int:
    """Coder output of a read by somebody who has nothing at hand."""
    found = frame.coder.decode(frame.data, slot, outside, group.known.text)
    newest = 0
    if outside is not None:
        first = group.frames[0]
        newest = first.coder.decode(first.data, 0, None, group.known.text).decoded_bytes
    return found.decoded_bytes + newest + text_read_cost(group.known.at, group.known.text)


def _max_read_cost(body: bytes) -> int:
    return max(READ_BOUND, READ_FACTOR * len(body))


def existing_shared_text(
    sources: CompactionSource, sample: Collection[ChainEntry], dying: Collection[int]
) -> SharedText:
    """The latest text that documents of the site lean on, unless its pack is to be emptied."""
    places = {sources.text_of(entry.place) for entry in sample} - {None, GENERIC_TEXT}
    for at in sorted((at for at in places if at is not None and at.pack not in dying), reverse=True):
        if text := sources.text(at):
            return SharedText(at, text)
    return NO_TEXT


def proposed_shared_text(
    sources: CompactionSource, sample: Collection[ChainEntry], texts: Collection[SharedText]
) -> bytes:
    """A new text that pays for the documents which are about to be written; empty when there is none."""
    pages = []
    for entry in sample:
        with suppress(Damaged):
            body = sources.body(entry.place, entry.digest)
            pages += [body] if body is not None else []
    return paying_shared_text(pages, [known.text for known in texts])


_SEGMENT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """How a compaction works: how it makes frames, how many newest versions stay whole, when a batch is handed out."""

    framing: FrameEncoder
    whole: int
    pack_bytes: int
    batch_seconds: float
    rewrite: frozenset[int]
    clock: Callable[[], float]


def compaction_plan(
    settings: StoreSettings, *, effort: str, rewrite: Collection[int], batch_seconds: float
) -> CompactionPlan:
    """The plan that the settings ask for."""
    slow = effort == "full" and "brotli" in settings.methods
    framing = (
        solid_frames(SolidOptions(settings.chain, settings.level), settings.newest_growth) if slow else quick_frames
    )
    whole = max(1, settings.hot_min)
    return CompactionPlan(framing, whole, settings.pack_bytes, batch_seconds, frozenset(rewrite), monotonic)


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
        self._quick = plan.framing is quick_frames

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
            self._take(chain.key, entry, segment)
            if segment.full:
                self._write(chain, segment)
                segment = _Segment()
        if segment.entries:
            self._write(chain, segment)

    def _share(self, chain: VersionChain) -> int:
        """How many of the newest versions are written anew."""
        if self._quick:
            return quick_rewrite_count(chain.entries, self._loose, self._settled)
        return 0 if self._finished(chain) else len(chain.entries)

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

    def _finished(self, chain: VersionChain) -> bool:
        """Whether a full compaction of the chain would only make the same again."""
        if any(self._loose(entry) for entry in chain.entries):
            return False
        own = {entry.place for entry in chain.entries if self._sources.owned(chain.key, entry.place)}
        frames = {(place.pack, place.offset) for place in own}
        if len({pack for pack, _ in frames}) > 1 or not all(self._sources.solid(pack) for pack, _ in frames):
            return False
        return sum(self._sources.slots(pack, offset) for pack, offset in frames) == len(own)

    def _take(self, key: bytes, entry: ChainEntry, segment: _Segment) -> None:
        """Reads a content that is to move; one that cannot or need not move keeps its place."""
        segment.entries.append(entry)
        place = entry.place
        if place in segment.bodies or place in self._moves or place.pack in self._made:
            return
        if not self._loose(entry) and not self._sources.owned(key, place):
            return
        try:
            body = self._sources.body(place, entry.digest)
            if body is None:
                self._copy_large(key, entry)
                return
        except Damaged:
            self._failed.append(place)
            return
        segment.bodies[place] = body
        segment.raw += len(body)

    def _write(self, chain: VersionChain, segment: _Segment) -> None:
        """Frames of the segment's contents, then its facts."""
        places = list(segment.bodies)
        bodies = list(segment.bodies.values())
        digests = {entry.place: entry.digest for entry in segment.entries}
        held: list[FrameRef] = []
        slots: dict[ContentPlace, int] = {}
        for chosen in frame_groups([len(body) for body in bodies], self._plan.whole):
            group = self._coded([bodies[index] for index in chosen], chain.site)
            for index, (place, size, method) in zip(chosen, self._write_group(chain.key, group, held), strict=True):
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
        group = self._plan.framing(bodies, self._texts(site))
        if frames_read_back(group, bodies):
            return group
        group = quick_frames(bodies)
        if not frames_read_back(group, bodies):
            raise Damaged("a frame just made reads differently; test the memory of this machine, then try again")
        return group

    def _texts(self, site: bytes) -> list[SharedText]:
        """Known texts that a document may lean on."""
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
