"""Lines in the order of their bytes, however many there are: what does not fit in memory waits on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from heapq import merge
from typing import IO

HELD = 100_000
"""Lines that are held in memory."""
_FAN_IN = 64


class SortedLines:
    """Takes lines in any order and gives them back sorted; used once.

    Lines must not hold a newline. Temporary files vanish with the object.
    """

    def __init__(self, held: int = HELD) -> None:
        self._most = held
        self._lines: list[bytes] = []
        self._runs: list[IO[bytes]] = []

    def add(self, line: str) -> None:
        """Takes one line without its end."""
        self._lines.append(line.encode("utf-8", "surrogateescape") + b"\n")
        if len(self._lines) >= self._most:
            self._spill()

    def __iter__(self) -> Iterator[bytes]:
        """All lines with their ends, sorted; equal ones stay."""
        self._lines.sort()
        yield from merge(*map(_read, self._runs), self._lines)

    def close(self) -> None:
        """Gives the temporary files back."""
        for run in self._runs:
            run.close()
        self._runs.clear()
        self._lines.clear()

    def _spill(self) -> None:
        self._lines.sort()
        self._runs.append(_written(iter(self._lines)))
        self._lines = []
        if len(self._runs) >= _FAN_IN:
            # Too many open files: one of all of them takes their place.
            whole = _written(merge(*map(_read, self._runs)))
            for run in self._runs:
                run.close()
            self._runs = [whole]


def _written(lines: Iterator[bytes]) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by its owner
    file.writelines(lines)
    return file


def _read(run: IO[bytes]) -> Iterator[bytes]:
    run.seek(0)
    return iter(run)
