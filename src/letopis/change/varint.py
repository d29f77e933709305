"""Numbers in few bytes, and a reader that takes nothing on trust."""

from __future__ import annotations

from collections.abc import Sequence

from letopis.errors import Damaged


def put_varint(out: bytearray, value: int) -> None:
    """Append a number below 2**63, seven bits a byte, low bits first."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def packed(numbers: Sequence[int]) -> bytes:
    """Many numbers as `put_varint` writes them one after the other."""
    if max(numbers, default=0) < 0x80:
        return bytes(numbers)
    out = bytearray()
    for number in numbers:
        if number < 0x80:  # most of them: a call each would cost more than all the rest
            out.append(number)
        else:
            put_varint(out, number)
    return bytes(out)


class Reader:
    """Reads stored bytes front to back; every step raises Damaged rather than go past the end."""

    def __init__(self, data: bytes, what: str) -> None:
        self.data = data
        self.at = 0
        self._what = what

    def broken(self, why: str) -> Damaged:
        """The error to raise, with the same words everywhere."""
        return Damaged(f"the stored {self._what} is damaged ({why} at byte {self.at}); restore it from a good copy")

    def byte(self) -> int:
        """One byte as a number."""
        return self.take(1)[0]

    def take(self, size: int) -> bytes:
        """The next `size` bytes, all of them."""
        part = self.data[self.at : self.at + size]
        if len(part) != size:
            raise self.broken("it ends too early")
        self.at += size
        return part

    def varint(self, limit: int) -> int:
        """A number of at most `limit`."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift > 56:
                raise self.broken("a number is too long")
        if value > limit:
            raise self.broken("a number is too large")
        return value

    @property
    def done(self) -> bool:
        """Whether all bytes were read."""
        return self.at == len(self.data)

    def finish(self) -> None:
        """Damaged unless all bytes were read."""
        if not self.done:
            raise self.broken("bytes are left over")
