"""Lemma dictionaries on disk: simplemma's tables, memory-mapped, so that a query loads no whole language.

simplemma keeps each language packed and unpacks all of it at the first word: up to 1.5 s and 150 MB a language. The
first use of a language writes a table to the user's cache folder (`form_tables`), which later processes look words up
in at once. The table is only a cache: if it cannot be written or is damaged, the dictionary is read from simplemma.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from simplemma import Lemmatizer
from simplemma import __version__ as simplemma_version
from simplemma.strategies import DefaultStrategy
from simplemma.strategies.dictionaries import DefaultDictionaryFactory, DictionaryFactory

from letopis.binary import make_private_folder
from letopis.errors import LetopisError
from letopis.index.form_tables import LemmaTable, write_lemma_table

_MANY = 20_000
"""Queries after which a language is worth its memory: they take about as long as loading it."""


class _Dictionary(Mapping[str, str]):
    """One language: on disk at first, in memory once it is used often."""

    def __init__(self, language: str, folder: Path, whole: DictionaryFactory) -> None:
        self._language, self._whole = language, whole
        self._asked = 0
        self._lemmas: Mapping[str, str] = self._opened(_table_file(folder, language))

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

    def matching(self, beginnings: str, pattern: str, lang: str) -> list[str]:
        """See `LemmaTable.matching`; none where the table of the language cannot be read."""
        self.get_dictionary(lang)
        try:
            return list(LemmaTable(_table_file(self._folder, lang)).matching(beginnings, pattern))
        except (OSError, ValueError):
            return []


def _table_file(folder: Path, language: str) -> Path:
    return folder / f"{language}-{simplemma_version}.lemmas"


def cache_folder() -> Path:
    """Where tables of this user are stored, for all archives."""
    named = os.environ.get("XDG_CACHE_HOME")
    try:
        caches = Path(named) if named else Path.home() / ".cache"
    except RuntimeError:
        # A user without a home folder: nothing can be written there, so dictionaries stay in memory.
        caches = Path(os.devnull)
    return caches / "letopis" / "lemmas"


class SimplemmaSource:
    """Base forms by simplemma over tables in a folder; callers cache the answers."""

    def __init__(self, folder: Path) -> None:
        self._dictionaries = LemmaDictionaries(folder)
        self._lemmatizer = Lemmatizer(0, lemmatization_strategy=DefaultStrategy(dictionary_factory=self._dictionaries))

    def lemmatize(self, form: str, language: str) -> str:
        """The base form of a word; where no dictionary has it, a guess."""
        return self._lemmatizer.lemmatize(form, language)

    def listed(self, form: str, language: str) -> str | None:
        """The base form as the dictionary lists it; None where it does not have the form."""
        return self._dictionaries.get_dictionary(language).get(form)

    def matching(self, beginnings: str, pattern: str, language: str) -> list[str]:
        """The forms of the dictionary, in lower case, with one of these first letters, that match a pattern."""
        return self._dictionaries.matching(beginnings, pattern, language)
