"""Compression methods by name and by the number that files store: what each promises, the general ones decoded within
bounds, dictionaries of shared text, and the contest for the smallest result.

zstd takes a dictionary as it is. The brotli binding takes none, so the dictionary is compressed ahead of the page
and its part of the stream cut off; that stream is the stored form of a dictionary, so that every later release of
brotli can decode what was once encoded.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol

import brotli

from letopis.errors import CodecRefused, Damaged, MissingExtra, NewerFormat, UsageError
from letopis.plugins import entry_points_of
from letopis.tuples import NamedTuple
from letopis.zstandard import zstd

MAX_BYTES = 1 << 30
"""The most that decoding yields when the caller names no bound."""


class Codec(Protocol):
    """Bytes in, bytes out. Values of this kind are immutable and may be used from any thread.

    `id` is what files store; it never changes and is never given twice.
    A `lossy` method may change the case of HTML tags and attributes.
    """

    @property
    def name(self) -> str:
        """The name that people write in settings."""

    @property
    def id(self) -> int:
        """The number that files store."""

    @property
    def lossy(self) -> bool:
        """Whether decoding may give other bytes than were encoded."""

    def encode(self, data: bytes) -> bytes:
        """The encoded form; CodecRefused when the method cannot take this input."""

    def decode(self, data: bytes, max_bytes: int = MAX_BYTES) -> bytes:
        """The inverse; Damaged for anything that `encode` never made or that yields more than `max_bytes`."""


_XZ_MEMORY = 160 << 20
"""What a decoder of xz may take: the strongest preset needs 65 MiB, a hostile header could ask for 4 GiB."""


def checked_output(out: bytes, complete: bool, max_bytes: int, name: str) -> bytes:
    """The output of a bounded decoder, when it came to its end within the bound."""
    if len(out) > max_bytes:
        raise Damaged(f"{name} data decodes to more than {max_bytes} bytes; raise the limit if that is correct")
    if not complete:
        raise Damaged(f"{name} data is truncated or has extra bytes at its end; restore it from a copy")
    return out


def _broken(name: str, reason: object) -> Damaged:
    return Damaged(f"{name} data is broken ({reason}); restore it from a copy")


def _decoded(decoder: Any, data: bytes, max_bytes: int, name: str) -> bytes:
    """What one of the standard library's decoders makes of one stream, within the bound."""
    try:
        out = decoder.decompress(data, max_bytes + 1)
    except (zlib.error, lzma.LZMAError, OSError, ValueError, EOFError) as error:
        raise _broken(name, error) from None
    return checked_output(out, decoder.eof and not decoder.unused_data, max_bytes, name)


@dataclass(frozen=True, slots=True)
class Uncompressed:
    """No compression: it takes part in every contest, since tiny inputs can grow."""

    name: str = "stored"
    id: int = 1
    lossy: bool = False

    def encode(self, data: bytes) -> bytes:
        """The data itself."""
        return data

    def decode(self, data: bytes, max_bytes: int = MAX_BYTES) -> bytes:
        """The data itself, within the bound."""
        return checked_output(data, True, max_bytes, self.name)


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
        return _decoded(zlib.decompressobj(wbits=31), data, max_bytes, self.name)


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
        return _decoded(bz2.BZ2Decompressor(), data, max_bytes, self.name)


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
        return _decoded(decoder, data, max_bytes, self.name)


BROTLI_WINDOW = 24
BROTLI_QUALITY = 11
MAX_DICTIONARY = 8 << 20
"""A dictionary and a page share a window of 16 MiB."""
_DICTIONARY_MAGIC = b"LDIC"
_DICTIONARY_FORMAT = 1


def dictionary_stream(text: bytes) -> tuple[bytes, brotli.Compressor]:
    """The brotli stream of a text up to a flush, and the compressor that goes on from there."""
    compressor = brotli.Compressor(quality=BROTLI_QUALITY, lgwin=BROTLI_WINDOW)
    return compressor.process(text) + compressor.flush(), compressor


def dictionary_text(stream: bytes) -> bytes:
    """The text of such a stream, within bounds."""
    decoder = brotli.Decompressor()
    try:
        text = decoder.process(stream + b"\x03", output_buffer_limit=MAX_DICTIONARY + 1)
    except brotli.error:
        raise Damaged("the dictionary is broken; restore it from a copy") from None
    if len(text) > MAX_DICTIONARY or not decoder.is_finished():
        raise Damaged("the dictionary is cut off or too large; restore it from a copy")
    return bytes(text)


