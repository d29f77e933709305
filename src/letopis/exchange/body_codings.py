"""Bodies of HTTP messages without their transfer: chunks, codings, wrong lengths.

Codings are undone within bounds, in the order in which they were applied.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import zlib
from collections.abc import Callable

import brotli

from letopis.errors import DocumentTooLarge
from letopis.model import Headers
from letopis.tuples import NamedTuple
from letopis.zstandard import zstd

MAX_BODY = 256 * 1024 * 1024
"""Larger bodies are refused and named in the report."""


_MOST_CODINGS = 8


class DecodedBody(NamedTuple):
    """A body without its codings; `problem` says why it is unchanged, if they could not be undone."""

    body: bytes
    problem: str = ""


def decoded_body(headers: Headers, raw: bytes, digest: str = "") -> DecodedBody:
    """The body of a message: chunks joined, bytes after its length cut off, codings undone.

    A body that is no longer coded, though its headers say so, has another length: then the one in its headers is not
    applied. Nor is it applied to a body that is the payload according to the digest in its record: writers undo codings
    and leave the length as it was sent.
    """
    chunked, codings, length = _framing(headers)
    body = unchunked(raw) if chunked else raw
    longer = length is not None and not chunked and length < len(body) and not is_digest_of(digest, body)
    cut = body[:length] if longer else body
    if not codings:
        return DecodedBody(cut)
    problem = ""
    for part in (cut, body) if len(cut) < len(body) else (body,):
        try:
            return DecodedBody(_undone(codings, part))
        except DocumentTooLarge as error:
            return DecodedBody(body, f"{error}; stored unchanged")
        except ValueError:
            problem = f"a body labelled {', '.join(codings)} is not; stored unchanged"
    return DecodedBody(body, problem)


def is_digest_of(digest: str, body: bytes) -> bool:
    """Whether a digest as records name it, such as `sha1:` in base32 or `sha-256:` in hex, is that of a body."""
    label, _, value = digest.partition(":")
    kind = label.lower().replace("-", "")
    if kind not in ("sha1", "sha256", "sha512", "md5"):
        return False
    made = hashlib.new(kind, body, usedforsecurity=False)
    if value.lower() == made.hexdigest():
        return True
    try:
        return base64.b32decode(value.upper()) == made.digest()
    except (binascii.Error, ValueError):
        return False


def _framing(headers: Headers) -> tuple[bool, list[str], int | None]:
    """Whether a message is chunked, the codings in the order in which they were applied, and its length."""
    chunked, length = False, None
    codings: list[str] = []
    for name, value in headers:
        if len(name) not in _LENGTHS:
            continue
        lower = name.lower()
        if lower == "transfer-encoding":
            chunked = chunked or "chunked" in value.lower()
        elif lower == "content-encoding":
            codings += [word.strip().lower() for word in value.split(",")]
        elif lower == "content-length" and length is None:
            digits = value.strip()
            length = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else None
    if codings:
        codings = [coding for coding in codings if coding not in ("", "identity")]
        codings = codings if all(map(knows_coding, codings)) else []
    return chunked, codings, length


_LENGTHS = frozenset(map(len, ("transfer-encoding", "content-encoding", "content-length")))


def _undone(codings: list[str], body: bytes) -> bytes:
    if len(codings) > _MOST_CODINGS:
        raise ValueError("it has too many content codings")
    for coding in reversed(codings):
        body = undo_coding(coding, body)
    return body


def undo_coding(coding: str, body: bytes, limit: int = MAX_BODY) -> bytes:
    """The decoded bytes; an unknown coding leaves them unchanged.

    Raises DocumentTooLarge above the limit, ValueError if the bytes do not have the coding.
    """
    inflate = _CODINGS.get(coding)
    return body if inflate is None else inflate(body, limit)


def knows_coding(coding: str) -> bool:
    """Whether this coding can be undone."""
    return coding in _CODINGS


def _gunzip(body: bytes, limit: int) -> bytes:
    """All members, as far as they follow one another; what follows them is no part of the body."""
    parts: list[bytes] = []
    left = limit
    while True:
        inflate = zlib.decompressobj(47)
        try:
            plain = inflate.decompress(body, left + 1)
        except zlib.error:
            if parts:
                break
            return _raw_deflate(body, limit)
        _require_bounded(len(plain) > left)
        parts.append(plain)
        left -= len(plain)
        body = inflate.unused_data
        if not body.startswith(b"\x1f\x8b"):
            break
    return b"".join(parts)


def _raw_deflate(body: bytes, limit: int) -> bytes:
    """What some servers send as `deflate`: without the header of zlib."""
    inflate = zlib.decompressobj(-15)
    try:
        plain = inflate.decompress(body, limit)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    _require_bounded(bool(inflate.unconsumed_tail))
    return plain


def _unbrotli(body: bytes, limit: int) -> bytes:
    inflate = brotli.Decompressor()
    try:
        plain: bytes = inflate.process(body, output_buffer_limit=limit)
    except brotli.error as error:
        raise ValueError(str(error)) from None
    _require_bounded(len(plain) > limit or not inflate.can_accept_more_data())
    if not inflate.is_finished():
        raise ValueError("it is truncated")
    return plain


def _unzstd(body: bytes, limit: int) -> bytes:
    """All frames; a frame that breaks off is no body."""
    parts: list[bytes] = []
    left = limit
    while body or not parts:
        inflate = zstd.ZstdDecompressor()
        try:
            plain = inflate.decompress(body, left + 1)
        except zstd.ZstdError as error:
            raise ValueError(str(error)) from None
        _require_bounded(len(plain) > left)
        if not inflate.eof:
            raise ValueError("it is truncated")
        parts.append(plain)
        left -= len(plain)
        body = inflate.unused_data
    return b"".join(parts)


def _require_bounded(too_large: bool) -> None:
    if too_large:
        raise DocumentTooLarge("it unpacks to more than 256 MiB")


_CODINGS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _gunzip,
    "br": _unbrotli,
    "zstd": _unzstd,
}


_HEX = re.compile(rb"[0-9a-fA-F]{1,8}")


def unchunked(body: bytes) -> bytes:
    """The body of a chunked message; what is not chunked stays as it is."""
    parts: list[bytes] = []
    place = 0
    while True:
        end = body.find(b"\r\n", place, place + 1024)
        size = _hex(body[place:end].split(b";")[0].strip()) if end >= 0 else None
        if size is None or end + 2 + size > len(body):
            return b"".join(parts) if parts else body
        if size == 0:
            return b"".join(parts)
        parts.append(body[end + 2 : end + 2 + size])
        place = end + 2 + size
        place += 2 if body.startswith(b"\r\n", place) else 0


def _hex(digits: bytes) -> int | None:
    """A number of hexadecimal digits only: a sign would lead backwards forever."""
    return int(digits, 16) if _HEX.fullmatch(digits) else None
