"""Packs as bytes: header, records, heads of records, facts in columns, and iteration past damage.

docs/internals/store-format.md is the specification. Only this module knows byte positions.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from itertools import groupby, pairwise
from math import gcd
from typing import TypeVar

from xxhash import xxh3_64_intdigest

from letopis.binary import MAX_VARINT_BYTES, ByteReader, decode_varint, encode_varint, encode_zigzag, length_prefixed
from letopis.errors import Damaged, NewerFormat
from letopis.store.values import Misnamed
from letopis.tuples import NamedTuple

PACK_MAGIC = b"\x89LPK\r\n"
PACK_VERSION = 2
HEADER_BYTES = 16
FLAG_SOLID = 0x01
_MUST_KNOW_FLAGS = 0xF0
_MAY_SKIP_KIND = 0x80
_MARKER = 0xF5
_OWNER_BYTES = 2
_MARK = struct.Struct("<BI")
_HEADER = struct.Struct("<6sBBI")
RECORD_START_BYTES = _MARK.size + 2
MAX_RECORD_BYTES = 1 << 28
"""No record is longer; a length beyond it is damage."""
MAX_RECORD_START_BYTES = RECORD_START_BYTES + 2 * MAX_VARINT_BYTES
RECORD_START = re.compile(rb"\xf5(?=.{4}[\x01-\x06])", re.DOTALL)
"""Where a record may start: the marker, a check, a known kind."""


class RecordKind(IntEnum):
    """What a record holds."""

    VERSION = 1
    FACT = 2
    PIECE = 3
    FRAME = 4
    FACTS = 5
    TEXT = 6


class RecordMethod(IntEnum):
    """How the body of a record is coded."""

    STORED = 0
    ZSTD = 1
    PIECES = 2
    RUN = 3
    SOLID = 4
    BROTLI = 5
    CODEC = 6

    @property
    def label(self) -> str:
        """The displayed name."""
        return self.name.lower()


_tuple = tuple.__new__
"""Makes a named tuple of its fields in half the time that its class takes: every read of a version makes ten."""
# Looking a member up in its enumeration is slow in Python 3.11, and every read needs it.
_FIRST_KIND, _LAST_KIND = int(min(RecordKind)), int(max(RecordKind))
_KINDS = {(kind, method): bytes((kind, method)) for kind in RecordKind for method in RecordMethod}


class PackRecord(NamedTuple):
    """One record, checked. `end` is the offset after it."""

    offset: int
    end: int
    kind: int
    method: int
    head: bytes
    body: bytes


class RecordExtent(NamedTuple):
    """What the start of a record claims, not yet checked."""

    kind: int
    method: int
    head_at: int
    body_at: int
    end: int


class SharedTextRef(NamedTuple):
    """Where the known text of a site is. Pack 0, which no store has, means the texts that are part of Letopis."""

    pack: int
    offset: int


class FrameHead(NamedTuple):
    """Head of a frame; only the first frame of a group, where `back` is 0, has the mark of the owner and the text."""

    back: int
    slots: int
    mark: bytes
    text: SharedTextRef | None


class VersionHead(NamedTuple):
    """Head of a version or fact; a fact has the raw length 0."""

    key: bytes
    time: int
    digest: bytes
    note: bytes
    raw_bytes: int


def encode_pack_header(flags: int, pack: int) -> bytes:
    """The first bytes of a new pack."""
    start = _HEADER.pack(PACK_MAGIC, PACK_VERSION, flags, pack & 0xFFFFFFFF)
    return start + struct.pack("<I", _low32(start, 0))


def parse_pack_header(data: bytes, pack: int, name: str) -> int:
    """The flags of a pack; Damaged if its header is not sound, NewerFormat if a later release wrote it."""
    start, check = data[: _HEADER.size], data[_HEADER.size : HEADER_BYTES]
    if len(data) < HEADER_BYTES or struct.unpack("<I", check)[0] != _low32(start, 0) or start[:6] != PACK_MAGIC:
        raise Damaged(f"the header of {name} is damaged; restore it from a copy")
    _, version, flags, number = _HEADER.unpack(start)
    if version > PACK_VERSION or flags & _MUST_KNOW_FLAGS:
        raise NewerFormat(f"{name} was written by a later release of Letopis; install that release to read it")
    if number != pack & 0xFFFFFFFF:
        raise Misnamed(f"{name} carries the number {number}; restore the original name of the file, or move it away")
    return int(flags)


def encode_record(kind: RecordKind, method: RecordMethod, head: bytes, body: bytes, *, pack: int, offset: int) -> bytes:
    """The bytes of one record that will be at `offset` of its pack."""
    rest = b"".join((_KINDS[kind, method], encode_varint(len(head)), encode_varint(len(body)), head, body))
    return _MARK.pack(_MARKER, xxh3_64_intdigest(rest, _check_seed(pack, offset)) & 0xFFFFFFFF) + rest


def record_extent(data: bytes, at: int = 0) -> RecordExtent | None:
    """What the record at `at` of `data` claims to be (positions within data); None when none can start there."""
    if len(data) - at < RECORD_START_BYTES + 2 or data[at] != _MARKER:
        return None
    try:
        head, place = decode_varint(data, at + RECORD_START_BYTES)
        body, place = decode_varint(data, place)
    except Damaged:
        return None
    if head + body > MAX_RECORD_BYTES:
        return None
    return _tuple(RecordExtent, (data[at + 5], data[at + 6], place, place + head, place + head + body))


def checked_record(data: bytes, at: int, found: RecordExtent, *, pack: int, offset: int) -> PackRecord | None:
    """The record at `at` of `data`, which is at `offset` of its pack; None when its check fails or it is cut short."""
    if found.end > len(data):
        return None
    kind, method, head_at, body_at, end = found
    check = xxh3_64_intdigest(memoryview(data)[at + _MARK.size : end], _check_seed(pack, offset)) & 0xFFFFFFFF
    if _MARK.unpack_from(data, at)[1] != check:
        return None
    return _tuple(PackRecord, (offset, offset + end - at, kind, method, data[head_at:body_at], data[body_at:end]))


def is_known_record(record: PackRecord, name: str) -> bool:
    """Whether this release understands the record; False when it may be skipped."""
    if _FIRST_KIND <= record.kind <= _LAST_KIND:
        return True
    if record.kind & _MAY_SKIP_KIND:
        return False
    raise NewerFormat(f"{name} holds records of a later release of Letopis; install that release to read it")


def encode_version_head(head: VersionHead) -> bytes:
    """The head of a version record."""
    return encode_fact_head(head) + encode_varint(head.raw_bytes)


def encode_fact_head(head: VersionHead) -> bytes:
    """The head of a fact record."""
    key, time, digest, note, _ = head
    return b"".join(
        (
            encode_varint(len(key)),
            key,
            encode_zigzag(time),
            encode_varint(len(digest)),
            digest,
            encode_varint(len(note)),
            note,
        )
    )


def parse_version_head(record: PackRecord) -> VersionHead:
    """The head of a version or fact record."""
    fields = ByteReader(record.head)
    key, time, digest, note = fields.text(), fields.zigzag(), fields.text(), fields.text()
    return VersionHead(key, time, digest, note, fields.varint() if record.kind == RecordKind.VERSION else 0)


def encode_frame_head(back: int, count: int, key: bytes, text_at: SharedTextRef | None = None) -> bytes:
    """The head of a frame record; only the first frame of a group names the document and the text that it needs."""
    fields = encode_varint(back) + encode_varint(count)
    if back:
        return fields
    return fields + owner_mark(key) + (b"" if text_at is None else b"".join(map(encode_varint, text_at)))


def parse_frame_head(head: bytes) -> FrameHead:
    """The fields in the head of a frame record."""
    back, at = (0, 1) if head[:1] == b"\0" else decode_varint(head, 0)
    count, at = decode_varint(head, at)
    if back:
        return FrameHead(back, count, b"", None)
    end = at + _OWNER_BYTES
    if len(head) < end:
        raise Damaged("the head of a frame is cut short; run verify to see what is damaged")
    text = None
    if len(head) > end:
        pack, after = decode_varint(head, end)
        text = _tuple(SharedTextRef, (pack, decode_varint(head, after)[0]))
    return _tuple(FrameHead, (0, count, head[at:end], text))


def owner_mark(key: bytes) -> bytes:
    """A short mark of a key: enough to distinguish a document's own frames from those of others."""
    return xxh3_64_intdigest(key).to_bytes(8, "little")[:_OWNER_BYTES]


