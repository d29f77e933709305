"""What makes two contents the same: two independent digests of their bytes."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from blake3 import blake3

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


class Identity(NamedTuple):
    """SHA-1, as CDX and WARC want it, and 48 bits of BLAKE3.

    SHA-1 alone can be forged; both together cannot with any known effort.
    Six bytes are what SQLite stores in six, and each version pays for them.
    """

    sha1: bytes
    key: int

    @property
    def text(self) -> str:
        """The SHA-1 in base32, as everywhere in web archives."""
        return digest_text(self.sha1)


def identify(body: bytes) -> Identity:
    """The identity of a content."""
    key = int.from_bytes(blake3(body).digest(6), "big", signed=True)
    return Identity(hashlib.sha1(body, usedforsecurity=False).digest(), key)


_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_SHIFTS = tuple(range(150, -1, -10))


def digest_text(sha1: bytes) -> str:
    """Base32 of a SHA-1, ten bits a step: every read needs it, and the library's takes 50 us."""
    number = int.from_bytes(sha1, "big")
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])
