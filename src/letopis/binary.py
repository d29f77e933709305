"""Bytes at the lowest level: varints and a reader over stored bytes, files that are whole or absent, digests.

Readers raise `Damaged` rather than go past the end; writers return when a power cut could no longer undo them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from letopis.errors import VERIFY, Busy, Damaged, NotReady, UsageError
from letopis.tuples import NamedTuple

MAX_VARINT_BYTES = 9
"""Bytes of the longest varint: 63 bits, so that every value fits a signed 64-bit integer."""

_SINGLE = tuple(bytes((number,)) for number in range(0x80))


def encode_varint(number: int) -> bytes:
    """The bytes of a number from 0 to 2^63 - 1: seven bits a byte, low bits first, in the shortest form."""
    if number < 0x80:
        return _SINGLE[number]
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    return bytes((number & 0x7F | 0x80, number >> 7 & 0x7F | 0x80)) + encode_varint(number >> 14)


def append_varint(out: bytearray, number: int) -> None:
    """Appends a number."""
    out += encode_varint(number)


def encode_varints(numbers: Sequence[int]) -> bytes:
    """Many numbers one after the other."""
    if max(numbers, default=0) < 0x80:
        return bytes(numbers)
    return b"".join(map(encode_varint, numbers))


def encode_zigzag(number: int) -> bytes:
    """The varint of a signed number; small ones of either sign stay short."""
    return encode_varint(number << 1 if number >= 0 else (-number << 1) - 1)


def length_prefixed(data: bytes) -> bytes:
    """Bytes behind their length."""
    return encode_varint(len(data)) + data


def decode_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a place and where it ends; what is cut short or overlong is Damaged."""
    # Spelled out for lengths of most pages: each read of a version passes here six times.
    if at < len(data) and (first := data[at]) < 0x80:
        return first, at + 1
    if at + 2 < len(data):
        second, third = data[at + 1], data[at + 2]
        if second < 0x80:
            return first & 0x7F | second << 7, at + 2
        if third < 0x80:
            return first & 0x7F | (second & 0x7F) << 7 | third << 14, at + 3
    number = shift = 0
    for byte in data[at : at + MAX_VARINT_BYTES]:
        at += 1
        if byte < 0x80:
            return number | byte << shift, at
        number |= (byte & 0x7F) << shift
        shift += 7
    raise Damaged("a stored number cannot be read (cut short or too long); restore the file from a good copy")


def decode_canonical_varint(data: bytes, at: int) -> tuple[int, int]:
    """The same where equal values must have equal bytes: a form that is not the shortest is Damaged as well."""
    number, end = decode_varint(data, at)
    if end > at + 1 and not data[end - 1]:
        raise Damaged("a stored number cannot be read (not in its shortest form); restore the file from a good copy")
    return number, end


def decode_canonical_varints(data: bytes, at: int, count: int) -> tuple[list[int], int]:
    """A few numbers that follow each other."""
    numbers = []
    for _ in range(count):
        number, at = decode_canonical_varint(data, at)
        numbers.append(number)
    return numbers, at


