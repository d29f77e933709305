"""The order of answers: how well the words fit, times how fresh the page is, times what others know about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

RankOf = Callable[[int], float]
"""The weight of a resource, 1 for an average one; a rank of pages can be mixed in with it."""


HALF_LIFE = 90 * 86_400_000
"""Milliseconds in which the bonus of freshness falls to a half."""
BONUS = 0.25
"""Share of the score that freshness decides: a page that never changes keeps the rest."""


def freshness(time: int, moment: int) -> float:
    """1 for a version of this moment, falling to 1 - BONUS with its age."""
    if time >= moment:
        return 1.0
    return float(1.0 - BONUS + BONUS * 2.0 ** ((time - moment) / HALF_LIFE))


class Explanation(NamedTuple):
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
