"""All compression methods by name and by the number that files store, and the smallest result among several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache

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
from letopis.errors import CodecRefused, Damaged, MissingExtra, UsageError
from letopis.plugins import entry_points_of
from letopis.tuples import NamedTuple

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
