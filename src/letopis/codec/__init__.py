"""Methods of compression: those of the thesis, the modern ones, dictionaries, and the contest between them."""

from letopis.codec.contest import Won, contest
from letopis.codec.dictionary import Dictionary
from letopis.codec.generic import html_dictionary
from letopis.codec.method import MAX_BYTES, Codec
from letopis.codec.modern import Brotli, BrotliWith, Zstd, with_dictionary
from letopis.codec.registry import THESIS, by_id, get, names

__all__ = [
    "MAX_BYTES",
    "THESIS",
    "Brotli",
    "BrotliWith",
    "Codec",
    "Dictionary",
    "Won",
    "Zstd",
    "by_id",
    "contest",
    "get",
    "html_dictionary",
    "names",
    "with_dictionary",
]
