"""Search: the best pages for a query as of a moment, by their own words and by anchor texts; counts and facets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Literal

from letopis.archive.index_facts import VersionSpan
from letopis.index.anchor_index import MAX_PAGES, MAX_PAGES_OF_SEVERAL, AnchorMatch, AnchorReader
from letopis.index.page_text import NearTexts, snippet, text_runs
from letopis.index.query_language import WordQuery
from letopis.index.search_ranking import PageWeight, ScoreParts, SearchHit, freshness, learned_weight
from letopis.index.word_index import WordIndex
from letopis.index.word_queries import AnchorScores, QueryBuilder, has_single_clause
from letopis.index.word_runs import OPEN_END
from letopis.index.word_snapshot import WordSnapshot
from letopis.model import from_millis, to_millis
from letopis.tuples import NamedTuple

_MOSTLY = 0.1
"""Share of newest versions from which on a moment is sifted out of all times."""
NO_ANCHOR = (0.0, "")
"""Of a page that no link calls so."""
_MAX_VERSIONS = 10_000
"""Most versions of pages that are called so, if the query has a span of time."""


@dataclass(frozen=True, slots=True)
class AnchorMatches:
    """For each clause of a question the pages that links call so; false when there are none."""

    reader: AnchorReader | None = None
    clauses: tuple[dict[int, AnchorMatch], ...] = ()

    def __bool__(self) -> bool:
        return any(self.clauses)

    def weights(self) -> list[AnchorScores]:
        """What names add to the score of pages, clause by clause."""
        return [{page: name.score for page, name in pages.items()} for pages in self.clauses]

    def added(self, pages: Iterable[int], explain: bool) -> list[tuple[float, str]]:
        """What names have added to the score of each page, and with `explain` the one that fits best."""
        known = set().union(*self.clauses)
        return [self._added(page, explain) if page in known else NO_ANCHOR for page in pages]

    def _added(self, page: int, explain: bool) -> tuple[float, str]:
        names = [clause[page] for clause in self.clauses if page in clause]
        if self.reader is None:
            return NO_ANCHOR
        text = self.reader.text(max(names, key=lambda name: name.score)) if explain else ""
        return (names[0].score if len(names) == 1 else sum(name.score for name in names)), text

    def among(
        self, snapshot: WordSnapshot, matcher: QueryBuilder, question: WordQuery, hits: Sequence[tuple[float, Any]]
    ) -> Sequence[tuple[float, Any]]:
        """The hits together with pages that are called so, in the order of their scores.

        These are asked for by themselves: they are few, while a question
        for both at once would have to look at every page with the words.
        """
        if not self:
            return hits
        more = self._scored(snapshot, question, self._versions(snapshot, matcher, question))
        # Each once: of a page that both have, the score with its names holds.
        named = {(address.segment_ord, address.doc) for _, address in more}
        others = [hit for hit in hits if (hit[1].segment_ord, hit[1].doc) not in named]
        return sorted((*others, *more), key=lambda hit: (-hit[0], hit[1]))

    def _versions(self, snapshot: WordSnapshot, matcher: QueryBuilder, question: WordQuery) -> list[tuple[float, Any]]:
        """The versions of pages that are called so, with the score of their text."""
        weights = [] if has_single_clause(question) else self.weights()
        named = set().union(*self.clauses)
        pages = len(named)
        if can_filter_afterwards(snapshot, question):
            most = round(4 * pages / snapshot.newest_share)
            hits = snapshot.hits(matcher.called(question, named, weights, timed=False), most)
            if len(hits) < most:
                return snapshot.standing(hits, query_moment(question))
        most = _MAX_VERSIONS if question.spans else pages
        return snapshot.hits(matcher.called(question, named, weights, timed=True), most)

    def _scored(
        self, snapshot: WordSnapshot, question: WordQuery, hits: list[tuple[float, Any]]
    ) -> list[tuple[float, Any]]:
        """With what names add, where the query has not added it: see `QueryBuilder.called`."""
        if not has_single_clause(question):
            return hits
        added = next(pages for pages in self.clauses if pages)
        pages = snapshot.numbers("resource", [address for _, address in hits])
        return [(score + added[page].score, address) for (score, address), page in zip(hits, pages, strict=True)]


def query_moment(question: WordQuery) -> int:
    """The moment of the query; the last one if it is now."""
    return OPEN_END - 1 if question.at is None else to_millis(question.at)


def can_filter_afterwards(snapshot: WordSnapshot, question: WordQuery) -> bool:
    """Whether a moment is found faster among all times than by a limit that is tried on every document."""
    return not question.spans and snapshot.newest_share >= _MOSTLY


def anchor_matches(index: WordIndex, snapshot: WordSnapshot, question: WordQuery) -> AnchorMatches:
    """What links say about pages at the question's moment, or at any time of its span."""
    reader = index.names(snapshot)
    if reader is None:
        return AnchorMatches()
    span, most = _query_span(question), MAX_PAGES if has_single_clause(question) else MAX_PAGES_OF_SEVERAL
    clauses = ({} if clause.negated else reader.pages(snapshot, clause, span, most) for clause in question.clauses)
    return AnchorMatches(reader, tuple(clauses))


