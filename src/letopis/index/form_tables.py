"""Tables of words on disk, memory-mapped, so that a query loads no whole table.

    magic, blocks, places of first forms, places of blocks, first forms, blocks

A block is the zstd frame of 64 lines, `form<tab>lemma`, in the order of their bytes. Numbers are 32 bits in the order
of this machine, since no other reads the file. A table is always derived from other data: a damaged one is rebuilt.
"""

from __future__ import annotations

import mmap
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import Path

from letopis.binary import atomic_file
from letopis.zstandard import ZstdError, compress, decompress

_MAGIC = b"LETOLEM1"
_BLOCK = 64
_LEVEL = 3


class LemmaTable(Mapping[str, str]):
    """A dictionary of one language that stays on disk. ValueError: the file is no table, or damaged."""

    def __init__(self, file: Path) -> None:
        with file.open("rb") as opened:
            self._data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        if self._data[: len(_MAGIC)] != _MAGIC:
            raise ValueError("not a table of lemmas")
        view = memoryview(self._data)
        at = len(_MAGIC) + 4
        count = self._numbers(view, len(_MAGIC), 1)[0]
        self._firsts = self._numbers(view, at, count + 1)
        self._frames = self._numbers(view, at + 4 * (count + 1), count + 1)
        if self._frames[-1] != len(self._data):
            raise ValueError("the table is cut short")
        self._blocks = range(count)

    @staticmethod
    def _numbers(view: memoryview, at: int, count: int) -> array[int]:
        numbers = array("I")
        numbers.frombytes(view[at : at + 4 * count])
        if len(numbers) != count:
            raise ValueError("the table is cut short")
        return numbers

    def __getitem__(self, form: str) -> str:
        key = form.encode("utf-8", "replace")
        place = bisect_right(self._blocks, key, key=self._first) - 1
        if place < 0:
            raise KeyError(form)
        text = self._block(place)
        start = text.find(b"\n%b\t" % key)
        if start < 0:
            raise KeyError(form)
        start += len(key) + 2
        return text[start : text.index(b"\n", start)].decode()

    def _first(self, place: int) -> bytes:
        return self._data[self._firsts[place] : self._firsts[place + 1]]

    def _block(self, place: int) -> bytes:
        try:
            return decompress(self._data[self._frames[place] : self._frames[place + 1]])
        except ZstdError as error:
            raise ValueError(str(error)) from None

    def matching(self, beginnings: str, pattern: str) -> Iterator[str]:
        """The words, in lower case, with one of these first letters, small or capital, that match a pattern."""
        lines = re.compile(f"\n({pattern})(?=\t)", re.IGNORECASE)
        for letter in sorted({*beginnings, *beginnings.upper()}):
            low, high = letter.encode(), letter.encode() + b"\xff"
            first = max(0, bisect_right(self._blocks, low, key=self._first) - 1)
            for place in self._blocks[first : bisect_right(self._blocks, high, key=self._first)]:
                yield from (found[1].lower() for found in lines.finditer(self._block(place).decode()))

    def __iter__(self) -> Iterator[str]:
        for place in self._blocks:
            yield from (line.partition(b"\t")[0].decode() for line in self._block(place).split(b"\n") if line)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def write_lemma_table(file: Path, lemmas: Mapping[str, str]) -> None:
    """Writes a whole dictionary atomically; words with tabs or line ends are left out."""
    lines = sorted(f"{form}\t{lemma}".encode() for form, lemma in lemmas.items() if "\n" not in form + lemma)
    lines = [line for line in lines if line.count(b"\t") == 1]
    # Lines are sorted as forms are: a tab comes before every character of a word.
    groups = [lines[at : at + _BLOCK] for at in range(0, len(lines), _BLOCK)]
    firsts = [group[0].partition(b"\t")[0] for group in groups]
    frames = [compress(b"\n%b\n" % b"\n".join(group), _LEVEL) for group in groups]
    start = len(_MAGIC) + 4 + 8 * (len(groups) + 1)
    first_places = array("I", accumulate(map(len, firsts), initial=start))
    frame_places = array("I", accumulate(map(len, frames), initial=first_places[-1]))
    numbers = array("I", [len(groups)]) + first_places + frame_places
    with atomic_file(file) as out:
        out.writelines([_MAGIC, numbers.tobytes(), *firsts, *frames])
