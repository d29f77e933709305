"""Whole numbers in as few bytes as they need: seven bits a byte, lowest first."""

from __future__ import annotations

from letopis.errors import Damaged

LONGEST = 9
"""Bytes of the longest varint: 63 bits."""

_SINGLE = tuple(bytes((number,)) for number in range(0x80))


def varint(number: int) -> bytes:
    """The bytes of a number from 0 to 2^63 - 1."""
    if number < 0x80:
        return _SINGLE[number]
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(number: int) -> bytes:
    """The varint of a signed number; small ones of either sign stay short."""
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def text(data: bytes) -> bytes:
    """Bytes behind their length."""
    return varint(len(data)) + data


def number_at(data: bytes, at: int) -> tuple[int, int]:
    """The number at a place and where it ends; what is cut short or overlong is Damaged."""
    if at < len(data) and data[at] < 0x80:
        return data[at], at + 1
    number = shift = 0
    for byte in data[at : at + LONGEST]:
        at += 1
        if byte < 0x80:
            return number | byte << shift, at
        number |= (byte & 0x7F) << shift
        shift += 7
    raise Damaged("a number in a record is cut short; run verify to see what is damaged")


class Cursor:
    """Reads fields one after the other; what is cut short or overlong is Damaged."""

    __slots__ = ("_data", "_end", "at")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self._end = len(data)
        self.at = at

    @property
    def left(self) -> int:
        """Bytes not yet read."""
        return self._end - self.at

    def varint(self) -> int:
        """The next number."""
        # Columns hold thousands of numbers, nearly all of one byte.
        if self.at < self._end and self._data[self.at] < 0x80:
            self.at += 1
            return self._data[self.at - 1]
        number, self.at = number_at(self._data, self.at)
        return number

    def zigzag(self) -> int:
        """The next signed number."""
        number = self.varint()
        return -((number + 1) >> 1) if number & 1 else number >> 1

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        if length > self.left:
            raise Damaged("a field in a record is cut short; run verify to see what is damaged")
        self.at += length
        return self._data[self.at - length : self.at]

    def text(self) -> bytes:
        """The next bytes behind their length."""
        return self.take(self.varint())
