"""Packs as bytes: the header of a pack, the frame of a record, the heads of the simple kinds.

docs/internals/store-format.md is the specification. Only this module and
`columns` know byte positions.
"""

from __future__ import annotations

import re
import struct
from enum import IntEnum
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from letopis.errors import Damaged, NewerFormat
from letopis.store.varint import LONGEST, Cursor, number_at, varint, zigzag

MAGIC = b"\x89LPK\r\n"
VERSION = 2
HEADER_BYTES = 16
FLAG_SOLID = 0x01
_MUST_KNOW_FLAGS = 0xF0
_MAY_SKIP_KIND = 0x80
_MARKER = 0xF5
_OWNER_BYTES = 2
_MARK = struct.Struct("<BI")
_HEADER = struct.Struct("<6sBBI")
START_BYTES = _MARK.size + 2
MOST_RECORD_BYTES = 1 << 28
"""No record is longer; a length beyond it is damage."""
MOST_START_BYTES = START_BYTES + 2 * LONGEST
CANDIDATE = re.compile(rb"\xf5(?=.{4}[\x01-\x06])", re.DOTALL)
"""Where a record may start: the marker, a check, a known kind."""


class Kind(IntEnum):
    """What a record holds."""

    VERSION = 1
    FACT = 2
    PIECE = 3
    FRAME = 4
    FACTS = 5
    TEXT = 6


class Method(IntEnum):
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
        """The name that people see."""
        return self.name.lower()


# Looking a member up in its enumeration is slow in Python 3.11, and every read asks.
_FIRST_KIND, _LAST_KIND = int(min(Kind)), int(max(Kind))
_KINDS = {(kind, method): bytes((kind, method)) for kind in Kind for method in Method}


class Record(NamedTuple):
    """One record, checked. `end` is the offset behind it."""

    offset: int
    end: int
    kind: int
    method: int
    head: bytes
    body: bytes


class Extent(NamedTuple):
    """What the start of a record claims, not yet checked."""

    kind: int
    method: int
    head_at: int
    body_at: int
    end: int


class TextAt(NamedTuple):
    """Where the known text of a site lies. In pack 0, which no store has, are the texts that come with Letopis."""

    pack: int
    offset: int


class FrameHead(NamedTuple):
    """Head of a frame; the owner's mark and the text stand only in the first frame of a group, where `back` is 0."""

    back: int
    slots: int
    mark: bytes
    text: TextAt | None


class VersionHead(NamedTuple):
    """Head of a version or fact; a fact has the raw length 0."""

    key: bytes
    time: int
    digest: bytes
    note: bytes
    raw_bytes: int


def pack_header(flags: int, pack: int) -> bytes:
    """The first bytes of a new pack."""
    start = _HEADER.pack(MAGIC, VERSION, flags, pack & 0xFFFFFFFF)
    return start + struct.pack("<I", _low32(start, 0))


def parse_pack_header(data: bytes, pack: int, name: str) -> int:
    """The flags of a pack; Damaged when its header is not sound, NewerFormat when a later release wrote it."""
    start, check = data[: _HEADER.size], data[_HEADER.size : HEADER_BYTES]
    if len(data) < HEADER_BYTES or struct.unpack("<I", check)[0] != _low32(start, 0) or start[:6] != MAGIC:
        raise Damaged(f"the header of {name} is damaged; restore it from a copy")
    _, version, flags, number = _HEADER.unpack(start)
    if version > VERSION or flags & _MUST_KNOW_FLAGS:
        raise NewerFormat(f"{name} was written by a later release of Letopis; install that release to read it")
    if number != pack & 0xFFFFFFFF:
        raise Damaged(f"{name} carries the number {number}; give the file its own name back")
    return int(flags)


