"""The contest: every method tries, the smallest result wins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from letopis.codec.method import Codec
from letopis.codec.registry import get
from letopis.errors import CodecRefused


class Won(NamedTuple):
    """The method that won and what it made."""

    codec: Codec
    encoded: bytes


def _tries(data: bytes, methods: Iterable[str | Codec], lossy: bool) -> Iterator[Won]:
    yield Won(get("stored"), data)
    for method in methods:
        codec = get(method) if isinstance(method, str) else method
        if codec.lossy and not lossy:
            continue
        try:
            yield Won(codec, codec.encode(data))
        except CodecRefused:
            continue


def contest(data: bytes, methods: Iterable[str | Codec], *, lossy: bool = False) -> Won:
    """The smallest encoding; of equal ones the first, with `stored` always the very first.

    A method that refuses the input drops out. Lossy methods take part only
    when `lossy` says so, even when they are named.
    """
    return min(_tries(data, methods, lossy), key=lambda won: len(won.encoded))
