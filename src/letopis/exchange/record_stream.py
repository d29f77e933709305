"""Records of WARC and ARC files as they are, read so that one bad record does not affect the others.

Lines may end with or without a carriage return. If a length is wrong, a record ends where the next one begins. If a
compressed member is damaged, reading continues at the next one. A record says what is wrong with it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO, Protocol

from letopis.errors import Damaged
from letopis.exchange.warc_records import UsualHead, parse_head, record_head
from letopis.lazy import lazy
from letopis.model import Headers
from letopis.tuples import NamedTuple
from letopis.zstandard import zstd

if TYPE_CHECKING:
    from lz4 import frame as lz4_frame
else:
    lz4_frame = lazy("lz4.frame")

MAX_BLOCK = 256 * 1024 * 1024
"""Larger blocks are skipped and reported."""
BREAKS_OFF = "the record is truncated"
WRONG_LENGTH = "its length is wrong; it was read up to the next record"
TOO_LARGE = "larger than 256 MiB"
NO_RECORD = "bytes that belong to no record"
DAMAGED_MEMBER = "a compressed part is damaged or truncated; the rest of it is lost"

_MAX_FIELDS = 1024 * 1024
_PIECE = 1024 * 1024
_READ = 64 * 1024
"""Bytes of plain files at once: larger blocks of memory are requested from the system each time."""
_READ_GZIP = 16 * 1024
"""Bytes of gzip at once: what follows a member is copied for the next one, and members are small."""
_BETWEEN = b"\r\n\x00"
_GZIP, _ZSTD, _LZ4 = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18"
_ZSTD_DICTIONARY = b"\x5d\x2a\x4d\x18"


class SourceRecord(NamedTuple):
    """A record as it is in a file: first line, fields in order, block.

    `fault` says what is wrong with it; the block is then what could be read.
    """

    version: str
    fields: Headers
    block: bytes
    fault: str = ""
    named: Mapping[str, str] | None = None
    """The first value of each field by its name in lower case, if that was computed already."""
    lines: bytes = b""
    """The first line and the fields as they are in the file; empty if the record was generated, not read."""

    def field(self, name: str) -> str:
        """The first value of a field, by its name in lower case."""
        return self.by_name().get(name, "")

    def by_name(self) -> Mapping[str, str]:
        """The first value of each field by its name in lower case."""
        return {name.lower(): value for name, value in reversed(self.fields)} if self.named is None else self.named


# Stretches of a file without a gap, decompressed piece by piece


def _plain_pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_READ):
        yield piece


class _DamagedMember(Exception):
    """Ends a stretch whose next compressed part gives nothing, or no more."""


class _GzipMembers:
    """Members one after another; a damaged one ends a stretch, and the next one begins another."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._data = file.read(_READ_GZIP)

    def stretches(self) -> Iterator[Iterator[bytes]]:
        while self._data:
            yield self._pieces()
            self._data = self._from_next_member(self._data)

    def _pieces(self) -> Iterator[bytes]:
        """As far as members are sound; the bytes from the damaged one on stay."""
        while self._data.startswith(_GZIP):
            inflate, data, is_first = zlib.decompressobj(31), self._data, True
            try:
                while data and not inflate.eof:
                    yield inflate.decompress(data, _PIECE)
                    data = inflate.unconsumed_tail or (b"" if inflate.eof else self._file.read(_READ_GZIP))
                    if data:
                        self._data, is_first = data, False
            except zlib.error:
                self._data = self._data[is_first:]  # never at the same member again
                raise _DamagedMember from None
            if not inflate.eof:
                self._data = b""
                raise _DamagedMember
            self._data = inflate.unused_data.lstrip(_BETWEEN)
            while len(self._data) < len(_GZIP) and (more := self._file.read(_READ_GZIP)):
                self._data = (self._data + more).lstrip(_BETWEEN)
        if self._data:
            raise _DamagedMember

    def _from_next_member(self, data: bytes) -> bytes:
        while (start := data.find(_GZIP)) < 0:
            more = self._file.read(_READ_GZIP)
            if not more:
                return b""
            data = data[-2:] + more
        return data[start:]


