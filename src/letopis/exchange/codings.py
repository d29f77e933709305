"""Content codings undone, never to more than a bound: a small file may claim to be a huge one."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import brotli
from backports import zstd

from letopis.errors import DocumentTooLarge

MAX_BODY = 256 * 1024 * 1024
"""Larger bodies are refused and named in the report."""


def undo(coding: str, body: bytes, limit: int = MAX_BODY) -> bytes:
    """The bytes behind a coding; an unknown coding leaves them as they are.

    Raises DocumentTooLarge past the limit, ValueError where they are not what the coding says.
    """
    inflate = _CODINGS.get(coding)
    return body if inflate is None else inflate(body, limit)


def knows(coding: str) -> bool:
    """Whether this coding can be undone."""
    return coding in _CODINGS


def _gunzip(body: bytes, limit: int) -> bytes:
    inflate = zlib.decompressobj(47)
    try:
        plain = inflate.decompress(body, limit)
    except zlib.error:
        plain = _raw_deflate(body, limit)
    else:
        _bounded(bool(inflate.unconsumed_tail))
    return plain


def _raw_deflate(body: bytes, limit: int) -> bytes:
    """What some servers send as `deflate`: without the header of zlib."""
    inflate = zlib.decompressobj(-15)
    try:
        plain = inflate.decompress(body, limit)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    _bounded(bool(inflate.unconsumed_tail))
    return plain


def _unbrotli(body: bytes, limit: int) -> bytes:
    inflate = brotli.Decompressor()
    try:
        plain: bytes = inflate.process(body, output_buffer_limit=limit)
    except brotli.error as error:
        raise ValueError(str(error)) from None
    _bounded(len(plain) > limit or not inflate.can_accept_more_data())
    if not inflate.is_finished():
        raise ValueError("it breaks off")
    return plain


def _unzstd(body: bytes, limit: int) -> bytes:
    inflate = zstd.ZstdDecompressor()
    try:
        plain = inflate.decompress(body, limit)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from None
    _bounded(not inflate.eof and not inflate.needs_input)
    return plain


def _bounded(too_large: bool) -> None:
    if too_large:
        raise DocumentTooLarge("it unpacks to more than 256 MiB")


_CODINGS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _gunzip,
    "br": _unbrotli,
    "zstd": _unzstd,
}
