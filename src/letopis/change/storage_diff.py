"""Multi-level text differences as bytes, for storing one version as a difference from another.

    delta  = level (1 byte: 0xD1, 0xD2, 0xD3)  size of new (varint)  check of new (4 bytes)  step*
    step   = copied (varint)  skipped (varint)  inserted (varint)  that many bytes

Steps walk through the old text: so many bytes are copied, so many passed
over, then new ones put in. All counts are bytes at every level; the level
only says how finely the two texts were matched. Finer is smaller before
compression and often larger after it, so callers try all levels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import fast_diff_match_patch
from xxhash import xxh32_intdigest

from letopis.change.sequence import Budget, opcodes
from letopis.change.text_diff import CHARACTERS, LINES, WORDS, Level
from letopis.change.varint import Reader, put_varint
from letopis.errors import UsageError

LEVELS: tuple[Level, ...] = (LINES, WORDS, CHARACTERS)
_BASE = 0xD0
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_WORD = re.compile(rb"[0-9A-Za-z_\x80-\xff]+|[ \t\r]+|.", re.DOTALL)
_MOST_CHARACTERS = 1 << 13
_MOST_WORDS = 1 << 20
_MAX_BYTES = 1 << 30

Edit = tuple[bool, bytes, bytes]
"""Whether a run is equal, its old bytes, its new bytes."""


def encode(old: bytes, new: bytes, level: Level = LINES) -> bytes:
    """The difference that `apply` turns back to exactly `new`; bounded work for any two inputs."""
    if level not in LEVELS:
        raise UsageError(f"level {level} of a text difference does not exist; choose 1, 2 or 3")
    out = bytearray([_BASE + level])
    put_varint(out, len(new))
    out += xxh32_intdigest(new).to_bytes(4, "little")
    for copied, skipped, inserted in _steps(_edits(old, new, level)):
        for count in (copied, skipped, len(inserted)):
            put_varint(out, count)
        out += inserted
    return bytes(out)


def apply(old: bytes, delta: bytes, max_bytes: int = _MAX_BYTES) -> bytes:
    """The text that `delta` was made for; Damaged when the two do not fit or the bytes are no difference."""
    reader = Reader(delta, "text difference")
    if reader.byte() - _BASE not in LEVELS:
        raise reader.broken("it begins wrongly")
    size = reader.varint(max_bytes)
    check = int.from_bytes(reader.take(4), "little")
    parts: list[bytes] = []
    at = made = 0
    while not reader.done:
        copied, skipped, inserted = reader.varint(size - made), reader.varint(len(old)), reader.varint(size)
        if at + copied + skipped > len(old) or not copied + skipped + inserted:
            raise reader.broken("it does not fit the other text")
        parts += [old[at : at + copied], reader.take(inserted)]
        at += copied + skipped
        made += copied + inserted
        if made > size:
            raise reader.broken("it is longer than it says")
    new = b"".join(parts)
    if len(new) != size or xxh32_intdigest(new) != check:
        raise reader.broken("the result is not what was stored")
    return new


def _edits(old: bytes, new: bytes, level: Level) -> Iterator[Edit]:
    budget = Budget()
    for equal, before, after in _matched(old, new, _LINE.findall, budget):
        if equal or level == LINES or not before or not after or len(before) + len(after) > _MOST_WORDS:
            yield equal, before, after
        else:
            yield from _by_words(before, after, level, budget)


def _by_words(old: bytes, new: bytes, level: Level, budget: Budget) -> Iterator[Edit]:
    for equal, before, after in _matched(old, new, _WORD.findall, budget):
        if equal or level == WORDS or not before or not after or len(before) + len(after) > _MOST_CHARACTERS:
            yield equal, before, after
        else:
            yield from _by_characters(before, after)


def _by_characters(old: bytes, new: bytes) -> Iterator[Edit]:
    steps = fast_diff_match_patch.diff(old, new, timelimit=0.02, checklines=False, cleanup="No", counts_only=True)
    a = b = 0
    for sign, count in steps:
        gone, came = count if sign != "+" else 0, count if sign != "-" else 0
        yield sign == "=", old[a : a + gone], new[b : b + came]
        a, b = a + gone, b + came


def _matched(old: bytes, new: bytes, cut: Callable[[bytes], list[bytes]], budget: Budget) -> Iterator[Edit]:
    before, after = cut(old), cut(new)
    for op in opcodes(before, after, budget):
        yield op.tag == "equal", b"".join(before[op.a1 : op.a2]), b"".join(after[op.b1 : op.b2])


def _steps(edits: Iterator[Edit]) -> Iterator[tuple[int, int, bytes]]:
    """Edits gathered to copy, skip, insert; an equal run after a change opens the next step."""
    copied = skipped = 0
    inserted: list[bytes] = []
    for equal, before, after in edits:
        if equal and (skipped or inserted):
            yield copied, skipped, b"".join(inserted)
            copied, skipped, inserted = 0, 0, []
        if equal:
            copied += len(before)
        else:
            skipped += len(before)
            inserted.append(after)
    if copied or skipped or inserted:
        yield copied, skipped, b"".join(inserted)
