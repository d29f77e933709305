"""Questions about words, as of any date: search, words near a word, phrases, categories; base forms of words."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial, wraps
from html import unescape
from itertools import count
from typing import TypeVar

from letopis import extract
from letopis.archive import READ, Archive
from letopis.archive.accounts import project_pages, projects_of
from letopis.archive.audit import UseCounter
from letopis.archive.cluster import spread_over
from letopis.archive.index_facts import gone_since, record_choice, record_shown, require_site
from letopis.change.fingerprints import LONG_PARAGRAPH, normalized_words
from letopis.errors import UsageError
from letopis.index.query_language import WordQuery, field_filters, parse_word_query
from letopis.index.search_ranking import SearchRow, search_row
from letopis.index.search_results import MAX_SORTED, SearchFacet, SearchOrder, count_results, search_facets
from letopis.index.search_results import search as best_pages
from letopis.index.vocabulary import corrected_query
from letopis.index.word_analysis import (
    FirstPlace,
    NearbyWord,
    PageCategory,
    PhraseHistory,
    category_lines,
    first_places,
    nearby_words,
    phrase_history,
    site_categories,
)
from letopis.index.word_index import WordIndex, tells_of_damage
from letopis.model import rfc3339
from letopis.model.printing import Styled, bold, counted, printable
from letopis.operations.context import Context
from letopis.operations.operation import Rows, Value, operation
from letopis.operations.parameters import CLI_ONLY, NOT_CLI, Parameters, parameter
from letopis.tuples import NamedTuple
from letopis.urls import parse_user_url

P = TypeVar("P")
A = TypeVar("A")
MAX_HITS, MAX_OFFSET = 1000, 10_000
MAX_NEAR = 10_000
_MAX_FILTERS = 100
_MAX_PARAGRAPHS, _SHOWN_PARAGRAPH = 500, 200
_AT = "As of this time; default: now."
_SITE = "A host (host[:port]) or an address."
_BREATH = 0.01
"""Seconds between two batches in which somebody else gets their turn."""


def word_index(archive: Archive) -> WordIndex:
    """The index of words, which may be behind; one is shared by all who ask in this process."""
    return archive.attached(WordIndex)


def current_words(context: Context, *, rebuild: bool = False) -> WordIndex:
    """The words of all versions up to now, the pages read here or by a cluster that sees them."""
    archive = context.archive
    with context.reading_on(word_index(archive).is_made), spread_over(archive.settings, where_shared=True) as runner:
        index = word_index(archive) if runner is None else WordIndex(archive, runner)
        take_in = index.rebuild if rebuild else index.catch_up
        of = archive.stats().versions if rebuild else index.lag()
        take_in(partial(context.counted_progress, of=of, what="versions"), context.progress.cancelled)
    context.raise_if_cancelled()
    return word_index(archive)


def anew_if_damaged(question: Callable[[Context, P], A]) -> Callable[[Context, P], A]:
    """An operation that asks the index of words; a damaged one is built anew from what is archived, and asked again."""

    @wraps(question)
    def answered(context: Context, asked: P) -> A:
        try:
            return question(context, asked)
        except BaseException as error:
            if not tells_of_damage(error):
                raise
        word_index(context.archive).rebuild()
        return question(context, asked)

    return answered


def take_in_by_batches(context: Context) -> int:
    """Brings the index up to date, a batch at a time, so that others may write in between; how many versions it took.

    By a writer of its own: whoever asks meanwhile sees the index as it was, and waits for nothing.
    """
    index, done = WordIndex(context.archive), 0
    while index.lag():
        batches = count()
        done += index.catch_up(stop=lambda batches=batches: next(batches) > 0)  # type: ignore[misc]
        time.sleep(_BREATH)
    return done


def _sites_parameter() -> tuple[str, ...]:
    sites: tuple[str, ...] = parameter(
        "Only this host or the host of this URL; can be repeated.",
        default=(), named="site", attribute="site", metavar="SITE", at_most=_MAX_FILTERS,
    )  # fmt: skip
    return sites


def _languages_parameter() -> tuple[str, ...]:
    languages: tuple[str, ...] = parameter(
        "Only pages in this language, such as en; can be repeated.",
        default=(), named="lang", attribute="lang", metavar="CODE", at_most=_MAX_FILTERS,
    )  # fmt: skip
    return languages


class SearchQuery(Parameters):
    """What to search for, where and when, and how much of the answer to return."""

    query: str = parameter(
        'Words, "phrases", prefix*, -not, OR, site:HOST, lang:CODE, type:MEDIA/TYPE, title:word ...',
        default="", named="q", attribute="query", argument=True, metavar="[QUERY]", longest=4096,
    )  # fmt: skip
    sites: tuple[str, ...] = _sites_parameter()
    project: str | None = parameter("Only pages of this project.", default=None, metavar="NAME", longest=64)
    blocks: tuple[str, ...] = parameter(
        "Only in this kind of block: title, h1, paragraph, item, cell, link, alt ...; can be repeated.",
        default=(), named="block", attribute="block", metavar="KIND", at_most=_MAX_FILTERS,
    )  # fmt: skip
    languages: tuple[str, ...] = _languages_parameter()
    at: datetime | None = parameter(_AT, default=None, ends_day=True)
    start: datetime | None = parameter(
        "Only text that was on a page at this time or later.", default=None, named="from"
    )
    to: datetime | None = parameter(
        "Only text that was on a page at this time or earlier.", default=None, ends_day=True
    )
    limit: int = parameter("Maximum number of pages.", default=10, at_least=1, at_most=MAX_HITS)
    offset: int = parameter("Pages to skip.", default=0, at_least=0, at_most=MAX_OFFSET)
    facets: bool = parameter("Count sites, languages and types of the answer too.", default=False, doors=NOT_CLI)
    facets_alone: bool = parameter(
        "Count sites, languages and types of the answer instead.", default=False, flags=("--facets",), doors=CLI_ONLY
    )
    sort: SearchOrder = parameter(
        f"By how well pages fit, by the date of the version, or by rank; of the {MAX_SORTED} that fit best.",
        default="relevance",
    )
    collapse: bool = parameter("Collapse pages with nearly the same text under the first of them.", default=False)
    explain: bool = parameter("Explain each score.", default=False)
    fresh: bool = parameter(
        "Index new versions first; otherwise 'behind' counts the versions that are not searchable yet.",
        default=True, doors=NOT_CLI,
    )  # fmt: skip
    rebuild: bool = parameter("Rebuild the index first.", default=False, doors=CLI_ONLY)

    def __post_init__(self) -> None:
        """A question that cannot be read is refused at once, in every door."""
        if not self.only_rebuilds:
            self.question(frozenset() if self.project else None)

    @property
    def only_rebuilds(self) -> bool:
        """Whether nothing is asked."""
        return self.rebuild and not (self.query or self.sites or self.languages or self.project)

    @property
    def sites_in_query(self) -> list[str]:
        """The hosts that the words themselves name."""
        limits = () if self.only_rebuilds else self.question(frozenset()).limits
        return [limit.value for limit in limits if limit.field == "site" and not limit.negated]

    def question(self, resources: frozenset[int] | None = None) -> WordQuery:
        """The same in the words of the index; `resources` are the pages of the project."""
        return parse_word_query(
            self.query, sites=self.sites, languages=self.languages, blocks=self.blocks,
            at=self.at, since=self.start, until=self.to, resources=resources,
        )  # fmt: skip


def _shown_hit(row: SearchRow) -> Styled:
    """A hit for people at a terminal, with bold words."""
    gone = f"  gone since {rfc3339(row.gone)}" if row.gone else ""
    more = f"  and {len(row.similar)} more with nearly the same text" if row.similar else ""
    found = printable(f"  {row.url}  {rfc3339(row.time)}  version {row.version}{gone}{more}")
    return Styled("\n".join([bold(row.title or row.url), found, *_shown_reason(row), f"  {_shown_snippet(row)}", ""]))


def _shown_snippet(row: SearchRow) -> Styled:
    """The words around; those between marks are bold."""
    parts = [unescape(part) for part in re.split("</?mark>", row.snippet)]
    return Styled("".join(bold(part) if odd % 2 else printable(part) for odd, part in enumerate(parts)))


def _shown_reason(row: SearchRow) -> Iterator[str]:
    why = row.why
    if why is not None:
        fit = f"(words {why.words:.3f} + links {why.links:.3f})" if why.links else f"words {why.words:.3f}"
        named = f', called "{why.named}" by links' if why.links else ""
        yield printable(
            f"  {row.score:.3f} = {fit} x freshness {why.freshness:.3f} x rank {why.rank:.3f}; "
            f"found as {', '.join(why.found_as) or 'nothing in the text'}{named}"
        )


@operation(
    "search", right=READ, row_key=("url",), verb="search", route=("GET", "/search"), step="search", listed="results",
    element="hit", about={"query": str, "total": int, "facets": list[SearchFacet], "suggestion": str, "behind": int},
    sentence=_shown_hit, on_cluster=True, errors=(404,),
    examples=(
        "letopis search katedra",
        "letopis search '\"exact phrase\" prefix* site:example.org'",
        "letopis search archive --at 2024-01-31 --lang en --block h1",
        "letopis search -- 'archive -wayback'",
        "letopis search --rebuild --cluster tcp://scheduler.example:8786",
    ),
    tool=True,
)  # fmt: skip
@anew_if_damaged
def search(context: Context, asked: SearchQuery) -> Rows[SearchRow]:
    """Find pages by their words, best first.

    Plain words are found in all their forms, "words in quotes" as they stand. Further: prefix*, -not, OR, site:HOST,
    lang:CODE, type:MEDIA/TYPE, and title:word or h1:"a phrase" for a kind of block.
    """
    _require_sites(context, (*asked.sites, *asked.sites_in_query))
    pages = _project_pages(context.archive, asked.project)
    if not asked.fresh:
        with word_index(context.archive).as_it_is():
            return _found(context, asked, word_index(context.archive), pages)
    index = current_words(context, rebuild=asked.rebuild)
    return Rows(()) if asked.only_rebuilds else _found(context, asked, index, pages)


def _found(context: Context, asked: SearchQuery, index: WordIndex, pages: frozenset[int] | None) -> Rows[SearchRow]:
    behind = 0 if asked.fresh else index.lag()  # before the answer: what is taken in meanwhile may be missing from it
    question = asked.question(pages)
    rows = [] if asked.facets_alone else _hits(context, index, question, asked)
    total = count_results(index, question)
    suggestion = "" if total else _suggested_query(index, asked, pages)
    _count_search(context, asked, total)
    about = {
        "query": asked.query,
        "total": total,
        "facets": search_facets(index, question) if asked.facets or asked.facets_alone else [],
        "suggestion": suggestion,
        "behind": behind,
    }
    return Rows(
        rows, about, remark="" if asked.facets_alone else _search_remark(index, asked, (rows, total), suggestion)
    )


def _count_search(context: Context, asked: SearchQuery, total: int) -> None:
    """One more search of somebody through HTTP; further pages of an answer are no search of their own."""
    if context.origin == "http" and not context.unseen and not asked.offset:
        counter = context.archive.attached(UseCounter)
        counter.add("searches")
        if not total:
            counter.add("unanswered")


def _hits(context: Context, index: WordIndex, question: WordQuery, asked: SearchQuery) -> list[SearchRow]:
    found = best_pages(
        index, question, asked.limit, asked.offset, explain=asked.explain, order=asked.sort, collapse=asked.collapse
    )
    if not context.unseen:
        record_shown(context.archive, [hit.url for hit in found])
    newest = {} if question.at or question.spans else {hit.url: hit.time for hit in found}
    gone = gone_since(context.archive, newest) if newest else {}
    return [search_row(hit, asked.explain, gone.get(hit.url)) for hit in found]


def _suggested_query(index: WordIndex, asked: SearchQuery, pages: frozenset[int] | None) -> str:
    """The question with words that the archive has for those that it has not, or without quotes.

    Nothing where that finds no page.
    """
    for text in (corrected_query(index.snapshot(), asked.query), asked.query.replace('"', "")):
        if text == asked.query:
            continue
        # Without quotes a text may not be a question at all.
        with suppress(UsageError):
            question = SearchQuery(**{**vars(asked), "query": text}).question(pages)
            if question.clauses and count_results(index, question):
                return text
    return ""


def _search_remark(index: WordIndex, asked: SearchQuery, found: tuple[list[SearchRow], int], suggestion: str) -> str:
    rows, total = found
    if suggestion:
        return f"nothing found; did you mean: {suggestion}"
    if not rows and asked.offset and total:
        return f"no more results: {counted(total, 'page')} found, and you skipped {asked.offset}"
    if not rows:
        return "nothing found; try fewer words, another date, or a prefix*"
    behind = index.names_lag() if asked.explain else 0
    return f"texts of links are {behind} versions behind; rebuild the index to include them" if behind else ""


def _require_sites(context: Context, sites: tuple[str, ...]) -> None:
    for name in sites:
        require_site(context.archive, name)


def _project_pages(archive: Archive, project: str | None) -> frozenset[int] | None:
    if not project:
        return None
    return frozenset(row.id for row in project_pages(archive, projects_of(archive).show(project)))


class NearWordsQuery(Parameters):
    """Near which word, within which distance, and where."""

    word: str = parameter("One word, in any of its forms.", argument=True, attribute="of", longest=200)
    distance: int = parameter("Maximum distance in words.", default=5, attribute="between", at_least=1, at_most=100)
    sites: tuple[str, ...] = _sites_parameter()
    languages: tuple[str, ...] = _languages_parameter()
    at: datetime | None = parameter(_AT, default=None, ends_day=True)
    limit: int = parameter("Maximum number of words.", default=50, at_least=1, at_most=MAX_NEAR)
    pages: int | None = parameter(
        "Number of best matching pages to read; default: all.", default=None, at_least=1, at_most=10_000_000
    )

    def __post_init__(self) -> None:
        """A place that cannot be read is refused at once."""
        self.place()

    def place(self) -> WordQuery:
        """Where and when."""
        return WordQuery(limits=field_filters(self.sites, self.languages), at=self.at)


@operation(
    "near", right=READ, verb="near", route=("GET", "/near"), step="wordprefix", element="near",
    about={"word": str, "distance": int}, errors=(404,),
    examples=("letopis near katedra", "letopis near system --distance 3 --site example.org --at yesterday"),
)  # fmt: skip
@anew_if_damaged
def near(context: Context, asked: NearWordsQuery) -> Rows[NearbyWord]:
    """List the words that occur near a word in one block, in base forms.

    The relevance of a word is the sum of 1 / distance over all places where both stand.
    """
    _require_sites(context, asked.sites)
    index = current_words(context)
    rows = nearby_words(
        index, asked.word, asked.distance, asked.place(), asked.limit, context.steps_of("pages"), asked.pages
    )
    return Rows(rows, {"word": asked.word, "distance": asked.distance})


class PhraseQuery(Parameters):
    """Which phrase, and where."""

    phrase: str = parameter("Consecutive words.", argument=True, longest=1000)
    sites: tuple[str, ...] = _sites_parameter()


def _shown_phrase(found: PhraseHistory) -> str:
    ends = f"gone by {rfc3339(found.gone)}" if found.gone else "still there at the last check"
    return (
        f"first {rfc3339(found.first)}  {found.first_url}\nlast  {rfc3339(found.last)}  {found.last_url}\n"
        f"{ends}; {counted(found.versions, 'version')} of {counted(found.pages, 'page')}"
    )


@operation(
    "when", right=READ, verb="when", route=("GET", "/when"), step="when", sentence=_shown_phrase, errors=(404,),
    examples=("letopis when 'terms of service'", "letopis when katedra --site example.org"), tool=True,
)  # fmt: skip
@anew_if_damaged
def when(context: Context, asked: PhraseQuery) -> Value[PhraseHistory]:
    """Find when a phrase first and last appeared on any page, over all versions."""
    _require_sites(context, asked.sites)
    return Value(phrase_history(current_words(context), asked.phrase, *asked.sites))


class OriginQuery(Parameters):
    """Of which version of which page."""

    url: str = parameter("Address of the page.", argument=True)
    at: datetime | None = parameter("The version valid at this time; default: the newest.", default=None, ends_day=True)


class ParagraphOrigin(NamedTuple):
    """A long paragraph of a page, and where in the whole archive it first appeared; `elsewhere` if on another page."""

    paragraph: str
    characters: int
    first_url: str
    first_time: datetime | None
    elsewhere: bool


@operation(
    "origin", right=READ, verb="origin", route=("GET", "/origin"), about={"url": str, "known": float | None},
    columns=("first_time", "first_url", "elsewhere", "paragraph"), errors=(404,),
    examples=(
        "letopis origin https://example.org/article",
        "letopis origin https://example.org/ --at 2024-01-31 --json",
    ),
)  # fmt: skip
@anew_if_damaged
def origin(context: Context, asked: OriginQuery) -> Rows[ParagraphOrigin]:
    """Find where and when each long paragraph of a page first appeared in the archive.

    Long are paragraphs of 50 characters and more; 'known' is the share of their length that stood on other pages
    before: 1 for a page that is made wholly of paragraphs of others.
    """
    url = parse_user_url(asked.url)
    found = context.archive.get(url, at=asked.at)
    page = extract.read_page(found.body, found.url, found.headers, detect_language=False)
    paragraphs = [block.text for block in page.blocks if len(normalized_words(block.text)) >= LONG_PARAGRAPH]
    places = first_places(current_words(context), paragraphs[:_MAX_PARAGRAPHS])
    rows = []
    for text, place in zip(paragraphs, places, strict=False):
        context.raise_if_cancelled()
        rows.append(_paragraph_origin(url, text, place))
    whole = sum(row.characters for row in rows)
    known = sum(row.characters for row in rows if row.elsewhere) / whole if whole else None
    remark = "the page has no long paragraphs" if known is None else f"{known:.0%} of it was on other pages before"
    return Rows(rows, {"url": url, "known": known}, remark=remark)


def _paragraph_origin(url: str, text: str, place: FirstPlace | None) -> ParagraphOrigin:
    size, shown = len(normalized_words(text)), text[:_SHOWN_PARAGRAPH]
    if place is None:
        return ParagraphOrigin(shown, size, url, None, False)
    return ParagraphOrigin(shown, size, place.url, place.time, place.url != url)


class CategoriesQuery(Parameters):
    """Of which site, when, and how deep."""

    site: str = parameter(_SITE, argument=True)
    at: datetime | None = parameter(_AT, default=None, ends_day=True)
    depth: int = parameter("Levels of the tree.", default=2, at_least=1, at_most=5)


def _shown_category(category: PageCategory) -> str:
    return "\n".join(category_lines(category))


@operation(
    "categories", right=READ, verb="categories", route=("GET", "/categories"), step="categories", element="category",
    about={"site": str, "at": datetime}, sentence=_shown_category, errors=(404,),
    examples=("letopis categories example.org", "letopis categories example.org --at 2024-01-31 --json"),
)  # fmt: skip
@anew_if_damaged
def categories(context: Context, asked: CategoriesQuery) -> Rows[PageCategory]:
    """Sort the pages of a site into a tree by their key words.

    A page is in the category whose name weighs most among its own key words.
    """
    host = require_site(context.archive, asked.site)
    rows = site_categories(current_words(context), host, asked.at, asked.depth, context.steps_of("pages"))
    return Rows(rows, {"site": host, "at": context.moment(asked.at)})


class ChoiceCommand(Parameters):
    """The page that somebody opened."""

    url: str = parameter("A page of an answer.")


@operation("chosen", right=READ, route=("POST", "/search/chosen"), status=204)
def note_choice(context: Context, asked: ChoiceCommand) -> Value[str]:
    """Record which result was chosen; only if `search.learn` is on, and never by whom."""
    url = parse_user_url(asked.url)
    record_choice(context.archive, url)
    return Value(url)