def _check_seed(pack: int, offset: int) -> int:
    return ((pack << 40) + offset) & 0xFFFFFFFFFFFFFFFF


def _low32(data: bytes | memoryview, seed: int) -> int:
    return xxh3_64_intdigest(data, seed) & 0xFFFFFFFF


_WALK_BYTES = 1 << 20
_WALK_OVERLAP = MAX_RECORD_START_BYTES


class PackGap(NamedTuple):
    """Bytes in which no record could be read."""

    offset: int
    end: int


class PackWalker:
    """Records of one pack in order. Holds a window of the pack, never the whole."""

    def __init__(self, read: Callable[[int, int], bytes], pack: int, size: int) -> None:
        self._read = read
        self._pack = pack
        self._size = size
        self._window = b""
        self._window_at = 0

    def walk(self, start: int) -> Iterator[PackRecord | PackGap]:
        """Every sound record from `start` to the end of the pack, and the gaps between them."""
        at = start
        while at < self._size:
            record = self._sound(at)
            if record is not None:
                yield record
                at = record.end
            else:
                end = self._next_sound(at)
                yield PackGap(at, end)
                at = end

    def _sound(self, at: int) -> PackRecord | None:
        """The record at an offset, or None."""
        data, within = self._view(at, MAX_RECORD_START_BYTES)
        found = record_extent(data, within)
        if found is None or at + found.end - within > self._size:
            return None
        if found.end > len(data):
            data, within = self._view(at, found.end - within)
            found = record_extent(data, within)
        return found and checked_record(data, within, found, pack=self._pack, offset=at)

    def _next_sound(self, at: int) -> int:
        """Where to continue: the claimed end if a record is there, else the next record found by searching."""
        data, within = self._view(at, MAX_RECORD_START_BYTES)
        claimed = record_extent(data, within)
        if claimed is not None:
            end = at + claimed.end - within
            if end == self._size or (end < self._size and self._sound(end) is not None):
                return end
        return self._search(at + 1)

    def _search(self, at: int) -> int:
        while at < self._size:
            data = self._read(at, _WALK_BYTES)
            for match in RECORD_START.finditer(data):
                if self._sound(at + match.start()) is not None:
                    return at + match.start()
            if len(data) <= _WALK_OVERLAP:
                break
            at += len(data) - _WALK_OVERLAP
        return self._size

    def _view(self, at: int, length: int) -> tuple[bytes, int]:
        """Bytes that hold `length` from `at` on (fewer at the end), and where in them `at` is."""
        within = at - self._window_at
        if within < 0 or within + length > len(self._window):
            self._window = self._read(at, max(length, _WALK_BYTES))
            self._window_at, within = at, 0
        return self._window, within


