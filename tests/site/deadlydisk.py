"""Disks that kill their process in the middle of things, with or without the power going too."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from letopis.store import Disk


class KillingDisk(Disk):
    """Counts the calls that change the folder and dies at one of them: before, in the middle or after."""

    def __init__(self, kill_at: int, manner: str) -> None:
        self.calls = 0
        self._kill_at = kill_at
        self._manner = manner

    def write(self, fd: int, data: bytes | memoryview) -> int:
        written: int = self._around(
            lambda: super(KillingDisk, self).write(fd, data), lambda: os.write(fd, data[: len(data) // 2])
        )
        return written

    def fsync(self, fd: int) -> None:
        self._around(lambda: super(KillingDisk, self).fsync(fd))

    def truncate(self, fd: int, length: int) -> None:
        self._around(lambda: super(KillingDisk, self).truncate(fd, length))

    def link(self, source: Path, target: Path) -> None:
        self._around(lambda: super(KillingDisk, self).link(source, target))

    def unlink(self, path: Path) -> None:
        self._around(lambda: super(KillingDisk, self).unlink(path))

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def _around(self, call: Callable[[], Any], half: Callable[[], Any] = lambda: None) -> Any:
        self.calls += 1
        if self.calls != self._kill_at:
            return call()
        if self._manner == "middle":
            half()
        elif self._manner == "after":
            call()
        self.die()
        return None


class PowerlessDisk(KillingDisk):
    """Dies like the machine: what was not synced is lost, names that their folder did not sync are gone."""

    def __init__(self, kill_at: int, manner: str, folder: Path) -> None:
        super().__init__(kill_at, manner)
        self._folder = folder
        self._synced = {entry.name: entry.stat().st_size for entry in folder.glob("*")} if folder.exists() else {}
        self._named = set(self._synced)

    def fsync(self, fd: int) -> None:
        super().fsync(fd)
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))
        if path == self._folder.resolve():
            self._named = {entry.name for entry in self._folder.glob("*")}
        else:
            self._synced[path.name] = os.fstat(fd).st_size

    def truncate(self, fd: int, length: int) -> None:
        super().truncate(fd, length)
        name = Path(os.readlink(f"/proc/self/fd/{fd}")).name
        self._synced[name] = min(length, self._synced.get(name, 0))

    def link(self, source: Path, target: Path) -> None:
        super().link(source, target)
        self._synced[target.name] = self._synced.get(source.name, 0)

    def die(self) -> None:
        for entry in self._folder.glob("*"):
            if entry.name not in self._named:
                entry.unlink()
            elif entry.stat().st_size > self._synced.get(entry.name, 0):
                os.truncate(entry, self._synced.get(entry.name, 0))
        super().die()
