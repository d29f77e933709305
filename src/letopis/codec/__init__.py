"""Methods of compression: those of the thesis, the modern ones, dictionaries, and the contest between them."""

from letopis.codec.method_registry import THESIS, BestEncoding, by_id, contest, get, names
from letopis.codec.methods import (
    MAX_BYTES,
    Brotli,
    BrotliWithDictionary,
    Codec,
    Dictionary,
    Zstd,
    html_dictionary,
    with_dictionary,
)

__all__ = [
    "MAX_BYTES",
    "THESIS",
    "BestEncoding",
    "Brotli",
    "BrotliWithDictionary",
    "Codec",
    "Dictionary",
    "Zstd",
    "by_id",
    "contest",
    "get",
    "html_dictionary",
    "names",
    "with_dictionary",
]
