"""The index at one moment: what questions are asked of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tantivy import Query

from letopis.errors import Damaged
from letopis.search.bases import Bases
from letopis.search.schema import MARK, NOW, Mark, unpack_mark
from letopis.search.stored import Stored, unpack_stored

_MOST_FORMS = 64
"""Forms of one base that marks and surroundings look for, the most frequent first."""


class Snapshot:
    """A searcher with its schema and its dictionary of word forms. Safe to share between threads."""

    def __init__(self, searcher: Any, schema: Any, bases: Callable[[], Bases]) -> None:
        self.searcher = searcher
        self.schema = schema
        self._bases = bases
        self._newest = searcher.doc_freq("state", NOW)
        self._known: dict[str, tuple[str, ...]] = {}
        self._forms: dict[str, tuple[str, ...]] = {}

    def mark(self) -> Mark:
        """How far the index had come; an empty mark when it is new."""
        marks = Query.term_query(self.schema, "state", MARK, "basic")
        hits = self.searcher.search(marks, 1, count=False, order_by_field="number").hits
        return unpack_mark(self.searcher.doc(hits[0][1]).get_first("page")) if hits else Mark()

    def marks(self) -> int:
        """How many marks there are, the latest and those it has replaced."""
        return int(self.searcher.doc_freq("state", MARK))

    def share_now(self) -> float:
        """The share of versions that are the newest of their page."""
        return float(self._newest / max(1, self.searcher.num_docs))

    def bases_of(self, form: str) -> tuple[str, ...]:
        """Base forms under which a word can be found.

        Those the index knows of; only for a word that it has never seen are
        the dictionaries of all languages asked.
        """
        if form not in self._known:
            self._known[form] = self.find_bases(form)
        return self._known[form]

    def find_bases(self, form: str) -> tuple[str, ...]:
        """The same for whoever asks for many words, each once."""
        start = f">{form}="
        found = [term[len(start) :] for term, _ in self.searcher.terms_with_prefix("forms", start)]
        # As it stands: a base form itself, or a form that some language leaves alone.
        if self.searcher.doc_freq("base", form):
            found.append(form)
        return tuple(dict.fromkeys(found)) or tuple(self._bases().guesses(form))

    def forms_of(self, base: str) -> tuple[str, ...]:
        """Words seen with that base form, itself first."""
        if base not in self._forms:
            start = f"<{base}="
            found = self.searcher.terms_with_prefix("forms", start, limit=_MOST_FORMS)
            self._forms[base] = (base, *(term[len(start) :] for term, _ in found))
        return self._forms[base]

    def hits(self, query: Any, limit: int) -> list[tuple[float, Any]]:
        """The best documents of a query."""
        return best_of(self.searcher, query, limit)

    def every(self, query: Any) -> list[Any]:
        """All documents of a query, in the order of the index."""
        # Scores are not wanted: a constant one makes the order that of the documents.
        count = max(1, self.searcher.num_docs)
        return [address for _, address in self.hits(Query.const_score_query(query, 1.0), count)]

    def numbers(self, field: str, addresses: Sequence[Any]) -> list[int]:
        """A number of each document."""
        values: list[int] = self.searcher.fast_field_values(field, list(addresses))
        return values

    def standing(self, hits: Sequence[tuple[float, Any]], moment: int) -> list[tuple[float, Any]]:
        """Those of some documents that were valid at a moment."""
        addresses = [address for _, address in hits]
        spans = zip(hits, self.numbers("time", addresses), self.numbers("until", addresses), strict=True)
        return [hit for hit, time, until in spans if time <= moment < until]

    def stored(self, address: Any) -> Stored:
        """What is kept of a document."""
        try:
            return unpack_stored(self.searcher.doc(address).get_first("page"))
        except ValueError as error:
            raise damaged(error) from None


def best_of(searcher: Any, query: Any, limit: int) -> list[tuple[float, Any]]:
    """The best documents of a query with their scores."""
    try:
        hits: list[tuple[float, Any]] = searcher.search(query, limit, count=False).hits
    except ValueError as error:
        raise damaged(error) from None
    return hits


def damaged(error: Exception) -> Damaged:
    """The one sentence about an index that cannot be read."""
    return Damaged(f"the index of words is damaged ({error}); build it anew with 'letopis search --rebuild'")