_NEXT, _DIGEST = 0, 1
_COLUMNS = 7
_T = TypeVar("_T")
MAX_FACT_VERSIONS = 1 << 16
"""Versions that one entry of a facts record may have; a longer chain takes several."""


class FrameRef(NamedTuple):
    """A frame of a document: its offset in the pack and its number of slots."""

    offset: int
    slots: int


class ChainFacts(NamedTuple):
    """The versions of one document, newest first.

    A content is the number of a slot, counted through all frames, or the digest of a content that is stored elsewhere.
    """

    key: bytes
    frames: tuple[FrameRef, ...]
    times: tuple[int, ...]
    notes: tuple[bytes, ...]
    contents: tuple[int | bytes, ...]


def encode_columns(chains: Sequence[ChainFacts], offset: int) -> bytes:
    """The body of a facts record that will be at `offset`."""
    columns = [bytearray() for _ in range(_COLUMNS)]
    keys, counts, frames, times, contents, notes, digests = columns
    for chain in chains:
        distinct = {note: index for index, note in enumerate(dict.fromkeys(chain.notes))}
        keys += length_prefixed(chain.key)
        counts += encode_varint(len(chain.times)) + encode_varint(len(chain.frames)) + encode_varint(len(distinct))
        frames += b"".join(encode_varint(offset - held.offset) + encode_varint(held.slots) for held in chain.frames)
        times += _encode_times(chain.times)
        contents += _encode_runs(_content_codes(chain.contents, digests))
        notes += b"".join(map(length_prefixed, distinct)) + _encode_runs([distinct[note] for note in chain.notes])
    return b"".join(length_prefixed(bytes(column)) for column in columns)


