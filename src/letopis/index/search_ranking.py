"""What orders search results: how well words fit, how fresh a page is, its PageRank, and what people chose before.

Links count once `letopis rank` has ranked all pages. Choices are learned only where the owner switched `search.learn`
on; then pages that are chosen move up, and the crawler comes back to them sooner.
"""

from __future__ import annotations

import os
import sys
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from letopis.archive import Archive
from letopis.archive.index_facts import choice_counts
from letopis.binary import atomic_file, make_private_folder
from letopis.index.page_text import Snippet
from letopis.tuples import NamedTuple

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
        """The order of results."""
        return (self.words + self.links) * self.freshness * self.rank


_MAGIC = b"LTPWGHT1"
_MIN_WEIGHT, _MAX_WEIGHT = 0.6, 3.0
_POWER = 0.2


@dataclass(frozen=True, slots=True)
class PageWeights:
    """Ranks by the numbers of resources, in order; kept in one small file of the archive's folder.

    Derived and never needed: the file can be deleted, and is made again from
    the links. It is replaced as a whole, so a reader sees the old or the new one.
    """

    keys: array[int]
    ranks: array[float]

    @classmethod
    def of(cls, ranks: Iterable[tuple[int, float]]) -> PageWeights:
        """The weights of these resources."""
        pairs = sorted(ranks)
        return cls(array("q", [key for key, _ in pairs]), array("f", [rank for _, rank in pairs]))

    def weight(self, key: int) -> float:
        """What a score is multiplied by: 1 for a page of average rank and for one that is not known."""
        at = bisect_left(self.keys, key)
        if at == len(self.keys) or self.keys[at] != key:
            return 1.0
        return float(min(_MAX_WEIGHT, max(_MIN_WEIGHT, self.ranks[at] ** _POWER)))

    def save(self, folder: Path) -> None:
        """Replaces the file of an archive's folder."""
        target = folder / "index" / "weights"
        make_private_folder(target.parent)
        with atomic_file(target) as out:
            out.write(_MAGIC + _little_endian(self.keys).tobytes() + _little_endian(self.ranks).tobytes())

    @classmethod
    def load(cls, folder: Path) -> PageWeights | None:
        """The weights of an archive's folder; None when there are none, or none that make sense."""
        file = f"{folder}/index/weights"
        try:
            state = os.stat(file)  # Asked at every question: a Path costs four times as much.
            return _read_weights(file, state.st_mtime_ns, state.st_size)
        except OSError:
            return None


@lru_cache(maxsize=4)
def _read_weights(file: str, _changed: int, _size: int) -> PageWeights | None:
    """Read once for as long as the file stays the same."""
    data = Path(file).read_bytes()
    count, rest = divmod(len(data) - len(_MAGIC), 12)
    if not data.startswith(_MAGIC) or rest or count < 0:
        return None
    keys, ranks = array("q"), array("f")
    keys.frombytes(data[len(_MAGIC) : len(_MAGIC) + 8 * count])
    ranks.frombytes(data[len(_MAGIC) + 8 * count :])
    return PageWeights(_little_endian(keys), _little_endian(ranks))


def _little_endian(values: array[Any]) -> array[Any]:
    """Numbers of this machine as the file holds them, or the other way round."""
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values


_PRIOR_SHOWN = 20
"""Times shown before a share of choices counts in full."""
_MAX_BONUS = 1.0
"""What a page that is always chosen gets on top of its weight."""


def choice_weight(shown: int, chosen: int) -> float:
    """1 for a page that was never opened, up to 2 for one that always is; few showings count little."""
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
    similar: tuple[str, ...] = ()

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
    """A hit as people's scripts rely on it; `snippet` is safe HTML with the words that were found in `<mark>`.

    `gone` is since when its address answers no more; `similar` are pages with nearly the same text, where they
    were collapsed.
    """

    url: str
    title: str
    snippet: str
    score: float
    time: datetime
    version: int
    until: datetime | None
    language: str
    why: ScoreReason | None = None
    gone: datetime | None = None
    similar: tuple[str, ...] = ()


def search_row(hit: SearchHit, explain: bool = False, gone: datetime | None = None) -> SearchRow:
    """The row of a hit."""
    why = ScoreReason(**hit.why._asdict(), found_as=hit.snippet.hits) if explain else None
    return SearchRow(
        hit.url, hit.title, hit.snippet.html, round(hit.score, 4), hit.time, hit.version, hit.until, hit.language, why,
        gone, hit.similar,
    )  # fmt: skip
