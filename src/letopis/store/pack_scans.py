"""Passes over whole packs: version facts to rebuild a catalogue, packs that can be removed, and verification.

Damage is reported and skipped. A pack is removed only after the facts that it alone holds are saved.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from xxhash import xxh3_64_intdigest

from letopis.binary import sha1_digest
from letopis.errors import Damaged, LetopisError, NewerFormat
from letopis.store import record_bodies
from letopis.store.content_reader import PackReader
from letopis.store.pack_format import (
    HEADER_BYTES,
    ChainFacts,
    FrameRef,
    PackGap,
    PackRecord,
    PackWalker,
    RecordKind,
    RecordMethod,
    VersionHead,
    decode_columns,
    is_known_record,
    parse_frame_head,
    parse_pack_header,
    parse_version_head,
)
from letopis.store.packs import CHECKPOINT_NAME, Packs, parse_checkpoint
from letopis.store.record_bodies import body_label, expand_body
from letopis.store.values import ContentPlace, PackDamage, PackGone, VersionFact
from letopis.tuples import NamedTuple


class _FrameSlot(NamedTuple):
    """A content in a frame, as a scan finds it."""

    place: ContentPlace
    digest: bytes
    raw: int
    stored: int
    method: str


class FactReader:
    """Reads facts from packs, skipping what is damaged."""

    def __init__(self, packs: Packs, reader: PackReader) -> None:
        self._packs = packs
        self._reader = reader

    def scan(self, since: Mapping[int, int] | None = None) -> Iterator[VersionFact]:
        """Every version in all packs, in the order of the packs; one that was compacted may come twice.

        `since` names the packs that are meant, each with the offset to begin at.
        """
        for pack, size in self._packs.refresh().items():
            if since is None or pack in since:
                yield from self.of_pack(pack, size, HEADER_BYTES if since is None else since[pack])

    def of_pack(self, pack: int, size: int, start: int = HEADER_BYTES) -> Iterator[VersionFact]:
        """Every version in one pack."""
        for record in self.records(pack, size, start):
            try:
                yield from self._version_keys(pack, record)
            except Damaged:
                continue

    def records(self, pack: int, size: int, start: int = HEADER_BYTES) -> Iterator[PackRecord]:
        """Sound records that this release knows."""
        self._packs.flags(pack)
        name = self._packs.name(pack)
        for found in PackWalker(lambda offset, count: self._packs.span(pack, offset, count), pack, size).walk(start):
            if isinstance(found, PackRecord) and is_known_record(found, name):
                yield found

    def content_bytes(self, pack: int, size: int) -> int:
        """What the contents of a pack take."""
        kinds = (RecordKind.VERSION, RecordKind.PIECE, RecordKind.FRAME)
        return sum(len(record.body) for record in self.records(pack, size) if record.kind in kinds)

    def texts(self, pack: int, size: int) -> bool:
        """Whether a pack holds known texts."""
        return any(record.kind == RecordKind.TEXT for record in self.records(pack, size))

    def shared_text_packs(self, pack: int, size: int) -> set[int]:
        """The packs with the known texts that frames of this one need."""
        heads = (
            parse_frame_head(record.head) for record in self.records(pack, size) if record.kind == RecordKind.FRAME
        )
        return {head.text.pack for head in heads if head.text is not None}

    def chains(self, record: PackRecord) -> Iterator[ChainFacts]:
        """The documents of a facts record."""
        return decode_columns(expand_body(record.method, record.body), record.offset)

    def _version_keys(self, pack: int, record: PackRecord) -> Iterator[VersionFact]:
        if record.kind == RecordKind.FACTS:
            for chain in self.chains(record):
                yield from self._of_chain(pack, chain)
        elif record.kind in (RecordKind.VERSION, RecordKind.FACT):
            yield self._of_record(pack, record)

    def _of_record(self, pack: int, record: PackRecord) -> VersionFact:
        head = parse_version_head(record)
        size = record.end - record.offset
        if record.kind == RecordKind.FACT:
            return VersionFact(head.key, head.time, head.note, head.digest, None, 0, size, "shared")
        place, label = ContentPlace(pack, record.offset, 0), body_label(record.method, record.body)
        return VersionFact(head.key, head.time, head.note, head.digest, place, head.raw_bytes, size, label)

    def _of_chain(self, pack: int, chain: ChainFacts) -> Iterator[VersionFact]:
        slots = [slot for held in chain.frames for slot in self._slots(pack, held)]
        for time, note, content in zip(chain.times, chain.notes, chain.contents, strict=True):
            if isinstance(content, bytes):
                yield VersionFact(chain.key, time, note, content, None, 0, 0, "shared")
                continue
            slot = slots[content] if content < len(slots) else None
            if slot is not None:
                yield VersionFact(chain.key, time, note, slot.digest, slot.place, slot.raw, slot.stored, slot.method)

    def _slots(self, pack: int, held: FrameRef) -> list[_FrameSlot | None]:
        """The contents of a frame; Nones when it is damaged, so that the others keep their numbers."""
        try:
            record = self._packs.record(pack, held.offset)
            bodies = self._reader.whole_frame(pack, record)
            head = parse_frame_head(record.head)
            coder = record_bodies.frame_coder(record.method)
            shares = coder.shares(record.body, head.slots, not head.back)
        except Damaged:
            return [None] * held.slots
        label = coder.method.label
        return [
            _FrameSlot(ContentPlace(pack, held.offset, slot), sha1_digest(body), len(body), share, label)
            for slot, (body, share) in enumerate(zip(bodies, shares, strict=True))
        ]


_FACTS_PER_PASS = 1 << 20


class _VersionKey(NamedTuple):
    """A version that is recorded in some pack."""

    key: bytes
    time: int

    @property
    def mark(self) -> int:
        return xxh3_64_intdigest(self.key, self.time & 0xFFFFFFFFFFFFFFFF)


class PackReleaser:
    """Finds what may be removed. The highest number always stays, so that no number is ever used twice."""

    def __init__(self, packs: Packs, facts: FactReader) -> None:
        self._packs = packs
        self._facts = facts

    def dying(self, live: Collection[int], active: int, newest: int | None) -> dict[int, int]:
        """Numbers and sizes of packs that nothing refers to; those above `newest` are too new to decide."""
        sizes = self._packs.refresh()
        kept = {active, max(sizes, default=0), *live}
        last = max(sizes, default=0) if newest is None else newest
        found = {pack: size for pack, size in sizes.items() if pack not in kept and pack <= last}
        needed = self._needed({pack for pack, size in found.items() if self._facts.texts(pack, size)}, found, sizes)
        return {pack: size for pack, size in found.items() if pack not in needed and not self._packs.misnamed(pack)}

    def _needed(self, texts: set[int], dying: Collection[int], sizes: Mapping[int, int]) -> set[int]:
        """The packs among those with known texts that a pack which stays still needs."""
        needed: set[int] = set()
        for pack, size in sizes.items():
            if needed == texts:
                break
            if pack not in dying and pack > min(texts) and not self._packs.is_log(pack):
                needed |= self._facts.shared_text_packs(pack, size) & texts
        return needed

    def orphans(self, dying: dict[int, int], keep: Callable[[bytes, int], bool]) -> Iterator[VersionHead]:
        """Facts that are to be kept and that are only in packs to be removed."""
        for marks in self._marks(dying):
            self._strike(marks, dying)
            for pack, size in dying.items():
                for fact in self._facts.of_pack(pack, size) if marks else ():
                    version_key = _VersionKey(fact.key, fact.time)
                    if version_key.mark in marks and keep(fact.key, fact.time):
                        marks.discard(version_key.mark)
                        yield _head(fact)

    def _marks(self, dying: dict[int, int]) -> Iterator[set[int]]:
        """The versions of the packs to be removed, in sets of bounded size."""
        marks: set[int] = set()
        for pack, size in dying.items():
            for version_key in self._version_keys(pack, size):
                marks.add(version_key.mark)
                if len(marks) >= _FACTS_PER_PASS:
                    yield marks
                    marks = set()
        if marks:
            yield marks

    def _strike(self, marks: set[int], dying: dict[int, int]) -> None:
        """Removes the versions that are also recorded in later packs, where compaction wrote them."""
        others = {pack: size for pack, size in self._packs.refresh().items() if pack > min(dying)}
        for pack, size in others.items():
            for version_key in self._version_keys(pack, size) if marks and pack not in dying else ():
                marks.discard(version_key.mark)

    def _version_keys(self, pack: int, size: int) -> Iterator[_VersionKey]:
        for record in self._facts.records(pack, size):
            yield from self._of_record(record)

    def _of_record(self, record: PackRecord) -> Iterator[_VersionKey]:
        if record.kind in (RecordKind.VERSION, RecordKind.FACT):
            head = parse_version_head(record)
            yield _VersionKey(head.key, head.time)
        elif record.kind == RecordKind.FACTS:
            for chain in self._facts.chains(record):
                for time in chain.times:
                    yield _VersionKey(chain.key, time)


def _head(fact: VersionFact) -> VersionHead:
    return VersionHead(fact.key, fact.time, fact.digest, fact.note, 0)


class PackVerifier:
    """Reads packs without trusting anything."""

    def __init__(self, packs: Packs, reader: PackReader, facts: FactReader) -> None:
        self._packs = packs
        self._reader = reader
        self._facts = facts

    def run(self, expected: Collection[int], writing: bool) -> Iterator[PackDamage]:
        """Everything that is not as it was written; `expected` names packs that must be there."""
        sizes = self._packs.refresh()
        for pack in sorted(set(expected) - set(sizes)):
            yield PackDamage(pack, 0, 0, "the pack is missing")
        for pack, size in sizes.items():
            try:
                yield from self._pack(pack, size, self._sure(pack, size, writing))
            except LetopisError as error:
                yield PackDamage(pack, 0, size, str(error))

    def _sure(self, pack: int, size: int, writing: bool) -> int:
        """The length up to which a pack must be sound; beyond it another process may be writing just now."""
        if writing or not (self._packs.is_log(pack) and self._packs.backend.torn_appends):
            return size
        marked, length = parse_checkpoint(self._packs.backend.recall(CHECKPOINT_NAME))
        return size if pack < marked else length if pack == marked else 0

    def _pack(self, pack: int, size: int, sure: int) -> Iterator[PackDamage]:
        try:
            parse_pack_header(self._packs.span(pack, 0, HEADER_BYTES), pack, self._packs.name(pack))
        except Damaged as error:
            if isinstance(error, NewerFormat | PackGone):
                raise
            yield PackDamage(pack, 0, min(HEADER_BYTES, size), str(error))
        walker = PackWalker(lambda offset, count: self._packs.span(pack, offset, count), pack, size)
        for found in walker.walk(HEADER_BYTES):
            if isinstance(found, PackRecord):
                yield from self._record(pack, found)
            elif found.end < size or found.offset < sure:
                yield _gap_damage(pack, found)

    def _record(self, pack: int, record: PackRecord) -> Iterator[PackDamage]:
        try:
            if is_known_record(record, self._packs.name(pack)):
                self._check(pack, record)
        except LetopisError as error:
            yield PackDamage(pack, record.offset, record.end - record.offset, str(error))

    def _check(self, pack: int, record: PackRecord) -> None:
        """Reads a sound record, down to its contents."""
        if record.kind == RecordKind.VERSION:
            self._check_version(pack, record)
        elif record.kind == RecordKind.FACT:
            parse_version_head(record)
        elif record.kind == RecordKind.FRAME:
            self._reader.whole_frame(pack, record)
        elif record.kind == RecordKind.TEXT:
            self._reader.texts.decode(pack, record)
        elif record.kind == RecordKind.FACTS:
            for chain in self._facts.chains(record):
                _check_slots(sum(held.slots for held in chain.frames), chain.contents)

    def _check_version(self, pack: int, record: PackRecord) -> None:
        head = parse_version_head(record)
        place = ContentPlace(pack, record.offset, 0)
        if record.method == RecordMethod.PIECES:
            length = sum(len(part) for part in self._reader.stream(place))
        else:
            body = self._reader.decode(place, record).body
            length = len(body)
            if sha1_digest(body) != head.digest:
                raise Damaged("the content does not match its digest; store it again if you can")
        if length != head.raw_bytes:
            raise Damaged(f"the content has {length} bytes and should have {head.raw_bytes}; store it again if you can")


def _check_slots(slots: int, contents: Collection[int | bytes]) -> None:
    if any(isinstance(content, int) and content >= slots for content in contents):
        raise Damaged("the facts name a slot that no frame has; restore this pack from a copy")


def _gap_damage(pack: int, gap: PackGap) -> PackDamage:
    return PackDamage(pack, gap.offset, gap.end - gap.offset, "unreadable: not what was written")
