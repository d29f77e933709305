"""Bytes at the lowest level: varints and readers over stored bytes, files that are whole or absent, digests.

Readers raise `Damaged` rather than go past the end; writers return when a power cut could no longer undo them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from letopis.errors import Busy, Damaged, NotReady, UsageError

MAX_VARINT_BYTES = 9
"""Bytes of the longest varint: 63 bits."""

_SINGLE = tuple(bytes((number,)) for number in range(0x80))


def encode_varint(number: int) -> bytes:
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


def encode_zigzag(number: int) -> bytes:
    """The varint of a signed number; small ones of either sign stay short."""
    return encode_varint(number << 1 if number >= 0 else (-number << 1) - 1)


def length_prefixed(data: bytes) -> bytes:
    """Bytes behind their length."""
    return encode_varint(len(data)) + data


def decode_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a place and where it ends; what is cut short or overlong is Damaged."""
    if at < len(data) and data[at] < 0x80:
        return data[at], at + 1
    number = shift = 0
    for byte in data[at : at + MAX_VARINT_BYTES]:
        at += 1
        if byte < 0x80:
            return number | byte << shift, at
        number |= (byte & 0x7F) << shift
        shift += 7
    raise Damaged("a number in a record is cut short; run verify to see what is damaged")


class ByteCursor:
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
        number, self.at = decode_varint(self._data, self.at)
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


def append_varint(out: bytearray, value: int) -> None:
    """Append a number below 2**63, seven bits a byte, low bits first."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def encode_varints(numbers: Sequence[int]) -> bytes:
    """Many numbers as `put_varint` writes them one after the other."""
    if max(numbers, default=0) < 0x80:
        return bytes(numbers)
    out = bytearray()
    for number in numbers:
        if number < 0x80:  # most of them: a call each would cost more than all the rest
            out.append(number)
        else:
            append_varint(out, number)
    return bytes(out)


class CheckedByteReader:
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


MAX_CANONICAL_VARINT_BYTES = 9
"""63 bits: every value fits a signed 64-bit integer."""


def encode_canonical_varint(value: int) -> bytes:
    """The shortest form of a value of 0 or more."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_canonical_varints(values: Iterable[int]) -> bytes:
    """The values one after the other."""
    return b"".join(map(encode_canonical_varint, values))


def decode_canonical_varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, where it ends). `Damaged` when the data ends early or the form is not the shortest."""
    value = 0
    for step in range(MAX_CANONICAL_VARINT_BYTES):
        if at + step >= len(data):
            break
        byte = data[at + step]
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            if byte == 0 and step:
                break
            return value, at + step + 1
    raise Damaged("The zrec file holds a number that cannot be read; get a fresh copy.")


def decode_canonical_varints(data: bytes, at: int, count: int) -> tuple[list[int], int]:
    """A few values that follow each other."""
    values = []
    for _ in range(count):
        value, at = decode_canonical_varint(data, at)
        values.append(value)
    return values, at


PART_SUFFIX = ".part"


def part_path(path: Path) -> Path:
    """Where a file is prepared before it takes its place."""
    return path.with_name(path.name + PART_SUFFIX)


def write_file_durably(path: Path, data: bytes) -> None:
    """Puts a small file in place, durably."""
    with file_write_errors(path):
        part = part_path(path)
        with part.open("wb") as file:
            file.write(data)
            fsync_file(file)
        replace_file_durably(part, path)


def fsync_file(file: BinaryIO) -> None:
    """Everything written so far is on the disk when this returns."""
    file.flush()
    os.fsync(file.fileno())


def replace_file_durably(part: Path, path: Path) -> None:
    """Renames a settled part over its target, durably."""
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def file_write_errors(path: Path) -> Iterator[None]:
    """Faults of the machine become one sentence that says what to do."""
    try:
        yield
    except OSError as wrong:
        reason = wrong.strerror or str(wrong)
        raise NotReady(f"{path} cannot be written ({reason}); free space or choose another place.") from wrong


_REPLICA_PART_SUFFIX = ".part"


def write_parts_durably(path: Path, parts: Iterable[bytes]) -> None:
    """Writes a file under another name, makes it durable, and gives it its name."""
    part = path.with_name(path.name + _REPLICA_PART_SUFFIX)
    with part.open("wb") as file:
        for data in parts:
            file.write(data)
        file.flush()
        os.fsync(file.fileno())
    rename_durably(part, path)


def rename_durably(part: Path, path: Path) -> None:
    """Gives a durable file its final name, durably."""
    part.replace(path)
    fsync_folder(path.parent)


def fsync_folder(folder: Path) -> None:
    """Makes names in a folder durable."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def exclusive_lock(lock: Path, what: str) -> Iterator[None]:
    """Keeps a second worker out; the lock goes with the process."""
    with folder_write_errors(lock.parent):
        lock.parent.mkdir(parents=True, exist_ok=True)
        number = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"another process {what}; wait until it is done or stop it") from None
        yield
    finally:
        os.close(number)


@contextmanager
def folder_write_errors(where: Path) -> Iterator[None]:
    """Turns what the machine refuses into a sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise NotReady(
            f"cannot write to {where}: {reason}; free space, check the permissions, then try again"
        ) from error


@contextmanager
def atomic_file(target: Path) -> Iterator[BinaryIO]:
    """A file that gets its name when it is complete and durable; whatever stops the work leaves the old one.

    A folder is refused at once; pipes and devices are written as they are.
    """
    if target.is_dir():
        raise UsageError(f"{target} is a folder; name a file with -o")
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    part = target.with_name(f".{target.name[:200]}.{os.urandom(4).hex()}.part")
    try:
        with part.open("w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        raise NotReady(f"cannot write {target}: {error.strerror or error}; choose another place with -o") from error
    finally:
        part.unlink(missing_ok=True)


def sha256_digest(data: bytes | memoryview) -> bytes:
    """SHA-256."""
    return hashlib.sha256(data).digest()