def _query_span(question: WordQuery) -> tuple[int, int]:
    if not question.spans:
        return query_moment(question), query_moment(question)
    since = -OPEN_END if question.since is None else to_millis(question.since)
    return since, OPEN_END - 1 if question.until is None else to_millis(question.until)


SearchOrder = Literal["relevance", "date", "rank"]
MAX_SORTED = 10_000
"""Pages, those that fit best, that are put into another order."""
_MOST_OF_A_FACET = 20
_UNCOLLAPSED = 3
"""How many times as many pages are read if those with nearly the same text are collapsed."""
FACET_FIELDS = ("site", "language", "type")
RERANK_WINDOW = 20
"""Neighbours, by words alone, among which freshness and rank may change the order."""
_OVERFETCH = 1.5
"""How many hits of all times are sifted for each one of a moment that may be among them."""


@dataclass(frozen=True, slots=True)
class SearchFacet:
    """How many pages of an answer share a value."""

    field: str
    value: str
    count: int


class _Candidate(NamedTuple):
    """A document; `past` is the version meant where that is not the last of its run."""

    order: float
    id: int
    address: Any
    time: int
    words: float
    fresh: float
    rank: float
    past: VersionSpan | None


class _Weigher(NamedTuple):
    """Puts documents in the order of an answer: for a moment, of versions that began no later than a bound."""

    snapshot: WordSnapshot
    moment: int
    bound: int
    rank: PageWeight | None

    def ordered(self, hits: Sequence[tuple[float, Any]], step: int = 0, most: int | None = None) -> list[_Candidate]:
        """Best first, with a `step` among so many neighbours only; equal ones in the order of recording."""
        step = step or len(hits) or 1
        rows = [row for at in range(0, len(hits), step) for row in sorted(self._weighed(hits[at : at + step]))]
        return [_Candidate(*row) for row in rows[:most]]

    def _weighed(self, hits: Sequence[tuple[float, Any]]) -> list[tuple[Any, ...]]:
        """The fields of candidates. Plain tuples are sorted much faster, and many are left out afterwards."""
        snapshot, moment, rank = self.snapshot, self.moment, self.rank
        addresses = [address for _, address in hits]
        ids, times = snapshot.numbers("id", addresses), snapshot.numbers("newest", addresses)
        is_past = max(times, default=0) > self.bound
        pages = snapshot.numbers("resource", addresses) if rank is not None or is_past else repeat(0)
        found: list[tuple[Any, ...]] = []
        past, weight = None, 1.0
        for (words, address), number, time, page in zip(hits, ids, times, pages, strict=False):
            if is_past and (past := snapshot.version_at(page, self.bound) if time > self.bound else None) is not None:
                number, time = past.id, past.time
            if rank is not None:
                weight = rank(page)
            fresh = freshness(time, moment)
            found.append((-words * fresh * weight, number, address, time, words, fresh, weight, past))
        return found


