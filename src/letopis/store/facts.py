"""What packs tell about versions: enough to rebuild a catalogue, or to move what a dying pack alone still knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from letopis.errors import Damaged
from letopis.store import coders
from letopis.store.columns import ChainFacts, Held, decode_columns
from letopis.store.content import expand, label_of
from letopis.store.layout import (
    HEADER_BYTES,
    Kind,
    Record,
    known,
    parse_frame_head,
    parse_version_head,
)
from letopis.store.packs import Packs
from letopis.store.reading import Reader
from letopis.store.values import Fact, Place
from letopis.store.walk import Walker


class _Slot(NamedTuple):
    """A content in a frame, as a scan finds it."""

    place: Place
    digest: bytes
    raw: int
    stored: int
    method: str


class FactReader:
    """Reads facts out of packs, passing over what is damaged."""

    def __init__(self, packs: Packs, reader: Reader, identity: Callable[[bytes], bytes]) -> None:
        self._packs = packs
        self._reader = reader
        self._identity = identity

    def scan(self) -> Iterator[Fact]:
        """Every version in all packs, in the order of the packs; one that was compacted may come twice."""
        for pack, size in self._packs.refresh().items():
            yield from self.of_pack(pack, size)

    def of_pack(self, pack: int, size: int) -> Iterator[Fact]:
        """Every version in one pack."""
        for record in self.records(pack, size):
            try:
                yield from self._told(pack, record)
            except Damaged:
                continue

    def records(self, pack: int, size: int) -> Iterator[Record]:
        """Sound records that this release knows."""
        self._packs.flags(pack)
        name = self._packs.name(pack)
        for found in Walker(lambda offset, count: self._packs.span(pack, offset, count), pack, size).walk(HEADER_BYTES):
            if isinstance(found, Record) and known(found, name):
                yield found

    def content_bytes(self, pack: int, size: int) -> int:
        """What the contents of a pack take."""
        kinds = (Kind.VERSION, Kind.PIECE, Kind.FRAME)
        return sum(len(record.body) for record in self.records(pack, size) if record.kind in kinds)

    def texts(self, pack: int, size: int) -> bool:
        """Whether a pack holds known texts."""
        return any(record.kind == Kind.TEXT for record in self.records(pack, size))

    def leans(self, pack: int, size: int) -> set[int]:
        """The packs in which the known texts lie that frames of this one need."""
        heads = (parse_frame_head(record.head) for record in self.records(pack, size) if record.kind == Kind.FRAME)
        return {head.text.pack for head in heads if head.text is not None}

    def chains(self, record: Record) -> Iterator[ChainFacts]:
        """The documents of a facts record."""
        return decode_columns(expand(record.method, record.body), record.offset)

    def _told(self, pack: int, record: Record) -> Iterator[Fact]:
        if record.kind == Kind.FACTS:
            for chain in self.chains(record):
                yield from self._of_chain(pack, chain)
        elif record.kind in (Kind.VERSION, Kind.FACT):
            yield self._of_record(pack, record)

    def _of_record(self, pack: int, record: Record) -> Fact:
        head = parse_version_head(record)
        size = record.end - record.offset
        if record.kind == Kind.FACT:
            return Fact(head.key, head.time, head.note, head.digest, None, 0, size, "shared")
        place, label = Place(pack, record.offset, 0), label_of(record.method, record.body)
        return Fact(head.key, head.time, head.note, head.digest, place, head.raw_bytes, size, label)

    def _of_chain(self, pack: int, chain: ChainFacts) -> Iterator[Fact]:
        slots = [slot for held in chain.frames for slot in self._slots(pack, held)]
        for time, note, content in zip(chain.times, chain.notes, chain.contents, strict=True):
            if isinstance(content, bytes):
                yield Fact(chain.key, time, note, content, None, 0, 0, "shared")
                continue
            slot = slots[content] if content < len(slots) else None
            if slot is not None:
                yield Fact(chain.key, time, note, slot.digest, slot.place, slot.raw, slot.stored, slot.method)

    def _slots(self, pack: int, held: Held) -> list[_Slot | None]:
        """The contents of a frame; Nones when it is damaged, so that the others keep their numbers."""
        try:
            record = self._packs.record(pack, held.offset)
            bodies = self._reader.whole_frame(pack, record)
            head = parse_frame_head(record.head)
            coder = coders.of(record.method)
            shares = coder.shares(record.body, head.slots, not head.back)
        except Damaged:
            return [None] * held.slots
        label = coder.method.label
        return [
            _Slot(Place(pack, held.offset, slot), self._identity(body), len(body), share, label)
            for slot, (body, share) in enumerate(zip(bodies, shares, strict=True))
        ]
