"""The header: what the file is, how long its parts are, and what their digests are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from letopis.errors import Damaged, NewerFormat
from letopis.zrec import varint
from letopis.zrec.hashing import digest
from letopis.zrec.limits import (
    MAX_CHUNKS,
    MAX_DICTIONARY,
    MAX_HISTORY,
    MAX_INDEX,
    MAX_NAME_RULE,
    MAX_SEPARATOR,
)

MAGIC = b"ZREC"
VERSION = 1
PREFIX = 7
"""Bytes that say how long the header is."""

_CHECK = 16
_OLD = 16
_FLAGS, _COUNTS, _LENGTHS, _INDEX, _DICTIONARY, _BODY, _SEPARATOR, _GROUP = 1, 3, 5, 7, 9, 11, 13, 15
_RULE, _HISTORY = 16, 17
_REQUIRED = (_FLAGS, _COUNTS, _LENGTHS, _INDEX, _DICTIONARY, _BODY, _SEPARATOR, _GROUP)
_ENDED, _ORDERED = 1, 2


@dataclass(frozen=True, slots=True)
class Header:
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


def write(header: Header) -> bytes:
    """The header in bytes."""
    flags = _ENDED * header.ended | _ORDERED * header.ordered
    lengths = (header.journals_size, header.index_size, header.dictionary_size, header.data_size)
    fields = [
        (_FLAGS, varint.encode(flags)),
        (_COUNTS, varint.encode_all((header.records, header.chunks, header.text_size))),
        (_LENGTHS, varint.encode_all(lengths)),
        (_INDEX, header.index_digest),
        (_DICTIONARY, header.dictionary_digest),
        (_BODY, header.body_digest),
        (_SEPARATOR, header.separator),
        (_GROUP, varint.encode(header.group)),
    ]
    if header.name_rule is not None:
        fields.append((_RULE, header.name_rule.encode()))
    if header.history:
        fields.append((_HISTORY, b"".join(old + varint.encode(length) for old, length in header.history)))
    return framed(b"".join(varint.encode(tag) + varint.encode(len(value)) + value for tag, value in fields))


def sealed(header: Header) -> Header:
    """The header with its own length filled in."""
    return replace(header, size=len(write(header)))


def framed(fields: bytes) -> bytes:
    """The fields with magic number, version, length and check around them."""
    head = MAGIC + bytes((VERSION,)) + len(fields).to_bytes(2, "little") + fields
    return head + digest(head)[:_CHECK]


def size_of(prefix: bytes) -> int:
    """Length of the header that begins with these 7 bytes."""
    if len(prefix) < PREFIX or prefix[:4] != MAGIC:
        raise Damaged("This is not a zrec file; give one that `letopis zrec pack` made.")
    if prefix[4] != VERSION:
        raise NewerFormat(f"The zrec file has format {prefix[4]}, this release reads {VERSION}; update Letopis.")
    return PREFIX + int.from_bytes(prefix[5:PREFIX], "little") + _CHECK


def parse(data: bytes) -> Header:
    """Reads the header that `data` begins with."""
    size = size_of(data[:PREFIX])
    if len(data) < size or digest(data[: size - _CHECK])[:_CHECK] != data[size - _CHECK : size]:
        raise Damaged("The header of the zrec file is damaged; get a fresh copy.")
    fields = dict(_fields(data[PREFIX : size - _CHECK]))
    if any(tag not in fields for tag in _REQUIRED):
        raise Damaged("The header of the zrec file lacks a field; get a fresh copy.")
    return _checked(replace(_from_fields(fields), size=size))


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    at, before = 0, 0
    while at < len(data):
        (tag, length), at = varint.decode_some(data, at, 2)
        if tag <= before or length > len(data) - at:
            raise Damaged("The fields of the zrec header do not fit; get a fresh copy.")
        if tag % 2 and tag not in _REQUIRED and tag != _HISTORY:
            raise NewerFormat(f"The zrec file uses field {tag}, which this release does not know; update Letopis.")
        yield tag, data[at : at + length]
        at, before = at + length, tag


def _from_fields(fields: dict[int, bytes]) -> Header:
    (flags,) = _numbers(fields[_FLAGS], 1)
    if flags & ~(_ENDED | _ORDERED):
        raise NewerFormat("The zrec file uses a flag that this release does not know; update Letopis.")
    records, chunks, text_size = _numbers(fields[_COUNTS], 3)
    journals_size, index_size, dictionary_size, data_size = _numbers(fields[_LENGTHS], 4)
    return Header(
        ended=bool(flags & _ENDED),
        ordered=bool(flags & _ORDERED),
        records=records,
        chunks=chunks,
        text_size=text_size,
        journals_size=journals_size,
        index_size=index_size,
        dictionary_size=dictionary_size,
        data_size=data_size,
        index_digest=fields[_INDEX],
        dictionary_digest=fields[_DICTIONARY],
        body_digest=fields[_BODY],
        separator=fields[_SEPARATOR],
        group=_numbers(fields[_GROUP], 1)[0],
        name_rule=_rule(fields.get(_RULE)),
        history=_history(fields.get(_HISTORY, b"")),
    )


def _numbers(value: bytes, count: int) -> list[int]:
    numbers, end = varint.decode_some(value, 0, count)
    if end != len(value):
        raise Damaged("A field of the zrec header is too long; get a fresh copy.")
    return numbers


def _rule(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        raise Damaged("The expression for names in the zrec header is not UTF-8; get a fresh copy.") from None


def _history(value: bytes) -> tuple[tuple[bytes, int], ...]:
    rows: list[tuple[bytes, int]] = []
    at = 0
    while at < len(value):
        old = value[at : at + _OLD]
        length, at = varint.decode(value, at + _OLD)
        rows.append((old, length))
    return tuple(rows)


def _checked(header: Header) -> Header:
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
