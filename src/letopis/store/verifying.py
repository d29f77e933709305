"""Checks every byte of every pack, names what is damaged, and goes on with the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from letopis.errors import Damaged, LetopisError
from letopis.store.facts import FactReader
from letopis.store.layout import HEADER_BYTES, Kind, Method, Record, known, parse_pack_header, parse_version_head
from letopis.store.packs import Packs
from letopis.store.reading import Reader
from letopis.store.recovery import CHECKPOINT, parse_checkpoint
from letopis.store.values import Finding, Place
from letopis.store.walk import Gap, Walker


class Verifier:
    """Reads packs as a stranger would, taking nothing on trust."""

    def __init__(self, packs: Packs, reader: Reader, facts: FactReader, identity: Callable[[bytes], bytes]) -> None:
        self._packs = packs
        self._reader = reader
        self._facts = facts
        self._identity = identity

    def run(self, expected: Collection[int], writing: bool) -> Iterator[Finding]:
        """Everything that is not as it was written; `expected` names packs that must be there."""
        sizes = self._packs.refresh()
        for pack in sorted(set(expected) - set(sizes)):
            yield Finding(pack, 0, 0, "the pack is missing")
        for pack, size in sizes.items():
            try:
                yield from self._pack(pack, size, self._sure(pack, size, writing))
            except LetopisError as error:
                yield Finding(pack, 0, size, str(error))

    def _sure(self, pack: int, size: int, writing: bool) -> int:
        """The length up to which a pack must be sound; beyond it another process may be writing just now."""
        if writing or not (self._packs.is_log(pack) and self._packs.backend.torn_appends):
            return size
        marked, length = parse_checkpoint(self._packs.backend.recall(CHECKPOINT))
        return size if pack < marked else length if pack == marked else 0

    def _pack(self, pack: int, size: int, sure: int) -> Iterator[Finding]:
        try:
            parse_pack_header(self._packs.span(pack, 0, HEADER_BYTES), pack, self._packs.name(pack))
        except Damaged as error:
            if type(error) is not Damaged:
                raise
            yield Finding(pack, 0, min(HEADER_BYTES, size), str(error))
        walker = Walker(lambda offset, count: self._packs.span(pack, offset, count), pack, size)
        for found in walker.walk(HEADER_BYTES):
            if isinstance(found, Record):
                yield from self._record(pack, found)
            elif found.end < size or found.offset < sure:
                yield _gap(pack, found)

    def _record(self, pack: int, record: Record) -> Iterator[Finding]:
        try:
            if known(record, self._packs.name(pack)):
                self._check(pack, record)
        except LetopisError as error:
            yield Finding(pack, record.offset, record.end - record.offset, str(error))

    def _check(self, pack: int, record: Record) -> None:
        """Reads what a sound record says, down to its contents."""
        if record.kind == Kind.VERSION:
            self._check_version(pack, record)
        elif record.kind == Kind.FACT:
            parse_version_head(record)
        elif record.kind == Kind.FRAME:
            self._reader.whole_frame(pack, record)
        elif record.kind == Kind.TEXT:
            self._reader.texts.decode(pack, record)
        elif record.kind == Kind.FACTS:
            for chain in self._facts.chains(record):
                _check_slots(sum(held.slots for held in chain.frames), chain.contents)

    def _check_version(self, pack: int, record: Record) -> None:
        head = parse_version_head(record)
        place = Place(pack, record.offset, 0)
        if record.method == Method.PIECES:
            length = sum(len(part) for part in self._reader.stream(place))
        else:
            body = self._reader.decode(place, record).body
            length = len(body)
            if self._identity(body) != head.digest:
                raise Damaged("the content does not fit its digest; store it again if you can")
        if length != head.raw_bytes:
            raise Damaged(f"the content has {length} bytes and should have {head.raw_bytes}; store it again if you can")


def _check_slots(slots: int, contents: Collection[int | bytes]) -> None:
    if any(isinstance(content, int) and content >= slots for content in contents):
        raise Damaged("the facts name a slot that no frame has; restore this pack from a copy")


def _gap(pack: int, gap: Gap) -> Finding:
    return Finding(pack, gap.offset, gap.end - gap.offset, "unreadable: not what was written")