def encode_record(kind: Kind, method: Method, head: bytes, body: bytes, *, pack: int, offset: int) -> bytes:
    """The bytes of one record that will lie at `offset` of its pack."""
    rest = b"".join((_KINDS[kind, method], varint(len(head)), varint(len(body)), head, body))
    return _MARK.pack(_MARKER, xxh3_64_intdigest(rest, _seed(pack, offset)) & 0xFFFFFFFF) + rest


def extent(data: bytes, at: int = 0) -> Extent | None:
    """What the record at `at` of `data` claims to be (positions within data); None when none can start there."""
    if len(data) - at < START_BYTES + 2 or data[at] != _MARKER:
        return None
    try:
        head, place = number_at(data, at + START_BYTES)
        body, place = number_at(data, place)
    except Damaged:
        return None
    if head + body > MOST_RECORD_BYTES:
        return None
    return Extent(data[at + 5], data[at + 6], place, place + head, place + head + body)


def checked_record(data: bytes, at: int, found: Extent, *, pack: int, offset: int) -> Record | None:
    """The record at `at` of `data`, which is at `offset` of its pack; None when its check fails or it is cut short."""
    if found.end > len(data):
        return None
    kind, method, head_at, body_at, end = found
    check = xxh3_64_intdigest(memoryview(data)[at + _MARK.size : end], _seed(pack, offset)) & 0xFFFFFFFF
    if _MARK.unpack_from(data, at)[1] != check:
        return None
    return Record(offset, offset + end - at, kind, method, data[head_at:body_at], data[body_at:end])


def known(record: Record, name: str) -> bool:
    """Whether this release understands the record; False when it may be skipped."""
    if _FIRST_KIND <= record.kind <= _LAST_KIND:
        return True
    if record.kind & _MAY_SKIP_KIND:
        return False
    raise NewerFormat(f"{name} holds records of a later release of Letopis; install that release to read it")


def version_head(head: VersionHead) -> bytes:
    """The head of a version record."""
    return fact_head(head) + varint(head.raw_bytes)


def fact_head(head: VersionHead) -> bytes:
    """The head of a fact record."""
    key, time, digest, note, _ = head
    return b"".join((varint(len(key)), key, zigzag(time), varint(len(digest)), digest, varint(len(note)), note))


def parse_version_head(record: Record) -> VersionHead:
    """The head of a version or fact record."""
    fields = Cursor(record.head)
    key, time, digest, note = fields.text(), fields.zigzag(), fields.text(), fields.text()
    return VersionHead(key, time, digest, note, fields.varint() if record.kind == Kind.VERSION else 0)


def frame_head(back: int, count: int, key: bytes, text_at: TextAt | None = None) -> bytes:
    """The head of a frame record; only the first frame of a group says whose it is and which text the group needs."""
    fields = varint(back) + varint(count)
    if back:
        return fields
    return fields + owner(key) + (b"" if text_at is None else b"".join(map(varint, text_at)))


def parse_frame_head(head: bytes) -> FrameHead:
    """What the head of a frame record says."""
    back, at = number_at(head, 0)
    count, at = number_at(head, at)
    if back:
        return FrameHead(back, count, b"", None)
    end = at + _OWNER_BYTES
    if len(head) < end:
        raise Damaged("the head of a frame is cut short; run verify to see what is damaged")
    if len(head) == end:
        return FrameHead(0, count, head[at:end], None)
    pack, after = number_at(head, end)
    return FrameHead(0, count, head[at:end], TextAt(pack, number_at(head, after)[0]))


def owner(key: bytes) -> bytes:
    """A short mark of a key: enough to tell a document's own frames from those it borrows a content from."""
    return xxh3_64_intdigest(key).to_bytes(8, "little")[:_OWNER_BYTES]


def _seed(pack: int, offset: int) -> int:
    return ((pack << 40) + offset) & 0xFFFFFFFFFFFFFFFF


def _low32(data: bytes | memoryview, seed: int) -> int:
    return xxh3_64_intdigest(data, seed) & 0xFFFFFFFF