def search(
    index: WordIndex,
    question: WordQuery,
    limit: int = 10,
    offset: int = 0,
    rank: PageWeight | None = None,
    *,
    explain: bool = False,
    order: SearchOrder = "relevance",
    collapse: bool = False,
) -> list[SearchHit]:
    """The best pages, as of the question's moment; equal scores stand in the order of recording.

    Other orders are by the date of the version, the latest first, or by rank, of the `MAX_SORTED` pages that fit
    best. With `collapse` pages with nearly the same text stand under the first of them.

    Without `rank` the ranks that the archive keeps order the answer, where it has any. With `explain`
    hits tell what links call them, too.
    """
    rank = rank or learned_weight(index.archive)
    snapshot = index.snapshot()
    matcher = QueryBuilder(snapshot, question)
    called = anchor_matches(index, snapshot, question)
    weigher = _Weigher(snapshot, *_moment_and_bound(index, question), rank)
    wanted = offset + limit
    asked = (weigher, matcher, question, _UNCOLLAPSED * wanted if collapse else wanted, called)
    chosen = _best_candidates(*asked) if order == "relevance" else _sorted_candidates(*asked, order)
    similar: dict[int, list[str]] = {}
    if collapse:
        chosen, similar = _collapsed(snapshot, chosen, wanted)
    chosen = chosen[offset:]
    pattern = matcher.pattern(question)
    addresses = [candidate.address for candidate in chosen]
    is_now = question.at is None and not question.spans
    ends = repeat(OPEN_END) if is_now else snapshot.numbers("until", addresses)
    numbers = snapshot.numbers("number", addresses)
    added = called.added(snapshot.numbers("resource", addresses), explain) if called else repeat(NO_ANCHOR)
    hits = [_hit(snapshot, pattern, *row) for row in zip(chosen, ends, numbers, added, strict=False)]
    if not similar:
        return hits
    return [hit._replace(similar=tuple(similar.get(one.id, ()))) for hit, one in zip(hits, chosen, strict=True)]


def _moment_and_bound(index: WordIndex, question: WordQuery) -> tuple[int, int]:
    """The moment by which versions are called fresh, and after which none may have begun."""
    asked = question.at or question.until
    return (to_millis(index.archive.clock()), OPEN_END - 1) if asked is None else (to_millis(asked),) * 2


def _hit(
    snapshot: WordSnapshot, pattern: re.Pattern[str] | None, found: _Candidate, until: int, number: int,
    added: tuple[float, str],
) -> SearchHit:  # fmt: skip
    _, _, address, time, words, fresh, rank, past = found
    (url, title, language, text), low = snapshot.shown(address)
    if past is not None:
        number, until = past.number, past.until or OPEN_END
    ends = None if until == OPEN_END else from_millis(until)
    if added is not NO_ANCHOR:
        words = max(0.0, words - added[0])
    why = ScoreParts(words, fresh, rank, *added)
    return SearchHit(url, title, snippet(text, pattern, low), from_millis(time), ends, number, language, why)


