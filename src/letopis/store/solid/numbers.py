"""Numbers in bytes that end neither a token nor a version, so that a script can be cut in one go.

The digits are the 249 byte values other than NUL, newline `"` `&` `/` `>` `?`,
in rising order. By the rank of its first digit a number is

| rank | value |
| --- | --- |
| 0-184 | the rank |
| 185-240 | 185 + (rank - 185) x 249 + rank of the second digit |
| 241-248 | 14,129 + the following rank - 240 digits, highest first, base 249 |
"""

from __future__ import annotations

from letopis.errors import Damaged

_DIGITS = bytes(value for value in range(256) if value not in b'\0\n"&/>?')
_BASE = len(_DIGITS)
SHORT, _LONG = 185, 241
_TWO_FROM = SHORT
_LONG_FROM = SHORT + (_LONG - SHORT) * _BASE
# Bytes that are no digit rank so high that reading stumbles over them.
_NONE = 1 << 80
RANK = [_DIGITS.index(value) if value in _DIGITS else _NONE for value in range(256)]


def _written(value: int) -> bytes:
    if value < SHORT:
        return bytes((_DIGITS[value],))
    if value < _LONG_FROM:
        high, low = divmod(value - _TWO_FROM, _BASE)
        return bytes((_DIGITS[SHORT + high], _DIGITS[low]))
    digits = bytearray()
    rest = value - _LONG_FROM
    while rest or not digits:
        rest, digit = divmod(rest, _BASE)
        digits.append(_DIGITS[digit])
    digits.append(_DIGITS[_LONG + len(digits) - 1])
    return bytes(reversed(digits))


_TABLE = tuple(_written(value) for value in range(4096))


def number(value: int) -> bytes:
    """The bytes of a number from 0 to about 10^19."""
    return _TABLE[value] if value < len(_TABLE) else _written(value)


def signed(value: int) -> bytes:
    """The bytes of a number that may be negative; small ones either side of zero stay short."""
    return number(value * 2 if value >= 0 else -value * 2 - 1)


def unsign(value: int) -> int:
    """The number whose `signed` form reads as `value`."""
    return -((value + 1) >> 1) if value & 1 else value >> 1


def read(text: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends; raises Damaged where the text has none."""
    try:
        rank = RANK[text[at]]
        if rank < SHORT:
            return rank, at + 1
        if rank < _LONG:
            low = RANK[text[at + 1]]
            if low < _BASE:
                return _TWO_FROM + (rank - SHORT) * _BASE + low, at + 2
        elif rank < _NONE:
            end = at + 2 + rank - _LONG
            value = 0
            for digit in text[at + 1 : end]:
                value = value * _BASE + RANK[digit]
            if value < _NONE and end <= len(text):
                return value + _LONG_FROM, end
    except IndexError:
        pass
    raise Damaged("a number is broken in a solid frame; restore this pack from a copy")
