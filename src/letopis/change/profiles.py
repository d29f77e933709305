"""What is learned about a host and a page, in bounded memory: shared boilerplate, slots that always change.

A *slot* is a place on the page: a number of blocks after a block that occurs there once, or before one; a *list* is
what stands between two blocks that never came or went. Only replacements train them; a list that grows at the same
place every day is news, not noise. `letopis.change.evidence` decides what a restless place may hide: never a sentence
that is new to the page.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from struct import pack, unpack

from letopis.binary import ByteReader, append_varint, encode_varints
from letopis.change.fingerprints import Fingerprint, without_clocks
from letopis.change.sequence import Op, opcodes
from letopis.tuples import NamedTuple

CAPACITY = 4096
_BOILERPLATE_SHARE = 0.30
_LEAST_PAGES = 5
_LEAST_COUNT = 3
_FADE_AT = 20_000
_RARE_FROM = 16
_RARE = 0.05
_LATEST = 128
_HOST_MAGIC = 0xB1


class HostProfile:
    """On how many documents of a host each block occurs.

    A document counts once however often it is visited: pass its former fingerprint as `old` when it is seen again. At
    most `capacity` blocks are remembered between calls, the most frequent ones; of blocks that are too rare to
    matter, which is most text of a site, only the latest. Old counts fade after many pages, so that a redesign is
    learned. Not for use by two threads at once.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        self.pages = 0
        self._counts: dict[int, int] = {}

    def observe(self, new: Fingerprint, old: Fingerprint | None = None) -> None:
        """Count a document, in place of its former state if it has one."""
        now = set(new.hashes)
        if old is None:
            self.pages += 1
        else:
            before = set(old.hashes)
            self._forget(before - now)
            now -= before
        counts = self._counts
        for block in now:
            counts[block] = counts.get(block, 0) + 1
        if len(counts) > 2 * self.capacity:
            self._prune()
        if self.pages >= _FADE_AT:
            self.pages //= 2
            self._counts = {block: count // 2 for block, count in self._counts.items() if count > 1}

    def boilerplate(self) -> frozenset[int]:
        """All blocks on at least 30 % of the host's documents (and on three)."""
        if self.pages < _LEAST_PAGES:
            return frozenset()
        needed = self._needed()
        return frozenset(block for block, count in self._counts.items() if count >= needed)

    def to_bytes(self) -> bytes:
        """The stored form, at most about 10 bytes a remembered block."""
        self._prune()
        blocks = sorted(self._counts)
        out = bytearray([_HOST_MAGIC])
        for number in (self.capacity, self.pages, len(blocks)):
            append_varint(out, number)
        out += pack(f"<{len(blocks)}Q", *blocks)
        out += encode_varints([self._counts[block] for block in blocks])
        return bytes(out)

    @classmethod
    def from_bytes(cls, data: bytes) -> HostProfile:
        """The inverse of `to_bytes`; Damaged when the bytes are not one."""
        reader = ByteReader(data, what="profile of a host")
        if reader.byte() != _HOST_MAGIC:
            raise reader.broken("it begins wrongly")
        profile = cls(reader.varint(1 << 24))
        profile.pages = reader.varint(1 << 40)
        size = reader.varint(profile.capacity)
        blocks = unpack(f"<{size}Q", reader.take(8 * size))
        profile._counts = {block: reader.varint(1 << 40) for block in blocks}
        reader.finish()
        return profile

    def _needed(self) -> float:
        return max(_LEAST_COUNT, _BOILERPLATE_SHARE * self.pages)

    def _forget(self, blocks: Iterable[int]) -> None:
        for block in blocks:
            count = self._counts.get(block, 0)
            if count > 1:
                self._counts[block] = count - 1
            else:
                self._counts.pop(block, None)

    def _prune(self) -> None:
        """Keep the most frequent blocks; ties go to those seen last, which may still rise."""
        if self.pages >= _RARE_FROM:
            self._drop_rare()
        if len(self._counts) > self.capacity:
            newest_first = reversed(self._counts.items())
            kept = sorted(newest_first, key=lambda item: -item[1])[: self.capacity]
            self._counts = dict(reversed(kept))

    def _drop_rare(self) -> None:
        """A block on one page, or on one of twenty, is far from boilerplate; should it rise, a count or two is lost."""
        least, older = max(1.0, _RARE * self.pages), max(0, len(self._counts) - _LATEST)
        for block in [block for block, count in islice(self._counts.items(), older) if count <= least]:
            del self._counts[block]


_REACH = 4  # blocks from an anchor within which a slot is known
_MOST_SLOTS = 1024  # slots and blocks remembered
_FORGET = 64  # visits after which a silent slot or block is forgotten
_RESTLESS_SHARE = 0.8
_FLIPS, _RECENT, _FLIPPING_SHARE = 3, 16, 0.3
_ROTATING_SHARE = 0.5
_WATCHED = 3
_KNOWN, _SELDOM = 6, 0.25
_SHORT = 500  # letters above which nobody looks for clocks
_PAGE_MAGIC = 0xA1
_MASK = (1 << 64) - 1
_START, _END = 1, 2


class ChangedRegion(NamedTuple):
    """A run of blocks that differs, and its anchors on either side: the distance in blocks, and which block (0:
    none).
    """

    op: Op
    before: tuple[int, int]
    after: tuple[int, int]

    def slots(self, from_left: bool) -> Iterator[tuple[int, int, int]]:
        """Key, old index and new index of the replaced blocks nearest to one anchor."""
        _, a1, a2, b1, b2 = self.op
        away, anchor = self.before if from_left else self.after
        for offset in range(min(a2 - a1, b2 - b1, _REACH) if anchor else 0):
            key = (anchor * 0x9E3779B97F4A7C15 + 2 * (offset + away) + from_left) & _MASK
            yield (key, a1 + offset, b1 + offset) if from_left else (key, a2 - 1 - offset, b2 - 1 - offset)


def changed_regions(old: Fingerprint, new: Fingerprint) -> list[ChangedRegion]:
    """Where two states of a page differ."""
    if old.hashes == new.hashes:
        return []
    times = Counter(old.hashes)
    times.update(new.hashes)
    ops = [op for op in opcodes(old.hashes, new.hashes) if op.tag != "equal"]
    return [_region(op, old, times) for op in ops]


def _region(op: Op, old: Fingerprint, times: Counter[int]) -> ChangedRegion:
    """An anchor must stand once on either side, or "Read more" would make every teaser one slot.

    Where the neighbour does not, one a little further does: a heading often repeats the title.
    """
    before, after = old.hashes[max(0, op.a1 - _REACH) : op.a1], old.hashes[op.a2 : op.a2 + _REACH]
    return ChangedRegion(op, _anchor([*before[::-1], _START], times), _anchor([*after, _END], times))


def _anchor(neighbours: list[int], times: Counter[int]) -> tuple[int, int]:
    """How many blocks away the nearest one is that stands once, and which it is (0: none is near)."""
    return next(((away, block) for away, block in enumerate(neighbours[:_REACH]) if times[block] in (0, 2)), (0, 0))


def _differs_in_clocks(old: Fingerprint, new: Fingerprint, i: int, j: int) -> bool:
    """Whether only clocks and counters differ: that is known without learning, and hides what else may change there."""
    if not old.blocks or not new.blocks:
        return False
    before, after = old.text(i), new.text(j)
    return max(len(before), len(after)) <= _SHORT and without_clocks(before) == without_clocks(after)


class _SlotCount(NamedTuple):
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
        self._slots: dict[int, _SlotCount] = {}
        self._flips: dict[int, _SlotCount] = {}

    def observe(self, old: Fingerprint, new: Fingerprint) -> None:
        """Learn from one visit that found `new` where `old` was before."""
        self.visits += 1
        if old.hashes == new.hashes:
            return
        found = changed_regions(old, new)
        for key in self._rotated(old, new, found):
            self._count(self._slots, key)
        for region in found:
            for key in {
                key
                for side in (True, False)
                for key, i, j in region.slots(side)
                if not _differs_in_clocks(old, new, i, j)
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
        return (
            seen is not None and seen.changed >= least and seen.changed > _RESTLESS_SHARE * (self.visits - seen.first)
        )

    def lists(self, old: Fingerprint, new: Fingerprint, found: Iterable[ChangedRegion]) -> list[int]:
        """Which list each region is in, told by the nearest blocks around it that stand once and never came or went."""
        times = Counter(old.hashes)
        times.update(new.hashes)
        both = set(new.hashes)
        at = [i for i, b in enumerate(old.hashes) if times[b] == 2 and b in both and b not in self._flips]
        blocks = [_START, *(old.hashes[i] for i in at), _END]
        ends = ((blocks[bisect_left(at, r.op.a1)], blocks[bisect_left(at, r.op.a2) + 1]) for r in found)
        return [(before * 0x9E3779B97F4A7C15 + after * 0xC2B2AE3D27D4EB4F) & _MASK for before, after in ends]

    def _rotated(self, old: Fingerprint, new: Fingerprint, found: list[ChangedRegion]) -> Iterator[int]:
        """The lists in which as many items as went came back, and nothing else came."""
        before, after = set(old.hashes), set(new.hashes)
        turns: dict[int, tuple[set[int], set[int]]] = {}
        for key, region in zip(self.lists(old, new, found), found, strict=True):
            gone, came = turns.setdefault(key, (set(), set()))
            gone.update(block for block in old.hashes[region.op.a1 : region.op.a2] if block not in after)
            came.update(block for block in new.hashes[region.op.b1 : region.op.b2] if block not in before)
        for key, (gone, came) in turns.items():
            if 0 < len(gone) == len(came) and all(map(self.knows, came)):
                yield key

    def rotating(self, key: int) -> bool:
        """Whether the known items of a list took turns on more than half of the visits since they first did."""
        seen = self._slots.get(key)
        if seen is None or seen.changed < _FLIPS or self.visits - seen.last > _RECENT:
            return False
        return seen.changed > _ROTATING_SHARE * (self.visits - seen.first)

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

    def knows(self, block: int) -> bool:
        """Whether a block has come or gone before, so that its return says nothing new."""
        return block in self._flips

    def returned(self, block: int) -> bool:
        """Whether a block came back before: its first return takes back what had replaced it, which is news."""
        seen = self._flips.get(block)
        return seen is not None and seen.changed > 1

    def flapping(self, block: int) -> bool:
        """Whether a block comes and goes at every few visits, lately too, so that it does so once more now.

        What turns up again after it had settled is a state of the page, not a rotation: "sold out" is news each time.
        """
        seen = self._flips.get(block)
        if seen is None or seen.changed < _FLIPS or self.visits - seen.last > _RECENT:
            return False
        return seen.changed > _FLIPPING_SHARE * (self.visits - seen.first)

    def to_bytes(self) -> bytes:
        """The stored form: about 12 bytes a restless slot or flapping block."""
        out = bytearray([_PAGE_MAGIC])
        append_varint(out, self.visits)
        for table in (self._slots, self._flips):
            append_varint(out, len(table))
            for key, count in table.items():
                out += key.to_bytes(8, "little")
                for number in count:
                    append_varint(out, number)
        return bytes(out)

    @classmethod
    def from_bytes(cls, data: bytes) -> PageHabits:
        """The inverse of `to_bytes`; Damaged when the bytes are not one."""
        reader = ByteReader(data, what="memory of a page")
        if reader.byte() != _PAGE_MAGIC:
            raise reader.broken("it begins wrongly")
        habits = cls()
        habits.visits = reader.varint(1 << 40)
        for table in (habits._slots, habits._flips):
            for _ in range(reader.varint(2 * _MOST_SLOTS)):
                key = int.from_bytes(reader.take(8), "little")
                table[key] = _SlotCount(reader.varint(1 << 40), reader.varint(1 << 40), reader.varint(1 << 40))
        reader.finish()
        return habits

    def _count(self, table: dict[int, _SlotCount], key: int) -> None:
        seen = table.get(key)
        if seen is None or self.visits - seen.last > _FORGET:
            table[key] = _SlotCount(1, self.visits - 1, self.visits)
        else:
            table[key] = _SlotCount(seen.changed + 1, seen.first, self.visits)

    def _tidy(self) -> None:
        """Drop what was silent for long; above the bound, what changed least."""
        for table in (self._slots, self._flips):
            if len(table) > _MOST_SLOTS:
                fresh = [(key, seen) for key, seen in table.items() if self.visits - seen.last <= _FORGET]
                fresh.sort(key=lambda item: (-item[1].changed, -item[1].last))
                table.clear()
                table.update(fresh[:_MOST_SLOTS])
