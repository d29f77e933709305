"""A local cache of parts of objects that never change, bounded in size.

A block carries a check of its own, so that a torn or damaged file of the
cache is fetched again and never believed. Several processes may share the
folder; each keeps it below the limit by what it knows of it.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from xxhash import xxh3_64_digest

BLOCK = 256 * 1024
"""Objects are fetched and kept in blocks of this size."""
_CHECK = 8
_PART = ".part"


class BlockCache:
    """Blocks by name, the least recently used go first. Usable from any thread."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._guard = threading.Lock()
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._total = 0
        if limit:
            self._survey()

    def _survey(self) -> None:
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            found = [(entry.stat().st_mtime, entry.name, entry.stat().st_size) for entry in os.scandir(self._folder)]
            self._sizes.update((name, size) for _, name, size in sorted(found))
            self._total = sum(self._sizes.values())

    def get(self, name: str, fetch: Callable[[], bytes]) -> bytes:
        """The block, from the folder or else from `fetch`."""
        if not self._limit:
            return fetch()
        data = self._read(name)
        if data is None:
            data = fetch()
            self._keep(name, data)
        return data

    def drop(self, prefix: str) -> None:
        """Forgets the blocks of one object."""
        with self._guard:
            names = [name for name in self._sizes if name.startswith(prefix)]
        for name in names:
            self._remove(name)

    def _read(self, name: str) -> bytes | None:
        try:
            raw = (self._folder / name).read_bytes()
        except OSError:
            return None
        if len(raw) < _CHECK or xxh3_64_digest(raw[:-_CHECK]) != raw[-_CHECK:]:
            self._remove(name)
            return None
        with self._guard, suppress(KeyError):
            self._sizes.move_to_end(name)
        return raw[:-_CHECK]

    def _keep(self, name: str, data: bytes) -> None:
        """A cache that cannot be written is no failure."""
        part = self._folder / f"{name}.{uuid4().hex}{_PART}"
        try:
            part.write_bytes(data + xxh3_64_digest(data))
            part.rename(self._folder / name)
        except OSError:
            with suppress(OSError):
                part.unlink()
            return
        with self._guard:
            self._total += len(data) + _CHECK - self._sizes.pop(name, 0)
            self._sizes[name] = len(data) + _CHECK
            surplus = self._surplus()
        for old in surplus:
            with suppress(OSError):
                (self._folder / old).unlink()

    def _surplus(self) -> list[str]:
        gone: list[str] = []
        while self._total > self._limit and self._sizes:
            name, size = self._sizes.popitem(last=False)
            self._total -= size
            gone.append(name)
        return gone

    def _remove(self, name: str) -> None:
        with self._guard:
            self._total -= self._sizes.pop(name, 0)
        with suppress(OSError):
            (self._folder / name).unlink()
