"""`/search`: words of all pages as of any date. `/duplicates`: one document under several addresses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from letopis.api.requests import ArchiveDep
from letopis.api.search import WordIndexDep
from letopis.archive import Archive
from letopis.catalog.activity import Activity, CopyRow
from letopis.errors import NotFound, UsageError
from letopis.index.near_duplicates import DuplicatePair, duplicates_in_site
from letopis.index.query_language import WordQuery, parse_word_query
from letopis.index.search_ranking import SearchHit, record_choice, record_shown
from letopis.index.search_results import SearchFacet, count_results, search, search_facets
from letopis.index.word_analysis import NearbyWord, PhraseLifetime, nearby_words, phrase_lifetime
from letopis.index.word_index import WordIndex
from letopis.model import parse_time
from letopis.urls import parse_user_url
from letopis.urls import site as site_of
from letopis.web.cache import PageCache, page_cache_of
from letopis.web.comparison import TextRun
from letopis.web.pages import ListPage, PageRoute, end_of_day, list_page, page_position, render_page, url_in_path

router = APIRouter(route_class=PageRoute)

SIZE = 20
_MOST_HITS = 10_000
"""Hits that can be paged through; whoever wants more should ask more narrowly."""
_FACETS = 8
_NEAR = 10
_SHORTEST = 4
"""Shorter words seldom narrow anything."""


@dataclass(frozen=True, slots=True)
class SearchForm:
    """What was asked, as it stands in the link."""

    q: str
    site: str = ""
    lang: str = ""
    block: str = ""
    at: str = ""
    since: str = ""

    def link(self, **changed: str) -> str:
        """The address of this question with some of it changed; empty values are left out."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__} | changed
        return "/search?" + urlencode({name: value for name, value in fields.items() if value})


class ShownHit(NamedTuple):
    """A hit with its snippet cut into plain and marked runs."""

    hit: SearchHit
    runs: list[TextRun]


@router.get("/search")
def search_page(
    request: Request, archive: ArchiveDep, words: WordIndexDep,
    q: str = "", site: str = "", lang: str = "", block: str = "", at: str = "", since: str = "", page: str = "",
) -> Response:  # fmt: skip
    """Hits with facets; without words, the form alone."""
    return _answer(request, archive, words, SearchForm(q.strip(), site, lang, block, at, since), page)


@router.get("/search/chosen")
def follow_hit(archive: ArchiveDep, url: str = "") -> Response:
    """The way from an answer to a page, where choices are counted."""
    target = parse_user_url(url)
    record_choice(archive, target)
    return RedirectResponse(f"/url/{url_in_path(target)}", 303)


def _answer(request: Request, archive: Archive, words: WordIndex, ask: SearchForm, number: str) -> Response:
    if not ask.q:
        return render_page(request, "search.html", ask=ask, hits=None, facets={}, near=[], stood=None, problem="")
    try:
        question = _question(archive, ask)
    except UsageError as error:
        return render_page(
            request, "search.html", 400, ask=ask, hits=None, facets={}, near=[], stood=None, problem=str(error)
        )
    hits = _hits(words, question, number)
    record_shown(archive, [found.hit.url for found in hits.rows])
    return render_page(
        request,
        "search.html",
        learns=archive.settings.search.learn,
        ask=ask,
        hits=hits,
        facets=_facets(search_facets(words, question)),
        near=_near(words, ask, question),
        stood=_phrase_lifetime(words, ask),
        problem="",
    )


def _question(archive: Archive, ask: SearchForm) -> WordQuery:
    now = archive.clock()
    return parse_word_query(
        ask.q,
        sites=(ask.site,) if ask.site else (),
        languages=(ask.lang,) if ask.lang else (),
        blocks=(ask.block,) if ask.block else (),
        at=end_of_day(ask.at, now) if ask.at and not ask.since else None,
        since=parse_time(ask.since, now) if ask.since else None,
        until=end_of_day(ask.at, now) if ask.at and ask.since else None,
    )


