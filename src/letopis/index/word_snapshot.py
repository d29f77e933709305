"""One state of the word index: what it knows about words, and what it stores of pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import compress, islice, starmap
from typing import Any

from letopis.archive.index_facts import VersionLog, VersionSpan
from letopis.errors import Damaged, Remedy, UsageError
from letopis.index.base_forms import BaseForms
from letopis.index.learned_forms import LearnedForms
from letopis.index.old_texts import is_kept_apart, kept_text
from letopis.index.page_text import (
    LINE_LEAD,
    WORD,
    StoredPage,
    WordsTogether,
    lowered,
    unpack_older_page,
    unpack_stored_page,
)
from letopis.index.query_language import QueryTerm
from letopis.index.vocabulary import OlderWords, accent_beginnings, accent_pattern, accent_variants, folded
from letopis.index.word_documents import ANY_START, PHRASE_STARTS, STATE_MARK, STATE_NOW, WordIndexMark, unpack_mark
from letopis.index.word_runs import OPEN_END
from letopis.lazy import Order, Query

_MOST_READ = 50_000
"""Older versions that are read for one phrase; it takes one to three seconds."""
_HELD_TEXTS = 64
"""Texts of older versions that are held, as others refer to them."""
_HELD_CHARACTERS = 4_000_000
"""Text of pages that is held for questions after the first that showed them; the library holds a hundred blocks."""
_MAX_FORMS = 64
"""Forms of one base that marks and surroundings look for."""


class WordSnapshot:
    """A searcher with its schema and its dictionary of word forms. Safe to share between threads."""

    phrases: tuple[str, tuple[str, ...]] = ("placed", PHRASE_STARTS)
    any_start = ANY_START
    has_older = True

    def __init__(
        self, searcher: Any, schema: Any, bases: Callable[[], BaseForms], learned: LearnedForms, log: VersionLog
    ) -> None:
        self.searcher = searcher
        self._log = log
        self.schema = schema
        self._bases = bases
        self._learned = learned
        self.newest_share = float(searcher.doc_freq("state", STATE_NOW) / max(1, searcher.num_docs))
        """The share of documents that have the newest version of their page."""
        self._known: dict[str, tuple[str, ...]] = {}
        self._forms: dict[str, tuple[str, ...]] = {}
        self._others: dict[str, tuple[str, ...]] = {}
        self._further: dict[str, tuple[str, ...]] = {}
        self.sources: dict[QueryTerm, str] = {}
        self._members: dict[str, tuple[str, ...]] = {}
        self._places: dict[str, tuple[str, ...]] = {}
        self._languages: frozenset[str] | None = None
        self._pages: dict[tuple[int, int], tuple[StoredPage, str]] = {}
        self._held = 0
        self._texts: dict[int, str] = {}

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

    def bases_of(self, form: str) -> tuple[str, ...]:
        """Base forms under which a word can be found.

        Those the index knows of; for a word that it has never seen those of words with other accents, of the archive
        or of the dictionaries of the languages of its pages, and only where there are none either what these say of it.
        """
        if form not in self._known:
            found = self._known_bases(form) or self.other_bases(form) or self._accented(form)
            self._known[form] = found or self._guesses(form)
        return self._known[form]

    def find_bases(self, form: str) -> tuple[str, ...]:
        """The same except for accents, for callers with many words, each once."""
        return self._known_bases(form) or self._guesses(form)

    def _guesses(self, form: str) -> tuple[str, ...]:
        return tuple(self._bases().guesses(form, self.languages()))

    def _accented(self, form: str) -> tuple[str, ...]:
        """Base forms on pages that dictionaries name for words that differ from one without accents in these alone."""
        if folded(form) != form or not form.isalpha():
            return ()
        found = self._bases().accented(accent_beginnings(form), accent_pattern(form), self.languages())
        return tuple(base for base in found if self.searcher.doc_freq("base", base))

    def other_bases(self, form: str) -> tuple[str, ...]:
        """Base forms of words that differ from it in accents alone, those under which it is found itself left out."""
        if form not in self._others:
            own = self._known_bases(form)
            variants = accent_variants(self, form)
            found = (base for one in variants for base in (*self._known_bases(one), *self._learned.bases_of(one)))
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
        """A word as written on newest pages: a term of `placed` for each kind of block that has it."""
        if word not in self._places:
            terms = (start + word for start in PHRASE_STARTS)
            self._places[word] = tuple(term for term in terms if self.searcher.doc_freq("placed", term))
        return self._places[word]

    def older_with(self, word: str) -> Any | None:
        """A query of the older versions that have a word as written; None if there are none."""
        if not (self.searcher.doc_freq("stood", word) or self.searcher.doc_freq("base", word)):
            return None
        return OlderWords(self.schema, partial(Query.term_query, index_option="basic"), word).sure()

    def has_stood(self, word: str) -> bool:
        """Whether an older version has a word as written."""
        query = self.older_with(word)
        return query is not None and bool(self.hits(query, 1))

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
        """Base forms that a word belongs to besides its own, learned from the archive."""
        if form not in self._further:
            self._further[form] = self._learned.bases_of(form)
        return self._further[form]

    def further_forms(self, form: str) -> tuple[str, ...]:
        """Words that belong to a base form of this one besides their own."""
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
        """How many versions some documents represent."""
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
        return self.shown(address)[0]

    def shown(self, address: Any) -> tuple[StoredPage, str]:
        """The same, and its text in small letters."""
        place = address.segment_ord, address.doc
        found = self._pages.get(place)
        if found is None:
            page = self._read_page(address)
            if self._held > _HELD_CHARACTERS:
                self._pages, self._held = {}, 0
            found = self._pages[place] = page, lowered(page.text)
            self._held += 2 * len(page.text)
        return found

    def _read_page(self, address: Any) -> StoredPage:
        try:
            data = self.searcher.doc(address).get_first("page")
            if is_kept_apart(data):
                return unpack_older_page(kept_text(data, self._older_text))[0]
            return unpack_stored_page(data)
        except (ValueError, RecursionError) as error:
            raise damaged_index(error) from None

    def having(self, candidates: Any, phrase: WordsTogether, earliest: bool = False) -> list[int]:
        """The ids of those older versions among some whose words stand together, or that of the `earliest` alone.

        UsageError when too many would have to be read.
        """
        try:
            addresses, found = self._read(candidates, phrase, earliest)
        except (ValueError, RecursionError) as error:
            raise damaged_index(error) from None
        if len(addresses) > _MOST_READ and not found:
            raise UsageError(
                f"more than {_MOST_READ} older versions have the words '{' '.join(phrase.words)}', and each would have "
                "to be read; ask for one site, another time or rarer words"
            )
        return self.numbers("id", found)

    def _read(self, candidates: Any, phrase: WordsTogether, earliest: bool) -> tuple[list[Any], list[Any]]:
        """The older versions to be read, and which of them have the words; none if they are too many."""
        by_age = {"order_by_field": "time", "order": Order.Asc} if earliest else {}
        asked = Query.const_score_query(candidates, 1.0)
        hits = self.searcher.search(asked, _MOST_READ + 1, count=False, **by_age).hits
        addresses = [address for _, address in hits]
        texts = map(unpack_older_page, self._older_texts(addresses))
        found = compress(addresses, starmap(phrase.stands_in, texts))
        most = 1 if earliest else 0 if len(addresses) > _MOST_READ else None
        return addresses, list(islice(found, most))

    def _older_texts(self, addresses: Sequence[Any]) -> Iterator[str]:
        for document, address in zip(self.numbers("id", addresses), addresses, strict=True):
            yield self._held_text(document, self.searcher.doc(address).get_first("page"))

    def _older_text(self, document: int) -> str:
        return self._texts.get(document) or self._held_text(document, self.kept(document))

    def _held_text(self, document: int, data: str) -> str:
        text = kept_text(data, self._older_text)
        if len(self._texts) >= _HELD_TEXTS:
            self._texts = {}
        self._texts[document] = text
        return text

    def kept(self, document: int) -> str:
        """What is kept of the text of the document with an id; nothing where there is none."""
        hits = self.hits(Query.term_query(self.schema, "id", document, "basic"), 1)
        data: str = self.searcher.doc(hits[0][1]).get_first("page") if hits else ""
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
        Remedy("search --rebuild", "letopis.index.word_index.WordIndex.rebuild()", "rebuild it with"),
    )
