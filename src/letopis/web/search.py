"""`/search`: words of all pages as of any date. `/duplicates`: one document under several addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import QueryParams

from letopis.api.door import context_of
from letopis.archive.activity import busiest_hosts
from letopis.archive.index_facts import count_site_pages, require_site
from letopis.errors import NotFound, UsageError, shell_words
from letopis.index.near_duplicates import DuplicatePair
from letopis.index.search_ranking import SearchRow
from letopis.index.search_results import SearchFacet
from letopis.index.word_analysis import NearbyWord, PhraseHistory
from letopis.operations import Context, bind
from letopis.operations.duplicates import CopiesQuery, DocumentCopies, DuplicatesQuery, copies, duplicates
from letopis.operations.words import (
    MAX_OFFSET,
    ChoiceCommand,
    NearWordsQuery,
    PhraseQuery,
    SearchQuery,
    near,
    note_choice,
    search,
    when,
)
from letopis.web.cache import page_cache_of
from letopis.web.pages import ListPage, PageRoute, list_page, page_position, render_page, url_in_path
from letopis.web.timebar import chosen_moment, chosen_time, time_bar

router = APIRouter(route_class=PageRoute)

SIZE = 20
_FACETS = 8
_NEAR, _NEAR_CANDIDATES = 10, 60
_SHORTEST = 4
"""Shorter words seldom narrow anything."""


@dataclass(frozen=True, slots=True)
class SearchForm:
    """What was asked, as it stands in the link; several sites, languages and kinds of blocks have blanks between."""

    q: str = ""
    site: str = ""
    lang: str = ""
    block: str = ""
    project: str = ""
    at: str = ""
    since: str = ""

    @classmethod
    def of(cls, given: QueryParams) -> SearchForm:
        """The form that a link fills in."""
        return cls(**{one.name: " ".join(given.getlist(one.name)).strip() for one in fields(cls)})

    def link(self, **changed: str) -> str:
        """The address of this question with some of it changed; empty values are left out."""
        values = {one.name: getattr(self, one.name) for one in fields(self)} | changed
        return "/search?" + urlencode({name: value for name, value in values.items() if value})

    def values(self) -> dict[str, Any]:
        """The same as parameters: with a day since when, the other one is the end."""
        lists = {"site": self.site.split(), "lang": self.lang.split(), "block": self.block.split()}
        times = {"from": self.since, "to": self.at} if self.since else {"at": self.at}
        single = {"q": self.q, "project": self.project, **times}
        return {name: value for name, value in {**lists, **single}.items() if value}


@router.get("/search")
def search_page(request: Request, page: str = "") -> Response:
    """Hits with facets; without words, the form alone."""
    form = SearchForm.of(request.query_params)
    if not (form.at or form.since):
        form = replace(form, at=chosen_time(request))
    if not form.q:
        return _shown(request, form)
    context = context_of(request)
    try:
        query = _page_query(context, form, 1)
        hits, about = _hits(context, form, page)
    except UsageError as error:
        return _shown(request, form, 400, problem=shell_words(error))
    except NotFound as error:
        return _shown(request, form, 404, problem=shell_words(error))
    return _shown(
        request, form, learns=context.archive.settings.search.learn, hits=hits, facets=_grouped(about["facets"]),
        suggestion=about["suggestion"], near=_near(context, query), stood=_phrase(context, query),
    )  # fmt: skip


def _shown(request: Request, form: SearchForm, status: int = 200, **values: Any) -> Response:
    now = context_of(request).moment()
    bar = time_bar(request, chosen_moment(request, now, "" if form.since else form.at), (), now)
    shown = {"hits": None, "facets": {}, "near": [], "stood": None, "suggestion": "", "problem": "", **values}
    return render_page(request, "search.html", status, ask=form, bar=bar, **shown)


@router.get("/search/chosen")
def follow_hit(request: Request, url: str = "") -> Response:
    """The way from an answer to a page, where choices are counted."""
    target = note_choice(context_of(request), ChoiceCommand(url=url)).value
    return RedirectResponse(f"/url/{url_in_path(target)}", 303)


def _hits(context: Context, form: SearchForm, wanted: str) -> tuple[ListPage[SearchRow], Mapping[str, Any]]:
    """The page of hits that is asked for, and what is said of all of them; too far is the last one."""
    number, _ = page_position(MAX_OFFSET, wanted, SIZE)
    found = search(context, _page_query(context, form, number))
    total: int = found.about["total"]
    last, pages = page_position(min(total, MAX_OFFSET), wanted, SIZE)
    if last != number:
        found = search(context, _page_query(context, form, last))
    return ListPage(list(found), last, pages, total, (last - 1) * SIZE), found.about


def _page_query(context: Context, form: SearchForm, number: int) -> SearchQuery:
    paging = {"facets": True, "limit": SIZE, "offset": (number - 1) * SIZE}
    return bind(SearchQuery, {**form.values(), **paging}, context.moment())


def _grouped(found: list[SearchFacet]) -> dict[str, list[SearchFacet]]:
    grouped: dict[str, list[SearchFacet]] = {}
    for facet in found:
        rows = grouped.setdefault(facet.field, [])
        if facet.value and len(rows) < _FACETS:
            rows.append(facet)
    return grouped


def _near(context: Context, query: SearchQuery) -> list[NearbyWord]:
    """Words that stand near a single word, to narrow the question by."""
    if not query.query.isalpha() or query.start is not None:
        return []
    place = NearWordsQuery(
        word=query.query, sites=query.sites, languages=query.languages, at=query.at, limit=_NEAR_CANDIDATES
    )
    try:
        rows = list(near(context, place))
    except (NotFound, UsageError):
        return []
    return [row for row in rows if len(row.word) >= _SHORTEST][:_NEAR]


def _phrase(context: Context, query: SearchQuery) -> PhraseHistory | None:
    """When the words, taken as a phrase, first and last stood anywhere."""
    phrase = query.query.strip('"')
    if not all(letter.isalnum() or letter in " -'’" for letter in phrase):
        return None
    try:
        return when(context, PhraseQuery(phrase=phrase, sites=query.sites)).value
    except (NotFound, UsageError):
        return None


duplicates_router = APIRouter(route_class=PageRoute)

_SIZE = 25
_MOST_PAGES = 2000
"""Pages of a site that are compared while somebody waits; larger ones are for the command line."""


@duplicates_router.get("/duplicates")
def duplicates_page(request: Request, site: str = "", page: str = "") -> Response:
    """Exact copies in the whole archive, or exact and near ones within a site."""
    context, known = context_of(request), page_cache_of(request)
    name = require_site(context.archive, site) if site.strip() else ""
    too_large = bool(name) and count_site_pages(context.archive, name, _MOST_PAGES + 1) > _MOST_PAGES
    pairs = known.get(("duplicates", name), 60, lambda: _pairs(context, name)) if name and not too_large else None
    groups = None if name else known.soon("copies", 30, lambda: _copies(context))
    return render_page(
        request,
        "duplicates.html",
        site=name,
        too_large=too_large,
        groups=None if groups is None else list_page(groups, page, _SIZE),
        pairs=None if pairs is None else list_page(pairs, page, _SIZE),
        hosts=known.soon("hosts", 10, lambda: busiest_hosts(context.archive, 12)) or [],
    )


def _pairs(context: Context, site: str) -> list[DuplicatePair]:
    try:
        return list(duplicates(context, DuplicatesQuery(site=site)))
    except NotFound:  # Its pages were checked, and none of them ever was there.
        return []


def _copies(context: Context) -> list[DocumentCopies]:
    return list(copies(context, CopiesQuery()))
