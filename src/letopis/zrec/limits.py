"""Bounds of the format: what a reader accepts before it takes memory for it."""

from __future__ import annotations

KiB = 1024
MiB = 1024 * KiB

MAX_INDEX = 256 * MiB
MAX_CHUNKS = 1 << 26
MAX_CHUNK = 64 * MiB
MAX_TEXT = 64 * MiB
MAX_DICTIONARY = 16 * MiB
MAX_RELEASE = 64 * KiB
MAX_SEPARATOR = 64
MAX_AGE = 63
MAX_HISTORY = 64
MAX_NAME_RULE = 4 * KiB

BLOCK_TEXT = 128 * KiB
"""Longest text that one zstd block can hold."""