def decode_columns(body: bytes, offset: int) -> Iterator[ChainFacts]:
    """The documents of a facts record; Damaged when its columns do not fit together."""
    outer = ByteReader(body)
    keys, counts, frames, times, contents, notes, digests = (ByteReader(outer.text()) for _ in range(_COLUMNS))
    while keys.left:
        versions, held, distinct = counts.varint(), counts.varint(), counts.varint()
        if versions > MAX_FACT_VERSIONS:
            raise Damaged("a facts record claims too many versions; run verify")
        key = keys.text()
        found = tuple(FrameRef(offset - frames.varint(), frames.varint()) for _ in range(held))
        said = [notes.text() for _ in range(distinct)]
        yield ChainFacts(
            key,
            found,
            tuple(_read_times(times, versions)),
            tuple(_nth(said, index) for index in _read_runs(notes, versions)),
            tuple(_read_contents(_read_runs(contents, versions), digests)),
        )


def _encode_times(times: Sequence[int]) -> bytes:
    if not times:
        return b""
    steps = [earlier - later for later, earlier in pairwise(times)]
    unit = gcd(*steps)
    deltas = b"".join(encode_zigzag(step // unit) for step in steps) if unit else b""
    return encode_varint(unit) + encode_zigzag(times[0]) + deltas


def _read_times(column: ByteReader, count: int) -> Iterator[int]:
    if not count:
        return
    unit, time = column.varint(), column.zigzag()
    yield time
    for _ in range(count - 1):
        time += unit * column.zigzag() if unit else 0
        yield time


def _content_codes(contents: Sequence[int | bytes], digests: bytearray) -> list[int]:
    """Contents as small numbers; digests are in a separate column."""
    codes = []
    last: dict[int | bytes, int] = {}
    upcoming = 0
    for index, content in enumerate(contents):
        if content in last:
            codes.append(2 * (index - last[content] - 1) + 2)
        elif isinstance(content, bytes):
            digests += length_prefixed(content)
            codes.append(_DIGEST)
        else:
            codes.append(_NEXT if content == upcoming else 2 * content + 3)
            upcoming = content + 1
        last[content] = index
    return codes


def _read_contents(codes: Iterator[int], digests: ByteReader) -> Iterator[int | bytes]:
    seen: list[int | bytes] = []
    upcoming = 0
    for code in codes:
        if code == _DIGEST:
            seen.append(digests.text())
        elif code and not code & 1:
            seen.append(_nth(seen, len(seen) - code // 2))
        else:
            slot = (code - 3) // 2 if code else upcoming
            upcoming = slot + 1
            seen.append(slot)
    return iter(seen)


def _encode_runs(numbers: Sequence[int]) -> bytes:
    return b"".join(encode_varint(number) + encode_varint(len(list(run))) for number, run in groupby(numbers))


def _read_runs(column: ByteReader, count: int) -> Iterator[int]:
    while count > 0:
        number, run = column.varint(), column.varint()
        if not 0 < run <= count:
            raise Damaged("the columns of a facts record are inconsistent; run verify")
        count -= run
        for _ in range(run):
            yield number


def _nth(row: Sequence[_T], index: int) -> _T:
    if not 0 <= index < len(row):
        raise Damaged("the columns of a facts record are inconsistent; run verify")
    return row[index]