@dataclass(frozen=True)
class Dictionary:
    """Shared text, either plain or trained by zstd (with the tables of its coder)."""

    stream: bytes
    trained: bool = False

    @classmethod
    def of(cls, text: bytes) -> Dictionary:
        """A plain text; what pages share most should stand last."""
        return cls(_bounded_stream(text))

    @classmethod
    def train(cls, samples: Sequence[bytes], size: int = 112 << 10) -> Dictionary:
        """What is most often common to the samples, of which ten at least must have 64 bytes.

        Shorter ones are left out: zstd ends the whole process by a division
        by zero when its share of the samples is only a few bytes.
        """
        usable = [sample for sample in samples if len(sample) >= 64]
        if len(usable) < 10:
            raise UsageError(f"a dictionary is trained on 10 pages of 64 bytes at least, not on {len(usable)}")
        try:
            made = zstd.train_dict(usable, min(size, MAX_DICTIONARY))
        except zstd.ZstdError:
            raise UsageError("the samples are too small or too few for a dictionary; give more of them") from None
        return cls(_bounded_stream(made.dict_content), trained=True)

    @classmethod
    def from_bytes(cls, data: bytes) -> Dictionary:
        """What `to_bytes` made; Damaged for anything else."""
        if len(data) < 6 or data[:4] != _DICTIONARY_MAGIC:
            raise Damaged("this is not a dictionary; restore it from a copy")
        if data[4] > _DICTIONARY_FORMAT:
            raise NewerFormat("the dictionary was written by a later release; update Letopis")
        if data[4] != _DICTIONARY_FORMAT or data[5] > 1:
            raise Damaged("the header of the dictionary is broken; restore it from a copy")
        made = cls(data[6:], bool(data[5]))
        if made.trained and len(made.text) < 8:
            raise Damaged("the dictionary is too short; restore it from a copy")
        return made

    def joined(self, other: Dictionary) -> Dictionary:
        """Both texts as one plain dictionary; that of `other` stands nearer to the page and is cheaper to refer to."""
        return Dictionary.of(self.text + other.text)

    def to_bytes(self) -> bytes:
        """The form to store, already compressed."""
        return _DICTIONARY_MAGIC + bytes([_DICTIONARY_FORMAT, self.trained]) + self.stream

    @cached_property
    def text(self) -> bytes:
        """The shared text; Damaged when the stored form is."""
        return dictionary_text(self.stream)

    @cached_property
    def zstd(self) -> zstd.ZstdDict:
        """The dictionary for zstd, digested once."""
        try:
            return zstd.ZstdDict(self.text, is_raw=not self.trained)
        except (ValueError, zstd.ZstdError):
            raise Damaged("the trained dictionary is broken; restore it from a copy") from None


def _bounded_stream(text: bytes) -> bytes:
    if not 8 <= len(text) <= MAX_DICTIONARY:
        raise UsageError(f"a dictionary has 8 bytes to {MAX_DICTIONARY} bytes, not {len(text)}")
    return dictionary_stream(text)[0]


@cache
def html_dictionary() -> Dictionary:
    """The generic dictionary for HTML."""
    return Dictionary.from_bytes(b64decode(Path(__file__).with_name("html-stream.txt").read_bytes()))


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
            raise _broken(self.name, error) from None
        return checked_output(out, decoder.eof and not decoder.unused_data, max_bytes, self.name)


def _brotli_decoded(stream: bytes, max_bytes: int, name: str) -> bytes:
    decoder = brotli.Decompressor()
    try:
        out = decoder.process(stream, output_buffer_limit=max_bytes + 1)
    except brotli.error as error:
        raise _broken(name, error) from None
    return checked_output(bytes(out), decoder.is_finished(), max_bytes, name)


@dataclass(frozen=True, slots=True)
class Brotli:
    """One stream of the highest quality: small and slow to make, quick to read."""

    name: str = "brotli"
    id: int = 33
    lossy: bool = False

    def encode(self, data: bytes) -> bytes:
        """One stream."""
        return bytes(brotli.compress(data, quality=BROTLI_QUALITY, lgwin=BROTLI_WINDOW))

    def decode(self, data: bytes, max_bytes: int = MAX_BYTES) -> bytes:
        """The content of one stream."""
        return _brotli_decoded(data, max_bytes, self.name)


