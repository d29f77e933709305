"""One state of the word index, and the tantivy queries that are asked of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Protocol

from letopis.archive.index_facts import VersionLog, VersionSpan
from letopis.errors import Damaged, Remedy
from letopis.index.base_forms import BaseForms
from letopis.index.learned_forms import LearnedForms
from letopis.index.old_texts import TextGroup, is_kept_apart, kept_text, spent_by
from letopis.index.page_text import LINE_LEAD, WORD, StoredPage, is_cjk, lowered, unpack_stored_page
from letopis.index.query_language import FieldFilter, QueryClause, QueryTerm, WordQuery
from letopis.index.vocabulary import accent_pattern, accent_variants
from letopis.index.word_documents import ANY_START, PHRASE_STARTS, STATE_MARK, STATE_NOW, WordIndexMark, unpack_mark
from letopis.index.word_runs import OPEN_END, IndexedRun
from letopis.lazy import FieldType, Occur, Query
from letopis.model import to_millis


class Vocabulary(Protocol):
    """An index whose words are known in all their forms."""

    schema: Any
    phrases: tuple[str, tuple[str, ...]]
    """The field with the places of words, and what words begin with there."""
    any_start: str
    """What words begin with there, as a regular expression."""

    def places_of(self, word: str) -> tuple[str, ...]:
        """A word as it stands, in that field: a term for each kind of block that has it."""

    def bases_of(self, form: str) -> tuple[str, ...]:
        """Base forms under which a word can be found."""

    def other_bases(self, form: str) -> tuple[str, ...]:
        """Base forms of words that differ from it in accents alone."""

    def forms_of(self, base: str) -> tuple[str, ...]:
        """Words seen with that base form, itself first."""

    def further_bases(self, form: str) -> tuple[str, ...]:
        """Base forms that a word belongs to beside its own, as the archive has taught."""

    def further_forms(self, form: str) -> tuple[str, ...]:
        """Words that belong to a base form of this one beside their own."""


_OTHER_ACCENTS = 0.5
"""What a word counts that differs from the one asked for in accents: the exact form comes first."""
_FURTHER = 0.7
"""What a word counts whose forms were learned from the archive, beside one that a dictionary joins."""
AnchorScores = Mapping[int, float]
"""Pages that links call by the words of a clause, and what that adds to their score."""


class QueryBuilder:
    """Makes queries for one state of the index."""

    def __init__(self, snapshot: Vocabulary) -> None:
        self._snapshot = snapshot
        self._schema = snapshot.schema
        self._made: dict[QueryClause, Any] = {}

    def query(self, question: WordQuery, *, timed: bool = True, named: Sequence[AnchorScores] = ()) -> Any:
        """The whole question as one query, or all of it but its time. Limits do not touch the score.

        With `named`, one for each clause, its pages have what they are called as well as what stands on them.
        """
        return Query.boolean_query([*self._clauses(question, named), *self._around(question, timed)])

    def called(self, question: WordQuery, named: Sequence[AnchorScores], *, timed: bool) -> Any:
        """The same question of the pages alone that are named; of one clause, names are left to be added."""
        pages = sorted({page for clause in named for page in clause})
        some = _any_of([self._page(page) for page in pages])
        is_single = has_single_clause(question)
        clauses = self._clauses(question, () if is_single else named)
        if is_single:
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
        return _any_of([clause, *(Query.const_score_query(self._page(page), pages[page]) for page in pages)])

    def _page(self, page: int) -> Any:
        return Query.term_query(self._schema, "resource", page, "basic")

    def _around(self, question: WordQuery, timed: bool) -> list[tuple[Occur, Any]]:
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
        if clause not in self._made:
            parts = [self.term(term, widely=not clause.negated) for term in clause.alternatives]
            self._made[clause] = _any_of(parts)
        return self._made[clause]

    def term(self, term: QueryTerm, *, widely: bool = True) -> Any:
        """One term, in its kinds of blocks where it names any; `widely` with other accents and learned forms too."""
        if term.exact or term.prefix:
            return self._exact(term)
        if term.blocks:
            return _any_of([self._placed(term.words[0], f"{kind.value}=", widely) for kind in term.blocks])
        return self._forms(term.words[0], widely)

    def _forms(self, word: str, widely: bool) -> Any:
        known = self._snapshot
        found = known.bases_of(word)
        queries = self._terms("base", found)
        if widely:
            queries += self._weaker("base", known.other_bases(word), found, _OTHER_ACCENTS)
            queries += self._weaker("base", known.further_bases(word), found, _FURTHER)
            further = [place for form in known.further_forms(word) for place in known.places_of(form)]
            queries += self._weaker(known.phrases[0], further, (), _FURTHER)
        return _any_of(queries)

    def _placed(self, word: str, start: str, widely: bool) -> Any:
        """The same in a kind of block, where words are kept as they stand: each form is asked for."""
        known = self._snapshot
        found = self._forms_of(known.bases_of(word), start)
        queries = self._terms("placed", found)
        if widely:
            further = [start + form for form in known.further_forms(word)]
            further += self._forms_of(known.further_bases(word), start)
            queries += self._weaker("placed", self._forms_of(known.other_bases(word), start), found, _OTHER_ACCENTS)
            queries += self._weaker("placed", further, found, _FURTHER)
        return _any_of(queries)

    def _forms_of(self, bases: Iterable[str], start: str) -> list[str]:
        return list(dict.fromkeys(start + form for base in bases for form in self._snapshot.forms_of(base)))

    def _terms(self, field: str, words: Iterable[str]) -> list[Any]:
        return [Query.term_query(self._schema, field, word, "freq") for word in words]

    def _weaker(self, field: str, words: Iterable[str], found: Sequence[str], weight: float) -> list[Any]:
        """Words that are not asked for themselves."""
        terms = self._terms(field, (word for word in words if word not in found))
        return [Query.boost_query(term, weight) for term in terms]

    def _exact(self, term: QueryTerm) -> Any:
        """Words as they stand."""
        starts = [f"{kind.value}=" for kind in term.blocks]
        if len(term.words) > 1:
            field, anywhere = self._snapshot.phrases
            return _any_of([self._phrase(term, field, start) for start in starts or anywhere])
        if term.prefix:
            pattern = accent_pattern(term.words[0]) + ".*"
            parts = [Query.regex_query(self._schema, "placed", start + pattern) for start in starts]
            field, start = self._snapshot.phrases[0], self._snapshot.any_start
            return _any_of(parts or [Query.regex_query(self._schema, field, start + pattern)])
        if starts:
            return _any_of(self._terms("placed", [start + term.words[0] for start in starts]))
        return self._quoted(term.words[0])

    def _phrase(self, term: QueryTerm, field: str, start: str) -> Any:
        words: list[Any] = [start + word for word in term.words]
        make = Query.phrase_prefix_query if term.prefix else Query.phrase_query
        return make(self._schema, field, words)

    def _quoted(self, word: str) -> Any:
        """The very word; how often it stands on a page is told by its base forms alone."""
        places = list(self._snapshot.places_of(word))
        there = Query.const_score_query(self._one_of(self._snapshot.phrases[0], places), 0.0)
        often = self._terms("base", self._snapshot.bases_of(word))
        return Query.boolean_query([(Occur.Must, there), *((Occur.Should, part) for part in often)])

    def pattern(self, question: WordQuery) -> re.Pattern[str] | None:
        """Finds the words of a question in a lowered text; a group for each term tells which it was."""
        terms = [term for clause in question.clauses if not clause.negated for term in clause.alternatives]
        return compiled_pattern(tuple(self._source(term) for term in terms)) if terms else None

    def _source(self, term: QueryTerm) -> str:
        """The regular expression of one term."""
        if term.exact or term.prefix:
            between = r"\W*" if any(map(is_cjk, term.words)) else r"\W+"
            first = accent_pattern(term.words[0]) if term.prefix and len(term.words) == 1 else term.words[0]
            return _word_pattern(first, between.join(("", *term.words[1:])) + (r"\w*" if term.prefix else ""))
        known, word = self._snapshot, term.words[0]
        bases = {*known.bases_of(word), *known.other_bases(word), *known.further_bases(word)}
        forms = {word, *known.further_forms(word), *(form for base in bases for form in known.forms_of(base))}
        return "|".join(_word_pattern(form) for form in sorted(forms, key=lambda form: (-len(form), form)))


def has_single_clause(question: WordQuery) -> bool:
    """Whether one clause alone decides which pages are found."""
    return sum(not clause.negated for clause in question.clauses) == 1


def _word_pattern(first: str, rest: str = "") -> str:
    """A word with more behind it, and nothing of a word around.

    What stands before is looked at last: a pattern that begins with letters
    is searched for several times faster.
    """
    # A character of a script without blanks has other word characters on both sides.
    return first + rest if is_cjk(first) else rf"{first}(?<!\w{first}){rest}(?!\w)"


@lru_cache(maxsize=256)
def compiled_pattern(sources: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern with a group for each source."""
    return re.compile("|".join(f"({source})" for source in sources))


