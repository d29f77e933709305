"""Frequent words: an adaptive dictionary made for each document. Kept as a row of the benchmark: it loses."""

from __future__ import annotations

import re
from collections import Counter

from letopis.codec.matching import matcher
from letopis.codec.symbols import bitmap, expand, flags, substitute
from letopis.errors import Damaged

_SEPARATORS = bytes([*range(48), 58, 59, 61, 63, *range(91, 94), *range(123, 126)])
_RUNS = re.compile(b"[^" + re.escape(_SEPARATORS) + b"]{3,}")
_ENTRY = re.compile(b"([^" + re.escape(_SEPARATORS) + b"]+)[" + re.escape(_SEPARATORS) + b"]")
_MAP = 32
_BETWEEN = b" "


def _chosen(data: bytes, room: int) -> list[bytes]:
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
        words = _chosen(data, len(free))
        symbols = set(free[: len(words)])
        header = bitmap(value in symbols for value in range(256)) + b"".join(word + _BETWEEN for word in words)
        if not words:
            return header + data
        codes = {word: bytes([value]) for word, value in zip(words, free, strict=False)}
        return header + substitute(matcher(words).split(data), codes)

    def backward(self, data: bytes, max_bytes: int) -> bytes:
        """The document."""
        if len(data) < _MAP:
            raise Damaged("preprocessed data is shorter than its header; restore it from a copy")
        symbols = bytes(value for value, mark in enumerate(flags(data[:_MAP])) if mark)
        words, position = [], _MAP
        for _ in symbols:
            entry = _ENTRY.match(data, position)
            if entry is None:
                raise Damaged("preprocessed data has fewer words than symbols; restore it from a copy")
            words.append(entry[1])
            position = entry.end()
        return expand(data[position:], words, symbols, max_bytes)

    def widest(self, max_bytes: int) -> int:
        """All words together, each with a separator, are no longer than the document that they came from."""
        return _MAP + 2 * max_bytes
