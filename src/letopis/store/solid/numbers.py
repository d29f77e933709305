"""Small numbers in bytes 1-255, so that NUL stays free to end a version.

| value | bytes |
| --- | --- |
| 0-190 | value + 1 |
| 191-12,430 | 192 + high, 1 + low of (value - 191) by 255, high 0-47 |
| above | 240 + n (n 1-8), then n digits of (value - 12,431) base 255, each + 1, highest first |
"""

from __future__ import annotations

from letopis.errors import Damaged

_ONE = 191
LONG = 192
_TWO = _ONE + 48 * 255
_MOST_DIGITS = 8


def _written(value: int) -> bytes:
    if value < _ONE:
        return bytes((value + 1,))
    if value < _TWO:
        high, low = divmod(value - _ONE, 255)
        return bytes((192 + high, low + 1))
    digits = bytearray()
    rest = value - _TWO
    while rest or not digits:
        rest, digit = divmod(rest, 255)
        digits.append(digit + 1)
    digits.append(240 + len(digits))
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
    """A number and where it ends; raises Damaged when the text ends inside it."""
    try:
        first = text[at]
        if first < LONG:
            return first - 1, at + 1
        if first < 240:
            return _ONE + (first - 192) * 255 + text[at + 1] - 1, at + 2
        return _read_long(text, at + 1, first - 240)
    except IndexError:
        raise Damaged("a number is cut off in a solid frame; restore this pack from a copy") from None


def _read_long(text: bytes, at: int, digits: int) -> tuple[int, int]:
    if digits > _MOST_DIGITS:
        raise Damaged("a number is too long in a solid frame; restore this pack from a copy")
    value = 0
    for place in range(at, at + digits):
        value = value * 255 + text[place] - 1
    return value + _TWO, at + digits
