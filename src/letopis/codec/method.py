"""What every method of compression promises."""

from __future__ import annotations

from typing import Protocol

MAX_BYTES = 1 << 30
"""The most that decoding yields when the caller names no bound."""


class Codec(Protocol):
    """Bytes in, bytes out. Values of this kind are immutable and may be used from any thread.

    `id` is what files store; it never changes and is never given twice.
    A `lossy` method may change the case of HTML tags and attributes.
    """

    @property
    def name(self) -> str:
        """The name that people write in settings."""

    @property
    def id(self) -> int:
        """The number that files store."""

    @property
    def lossy(self) -> bool:
        """Whether decoding may give other bytes than were encoded."""

    def encode(self, data: bytes) -> bytes:
        """The encoded form; CodecRefused when the method cannot take this input."""

    def decode(self, data: bytes, max_bytes: int = MAX_BYTES) -> bytes:
        """The inverse; Damaged for anything that `encode` never made or that yields more than `max_bytes`."""
