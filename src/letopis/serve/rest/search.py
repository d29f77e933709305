"""Search, words near a word, when a phrase stood, categories: as of any date."""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field

from letopis.model import BlockKind
from letopis.search import (
    Category,
    Hit,
    Question,
    WordIndex,
    categories,
    count,
    duplicates_in,
    facets,
    near,
    parse_question,
    project_resources,
    search,
    when,
)
from letopis.search.choosing import note_chosen, note_shown
from letopis.serve.problems import answers
from letopis.serve.rest.parameters import At, From, To, moment
from letopis.serve.rest.shapes import Body, Time, Url
from letopis.serve.shared import TheArchive
from letopis.urls import parse_user

router = APIRouter(tags=["search"])

Site = Annotated[str | None, Query(description="A host (host[:port]) or an address", min_length=1, max_length=8192)]
OneSite = Annotated[str, Query(description="A host (host[:port]) or an address", min_length=1, max_length=8192)]
Lang = Annotated[str | None, Query(description="Code of a language", pattern="^[A-Za-z]{2,3}$")]
_opening = threading.Lock()


def words_of(request: Request) -> WordIndex:
    """The index of words of the archive that is served, shared by all requests."""
    state = request.app.state
    with _opening:
        if getattr(state, "words", None) is None:
            state.words = WordIndex(state.archive)
        index: WordIndex = state.words
    return index


TheWords = Annotated[WordIndex, Depends(words_of)]


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
    def of(cls, hit: Hit) -> HitShape:
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


class StoodShape(BaseModel):
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
    def of(cls, category: Category) -> CategoryShape:
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


@router.get("/search", responses=answers(404))
def found(
    words: TheWords,
    q: Annotated[str, Query(description='Words, "phrases", prefix*, -not, site:, lang:, h1: ...', max_length=2000)],
    site: Site = None,
    project: Annotated[str | None, Query(max_length=64)] = None,
    block: Annotated[BlockKind | None, Query(description="Only in this kind of block")] = None,
    lang: Lang = None,
    at: At = None,
    start: From = None,
    to: To = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
    offset: Annotated[int, Query(ge=0, le=10_000)] = 0,
    faceted: Annotated[bool, Query(alias="facets", description="Count sites, languages and types too")] = False,
) -> SearchShape:
    """The best pages for a question, as of a moment."""
    archive = words.archive
    question = parse_question(
        q, sites=(site,) if site else (), languages=(lang,) if lang else (), blocks=(block.value,) if block else (),
        at=moment(archive, at), since=moment(archive, start), until=moment(archive, to),
        resources=project_resources(archive, project) if project else None,
    )  # fmt: skip
    hits = [HitShape.of(hit) for hit in search(words, question, limit, offset)]
    note_shown(archive, [hit.url for hit in hits])
    shared = [FacetShape(**asdict(facet)) for facet in facets(words, question)] if faceted else []
    return SearchShape(results=hits, total=count(words, question), facets=shared)


class ChosenBody(Body):
    """A page of an answer that somebody went to."""

    url: Url


@router.post("/search/chosen", status_code=204, response_class=Response, responses=answers())
def chosen(archive: TheArchive, body: ChosenBody) -> Response:
    """Tell which answer was chosen; counted only where `search.learn` is on, and never by whom."""
    note_chosen(archive, parse_user(body.url))
    return Response(status_code=204)


@router.get("/near", responses=answers())
def nearby(
    words: TheWords,
    word: Annotated[str, Query(min_length=1, max_length=200)],
    distance: Annotated[int, Query(ge=1, le=100)] = 5,
    site: Site = None,
    lang: Lang = None,
    at: At = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> NearListShape:
    """The words that stand near a word, most relevant first."""
    asked = parse_question(
        word, sites=(site,) if site else (), languages=(lang,) if lang else (), at=moment(words.archive, at)
    )
    rows = near(words, word, distance, Question(limits=asked.limits, at=asked.at), limit)
    return NearListShape(word=word, near=[NearShape(word=row.word, relevance=row.relevance) for row in rows])


@router.get("/when", responses=answers(404))
def stood(
    words: TheWords, phrase: Annotated[str, Query(min_length=1, max_length=1000)], site: Site = None
) -> StoodShape:
    """When a phrase first and last stood on any page."""
    return StoodShape(**asdict(when(words, phrase, site or "")))


@router.get("/categories", responses=answers(404))
def tree(
    words: TheWords, site: OneSite, at: At = None, depth: Annotated[int, Query(ge=1, le=5)] = 2
) -> CategoriesShape:
    """The pages of a site in a tree by their key words."""
    made = categories(words, site, moment(words.archive, at), depth)
    return CategoriesShape(site=site, categories=[CategoryShape.of(category) for category in made])


@router.get("/duplicates", responses=answers(404))
def doubles(words: TheWords, site: OneSite, least: Annotated[float, Query(ge=0.1, le=1.0)] = 0.8) -> DuplicatesShape:
    """Addresses of a site with the same or nearly the same document."""
    rows = [DuplicateShape(**asdict(pair)) for pair in duplicates_in(words.archive, site, least)]
    return DuplicatesShape(site=site, duplicates=rows)
