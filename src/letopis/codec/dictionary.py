"""Dictionaries: text that pages to come are likely to share, agreed on before.

zstd takes a dictionary as it is. The brotli binding takes none, so the
dictionary is compressed ahead of the page and its part of the stream cut
off. A decoder then needs that very stream, because a page may refer to the
last distances used in it. So the stream *is* the stored form of a
dictionary, and what was once encoded can be decoded by every later release
of brotli, whatever that would make of the same text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import brotli
from backports import zstd

from letopis.errors import Damaged, NewerFormat, UsageError

WINDOW = 24
QUALITY = 11
MAX_DICTIONARY = 8 << 20
"""A dictionary and a page share a window of 16 MiB."""
_MAGIC = b"LDIC"
_FORMAT = 1


def stream_of(text: bytes) -> tuple[bytes, brotli.Compressor]:
    """The brotli stream of a text up to a flush, and the compressor that goes on from there."""
    compressor = brotli.Compressor(quality=QUALITY, lgwin=WINDOW)
    return compressor.process(text) + compressor.flush(), compressor


def text_of(stream: bytes) -> bytes:
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
        return cls(_bounded(text))

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
        return cls(_bounded(made.dict_content), trained=True)

    @classmethod
    def from_bytes(cls, data: bytes) -> Dictionary:
        """What `to_bytes` made; Damaged for anything else."""
        if len(data) < 6 or data[:4] != _MAGIC:
            raise Damaged("this is not a dictionary; restore it from a copy")
        if data[4] > _FORMAT:
            raise NewerFormat("the dictionary was written by a later release; update Letopis")
        if data[4] != _FORMAT or data[5] > 1:
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
        return _MAGIC + bytes([_FORMAT, self.trained]) + self.stream

    @cached_property
    def text(self) -> bytes:
        """The shared text; Damaged when the stored form is."""
        return text_of(self.stream)

    @cached_property
    def zstd(self) -> zstd.ZstdDict:
        """The dictionary for zstd, digested once."""
        try:
            return zstd.ZstdDict(self.text, is_raw=not self.trained)
        except (ValueError, zstd.ZstdError):
            raise Damaged("the trained dictionary is broken; restore it from a copy") from None


def _bounded(text: bytes) -> bytes:
    if not 8 <= len(text) <= MAX_DICTIONARY:
        raise UsageError(f"a dictionary has 8 bytes to {MAX_DICTIONARY} bytes, not {len(text)}")
    return stream_of(text)[0]
