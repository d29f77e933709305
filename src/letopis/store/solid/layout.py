"""The head of a frame, as docs/internals/solid-frames.md describes it."""

from __future__ import annotations

from typing import Final, NamedTuple

from letopis.errors import Damaged, NewerFormat
from letopis.store.solid import numbers
from letopis.store.solid.tokens import END_SETS

_FORMAT = 0x20
_ENDS_SHIFT = 3
_CHECK_BYTES = 2
_FIRST_BYTES = range(_FORMAT, _FORMAT | len(END_SETS) << _ENDS_SHIFT)
"""How frames of this format begin, whatever their flags and token ends."""
MOST_BYTES = 1 << 30


class Flags:
    """What kind of frame it is, as bits of a number: every read asks, and members of an IntFlag are slow to ask."""

    HOLDS_NEWEST: Final = 1
    OPENED: Final = 2
    KNOWN: Final = 4


class Head(NamedTuple):
    """What a frame declares about itself; `start` is where its stream begins.

    `ends` numbers the set of token ends; `check` are two bytes of the digest
    of the known text that the stream leans on.
    """

    flags: int
    ends: int
    newest_part: int
    newest_length: int
    residue_length: int
    check: bytes = b""
    start: int = 0

    @property
    def holds_newest(self) -> bool:
        """Whether the newest version of the document is the first of this frame."""
        return bool(self.flags & Flags.HOLDS_NEWEST)


def written(head: Head) -> bytes:
    """The bytes that begin a frame."""
    first = bytes((_FORMAT | head.ends << _ENDS_SHIFT | head.flags,))
    own = (head.newest_part, head.newest_length) if head.holds_newest else ()
    return first + head.check + b"".join(map(numbers.number, (*own, head.residue_length)))


def flags_of(data: bytes) -> int:
    """The flags of a frame; raises Damaged when it is none, NewerFormat when its format is unknown."""
    if not data:
        raise Damaged("a solid frame is empty; restore this pack from a copy")
    first = data[0]
    if first not in _FIRST_BYTES:
        raise NewerFormat(f"a solid frame has format {first:#04x}; read it with a later release of Letopis")
    return first & 7


def head_of(data: bytes) -> Head:
    """The head of a frame; raises what `flags_of` does, and Damaged for impossible lengths."""
    flags = flags_of(data)
    ends = data[0] >> _ENDS_SHIFT & 3
    at = 1 + _CHECK_BYTES if flags & Flags.KNOWN else 1
    check = data[1:at]
    part = length = 0
    if flags & Flags.HOLDS_NEWEST:
        part, at = numbers.read(data, at)
        length, at = numbers.read(data, at)
    rest, at = numbers.read(data, at)
    if length + rest > MOST_BYTES:
        raise Damaged("a solid frame declares impossible lengths; restore this pack from a copy")
    return Head(flags, ends, part, length, rest, check, at)
