"""Differences as bytes: binary deltas that `letopis patch` applies, and text deltas that copy, skip and insert.

A binary delta:

    file    = "LTPD" (4)  version 1 (1)  method (1)  digest of old (32)  digest of new (32)
              size of new (8, little endian)  payload
    method  = 0 the new file as it is, 1 the new file compressed alone, 2 compressed with the old file as its past

Digests are BLAKE3. The payload of methods 1 and 2 is one zstd frame; for
method 2 the old file is its raw dictionary. The smallest of the three is kept.

A text delta:

    delta  = level (1 byte: 0xD1, 0xD2, 0xD3)  size of new (varint)  check of new (4 bytes)  step*
    step   = copied (varint)  skipped (varint)  inserted (varint)  that many bytes

All counts are bytes at every level; the level only says how finely the two
texts were matched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from blake3 import blake3
from xxhash import xxh32_intdigest

from letopis.binary import ByteReader, append_varint
from letopis.change.sequence import Budget, opcodes
from letopis.change.text_diff import CHARACTERS, LINES, WORDS, DiffLevel
from letopis.errors import Damaged, DocumentTooLarge, NewerFormat, Remedy, UsageError
from letopis.zstandard import (
    CompressionParameter,
    DecompressionParameter,
    ZstdCompressor,
    ZstdDecompressor,
    ZstdDict,
    ZstdError,
)

_MAGIC = b"LTPD"
_VERSION = 1
_HEADER_SIZE = 4 + 1 + 1 + 32 + 32 + 8
STORED, ALONE, PATCH = 0, 1, 2
_ZSTD_LEVEL = 12
_MOST_WINDOW = 27  # 128 MiB
MAX_BYTES = 1 << 30
_SMALLEST_DICTIONARY = 8


class DeltaHeader(NamedTuple):
    """What a difference says of itself."""

    method: int
    old_digest: bytes
    new_digest: bytes
    size: int


def make_binary_delta(old: bytes, new: bytes) -> bytes:
    """A difference from which `apply_binary_delta` makes `new` again, given `old`."""
    forms = [(STORED, new), (ALONE, _compressed(new, b""))]
    if len(old) >= _SMALLEST_DICTIONARY:
        forms.append((PATCH, _compressed(new, old)))
    method, payload = min(forms, key=lambda form: len(form[1]))
    digests = blake3(old).digest() + blake3(new).digest()
    return _MAGIC + bytes([_VERSION, method]) + digests + len(new).to_bytes(8, "little") + payload


def read_delta_header(delta: bytes) -> DeltaHeader:
    """The header; Damaged or NewerFormat when these bytes are no difference that we can read."""
    if len(delta) < _HEADER_SIZE or delta[:4] != _MAGIC:
        raise Damaged(
            "this file is not a binary difference",
            Remedy("diff URL --format binary", "letopis.Archive.diff(format='binary')", "make one with"),
        )
    if delta[4] > _VERSION:
        raise NewerFormat("this difference was written by a later release of Letopis; update Letopis to apply it")
    if delta[4] != _VERSION or delta[5] not in (STORED, ALONE, PATCH):
        raise Damaged("the header of this difference is damaged; make the difference again")
    return DeltaHeader(delta[5], delta[6:38], delta[38:70], int.from_bytes(delta[70:78], "little"))


def apply_binary_delta(old: bytes, delta: bytes, max_bytes: int = MAX_BYTES) -> bytes:
    """The new file, checked by its digest; never more than `max_bytes` are made."""
    header = read_delta_header(delta)
    if blake3(old).digest() != header.old_digest:
        raise UsageError("this difference was made for another old file; apply it to the file it was made from")
    if header.size > max_bytes:
        raise DocumentTooLarge(
            f"the patched file would have {header.size} bytes, more than {max_bytes}; raise the limit"
        )
    payload = delta[_HEADER_SIZE:]
    new = (
        payload
        if header.method == STORED
        else _decompressed(payload, old if header.method == PATCH else b"", header.size)
    )
    if len(new) != header.size or blake3(new).digest() != header.new_digest:
        raise Damaged("this difference is damaged: its result has the wrong digest; make the difference again")
    return new


def _compressed(data: bytes, past: bytes) -> bytes:
    window = min(_MOST_WINDOW, max(17, (len(data) + len(past)).bit_length()))
    options: dict[int, int] = {
        CompressionParameter.compression_level: _ZSTD_LEVEL,
        CompressionParameter.window_log: window,
        CompressionParameter.enable_long_distance_matching: int(bool(past)),
        CompressionParameter.checksum_flag: 0,
    }
    prefix = ZstdDict(past, is_raw=True).as_prefix if past else None
    compressor = ZstdCompressor(options=options, zstd_dict=prefix)
    return compressor.compress(data, ZstdCompressor.FLUSH_FRAME)


def _decompressed(payload: bytes, past: bytes, size: int) -> bytes:
    prefix = ZstdDict(past, is_raw=True).as_prefix if past else None
    try:
        decoder = ZstdDecompressor(zstd_dict=prefix, options={DecompressionParameter.window_log_max: _MOST_WINDOW})
        new = decoder.decompress(payload, max_length=size + 1)
    except (ZstdError, EOFError) as error:
        raise Damaged(f"this difference is damaged ({error}); make the difference again") from None
    if not decoder.eof or decoder.unused_data:
        raise Damaged("this difference is damaged: it ends at the wrong place; make the difference again")
    return new


TEXT_DELTA_LEVELS: tuple[DiffLevel, ...] = (LINES, WORDS, CHARACTERS)
_FIRST_BYTE = 0xD0
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_WORD = re.compile(rb"[0-9A-Za-z_\x80-\xff]+|[ \t\r]+|.", re.DOTALL)
_MOST_CHARACTERS = 1 << 13
_MOST_WORDS = 1 << 20
_MAX_TEXT_BYTES = 1 << 30

TextEdit = tuple[bool, bytes, bytes]
"""Whether a run is equal, its old bytes, its new bytes."""


def make_text_delta(old: bytes, new: bytes, level: DiffLevel = LINES) -> bytes:
    """The difference that `apply` turns back to exactly `new`; bounded work for any two inputs."""
    if level not in TEXT_DELTA_LEVELS:
        raise UsageError(f"level {level} of a text difference does not exist; choose 1, 2 or 3")
    out = bytearray([_FIRST_BYTE + level])
    append_varint(out, len(new))
    out += xxh32_intdigest(new).to_bytes(4, "little")
    for copied, skipped, inserted in _steps(_edits(old, new, level)):
        for count in (copied, skipped, len(inserted)):
            append_varint(out, count)
        out += inserted
    return bytes(out)


def apply_text_delta(old: bytes, delta: bytes, max_bytes: int = _MAX_TEXT_BYTES) -> bytes:
    """The text that `delta` was made for; Damaged when the two do not fit or the bytes are no difference."""
    reader = ByteReader(delta, what="text difference")
    if reader.byte() - _FIRST_BYTE not in TEXT_DELTA_LEVELS:
        raise reader.broken("it begins wrongly")
    size = reader.varint(max_bytes)
    check = int.from_bytes(reader.take(4), "little")
    parts: list[bytes] = []
    at = made = 0
    while not reader.done:
        copied, skipped, inserted = reader.varint(size - made), reader.varint(len(old)), reader.varint(size)
        if at + copied + skipped > len(old) or not copied + skipped + inserted:
            raise reader.broken("it does not fit the other text")
        parts += [old[at : at + copied], reader.take(inserted)]
        at += copied + skipped
        made += copied + inserted
        if made > size:
            raise reader.broken("it is longer than it says")
    new = b"".join(parts)
    if len(new) != size or xxh32_intdigest(new) != check:
        raise reader.broken("the result is not what was stored")
    return new


def _edits(old: bytes, new: bytes, level: DiffLevel) -> Iterator[TextEdit]:
    budget = Budget()
    for equal, before, after in _matched(old, new, _LINE.findall, budget):
        if equal or level == LINES or not before or not after or len(before) + len(after) > _MOST_WORDS:
            yield equal, before, after
        else:
            yield from _by_words(before, after, level, budget)


def _by_words(old: bytes, new: bytes, level: DiffLevel, budget: Budget) -> Iterator[TextEdit]:
    for equal, before, after in _matched(old, new, _WORD.findall, budget):
        if equal or level == WORDS or not before or not after or len(before) + len(after) > _MOST_CHARACTERS:
            yield equal, before, after
        else:
            yield from _by_characters(before, after, budget)


def _by_characters(old: bytes, new: bytes, budget: Budget) -> Iterator[TextEdit]:
    for op in opcodes(old, new, budget):
        yield op.tag == "equal", old[op.a1 : op.a2], new[op.b1 : op.b2]


def _matched(old: bytes, new: bytes, cut: Callable[[bytes], list[bytes]], budget: Budget) -> Iterator[TextEdit]:
    before, after = cut(old), cut(new)
    for op in opcodes(before, after, budget):
        yield op.tag == "equal", b"".join(before[op.a1 : op.a2]), b"".join(after[op.b1 : op.b2])


def _steps(edits: Iterator[TextEdit]) -> Iterator[tuple[int, int, bytes]]:
    """Edits gathered to copy, skip, insert; an equal run after a change opens the next step."""
    copied = skipped = 0
    inserted: list[bytes] = []
    for equal, before, after in edits:
        if equal and (skipped or inserted):
            yield copied, skipped, b"".join(inserted)
            copied, skipped, inserted = 0, 0, []
        if equal:
            copied += len(before)
        else:
            skipped += len(before)
            inserted.append(after)
    if copied or skipped or inserted:
        yield copied, skipped, b"".join(inserted)
