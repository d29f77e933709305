"""What the pages of one host have in common, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack, unpack

from letopis.change.fingerprint import Fingerprint
from letopis.change.varint import Reader, packed, put_varint

CAPACITY = 4096
_SHARE = 0.30
_LEAST_PAGES = 5
_LEAST_COUNT = 3
_FADE_AT = 20_000
_RARE_FROM = 16
_RARE = 0.05
_LATEST = 128
_MAGIC = 0xB1


class HostProfile:
    """On how many documents of a host each block stands.

    A document counts once however often it is visited: pass its former
    fingerprint as `old` when it is seen again. At most `capacity` blocks are
    remembered between calls, the most frequent ones; of blocks that are too
    rare to matter, and most of a site's text is, only the latest. After many
    pages old counts fade, so that a redesign is learned. Not for use by two
    threads at once.
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
            self._fade()

    def is_boilerplate(self, block: int) -> bool:
        """Whether the block stands on at least 30 % of the host's documents (and on three)."""
        return self.pages >= _LEAST_PAGES and self._counts.get(block, 0) >= self._needed()

    def boilerplate(self) -> frozenset[int]:
        """All blocks for which `is_boilerplate` holds."""
        if self.pages < _LEAST_PAGES:
            return frozenset()
        needed = self._needed()
        return frozenset(block for block, count in self._counts.items() if count >= needed)

    def merge(self, other: HostProfile) -> None:
        """Add what another profile of the same host learned from other documents."""
        self.pages += other.pages
        for block, count in other._counts.items():
            self._counts[block] = self._counts.get(block, 0) + count
        self._prune()

    def to_bytes(self) -> bytes:
        """The stored form, at most about 10 bytes a remembered block."""
        self._prune()
        blocks = sorted(self._counts)
        out = bytearray([_MAGIC])
        for number in (self.capacity, self.pages, len(blocks)):
            put_varint(out, number)
        out += pack(f"<{len(blocks)}Q", *blocks)
        out += packed([self._counts[block] for block in blocks])
        return bytes(out)

    @classmethod
    def from_bytes(cls, data: bytes) -> HostProfile:
        """The inverse of `to_bytes`; Damaged when the bytes are not one."""
        reader = Reader(data, "profile of a host")
        if reader.byte() != _MAGIC:
            raise reader.broken("it begins wrongly")
        profile = cls(reader.varint(1 << 24))
        profile.pages = reader.varint(1 << 40)
        size = reader.varint(profile.capacity)
        blocks = unpack(f"<{size}Q", reader.take(8 * size))
        profile._counts = {block: reader.varint(1 << 40) for block in blocks}
        reader.finish()
        return profile

    def _needed(self) -> float:
        return max(_LEAST_COUNT, _SHARE * self.pages)

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
        least, oldest = max(1.0, _RARE * self.pages), len(self._counts) - _LATEST
        self._counts = {
            block: count
            for place, (block, count) in enumerate(self._counts.items())
            if count > least or place >= oldest
        }

    def _fade(self) -> None:
        self.pages //= 2
        self._counts = {block: count // 2 for block, count in self._counts.items() if count > 1}
