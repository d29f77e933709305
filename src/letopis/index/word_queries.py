"""The tantivy queries that a question becomes.

Words of the newest versions stand in a field with their places; those of older versions are told by their base forms.
So where words stand together in an older version, and in which kind of block, is read from its text; there no place
tells the score, and base forms do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from letopis.index.page_text import END_OF_SOLID, WordsTogether, first_in_word, is_solid, marks_of
from letopis.index.query_language import FieldFilter, QueryClause, QueryTerm, WordQuery
from letopis.index.vocabulary import OlderWords, accent_pattern, any_of
from letopis.index.word_documents import HEADING_KINDS, STATE_MARK, STATE_NOW
from letopis.lazy import FieldType, Occur, Query
from letopis.model import to_millis


class Vocabulary(Protocol):
    """An index whose words are known in all their forms."""

    schema: Any
    phrases: tuple[str, tuple[str, ...]]
    """The field with the places of words, and what words begin with there."""
    any_start: str
    """What words begin with there, as a regular expression."""
    has_older: bool
    """Whether there may be older versions, which have no places."""

    sources: dict[QueryTerm, str]
    """Regular expressions of terms in queries."""

    def places_of(self, word: str) -> tuple[str, ...]:
        """A word as written, in that field: a term for each kind of block that has it."""

    def older_with(self, word: str) -> Any | None:
        """A query of the older versions that have a word as written; None if there are none."""

    def having(self, candidates: Any, phrase: WordsTogether, earliest: bool = False) -> list[int]:
        """The ids of those older versions among some whose words stand together, or that of the `earliest` alone."""

    def bases_of(self, form: str) -> tuple[str, ...]:
        """Base forms under which a word can be found."""

    def other_bases(self, form: str) -> tuple[str, ...]:
        """Base forms of words that differ from it in accents alone."""

    def forms_of(self, base: str) -> tuple[str, ...]:
        """Words seen with that base form, itself first."""

    def further_bases(self, form: str) -> tuple[str, ...]:
        """Base forms that a word belongs to besides its own, learned from the archive."""

    def further_forms(self, form: str) -> tuple[str, ...]:
        """Words that belong to a base form of this one besides their own."""


_OTHER_ACCENTS = 0.5
"""The weight of a word that differs from the one in the query in accents: the exact form comes first."""
_FURTHER = 0.7
"""The weight of a word whose forms were learned from the archive, relative to those of a dictionary."""
AnchorScores = Mapping[int, float]
"""Pages that links call by the words of a clause, and what that adds to their score."""


class QueryBuilder:
    """Makes queries for one state of the index, and for one question, whose time and limits bound the work.

    With `earliest` a phrase finds of all older versions the first alone.
    """

    def __init__(self, snapshot: Vocabulary, question: WordQuery | None = None, *, earliest: bool = False) -> None:
        self._earliest = earliest
        self._snapshot = snapshot
        self._schema = snapshot.schema
        self._made: dict[QueryClause, Any] = {}
        self._question = question
        is_now = question is not None and question.at is None and not question.spans
        self._older = snapshot.has_older and not is_now
        self._field = snapshot.phrases[0]

    def query(self, question: WordQuery, *, timed: bool = True, named: Sequence[AnchorScores] = ()) -> Any:
        """The whole question as one query, or all of it but its time. Limits do not touch the score.

        With `named`, one for each clause, its pages have what they are called as well as what stands on them.
        """
        parts = [*self._clauses(question, named), *self._around(question, timed)]
        return parts[0][1] if len(parts) == 1 and parts[0][0] is Occur.Must else Query.boolean_query(parts)

    def called(self, question: WordQuery, pages: Iterable[int], named: Sequence[AnchorScores], *, timed: bool) -> Any:
        """The same question of the pages alone that are named; of one clause, whose names are added later, with any of
        its words or none.
        """
        some = any_of([self._page(page) for page in pages])
        clauses = self._clauses(question, named)
        if not named:
            clauses = [(Occur.Should if occur is Occur.Must else occur, part) for occur, part in clauses]
        return Query.boolean_query(
            [(Occur.Must, Query.const_score_query(some, 0.0)), *clauses, *self._around(question, timed)]
        )

    def _clauses(self, question: WordQuery, named: Sequence[AnchorScores] = ()) -> list[tuple[Occur, Any]]:
        parts = [(Occur.MustNot if c.negated else Occur.Must, self.clause(c)) for c in question.clauses]
        if any(named):
            return [(occur, self._or_named(part, pages)) for (occur, part), pages in zip(parts, named, strict=True)]
        return parts

    def _or_named(self, clause: Any, pages: AnchorScores) -> Any:
        return any_of([clause, *(Query.const_score_query(self._page(page), pages[page]) for page in pages)])

    def _page(self, page: int) -> Any:
        return Query.term_query(self._schema, "resource", page, "basic")

    def _around(self, question: WordQuery, timed: bool) -> list[tuple[Occur, Any]]:
        if not (timed or question.limits or question.resources is not None):
            return []
        return [(occur, Query.const_score_query(part, 0.0)) for occur, part in self._limits(question, timed)]

    def _limits(self, question: WordQuery, timed: bool) -> Iterator[tuple[Occur, Any]]:
        if timed:
            yield from self._time(question)
        for (field, negated), values in _grouped_filters(question.limits).items():
            yield (Occur.MustNot if negated else Occur.Must, self._one_of(field, values))
        if question.resources is not None:
            yield (Occur.Must, Query.term_set_query(self._schema, "resource", sorted(question.resources)))

    def _time(self, question: WordQuery) -> Iterator[tuple[Occur, Any]]:
        if question.spans:
            yield (Occur.MustNot, Query.term_query(self._schema, "state", STATE_MARK, "basic"))
            if question.until is not None:
                yield (Occur.Must, self._range("time", None, to_millis(question.until)))
            if question.since is not None:
                yield (Occur.Must, self._range("until", to_millis(question.since) + 1, None))
        elif question.at is None:
            yield (Occur.Must, Query.term_query(self._schema, "state", STATE_NOW, "basic"))
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

    def clause(self, clause: QueryClause) -> Any:
        """One of its terms; only the very word is kept out, not those that are widely the same."""
        made = self._made.get(clause)
        if made is None:
            parts = [self.term(term, widely=not clause.negated) for term in clause.alternatives]
            made = self._made[clause] = any_of(parts)
        return made

    def term(self, term: QueryTerm, *, widely: bool = True) -> Any:
        """One term, in its kinds of blocks where it names any; `widely` with other accents and learned forms too."""
        if term.exact or term.prefix:
            return self._exact(term)
        if not term.blocks:
            return self._forms(term.words[0], widely)
        word = term.words[0]
        if not self._older:
            return any_of([self._placed(word, f"{kind.value}=", widely) for kind in term.blocks])
        there = self._in_blocks(term, self._all_forms(word, widely))
        return self._weighed(there, [self._forms(word, widely)])

    def _forms(self, word: str, widely: bool) -> Any:
        known = self._snapshot
        found = known.bases_of(word)
        queries = self._terms("base", found)
        if widely:
            queries += self._weaker("base", known.other_bases(word), found, _OTHER_ACCENTS)
            queries += self._weaker("base", known.further_bases(word), found)
        if widely and (further := known.further_forms(word)):
            queries += self._weaker(self._field, (place for form in further for place in known.places_of(form)), ())
            queries += [Query.boost_query(part, _FURTHER) for part in self._older_with(further)]
        return any_of(queries)

    def _older_with(self, words: Iterable[str]) -> list[Any]:
        """The older versions with each word, if the query includes them."""
        found = map(self._snapshot.older_with, words) if self._older else ()
        return [part for part in found if part is not None]

    def _in_blocks(self, term: QueryTerm, forms: Iterable[str]) -> Any:
        """Versions of any time that have one of these forms in one of the kinds of blocks of a term."""
        some = list(forms)
        newest = self._one_of(self._field, [f"{kind}={form}" for kind in term.blocks for form in some])
        headings, others = _heading_kinds(term)
        older = [self._one_of("stood", [f":{kind}={form}" for kind in headings for form in some])]
        if others:
            older.append(self._read(self._older_with(some), WordsTogether.one_of(term.words[0], some, others)))
        return any_of([newest, *older])

    def _weighed(self, there: Any, often: list[Any]) -> Any:
        """The required terms, weighted by how often they are on the page."""
        parts = ((Occur.Should, part) for part in often)
        return Query.boolean_query([(Occur.Must, Query.const_score_query(there, 0.0)), *parts])

    def _all_forms(self, word: str, widely: bool) -> list[str]:
        """A word in all its forms."""
        known = self._snapshot
        found = self._forms_of(known.bases_of(word))
        if widely:
            found += self._forms_of((*known.other_bases(word), *known.further_bases(word)))
            found += known.further_forms(word)
        return found

    def _placed(self, word: str, start: str, widely: bool) -> Any:
        """The same in a kind of block, where words are stored as written: each form is queried."""
        known = self._snapshot
        found = self._forms_of(known.bases_of(word), start)
        queries = self._terms("placed", found)
        if widely:
            further = [start + form for form in known.further_forms(word)]
            further += self._forms_of(known.further_bases(word), start)
            queries += self._weaker("placed", self._forms_of(known.other_bases(word), start), found, _OTHER_ACCENTS)
            queries += self._weaker("placed", further, found)
        return any_of(queries)

    def _forms_of(self, bases: Iterable[str], start: str = "") -> list[str]:
        return list(dict.fromkeys(start + form for base in bases for form in self._snapshot.forms_of(base)))

    def _terms(self, field: str, words: Iterable[str]) -> list[Any]:
        return [Query.term_query(self._schema, field, word, "freq") for word in words]

    def _weaker(self, field: str, words: Iterable[str], found: Sequence[str], weight: float = _FURTHER) -> list[Any]:
        """Words that are not in the query."""
        others = [word for word in words if word not in found] if words else ()
        return [Query.boost_query(term, weight) for term in self._terms(field, others)]

    def _exact(self, term: QueryTerm) -> Any:
        """Words as written."""
        starts = [f"{kind.value}=" for kind in term.blocks]
        if len(term.words) > 1:
            return self._together(term, starts)
        if term.prefix:
            return self._beginning(term, starts or [self._snapshot.any_start])
        if not starts:
            return self._quoted(term.words[0])
        if self._older:
            return self._by_bases(self._in_blocks(term, term.words), term)
        return any_of(self._terms("placed", (start + term.words[0] for start in starts)))

    def _beginning(self, term: QueryTerm, starts: list[str]) -> Any:
        """Words that begin so, accents aside."""
        pattern = accent_pattern(term.words[0])
        newest = [Query.regex_query(self._schema, self._field, f"{start}{pattern}.*") for start in starts]
        return any_of([*newest, *self._older_beginning(term, pattern)] if self._older else newest)

    def _older_beginning(self, term: QueryTerm, pattern: str) -> list[Any]:
        """Read are only texts of which base forms do not tell whether the word begins so that stands there."""
        older = OlderWords(self._schema, Query.regex_query, f"{pattern}.*")
        headings, others = _heading_kinds(term)
        phrase = WordsTogether.beginning(term.words[0], pattern, others)
        if not term.blocks:
            return [older.sure(), self._read([older.unsure()], phrase)]
        found = [Query.regex_query(self._schema, "stood", f":{kind}={pattern}.*") for kind in headings]
        return [*found, self._read([older.any()], phrase)] if others else found

    def _by_bases(self, there: Any, term: QueryTerm) -> Any:
        """The required terms; only base forms say how often their words are on a page."""
        bases = dict.fromkeys(base for word in term.words for base in self._snapshot.bases_of(word))
        return self._weighed(there, self._terms("base", bases))

    def _together(self, term: QueryTerm, starts: list[str]) -> Any:
        """Consecutive words."""
        field, anywhere = self._snapshot.phrases
        parts = [self._phrase(term, field, start) for start in starts or anywhere]
        if not self._older:
            return any_of(parts)
        phrase = WordsTogether.of(term.words, term.prefix, tuple(kind.value for kind in term.blocks))
        return self._by_bases(any_of([*parts, self._read(self._older_with_all(term), phrase)]), term)

    def _older_with_all(self, term: QueryTerm) -> list[Any]:
        """The older versions that have all words of a term."""
        whole = term.words[:-1] if term.prefix else term.words
        parts = self._older_with(whole)
        if len(parts) < len(whole):
            return []
        if term.prefix:
            parts.append(OlderWords(self._schema, Query.regex_query, re.escape(term.words[-1]) + ".*").any())
        return [Query.boolean_query([(Occur.Must, part) for part in parts])]

    def _read(self, candidates: list[Any], phrase: WordsTogether) -> Any:
        """Those of some older versions in whose texts words stand so, of those that the question is about."""
        if not candidates:
            return Query.empty_query()
        around = [] if self._question is None else self._around(self._question, timed=True)
        asked = Query.boolean_query([(Occur.Must, any_of(candidates)), *around])
        return Query.term_set_query(self._schema, "id", self._snapshot.having(asked, phrase, self._earliest))

    def _phrase(self, term: QueryTerm, field: str, start: str) -> Any:
        words: list[Any] = [start + word for word in term.words]
        make = Query.phrase_prefix_query if term.prefix else Query.phrase_query
        return make(self._schema, field, words)

    def _quoted(self, word: str) -> Any:
        """The exact word; only its base forms say how often it is on a page."""
        newest = self._one_of(self._field, list(self._snapshot.places_of(word)))
        return self._by_bases(any_of([newest, *self._older_with([word])]), QueryTerm((word,)))

    def pattern(self, question: WordQuery) -> re.Pattern[str] | None:
        """Finds the words of a query in a lower-case text; a group for each term says which it was."""
        terms = [term for clause in question.clauses if not clause.negated for term in clause.alternatives]
        return compiled_pattern(tuple(self._source(term) for term in terms)) if terms else None

    def _source(self, term: QueryTerm) -> str:
        """The regular expression of one term."""
        known = self._snapshot.sources
        if term not in known:
            known[term] = self._make_source(term)
        return known[term]

    def _make_source(self, term: QueryTerm) -> str:
        if term.exact or term.prefix:
            marks = marks_of("".join(term.words))
            between = rf"(?![{marks}])\W{'*' if any(map(is_solid, term.words)) else '+'}"
            first = accent_pattern(term.words[0]) if term.prefix and len(term.words) == 1 else term.words[0]
            return _word_pattern(first, between.join(("", *term.words[1:])) + (rf"[\w{marks}]*" if term.prefix else ""))
        known, word = self._snapshot, term.words[0]
        bases = {*known.bases_of(word), *known.other_bases(word), *known.further_bases(word)}
        forms = {word, *known.further_forms(word), *(form for base in bases for form in known.forms_of(base))}
        return "|".join(_word_pattern(form) for form in sorted(forms, key=lambda form: (-len(form), form)))


def _heading_kinds(term: QueryTerm) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The kinds of blocks of a term that the index has for older versions, and those for which texts are read."""
    headings = tuple(kind.value for kind in term.blocks if kind in HEADING_KINDS)
    return headings, tuple(kind.value for kind in term.blocks if kind not in HEADING_KINDS)


def has_single_clause(question: WordQuery) -> bool:
    """Whether one clause alone decides which pages are found."""
    return sum(not clause.negated for clause in question.clauses) == 1


def _word_pattern(first: str, rest: str = "") -> str:
    """A word with more behind it, and nothing of a word around."""
    if is_solid(first):  # Other word characters are on both sides.
        return first + rest + END_OF_SOLID
    letter = rf"[\w{marks_of(first + rest)}]"
    return f"{first_in_word(first, letter)}{rest}(?!{letter})"


@lru_cache(maxsize=256)
def compiled_pattern(sources: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern with a group for each source."""
    return re.compile("|".join(f"({source})" for source in sources))


def _grouped_filters(limits: Iterable[FieldFilter]) -> dict[tuple[str, bool], list[str]]:
    """Values of one field are alternatives."""
    found: dict[tuple[str, bool], list[str]] = {}
    for limit in limits:
        found.setdefault((limit.field, limit.negated), []).append(limit.value)
    return found
