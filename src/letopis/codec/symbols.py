"""Replacing words by byte values that a document leaves free, and the bit maps that say which."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from letopis.errors import Damaged


def bitmap(flags: Iterable[bool]) -> bytes:
    """Bits from the most significant one down; the number of flags is a multiple of 8."""
    bits = "".join("1" if flag else "0" for flag in flags)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def flags(data: bytes) -> list[bool]:
    """The inverse of `bitmap`."""
    return [bit == "1" for bit in f"{int.from_bytes(data, 'big'):0{8 * len(data)}b}"]


def substitute(parts: list[bytes], codes: Mapping[bytes, bytes]) -> bytes:
    """Text and words by turns, as `Pattern.split` gives them, with the words coded."""
    parts[1::2] = [codes[word] for word in parts[1::2]]
    return b"".join(parts)


def expand(body: bytes, words: Sequence[bytes], symbols: bytes, max_bytes: int) -> bytes:
    """Each symbol in the body turned into its word, in one pass; Damaged when that would exceed the bound."""
    grown = sum(body.count(symbol) * (len(word) - 1) for symbol, word in zip(symbols, words, strict=True))
    if len(body) + grown > max_bytes:
        raise Damaged(f"preprocessed data decodes to more than {max_bytes} bytes; raise the bound if that can be right")
    if not symbols:
        return body
    codes = {bytes([symbol]): word for symbol, word in zip(symbols, words, strict=True)}
    return substitute(re.split(b"([" + re.escape(symbols) + b"])", body), codes)
