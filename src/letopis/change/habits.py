"""What a page does at every visit: slots that always change, blocks that come and go.

A *slot* is a place on the page: so many blocks after a block that stands
there once, or so many before one. Only replacements train a slot; a list
that grows at the same place every day is news, not noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from letopis.change.fingerprint import Fingerprint
from letopis.change.sequence import Op, opcodes
from letopis.change.text_forms import stilled
from letopis.change.varint import Reader, put_varint

_REACH = 4  # blocks from an anchor within which a slot is known
_MOST = 1024  # slots and blocks remembered
_FORGET = 64  # visits after which a silent slot or block is forgotten
_SHARE = 0.8
_FLIPS, _RECENT = 3, 16
_WATCHED = 3
_KNOWN, _SELDOM = 6, 0.25
_SHORT = 500  # letters above which nobody looks for clocks
_MAGIC = 0xA1
_MASK = (1 << 64) - 1
_START, _END = 1, 2


class Region(NamedTuple):
    """A run of blocks that differs, with the blocks around it as anchors (0: not unique)."""

    op: Op
    left: int
    right: int

    def slots(self, from_left: bool) -> Iterator[tuple[int, int, int]]:
        """Key, old index and new index of the replaced blocks nearest to one anchor."""
        _, a1, a2, b1, b2 = self.op
        anchor = self.left if from_left else self.right
        for offset in range(min(a2 - a1, b2 - b1, _REACH) if anchor else 0):
            key = (anchor * 0x9E3779B97F4A7C15 + 2 * offset + from_left) & _MASK
            yield (key, a1 + offset, b1 + offset) if from_left else (key, a2 - 1 - offset, b2 - 1 - offset)


def regions(old: Fingerprint, new: Fingerprint) -> list[Region]:
    """Where two states of a page differ."""
    if old.hashes == new.hashes:
        return []
    times = Counter(old.hashes)
    times.update(new.hashes)
    ops = [op for op in opcodes(old.hashes, new.hashes) if op.tag != "equal"]
    return [_region(op, old, times) for op in ops]


def _region(op: Op, old: Fingerprint, times: Counter[int]) -> Region:
    """An anchor must stand once on either side, or "Read more" would make every teaser one slot."""
    left = old.hashes[op.a1 - 1] if op.a1 else _START
    right = old.hashes[op.a2] if op.a2 < len(old) else _END
    return Region(op, left if times[left] <= 2 else 0, right if times[right] <= 2 else 0)


def _ticked(old: Fingerprint, new: Fingerprint, i: int, j: int) -> bool:
    """Whether only clocks and counters differ: that is known without learning, and hides what else may change there."""
    if not old.blocks or not new.blocks:
        return False
    before, after = old.text(i), new.text(j)
    return max(len(before), len(after)) <= _SHORT and stilled(before) == stilled(after)


class _Count(NamedTuple):
    changed: int
    first: int
    last: int


class PageHabits:
    """The memory of one page, bounded, kept between visits.

    `observe` takes every visit, unchanged ones too, since a slot counts as
    restless by its share of *visits*, not of versions. Not for use by two
    threads at once.
    """

    def __init__(self) -> None:
        self.visits = 0
        self._slots: dict[int, _Count] = {}
        self._flips: dict[int, _Count] = {}

    def observe(self, old: Fingerprint, new: Fingerprint) -> None:
        """Learn from one visit that found `new` where `old` was before."""
        self.visits += 1
        if old.hashes == new.hashes:
            return
        found = regions(old, new)
        for region in found:
            for key in {
                key for side in (True, False) for key, i, j in region.slots(side) if not _ticked(old, new, i, j)
            }:
                self._count(self._slots, key)
        for block in set(old.hashes).symmetric_difference(new.hashes):
            self._count(self._flips, block)
        self._tidy()

    def unchanged(self, visits: int = 1) -> None:
        """Visits that found exactly what was there before."""
        self.visits += visits

    def restless(self, key: int, least: int) -> bool:
        """Whether a slot changed on more than 80 % of the visits since it first did, `least` at least."""
        seen = self._slots.get(key)
        return seen is not None and seen.changed >= least and seen.changed > _SHARE * (self.visits - seen.first)

    def steady(self, key: int) -> bool:
        """Whether the page was visited often enough to say that a slot changes on few visits."""
        seen = self._slots.get(key)
        return self.visits >= _KNOWN and (seen is None or seen.changed <= _SELDOM * self.visits)

    def settled(self, block: int) -> bool:
        """Whether a block stood there unchanged for the last visits, so that it is no passing one."""
        if self.visits < _WATCHED:
            return False
        seen = self._flips.get(block)
        return seen is None or self.visits - seen.last >= _WATCHED

    def flapping(self, block: int) -> bool:
        """Whether a block came and went several times lately, so that it does so once more now."""
        seen = self._flips.get(block)
        return seen is not None and seen.changed >= _FLIPS and self.visits - seen.last <= _RECENT

    def to_bytes(self) -> bytes:
        """The stored form: about 12 bytes a restless slot or flapping block."""
        out = bytearray([_MAGIC])
        put_varint(out, self.visits)
        for table in (self._slots, self._flips):
            put_varint(out, len(table))
            for key, count in table.items():
                out += key.to_bytes(8, "little")
                for number in count:
                    put_varint(out, number)
        return bytes(out)

    @classmethod
    def from_bytes(cls, data: bytes) -> PageHabits:
        """The inverse of `to_bytes`; Damaged when the bytes are not one."""
        reader = Reader(data, "memory of a page")
        if reader.byte() != _MAGIC:
            raise reader.broken("it begins wrongly")
        habits = cls()
        habits.visits = reader.varint(1 << 40)
        for table in (habits._slots, habits._flips):
            for _ in range(reader.varint(2 * _MOST)):
                key = int.from_bytes(reader.take(8), "little")
                table[key] = _Count(reader.varint(1 << 40), reader.varint(1 << 40), reader.varint(1 << 40))
        reader.finish()
        return habits

    def _count(self, table: dict[int, _Count], key: int) -> None:
        seen = table.get(key)
        if seen is None or self.visits - seen.last > _FORGET:
            table[key] = _Count(1, self.visits - 1, self.visits)
        else:
            table[key] = _Count(seen.changed + 1, seen.first, self.visits)

    def _tidy(self) -> None:
        """Drop what was silent for long; above the bound, what changed least."""
        for table in (self._slots, self._flips):
            if len(table) > _MOST:
                fresh = [(key, seen) for key, seen in table.items() if self.visits - seen.last <= _FORGET]
                fresh.sort(key=lambda item: (-item[1].changed, -item[1].last))
                table.clear()
                table.update(fresh[:_MOST])
