"""The general methods of the standard library, decoded within bounds: stored, gzip, bzip2, xz."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from dataclasses import dataclass

from letopis.codec.method import MAX_BYTES
from letopis.errors import Damaged

_XZ_MEMORY = 160 << 20
"""What a decoder of xz may take: the strongest preset needs 65 MiB, a hostile header could ask for 4 GiB."""


def checked(out: bytes, complete: bool, max_bytes: int, name: str) -> bytes:
    """The output of a bounded decoder, when it came to its end within the bound."""
    if len(out) > max_bytes:
        raise Damaged(f"{name} data decodes to more than {max_bytes} bytes; raise the bound if that can be right")
    if not complete:
        raise Damaged(f"{name} data is cut off or has something behind its end; restore it from a copy")
    return out


def _broken(name: str, reason: object) -> Damaged:
    return Damaged(f"{name} data is broken ({reason}); restore it from a copy")


@dataclass(frozen=True, slots=True)
class Stored:
    """No compression: it takes part in every contest, since tiny inputs can grow."""

    name: str = "stored"
    id: int = 1
    lossy: bool = False

    def encode(self, data: bytes) -> bytes:
        """The data itself."""
        return data

    def decode(self, data: bytes, max_bytes: int = MAX_BYTES) -> bytes:
        """The data itself, within the bound."""
        return checked(data, True, max_bytes, self.name)


@dataclass(frozen=True, slots=True)
class Gzip:
    """RFC 1952, without a time, so that equal inputs give equal outputs."""

    name: str = "gzip"
    id: int = 2
    lossy: bool = False
    level: int = 9

    def encode(self, data: bytes) -> bytes:
        """One member."""
        return gzip.compress(data, self.level, mtime=0)

    def decode(self, data: bytes, max_bytes: int = MAX_BYTES) -> bytes:
        """The content of one member."""
        decoder = zlib.decompressobj(wbits=31)
        try:
            out = decoder.decompress(data, max_bytes + 1)
        except zlib.error as error:
            raise _broken(self.name, error) from None
        return checked(out, decoder.eof and not decoder.unused_data, max_bytes, self.name)


@dataclass(frozen=True, slots=True)
class Bzip2:
    """One bzip2 stream."""

    name: str = "bzip2"
    id: int = 3
    lossy: bool = False
    level: int = 9

    def encode(self, data: bytes) -> bytes:
        """One stream."""
        return bz2.compress(data, self.level)

    def decode(self, data: bytes, max_bytes: int = MAX_BYTES) -> bytes:
        """The content of one stream."""
        decoder = bz2.BZ2Decompressor()
        try:
            out = decoder.decompress(data, max_bytes + 1)
        except (OSError, ValueError) as error:
            raise _broken(self.name, error) from None
        return checked(out, decoder.eof and not decoder.unused_data, max_bytes, self.name)


@dataclass(frozen=True, slots=True)
class Xz:
    """One xz stream of the strongest preset, with a window no larger than the data needs."""

    name: str = "xz"
    id: int = 34
    lossy: bool = False
    preset: int = 9 | lzma.PRESET_EXTREME

    def encode(self, data: bytes) -> bytes:
        """One stream."""
        window = min(64 << 20, max(4096, 1 << len(data).bit_length()))
        filters = [{"id": lzma.FILTER_LZMA2, "preset": self.preset, "dict_size": window}]
        return lzma.compress(data, check=lzma.CHECK_CRC32, filters=filters)

    def decode(self, data: bytes, max_bytes: int = MAX_BYTES) -> bytes:
        """The content of one stream."""
        decoder = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        try:
            out = decoder.decompress(data, max_bytes + 1)
        except (lzma.LZMAError, EOFError) as error:
            raise _broken(self.name, error) from None
        return checked(out, decoder.eof and not decoder.unused_data, max_bytes, self.name)
