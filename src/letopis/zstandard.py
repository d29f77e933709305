"""Zstandard: the standard library's own from Python 3.14 on, its backport before."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = [
    "CompressionParameter", "DecompressionParameter", "ZstdCompressor", "ZstdDecompressor", "ZstdDict", "ZstdError",
    "as_prefix", "compress", "compress_behind", "decompress", "zstd",
]  # fmt: skip

CompressionParameter = zstd.CompressionParameter
DecompressionParameter = zstd.DecompressionParameter
ZstdCompressor = zstd.ZstdCompressor
ZstdDecompressor = zstd.ZstdDecompressor
ZstdDict = zstd.ZstdDict
ZstdError = zstd.ZstdError
compress = zstd.compress
decompress = zstd.decompress

_LARGEST_WINDOW = 27
_SHORTEST_PREFIX = 8


def as_prefix(text: bytes) -> tuple[ZstdDict, int] | None:
    """A text as what came before another one, unless it is shorter than zstd takes."""
    return ZstdDict(text, is_raw=True).as_prefix if len(text) >= _SHORTEST_PREFIX else None


def compress_behind(text: bytes, before: bytes, level: int) -> bytes:
    """A text that is read back with `before` as its prefix, which lies in its window as a whole."""
    options: dict[int, int] = {
        CompressionParameter.compression_level: level,
        CompressionParameter.window_log: min(_LARGEST_WINDOW, max(18, (len(text) + len(before)).bit_length())),
    }
    coder = ZstdCompressor(options=options, zstd_dict=as_prefix(before))
    return coder.compress(text, ZstdCompressor.FLUSH_FRAME)
