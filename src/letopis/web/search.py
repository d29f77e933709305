"""`/search`: words of all pages as of any date."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import QueryParams

from letopis.api.door import context_of
from letopis.archive.activity import recent_versions
from letopis.errors import BadUrl, NotFound, UsageError, shell_words
from letopis.index.page_text import unmarked
from letopis.index.search_ranking import SearchRow
from letopis.index.search_results import SearchFacet
from letopis.index.word_analysis import NearbyWord, PhraseHistory
from letopis.operations import Context, bind
from letopis.operations.saved_searches import SavedSearchesQuery, saved_list
from letopis.operations.words import (
    MAX_HITS,
    MAX_OFFSET,
    ChoiceCommand,
    NearWordsQuery,
    PhraseQuery,
    SearchQuery,
    near,
    note_choice,
    search,
    take_in_by_batches,
    when,
    word_index,
)
from letopis.tuples import NamedTuple
from letopis.urls import parse_user_url
from letopis.web.cache import page_cache_of
from letopis.web.languages import language_name, translatable, translate
from letopis.web.pages import PageRoute, render_page, url_in_path
from letopis.web.tables import FORMATS, ListPage, TableColumn, make_table, page_position, table_download
from letopis.web.timebar import chosen_moment, chosen_time, time_bar

router = APIRouter(route_class=PageRoute)

SIZE = 20
_FACETS = 8
_NEAR, _NEAR_PAGES = 10, 40
"""Words to narrow a question by, out of so many pages: those of all take as long as there are pages with the word."""
_AT_ONCE = 200
"""Versions that are taken into the index while somebody waits for an answer."""
_PATIENCE = 0.5
"""Seconds that a reader waits for more than that."""
_KINDS = {
    "text/html": "HTML", "application/xhtml+xml": "XHTML", "application/pdf": "PDF", "application/json": "JSON",
    "text/plain": translatable("plain text"), "text/markdown": "Markdown", "application/xml": "XML", "text/xml": "XML",
    "application/atom+xml": "Atom", "application/rss+xml": "RSS", "application/epub+zip": "EPUB", "text/csv": "CSV",
}  # fmt: skip
"""What people call the types of documents; what is not named here has its own name."""
_OTHERWISE = {"from": "since", "to": "at"}
"""Names that the HTTP interface has for dates of the form; a link with one of them means the same here."""


class SearchForm(NamedTuple):
    """What was asked, as it stands in the link; several sites, languages and kinds of blocks have blanks between."""

    q: str = ""
    site: str = ""
    lang: str = ""
    block: str = ""
    type: str = ""
    project: str = ""
    at: str = ""
    since: str = ""
    sort: str = ""
    collapse: str = ""
    explain: str = ""

    @classmethod
    def of(cls, given: QueryParams) -> SearchForm:
        """The form that a link fills in."""
        named = {our: given.getlist(name) for name, our in _OTHERWISE.items()}
        named |= {name: given.getlist(name) for name in given}
        return cls(**{name: " ".join(named.get(name, ())).strip() for name in cls._fields})

    def link(self, **changed: str) -> str:
        """The address of this question with some of it changed; empty values are left out."""
        values = self._asdict() | changed
        return "/search?" + urlencode({name: value for name, value in values.items() if value})

    def chosen(self, name: str, value: str) -> str:
        """The address with one more value of a list, or without it where it stands there."""
        values = getattr(self, name).split()
        left = [one for one in values if one != value] if value in values else [*values, value]
        return self.link(**{name: " ".join(left)})

    @property
    def chips(self) -> list[tuple[str, str]]:
        """What narrows the question, in words, each with the address of the question without it."""
        lists = [(name, value) for name in ("site", "lang", "type") for value in getattr(self, name).split()]
        return [(facet_name(name, value), self.chosen(name, value)) for name, value in lists]

    @property
    def words(self) -> str:
        """The question with its kinds of documents, as one asks in words."""
        return " ".join([self.q, *(f"type:{value}" for value in self.type.split())])

    @property
    def save_link(self) -> str:
        """Where the question is saved under a name, to be asked again; its dates are left out."""
        pairs = [("with", f"{name}={value}") for name in ("site", "lang", "block", "project")
                 for value in getattr(self, name).split()]  # fmt: skip
        return "/saved/new?" + urlencode([("q", self.words), *pairs, ("page", self.link(at="", since=""))])

    def values(self) -> dict[str, Any]:
        """The same as parameters: with a day since when, the other one is the end."""
        lists = {"site": self.site.split(), "lang": self.lang.split(), "block": self.block.split()}
        times = {"from": self.since, "to": self.at} if self.since else {"at": self.at}
        order = {"sort": self.sort, "collapse": bool(self.collapse), "explain": bool(self.explain)}
        single = {"q": self.words, "project": self.project, **order, **times}
        return {name: value for name, value in {**lists, **single}.items() if value}


def facet_name(field: str, value: str) -> str:
    """What people call a language or a kind of document that narrows a search; a site is called by its name."""
    if field == "lang":
        return language_name(value)
    return translate(_KINDS[value]) if field == "type" and value in _KINDS else value


@router.get("/search")
def search_page(request: Request, page: str = "") -> Response:
    """Hits with facets; without words, the form alone."""
    form = SearchForm.of(request.query_params)
    if not (form.at or form.since):
        form = form._replace(at=chosen_time(request))
    if not form.q:
        return _shown(request, form)
    context = context_of(request)
    try:
        query = _page_query(context, form, 1)
        if request.query_params.get("as"):
            return _file(request, context, form)
        fresh = _is_fresh(request, context)
        hits, about = _hits(context, form, page, fresh)
    except UsageError as error:
        return _shown(request, form, 400, problem=shell_words(error))
    except NotFound as error:
        return _shown(request, form, 404, problem=shell_words(error))
    return _shown(
        request, form, learns=context.archive.settings.search.learn, hits=hits, facets=_grouped(about["facets"]),
        suggestion=about["suggestion"], behind=about["behind"],
        near=_near(context, query) if fresh else [], stood=_phrase(context, query) if fresh else None,
    )  # fmt: skip


def _is_fresh(request: Request, context: Context) -> bool:
    """Whether the index has, or takes in at once, all that was recorded; more is taken in the background."""
    index = word_index(context.archive)
    if index.lag() > _AT_ONCE:
        page_cache_of(request).done_soon("words", lambda: take_in_by_batches(context), _PATIENCE)
    return index.lag() <= _AT_ONCE


HIT_COLUMNS = tuple(
    TableColumn(name, name) for name in ("url", "title", "time", "until", "gone", "version", "language", "snippet")
)


def _file(request: Request, context: Context, form: SearchForm) -> Response:
    """The hits as a file, all that searches give; the page of them for a format that is not known."""
    found: list[SearchRow] = []
    while len(found) <= MAX_OFFSET:
        asked = {**form.values(), "limit": MAX_HITS, "offset": len(found)}
        rows = list(search(context, bind(SearchQuery, asked, context.moment())))
        found += rows
        if len(rows) < MAX_HITS:
            break
    table = make_table(request, HIT_COLUMNS, found)
    return table_download(table, "search") or RedirectResponse(form.link(), 303)


def _shown(request: Request, form: SearchForm, status: int = 200, **values: Any) -> Response:
    now = context_of(request).moment()
    bar = time_bar(request, chosen_moment(request, now, "" if form.since else form.at), (), now)
    shown = {"hits": None, "facets": {}, "near": [], "stood": None, "suggestion": "", "problem": "", **values}
    shown["saved_searches"] = [] if form.q else list(saved_list(context_of(request), SavedSearchesQuery()))[:_FACETS]
    shown["stored"] = bool(recent_versions(context_of(request).archive, 1))
    return render_page(request, "search.html", status, ask=form, bar=bar, formats=FORMATS, unknown=_address(form.q),
                       facet_name=facet_name, **{"behind": 0, **shown})  # fmt: skip


def _address(text: str) -> str:
    """The address that was asked for in place of words; empty where it was none."""
    is_field = "://" not in text and ":" in text and "." not in text.partition(":")[0]
    if " " in text or is_field or "." not in text.strip("."):
        return ""
    try:
        return parse_user_url(text)
    except BadUrl:
        return ""


@router.get("/search/chosen")
def follow_hit(request: Request, url: str = "") -> Response:
    """The way from an answer to a page, where choices are counted."""
    target = note_choice(context_of(request), ChoiceCommand(url=url)).value
    return RedirectResponse(f"/url/{url_in_path(target)}", 303)


def _hits(
    context: Context, form: SearchForm, wanted: str, fresh: bool
) -> tuple[ListPage[SearchRow], Mapping[str, Any]]:
    """The page of hits that is asked for, and what is said of all of them; too far is the last one."""
    number, _ = page_position(MAX_OFFSET, wanted, SIZE)
    found = search(context, _page_query(context, form, number, fresh))
    total: int = found.about["total"]
    last, pages = page_position(min(total, MAX_OFFSET), wanted, SIZE)
    if last != number:
        found = search(context, _page_query(context, form, last, fresh))
    return ListPage(list(found), last, pages, total, (last - 1) * SIZE), found.about


def _page_query(context: Context, form: SearchForm, number: int, fresh: bool = True) -> SearchQuery:
    paging = {"facets": True, "fresh": fresh, "limit": SIZE, "offset": (number - 1) * SIZE}
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
    if not unmarked(query.query).isalpha() or query.start is not None:
        return []
    place = NearWordsQuery(
        word=query.query, sites=query.sites, languages=query.languages, at=query.at, limit=_NEAR, pages=_NEAR_PAGES
    )
    try:
        return list(near(context, place))
    except (NotFound, UsageError):
        return []


def _phrase(context: Context, query: SearchQuery) -> PhraseHistory | None:
    """When the words, taken as a phrase, first and last stood anywhere."""
    phrase = query.query.strip('"')
    is_phrase = not any(word in ("OR", "AND") or word.startswith("-") for word in phrase.split())
    if not (is_phrase and all(letter.isalnum() or letter in " -'’" for letter in unmarked(phrase))):
        return None
    try:
        return when(context, PhraseQuery(phrase=phrase, sites=query.sites)).value
    except (NotFound, UsageError):
        return None
