"""REST for search: pages, words near a word, the history of a phrase, categories, duplicates, as of any date."""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field

from letopis.api.models import RequestBody, Time, Url
from letopis.api.requests import ArchiveDep, AtParam, FromParam, ToParam, parse_moment, problem_responses
from letopis.index.near_duplicates import duplicates_in_site
from letopis.index.query_language import WordQuery, parse_word_query
from letopis.index.search_ranking import SearchHit, record_choice, record_shown
from letopis.index.search_results import count_results, project_resources, search, search_facets
from letopis.index.word_analysis import PageCategory, nearby_words, phrase_lifetime, site_categories
from letopis.index.word_index import WordIndex
from letopis.model import BlockKind
from letopis.urls import parse_user_url

router = APIRouter(tags=["search"])

Site = Annotated[str | None, Query(description="A host (host[:port]) or an address", min_length=1, max_length=8192)]
OneSite = Annotated[str, Query(description="A host (host[:port]) or an address", min_length=1, max_length=8192)]
Lang = Annotated[str | None, Query(description="Code of a language", pattern="^[A-Za-z]{2,3}$")]
_opening = threading.Lock()


def word_index_of(request: Request) -> WordIndex:
    """The index of words of the archive that is served, shared by all requests."""
    state = request.app.state
    with _opening:
        if getattr(state, "words", None) is None:
            state.words = WordIndex(state.archive)
        index: WordIndex = state.words
    return index


WordIndexDep = Annotated[WordIndex, Depends(word_index_of)]


class HitShape(BaseModel):
    """One page of an answer; `snippet` is safe HTML with hits in `<mark>`."""

    url: str
    title: str
    snippet: str
    score: float
    time: Time
    version: int
    until: Time | None
    language: str

    @classmethod
    def of(cls, hit: SearchHit) -> HitShape:
        """From the unit's value."""
        names = ("url", "title", "time", "version", "until", "language")
        return cls(snippet=hit.snippet.html, score=round(hit.score, 4), **{name: getattr(hit, name) for name in names})


class FacetShape(BaseModel):
    """How many pages of an answer share a value."""

    field: str
    value: str
    count: int


class SearchShape(BaseModel):
    """An answer: some of its pages, how many there are in all, and what they share."""

    results: list[HitShape]
    total: int
    facets: list[FacetShape]


class NearShape(BaseModel):
    """A base form with the sum of 1 / distance."""

    word: str
    relevance: float


class NearListShape(BaseModel):
    """Words near a word."""

    word: str
    near: list[NearShape]


class PhraseHistory(BaseModel):
    """The life of a phrase, as `letopis when --json` prints it."""

    phrase: str
    first: Time
    first_url: str
    last: Time
    last_url: str
    gone: Time | None
    pages: int
    versions: int


class CategoryShape(BaseModel):
    """Pages joined by a key word; the rest has an empty name."""

    name: str
    words: list[str]
    pages: list[str]
    children: list[CategoryShape] = Field(default_factory=list)

    @classmethod
    def of(cls, category: PageCategory) -> CategoryShape:
        """From the unit's value."""
        inner = [cls.of(child) for child in category.children]
        return cls(name=category.name, words=list(category.words), pages=list(category.pages), children=inner)


class CategoriesShape(BaseModel):
    """The category tree of a site."""

    site: str
    categories: list[CategoryShape]


class DuplicateShape(BaseModel):
    """Two addresses with one document."""

    url: str
    other: str
    likeness: float
    exact: bool


class DuplicatesShape(BaseModel):
    """Duplicates within a site."""

    site: str
    duplicates: list[DuplicateShape]


@router.get("/search", responses=problem_responses(404))
def search_pages(
    words: WordIndexDep,
    q: Annotated[str, Query(description='Words, "phrases", prefix*, -not, site:, lang:, h1: ...', max_length=2000)],
    site: Site = None,
    project: Annotated[str | None, Query(max_length=64)] = None,
    block: Annotated[BlockKind | None, Query(description="Only in this kind of block")] = None,
    lang: Lang = None,
    at: AtParam = None,
    start: FromParam = None,
    to: ToParam = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
    offset: Annotated[int, Query(ge=0, le=10_000)] = 0,
    faceted: Annotated[bool, Query(alias="facets", description="Count sites, languages and types too")] = False,
) -> SearchShape:
    """The best pages for a question, as of a moment."""
    archive = words.archive
    question = parse_word_query(
        q, sites=(site,) if site else (), languages=(lang,) if lang else (), blocks=(block.value,) if block else (),
        at=parse_moment(archive, at), since=parse_moment(archive, start), until=parse_moment(archive, to),
        resources=project_resources(archive, project) if project else None,
    )  # fmt: skip
    hits = [HitShape.of(hit) for hit in search(words, question, limit, offset)]
    record_shown(archive, [hit.url for hit in hits])
    shared = [FacetShape(**asdict(facet)) for facet in search_facets(words, question)] if faceted else []
    return SearchShape(results=hits, total=count_results(words, question), facets=shared)


class ChosenBody(RequestBody):
    """A page of an answer that somebody went to."""

    url: Url


@router.post("/search/chosen", status_code=204, response_class=Response, responses=problem_responses())
def note_choice(archive: ArchiveDep, body: ChosenBody) -> Response:
    """Tell which answer was chosen; counted only where `search.learn` is on, and never by whom."""
    record_choice(archive, parse_user_url(body.url))
    return Response(status_code=204)


@router.get("/near", responses=problem_responses())
def words_near(
    words: WordIndexDep,
    word: Annotated[str, Query(min_length=1, max_length=200)],
    distance: Annotated[int, Query(ge=1, le=100)] = 5,
    site: Site = None,
    lang: Lang = None,
    at: AtParam = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> NearListShape:
    """The words that stand near a word, most relevant first."""
    asked = parse_word_query(
        word, sites=(site,) if site else (), languages=(lang,) if lang else (), at=parse_moment(words.archive, at)
    )
    rows = nearby_words(words, word, distance, WordQuery(limits=asked.limits, at=asked.at), limit)
    return NearListShape(word=word, near=[NearShape(word=row.word, relevance=row.relevance) for row in rows])


@router.get("/when", responses=problem_responses(404))
def phrase_history(
    words: WordIndexDep, phrase: Annotated[str, Query(min_length=1, max_length=1000)], site: Site = None
) -> PhraseHistory:
    """When a phrase first and last stood on any page."""
    return PhraseHistory(**asdict(phrase_lifetime(words, phrase, site or "")))


@router.get("/categories", responses=problem_responses(404))
def category_tree(
    words: WordIndexDep, site: OneSite, at: AtParam = None, depth: Annotated[int, Query(ge=1, le=5)] = 2
) -> CategoriesShape:
    """The pages of a site in a tree by their key words."""
    made = site_categories(words, site, parse_moment(words.archive, at), depth)
    return CategoriesShape(site=site, categories=[CategoryShape.of(category) for category in made])


@router.get("/duplicates", responses=problem_responses(404))
def site_duplicates(
    words: WordIndexDep, site: OneSite, least: Annotated[float, Query(ge=0.1, le=1.0)] = 0.8
) -> DuplicatesShape:
    """Addresses of a site with the same or nearly the same document."""
    rows = [DuplicateShape(**asdict(pair)) for pair in duplicates_in_site(words.archive, site, least)]
    return DuplicatesShape(site=site, duplicates=rows)
