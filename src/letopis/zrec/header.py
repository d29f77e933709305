"""The header of a zrec file: what the file is, how long its parts are, and what their digests are.

With the bounds of the format, checked before memory is taken, and its hashes. No hash is cryptographic: SHA-256 over
the whole judges in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import xxhash

from letopis import binary
from letopis.binary import sha256_digest
from letopis.errors import Damaged, NewerFormat, Remedy
from letopis.tuples import NamedTuple

KiB = 1024
MiB = 1024 * KiB

MAX_INDEX = 256 * MiB
MAX_CHUNKS = 1 << 26
MAX_CHUNK = 64 * MiB
MAX_TEXT = 64 * MiB
MAX_DICTIONARY = 16 * MiB
MAX_RELEASE = 64 * KiB
MAX_SEPARATOR = 64
MAX_AGE = 63
MAX_HISTORY = 64
MAX_NAME_RULE = 4 * KiB

BLOCK_TEXT = 128 * KiB
"""Longest text that one zstd block can hold."""

_GROUP_SEED = 0x5A524543


def chunk_hash(stored: bytes | memoryview) -> int:
    """h: 32 bits of one stored chunk."""
    return xxhash.xxh32_intdigest(stored)


def group_hash(chunks: Iterable[bytes | memoryview]) -> int:
    """H: 32 further bits over the chunks of a group, by another function."""
    state = xxhash.xxh3_64(seed=_GROUP_SEED)
    for chunk in chunks:
        state.update(chunk)
    return state.intdigest() & 0xFFFFFFFF


def name_hash(name: bytes) -> int:
    """What orders records for cutting."""
    return xxhash.xxh32_intdigest(name)


ZREC_MAGIC = b"ZREC"
ZREC_VERSION = 1
HEADER_PREFIX = 7
"""Bytes that say how long the header is."""

_CHECK = 16
_OLD = 16
_FLAGS, _COUNTS, _LENGTHS, _INDEX, _DICTIONARY, _BODY, _SEPARATOR, _GROUP = 1, 3, 5, 7, 9, 11, 13, 15
_RULE, _HISTORY = 16, 17
_REQUIRED = (_FLAGS, _COUNTS, _LENGTHS, _INDEX, _DICTIONARY, _BODY, _SEPARATOR, _GROUP)
_ENDED, _ORDERED = 1, 2


class ZrecHeader(NamedTuple):
    """The facts at the head of a file. Lengths are those of the stored parts."""

    ended: bool
    ordered: bool
    records: int
    chunks: int
    text_size: int
    journals_size: int
    index_size: int
    dictionary_size: int
    data_size: int
    index_digest: bytes
    dictionary_digest: bytes
    body_digest: bytes
    separator: bytes
    group: int
    name_rule: str | None
    history: tuple[tuple[bytes, int], ...]
    """For every journal, newest first: 16 bytes of the old index's digest, and the journal's length."""
    size: int = 0
    """Length of the header itself, fields of later releases included."""

    @property
    def index_at(self) -> int:
        """Where the index begins."""
        return self.size + self.journals_size

    @property
    def dictionary_at(self) -> int:
        """Where the dictionary begins."""
        return self.index_at + self.index_size

    @property
    def data_at(self) -> int:
        """Where chunks begin."""
        return self.dictionary_at + self.dictionary_size

    @property
    def file_size(self) -> int:
        """Length of the whole file."""
        return self.data_at + self.data_size

    def journals_from(self, index_digest: bytes) -> int | None:
        """Bytes of journals that lead from that index to this one, None when it is not in the history."""
        total = 0
        for old, length in self.history:
            total += length
            if old == index_digest[:_OLD]:
                return total
        return None


def encode_header(header: ZrecHeader) -> bytes:
    """The header in bytes."""
    flags = _ENDED * header.ended | _ORDERED * header.ordered
    lengths = (header.journals_size, header.index_size, header.dictionary_size, header.data_size)
    fields = [
        (_FLAGS, binary.encode_varint(flags)),
        (_COUNTS, binary.encode_varints((header.records, header.chunks, header.text_size))),
        (_LENGTHS, binary.encode_varints(lengths)),
        (_INDEX, header.index_digest),
        (_DICTIONARY, header.dictionary_digest),
        (_BODY, header.body_digest),
        (_SEPARATOR, header.separator),
        (_GROUP, binary.encode_varint(header.group)),
    ]
    if header.name_rule is not None:
        fields.append((_RULE, header.name_rule.encode()))
    if header.history:
        fields.append((_HISTORY, b"".join(old + binary.encode_varint(length) for old, length in header.history)))
    return framed_header(
        b"".join(binary.encode_varint(tag) + binary.encode_varint(len(value)) + value for tag, value in fields)
    )


def sealed_header(header: ZrecHeader) -> ZrecHeader:
    """The header with its own length filled in."""
    return header._replace(size=len(encode_header(header)))


def framed_header(fields: bytes) -> bytes:
    """The fields with magic number, version, length and check around them."""
    head = ZREC_MAGIC + bytes((ZREC_VERSION,)) + len(fields).to_bytes(2, "little") + fields
    return head + sha256_digest(head)[:_CHECK]


def header_size(prefix: bytes) -> int:
    """Length of the header that begins with these 7 bytes."""
    if len(prefix) < HEADER_PREFIX or prefix[:4] != ZREC_MAGIC:
        raise Damaged("This is not a zrec file", Remedy("zrec pack", "letopis.zrec.pack()", "give one made by"))
    if prefix[4] != ZREC_VERSION:
        raise NewerFormat(f"The zrec file has format {prefix[4]}, this release reads {ZREC_VERSION}; update Letopis.")
    return HEADER_PREFIX + int.from_bytes(prefix[5:HEADER_PREFIX], "little") + _CHECK


def parse_header(data: bytes) -> ZrecHeader:
    """Reads the header that `data` begins with."""
    size = header_size(data[:HEADER_PREFIX])
    if len(data) < size or sha256_digest(data[: size - _CHECK])[:_CHECK] != data[size - _CHECK : size]:
        raise Damaged("The header of the zrec file is damaged; get a fresh copy.")
    fields = dict(_fields(data[HEADER_PREFIX : size - _CHECK]))
    if any(tag not in fields for tag in _REQUIRED):
        raise Damaged("The header of the zrec file lacks a field; get a fresh copy.")
    return _checked(_from_fields(fields)._replace(size=size))


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    at, before = 0, 0
    while at < len(data):
        (tag, length), at = binary.decode_canonical_varints(data, at, 2)
        if tag <= before or length > len(data) - at:
            raise Damaged("The fields of the zrec header do not fit; get a fresh copy.")
        if tag % 2 and tag not in _REQUIRED and tag != _HISTORY:
            raise NewerFormat(f"The zrec file uses field {tag}, which this release does not know; update Letopis.")
        yield tag, data[at : at + length]
        at, before = at + length, tag


def _from_fields(fields: dict[int, bytes]) -> ZrecHeader:
    (flags,) = _numbers(fields[_FLAGS], 1)
    if flags & ~(_ENDED | _ORDERED):
        raise NewerFormat("The zrec file uses a flag that this release does not know; update Letopis.")
    records, chunks, text_size = _numbers(fields[_COUNTS], 3)
    journals_size, index_size, dictionary_size, data_size = _numbers(fields[_LENGTHS], 4)
    return ZrecHeader(
        bool(flags & _ENDED), bool(flags & _ORDERED), records, chunks, text_size,
        journals_size, index_size, dictionary_size, data_size,
        fields[_INDEX], fields[_DICTIONARY], fields[_BODY], fields[_SEPARATOR],
        _numbers(fields[_GROUP], 1)[0], _rule(fields.get(_RULE)), _history(fields.get(_HISTORY, b"")),
    )  # fmt: skip


def _numbers(value: bytes, count: int) -> list[int]:
    numbers, end = binary.decode_canonical_varints(value, 0, count)
    if end != len(value):
        raise Damaged("A field of the zrec header is too long; get a fresh copy.")
    return numbers


def _rule(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        raise Damaged("The expression for names in the zrec header is not UTF-8; get a fresh copy.") from None


def _history(value: bytes) -> tuple[tuple[bytes, int], ...]:
    rows, at = list[tuple[bytes, int]](), 0
    while at < len(value):
        length, end = binary.decode_canonical_varint(value, at + _OLD)
        rows.append((value[at : at + _OLD], length))
        at = end
    return tuple(rows)


def _checked(header: ZrecHeader) -> ZrecHeader:
    """Refuses lengths and counts beyond the limits, and parts that contradict each other."""
    fits = (
        all(len(value) == 32 for value in (header.index_digest, header.dictionary_digest, header.body_digest)),
        1 <= len(header.separator) <= MAX_SEPARATOR,
        header.group in (1, 4),
        len((header.name_rule or "").encode()) <= MAX_NAME_RULE,
        max(header.index_size, header.journals_size) <= MAX_INDEX and header.dictionary_size <= MAX_DICTIONARY,
        header.chunks <= MAX_CHUNKS and header.chunks <= header.records <= header.chunks * header.group,
        header.chunks * 5 <= header.index_size and header.chunks <= header.data_size,
        len(header.history) <= MAX_HISTORY and sum(length for _, length in header.history) == header.journals_size,
    )
    if not all(fits):
        raise Damaged("The header of the zrec file names impossible sizes; get a fresh copy.")
    return header
