"""WARC 1.1 out: an export that is deterministic and streamed, and files written beside the archive as a crawl records.

A version is a `response`; a check that found it again is a `revisit` that refers to it; a check without an answer
that could be kept is a `metadata` record. What an import brought goes out as the record that it came in.
Exporting the same part of the same archive twice gives the same bytes. Files beside the archive follow its commits:
nothing is ever in them that the archive does not have, and one that is still written ends in `.open`.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

from letopis import __version__
from letopis.archive import Archive, RecordedCapture, identify
from letopis.archive.captures import last_check_time, version_time
from letopis.archive.cluster import PieceRunner
from letopis.archive.imported import StoredSource, sources_of, waiting_revisits
from letopis.errors import NotReady
from letopis.exchange.kept_records import KeptRecord
from letopis.exchange.revisits import read_waiting
from letopis.exchange.selection import ExportPart, ExportSelection, export_parts
from letopis.exchange.warc_records import (
    CHECK_TYPE,
    SOFTWARE_NAME,
    WarcCompression,
    WarcRecord,
    WarcWriter,
    compressed_record,
    is_revisit,
    record_id,
    response_head,
    stable_id,
)
from letopis.model import Check, Outcome, rfc3339, stamp14, to_millis

SOFTWARE = f"Letopis/{__version__}"
_PROFILE_SAME = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_PROFILE_304 = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
_NEWS = (Outcome.NEW, Outcome.CHANGED)


class OriginalCapture(NamedTuple):
    """The record that brought a version, as later ones refer to it."""

    id: str
    url: str
    date: str
    digest: str


def _original_of(check: Check, source: StoredSource | None) -> OriginalCapture:
    date = rfc3339(check.checked_at)
    if source is None:
        return OriginalCapture(record_id("response", check.url, date), check.url, date, f"sha1:{check.digest}")
    kept = KeptRecord.unpack(source.data)
    digest = kept.field("warc-payload-digest") or f"sha1:{check.digest}"
    return OriginalCapture(kept.field("warc-record-id"), kept.field("warc-target-uri"), kept.field("warc-date"), digest)


class ExportedRecord(NamedTuple):
    """A record, the check that it tells of, and the bytes of its payload."""

    record: WarcRecord
    check: Check
    body: bytes = b""


def export_warc(
    archive: Archive,
    out: BinaryIO,
    selected: ExportSelection,
    compression: WarcCompression = "gzip",
    progress: Callable[[int], None] = lambda done: None,
    spread: PieceRunner | None = None,
) -> int:
    """Writes the selected part; answers how many records. `spread` may read and compress them elsewhere.

    A site or a project that is not known is NotFound before anything is written.
    """
    count = 0
    for count, member in enumerate(warc_members(archive, selected, compression, progress, spread), 1):  # noqa: B007
        out.write(member)
    return count


def warc_members(
    archive: Archive,
    selected: ExportSelection,
    compression: WarcCompression = "gzip",
    progress: Callable[[int], None] = lambda done: None,
    spread: PieceRunner | None = None,
) -> Iterator[bytes]:
    """The same piece by piece: what the file is, then its records."""
    members = _members(archive, selected, compression, spread)
    yield compressed_record(info_record(last_check_time(archive)), compression)
    for count, member in enumerate(members, 2):
        yield member
        progress(count)


def _members(
    archive: Archive, selected: ExportSelection, compression: WarcCompression, spread: PieceRunner | None
) -> Iterator[bytes]:
    """The records as they stand in a file; from here they come one by one, from elsewhere piece by piece."""
    waiting = (compressed_record(record, compression) for record in _waiting_records(archive, selected))
    if spread is None:
        here = (compressed_record(one.record, compression) for one in exported_records(archive, selected))
        return chain(here, waiting)
    pieces = ((compression, part) for part in export_parts(archive, selected))
    return chain(chain.from_iterable(spread.each(_part_members, pieces)), waiting)


def _part_members(archive: Archive, piece: tuple[WarcCompression, ExportPart]) -> list[bytes]:
    compression, part = piece
    return [compressed_record(one.record, compression) for one in _part_records(archive, part)]


def exported_records(
    archive: Archive, selected: ExportSelection, spread: PieceRunner | None = None
) -> Iterator[ExportedRecord]:
    """All records of the selected part, URL by URL, oldest check first."""
    found = export_parts(archive, selected)
    if spread is None:
        return chain.from_iterable(_part_records(archive, part) for part in found)
    return chain.from_iterable(spread.each(_part_exported, found))


def _part_exported(archive: Archive, part: ExportPart) -> list[ExportedRecord]:
    return list(_part_records(archive, part))


def _part_records(archive: Archive, part: ExportPart) -> Iterator[ExportedRecord]:
    for url in part.urls:
        yield from records_of(archive, part.selected.replayable(archive, url), part.start, part.end)


def records_of(
    archive: Archive, checks: list[Check], start: int = 0, end: int | None = None
) -> Iterator[ExportedRecord]:
    """The records of one URL's checks, or of a stretch of them, which may refer to checks before it."""
    originals: dict[int, OriginalCapture] = {}
    sources = sources_of(archive, checks[0].url) if checks else {}
    for place, check in enumerate(checks[:end]):
        original = originals.get(check.version) if check.version is not None else None
        source = sources.get(to_millis(check.checked_at))
        if check.outcome in _NEWS and check.version is not None:
            originals[check.version] = _original_of(check, source)
        if place >= start and source is None:
            yield from check_records(archive, check, original)
        elif place >= start and source is not None:
            yield from _records_as_they_came(archive, check, source)


