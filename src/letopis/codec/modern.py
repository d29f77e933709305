"""zstd and brotli, each alone and with a dictionary."""

from __future__ import annotations

from dataclasses import dataclass

import brotli
from backports import zstd

from letopis.codec.dictionary import QUALITY, WINDOW, Dictionary, stream_of
from letopis.codec.method import MAX_BYTES
from letopis.codec.plain import checked
from letopis.errors import CodecRefused, Damaged

_LIMIT = zstd.DecompressionParameter.window_log_max


def _window_log(max_bytes: int) -> int:
    """The least window that any output within the bound can need, so that a header cannot claim more memory."""
    return min(27, max(10, max_bytes.bit_length()))


@dataclass(frozen=True, slots=True)
class Zstd:
    """One frame. Any level decodes the same way, so a quick and a strong one may share an id."""

    name: str = "zstd"
    id: int = 32
    lossy: bool = False
    level: int = 19
    dictionary: Dictionary | None = None

    def encode(self, data: bytes) -> bytes:
        """One frame that tells its size."""
        shared = self.dictionary.zstd.as_digested_dict if self.dictionary else None
        try:
            return zstd.compress(data, self.level, zstd_dict=shared)
        except zstd.ZstdError as error:
            raise Damaged(f"the dictionary of {self.name} is broken ({error}); restore it from a copy") from None

    def decode(self, data: bytes, max_bytes: int = MAX_BYTES) -> bytes:
        """The content of one frame."""
        shared = self.dictionary.zstd if self.dictionary else None
        try:
            decoder = zstd.ZstdDecompressor(shared, {_LIMIT: _window_log(max_bytes)})
            out = decoder.decompress(data, max_bytes + 1)
        except zstd.ZstdError as error:
            raise Damaged(f"{self.name} data is broken ({error}); restore it from a copy") from None
        return checked(out, decoder.eof and not decoder.unused_data, max_bytes, self.name)


def _decoded(stream: bytes, max_bytes: int, name: str) -> bytes:
    decoder = brotli.Decompressor()
    try:
        out = decoder.process(stream, output_buffer_limit=max_bytes + 1)
    except brotli.error as error:
        raise Damaged(f"{name} data is broken ({error}); restore it from a copy") from None
    return checked(bytes(out), decoder.is_finished(), max_bytes, name)


@dataclass(frozen=True, slots=True)
class Brotli:
    """One stream of the highest quality: small and slow to make, quick to read."""

    name: str = "brotli"
    id: int = 33
    lossy: bool = False

    def encode(self, data: bytes) -> bytes:
        """One stream."""
        return bytes(brotli.compress(data, quality=QUALITY, lgwin=WINDOW))

    def decode(self, data: bytes, max_bytes: int = MAX_BYTES) -> bytes:
        """The content of one stream."""
        return _decoded(data, max_bytes, self.name)


@dataclass(frozen=True, slots=True)
class BrotliWith:
    """The rest of a stream that begins with a dictionary. See `dictionary` for why reading it stays possible."""

    dictionary: Dictionary
    name: str = "brotli-dict"
    id: int = 40
    lossy: bool = False

    def encode(self, data: bytes) -> bytes:
        """The part behind the dictionary; CodecRefused when this release of brotli makes another stream of it."""
        text = self.dictionary.text
        if len(text) + len(data) > (1 << WINDOW) - 16:
            raise CodecRefused("the page and the dictionary do not fit in one window; use another method")
        stream, compressor = stream_of(text)
        if stream != self.dictionary.stream:
            raise CodecRefused("the dictionary was made by another release of brotli; train a new one to write with")
        return bytes(compressor.process(data) + compressor.finish())

    def decode(self, data: bytes, max_bytes: int = MAX_BYTES) -> bytes:
        """The page alone."""
        known = len(self.dictionary.text)
        return _decoded(self.dictionary.stream + data, min(max_bytes, MAX_BYTES) + known, self.name)[known:]


def with_dictionary(dictionary: Dictionary, level: int = 19) -> tuple[Zstd, BrotliWith]:
    """The two methods that use a dictionary of the caller's, as for the pages of one site."""
    return Zstd("zstd-dict", 39, level=level, dictionary=dictionary), BrotliWith(dictionary)
