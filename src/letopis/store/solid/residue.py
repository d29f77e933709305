"""One old version as what it lacks of another: operations inline with the literal text.

A version is written as a reference to its base, then operations, then NUL.
An operation copies N tokens of the base, moves the base's cursor by a signed
seek, and inserts K tokens that follow as text. At NUL the rest of the base is
copied. Counting in tokens keeps the numbers small and steady from version to
version, which is what the entropy coder behind this feeds on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from letopis.errors import Damaged
from letopis.store.solid import numbers, tokens
from letopis.store.solid.matching import Run

STOP = b"\0"
# References 0-7 name the versions before this one, 8 the newest, 9 and up versions from the eighth back on.
TO_NEWEST = 8
# A hostile frame may copy copies of copies; a list of tokens never grows past this.
MOST_TOKENS = 1 << 24


def reference(back: int, newest_back: int) -> bytes:
    """The number that names a base `back` versions before the last one; the newest is `newest_back` before it."""
    if back == newest_back and back:
        return numbers.number(TO_NEWEST)
    return numbers.number(back if back < TO_NEWEST else back + 1)


def written(runs: Iterable[Run], version: Sequence[bytes], base_count: int) -> bytes:
    """The operations that make the version from its base, without reference and stop."""
    out: list[bytes] = []
    cursor = start = copied = 0
    for run in [*runs, Run(len(version), base_count, 0)]:
        if run.start > start or run.source != cursor:
            out.append(_operation(copied, run.source - cursor, version[start : run.start]))
            copied = 0
        copied += run.count
        cursor, start = run.source + run.count, run.start + run.count
    return b"".join(out)


def _operation(copied: int, seek: int, literal: Sequence[bytes]) -> bytes:
    count = len(literal)
    return b"".join((numbers.number(copied), numbers.number(count), numbers.signed(seek - count), *literal))


class Operation(NamedTuple):
    """Copy so many tokens of the base, insert the literal ones, then move the base's cursor by `seek`."""

    copied: int
    literal: list[bytes]
    seek: int


def apply(form: list[bytes], script: bytes, at: int) -> list[bytes]:
    """The version that the operations from `at` on make of the base; raises Damaged when they do not fit.

    The base itself is changed into the version where that is possible, since
    a long chain of small differences is then cheap.
    """
    operations = _operations(script, at)
    if all(operation.seek >= 0 for operation in operations):
        return _changed(form, operations)
    return _rebuilt(form, operations)


def _operations(script: bytes, at: int) -> list[Operation]:
    out: list[Operation] = []
    end = len(script)
    while at < end:
        copied, at = (script[at] - 1, at + 1) if script[at] < numbers.LONG else numbers.read(script, at)
        count, at = numbers.read(script, at)
        seek, at = numbers.read(script, at)
        start, at = at, tokens.run_end(script, at, count)
        if at < 0:
            raise Damaged("inserted text is cut off in a difference; restore this pack from a copy")
        literal = tokens.split(script[start:at]) if count > 1 else [script[start:at]] * count
        out.append(Operation(copied, literal, numbers.unsign(seek) + count))
    return out


def _changed(form: list[bytes], operations: list[Operation]) -> list[bytes]:
    cursor = 0
    for copied, literal, seek in operations:
        cursor += copied
        if cursor + seek > len(form) or len(form) > MOST_TOKENS:
            raise Damaged("a difference does not fit its base; restore this pack from a copy")
        form[cursor : cursor + seek] = literal
        cursor += len(literal)
    return form


def _rebuilt(form: list[bytes], operations: list[Operation]) -> list[bytes]:
    out: list[bytes] = []
    cursor, have = 0, len(form)
    for copied, literal, seek in operations:
        stop = cursor + copied
        out += form[cursor:stop]
        out += literal
        cursor = stop + seek
        if stop > have or not 0 <= cursor <= have or len(out) > MOST_TOKENS:
            raise Damaged("a difference does not fit its base; restore this pack from a copy")
    out += form[cursor:]
    return out