def _records_as_they_came(archive: Archive, check: Check, source: StoredSource) -> Iterator[ExportedRecord]:
    """The records that an import brought a check with, and what we know of it beside them."""
    kept = KeptRecord.unpack(source.data)
    body = b"" if kept.field("warc-type") == "revisit" else _kept_body(archive, check)
    for record in kept.records(body if source.body is None else source.body()):
        yield ExportedRecord(record, check, body if record.kind == "response" else b"")
    if check.redirects or check.warnings or check.error or check.final_url != check.url:
        yield ExportedRecord(_metadata(check), check)


def _kept_body(archive: Archive, check: Check) -> bytes:
    body = archive.answers.error_body(check.url, check.checked_at)
    if body or check.version is None or not (check.outcome in _NEWS or is_revisit(check)):
        return body
    return archive.get(check.url, version=check.version).body


def _waiting_records(archive: Archive, selected: ExportSelection) -> Iterator[WarcRecord]:
    """Revisits that wait for their capture go out as they came."""
    for rows in waiting_revisits(archive):
        for capture in (read_waiting(row).arrival.capture for row in rows):
            if capture.source is not None and capture.source.data and selected.includes(capture.url, capture.time):
                yield from KeptRecord.unpack(capture.source.data).records(b"")


def check_records(archive: Archive, check: Check, original: OriginalCapture | None) -> Iterator[ExportedRecord]:
    """The records of one check; `original` is what brought the version which this one found again."""
    if check.outcome in _NEWS and check.version is not None:
        body = archive.get(check.url, version=check.version).body
        yield ExportedRecord(_response(check, body), check, body)
    elif check.outcome is Outcome.UNCHANGED and (check.status < 300 or check.status == 304):
        yield ExportedRecord(_revisit(check, original), check)
    elif check.status and not _is_bodiless(check):
        body = archive.answers.error_body(check.url, check.checked_at)
        yield ExportedRecord(_response(check, body), check, body)
    if _is_bodiless(check) or check.redirects or check.warnings or check.error or check.final_url != check.url:
        yield ExportedRecord(_metadata(check), check)


def _is_bodiless(check: Check) -> bool:
    """Whether a check has no answer that a record could hold: none came, or it was too large to be kept."""
    return not check.status or check.outcome is Outcome.TOO_LARGE


def info_record(moment: datetime) -> WarcRecord:
    """What stands at the beginning of each file; its time is that of the last check, so that equal files are equal."""
    text = f"{SOFTWARE_NAME}{__version__}\r\nformat: WARC File Format 1.1\r\n"
    date = rfc3339(moment)
    return WarcRecord(
        (
            ("WARC-Type", "warcinfo"),
            ("WARC-Record-ID", f"<urn:uuid:{stable_id('warcinfo', text, date)}>"),
            ("WARC-Date", date),
            ("WARC-Block-Digest", _digest(text.encode())),
            ("Content-Type", "application/warc-fields"),
        ),
        text.encode(),
    )


def _digest(data: bytes) -> str:
    return f"sha1:{identify(data).text}"


def _common_headers(kind: str, check: Check) -> list[tuple[str, str]]:
    return [
        ("WARC-Type", kind),
        ("WARC-Record-ID", record_id(kind, check.url, rfc3339(check.checked_at))),
        ("WARC-Date", rfc3339(check.checked_at)),
        ("WARC-Target-URI", check.url),
    ]


