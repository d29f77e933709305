"""Compression methods by name and number, dictionaries of shared text, and the contest between methods."""

from letopis.codec.methods import (
    MAX_BYTES,
    BestEncoding,
    Brotli,
    BrotliWithDictionary,
    Codec,
    Dictionary,
    Zstd,
    by_id,
    contest,
    get,
    html_dictionary,
    names,
    with_dictionary,
)

__all__ = [
    "MAX_BYTES", "BestEncoding", "Brotli", "BrotliWithDictionary", "Codec", "Dictionary", "Zstd", "by_id",
    "contest", "get", "html_dictionary", "names", "with_dictionary",
]  # fmt: skip
