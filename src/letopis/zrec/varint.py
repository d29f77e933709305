"""Variable-length integers: single ones, and whole columns at once.

Only the shortest form is accepted, so equal values have equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from letopis.errors import Damaged

_MOST_BYTES = 9
"""63 bits: every value fits a signed 64-bit integer."""


def encode(value: int) -> bytes:
    """The shortest form of a value of 0 or more."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_all(values: Iterable[int]) -> bytes:
    """The values one after the other."""
    return b"".join(map(encode, values))


def decode(data: bytes, at: int) -> tuple[int, int]:
    """(value, where it ends). `Damaged` when the data ends early or the form is not the shortest."""
    value = 0
    for step in range(_MOST_BYTES):
        if at + step >= len(data):
            break
        byte = data[at + step]
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            if byte == 0 and step:
                break
            return value, at + step + 1
    raise Damaged("The zrec file holds a number that cannot be read; get a fresh copy.")


def decode_some(data: bytes, at: int, count: int) -> tuple[list[int], int]:
    """A few values that follow each other."""
    values = []
    for _ in range(count):
        value, at = decode(data, at)
        values.append(value)
    return values, at


def decode_column(data: bytes, at: int, count: int) -> tuple[NDArray[np.int64], int]:
    """`count` values that follow each other, as one array; memory stays near that of the bytes."""
    if count == 0:
        return np.zeros(0, np.int64), at
    window = np.frombuffer(data, np.uint8)[at : at + count * _MOST_BYTES]
    ends = np.flatnonzero(window < 0x80)[:count]
    if len(ends) < count:
        raise Damaged("A column of the zrec file ends too early; get a fresh copy.")
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    if int(lengths.max()) > _MOST_BYTES or bool(np.any((window[ends] == 0) & (lengths > 1))):
        raise Damaged("A column of the zrec file holds a number that cannot be read; get a fresh copy.")
    return _gather(window, starts, lengths), at + int(ends[-1]) + 1


def _gather(window: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    values = np.zeros(len(starts), np.int64)
    for step in range(int(lengths.max())):
        longer = lengths > step
        values[longer] |= (window[starts[longer] + step].astype(np.int64) & 0x7F) << (7 * step)
    return values