def _best_candidates(
    weigher: _Weigher, matcher: QueryBuilder, question: WordQuery, wanted: int, called: AnchorMatches
) -> list[_Candidate]:
    """The best by words, window by window, each put in its final order.

    So the cost does not depend on how many pages fit, and what stands on the
    second page of an answer does not depend on how the first was asked for.
    """
    snapshot, count = weigher.snapshot, RERANK_WINDOW * (1 + (wanted - 1) // RERANK_WINDOW)
    hits = _filtered_afterwards(snapshot, matcher, question, count)
    if hits is not None:
        best = called.among(snapshot, matcher, question, hits)[:count]
        return weigher.ordered(best, RERANK_WINDOW, wanted)
    query = matcher.query(question)
    while True:
        hits = snapshot.hits(query, count)
        best = called.among(snapshot, matcher, question, hits)[:count]
        found = weigher.ordered(best, RERANK_WINDOW, None if question.spans else wanted)
        if question.spans:
            found = _best_of_page(snapshot, found)
        if len(found) >= wanted or len(hits) < count:
            return found[:wanted]
        count *= 2


def _sorted_candidates(
    weigher: _Weigher, matcher: QueryBuilder, question: WordQuery, wanted: int, called: AnchorMatches,
    order: SearchOrder,
) -> list[_Candidate]:  # fmt: skip
    """All that fit, in another order; equal ones by how well they fit."""
    found = weigher.ordered(weigher.snapshot.hits(matcher.query(question, named=called.weights()), MAX_SORTED))
    if question.spans:
        found = _best_of_page(weigher.snapshot, found)
    if order == "date":
        found.sort(key=lambda candidate: -candidate.time)
    else:
        found.sort(key=lambda candidate: -candidate.rank)
    return found[:wanted]


def _collapsed(
    snapshot: WordSnapshot, found: list[_Candidate], wanted: int
) -> tuple[list[_Candidate], dict[int, list[str]]]:
    """Candidates with different texts, and the addresses of those that are nearly the same as one of them."""
    kept: list[_Candidate] = []
    groups = NearTexts()
    similar: dict[int, list[str]] = {}
    for candidate in found:
        page = snapshot.stored(candidate.address)
        runs = text_runs(page.text)
        first = groups.first_near(runs)
        if first is not None:
            similar.setdefault(kept[first].id, []).append(page.url)
        elif len(kept) == wanted:
            break
        else:
            groups.add(runs)
            kept.append(candidate)
    return kept, similar


def _filtered_afterwards(
    snapshot: WordSnapshot, matcher: QueryBuilder, question: WordQuery, count: int
) -> list[tuple[float, Any]] | None:
    """The best of a moment, sifted out of the best of all times; None where too few of them are of that moment.

    Where pages have few versions this is faster than a limit that is tried on
    every document, up to twice for past moments, and gives the same.
    """
    positive = any(not clause.negated for clause in question.clauses)
    if not positive or not can_filter_afterwards(snapshot, question):
        return None
    most = round(_OVERFETCH * count / snapshot.newest_share)
    hits = snapshot.hits(matcher.query(question, timed=False), most)
    kept = snapshot.standing(hits, query_moment(question))
    return kept[:count] if len(kept) >= count or len(hits) < most else None


def _best_of_page(snapshot: WordSnapshot, found: list[_Candidate]) -> list[_Candidate]:
    """The best version of each page."""
    resources = snapshot.numbers("resource", [candidate.address for candidate in found])
    best: dict[int, _Candidate] = {}
    for resource, candidate in zip(resources, found, strict=True):
        best.setdefault(resource, candidate)
    return list(best.values())


def count_results(index: WordIndex, question: WordQuery) -> int:
    """How many pages fit; of those with several versions in a span of time each counts once."""
    snapshot = index.snapshot()
    query = QueryBuilder(snapshot, question).query(question, named=anchor_matches(index, snapshot, question).weights())
    if question.spans:
        return len(set(snapshot.numbers("resource", snapshot.every(query))))
    return int(snapshot.searcher.search(query, 1, count=True).count)


def search_facets(index: WordIndex, question: WordQuery) -> list[SearchFacet]:
    """Which sites, languages and types the answer has, the most frequent first."""
    snapshot = index.snapshot()
    asked = {name: {"terms": {"field": name, "size": _MOST_OF_A_FACET}} for name in FACET_FIELDS}
    query = QueryBuilder(snapshot, question).query(question, named=anchor_matches(index, snapshot, question).weights())
    answer = snapshot.searcher.aggregate(query, asked)
    found = [
        SearchFacet(name, str(bucket["key"]), int(bucket["doc_count"]))
        for name in FACET_FIELDS
        for bucket in answer[name]["buckets"]
    ]
    return sorted(found, key=lambda facet: (FACET_FIELDS.index(facet.field), -facet.count, facet.value))