def _response(check: Check, body: bytes) -> WarcRecord:
    headers = _common_headers("response", check)
    block = response_head(check.status, check.headers, len(body)) + body
    headers.append(("WARC-Block-Digest", _digest(block)))
    headers.append(("WARC-Payload-Digest", _digest(body)))
    headers.append(("Content-Type", "application/http; msgtype=response"))
    return WarcRecord(tuple(headers), block)


def _revisit(check: Check, original: OriginalCapture | None) -> WarcRecord:
    """A check that found a version again; where that version is no longer kept, only its digest is named."""
    headers = _common_headers("revisit", check)
    headers.append(("WARC-Profile", _PROFILE_304 if check.status == 304 else _PROFILE_SAME))
    digest = original.digest if original else f"sha1:{check.digest}" if check.digest else ""
    if digest:
        headers.append(("WARC-Payload-Digest", digest))
    if original is not None:
        headers += [
            ("WARC-Refers-To", original.id),
            ("WARC-Refers-To-Target-URI", original.url),
            ("WARC-Refers-To-Date", original.date),
        ]
    block = response_head(check.status, check.headers, None)
    headers.append(("WARC-Block-Digest", _digest(block)))
    headers.append(("Content-Type", "application/http; msgtype=response"))
    return WarcRecord(tuple(headers), block)


def _metadata(check: Check) -> WarcRecord:
    """What WARC has no field for: failures, redirects that were followed, warnings."""
    facts: dict[str, object] = {
        "outcome": check.outcome,
        "status": check.status,
        "error": check.error,
        "final_url": check.final_url,
        "redirects": [[hop.url, hop.status, hop.location, hop.ip, hop.headers] for hop in check.redirects],
        "warnings": list(check.warnings),
    }
    if check.failure and check.failure != "http":
        facts["failure"] = check.failure
    if check.status and _is_bodiless(check):
        facts |= {"headers": check.headers, "length": check.length, "score": check.score, "blocks": check.blocks}
    block = json.dumps(facts, ensure_ascii=False, sort_keys=True).encode()
    digest = ("WARC-Block-Digest", _digest(block))
    return WarcRecord((*_common_headers("metadata", check), digest, ("Content-Type", CHECK_TYPE)), block)


FILE_BYTES = 1024 * 1024 * 1024
"""A file is closed when it has grown beyond this."""
_OPEN = ".open"
_PIECE = 1024 * 1024


@contextmanager
def recording_to_warc(archive: Archive, folder: Path, *, most: int = FILE_BYTES) -> Iterator[None]:
    """While it lasts, whatever this archive object records also goes to WARC files in a folder."""
    direct = CrawlWarcWriter(archive, folder, most=most)
    archive.followers.append(direct.take)
    try:
        yield
    finally:
        archive.followers.remove(direct.take)
        direct.close()


class CrawlWarcWriter:
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
            raise _cannot_write(folder, error) from None

    def take(self, recorded: Sequence[RecordedCapture]) -> None:
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
            raise _cannot_write(self._folder, error) from None

    def close(self) -> None:
        """Gives the last file its name."""
        if self._file is not None:
            path = Path(self._file.name)
            self._file.flush()
            os.fsync(self._file.fileno())
            path.rename(path.with_suffix(""))
            self._file.close()
            self._file = self._writer = None

    def _append(self, check: Check, done: RecordedCapture) -> None:
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
            raise NotReady(f"{self._folder} holds too many files of this second; name another folder")
        self._writer = WarcWriter(self._file)
        self._writer.write(info_record(last_check_time(self._archive)))
        return self._writer

    def _check(self, done: RecordedCapture) -> Check | None:
        """The check as it was recorded: nearly always the last one of its URL."""
        last = self._archive.answers.last_check(done.url)
        if last is not None and to_millis(last.checked_at) == done.time:
            return last
        history = self._archive.answers.history(done.url)
        return next((check for check in history if to_millis(check.checked_at) == done.time), None)

    def _original(self, check: Check, done: RecordedCapture) -> OriginalCapture | None:
        if not is_revisit(check) or check.version is None:
            return None
        began = version_time(self._archive, done.resource, check.version)
        if began is None:
            return None
        source = sources_of(self._archive, check.url).get(to_millis(began))
        return _original_of(replace(check, checked_at=began), source)


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


def _cannot_write(folder: Path, error: OSError) -> NotReady:
    return NotReady(
        f"cannot write WARC files to {folder}: {error.strerror}; what was recorded is in the archive, "
        "make room or name another folder"
    )
