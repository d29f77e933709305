"""Writing files so that a crash leaves the old one or the new one, never a mixture."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from letopis.errors import NotReady

PART = ".part"


def part_of(path: Path) -> Path:
    """Where a file is prepared before it takes its place."""
    return path.with_name(path.name + PART)


def write_durably(path: Path, data: bytes) -> None:
    """Puts a small file in place, durably."""
    with clear_faults(path):
        part = part_of(path)
        with part.open("wb") as file:
            file.write(data)
            settle(file)
        put_in_place(part, path)


def settle(file: BinaryIO) -> None:
    """Everything written so far is on the disk when this returns."""
    file.flush()
    os.fsync(file.fileno())


def put_in_place(part: Path, path: Path) -> None:
    """Renames a settled part over its target, durably."""
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def clear_faults(path: Path) -> Iterator[None]:
    """Faults of the machine become one sentence that says what to do."""
    try:
        yield
    except OSError as wrong:
        reason = wrong.strerror or str(wrong)
        raise NotReady(f"{path} cannot be written ({reason}); free space or choose another place.") from wrong
