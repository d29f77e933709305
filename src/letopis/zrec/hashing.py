"""The hashes of the format. None of them is cryptographic: SHA-256 over the whole judges in the end."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import xxhash

_GROUP_SEED = 0x5A524543


def chunk_hash(stored: bytes | memoryview) -> int:
    """h: 32 bits of one stored chunk."""
    return xxhash.xxh32_intdigest(stored)


def group_hash(chunks: Iterable[bytes | memoryview]) -> int:
    """H: 32 further bits over the chunks of a group, by another function."""
    state = xxhash.xxh3_64(seed=_GROUP_SEED)
    for chunk in chunks:
        state.update(chunk)
    return state.intdigest() & 0xFFFFFFFF


def name_hash(name: bytes) -> int:
    """What orders records for cutting."""
    return xxhash.xxh32_intdigest(name)


def digest(data: bytes | memoryview) -> bytes:
    """SHA-256."""
    return hashlib.sha256(data).digest()
