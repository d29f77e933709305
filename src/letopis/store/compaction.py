"""Writes chains anew, smaller: old versions behind the newest, facts in columns.

docs/internals/write-order.md tells why it can be killed anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic

from letopis.config.sections import StoreSettings
from letopis.errors import Damaged
from letopis.store.columns import MOST_VERSIONS, ChainFacts, Held
from letopis.store.drafts import PackWriter
from letopis.store.framing import Framing, Group, quick, solid, sound
from letopis.store.grouping import groups, quick_share
from letopis.store.layout import FLAG_SOLID, Kind, Method, TextAt, VersionHead, frame_head, version_head
from letopis.store.leaning import existing, proposed
from letopis.store.packs import Packs
from letopis.store.sites import Sites
from letopis.store.solid.site import encode_known
from letopis.store.solid.writing import Way
from letopis.store.sources import Sources
from letopis.store.texts import NOTHING, Known, generic
from letopis.store.values import Chain, Compacted, Entry, Move, Place
from letopis.store.varint import text, varint

_SEGMENT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Plan:
    """How a compaction works: how it makes frames, how many newest versions stay whole, when a batch is handed out."""

    framing: Framing
    whole: int
    pack_bytes: int
    batch_seconds: float
    rewrite: frozenset[int]
    clock: Callable[[], float]


def plan_for(settings: StoreSettings, *, effort: str, rewrite: Collection[int], batch_seconds: float) -> Plan:
    """The plan that the settings ask for."""
    slow = effort == "full" and "brotli" in settings.methods
    framing = solid(Way(settings.chain, settings.level), settings.newest_growth) if slow else quick
    whole = max(1, settings.hot_min)
    return Plan(framing, whole, settings.pack_bytes, batch_seconds, frozenset(rewrite), monotonic)


@dataclass(slots=True)
class _Segment:
    """Consecutive versions of one document that are written together."""

    entries: list[Entry] = field(default_factory=list)
    bodies: dict[Place, bytes] = field(default_factory=dict)
    raw: int = 0

    @property
    def full(self) -> bool:
        return self.raw >= _SEGMENT_BYTES or len(self.entries) >= MOST_VERSIONS


class Compactor:
    """One run over many chains. Memory holds one segment and the moves of one batch."""

    def __init__(self, packs: Packs, sources: Sources, plan: Plan, sites: Sites) -> None:
        self._packs = packs
        self._sources = sources
        self._plan = plan
        self._sites = sites
        sites.keep(packs.refresh())
        self._out: PackWriter | None = None
        self._made: set[int] = set()
        self._moves: dict[Place, Move] = {}
        self._failed: list[Place] = []
        self._chains = 0
        self._begun = plan.clock()
        self._quick = plan.framing is quick

    def run(self, chains: Iterable[Chain], stop: Callable[[], bool]) -> Iterator[Compacted]:
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

    def _batch(self) -> Compacted:
        size = 0
        if self._out is not None:
            size = self._out.commit()
            self._out = None
        done = Compacted(tuple(self._moves.values()), self._chains, size, tuple(self._failed))
        self._moves, self._failed, self._chains = {}, [], 0
        self._begun = self._plan.clock()
        return done

    def _compact(self, chain: Chain) -> None:
        segment = _Segment()
        for entry in chain.entries[: self._share(chain)]:
            self._take(chain.key, entry, segment)
            if segment.full:
                self._write(chain, segment)
                segment = _Segment()
        if segment.entries:
            self._write(chain, segment)

    def _share(self, chain: Chain) -> int:
        """How many of the newest versions are written anew."""
        if self._quick:
            return quick_share(chain.entries, self._loose, self._settled)
        return 0 if self._finished(chain) else len(chain.entries)

    def _loose(self, entry: Entry) -> bool:
        """Whether a content has to move. A quick run never turns the final form back into the quick one."""
        pack = entry.place.pack
        if pack in self._made:
            return False
        if self._sources.in_log(pack):
            return True
        if self._quick and self._sources.solid(pack):
            return False
        return pack in self._plan.rewrite or self._leans_on_dying(entry)

    def _leans_on_dying(self, entry: Entry) -> bool:
        """Whether a content needs the known text of a pack that is to be emptied."""
        at = self._sources.text_of(entry.place) if self._plan.rewrite else None
        return at is not None and at.pack in self._plan.rewrite

    def _settled(self, entry: Entry) -> bool:
        return self._sources.solid(entry.place.pack)

    def _finished(self, chain: Chain) -> bool:
        """Whether a full compaction of the chain would only make the same again."""
        if any(self._loose(entry) for entry in chain.entries):
            return False
        own = {entry.place for entry in chain.entries if self._sources.owned(chain.key, entry.place)}
        frames = {(place.pack, place.offset) for place in own}
        if len({pack for pack, _ in frames}) > 1 or not all(self._sources.solid(pack) for pack, _ in frames):
            return False
        return sum(self._sources.slots(pack, offset) for pack, offset in frames) == len(own)

    def _take(self, key: bytes, entry: Entry, segment: _Segment) -> None:
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

    def _write(self, chain: Chain, segment: _Segment) -> None:
        """Frames of the segment's contents, then its facts."""
        places = list(segment.bodies)
        bodies = list(segment.bodies.values())
        digests = {entry.place: entry.digest for entry in segment.entries}
        held: list[Held] = []
        slots: dict[Place, int] = {}
        for chosen in groups([len(body) for body in bodies], self._plan.whole):
            group = self._coded([bodies[index] for index in chosen], chain.site)
            for index, (place, size, method) in zip(chosen, self._write_group(chain.key, group, held), strict=True):
                old = places[index]
                slots[old] = len(slots)
                self._moves[old] = Move(digests[old], old, place, size, method.label)
        self._open().say(_facts(chain.key, segment.entries, held, slots))

    def _write_group(self, key: bytes, group: Group, held: list[Held]) -> Iterator[tuple[Place, int, Method]]:
        """Writes the frames of one group; place, share and method of each content."""
        out = self._open()
        first = out.end
        for frame in group.frames:
            head = frame_head(out.end - first, frame.count, key, group.known.at)
            offset, _ = out.add(Kind.FRAME, frame.coder.method, head, frame.data)
            held.append(Held(offset, frame.count))
            shares = frame.coder.shares(frame.data, frame.count, offset == first)
            for slot, share in enumerate(shares):
                yield Place(out.pack, offset, slot), share, frame.coder.method

    def _coded(self, bodies: Sequence[bytes], site: bytes) -> Group:
        """Frames that were decoded again and found equal and affordable; else those made the quick way."""
        group = self._plan.framing(bodies, self._texts(site))
        if sound(group, bodies):
            return group
        group = quick(bodies)
        if not sound(group, bodies):
            raise Damaged("a frame just made reads differently; test the memory of this machine, then try again")
        return group

    def _texts(self, site: bytes) -> list[Known]:
        """Known texts that a document may lean on."""
        if self._quick:
            return []
        own = self._site_text(site) if site else NOTHING
        return [generic(), own] if own.at is not None else [generic()]

    def _site_text(self, site: bytes) -> Known:
        known = self._sites.decided(site)
        if known is None:
            sample = self._sites.sample(site)
            known = existing(self._sources, sample, self._plan.rewrite)
            moving = [entry for entry in sample if self._loose(entry) or not self._settled(entry)]
            new = proposed(self._sources, moving, [generic(), known] if known.at else [generic()])
            known = self._write_text(site, new) if new else known
            self._sites.decide(site, known)
        return known

    def _write_text(self, site: bytes, known: bytes) -> Known:
        out = self._open()
        offset, _ = out.add(Kind.TEXT, Method.SOLID, text(site), encode_known(known, generic().text))
        return Known(TextAt(out.pack, offset), known)

    def _copy_large(self, key: bytes, entry: Entry) -> None:
        """Copies a content in pieces, one piece at a time."""
        out = self._open()
        pieces: list[tuple[int, int]] = []
        stored = 0
        for method, body, raw in self._sources.pieces(entry.place):
            offset, length = out.add(Kind.PIECE, method, b"", body)
            pieces.append((offset, raw))
            stored += length
        head = VersionHead(key, entry.time, entry.digest, entry.note, sum(raw for _, raw in pieces))
        listing = b"".join(varint(out.end - offset) + varint(raw) for offset, raw in pieces)
        offset, length = out.add(Kind.VERSION, Method.PIECES, version_head(head), varint(len(pieces)) + listing)
        place = Place(out.pack, offset, 0)
        self._moves[entry.place] = Move(entry.digest, entry.place, place, stored + length, Method.PIECES.label)

    def _open(self) -> PackWriter:
        if self._out is None:
            self._out = PackWriter(self._packs, 0 if self._quick else FLAG_SOLID)
            self._made.add(self._out.pack)
        return self._out


def _facts(key: bytes, entries: Sequence[Entry], held: Sequence[Held], slots: dict[Place, int]) -> ChainFacts:
    return ChainFacts(
        key,
        tuple(held),
        tuple(entry.time for entry in entries),
        tuple(entry.note for entry in entries),
        tuple(slots.get(entry.place, entry.digest) for entry in entries),
    )
