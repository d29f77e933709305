"""Where a newer copy is read from: the one seam between sync and any transport."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from letopis.errors import Unavailable
from letopis.zrec.limits import MAX_RELEASE, MiB
from letopis.zrec.releasing import path_of


class NoRanges(Unavailable):
    """The server does not serve parts of a file."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes on the wire so far, headers included, and requests made."""

    received: int = 0
    sent: int = 0
    requests: int = 0

    def since(self, before: Traffic) -> Traffic:
        """What came on top of an earlier state."""
        return Traffic(self.received - before.received, self.sent - before.sent, self.requests - before.requests)


class RangeSource(Protocol):
    """One published file and its release. Calls may overlap.

    Every failure that may pass is `Unavailable`; a server without ranges is `NoRanges`.
    """

    @property
    def traffic(self) -> Traffic:
        """Counted up to now."""

    async def size(self) -> int:
        """Length of the file."""

    async def read(self, start: int, end: int) -> bytes:
        """The bytes from start up to, not including, end: exactly that many."""

    async def read_release(self) -> bytes | None:
        """The release, None when there is none."""

    def stream(self) -> AsyncIterator[bytes]:
        """The whole file in parts."""


class FileSource:
    """A file on this machine, for `file:` addresses. Each read counts as a request without headers."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._received = 0
        self._requests = 0

    @property
    def traffic(self) -> Traffic:
        """Bytes read and number of reads."""
        return Traffic(self._received, 0, self._requests)

    async def size(self) -> int:
        """Length of the file."""
        try:
            return self._path.stat().st_size
        except OSError as wrong:
            raise self._unavailable(wrong) from None

    async def read(self, start: int, end: int) -> bytes:
        """The bytes asked for."""
        data = self._counted(self._at(self._path, start, end - start))
        if len(data) != end - start:
            raise Unavailable(f"{self._path} ended while it was read; try again.")
        return data

    async def read_release(self) -> bytes | None:
        """The release beside the file."""
        path = path_of(self._path)
        return self._counted(self._at(path, 0, MAX_RELEASE + 1)) if path.exists() else None

    async def stream(self) -> AsyncIterator[bytes]:
        """The whole file."""
        at = 0
        while data := self._counted(self._at(self._path, at, MiB)):
            yield data
            at += len(data)

    def _at(self, path: Path, start: int, count: int) -> bytes:
        try:
            with path.open("rb") as file:
                return os.pread(file.fileno(), count, start)
        except OSError as wrong:
            raise self._unavailable(wrong) from None

    def _unavailable(self, wrong: OSError) -> Unavailable:
        return Unavailable(f"{self._path} cannot be read ({wrong.strerror}); check the path.")

    def _counted(self, data: bytes) -> bytes:
        self._received += len(data)
        self._requests += 1
        return data
