"""Runs of hexadecimal digits, set aside as bytes.

Digests cannot be compressed below four bits a digit and spoil the statistics
of the text around them. Here each becomes one marker byte in the text and its
plain bytes in a tail. Exactly reversible.
"""

from __future__ import annotations

import re

from letopis.errors import Damaged

_DIGITS = (32, 40, 56, 64, 96, 128)
"""Lengths of MD5, SHA-1, SHA-224, SHA-256, SHA-384 and SHA-512, as digits."""

_RUN = re.compile(rb"(?<![0-9a-f])(?:" + b"|".join(b"[0-9a-f]{%d}" % n for n in reversed(_DIGITS)) + rb")(?![0-9a-f])")
_MARKER = re.compile(rb"[\x01-\x06]")
_MARKERS = {digits: bytes((number,)) for number, digits in enumerate(_DIGITS, 1)}


def set_aside(text: bytes) -> tuple[bytes, bytes]:
    """(text with markers, tail of a multiple of 4 bytes); an empty tail means that the text is untouched."""
    if _MARKER.search(text):
        return text, b""
    tail: list[bytes] = []

    def mark(found: re.Match[bytes]) -> bytes:
        run = found[0]
        tail.append(bytes.fromhex(run.decode("ascii")))
        return _MARKERS[len(run)]

    return _RUN.sub(mark, text), b"".join(tail)


def put_back(text: bytes, tail: bytes) -> bytes:
    """The text that `set_aside` took apart; `Damaged` when markers and tail do not fit."""
    if not tail:
        return text
    at = 0

    def run(found: re.Match[bytes]) -> bytes:
        nonlocal at
        start, at = at, at + _DIGITS[found[0][0] - 1] // 2
        return tail[start:at].hex().encode("ascii")

    whole = _MARKER.sub(run, text)
    if at != len(tail):
        raise Damaged("The digits of a chunk do not fit its text; get a fresh copy.")
    return whole