def _hits(words: WordIndex, question: WordQuery, wanted: str) -> ListPage[ShownHit]:
    total = count_results(words, question)
    number, pages = page_position(min(total, _MOST_HITS), wanted, SIZE)
    start = (number - 1) * SIZE
    rows = [ShownHit(hit, list(_runs(hit))) for hit in search(words, question, SIZE, start)]
    return ListPage(rows, number, pages, total, start)


def _runs(hit: SearchHit) -> Iterator[TextRun]:
    text, at = hit.snippet.text, 0
    for start, end in hit.snippet.marks:
        yield TextRun("same", text[at:start])
        yield TextRun("mark", text[start:end])
        at = end
    yield TextRun("same", text[at:])


def _facets(found: list[SearchFacet]) -> dict[str, list[SearchFacet]]:
    grouped: dict[str, list[SearchFacet]] = {}
    for facet in found:
        rows = grouped.setdefault(facet.field, [])
        if facet.value and len(rows) < _FACETS:
            rows.append(facet)
    return grouped


def _near(words: WordIndex, ask: SearchForm, question: WordQuery) -> list[NearbyWord]:
    """Words that stand near a single word, to narrow the question by."""
    if not ask.q.isalpha() or question.spans:
        return []
    rows = nearby_words(words, ask.q, 5, WordQuery(limits=question.limits, at=question.at), 60)
    return [row for row in rows if len(row.word) >= _SHORTEST][:_NEAR]


def _phrase_lifetime(words: WordIndex, ask: SearchForm) -> PhraseLifetime | None:
    """When the words, taken as a phrase, first and last stood anywhere."""
    phrase = ask.q.strip('"')
    if not all(letter.isalnum() or letter in " -'’" for letter in phrase):
        return None
    try:
        return phrase_lifetime(words, phrase, ask.site)
    except (NotFound, UsageError):
        return None


duplicates_router = APIRouter(route_class=PageRoute)

_MOST_GROUPS = 200
_SIZE = 25
_SHOWN = 12
_MOST_PAGES = 2000
"""Pages of a site that are compared while somebody waits; larger ones are for the command line."""


class DuplicateGroup(NamedTuple):
    """Addresses with the same bytes."""

    row: CopyRow
    urls: list[str]


@duplicates_router.get("/duplicates")
def duplicates(request: Request, archive: ArchiveDep, site: str = "", page: str = "") -> Response:
    """Exact copies in the whole archive, or exact and near ones within a site."""
    name = site_of(site) if site.strip() else ""
    return _shown(request, archive, name, page)


def _shown(request: Request, archive: Archive, site: str, number: str) -> Response:
    known = page_cache_of(request)
    too_large = bool(site) and Activity(archive.catalog.database).count_pages(site, _MOST_PAGES + 1) > _MOST_PAGES
    return render_page(
        request,
        "duplicates.html",
        site=site,
        too_large=too_large,
        groups=None if site else _groups(archive, known, number),
        pairs=list_page(_pairs(archive, known, site), number, _SIZE) if site and not too_large else None,
        hosts=known.soon("hosts", 10, lambda: archive.catalog.recent.hosts(12)) or [],
        shown=_SHOWN,
    )


def _groups(archive: Archive, known: PageCache, number: str) -> ListPage[DuplicateGroup] | None:
    """None while they are being looked for."""
    found = known.soon("copies", 30, lambda: _copies(archive))
    return None if found is None else list_page(found, number, _SIZE)


def _copies(archive: Archive) -> list[DuplicateGroup]:
    activity = Activity(archive.catalog.database)
    rows = activity.copies(_MOST_GROUPS)
    holders = activity.holders([row.content for row in rows], _SHOWN)
    return [DuplicateGroup(row, holders[row.content]) for row in rows]


def _pairs(archive: Archive, known: PageCache, site: str) -> list[DuplicatePair]:
    def found() -> list[DuplicatePair]:
        try:
            return list(duplicates_in_site(archive, site))
        except NotFound:
            return []

    return known.get(("duplicates", site), 60, found)
