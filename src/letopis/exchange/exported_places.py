"""Where captures are in written WARC and WACZ files: an index in the archive for each such file.

An index is a line of JSON (path, bytes, time of the file; names of WARC files inside it; first and last time of its
checks) and records of 32 bytes, sorted: key of the URL, time of the check, place, length. A place is the number of the
WARC file inside the file, and the offset in that. Order of writes: the file is durable under its name, then its index.
An index whose file is gone or has changed is not used; the next one written removes it.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from letopis.archive import Archive
from letopis.binary import atomic_file
from letopis.exchange.cdx import RecordLocation, SortedLines
from letopis.urls import url_key

FOLDER = "exports"
"""The name of the folder in an archive for its indexes of exported files."""
_ENDING = ".places"
_RECORD = struct.Struct(">QQQQ")
_SIGN = 1 << 63
_MOST_HEAD = 4 * 1024 * 1024
_OFFSET_BITS = 48
_EVER = (-_SIGN, _SIGN)


class ExportIndexWriter:
    """Collects the places of captures while a file is written, and stores them once it has its final name."""

    def __init__(self) -> None:
        self._lines = SortedLines()
        self._inside: list[str] = []
        self._first, self._last = _EVER[::-1]

    def add(self, url: str, time: int, offset: int, length: int) -> None:
        """The record of a check, by its time in milliseconds."""
        place = max(len(self._inside) - 1, 0) << _OFFSET_BITS | offset
        self._first, self._last = min(self._first, time), max(self._last, time)
        self._lines.add(_RECORD.pack(url_key(url) + _SIGN, time + _SIGN, place, length).hex())

    def enter(self, name: str) -> None:
        """What follows is in this WARC file inside the file."""
        self._inside.append(name)

    def keep(self, archive: Archive, file: Path) -> None:
        """Writes the index of a file; there is none if the folder of the archive is read-only."""
        if not file.is_file() or archive.is_read_only:
            return
        folder, known = archive.folder / FOLDER, file.resolve()
        with suppress(OSError):
            folder.mkdir(exist_ok=True)
            for index in _indexes(folder):
                if not index.is_true:
                    index.path.unlink(missing_ok=True)
            name = sha256(os.fsencode(known)).hexdigest()[:32] + _ENDING
            head = {**_facts(known), "inside": self._inside, "times": (self._first, self._last)}
            with atomic_file(folder / name) as out:
                out.write(json.dumps(head).encode() + b"\n")
                for line in self._lines:
                    out.write(bytes.fromhex(line.decode()))

    def close(self) -> None:
        """Removes temporary files."""
        self._lines.close()


def _facts(file: Path) -> dict[str, str | int]:
    found = file.stat()
    return {"path": str(file), "bytes": found.st_size, "time": found.st_mtime_ns}


@dataclass(frozen=True)
class _ExportIndex:
    """One index; its records are read in place."""

    path: Path
    file: Path
    start: int
    is_true: bool
    inside: tuple[str, ...]
    times: tuple[int, int]

    @cached_property
    def _count(self) -> int:
        return (self.path.stat().st_size - self.start) // _RECORD.size

    def find(self, key: tuple[int, int]) -> RecordLocation | None:
        if not self.times[0] <= key[1] - _SIGN <= self.times[1]:
            return None
        with self.path.open("rb") as stream:
            low, high = 0, self._count
            while low < high:
                middle = (low + high) // 2
                found = self._at(stream.fileno(), middle)
                if found[:2] < key:
                    low = middle + 1
                else:
                    high = middle
            found = self._at(stream.fileno(), low) if low < self._count else (0, 0, 0, 0)
        return self._located(found[2], found[3]) if found[:2] == key else None

    def _located(self, place: int, length: int) -> RecordLocation | None:
        """None if a damaged index names a file that it does not have."""
        number, offset = place >> _OFFSET_BITS, place & (1 << _OFFSET_BITS) - 1
        names = self.inside or (self.file.name,)
        return RecordLocation(names[number], offset, length) if number < len(names) else None

    def _at(self, descriptor: int, number: int) -> tuple[int, int, int, int]:
        data = os.pread(descriptor, _RECORD.size, self.start + number * _RECORD.size)
        return _RECORD.unpack(data) if len(data) == _RECORD.size else (0, 0, 0, 0)


def _indexes(folder: Path) -> Iterator[_ExportIndex]:
    """All indexes, newest files first."""
    found = []
    for path in folder.glob(f"*{_ENDING}"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            with path.open("rb") as stream:
                head = stream.readline(_MOST_HEAD)
            facts = json.loads(head)
            file = Path(facts["path"])
            is_true = file.is_file() and _facts(file).items() <= facts.items()
            first, last = facts.get("times", _EVER)
            inside = tuple(map(str, facts.get("inside", ())))
            index = _ExportIndex(path, file, len(head), is_true, inside, (int(first), int(last)))
            found.append((int(facts["time"]), index))
    return (index for _, index in sorted(found, key=lambda pair: pair[0], reverse=True))


class ExportedPlaces:
    """Where captures are in exported files that still exist."""

    def __init__(self, archive: Archive) -> None:
        self._indexes = [index for index in _indexes(archive.folder / FOLDER) if index.is_true]

    def find(self, url: str, time: int) -> RecordLocation | None:
        """The place of the record of a check, in the newest file that contains it; None if no file does."""
        key = (url_key(url) + _SIGN, time + _SIGN)
        places = (index.find(key) for index in self._indexes)
        return next((place for place in places if place is not None), None)
