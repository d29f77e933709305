"""Compression methods that replace words by free byte values before gzip or bzip2: words of HTML, or of one document.

Archives whose `store.methods` names them need this package to be read. The dictionary, the byte layout and the numbers
of the methods are part of the stored format and never change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from letopis.codec import MAX_BYTES, Codec, get
from letopis.errors import CodecRefused, Damaged

_WORD_END = b""


def _by_first_byte(words: Iterable[bytes]) -> dict[bytes, list[bytes]]:
    """The tails of the words by their first byte; a word that ends here is under the empty key."""
    tails: dict[bytes, list[bytes]] = {}
    for word in words:
        tails.setdefault(word[:1], []).append(word[1:])
    return tails


def _shared_prefixes(words: Iterable[bytes]) -> bytes:
    """A pattern that shares common beginnings. Greedy options make the longest word win."""
    tails = _by_first_byte(set(words))
    ends = tails.pop(_WORD_END, None) is not None
    branches = [re.escape(first) + _shared_prefixes(rest) for first, rest in sorted(tails.items())]
    if not branches:
        return b""
    body = b"(?:" + b"|".join(branches) + b")"
    return body + b"?" if ends else body


def word_pattern(words: Collection[bytes]) -> re.Pattern[bytes]:
    """A pattern for any of the words, in one capturing group, so that `split` keeps what it found.

    The words must not be empty. A tree of branches is what a trie would be:
    the engine skips by the set of first bytes and never compares a byte twice.
    """
    return re.compile(b"(" + _shared_prefixes(words) + b")", re.DOTALL)


def bitmap(flags: Iterable[bool]) -> bytes:
    """Bits from the most significant one down; the number of flags is a multiple of 8."""
    bits = "".join("1" if flag else "0" for flag in flags)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def bitmap_flags(data: bytes) -> list[bool]:
    """The inverse of `bitmap`."""
    return [bit == "1" for bit in f"{int.from_bytes(data, 'big'):0{8 * len(data)}b}"]


def substitute_words(parts: list[bytes], codes: Mapping[bytes, bytes]) -> bytes:
    """Text and words by turns, as `Pattern.split` gives them, with the words coded."""
    parts[1::2] = [codes[word] for word in parts[1::2]]
    return b"".join(parts)


def expand_symbols(body: bytes, words: Sequence[bytes], symbols: bytes, max_bytes: int) -> bytes:
    """Each symbol in the body turned into its word, in one pass; Damaged when that would exceed the bound."""
    grown = sum(body.count(symbol) * (len(word) - 1) for symbol, word in zip(symbols, words, strict=True))
    if len(body) + grown > max_bytes:
        raise Damaged(f"preprocessed data decodes to more than {max_bytes} bytes; raise the limit if that is correct")
    if not symbols:
        return body
    codes = {bytes([symbol]): word for symbol, word in zip(symbols, words, strict=True)}
    return substitute_words(re.split(b"([" + re.escape(symbols) + b"])", body), codes)


_CLOSING = "a b body div font form head html input li ol p script span table td title ul"
_OPENING = "a|b|body|br|div|font|form|head|html|img |input|li|link |meta |ol|p|script|span|table|td|title>|tr|ul"
_ATTRIBUTES = "align border class content height href id language name padding src style target type width"

HTML_WORDS = (
    *(f"</{name}>".encode() for name in _CLOSING.split()),
    *(f"<{name}".encode() for name in _OPENING.split("|")),
    *(f"{name}=".encode() for name in _ATTRIBUTES.split()),
)
"""One case, for the methods that ignore it."""

HTML_WORDS_BOTH_CASES = (*HTML_WORDS, *(word.upper() for word in HTML_WORDS))
"""All words in lower case, then all of them in upper case."""


class WordTransform(Protocol):
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

    The changed document is a bit map of the byte values that occur outside words, a bit map of the words that occur,
    and the text in which each such word, in the order of the dictionary, stands as the next free byte value.
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
        return byte_map + bitmap(word in found for word in self.words) + substitute_words(parts, codes)

    def backward(self, data: bytes, max_bytes: int) -> bytes:
        """The document, in the case of the dictionary where case was ignored."""
        if len(data) < self._header:
            raise Damaged("preprocessed data is shorter than its header; restore it from a copy")
        marks = bitmap_flags(data[: self._header])
        words = [word for word, mark in zip(self.words, marks[self.alphabet :], strict=True) if mark]
        free = [value for value, mark in enumerate(marks[: self.alphabet]) if not mark]
        if len(words) > len(free):
            raise Damaged("preprocessed data names more words than it has free symbols; restore it from a copy")
        symbols, body = bytes(free[: len(words)]), data[self._header :]
        known = bytes(value for value in range(self.alphabet) if marks[value]) + symbols
        if body.translate(None, known):
            raise Damaged("preprocessed data uses bytes that its header does not name; restore it from a copy")
        return expand_symbols(body, words, symbols, max_bytes)

    def widest(self, max_bytes: int) -> int:
        """No word is shorter than its symbol."""
        return max_bytes + self._header


_CASED, _FOLDED = word_pattern(HTML_WORDS_BOTH_CASES), word_pattern(HTML_WORDS)
WORDS_1 = StaticWords(HTML_WORDS_BOTH_CASES, 256, False, _CASED)
WORDS_1I = StaticWords(HTML_WORDS, 256, True, _FOLDED)
WORDS_2 = StaticWords(HTML_WORDS_BOTH_CASES, 128, False, _CASED)
WORDS_2I = StaticWords(HTML_WORDS, 128, True, _FOLDED)


@dataclass(frozen=True, slots=True)
class SubstitutionCodec:
    """A transform in front of a general method."""

    name: str
    id: int
    transform: WordTransform
    inner: Codec
    lossy: bool = False

    def encode(self, data: bytes) -> bytes:
        """Transformed, then compressed; CodecRefused when the transform cannot take the input."""
        return self.inner.encode(self.transform.forward(data))

    def decode(self, data: bytes, max_bytes: int = MAX_BYTES) -> bytes:
        """The inverse, within the bound at each step."""
        return self.transform.backward(self.inner.decode(data, self.transform.widest(max_bytes)), max_bytes)


_SEPARATORS = bytes([*range(48), 58, 59, 61, 63, *range(91, 94), *range(123, 126)])
_RUNS = re.compile(b"[^" + re.escape(_SEPARATORS) + b"]{3,}")
_ENTRY = re.compile(b"([^" + re.escape(_SEPARATORS) + b"]+)[" + re.escape(_SEPARATORS) + b"]")
_MAP = 32
_BETWEEN = b" "


def _frequent_words(data: bytes, room: int) -> list[bytes]:
    """Words of three bytes and more that occur twice and more: the most frequent first, then the longest."""
    counts = Counter(_RUNS.findall(data))
    ranked = sorted((-count, -len(word), word) for word, count in counts.items() if count >= 2)
    return [word for _, _, word in ranked[:room]]


class FrequentWords:
    """The changed document: a map of the symbols that stand for words, the words, and the coded text."""

    def forward(self, data: bytes) -> bytes:
        """The document with its most frequent words replaced, wherever they stand. Never refuses."""
        used = set(data)
        free = [value for value in range(256) if value not in used]
        words = _frequent_words(data, len(free))
        symbols = set(free[: len(words)])
        header = bitmap(value in symbols for value in range(256)) + b"".join(word + _BETWEEN for word in words)
        if not words:
            return header + data
        codes = {word: bytes([value]) for word, value in zip(words, free, strict=False)}
        return header + substitute_words(word_pattern(words).split(data), codes)

    def backward(self, data: bytes, max_bytes: int) -> bytes:
        """The document."""
        if len(data) < _MAP:
            raise Damaged("preprocessed data is shorter than its header; restore it from a copy")
        symbols = bytes(value for value, mark in enumerate(bitmap_flags(data[:_MAP])) if mark)
        words, position = [], _MAP
        for _ in symbols:
            entry = _ENTRY.match(data, position)
            if entry is None:
                raise Damaged("preprocessed data has fewer words than symbols; restore it from a copy")
            words.append(entry[1])
            position = entry.end()
        return expand_symbols(data[position:], words, symbols, max_bytes)

    def widest(self, max_bytes: int) -> int:
        """All words together, each with a separator, are no longer than the document that they came from."""
        return _MAP + 2 * max_bytes


def _codecs() -> tuple[SubstitutionCodec, ...]:
    gzip, bzip2, words = get("gzip"), get("bzip2"), FrequentWords()
    return (
        SubstitutionCodec("mgz1", 4, WORDS_1, gzip),
        SubstitutionCodec("mbz1", 5, WORDS_1, bzip2),
        SubstitutionCodec("mgz1i", 6, WORDS_1I, gzip, lossy=True),
        SubstitutionCodec("mbz1i", 7, WORDS_1I, bzip2, lossy=True),
        SubstitutionCodec("mgz2", 8, WORDS_2, gzip),
        SubstitutionCodec("mbz2", 9, WORDS_2, bzip2),
        SubstitutionCodec("mgz2i", 10, WORDS_2I, gzip, lossy=True),
        SubstitutionCodec("mbz2i", 11, WORDS_2I, bzip2, lossy=True),
        SubstitutionCodec("fsg", 35, words, gzip),
        SubstitutionCodec("fsb", 36, words, bzip2),
    )


CODECS = _codecs()
"""All methods of this package, as `letopis.codec` finds them."""
