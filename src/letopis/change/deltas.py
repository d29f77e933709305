"""Differences as bytes, which `letopis patch` applies:

    file    = "LTPD" (4)  version 1 (1)  method (1)  digest of old (32)  digest of new (32)
              size of new (8, little endian)  payload
    method  = 0 the new file as it is, 1 the new file compressed alone, 2 compressed with the old file as its past

Digests are BLAKE3. The payload of methods 1 and 2 is one zstd frame; for
method 2 the old file is its raw dictionary. The smallest of the three is kept.
"""

from __future__ import annotations

from blake3 import blake3

from letopis.errors import Damaged, DocumentTooLarge, NewerFormat, Remedy, UsageError
from letopis.tuples import NamedTuple
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
    """The header of a delta."""

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
