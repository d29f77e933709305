"""From a question to a query of the index, and to the pattern that finds its words in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from tantivy import FieldType, Occur, Query

from letopis.model import to_millis
from letopis.search.query import Clause, Limit, Question, Term
from letopis.search.schema import MARK, NOW
from letopis.search.words import is_wide


class Vocabulary(Protocol):
    """An index whose words are known in all their forms."""

    schema: Any

    def bases_of(self, form: str) -> tuple[str, ...]:
        """Base forms under which a word can be found."""

    def forms_of(self, base: str) -> tuple[str, ...]:
        """Words seen with that base form, itself first."""


Named = Mapping[int, float]
"""Pages that links call by the words of a clause, and what that adds to their score."""


class Matcher:
    """Makes queries for one state of the index."""

    def __init__(self, snapshot: Vocabulary) -> None:
        self._snapshot = snapshot
        self._schema = snapshot.schema

    def query(self, question: Question, *, timed: bool = True, named: Sequence[Named] = ()) -> Any:
        """The whole question as one query, or all of it but its time. Limits do not touch the score.

        With `named`, one for each clause, its pages have what they are called as well as what stands on them.
        """
        return Query.boolean_query([*self._clauses(question, named), *self._around(question, timed)])

    def called(self, question: Question, named: Sequence[Named], *, timed: bool) -> Any:
        """The same question of the pages alone that are named; of one clause, names are left to be added."""
        pages = sorted({page for clause in named for page in clause})
        some = _any([self._page(page) for page in pages])
        clauses = self._clauses(question, named)
        if is_single(question):
            clauses = [
                (Occur.Should if occur is Occur.Must else occur, part) for occur, part in self._clauses(question)
            ]
        return Query.boolean_query(
            [(Occur.Must, Query.const_score_query(some, 0.0)), *clauses, *self._around(question, timed)]
        )

    def _clauses(self, question: Question, named: Sequence[Named] = ()) -> list[tuple[Occur, Any]]:
        parts = [(Occur.MustNot if c.negated else Occur.Must, self.clause(c)) for c in question.clauses]
        if any(named):
            return [(occur, self._or_named(part, pages)) for (occur, part), pages in zip(parts, named, strict=True)]
        return parts

    def _or_named(self, clause: Any, pages: Named) -> Any:
        return _any([clause, *(Query.const_score_query(self._page(page), pages[page]) for page in pages)])

    def _page(self, page: int) -> Any:
        return Query.term_query(self._schema, "resource", page, "basic")

    def _around(self, question: Question, timed: bool) -> list[tuple[Occur, Any]]:
        return [(occur, Query.const_score_query(part, 0.0)) for occur, part in self._limits(question, timed)]

    def _limits(self, question: Question, timed: bool) -> Iterator[tuple[Occur, Any]]:
        if timed:
            yield from self._time(question)
        for (field, negated), values in _grouped(question.limits).items():
            yield (Occur.MustNot if negated else Occur.Must, self._one_of(field, values))
        if question.resources is not None:
            yield (Occur.Must, Query.term_set_query(self._schema, "resource", sorted(question.resources)))

    def _time(self, question: Question) -> Iterator[tuple[Occur, Any]]:
        if question.spans:
            yield (Occur.MustNot, Query.term_query(self._schema, "state", MARK, "basic"))
            if question.until is not None:
                yield (Occur.Must, self._range("time", None, to_millis(question.until)))
            if question.since is not None:
                yield (Occur.Must, self._range("until", to_millis(question.since) + 1, None))
        elif question.at is None:
            yield (Occur.Must, Query.term_query(self._schema, "state", NOW, "basic"))
        else:
            moment = to_millis(question.at)
            yield (Occur.Must, self._range("time", None, moment))
            yield (Occur.Must, self._range("until", moment + 1, None))

    def _range(self, field: str, low: int | None, high: int | None) -> Any:
        return Query.range_query(self._schema, field, FieldType.Integer, low, high)

    def _one_of(self, field: str, values: list[str]) -> Any:
        if len(values) == 1:
            return Query.term_query(self._schema, field, values[0], "basic")
        return Query.term_set_query(self._schema, field, values)

    def clause(self, clause: Clause) -> Any:
        """One of its terms."""
        return _any([self.term(term) for term in clause.alternatives])

    def term(self, term: Term) -> Any:
        """One term, in its kinds of blocks where it names any."""
        if term.exact or term.prefix:
            return _any([self._exact(term, field, start) for field, start in _places(term, "exact", "placed")])
        return _any([self._forms(term, field, start) for field, start in _places(term, "base", "placed_base")])

    def _forms(self, term: Term, field: str, start: str) -> Any:
        found = self._snapshot.bases_of(term.words[0])
        return _any([Query.term_query(self._schema, field, start + base, "freq") for base in found])

    def _exact(self, term: Term, field: str, start: str) -> Any:
        words: list[Any] = [start + word for word in term.words]
        if term.prefix and len(words) > 1:
            return Query.phrase_prefix_query(self._schema, field, words)
        if term.prefix:
            return Query.regex_query(self._schema, field, words[0] + ".*")
        if len(words) > 1:
            return Query.phrase_query(self._schema, field, words)
        return Query.term_query(self._schema, field, words[0], "position")

    def pattern(self, question: Question) -> re.Pattern[str] | None:
        """Finds the words of a question in a lowered text; a group for each term tells which it was."""
        terms = [term for clause in question.clauses if not clause.negated for term in clause.alternatives]
        return compiled(tuple(self._source(term) for term in terms)) if terms else None

    def _source(self, term: Term) -> str:
        """The regular expression of one term."""
        if term.exact or term.prefix:
            between = r"\W*" if any(map(is_wide, term.words)) else r"\W+"
            return _bounded(term.words[0], between.join(("", *term.words[1:])) + (r"\w*" if term.prefix else ""))
        bases = self._snapshot.bases_of(term.words[0])
        forms = {term.words[0], *(form for base in bases for form in self._snapshot.forms_of(base))}
        return "|".join(_bounded(form) for form in sorted(forms, key=lambda form: (-len(form), form)))


def is_single(question: Question) -> bool:
    """Whether one clause alone decides which pages are found."""
    return sum(not clause.negated for clause in question.clauses) == 1


def _bounded(first: str, rest: str = "") -> str:
    """A word with more behind it, and nothing of a word around.

    What stands before is looked at last: a pattern that begins with letters
    is searched for several times faster.
    """
    # A character of a script without blanks has other word characters on both sides.
    return first + rest if is_wide(first) else rf"{first}(?<!\w{first}){rest}(?!\w)"


@lru_cache(maxsize=256)
def compiled(sources: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern with a group for each source."""
    return re.compile("|".join(f"({source})" for source in sources))


def _places(term: Term, everywhere: str, placed: str) -> list[tuple[str, str]]:
    """Fields and what words begin with there."""
    return [(placed, f"{kind.value}=") for kind in term.blocks] or [(everywhere, "")]


def _any(queries: list[Any]) -> Any:
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, query) for query in queries])


def _grouped(limits: Iterable[Limit]) -> dict[tuple[str, bool], list[str]]:
    """Values of one field are alternatives."""
    found: dict[tuple[str, bool], list[str]] = {}
    for limit in limits:
        found.setdefault((limit.field, limit.negated), []).append(limit.value)
    return found