def _zstd_pieces(file: BinaryIO) -> Iterator[bytes]:
    dictionary, data = _zstd_dictionary(file)
    return _frame_pieces(file, data, lambda: zstd.ZstdDecompressor(zstd_dict=dictionary), zstd.ZstdError)


def _lz4_pieces(file: BinaryIO) -> Iterator[bytes]:
    return _frame_pieces(file, b"", lz4_frame.LZ4FrameDecompressor, RuntimeError)


class _Inflate(Protocol):
    """A decompressor of one frame, as those of the standard library are."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes | None: ...
    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes: ...


def _frame_pieces(file: BinaryIO, data: bytes, new: Callable[[], _Inflate], fault: type[Exception]) -> Iterator[bytes]:
    """Frames one after another, of which `data` was read already; a damaged one ends the stretch."""
    while data or (data := file.read(_PIECE)):
        inflate = new()
        try:
            while not inflate.eof:
                if inflate.needs_input and not data and not (data := file.read(_PIECE)):
                    raise _DamagedMember
                yield inflate.decompress(data, _PIECE)
                data = b""
        except fault:
            raise _DamagedMember from None
        data = inflate.unused_data or b""


def _zstd_dictionary(file: BinaryIO) -> tuple[zstd.ZstdDict | None, bytes]:
    """The dictionary that a file may begin with, itself compressed or not; and what was read behind it."""
    head = file.read(8)
    if not head.startswith(_ZSTD_DICTIONARY):
        return None, head
    stored = file.read(min(int.from_bytes(head[4:8], "little"), MAX_BLOCK))
    try:
        return zstd.ZstdDict(zstd.decompress(stored) if stored.startswith(_ZSTD) else stored), b""
    except (zstd.ZstdError, ValueError):
        raise Damaged("its dictionary cannot be read; fetch it again") from None


def _stretches(file: BinaryIO) -> Iterator[Iterator[bytes]]:
    head = file.read(4)
    file.seek(0)
    if head.startswith(_GZIP):
        return _GzipMembers(file).stretches()
    if head.startswith((_ZSTD, _ZSTD_DICTIONARY)):
        return iter([_zstd_pieces(file)])
    return iter([_lz4_pieces(file) if head.startswith(_LZ4) else _plain_pieces(file)])


class _Window:
    """The part of a stretch that is in memory; `at` is the position of reading."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.data = b""
        self.at = 0
        self.is_damaged = False

    def need(self, count: int) -> bool:
        """Reads until so many bytes follow `at`; False if the stretch ends before."""
        missing = count - (len(self.data) - self.at)
        if missing <= 0:
            return True
        parts = [self.data[self.at :]]
        self.at = 0
        for piece in self._sound_pieces():
            parts.append(piece)
            missing -= len(piece)
            if missing <= 0:
                break
        self.data = b"".join(parts)
        return missing <= 0

    def _sound_pieces(self) -> Iterator[bytes]:
        try:
            while (piece := next(self._pieces, None)) is not None:
                yield piece
        except _DamagedMember:
            self.is_damaged = True

    def skip(self, count: int) -> None:
        """Skips bytes without keeping them."""
        while count > 0 and self.need(1):
            step = min(count, len(self.data) - self.at)
            self.at += step
            count -= step

    def find(self, pattern: re.Pattern[bytes], most: int) -> int:
        """Where a pattern begins among so many bytes after `at`, from `at`; -1 if it is not there."""
        size = 4096
        while True:
            is_more = self.need(size)
            found = pattern.search(self.data, self.at, self.at + most)
            if found or not is_more or size >= most:
                return found.start() - self.at if found else -1
            size *= 8

    @property
    def left(self) -> int:
        """Bytes in memory after `at`."""
        return len(self.data) - self.at


# WARC

_NEXT_WARC = re.compile(rb"(?<![^\n])WARC/\d+\.\d+[ \t]*\r*\n")
_BLANK_LINE = re.compile(rb"\n\r*\n")
_LAST_BREAKS = re.compile(rb"(?:\r*\n){0,2}\Z")
_BREAKS = re.compile(rb"[\r\n\x00]+")
_USUAL_ENDS = (b"\r\n\r\nWARC/", b"\r\n\r\n")
_NEXT_USUAL = len(_USUAL_ENDS[0])
_USUAL_START = re.compile(rb"[\r\n]*(?<![^\n])(?=WARC/\d+\.\d+\r\n)")
_LOOK_AHEAD = 64


