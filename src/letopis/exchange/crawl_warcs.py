"""WARC files that are written while a crawl records.

They follow the archive's commits: nothing is ever in them that the archive does not have. One that is still written
ends in `.open`; once it has its final name, lists of captures refer to it.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from letopis.archive import Archive, RecordedCapture
from letopis.archive.captures import last_check_time, version_time
from letopis.archive.imported import sources_of
from letopis.errors import NotFound, NotReady
from letopis.exchange.captures import parse_date
from letopis.exchange.exported_places import ExportIndexWriter
from letopis.exchange.record_stream import read_records
from letopis.exchange.warc_export import OriginalCapture, check_records, info_record, is_listed_capture, original_of
from letopis.exchange.warc_records import WarcPlace, WarcWriter, is_revisit
from letopis.model import Check, stamp14, to_millis

FILE_BYTES = 1024 * 1024 * 1024
"""A file is closed when it is larger than this."""
_OPEN = ".open"
_PIECE = 1024 * 1024
_MOST_HEAD = 64 * 1024


@contextmanager
def recording_to_warc(archive: Archive, folder: Path, *, most: int = FILE_BYTES) -> Iterator[None]:
    """While it is open, everything that this archive object records is also written to WARC files in a folder."""
    direct = CrawlWarcWriter(archive, folder, most=most)
    archive.followers.append(direct.take)
    try:
        yield
    finally:
        archive.followers.remove(direct.take)
        direct.close()


class CrawlWarcWriter:
    """Appends what was recorded; several writers may share a folder, each with separate files."""

    def __init__(self, archive: Archive, folder: Path, *, most: int = FILE_BYTES) -> None:
        self._archive = archive
        self._folder = folder
        self._most = most
        self._file: BinaryIO | None = None
        self._writer: WarcWriter | None = None
        self._places = ExportIndexWriter()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for left in sorted(folder.glob(f"*{_OPEN}")):
                self._recover(left)
        except OSError as error:
            raise _cannot_write(folder, error) from None

    def take(self, recorded: Sequence[RecordedCapture]) -> None:
        """Appends the records of a batch; they are durable when it returns."""
        try:
            for done in recorded:
                check = self._check(done.url, done.time)
                if check is not None:
                    self._append(check, done)
            if self._file is not None:
                self._file.flush()
                os.fsync(self._file.fileno())
        except OSError as error:
            raise _cannot_write(self._folder, error) from None

    def close(self) -> None:
        """Gives the last file its final name."""
        if self._file is not None:
            path = Path(self._file.name)
            self._file.flush()
            os.fsync(self._file.fileno())
            path.rename(path.with_suffix(""))
            self._file.close()
            self._file = self._writer = None
            self._keep_places(path.with_suffix(""))

    def _keep_places(self, file: Path) -> None:
        with closing(self._places) as places:
            places.keep(self._archive, file)
        self._places = ExportIndexWriter()

    def _append(self, check: Check, done: RecordedCapture) -> None:
        writer = self._writer or self._begin()
        found = next(iter(self._archive.sets.of(check.url, check.checked_at, check.checked_at)), None)
        came = self._archive.answers.exchanges(check.url, check.checked_at, check.checked_at).get(done.time)
        for exported in check_records(self._archive, check, self._original(check, done), found, came):
            place = writer.write(exported.record)
            if is_listed_capture(exported):
                self._places.add(check.url, done.time, *place)
        if writer.size >= self._most:
            self.close()

    def _begin(self) -> WarcWriter:
        """A new file under the first free name; the lock shows that it is being written."""
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
            raise NotReady(f"{self._folder} holds too many files of this second; name another folder")
        self._writer = WarcWriter(self._file)
        self._writer.write(info_record(last_check_time(self._archive)))
        return self._writer

    def _check(self, url: str, time: int) -> Check | None:
        """The check as it was recorded: nearly always the last one of its URL."""
        last = self._archive.answers.last_check(url)
        if last is not None and to_millis(last.checked_at) == time:
            return last
        history = self._archive.answers.history(url)
        return next((check for check in history if to_millis(check.checked_at) == time), None)

    def _original(self, check: Check, done: RecordedCapture) -> OriginalCapture | None:
        if not is_revisit(check) or check.version is None:
            return None
        began = version_time(self._archive, done.resource, check.version)
        if began is None:
            return None
        source = sources_of(self._archive, check.url).get(to_millis(began))
        return original_of(self._archive, check._replace(checked_at=began), source)

    def _recover(self, left: Path) -> None:
        """Cuts what a crash left half written, and gives the file its final name; one in use is not changed."""
        with left.open("r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return
            end = 0
            for place, head in _whole_members(file):
                end = place.offset + place.length
                self._find_again(place, head)
            file.truncate(end)
            left.rename(left.with_suffix(""))
        self._keep_places(left.with_suffix(""))

    def _find_again(self, place: WarcPlace, head: bytes) -> None:
        """Records the place of a capture in a file that a crash left, if it is one of this archive."""
        record = next(read_records(BytesIO(head)))
        if record.field("warc-type") not in ("response", "revisit"):
            return
        url = record.field("warc-target-uri")
        with suppress(NotFound, ValueError):
            check = self._check(url, parse_date(record.field("warc-date")))
            if check is not None and not check.redirects:
                self._places.add(url, to_millis(check.checked_at), *place)


def _whole_members(file: BinaryIO) -> Iterator[tuple[WarcPlace, bytes]]:
    """The whole gzip members that a file begins with, each with the beginning of its content."""
    start = position = 0
    press, head = zlib.decompressobj(31), b""
    while piece := file.read(_PIECE):
        try:
            while piece:
                head = (head + press.decompress(piece))[:_MOST_HEAD]
                position += len(piece) - len(press.unused_data)
                piece = press.unused_data
                if press.eof:
                    yield WarcPlace(start, position - start), head
                    start, press, head = position, zlib.decompressobj(31), b""
        except zlib.error:
            return


def _cannot_write(folder: Path, error: OSError) -> NotReady:
    return NotReady(
        f"cannot write WARC files to {folder}: {error.strerror}; what was recorded is in the archive, "
        "make room or name another folder"
    )