class ByteReader:
    """Reads stored bytes front to back; every step raises Damaged rather than go past the end.

    `what` names the thing that is read in the sentences about its damage.
    """

    __slots__ = ("_end", "_what", "at", "data")

    def __init__(self, data: bytes, at: int = 0, *, what: str = "record") -> None:
        self.data = data
        self.at = at
        self._end = len(data)
        self._what = what

    @property
    def left(self) -> int:
        """Bytes not yet read."""
        return self._end - self.at

    def broken(self, why: str) -> Damaged:
        """The error to raise, with the same words everywhere."""
        return Damaged(
            f"a stored {self._what} is damaged ({why} at byte {self.at})",
            VERIFY._replace(tail=", or restore it from a good copy"),
        )

    def byte(self) -> int:
        """One byte as a number."""
        return self.take(1)[0]

    def take(self, size: int) -> bytes:
        """The next `size` bytes, all of them."""
        if size > self._end - self.at:
            raise self.broken("it ends too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self, limit: int | None = None) -> int:
        """The next number, of at most `limit`."""
        # Columns hold thousands of numbers, nearly all of one byte.
        if self.at < self._end and self.data[self.at] < 0x80:
            self.at += 1
            number = self.data[self.at - 1]
        else:
            try:
                number, self.at = decode_varint(self.data, self.at)
            except Damaged:
                raise self.broken("a number is cut short or too long") from None
        if limit is not None and number > limit:
            raise self.broken("a number is too large")
        return number

    def zigzag(self) -> int:
        """The next signed number."""
        number = self.varint()
        return -((number + 1) >> 1) if number & 1 else number >> 1

    def text(self) -> bytes:
        """The next bytes behind their length."""
        return self.take(self.varint())

    @property
    def done(self) -> bool:
        """Whether all bytes were read."""
        return self.at == self._end

    def finish(self) -> None:
        """Damaged unless all bytes were read."""
        if not self.done:
            raise self.broken("bytes are left over")


PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
"""Rights of what is in an archive, which knows hashes of passwords, cookies, and pages that not everybody may read."""


def make_private_folder(folder: Path) -> None:
    """Makes a folder and those above it that are missing, for their owner alone; what is there stays as it is."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(PRIVATE_FOLDER, exist_ok=True)


def make_private_file(path: Path) -> None:
    """Makes an empty file for its owner alone; one that is there stays as it is."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE))


def part_path(path: Path) -> Path:
    """Where a file is prepared before it takes its place."""
    return path.with_name(path.name + ".part")


def write_file_durably(path: Path, data: bytes) -> None:
    """Puts a small file in place, durably; what the machine refuses is NotReady."""
    with write_errors(path):
        write_parts_durably(path, [data])


def write_parts_durably(path: Path, parts: Iterable[bytes]) -> None:
    """Writes a file under another name, makes it durable, and gives it its name."""
    part = part_path(path)
    with part.open("wb") as file:
        for data in parts:
            file.write(data)
        fsync_file(file)
    rename_durably(part, path)


def write_at(file: int, start: int, data: bytes) -> None:
    """Writes all bytes at an offset of an open file; not durable by itself."""
    rest = memoryview(data)
    while rest:
        done = os.pwrite(file, rest, start)
        rest = rest[done:]
        start += done


def fsync_file(file: BinaryIO) -> None:
    """Everything written so far is on the disk when this returns."""
    file.flush()
    os.fsync(file.fileno())


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


class DiskUsage(NamedTuple):
    """Files, and their bytes."""

    files: int
    bytes: int


def disk_usage(folder: Path) -> DiskUsage:
    """What lies below a folder; what vanishes meanwhile is not counted."""
    files = total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(where, name)).st_size
            except FileNotFoundError:
                continue
            files += 1
    return DiskUsage(files, total)


@contextmanager
def write_errors(where: Path) -> Iterator[None]:
    """Turns what the machine refuses into one sentence that says what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise NotReady(
            f"cannot write to {where}: {reason}; free space, check the permissions, or choose another place"
        ) from error


@contextmanager
def exclusive_lock(lock: Path, what: str) -> Iterator[None]:
    """Keeps a second worker out; the lock goes with the process."""
    with write_errors(lock.parent):
        make_private_folder(lock.parent)
        number = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"another process {what}; wait until it is done or stop it") from None
        yield
    finally:
        os.close(number)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """A folder, made where it is not there, in which one process writes at a time; others wait for their turn."""
    try:
        make_private_folder(folder)
        with (folder / "lock").open("ab") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise NotReady(f"cannot write to {folder}: {error.strerror}; check its permissions") from None


@contextmanager
def atomic_file(target: Path) -> Iterator[BinaryIO]:
    """A file that gets its name when it is complete and durable; whatever stops the work leaves the old one.

    A folder is refused at once; pipes and devices are written as they are.
    """
    if target.is_dir():
        raise UsageError(f"{target} is a folder; name a file")
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    part = target.with_name(f".{target.name[:200]}.{os.urandom(4).hex()}.part")
    try:
        with write_errors(target):
            with part.open("w+b") as file:
                yield file
                fsync_file(file)
            rename_durably(part, target)
    finally:
        part.unlink(missing_ok=True)


def sha1_digest(data: bytes) -> bytes:
    """SHA-1, as WARC and CDX name contents."""
    return hashlib.sha1(data, usedforsecurity=False).digest()


def sha256_digest(data: bytes | memoryview) -> bytes:
    """SHA-256."""
    return hashlib.sha256(data).digest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, as digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