def read_records(file: BinaryIO) -> Iterator[SourceRecord]:
    """The records of a WARC file, whatever it is compressed with."""
    for pieces in _stretches(file):
        window, fault = _Window(pieces), ""
        while window.need(1):
            record = _usual_record(window)
            if record is None:
                skipped = _go_to_record(window)
                if skipped:
                    fault = NO_RECORD
                    yield SourceRecord("", (), b"", fault)
                if not window.need(1):
                    break
                record = _record(window)
            fault = record.fault
            yield record
        if window.is_damaged and not fault:
            yield SourceRecord("", (), b"", DAMAGED_MEMBER)


def _usual_record(window: _Window) -> SourceRecord | None:
    """The next record if all of it is in memory and it is like nearly all; otherwise None, and nothing is consumed."""
    data = window.data
    found = (record_head and record_head(data, window.at)) or usual_head(data, window.at)
    if found is None:
        return None
    version, fields, named, head, at, length = found
    after = at + length
    if after + _NEXT_USUAL > len(data) and length <= MAX_BLOCK:
        passed = window.at
        window.need(after + _NEXT_USUAL - passed)
        data, at, after = window.data, at - passed, after - passed
    if data[after : after + _NEXT_USUAL] not in _USUAL_ENDS:
        return None
    window.at = after
    return tuple.__new__(SourceRecord, (version, fields, data[at:after], "", named, head))


def usual_head(data: bytes, place: int) -> UsualHead | None:
    """The head of the record at a place, or behind line breaks there; None for an unusual one."""
    start = _USUAL_START.match(data, place)
    end = data.find(b"\r\n\r\n", start.end()) + 1 if start else 0
    if not start or not end:
        return None
    head = data[start.end() : end]
    if b"\n\n" in head or b"\n\r" in head:
        return None
    version, fields = parse_lines(head)
    named = {name.lower(): value for name, value in reversed(fields)}
    length = named.get("content-length", "")
    if not (length.isascii() and length.isdigit()) or len(length) > 18:
        return None
    return version, fields, named, head, end + 3, int(length)


def _go_to_record(window: _Window) -> int:
    """Skips to the next line that begins a record, or to the end; returns how many bytes belong to none."""
    _pass_breaks(window)
    skipped = 0
    while window.need(1) and not _NEXT_WARC.match(window.data, window.at):
        found = window.find(_NEXT_WARC, _PIECE)
        step = found if found >= 0 else max(1, window.left - _LOOK_AHEAD)
        window.at += step
        skipped += step
    return skipped


def _pass_breaks(window: _Window) -> None:
    while window.need(1) and window.data[window.at] in _BETWEEN:
        breaks = _BREAKS.match(window.data, window.at)
        window.at = breaks.end() if breaks else window.at + 1


def _record(window: _Window) -> SourceRecord:
    end = window.find(_BLANK_LINE, _MAX_FIELDS)
    if end < 0:
        window.skip(window.left)
        return SourceRecord("", (), b"", BREAKS_OFF)
    head = window.data[window.at : window.at + end]
    version, fields = parse_lines(head)
    window.at = window.data.index(b"\n", window.at + end + 1) + 1
    named = {name.lower(): value for name, value in reversed(fields)}
    length = named.get("content-length", "")
    if not (length.isascii() and length.isdigit()) or len(length) > 18:
        return _up_to_next(window, SourceRecord(version, fields, b"", "", None, head), 0)
    record = _sized_record(window, SourceRecord(version, fields, b"", "", named, head), int(length))
    # Removing the carriage returns from a file makes all of its records shorter than they say.
    if record.fault == BREAKS_OFF and b"\r" not in head and record.block.endswith(b"\n\n"):
        block = record.block[:-2]
        return record._replace(block=block, fault=WRONG_LENGTH) if b"\n\n" in block else record
    return record


def parse_lines(head: bytes) -> tuple[str, Headers]:
    """The first line of a record, and its fields."""
    first, fields = parse_head(head.decode("utf-8", "surrogateescape"))
    return first.strip(), fields