def _any_of(queries: list[Any]) -> Any:
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, query) for query in queries])


def _grouped_filters(limits: Iterable[FieldFilter]) -> dict[tuple[str, bool], list[str]]:
    """Values of one field are alternatives."""
    found: dict[tuple[str, bool], list[str]] = {}
    for limit in limits:
        found.setdefault((limit.field, limit.negated), []).append(limit.value)
    return found


_MAX_FORMS = 64
"""Forms of one base that marks and surroundings look for."""


class WordSnapshot:
    """A searcher with its schema and its dictionary of word forms. Safe to share between threads."""

    phrases: tuple[str, tuple[str, ...]] = ("placed", PHRASE_STARTS)
    any_start = ANY_START

    def __init__(
        self, searcher: Any, schema: Any, bases: Callable[[], BaseForms], learned: LearnedForms, log: VersionLog
    ) -> None:
        self.searcher = searcher
        self._log = log
        self.schema = schema
        self._bases = bases
        self._learned = learned
        self._newest = searcher.doc_freq("state", STATE_NOW)
        self._known: dict[str, tuple[str, ...]] = {}
        self._forms: dict[str, tuple[str, ...]] = {}
        self._others: dict[str, tuple[str, ...]] = {}
        self._further: dict[str, tuple[str, ...]] = {}
        self._members: dict[str, tuple[str, ...]] = {}
        self._places: dict[str, tuple[str, ...]] = {}
        self._languages: frozenset[str] | None = None

    @cached_property
    def mark(self) -> WordIndexMark:
        """How far the index had come; an empty mark when it is new."""
        marks = Query.term_query(self.schema, "state", STATE_MARK, "basic")
        hits = self.searcher.search(marks, 1, count=False, order_by_field="number").hits
        return unpack_mark(self.searcher.doc(hits[0][1]).get_first("page")) if hits else WordIndexMark()

    def version_at(self, page: int, moment: int) -> VersionSpan | None:
        """The version of a page that was valid at a moment, of those that this state has; None when it is gone."""
        return self._log.span_at(page, moment, self.mark.last)

    def marks(self) -> int:
        """How many marks there are, the latest and those it has replaced."""
        return int(self.searcher.doc_freq("state", STATE_MARK))

    def newest_share(self) -> float:
        """The share of documents that have the newest version of their page."""
        return float(self._newest / max(1, self.searcher.num_docs))

    def bases_of(self, form: str) -> tuple[str, ...]:
        """Base forms under which a word can be found.

        Those the index knows of; for a word that it has never seen those of
        words with other accents, and only where there are none either are the
        dictionaries of the languages of its pages asked.
        """
        if form not in self._known:
            self._known[form] = self._known_bases(form) or self.other_bases(form) or self._guesses(form)
        return self._known[form]

    def find_bases(self, form: str) -> tuple[str, ...]:
        """The same but for accents, for whoever asks for many words, each once."""
        return self._known_bases(form) or self._guesses(form)

    def _guesses(self, form: str) -> tuple[str, ...]:
        return tuple(self._bases().guesses(form, self.languages()))

    def other_bases(self, form: str) -> tuple[str, ...]:
        """Base forms of words that differ from it in accents alone, those under which it is found itself left out."""
        if form not in self._others:
            own = self._known_bases(form)
            found = (base for other in accent_variants(self, form) for base in self._known_bases(other))
            self._others[form] = tuple(dict.fromkeys(base for base in found if base not in own))
        return self._others[form]

    def _known_bases(self, form: str) -> tuple[str, ...]:
        start = f">{form}="
        found = [term[len(start) :] for term, _ in self.searcher.terms_with_prefix("forms", start)]
        # As it stands: a base form itself, or a form that some language leaves alone.
        if self.searcher.doc_freq("base", form):
            found.append(form)
        return tuple(dict.fromkeys(found))

    def places_of(self, word: str) -> tuple[str, ...]:
        """A word as it stands: a term of `placed` for each kind of block that has it."""
        if word not in self._places:
            terms = (start + word for start in PHRASE_STARTS)
            self._places[word] = tuple(term for term in terms if self.searcher.doc_freq("placed", term))
        return self._places[word]

    def languages(self) -> frozenset[str]:
        """The languages of all pages."""
        if self._languages is None:
            self._languages = frozenset(language for language, _ in self.searcher.terms_with_prefix("language", ""))
        return self._languages

    def forms_of(self, base: str) -> tuple[str, ...]:
        """Words seen with that base form, itself first."""
        if base not in self._forms:
            start = f"<{base}="
            found = self.searcher.terms_with_prefix("forms", start, limit=_MAX_FORMS)
            self._forms[base] = (base, *(term[len(start) :] for term, _ in found))
        return self._forms[base]

    def further_bases(self, form: str) -> tuple[str, ...]:
        """Base forms that a word belongs to beside its own, as the archive has taught."""
        if form not in self._further:
            self._further[form] = self._learned.bases_of(form)
        return self._further[form]

    def further_forms(self, form: str) -> tuple[str, ...]:
        """Words that belong to a base form of this one beside their own."""
        if form not in self._members:
            found = (other for base in self.bases_of(form) for other in self._learned.members_of(base))
            self._members[form] = tuple(dict.fromkeys(other for other in found if other != form))
        return self._members[form]

    def vocabulary(self, languages: Iterable[str], most_pages: int) -> dict[str, Counter[str]]:
        """The words of the newest pages by language, of no more than so many pages."""
        found: dict[str, Counter[str]] = {language: Counter() for language in languages}
        newest = Query.term_query(self.schema, "state", STATE_NOW, "basic")
        for _, address in self.hits(Query.const_score_query(newest, 1.0), most_pages):
            page = self.stored(address)
            if page.language in found:
                for line in lowered(page.text).split("\n"):
                    found[page.language].update(WORD.findall(line, LINE_LEAD))
        return found

    def hits(self, query: Any, limit: int) -> list[tuple[float, Any]]:
        """The best documents of a query."""
        return best_documents(self.searcher, query, limit)

    def every(self, query: Any) -> list[Any]:
        """All documents of a query, in the order of the index."""
        # Scores are not wanted: a constant one makes the order that of the documents.
        count = max(1, self.searcher.num_docs)
        return [address for _, address in self.hits(Query.const_score_query(query, 1.0), count)]

    def numbers(self, field: str, addresses: Sequence[Any]) -> list[int]:
        """A number of each document."""
        values: list[int] = self.searcher.fast_field_values(field, list(addresses))
        return values

    def versions(self, addresses: Sequence[Any]) -> int:
        """How many versions some documents stand for."""
        firsts, lasts = self.numbers("first", addresses), self.numbers("number", addresses)
        return sum(lasts) - sum(firsts) + len(addresses)

    def standing(self, hits: Sequence[tuple[float, Any]], moment: int) -> list[tuple[float, Any]]:
        """Those of some documents that were valid at a moment."""
        addresses = [address for _, address in hits]
        ends = self.numbers("until", addresses)
        if moment == OPEN_END - 1:
            return [hit for hit, until in zip(hits, ends, strict=True) if until > moment]
        spans = zip(hits, self.numbers("time", addresses), ends, strict=True)
        return [hit for hit, time, until in spans if time <= moment < until]

    def stored(self, address: Any) -> StoredPage:
        """What is kept of a document."""
        try:
            data = self.searcher.doc(address).get_first("page")
            older = is_kept_apart(data)
            return unpack_stored_page(kept_text(data, self._kept) if older else data.decode("utf-8", "replace"))
        except ValueError as error:
            raise damaged_index(error) from None

    def text_group(self, run: IndexedRun, page: int) -> TextGroup:
        """The texts of a page up to a run of older versions."""
        data = self._kept(run.id)
        whole = data if run.whole == run.id else self._kept(run.whole)
        return TextGroup(page, run.whole, kept_text(whole, self._kept), spent_by(data))

    def _kept(self, document: int) -> bytes:
        """What is kept of the text of a document."""
        hits = self.hits(Query.term_query(self.schema, "id", document, "basic"), 1)
        data: bytes = self.searcher.doc(hits[0][1]).get_first("page") if hits else b""
        return data


def best_documents(searcher: Any, query: Any, limit: int) -> list[tuple[float, Any]]:
    """The best documents of a query with their scores."""
    try:
        hits: list[tuple[float, Any]] = searcher.search(query, limit, count=False).hits
    except ValueError as error:
        raise damaged_index(error) from None
    return hits


def damaged_index(error: Exception) -> Damaged:
    """The one sentence about an index that cannot be read."""
    return Damaged(
        f"the index of words is damaged ({error})",
        Remedy("search --rebuild", "letopis.index.word_index.WordIndex.rebuild()", "build it anew with"),
    )
