"""An append-only file of checksummed frames: what is whole stays, what a crash left half is cut off.

    file   = MAGIC frame*
    frame  = size u32, versions u32, last u64, checksum u64, payload[size]

All numbers are little-endian; the checksum is XXH3-64 over size, versions, last
and payload. `versions` says how many versions of the log the frame covers,
`last` is the id of the last one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from letopis.errors import Damaged, NewerFormat, NotReady

MAGIC = b"letopis links 1\n"
_FIXED = Struct("<IIQ")
_SUM = Struct("<Q")
HEAD = _FIXED.size + _SUM.size


class Frame(NamedTuple):
    """Where a frame lies and what its head says."""

    offset: int
    size: int
    versions: int
    last: int

    @property
    def end(self) -> int:
        """The first byte after it."""
        return self.offset + HEAD + self.size


class Journal:
    """One file of frames. Appending is for one writer at a time; reading is free."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def size(self) -> int:
        """Bytes on disk; 0 when there is no file."""
        try:
            return self.file.stat().st_size
        except FileNotFoundError:
            return 0

    def frames(self, start: int = 0) -> Iterator[tuple[Frame, bytes]]:
        """Whole frames with their payloads from an offset on; ends at the first that is not whole."""
        if not self.size():
            return
        with self.file.open("rb") as opened:
            _check_magic(self.file, opened.read(len(MAGIC)))
            opened.seek(max(start, len(MAGIC)))
            while found := _next_frame(opened.tell(), opened.read(HEAD)):
                frame, checksum = found
                payload = opened.read(frame.size)
                if len(payload) < frame.size or _checksum(frame, payload) != checksum:
                    return
                yield frame, payload

    def read(self, offset: int) -> bytes:
        """The payload of the frame at an offset; Damaged when it is not what was written."""
        for _, payload in self.frames(offset):
            return payload
        raise Damaged(f"{self.file} is damaged at byte {offset}; delete its folder, it is built again")

    def append(self, payload: bytes, versions: int, last: int) -> Frame:
        """Adds a frame; it is on disk when this returns."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("ab") as opened:
                if not opened.tell():
                    opened.write(MAGIC)
                frame = Frame(opened.tell(), len(payload), versions, last)
                opened.write(_FIXED.pack(*frame[1:]) + _SUM.pack(_checksum(frame, payload)) + payload)
                opened.flush()
                os.fsync(opened.fileno())
        except OSError as error:
            raise NotReady(f"cannot write {self.file}: {error.strerror}; free space or check permissions") from None
        return frame

    def cut(self, end: int) -> None:
        """Forgets everything from an offset on."""
        if self.size() > end:
            with self.file.open("r+b") as opened:
                opened.truncate(end)
                os.fsync(opened.fileno())


def _check_magic(file: Path, found: bytes) -> None:
    if found == MAGIC or MAGIC.startswith(found):
        return
    if found[:14] == MAGIC[:14]:
        raise NewerFormat(f"{file} was written by a later release; update Letopis or delete its folder")
    raise Damaged(f"{file} is no index of links; delete its folder, it is built again")


def _next_frame(offset: int, head: bytes) -> tuple[Frame, int] | None:
    if len(head) < HEAD:
        return None
    size, versions, last = _FIXED.unpack_from(head)
    return Frame(offset, size, versions, last), _SUM.unpack_from(head, _FIXED.size)[0]


def _checksum(frame: Frame, payload: bytes) -> int:
    return xxh3_64_intdigest(payload, seed=xxh3_64_intdigest(_FIXED.pack(*frame[1:])))
