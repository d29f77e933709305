"""Politeness per address shared by all agents on a machine: one small file of times.

A slot holds when an address may be asked again. Two addresses may share a
slot, which makes us more polite, never less.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path
from typing import Protocol

from xxhash import xxh3_64_intdigest

_SLOTS = 1 << 14
_TIME = struct.Struct("<q")


class AddressGate(Protocol):
    """Turns at addresses, shared by all agents."""

    def reserve(self, address: str, now: int, delay: int) -> int:
        """Milliseconds to wait before the address may be asked; the turn after that is ours."""

    def close(self) -> None:
        """Gives back what is held."""


class IpGate:
    """Reservations in a file that every agent opens."""

    def __init__(self, file: Path) -> None:
        self._fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        if os.fstat(self._fd).st_size < _SLOTS * _TIME.size:
            os.ftruncate(self._fd, _SLOTS * _TIME.size)

    def reserve(self, address: str, now: int, delay: int) -> int:
        """Milliseconds to wait before the address may be asked; the turn after that is ours."""
        at = xxh3_64_intdigest(address.encode()) % _SLOTS * _TIME.size
        fcntl.lockf(self._fd, fcntl.LOCK_EX, _TIME.size, at)
        try:
            ready = _TIME.unpack(os.pread(self._fd, _TIME.size, at))[0]
            # A clock that was set back must not silence a host for long.
            start = now if ready > now + 100 * max(delay, 1000) else max(ready, now)
            os.pwrite(self._fd, _TIME.pack(start + delay), at)
            return start - now
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, _TIME.size, at)

    def close(self) -> None:
        """Gives the file back."""
        os.close(self._fd)
