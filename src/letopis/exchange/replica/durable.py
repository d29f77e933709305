"""Files that are there whole or not at all, and one worker at a time in a folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from letopis.errors import Busy, NotReady

_PART = ".part"


def settled(path: Path, parts: Iterable[bytes]) -> None:
    """Writes a file under another name, makes it durable, and gives it its name."""
    part = path.with_name(path.name + _PART)
    with part.open("wb") as file:
        for data in parts:
            file.write(data)
        file.flush()
        os.fsync(file.fileno())
    named(part, path)


def named(part: Path, path: Path) -> None:
    """Gives a durable file its final name, durably."""
    part.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes names in a folder durable."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def alone(lock: Path, what: str) -> Iterator[None]:
    """Keeps a second worker out; the lock goes with the process."""
    with told(lock.parent):
        lock.parent.mkdir(parents=True, exist_ok=True)
        number = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"another process {what}; wait until it is done or stop it") from None
        yield
    finally:
        os.close(number)


@contextmanager
def told(where: Path) -> Iterator[None]:
    """Turns what the machine refuses into a sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise NotReady(
            f"cannot write to {where}: {reason}; free space, check the permissions, then try again"
        ) from error
