"""Lemma dictionaries on disk: simplemma's tables, memory-mapped, so that a question pays for no language as a whole.

simplemma keeps each language packed and unpacks all of it at the first word:
up to 1.5 s and 150 MB a language. The first use of a language writes a table
to the user's cache folder, which later processes look words up in at once:

    magic, blocks, places of first forms, places of blocks, first forms, blocks

A block is the zstd frame of 64 lines, `form<tab>lemma`, in the order of their
bytes. Numbers are 32 bits in the order of this machine, since no other reads
the file. The table is only a cache: where it cannot be written or is damaged,
the dictionary is taken from simplemma itself.
"""

from __future__ import annotations

import mmap
import os
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import Path

from simplemma import Lemmatizer
from simplemma import __version__ as simplemma_version
from simplemma.strategies import DefaultStrategy
from simplemma.strategies.dictionaries import DefaultDictionaryFactory, DictionaryFactory

from letopis.binary import atomic_file, make_private_folder
from letopis.errors import LetopisError
from letopis.zstandard import ZstdError, compress, decompress

_MAGIC = b"LETOLEM1"
_BLOCK = 64
_LEVEL = 3
_MANY = 20_000
"""Questions after which a language is worth its room in memory: they cost about as long as loading it."""


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

    def __iter__(self) -> Iterator[str]:
        for place in self._blocks:
            yield from (line.partition(b"\t")[0].decode() for line in self._block(place).split(b"\n") if line)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def write_lemma_table(file: Path, lemmas: Mapping[str, str]) -> None:
    """Puts a dictionary in place whole; words with tabs or line ends are left out."""
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


class _Dictionary(Mapping[str, str]):
    """One language: on disk at first, in memory once it is asked for much."""

    def __init__(self, language: str, folder: Path, whole: DictionaryFactory) -> None:
        self._language, self._whole = language, whole
        self._asked = 0
        self._lemmas: Mapping[str, str] = self._opened(folder / f"{language}-{simplemma_version}.lemmas")

    def _opened(self, file: Path) -> Mapping[str, str]:
        try:
            return LemmaTable(file)
        except (OSError, ValueError):
            lemmas = self._in_memory()
        try:
            make_private_folder(file.parent)
            write_lemma_table(file, lemmas)
        except (OSError, LetopisError):
            self._asked = _MANY
        return lemmas

    def _in_memory(self) -> Mapping[str, str]:
        self._asked = _MANY
        return self._whole.get_dictionary(self._language)

    def __getitem__(self, form: str) -> str:
        self._asked += 1
        if self._asked == _MANY:
            self._lemmas = self._in_memory()
        try:
            return self._lemmas[form]
        except ValueError:
            self._lemmas = self._in_memory()
            return self._lemmas[form]

    def __iter__(self) -> Iterator[str]:
        return iter(self._lemmas)

    def __len__(self) -> int:
        return len(self._lemmas)


class LemmaDictionaries(DictionaryFactory):
    """The dictionaries of a cache folder, made where they are missing; each language is opened once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._whole = DefaultDictionaryFactory()
        self._open: dict[str, _Dictionary] = {}

    def get_dictionary(self, lang: str) -> Mapping[str, str]:
        """The dictionary of a language; ValueError for one that simplemma does not have."""
        if lang not in self._open:
            self._open[lang] = _Dictionary(lang, self._folder, self._whole)
        return self._open[lang]


def cache_folder() -> Path:
    """Where tables of this user lie, whatever archive they are used for."""
    named = os.environ.get("XDG_CACHE_HOME")
    try:
        caches = Path(named) if named else Path.home() / ".cache"
    except RuntimeError:
        # Nobody's home: nothing can be written there, so dictionaries stay in memory.
        caches = Path(os.devnull)
    return caches / "letopis" / "lemmas"


def make_lemmatizer(folder: Path) -> Lemmatizer:
    """A lemmatizer over tables in a folder; whoever asks keeps the answers."""
    return Lemmatizer(0, lemmatization_strategy=DefaultStrategy(dictionary_factory=LemmaDictionaries(folder)))
