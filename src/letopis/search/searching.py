"""Search: the best pages of a question with the text around the hit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from letopis.model import from_millis, to_millis
from letopis.search.choosing import learned_rank
from letopis.search.follower import WordIndex
from letopis.search.matching import Matcher
from letopis.search.query import Question
from letopis.search.ranking import Explanation, RankOf, freshness
from letopis.search.schema import OPEN
from letopis.search.snapshot import Snapshot
from letopis.search.snippets import Snippet, snippet

FACETS = ("site", "language", "type")
WINDOW = 20
"""Neighbours, by words alone, among which freshness and rank may change the order."""
_MOSTLY = 0.1
"""Share of newest versions from which on sifting is tried."""
_SIFTED = 1.5
"""How many hits of all times are sifted for each one of a moment that may be among them."""


class Hit(NamedTuple):
    """One page of an answer; `until` is None while the version is the newest. A tuple, since making them is hot."""

    url: str
    title: str
    snippet: Snippet
    time: datetime
    until: datetime | None
    version: int
    language: str
    why: Explanation

    @property
    def score(self) -> float:
        """What hits are ordered by."""
        return self.why.score


def hit_row(hit: Hit) -> dict[str, Any]:
    """A hit with the names that people's scripts rely on."""
    return {
        "url": hit.url,
        "title": hit.title,
        "snippet": hit.snippet.html,
        "score": round(hit.score, 4),
        "time": hit.time,
        "version": hit.version,
        "until": hit.until,
        "language": hit.language,
    }


@dataclass(frozen=True, slots=True)
class Facet:
    """How many pages of an answer share a value."""

    field: str
    value: str
    count: int


class _Candidate(NamedTuple):
    order: float
    id: int
    address: Any
    time: int
    words: float
    fresh: float
    rank: float


def search(
    index: WordIndex, question: Question, limit: int = 10, offset: int = 0, rank: RankOf | None = None
) -> list[Hit]:
    """The best pages, as of the question's moment; equal scores stand in the order of recording.

    Without `rank` the ranks that the archive keeps order the answer, where it has any.
    """
    rank = rank or learned_rank(index.archive)
    snapshot = index.snapshot()
    matcher = Matcher(snapshot)
    moment = to_millis(question.at or question.until or index.archive.clock())
    chosen = _best(snapshot, matcher, question, moment, offset + limit, rank)[offset:]
    pattern = matcher.pattern(question)
    addresses = [candidate.address for candidate in chosen]
    ends, numbers = snapshot.numbers("until", addresses), snapshot.numbers("number", addresses)
    return [_hit(snapshot, pattern, *row) for row in zip(chosen, ends, numbers, strict=True)]


def _hit(snapshot: Snapshot, pattern: re.Pattern[str] | None, found: _Candidate, until: int, number: int) -> Hit:
    url, title, language, text = snapshot.stored(found.address)
    ends = None if until == OPEN else from_millis(until)
    why = Explanation(found.words, found.fresh, found.rank)
    return Hit(url, title, snippet(text, pattern), from_millis(found.time), ends, number, language, why)


def _best(
    snapshot: Snapshot, matcher: Matcher, question: Question, moment: int, wanted: int, rank: RankOf | None
) -> list[_Candidate]:
    """The best by words, window by window, each put in its final order.

    So the cost does not depend on how many pages fit, and what stands on the
    second page of an answer does not depend on how the first was asked for.
    """
    count = WINDOW * (1 + (wanted - 1) // WINDOW)
    hits = _sifted(snapshot, matcher, question, count)
    if hits is not None:
        return _in_windows(snapshot, hits, moment, rank)[:wanted]
    query = matcher.query(question)
    while True:
        hits = snapshot.hits(query, count)
        found = _in_windows(snapshot, hits, moment, rank)
        if question.spans:
            found = _one_each(snapshot, found)
        if len(found) >= wanted or len(hits) < count:
            return found[:wanted]
        count *= 2


def _sifted(snapshot: Snapshot, matcher: Matcher, question: Question, count: int) -> list[tuple[float, Any]] | None:
    """The best of a moment, sifted out of the best of all times; None where too few of them are of that moment.

    Where pages have few versions this is faster than a limit that is tried on
    every document, up to twice for past moments, and gives the same.
    """
    positive, share = any(not clause.negated for clause in question.clauses), snapshot.share_now()
    if question.spans or not positive or share < _MOSTLY:
        return None
    most = round(_SIFTED * count / share)
    hits = snapshot.hits(matcher.query(question, timed=False), most)
    addresses = [address for _, address in hits]
    moment = OPEN - 1 if question.at is None else to_millis(question.at)
    spans = zip(hits, snapshot.numbers("time", addresses), snapshot.numbers("until", addresses), strict=True)
    kept = [hit for hit, time, until in spans if time <= moment < until]
    return kept[:count] if len(kept) >= count or len(hits) < most else None


def _in_windows(
    snapshot: Snapshot, hits: Sequence[tuple[float, Any]], moment: int, rank: RankOf | None
) -> list[_Candidate]:
    found: list[_Candidate] = []
    for start in range(0, len(hits), WINDOW):
        found += _ordered(snapshot, hits[start : start + WINDOW], moment, rank)
    return found


def _ordered(
    snapshot: Snapshot, hits: Sequence[tuple[float, Any]], moment: int, rank: RankOf | None
) -> list[_Candidate]:
    addresses = [address for _, address in hits]
    ids, times = snapshot.numbers("id", addresses), snapshot.numbers("time", addresses)
    found = []
    weights = [rank(page) for page in snapshot.numbers("resource", addresses)] if rank is not None else []
    for place, ((words, address), number, time) in enumerate(zip(hits, ids, times, strict=True)):
        fresh = freshness(time, moment)
        weight = weights[place] if weights else 1.0
        found.append(_Candidate(-words * fresh * weight, number, address, time, words, fresh, weight))
    return sorted(found)


def _one_each(snapshot: Snapshot, found: list[_Candidate]) -> list[_Candidate]:
    """The best version of each page."""
    resources = snapshot.numbers("resource", [candidate.address for candidate in found])
    best: dict[int, _Candidate] = {}
    for resource, candidate in zip(resources, found, strict=True):
        best.setdefault(resource, candidate)
    return list(best.values())


def count(index: WordIndex, question: Question) -> int:
    """How many versions fit, which is how many pages when a moment is asked for."""
    snapshot = index.snapshot()
    found = snapshot.searcher.search(Matcher(snapshot).query(question), 1, count=True)
    return int(found.count)


def facets(index: WordIndex, question: Question, most: int = 20) -> list[Facet]:
    """Which sites, languages and types the answer has, the most frequent first."""
    snapshot = index.snapshot()
    asked = {name: {"terms": {"field": name, "size": most}} for name in FACETS}
    answer = snapshot.searcher.aggregate(Matcher(snapshot).query(question), asked)
    found = [
        Facet(name, str(bucket["key"]), int(bucket["doc_count"]))
        for name in FACETS
        for bucket in answer[name]["buckets"]
    ]
    return sorted(found, key=lambda facet: (FACETS.index(facet.field), -facet.count, facet.value))
