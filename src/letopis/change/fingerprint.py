"""A page as numbers: one 64-bit hash, a length and a kind for each block.

`fingerprint` is on the way of every fetched page, so it makes one pass over
the joined text in C and nothing block by block that can wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import sqrt
from struct import pack, unpack

from xxhash import xxh3_64_intdigest

from letopis.change.text_forms import letters
from letopis.change.varint import Reader, put_varint
from letopis.model import Block, BlockKind, Page

KINDS: tuple[BlockKind, ...] = tuple(BlockKind)
_CODES = {kind: code for code, kind in enumerate(KINDS)}
_MAGIC = 0xF1
_FRAMED = 0x80
MAX_BLOCKS = 50_000


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What of a page is needed to compare it.

    `blocks` holds the texts while they are at hand; it is not stored and
    takes no part in equality. Blocks without letters or digits are left
    out; beyond `MAX_BLOCKS` the rest of a page is one block.
    """

    text_hash: int
    hashes: tuple[int, ...]
    lengths: tuple[int, ...]
    kinds: tuple[BlockKind, ...]
    frame: frozenset[int] = frozenset()
    blocks: tuple[Block, ...] = field(default=(), compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.hashes)

    def text(self, index: int) -> str:
        """The text of a block; empty when only the stored form is at hand."""
        return self.blocks[index].text if self.blocks else ""

    def weight(self, index: int) -> float:
        """Square root of the length: long paragraphs count more, but not all."""
        return _root(self.lengths[index])

    def to_bytes(self) -> bytes:
        """The stored form: about 10 bytes a block."""
        out = bytearray([_MAGIC])
        put_varint(out, len(self.hashes))
        out += self.text_hash.to_bytes(8, "little")
        out += pack(f"<{len(self.hashes)}Q", *self.hashes)
        out += bytes([_CODES[kind] | (_FRAMED if i in self.frame else 0) for i, kind in enumerate(self.kinds)])
        for length in self.lengths:
            put_varint(out, length)
        return bytes(out)

    @classmethod
    def from_bytes(cls, data: bytes) -> Fingerprint:
        """The inverse of `to_bytes`; Damaged when the bytes are not one."""
        reader = Reader(data, "fingerprint")
        if reader.byte() != _MAGIC:
            raise reader.broken("it begins wrongly")
        count = reader.varint(MAX_BLOCKS + 1)
        text_hash = int.from_bytes(reader.take(8), "little")
        hashes = unpack(f"<{count}Q", reader.take(8 * count))
        codes = reader.take(count)
        lengths = tuple(reader.varint(1 << 40) for _ in range(count))
        reader.finish()
        if codes and max(code & ~_FRAMED for code in codes) >= len(KINDS):
            raise reader.broken("a kind of block is unknown")
        kinds = tuple([KINDS[code & ~_FRAMED] for code in codes])
        frame = frozenset(i for i, code in enumerate(codes) if code & _FRAMED)
        return cls(text_hash, hashes, lengths, kinds, frame)


@lru_cache(maxsize=4096)
def _root(length: int) -> float:
    return sqrt(length)


def fingerprint(page: Page) -> Fingerprint:
    """The fingerprint of a page, in time linear in its text."""
    blocks = page.blocks if len(page.blocks) <= MAX_BLOCKS else _folded(page.blocks)
    if not blocks:
        return _EMPTY
    kinds, texts = zip(*blocks, strict=True)
    whole = letters("\n".join(texts))
    parts = whole.split(b"\n")
    if len(parts) != len(blocks):
        parts = [letters(text).replace(b"\n", b"") for text in texts]
    hashes, lengths = tuple(map(xxh3_64_intdigest, parts)), tuple(map(len, parts))
    whole_hash = xxh3_64_intdigest(whole)
    if all(parts):
        frame = page.frame if blocks is page.blocks else frozenset(i for i in page.frame if i < MAX_BLOCKS)
        return Fingerprint(whole_hash, hashes, lengths, kinds, frame, blocks)
    kept = [i for i, part in enumerate(parts) if part]
    frame = frozenset(n for n, i in enumerate(kept) if i in page.frame)
    picked = tuple([blocks[i] for i in kept])
    hashes, lengths = tuple([hashes[i] for i in kept]), tuple([lengths[i] for i in kept])
    return Fingerprint(whole_hash, hashes, lengths, tuple([block.kind for block in picked]), frame, picked)


_EMPTY = Fingerprint(xxh3_64_intdigest(b""), (), (), ())


def _folded(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """The first blocks as they are and all others as one, so that no page costs without bound."""
    rest = " ".join([block.text for block in blocks[MAX_BLOCKS:]])
    return (*blocks[:MAX_BLOCKS], Block(BlockKind.PARAGRAPH, rest))
