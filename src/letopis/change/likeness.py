"""How much two texts have in common, word by word."""

from __future__ import annotations

from collections import Counter
from math import sqrt
from typing import NamedTuple

from letopis.change.text_forms import digits_folded, words_form


class Words(NamedTuple):
    """A text as the set of its words."""

    words: frozenset[str]
    letters: int
    folded: str


def words_of(text: str) -> Words:
    """The words of a text, with their letters counted once."""
    words = frozenset(words_form(text).split())
    return Words(words, sum(map(len, words)), digits_folded(text))


def alike(old: Words, new: Words) -> float:
    """Share of letters in words that both texts have; 1 for texts that differ in digits alone."""
    if old.folded == new.folded:
        return 1.0
    whole = old.letters + new.letters
    if 4 * min(old.letters, new.letters) < whole:
        return 0.0
    return 2 * sum(map(len, old.words & new.words)) / whole


def edited(old: str, new: str) -> float:
    """Weight of an edit: by the words that came or went; a number, or numbers in another order, weigh at least two."""
    words_old, words_new = words_form(old).split(), words_form(new).split()
    before, after = Counter(words_old), Counter(words_new)
    gone, came = before - after, after - before
    weight = sqrt(max(_letters(gone), _letters(came)))
    number = list(filter(str.isdigit, words_old)) != list(filter(str.isdigit, words_new))
    return max(weight, 2.0) if number else weight


def _letters(words: Counter[str]) -> int:
    return sum(len(word) * count for word, count in words.items())