def _sized_record(window: _Window, record: SourceRecord, length: int) -> SourceRecord:
    if length > MAX_BLOCK:
        window.skip(length)
        return record._replace(fault=TOO_LARGE)
    window.need(length + _LOOK_AHEAD)
    behind = window.data[window.at + length : window.at + length + _LOOK_AHEAD].lstrip(_BETWEEN)
    if window.left >= length and b"WARC/".startswith(behind[:5]):
        block = window.data[window.at : window.at + length]
        window.at += length
        return record._replace(block=block)
    return _up_to_next(window, record._replace(named=None), length)


def _up_to_next(window: _Window, record: SourceRecord, length: int) -> SourceRecord:
    """A record whose length is wrong or missing: its block ends where the next record begins, or with the file."""
    end = window.find(_NEXT_WARC, MAX_BLOCK)
    is_last, end = end < 0, end if end >= 0 else window.left
    block = window.data[window.at : window.at + end]
    window.at += end
    if is_last and len(block) < length:
        return record._replace(block=block, fault=BREAKS_OFF)
    return record._replace(block=_LAST_BREAKS.sub(b"", block, count=1), fault=WRONG_LENGTH)


# ARC

_ARC_LINE = re.compile(rb"(?<![^\n])[a-z][a-z0-9+.-]*:[^\n]* \S+ \d{10,20} [^\n]*\S+[ \t]*\r?\n")
_ARC_FIELDS = ("URL", "IP-address", "Archive-date", "Content-type", "Archive-length")


def is_arc(file: BinaryIO) -> bool:
    """Whether a file begins like an ARC file, compressed or not."""
    pieces = next(_stretches(file), iter(()))
    try:
        head = next(pieces, b"")
    except _DamagedMember:
        head = b""
    file.seek(0)
    return head.startswith(b"filedesc:")


def read_arc_records(file: BinaryIO) -> Iterator[SourceRecord]:
    """The records of an ARC file after its description; fields have the names of the format."""
    for pieces in _stretches(file):
        window, fault = _Window(pieces), ""
        while _go_to_arc_record(window):
            line_end = window.data.index(b"\n", window.at)
            line = window.data[window.at : line_end].decode("utf-8", "surrogateescape").strip()
            window.at = line_end + 1
            record = _arc_record(window, dict(zip(_ARC_FIELDS, _arc_values(line), strict=True)))
            fault = record.fault
            if not line.startswith("filedesc:"):
                yield record
        if window.is_damaged and not fault:
            yield SourceRecord("ARC/1", (), b"", DAMAGED_MEMBER)


def _go_to_arc_record(window: _Window) -> bool:
    while window.need(1):
        found = window.find(_ARC_LINE, _PIECE)
        if found >= 0:
            window.at += found
            return True
        window.at += max(1, window.left - _MAX_FIELDS)
    return False


def _arc_values(line: str) -> list[str]:
    """The five fields that both versions of the format have; URLs may contain blanks."""
    words = line.split(" ")
    for place in range(2, len(words) - 1):
        if words[place].isascii() and words[place].isdigit() and len(words[place]) >= 10:
            return [" ".join(words[: place - 1]), words[place - 1], words[place], words[place + 1], words[-1]]
    return [line, "", "", "", words[-1]]


def _arc_record(window: _Window, fields: dict[str, str]) -> SourceRecord:
    length, as_fields = fields["Archive-length"], tuple(fields.items())
    if length.isascii() and length.isdigit() and len(length) <= 18:
        if int(length) > MAX_BLOCK:
            window.skip(int(length))
            return SourceRecord("ARC/1", as_fields, b"", TOO_LARGE)
        window.need(int(length) + 4096)
        after = window.data[window.at + int(length) :].lstrip(_BETWEEN)
        if window.left >= int(length) and (not after or _ARC_LINE.match(after)):
            block = window.data[window.at : window.at + int(length)]
            window.at += int(length)
            return SourceRecord("ARC/1", as_fields, block)
    end = window.find(_ARC_LINE, MAX_BLOCK)
    is_last, end = end < 0, end if end >= 0 else window.left
    block = window.data[window.at : window.at + end]
    window.at += end
    is_short = is_last and length.isdigit() and len(block) < int(length)
    return SourceRecord("ARC/1", as_fields, block, BREAKS_OFF if is_short else WRONG_LENGTH)
