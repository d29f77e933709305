"""The query language of search: words, "phrases", prefix*, -not, OR, site:, lang:, type:, and kinds of blocks.

    katedra "řídicí techniky" -kybernetika site:example.org h1:ústav lang:cs arch*

Plain words are found in all their forms; words in quotes as they stand. What looks like a part of the language and
cannot be one is refused with a sentence, so that nobody takes an answer to another question for one to theirs.
"""

from __future__ import annotations

import re
from datetime import datetime

from letopis.errors import UsageError
from letopis.index.page_text import MAX_WORD_LENGTH, nfc, split_words
from letopis.model import BlockKind
from letopis.tuples import NamedTuple
from letopis.urls import site

_TOKEN = re.compile(r'(?P<minus>-)?(?:(?P<field>[A-Za-z][A-Za-z0-9]*):)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))')
_FILTER_FIELDS = {"site": "site", "lang": "language", "language": "language", "type": "type"}
_TYPOGRAPHIC = re.compile('[„“”«»]([^"„“”«»]*)[„“”«»]')
"""Words in quotes as they are typed in texts and on telephones."""
_QUOTED = re.compile('"[^"]*"')
_GROUPED = re.compile(r"\bOR +-?\(|\) +OR\b")
_JOINING = frozenset(("OR", "AND"))
_LANGUAGE = re.compile("[A-Za-z]{2,3}")
_BLOCK_KINDS = {kind.value: kind for kind in BlockKind}
_LONE_FIELD = re.compile(f"({'|'.join([*_FILTER_FIELDS, *_BLOCK_KINDS])}):")
_LONE_EXAMPLE = "site:example.org or title:word"
MAX_TERMS = 64
"""Words and phrases of one question."""


class QueryTerm(NamedTuple):
    """Something to be found: one word in its forms, one as it stands, a phrase, or words that begin so."""

    words: tuple[str, ...]
    exact: bool = False
    prefix: bool = False
    blocks: tuple[BlockKind, ...] = ()


class QueryClause(NamedTuple):
    """One of the alternatives must be there, or none of them when `negated`."""

    alternatives: tuple[QueryTerm, ...]
    negated: bool = False


class FieldFilter(NamedTuple):
    """A field must have the value, or must not."""

    field: str
    value: str
    negated: bool = False


class WordQuery(NamedTuple):
    """What is looked for, where and when.

    `at` asks for the pages of that moment, now when it is None. `since` and `until` ask for everything that stood at
    some time of that span. `resources` limits the answer to some pages by their ids.
    """

    clauses: tuple[QueryClause, ...] = ()
    limits: tuple[FieldFilter, ...] = ()
    at: datetime | None = None
    since: datetime | None = None
    until: datetime | None = None
    resources: frozenset[int] | None = None

    @property
    def spans(self) -> bool:
        """Whether several versions of one page may be found."""
        return self.since is not None or self.until is not None


def parse_word_query(
    text: str,
    *,
    sites: tuple[str, ...] = (),
    languages: tuple[str, ...] = (),
    blocks: tuple[str, ...] = (),
    at: datetime | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    resources: frozenset[int] | None = None,
) -> WordQuery:
    """Reads a question; UsageError says what is wrong with it."""
    plain = _plain_words(text)
    if not plain:
        text = _checked(_TYPOGRAPHIC.sub(r'"\1"', text))
    if at is not None and (since is not None or until is not None):
        raise UsageError("a moment and a span of time exclude each other; give 'at', or 'from' and 'to'")
    if since is not None and until is not None and since > until:
        raise UsageError("the span of time ends before it begins; 'from' must not be later than 'to'")
    kinds = tuple([block_kind(name) for name in blocks])
    limits = field_filters(sites, languages) if sites or languages else ()
    if plain:
        clauses = [QueryClause((QueryTerm((word,), False, False, kinds),)) for word in plain]
        return WordQuery(tuple(clauses), limits, at, since, until, resources)
    reading = _QueryParser(kinds)
    for match in _TOKEN.finditer(nfc(text)):
        reading.take(match)
    limits = (*reading.limits, *limits)
    if not reading.clauses and not limits and resources is None:
        raise UsageError("the query is empty; give at least one word, or site: with a host")
    return WordQuery(tuple(reading.clauses), limits, at, since, until, resources)


def _plain_words(text: str) -> list[str]:
    """The words of a question that is nothing else, as most are; none where only the grammar tells what it is."""
    words = text.split(" ")
    is_plain = text.isascii() and all(map(str.isalnum, words)) and _JOINING.isdisjoint(words)
    return [word[:MAX_WORD_LENGTH].lower() for word in words] if is_plain and len(words) <= MAX_TERMS else []


