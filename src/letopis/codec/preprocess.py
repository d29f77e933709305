"""Preprocessing 1 and 2: words of a static dictionary replaced by byte values that the document leaves free."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from letopis.codec.matching import matcher
from letopis.codec.method import MAX_BYTES, Codec
from letopis.codec.symbols import bitmap, expand, flags, substitute
from letopis.codec.tags import BOTH_CASES, LOWER
from letopis.errors import CodecRefused, Damaged


class Transform(Protocol):
    """A reversible change that makes a document easier to compress."""

    def forward(self, data: bytes) -> bytes:
        """The changed document; CodecRefused when it cannot be done."""

    def backward(self, data: bytes, max_bytes: int) -> bytes:
        """The inverse; Damaged when it was not made by `forward` or would exceed the bound."""

    def widest(self, max_bytes: int) -> int:
        """How long the changed form of a document within the bound can be."""


@dataclass(frozen=True)
class StaticWords:
    """One static dictionary over the lower `alphabet` byte values.

    The changed document is a bit map of the byte values that occur outside
    words, a bit map of the words that occur, and the text in which each such
    word, in the order of the dictionary, stands as the next free byte value.
    """

    words: tuple[bytes, ...]
    alphabet: int
    fold: bool
    pattern: re.Pattern[bytes]

    @property
    def _header(self) -> int:
        return (self.alphabet + len(self.words)) // 8

    def _parts(self, data: bytes) -> list[bytes]:
        """Text and words by turns. When case is ignored, words are found and given in lower case."""
        if not self.fold:
            return self.pattern.split(data)
        parts = self.pattern.split(data.lower())
        ends = list(accumulate(map(len, parts)))
        parts[0::2] = [data[end - len(text) : end] for text, end in zip(parts[0::2], ends[0::2], strict=True)]
        return parts

    def forward(self, data: bytes) -> bytes:
        """The document with its words replaced; CodecRefused without enough free byte values."""
        parts = self._parts(data)
        used, found = set(b"".join(parts[0::2])), set(parts[1::2])
        free = [value for value in range(self.alphabet) if value not in used]
        if len(found) > len(free) or max(used, default=0) >= self.alphabet:
            raise CodecRefused(
                f"{len(used)} byte values and {len(found)} words do not fit in {self.alphabet} symbols; "
                "use another method for this document"
            )
        present = [word for word in self.words if word in found]
        codes = {word: bytes([value]) for word, value in zip(present, free, strict=False)}
        byte_map = bitmap(value in used for value in range(self.alphabet))
        return byte_map + bitmap(word in found for word in self.words) + substitute(parts, codes)

    def backward(self, data: bytes, max_bytes: int) -> bytes:
        """The document, in the case of the dictionary where case was ignored."""
        if len(data) < self._header:
            raise Damaged("preprocessed data is shorter than its header; restore it from a copy")
        marks = flags(data[: self._header])
        words = [word for word, mark in zip(self.words, marks[self.alphabet :], strict=True) if mark]
        free = [value for value, mark in enumerate(marks[: self.alphabet]) if not mark]
        if len(words) > len(free):
            raise Damaged("preprocessed data names more words than it has free symbols; restore it from a copy")
        symbols, body = bytes(free[: len(words)]), data[self._header :]
        known = bytes(value for value in range(self.alphabet) if marks[value]) + symbols
        if body.translate(None, known):
            raise Damaged("preprocessed data uses bytes that its header does not name; restore it from a copy")
        return expand(body, words, symbols, max_bytes)

    def widest(self, max_bytes: int) -> int:
        """No word is shorter than its symbol."""
        return max_bytes + self._header


_CASED, _FOLDED = matcher(BOTH_CASES), matcher(LOWER)
WORDS_1 = StaticWords(BOTH_CASES, 256, False, _CASED)
WORDS_1I = StaticWords(LOWER, 256, True, _FOLDED)
WORDS_2 = StaticWords(BOTH_CASES, 128, False, _CASED)
WORDS_2I = StaticWords(LOWER, 128, True, _FOLDED)


@dataclass(frozen=True, slots=True)
class Preprocessed:
    """A transform in front of a general method."""

    name: str
    id: int
    transform: Transform
    inner: Codec
    lossy: bool = False

    def encode(self, data: bytes) -> bytes:
        """Transformed, then compressed; CodecRefused when the transform cannot take the input."""
        return self.inner.encode(self.transform.forward(data))

    def decode(self, data: bytes, max_bytes: int = MAX_BYTES) -> bytes:
        """The inverse, within the bound at each step."""
        return self.transform.backward(self.inner.decode(data, self.transform.widest(max_bytes)), max_bytes)
