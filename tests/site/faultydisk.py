"""A disk that fails where it is told to."""

import errno
import os
from pathlib import Path

from letopis.store import Disk


class FaultyDisk(Disk):
    """Fails every operation named in `fails` with that error number; writes stop after `room` bytes."""

    def __init__(self) -> None:
        self.fails: dict[str, int] = {}
        self.room: int | None = None

    def write(self, fd: int, data: bytes | memoryview) -> int:
        self._maybe("write")
        if self.room is None:
            return super().write(fd, data)
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = super().write(fd, data[: self.room])
        self.room -= written
        return written

    def fsync(self, fd: int) -> None:
        self._maybe("fsync")
        super().fsync(fd)

    def truncate(self, fd: int, length: int) -> None:
        self._maybe("truncate")
        super().truncate(fd, length)

    def link(self, source: Path, target: Path) -> None:
        self._maybe("link")
        super().link(source, target)

    def unlink(self, path: Path) -> None:
        self._maybe("unlink")
        super().unlink(path)

    def _maybe(self, operation: str) -> None:
        if operation in self.fails:
            number = self.fails[operation]
            raise OSError(number, os.strerror(number))