def _checked(text: str) -> str:
    """A question without marks that it could not mean."""
    if _GROUPED.search(_QUOTED.sub("", text)):
        raise UsageError("parentheses do not group words; OR joins the word before it with the one behind it")
    if text.count('"') % 2:
        raise UsageError('a quotation mark is missing; write "adjacent words"')
    return text


def field_filters(sites: tuple[str, ...] = (), languages: tuple[str, ...] = ()) -> tuple[FieldFilter, ...]:
    """Only pages of one of these hosts, in one of these languages."""
    where = [FieldFilter("site", site(name)) for name in sites]
    return (*where, *(FieldFilter("language", _language_code(name)) for name in languages))


def _language_code(name: str) -> str:
    if not _LANGUAGE.fullmatch(name):
        raise UsageError(f"'{name[:40]}' is not a language code; write two or three letters, such as en")
    return name.lower()


def block_kind(name: str) -> BlockKind:
    """The kind of that name."""
    kind = _BLOCK_KINDS.get(name.lower())
    if kind is None:
        raise UsageError(f"'{name[:40]}' is not a kind of block; choose one of {', '.join(_BLOCK_KINDS)}")
    return kind


class _QueryParser:
    """Collects clauses and limits piece by piece."""

    def __init__(self, kinds: tuple[BlockKind, ...]) -> None:
        self.clauses: list[QueryClause] = []
        self.limits: list[FieldFilter] = []
        self._kinds = kinds
        self._last = self._joined = ""
        """What was read last, and what precedes an OR: the field of a filter, or what kind of words."""

    def take(self, match: re.Match[str]) -> None:
        """One piece of the question."""
        field, phrase, word = match["field"], match["phrase"], match["word"]
        text = phrase if phrase is not None else word
        if word == "OR" and not field and not match["minus"]:
            self._joined = self._last
        elif word == "AND" and not field and not match["minus"]:
            return
        elif field and field.lower() in _FILTER_FIELDS:
            name = _FILTER_FIELDS[field.lower()]
            self._join(f"{match['minus'] or ''}{name}", match[0])
            self.limits.append(FieldFilter(name, _filter_value(name, text), bool(match["minus"])))
        elif phrase is None and _LONE_FIELD.fullmatch(word):
            raise UsageError(f"nothing stands behind '{word}'; write it without a blank, as in {_LONE_EXAMPLE}")
        else:
            self._take_term(field, text, phrase is not None, bool(match["minus"]))

    def _join(self, kind: str, text: str) -> bool:
        """Whether this piece is an alternative to the one before."""
        joined, self._joined, self._last = self._joined, "", kind
        if joined not in ("", kind):
            raise UsageError(f"OR cannot join '{text[:40]}' with what stands before it; join words with words")
        return bool(joined)

    def _take_term(self, field: str | None, text: str, quoted: bool, negated: bool) -> None:
        kinds = self._kinds
        if field and field.lower() in _BLOCK_KINDS:
            kinds = (_BLOCK_KINDS[field.lower()],)
        elif field:
            text = f"{field} {text}"
        term = _query_term(text, quoted, kinds)
        if term is None:
            return
        if len(self.clauses) >= MAX_TERMS:
            raise UsageError(f"more than {MAX_TERMS} words in one query; use fewer")
        if self._join("-words" if negated else "words", f"{'-' if negated else ''}{text}"):
            self.clauses[-1] = QueryClause((*self.clauses[-1].alternatives, term), negated)
        else:
            self.clauses.append(QueryClause((term,), negated))


def _filter_value(field: str, text: str) -> str:
    if field == "language":
        return _language_code(text)
    if field == "type" and "/" not in text:
        raise UsageError(f"'{text[:40]}' is not a media type; write it in full, such as type:application/pdf")
    return site(text) if field == "site" else text.lower()


def _query_term(text: str, quoted: bool, kinds: tuple[BlockKind, ...]) -> QueryTerm | None:
    """A term, or None where there is no word in it. What falls apart into several words is a phrase."""
    words = tuple(split_words(text))
    if not words:
        return None
    prefix = not quoted and text.endswith("*")
    if not quoted and "*" in text.strip("*"):
        raise UsageError(f"'{text[:40]}' has a star in a word; it stands at the end, as in arch*, or in quotes")
    if not quoted and text.startswith("*"):
        raise UsageError(f"'{text[:40]}' begins with a star; only the end of a word can be left open, as in arch*")
    return QueryTerm(words, quoted or len(words) > 1, prefix, kinds)