@dataclass(frozen=True, slots=True)
class BrotliWithDictionary:
    """The rest of a stream that begins with a dictionary. See `dictionary` for why reading it stays possible."""

    dictionary: Dictionary
    name: str = "brotli-dict"
    id: int = 40
    lossy: bool = False

    def encode(self, data: bytes) -> bytes:
        """The part behind the dictionary; CodecRefused when this release of brotli makes another stream of it."""
        text = self.dictionary.text
        if len(text) + len(data) > (1 << BROTLI_WINDOW) - 16:
            raise CodecRefused("the page and the dictionary do not fit in one window; use another method")
        stream, compressor = dictionary_stream(text)
        if stream != self.dictionary.stream:
            raise CodecRefused("the dictionary was made by another release of brotli; train a new one to write with")
        return bytes(compressor.process(data) + compressor.finish())

    def decode(self, data: bytes, max_bytes: int = MAX_BYTES) -> bytes:
        """The page alone."""
        known = len(self.dictionary.text)
        return _brotli_decoded(self.dictionary.stream + data, min(max_bytes, MAX_BYTES) + known, self.name)[known:]


def with_dictionary(dictionary: Dictionary) -> tuple[Zstd, BrotliWithDictionary]:
    """The two methods that use a dictionary of the caller's, as for the pages of one site."""
    return Zstd("zstd-dict", 39, level=19, dictionary=dictionary), BrotliWithDictionary(dictionary)


ENTRY_POINT_GROUP = "letopis.codecs"
"""Entry points of other packages; each names a sequence of codecs."""
_OPTIONAL = {
    4: "mgz1", 5: "mbz1", 6: "mgz1i", 7: "mbz1i", 8: "mgz2", 9: "mbz2", 10: "mgz2i", 11: "mbz2i", 35: "fsg", 36: "fsb",
}  # fmt: skip
"""Methods of the package letopis-codecs by the number that files store."""


@cache
def _built_in() -> dict[str, Codec]:
    html = html_dictionary()
    codecs: tuple[Codec, ...] = (
        Uncompressed(),
        Gzip(),
        Bzip2(),
        Zstd(),
        Brotli(),
        Xz(),
        Zstd("zstd-html", 37, dictionary=html),
        BrotliWithDictionary(html, "brotli-html", 38),
    )
    return {codec.name: codec for codec in codecs}


@cache
def _installed() -> dict[str, Codec]:
    """Methods of other packages; asked for only where those that are built in do not do."""
    found: list[Codec] = [codec for point in entry_points_of(ENTRY_POINT_GROUP) for codec in point.load()]
    return {codec.name: codec for codec in sorted(found, key=lambda codec: codec.id)}


def names() -> tuple[str, ...]:
    """The names of all methods that need nothing but the data: the built-in ones, then those of other packages."""
    return (*_built_in(), *_installed())


def get(name: str) -> Codec:
    """The method of that name; UsageError names the nearest one otherwise, MissingExtra the package to install."""
    codec = _built_in().get(name) or _installed().get(name)
    if codec is None:
        if name in _OPTIONAL.values():
            raise _missing(name)
        near = get_close_matches(name, names(), 1) or ["zstd"]
        raise UsageError(f"unknown method '{name}'; did you mean '{near[0]}'? All: {', '.join(names())}")
    return codec


def _missing(name: str) -> MissingExtra:
    return MissingExtra(f"the compression method {name} needs 'pip install letopis-codecs'")


def by_id(number: int, dictionary: Dictionary | None = None) -> Codec:
    """The method with that id. The ids 39 and 40 are those of `with_dictionary` and need its dictionary."""
    more: tuple[Codec, ...] = with_dictionary(dictionary) if dictionary else ()
    for codec in (*_built_in().values(), *more):
        if codec.id == number:
            return codec
    if number in (39, 40):
        raise UsageError(f"method {number} needs the dictionary that the data was written with; pass it in")
    for codec in _installed().values():
        if codec.id == number:
            return codec
    if number in _OPTIONAL:
        raise _missing(_OPTIONAL[number])
    raise Damaged(f"no method has the number {number}; the data is damaged or was written by a later release")


class BestEncoding(NamedTuple):
    """The method that won and what it made."""

    codec: Codec
    encoded: bytes


def _attempts(data: bytes, methods: Iterable[str | Codec], lossy: bool) -> Iterator[BestEncoding]:
    yield BestEncoding(get("stored"), data)
    for method in methods:
        codec = get(method) if isinstance(method, str) else method
        if codec.lossy and not lossy:
            continue
        try:
            yield BestEncoding(codec, codec.encode(data))
        except CodecRefused:
            continue


def contest(data: bytes, methods: Iterable[str | Codec], *, lossy: bool = False) -> BestEncoding:
    """The smallest encoding; of equal ones the first, with `stored` always the very first.

    A method that refuses the input drops out. Lossy methods take part only
    when `lossy` says so, even when they are named.
    """
    return min(_attempts(data, methods, lossy), key=lambda won: len(won.encoded))
