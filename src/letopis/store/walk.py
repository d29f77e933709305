"""Reads a pack from end to end, stepping over what is damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from letopis.store.layout import CANDIDATE, MOST_START_BYTES, Record, checked_record, extent

_WINDOW = 1 << 20
_OVERLAP = MOST_START_BYTES


class Gap(NamedTuple):
    """Bytes in which no record could be read."""

    offset: int
    end: int


class Walker:
    """Records of one pack in order. Holds a window of the pack, never the whole."""

    def __init__(self, read: Callable[[int, int], bytes], pack: int, size: int) -> None:
        self._read = read
        self._pack = pack
        self._size = size
        self._window = b""
        self._window_at = 0

    def walk(self, start: int) -> Iterator[Record | Gap]:
        """Every sound record from `start` to the end of the pack, and the gaps between them."""
        at = start
        while at < self._size:
            record = self._sound(at)
            if record is not None:
                yield record
                at = record.end
            else:
                end = self._next_sound(at)
                yield Gap(at, end)
                at = end

    def _sound(self, at: int) -> Record | None:
        """The record at an offset, or None."""
        data, within = self._view(at, MOST_START_BYTES)
        found = extent(data, within)
        if found is None or at + found.end - within > self._size:
            return None
        if found.end > len(data):
            data, within = self._view(at, found.end - within)
            found = extent(data, within)
        return found and checked_record(data, within, found, pack=self._pack, offset=at)

    def _next_sound(self, at: int) -> int:
        """Where the walk goes on: the claimed end when a record is there, else the next record found by searching."""
        data, within = self._view(at, MOST_START_BYTES)
        claimed = extent(data, within)
        if claimed is not None:
            end = at + claimed.end - within
            if end == self._size or (end < self._size and self._sound(end) is not None):
                return end
        return self._search(at + 1)

    def _search(self, at: int) -> int:
        while at < self._size:
            data = self._read(at, _WINDOW)
            for match in CANDIDATE.finditer(data):
                if self._sound(at + match.start()) is not None:
                    return at + match.start()
            if len(data) <= _OVERLAP:
                break
            at += len(data) - _OVERLAP
        return self._size

    def _view(self, at: int, length: int) -> tuple[bytes, int]:
        """Bytes that hold `length` from `at` on (fewer at the end), and where in them `at` is."""
        within = at - self._window_at
        if within < 0 or within + length > len(self._window):
            self._window = self._read(at, max(length, _WINDOW))
            self._window_at, within = at, 0
        return self._window, within
