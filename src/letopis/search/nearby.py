"""Words near a word: within a distance in one block, in base forms, relevance the sum of 1 / distance.

The distance of two words is the number of words between them and one more.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import NamedTuple

from letopis.errors import UsageError
from letopis.search.follower import WordIndex
from letopis.search.matching import Matcher
from letopis.search.query import Clause, Question, Term
from letopis.search.stored import LEAD, Stored
from letopis.search.words import LONGEST, WORD, lowered, settled, words_of

SHORTEST = 2
"""Words of fewer letters say nothing about what they stand near."""


class Near(NamedTuple):
    """A base form and how near and how often it stands to the word."""

    word: str
    relevance: float


def near(
    index: WordIndex, word: str, distance: int = 5, question: Question | None = None, limit: int = 50
) -> list[Near]:
    """The words nearest to a word, over all pages of the question's moment and place; most relevant first."""
    words = words_of(settled(word))
    if len(words) != 1 or distance < 1:
        raise UsageError("'near' wants one word and a distance of at least 1")
    snapshot = index.snapshot()
    matcher = Matcher(snapshot)
    term = Term((words[0],))
    asked = replace(question or Question(), clauses=(Clause((term,)),))
    targets = frozenset(snapshot.bases_of(words[0]))
    forms = frozenset({words[0], *(form for base in targets for form in snapshot.forms_of(base))})
    sums: defaultdict[str, float] = defaultdict(float)
    for address in snapshot.every(matcher.query(asked)):
        _add_page(sums, snapshot.stored(address), index, forms, targets, distance)
    found = [Near(base, round(relevance, 6)) for base, relevance in sums.items() if len(base) >= SHORTEST]
    return sorted(found, key=lambda near: (-near.relevance, near.word))[:limit]


def _add_page(
    sums: defaultdict[str, float], page: Stored, index: WordIndex, forms: frozenset[str], targets: frozenset[str],
    distance: int,
) -> None:  # fmt: skip
    bases = index.bases().of(page.language)
    for line in lowered(page.text).split("\n"):
        words = [word[:LONGEST] for word in WORD.findall(line, LEAD)]
        # Base forms are looked up only where one of the known forms stands.
        if forms.isdisjoint(words):
            continue
        found = [bases[word] for word in words]
        for place, base in enumerate(found):
            if base in targets:
                _add_around(sums, found, place, targets, distance)


def _add_around(
    sums: defaultdict[str, float], bases: list[str], place: int, targets: frozenset[str], distance: int
) -> None:
    low = max(0, place - distance)
    for other, base in enumerate(bases[low : place + distance + 1], low):
        if other != place and base not in targets:
            sums[base] += 1.0 / abs(other - place)
