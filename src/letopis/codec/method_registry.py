"""All compression methods by name and by the number that files store, and the smallest result among several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from typing import NamedTuple

from letopis.codec.methods import (
    Brotli,
    BrotliWithDictionary,
    Bzip2,
    Codec,
    Dictionary,
    Gzip,
    Uncompressed,
    Xz,
    Zstd,
    html_dictionary,
    with_dictionary,
)
from letopis.codec.word_substitution import WORDS_1, WORDS_1I, WORDS_2, WORDS_2I, FrequentWords, SubstitutionCodec
from letopis.errors import CodecRefused, Damaged, UsageError

THESIS = ("stored", "gzip", "bzip2", "mgz1", "mbz1", "mgz1i", "mbz1i", "mgz2", "mbz2", "mgz2i", "mbz2i")
"""The methods of the thesis, in the order of their ids 1 to 11."""


@cache
def _all() -> dict[str, Codec]:
    gzip, bzip2, words = Gzip(), Bzip2(), FrequentWords()
    html = html_dictionary()
    codecs: tuple[Codec, ...] = (
        Uncompressed(),
        gzip,
        bzip2,
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
        Zstd(),
        Brotli(),
        Xz(),
        Zstd("zstd-html", 37, dictionary=html),
        BrotliWithDictionary(html, "brotli-html", 38),
    )
    return {codec.name: codec for codec in codecs}


def names() -> tuple[str, ...]:
    """The names of all methods that need nothing but the data."""
    return tuple(_all())


def get(name: str) -> Codec:
    """The method of that name; UsageError names the nearest one otherwise."""
    codec = _all().get(name)
    if codec is None:
        near = get_close_matches(name, _all(), 1) or ["zstd"]
        raise UsageError(f"there is no method '{name}'; did you mean '{near[0]}'? All: {', '.join(_all())}")
    return codec


def by_id(number: int, dictionary: Dictionary | None = None) -> Codec:
    """The method with that id. The ids 39 and 40 are those of `with_dictionary` and need its dictionary."""
    more: tuple[Codec, ...] = with_dictionary(dictionary) if dictionary else ()
    for codec in (*_all().values(), *more):
        if codec.id == number:
            return codec
    if number in (39, 40):
        raise UsageError(f"method {number} needs the dictionary that the data was written with; pass it in")
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
