"""A category tree by key words, simple enough to be explained.

The key words of a page are the base forms that stand on it oftener than on
the site as a whole (tf-idf). A category is a key word; the word that speaks
for most of the pages that are still without a category is taken next, and
its pages are those that have it among their key words. The same is done once
more inside each category.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from letopis.errors import NotFound
from letopis.search.follower import WordIndex
from letopis.search.matching import Matcher
from letopis.search.query import Limit, Question
from letopis.search.stored import FRAME, LEAD, Stored
from letopis.search.words import words_of
from letopis.urls import site as site_of

KEYWORDS = 12
"""Key words of one page."""
LEAST = 2
"""Pages that make a category."""
_MOST_SHARE = 0.6
_FRAME_SHARE = 0.3
_SHORTEST = 3
_MOST_CATEGORIES = 12
OTHER = ""
"""The name of the rest, which no key word joins."""


@dataclass(frozen=True, slots=True)
class Category:
    """Pages joined by a key word; `words` are the further ones that most of them share, the strongest first."""

    name: str
    words: tuple[str, ...]
    pages: tuple[str, ...]
    children: tuple[Category, ...] = ()


def categories(index: WordIndex, site: str, at: datetime | None = None, depth: int = 2) -> list[Category]:
    """The category tree of a site as of a moment, largest first; NotFound when it has no pages with words."""
    snapshot = index.snapshot()
    question = Question(limits=(Limit("site", site_of(site)),), at=at)
    pages = [snapshot.stored(address) for address in snapshot.every(Matcher(snapshot).query(question))]
    weights = _weights(index, sorted(pages))
    if not weights:
        raise NotFound(f"there are no pages of {site_of(site)} with words then; crawl it, or ask for another date")
    return _split(weights, depth)


Weights = Mapping[str, Mapping[str, float]]
"""Key words with their weights by URL."""


def _weights(index: WordIndex, pages: list[Stored]) -> Weights:
    frame = _frame(pages)
    counts = {page.url: _counted(index, page, frame) for page in pages}
    counts = {url: counted for url, counted in counts.items() if counted}
    found_on = Counter(word for counted in counts.values() for word in counted)
    return {url: _key_words(counted, found_on, len(counts)) for url, counted in counts.items()}


def _frame(pages: list[Stored]) -> frozenset[str]:
    """Lines that stand on many pages: menus, footers."""
    seen = Counter(line for page in pages for line in set(page.text.split("\n")))
    return frozenset(line for line, count in seen.items() if count > max(2, _FRAME_SHARE * len(pages)))


def _counted(index: WordIndex, page: Stored, frame: frozenset[str]) -> Counter[str]:
    bases = index.bases().of(page.language)
    lines = [line[LEAD:] for line in page.text.split("\n") if line not in frame and line[1:LEAD] != FRAME]
    words = (bases[word] for line in lines for word in words_of(line))
    return Counter(word for word in words if len(word) >= _SHORTEST and word.isalpha())


def _key_words(counted: Counter[str], found_on: Counter[str], pages: int) -> dict[str, float]:
    """The strongest words of a page; those of one page alone or of nearly all join nothing."""
    useful = {
        word: count for word, count in counted.items() if LEAST <= found_on[word] <= max(LEAST, _MOST_SHARE * pages)
    }
    weighed = {word: (1 + math.log(count)) * math.log(1 + pages / found_on[word]) for word, count in useful.items()}
    strongest = sorted(weighed.items(), key=lambda pair: (-pair[1], pair[0]))[:KEYWORDS]
    return dict(strongest)


def _split(weights: Weights, depth: int, taken: frozenset[str] = frozenset()) -> list[Category]:
    left = dict(weights)
    found: list[Category] = []
    while len(found) < _MOST_CATEGORIES and (name := _strongest(left, taken)):
        members = {url: words for url, words in left.items() if name in words}
        found.append(_category(name, members, depth, taken | {name}))
        left = {url: words for url, words in left.items() if name not in words}
    found.sort(key=lambda category: (-len(category.pages), category.name))
    if left:
        found.append(Category(OTHER, (), tuple(sorted(left))))
    return found


def _strongest(weights: Weights, taken: frozenset[str]) -> str:
    """The word that speaks for most pages; nothing when no word joins enough of them."""
    sums: Counter[str] = Counter()
    pages: Counter[str] = Counter()
    for words in weights.values():
        for word, weight in words.items():
            if word not in taken:
                sums[word] += weight  # type: ignore[assignment]
                pages[word] += 1
    joining = [word for word, count in pages.items() if count >= LEAST]
    return min(joining, key=lambda word: (-round(sums[word], 9), word), default="")


def _category(name: str, members: Weights, depth: int, taken: frozenset[str]) -> Category:
    shared = Counter(word for words in members.values() for word in words if word not in taken)
    words = sorted((-count, word) for word, count in shared.items() if count >= LEAST)[:5]
    children = _split(members, depth - 1, taken) if depth > 1 and len(members) > 2 * LEAST else []
    if all(child.name == OTHER for child in children):
        children = []
    return Category(name, tuple(word for _, word in words), tuple(sorted(members)), tuple(children))
