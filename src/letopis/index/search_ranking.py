"""What orders search results: how well words fit, how fresh a page is, its PageRank, and what people chose before.

Links count once `letopis rank` has ranked all pages. Choices are learned only
where the owner switched `search.learn` on; then pages that are chosen move
up, and the crawler comes back to them sooner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from letopis.archive import Archive
from letopis.archive.index_facts import choice_counts
from letopis.archive.weights import PageWeights
from letopis.index.page_text import Snippet

PageWeight = Callable[[int], float]
"""The weight of a resource, 1 for an average one; a rank of pages can be mixed in with it."""


FRESHNESS_HALF_LIFE = 90 * 86_400_000
"""Milliseconds in which the bonus of freshness falls to a half."""
FRESHNESS_SHARE = 0.25
"""Share of the score that freshness decides: a page that never changes keeps the rest."""


def freshness(time: int, moment: int) -> float:
    """1 for a version of this moment, falling to 1 - BONUS with its age."""
    if time >= moment:
        return 1.0
    return float(1.0 - FRESHNESS_SHARE + FRESHNESS_SHARE * 2.0 ** ((time - moment) / FRESHNESS_HALF_LIFE))


class ScoreParts(NamedTuple):
    """The parts of a score: what stands on the page and what links call it, times freshness, times rank.

    `named` is the text of a link that fits best. A tuple, since every candidate has one.
    """

    words: float
    freshness: float
    rank: float
    links: float = 0.0
    named: str = ""

    @property
    def score(self) -> float:
        """What answers are ordered by."""
        return (self.words + self.links) * self.freshness * self.rank


_PRIOR_SHOWN = 20
"""Times shown before a share of choices counts in full."""
_MAX_BONUS = 1.0
"""What a page that is always chosen gets on top of its weight."""


def choice_weight(shown: int, chosen: int) -> float:
    """1 for a page that nobody chose, up to 2 for one that everybody does; few showings count little."""
    return 1.0 + _MAX_BONUS * chosen / (max(shown, chosen) + _PRIOR_SHOWN)


def learned_weight(archive: Archive) -> PageWeight | None:
    """The weights of pages by all that is known; None when nothing is."""
    kept = PageWeights.load(archive.folder)
    counts = choice_counts(archive) if archive.settings.search.learn else {}
    if not counts:
        return kept.weight if kept is not None else None
    chosen = {page: choice_weight(*count) for page, count in counts.items()}

    def weight(page: int) -> float:
        return (1.0 if kept is None else kept.weight(page)) * chosen.get(page, 1.0)

    return weight


class SearchHit(NamedTuple):
    """One page of an answer; `until` is None while the version is the newest. A tuple, since making them is hot."""

    url: str
    title: str
    snippet: Snippet
    time: datetime
    until: datetime | None
    version: int
    language: str
    why: ScoreParts

    @property
    def score(self) -> float:
        """What hits are ordered by."""
        return self.why.score


@dataclass(frozen=True, slots=True)
class ScoreReason:
    """How a score comes about: what stands on the page and what links call it, times freshness, times rank."""

    words: float
    freshness: float
    rank: float
    links: float
    named: str
    found_as: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SearchRow:
    """A hit as people's scripts rely on it; `snippet` is safe HTML with the words that were found in `<mark>`."""

    url: str
    title: str
    snippet: str
    score: float
    time: datetime
    version: int
    until: datetime | None
    language: str
    why: ScoreReason | None = None


def search_row(hit: SearchHit, explain: bool = False) -> SearchRow:
    """The row of a hit."""
    why = ScoreReason(**hit.why._asdict(), found_as=hit.snippet.hits) if explain else None
    return SearchRow(
        hit.url, hit.title, hit.snippet.html, round(hit.score, 4), hit.time, hit.version, hit.until, hit.language, why
    )
