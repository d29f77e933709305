"""Search: the best pages of a question with the text around the hit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

from letopis.model import from_millis, to_millis
from letopis.search.called import NOTHING_ADDED, CalledSo, called_so, may_sift, moment_of
from letopis.search.choosing import learned_rank
from letopis.search.follower import WordIndex
from letopis.search.hits import Hit
from letopis.search.matching import Matcher
from letopis.search.query import Question
from letopis.search.ranking import Explanation, RankOf, freshness
from letopis.search.schema import OPEN
from letopis.search.snapshot import Snapshot
from letopis.search.snippets import snippet

FACETS = ("site", "language", "type")
WINDOW = 20
"""Neighbours, by words alone, among which freshness and rank may change the order."""
_SIFTED = 1.5
"""How many hits of all times are sifted for each one of a moment that may be among them."""


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
    index: WordIndex,
    question: Question,
    limit: int = 10,
    offset: int = 0,
    rank: RankOf | None = None,
    *,
    explain: bool = False,
) -> list[Hit]:
    """The best pages, as of the question's moment; equal scores stand in the order of recording.

    Without `rank` the ranks that the archive keeps order the answer, where it has any. With `explain`
    hits tell what links call them, too.
    """
    rank = rank or learned_rank(index.archive)
    snapshot = index.snapshot()
    matcher = Matcher(snapshot)
    called = called_so(index, snapshot, question)
    moment = to_millis(question.at or question.until or index.archive.clock())
    chosen = _best(snapshot, matcher, question, moment, offset + limit, rank, called)[offset:]
    pattern = matcher.pattern(question)
    addresses = [candidate.address for candidate in chosen]
    ends, numbers = snapshot.numbers("until", addresses), snapshot.numbers("number", addresses)
    added = called.added(snapshot.numbers("resource", addresses), explain) if called else repeat(NOTHING_ADDED)
    return [_hit(snapshot, pattern, *row) for row in zip(chosen, ends, numbers, added, strict=False)]


def _hit(
    snapshot: Snapshot, pattern: re.Pattern[str] | None, found: _Candidate, until: int, number: int,
    added: tuple[float, str],
) -> Hit:  # fmt: skip
    url, title, language, text = snapshot.stored(found.address)
    ends = None if until == OPEN else from_millis(until)
    why = Explanation(max(0.0, found.words - added[0]), found.fresh, found.rank, *added)
    return Hit(url, title, snippet(text, pattern), from_millis(found.time), ends, number, language, why)


def _best(
    snapshot: Snapshot, matcher: Matcher, question: Question, moment: int, wanted: int, rank: RankOf | None,
    called: CalledSo,
) -> list[_Candidate]:  # fmt: skip
    """The best by words, window by window, each put in its final order.

    So the cost does not depend on how many pages fit, and what stands on the
    second page of an answer does not depend on how the first was asked for.
    """
    count = WINDOW * (1 + (wanted - 1) // WINDOW)
    hits = _sifted(snapshot, matcher, question, count)
    if hits is not None:
        best = called.among(snapshot, matcher, question, hits)[:count]
        return _in_windows(snapshot, best, moment, rank)[:wanted]
    query = matcher.query(question)
    while True:
        hits = snapshot.hits(query, count)
        best = called.among(snapshot, matcher, question, hits)[:count]
        found = _in_windows(snapshot, best, moment, rank)
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
    positive = any(not clause.negated for clause in question.clauses)
    if not positive or not may_sift(snapshot, question):
        return None
    most = round(_SIFTED * count / snapshot.share_now())
    hits = snapshot.hits(matcher.query(question, timed=False), most)
    kept = snapshot.standing(hits, moment_of(question))
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
    query = Matcher(snapshot).query(question, named=called_so(index, snapshot, question).weights())
    found = snapshot.searcher.search(query, 1, count=True)
    return int(found.count)


def facets(index: WordIndex, question: Question, most: int = 20) -> list[Facet]:
    """Which sites, languages and types the answer has, the most frequent first."""
    snapshot = index.snapshot()
    asked = {name: {"terms": {"field": name, "size": most}} for name in FACETS}
    query = Matcher(snapshot).query(question, named=called_so(index, snapshot, question).weights())
    answer = snapshot.searcher.aggregate(query, asked)
    found = [
        Facet(name, str(bucket["key"]), int(bucket["doc_count"]))
        for name in FACETS
        for bucket in answer[name]["buckets"]
    ]
    return sorted(found, key=lambda facet: (FACETS.index(facet.field), -facet.count, facet.value))
