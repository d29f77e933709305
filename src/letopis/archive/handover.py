"""What a crawl read of the pages it recorded, kept in small files until the index of links takes it in.

A cache and nothing more: whatever is missing, half written or about another
version is read out of the archive again, with the same result. Nothing here
ever stops a crawl.

    file  = MAGIC frame*
    frame = size u32, versions u32, first u64, last u64, checksum u64, payload[size]

The payload is a frame of `letopis.archive.leads`; the checksum is XXH3-64
over it, seeded with XXH3-64 of the four numbers before it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import BinaryIO, NamedTuple

from xxhash import xxh3_64_intdigest

from letopis.archive.leads import Handed, Stretch, pack_leads
from letopis.archive.recording import Recorded
from letopis.model import Observation, Outcome

MAGIC = b"letopis leads 1\n"
FILE_BYTES = 8 << 20
"""From this size on a new file is begun."""
MOST_BYTES = 128 << 20
"""What all files together may take; of about half a million pages."""
_HEAD = Struct("<IIQQ")
_SUM = Struct("<Q")
_PATTERN = "*.leads"
_HTML = ("text/html", "application/xhtml+xml")
_VERSION = (Outcome.NEW, Outcome.CHANGED)


def folder_of(archive: Path) -> Path:
    """Where an archive keeps what is handed over; can be deleted at any time."""
    return archive / "index" / "leads"


class Handover:
    """Hands pages over. One for each crawling process, which never waits for anybody."""

    def __init__(self, archive: Path, file_bytes: int = FILE_BYTES, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder_of(archive)
        self._file_bytes = file_bytes
        self._most_bytes = most_bytes
        self._file: Path | None = None

    def add(self, looks: Sequence[Observation], done: Sequence[Recorded]) -> None:
        """Writes one frame after looks were recorded; not synced, since what a crash takes is only read again."""
        self.put(*pack_leads(_handed(looks, done)))

    def put(self, versions: Sequence[int], payload: bytes) -> None:
        """Writes what was packed elsewhere."""
        if not versions:
            return
        head = _HEAD.pack(len(payload), len(versions), min(versions), max(versions))
        try:
            self._write(b"".join((head, _SUM.pack(_checksum(head, payload)), payload)))
        except OSError:
            # Behind half a frame nobody reads on.
            self._file = None

    def _write(self, frame: bytes) -> None:
        if self._file is None:
            self._make_room()
            self._file = self._folder / f"{os.urandom(8).hex()}.leads"
        with self._file.open("ab") as opened:
            # Whoever took the file in has removed it: then this begins another one of its name.
            opened.write(frame if opened.tell() else MAGIC + frame)
            if opened.tell() >= self._file_bytes:
                self._file = None

    def _make_room(self) -> None:
        """Gives up the oldest files when nobody has asked for them for too long."""
        self._folder.mkdir(parents=True, exist_ok=True)
        facts = sorted((found.st_mtime_ns, found.st_size, file) for file, found in _files(self._folder))
        total = sum(size for _, size, _ in facts)
        for _, size, file in facts:
            if total + self._file_bytes <= self._most_bytes:
                break
            file.unlink(missing_ok=True)
            total -= size


def _handed(looks: Sequence[Observation], done: Sequence[Recorded]) -> Iterator[Handed]:
    """Pages that became versions, and that are read the same whenever they are read again."""
    for look, row in zip(looks, done, strict=True):
        page = look.page
        if page is None or page.warnings or page.content_type not in _HTML or row.outcome not in _VERSION:
            continue
        if row.version is not None and row.identity is not None:
            yield Handed(row.version, row.time, row.identity.sha1, page)


class Received:
    """What crawls have handed over, for whoever takes it in."""

    def __init__(self, archive: Path) -> None:
        self._folder = folder_of(archive)

    def between(self, first: int, last: int) -> Stretch:
        """The leads of versions in this range, as far as they are there and whole."""
        found = Stretch()
        for file, _ in _files(self._folder):
            with suppress(OSError), file.open("rb") as opened:
                for frame in _frames(opened):
                    if frame.first <= last and first <= frame.last:
                        _learn(found, frame, opened.read(frame.size))
        return found

    def drop(self, last: int) -> None:
        """Removes files that hold nothing beyond a version."""
        for file, _ in _files(self._folder):
            with suppress(OSError):
                with file.open("rb") as opened:
                    is_taken = all(frame.last <= last for frame in _frames(opened))
                if is_taken:
                    file.unlink()


class _Frame(NamedTuple):
    size: int
    versions: int
    first: int
    last: int
    checksum: int


def _checksum(fields: bytes, payload: bytes) -> int:
    return xxh3_64_intdigest(payload, seed=xxh3_64_intdigest(fields))


def _frames(opened: BinaryIO) -> Iterator[_Frame]:
    """Heads of frames, as far as they go; the payload of each is read next."""
    if opened.read(len(MAGIC)) != MAGIC:
        return
    at = len(MAGIC)
    while len(head := opened.read(_HEAD.size + _SUM.size)) == _HEAD.size + _SUM.size:
        frame = _Frame(*_HEAD.unpack_from(head), *_SUM.unpack_from(head, _HEAD.size))
        yield frame
        at += len(head) + frame.size
        opened.seek(at)


def _learn(found: Stretch, frame: _Frame, payload: bytes) -> None:
    if _checksum(_HEAD.pack(*frame[:4]), payload) == frame.checksum:
        found.add(payload, frame.versions)


def _files(folder: Path) -> list[tuple[Path, os.stat_result]]:
    """Files of leads that are there."""
    found = []
    for file in folder.glob(_PATTERN):
        with suppress(OSError):
            found.append((file, file.stat()))
    return found
