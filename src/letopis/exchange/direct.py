"""WARC files beside the archive, written as a crawl records: a follower of what is committed.

The archive commits first; then the records of the batch are appended and
synced. A crash between the two leaves the WARC files short of that batch,
which `letopis export warc --from` gives; nothing is ever in them that the
archive does not have. A file that is still written ends in `.open`.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from letopis.archive import Archive, Recorded
from letopis.errors import NotReady
from letopis.exchange.cdx_lines import is_revisit
from letopis.exchange.warc_out import Original, check_records, info_record
from letopis.exchange.warc_writer import WarcWriter
from letopis.model import Check, from_millis, stamp14, to_millis

FILE_BYTES = 1024 * 1024 * 1024
"""A file is closed when it has grown beyond this."""
_OPEN = ".open"
_PIECE = 1024 * 1024


@contextmanager
def written_directly(archive: Archive, folder: Path, *, most: int = FILE_BYTES) -> Iterator[None]:
    """While it lasts, whatever this archive object records also goes to WARC files in a folder."""
    direct = DirectWarc(archive, folder, most=most)
    archive.followers.append(direct.take)
    try:
        yield
    finally:
        archive.followers.remove(direct.take)
        direct.close()


class DirectWarc:
    """Appends what was recorded; several may share a folder, each with files of its own."""

    def __init__(self, archive: Archive, folder: Path, *, most: int = FILE_BYTES) -> None:
        self._archive = archive
        self._folder = folder
        self._most = most
        self._file: BinaryIO | None = None
        self._writer: WarcWriter | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for left in sorted(folder.glob(f"*{_OPEN}")):
                _recover(left)
        except OSError as error:
            raise _cannot(folder, error) from None

    def take(self, recorded: Sequence[Recorded]) -> None:
        """Appends the records of a batch; they are durable when it returns."""
        try:
            for done in recorded:
                check = self._check(done)
                if check is not None:
                    self._append(check, done)
            if self._file is not None:
                self._file.flush()
                os.fsync(self._file.fileno())
        except OSError as error:
            raise _cannot(self._folder, error) from None

    def close(self) -> None:
        """Gives the last file its name."""
        if self._file is not None:
            path = Path(self._file.name)
            self._file.flush()
            os.fsync(self._file.fileno())
            path.rename(path.with_suffix(""))
            self._file.close()
            self._file = self._writer = None

    def _append(self, check: Check, done: Recorded) -> None:
        writer = self._writer or self._begin()
        for exported in check_records(self._archive, check, self._original(check, done)):
            writer.write(exported.record)
        if writer.size >= self._most:
            self.close()

    def _begin(self) -> WarcWriter:
        """A new file under the first free name; the lock says that somebody is at work on it."""
        stamp = stamp14(self._archive.clock())
        for number in range(100_000):
            path = self._folder / f"letopis-{stamp}-{number:05}.warc.gz"
            if path.exists():
                continue
            try:
                self._file = path.with_name(path.name + _OPEN).open("xb")
            except FileExistsError:
                continue
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        if self._file is None:
            raise NotReady(f"{self._folder} holds too many files of this second; name another folder with --warc")
        self._writer = WarcWriter(self._file)
        self._writer.write(info_record())
        return self._writer

    def _check(self, done: Recorded) -> Check | None:
        """The check as it was recorded: nearly always the last one of its URL."""
        last = self._archive.answers.last_check(done.url)
        if last is not None and to_millis(last.checked_at) == done.time:
            return last
        history = self._archive.answers.history(done.url)
        return next((check for check in history if to_millis(check.checked_at) == done.time), None)

    def _original(self, check: Check, done: Recorded) -> Original | None:
        if not is_revisit(check) or check.version is None:
            return None
        version = self._archive.catalog.versions.number(done.resource, check.version)
        return Original(from_millis(version.time), check.digest) if version is not None else None


def _recover(left: Path) -> None:
    """Cuts what a crash left half written, and gives the file its name; one that is in use is left alone."""
    with left.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        file.truncate(_whole_members(file))
        left.rename(left.with_suffix(""))


def _whole_members(file: BinaryIO) -> int:
    """How far a file consists of whole gzip members."""
    end = position = 0
    press = zlib.decompressobj(31)
    while piece := file.read(_PIECE):
        try:
            while piece:
                press.decompress(piece)
                position += len(piece) - len(press.unused_data)
                piece = press.unused_data
                if press.eof:
                    end, press = position, zlib.decompressobj(31)
        except zlib.error:
            break
    return end


def _cannot(folder: Path, error: OSError) -> NotReady:
    return NotReady(
        f"cannot write WARC files to {folder}: {error.strerror}; what was recorded is in the archive, "
        "make room or name another folder with --warc"
    )
