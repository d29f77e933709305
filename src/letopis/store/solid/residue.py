"""What old versions are written in: a reference to a base, then operations, then NUL.

An operation copies N tokens of the base, inserts K tokens, and moves the base's
cursor by a signed seek; at NUL the rest of the base is copied. Counting in
tokens keeps numbers small and steady from version to version.
"""

from __future__ import annotations

from letopis.errors import Damaged
from letopis.store.solid import numbers

STOP = b"\0"
# References 0-7 name the versions before this one, 8 the newest, 9 and up versions from the eighth back on.
TO_NEWEST = 8


def reference(back: int, newest_back: int) -> bytes:
    """The number that names a base `back` versions before the last one; the newest is `newest_back` before it."""
    if back == newest_back and back:
        return numbers.number(TO_NEWEST)
    return numbers.number(back if back < TO_NEWEST else back + 1)


def base_of(script: bytes, index: int) -> tuple[int, int]:
    """The number of the version that version `index` is written against, and where its operations begin.

    Version 0 is the newest. Raises Damaged for a base that does not come before.
    """
    named, at = numbers.read(script, 0)
    base = 0 if named == TO_NEWEST else index - 1 - named + (named > TO_NEWEST)
    if base < 0:
        raise Damaged("a version refers to one outside its frame; restore this pack from a copy")
    return base, at


def misfit() -> Damaged:
    """The error for operations that their base cannot satisfy."""
    return Damaged("a difference does not fit its base; restore this pack from a copy")
