"""Removes packs that nothing refers to, after saving the facts that only they still hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from letopis.store.facts import FactReader
from letopis.store.layout import Kind, Record, VersionHead, parse_version_head
from letopis.store.packs import Packs
from letopis.store.values import Fact

_MOST_FACTS = 1 << 20


class _Told(NamedTuple):
    """A version that some pack tells of."""

    key: bytes
    time: int

    @property
    def mark(self) -> int:
        return xxh3_64_intdigest(self.key, self.time & 0xFFFFFFFFFFFFFFFF)


class Releaser:
    """Finds what may go. The highest number always stays, so that no number is ever used twice."""

    def __init__(self, packs: Packs, facts: FactReader) -> None:
        self._packs = packs
        self._facts = facts

    def dying(self, live: Collection[int], active: int, newest: int | None) -> dict[int, int]:
        """Numbers and sizes of packs that nothing refers to; those above `newest` are too young to judge."""
        sizes = self._packs.refresh()
        kept = {active, max(sizes, default=0), *live}
        last = max(sizes, default=0) if newest is None else newest
        found = {pack: size for pack, size in sizes.items() if pack not in kept and pack <= last}
        needed = self._needed({pack for pack, size in found.items() if self._facts.texts(pack, size)}, found, sizes)
        return {pack: size for pack, size in found.items() if pack not in needed}

    def _needed(self, texts: set[int], dying: Collection[int], sizes: Mapping[int, int]) -> set[int]:
        """The packs among those with known texts that a pack which stays still needs."""
        needed: set[int] = set()
        for pack, size in sizes.items():
            if needed == texts:
                break
            if pack not in dying and pack > min(texts) and not self._packs.is_log(pack):
                needed |= self._facts.leans(pack, size) & texts
        return needed

    def orphans(self, dying: dict[int, int], keep: Callable[[bytes, int], bool]) -> Iterator[VersionHead]:
        """Facts that are to be kept and that no pack but the dying ones holds."""
        for marks in self._marks(dying):
            self._strike(marks, dying)
            for pack, size in dying.items():
                for fact in self._facts.of_pack(pack, size) if marks else ():
                    told = _Told(fact.key, fact.time)
                    if told.mark in marks and keep(fact.key, fact.time):
                        marks.discard(told.mark)
                        yield _head(fact)

    def _marks(self, dying: dict[int, int]) -> Iterator[set[int]]:
        """The versions of the dying packs, in sets of bounded size."""
        marks: set[int] = set()
        for pack, size in dying.items():
            for told in self._told(pack, size):
                marks.add(told.mark)
                if len(marks) >= _MOST_FACTS:
                    yield marks
                    marks = set()
        if marks:
            yield marks

    def _strike(self, marks: set[int], dying: dict[int, int]) -> None:
        """Takes out the versions that later packs tell of as well, where compaction wrote them."""
        others = {pack: size for pack, size in self._packs.refresh().items() if pack > min(dying)}
        for pack, size in others.items():
            for told in self._told(pack, size) if marks and pack not in dying else ():
                marks.discard(told.mark)

    def _told(self, pack: int, size: int) -> Iterator[_Told]:
        for record in self._facts.records(pack, size):
            yield from self._of_record(record)

    def _of_record(self, record: Record) -> Iterator[_Told]:
        if record.kind in (Kind.VERSION, Kind.FACT):
            head = parse_version_head(record)
            yield _Told(head.key, head.time)
        elif record.kind == Kind.FACTS:
            for chain in self._facts.chains(record):
                for time in chain.times:
                    yield _Told(chain.key, time)


def _head(fact: Fact) -> VersionHead:
    return VersionHead(fact.key, fact.time, fact.digest, fact.note, 0)
