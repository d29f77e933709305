"""Base forms from endings, as people settle them (`wordfigure`), and words locked against it."""

from __future__ import annotations

from letopis.catalog.wordforms import lock_word, release_word, settle_bases, word_rows
from letopis.errors import UsageError
from letopis.search.follower import WordIndex
from letopis.search.words import settled, words_of


def wordfigure(index: WordIndex, extension: str, basic_extension: str = "") -> list[tuple[str, str]]:
    """Words with an ending get the word without it (or with the basic ending) as base, where that word exists.

    Only words of the archive that have no other base form and are not locked
    take part. Answers the pairs that were settled; the next question sees them.
    """
    ending, basic = settled(extension).lower(), settled(basic_extension).lower()
    if not ending:
        raise UsageError("wordfigure needs an extension: the ending of the words it is about")
    searcher = index.snapshot().searcher
    words = {word for word, _ in searcher.terms_with_prefix("exact", "")}
    inflected = {term[1:].partition("=")[0] for term, _ in searcher.terms_with_prefix("forms", ">")}
    known = {row.form for row in word_rows(index.archive.catalog.database)}
    free = sorted(word for word in words - inflected - known if word.endswith(ending) and word.isalpha())
    stems = [(word, word.removesuffix(ending) + basic) for word in free]
    pairs = [(word, base) for word, base in stems if base != word and base in words]
    settle_bases(index.archive.catalog.database, pairs)
    index.words_changed()
    return pairs


def lock(index: WordIndex, word: str) -> None:
    """The word is its own base from now on, whatever rules and dictionaries say."""
    lock_word(index.archive.catalog.database, _single(word))
    index.words_changed()


def release(index: WordIndex, word: str) -> None:
    """Forgets a lock or a settled base form."""
    release_word(index.archive.catalog.database, _single(word))
    index.words_changed()


def _single(word: str) -> str:
    words = words_of(settled(word))
    if len(words) != 1:
        raise UsageError(f"'{word[:80]}' is not one word")
    return words[0]
