"""The head of a frame.

| bytes | field | in |
| --- | --- | --- |
| 1 | format 0x10, plus 1: holds the newest version, plus 2: the newest version is in opened form | all |
| 1-9 | length of the newest version's part | first frames |
| 1-9 | length that part decodes to | first frames |
| 1-9 | length the rest decodes to | all |
"""

from __future__ import annotations

from typing import NamedTuple

from letopis.errors import Damaged, NewerFormat
from letopis.store.solid import numbers

_FORMAT = 0x10
_HOLDS_NEWEST = 1
_OPENED = 2
MOST_BYTES = 1 << 30


class Head(NamedTuple):
    """What a frame declares about itself; `start` is where its stream begins."""

    holds_newest: bool
    opened: bool
    newest_part: int
    newest_length: int
    residue_length: int
    start: int = 0


def written(head: Head) -> bytes:
    """The bytes that begin a frame."""
    flags = _FORMAT | _HOLDS_NEWEST * head.holds_newest | _OPENED * head.opened
    own = (head.newest_part, head.newest_length) if head.holds_newest else ()
    return bytes((flags,)) + b"".join(map(numbers.number, (*own, head.residue_length)))


def head_of(data: bytes) -> Head:
    """The head of a frame; raises Damaged when it is none, NewerFormat when its format is unknown."""
    if not data:
        raise Damaged("a solid frame is empty; restore this pack from a copy")
    flags = data[0]
    if flags & ~3 != _FORMAT:
        raise NewerFormat(f"a solid frame has format {flags:#04x}; read it with a later release of Letopis")
    at, part, length = 1, 0, 0
    if flags & _HOLDS_NEWEST:
        part, at = numbers.read(data, at)
        length, at = numbers.read(data, at)
    rest, at = numbers.read(data, at)
    if min(part, length, rest) < 0 or length + rest > MOST_BYTES:
        raise Damaged("a solid frame declares impossible lengths; restore this pack from a copy")
    return Head(bool(flags & _HOLDS_NEWEST), bool(flags & _OPENED), part, length, rest, at)
