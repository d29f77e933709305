"""Pages that links call by the words of a question, joined with the pages that have the words themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from letopis.model import to_millis
from letopis.search.follower import WordIndex
from letopis.search.matching import Matcher, Named, is_single
from letopis.search.names import MOST_OF_SEVERAL, MOST_PAGES, Called, NameReader
from letopis.search.query import Question
from letopis.search.schema import OPEN
from letopis.search.snapshot import Snapshot

_MOSTLY = 0.1
"""Share of newest versions from which on a moment is sifted out of all times."""
NOTHING_ADDED = (0.0, "")
"""Of a page that no link calls so."""
_VERSIONS = 10_000
"""Most versions of pages that are called so, where a span of time is asked for."""


@dataclass(frozen=True, slots=True)
class CalledSo:
    """For each clause of a question the pages that links call so; false when there are none."""

    reader: NameReader | None = None
    clauses: tuple[dict[int, Called], ...] = ()

    def __bool__(self) -> bool:
        return any(self.clauses)

    def weights(self) -> list[Named]:
        """What names add to the score of pages, clause by clause."""
        return [{page: name.score for page, name in pages.items()} for pages in self.clauses]

    def added(self, pages: Iterable[int], explain: bool) -> list[tuple[float, str]]:
        """What names have added to the score of each page, and with `explain` the one that fits best."""
        return [self._added(page, explain) for page in pages]

    def _added(self, page: int, explain: bool) -> tuple[float, str]:
        names = [clause[page] for clause in self.clauses if page in clause]
        if not names or self.reader is None:
            return NOTHING_ADDED
        text = self.reader.text(max(names, key=lambda name: name.score)) if explain else ""
        return (names[0].score if len(names) == 1 else sum(name.score for name in names)), text

    def among(
        self, snapshot: Snapshot, matcher: Matcher, question: Question, hits: Sequence[tuple[float, Any]]
    ) -> Sequence[tuple[float, Any]]:
        """The hits together with pages that are called so, in the order of their scores.

        These are asked for by themselves: they are few, while a question
        for both at once would have to look at every page with the words.
        """
        if not self:
            return hits
        more = self._scored(snapshot, question, self._versions(snapshot, matcher, question))
        known = {_place(address) for _, address in more}
        both = [*more, *(hit for hit in hits if _place(hit[1]) not in known)]
        return sorted(both, key=lambda hit: (-hit[0], _place(hit[1])))

    def _versions(self, snapshot: Snapshot, matcher: Matcher, question: Question) -> list[tuple[float, Any]]:
        """The versions of pages that are called so, with the score of what stands on them."""
        weights = self.weights()
        pages = sum(map(len, weights))
        if may_sift(snapshot, question):
            most = round(4 * pages / snapshot.share_now())
            hits = snapshot.hits(matcher.called(question, weights, timed=False), most)
            if len(hits) < most:
                return snapshot.standing(hits, moment_of(question))
        most = _VERSIONS if question.spans else pages
        return snapshot.hits(matcher.called(question, weights, timed=True), most)

    def _scored(self, snapshot: Snapshot, question: Question, hits: list[tuple[float, Any]]) -> list[tuple[float, Any]]:
        """With what names add, where the query has not added it: see `Matcher.called`."""
        if not is_single(question):
            return hits
        added = next(pages for pages in self.clauses if pages)
        pages = snapshot.numbers("resource", [address for _, address in hits])
        return [(score + added[page].score, address) for (score, address), page in zip(hits, pages, strict=True)]


def moment_of(question: Question) -> int:
    """The moment that is asked for; the last there is when it is now."""
    return OPEN - 1 if question.at is None else to_millis(question.at)


def may_sift(snapshot: Snapshot, question: Question) -> bool:
    """Whether a moment is found faster among all times than by a limit that is tried on every document."""
    return not question.spans and snapshot.share_now() >= _MOSTLY


def called_so(index: WordIndex, snapshot: Snapshot, question: Question) -> CalledSo:
    """What links say about pages at the question's moment, or at any time of its span."""
    reader = index.names(snapshot)
    if reader is None:
        return CalledSo()
    span, most = _span(question), MOST_PAGES if is_single(question) else MOST_OF_SEVERAL
    clauses = ({} if clause.negated else reader.pages(snapshot, clause, span, most) for clause in question.clauses)
    return CalledSo(reader, tuple(clauses))


def _span(question: Question) -> tuple[int, int]:
    if not question.spans:
        return moment_of(question), moment_of(question)
    since = 0 if question.since is None else to_millis(question.since)
    return since, OPEN - 1 if question.until is None else to_millis(question.until)


def _place(address: Any) -> tuple[int, int]:
    return address.segment_ord, address.doc
