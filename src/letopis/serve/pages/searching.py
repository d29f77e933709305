"""`/search`: words of all pages, now, at a past moment, or over a span of time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from letopis.archive import Archive
from letopis.errors import NotFound, UsageError
from letopis.model import parse_time
from letopis.search import (
    Facet,
    Hit,
    Near,
    Question,
    Stood,
    WordIndex,
    count,
    facets,
    near,
    parse_question,
    search,
    when,
)
from letopis.search.choosing import note_chosen, note_shown
from letopis.serve.pages.answering import PageRoute, page
from letopis.serve.pages.differing import Run
from letopis.serve.pages.paging import Part, place
from letopis.serve.pages.rendering import inside
from letopis.serve.pages.times import end_of
from letopis.serve.rest.search import TheWords
from letopis.serve.shared import TheArchive
from letopis.urls import parse_user

router = APIRouter(route_class=PageRoute)

SIZE = 20
_MOST = 10_000
"""Hits that can be paged through; whoever wants more should ask more narrowly."""
_FACETS = 8
_NEAR = 10
_LEAST = 4
"""Shorter words seldom narrow anything."""


@dataclass(frozen=True, slots=True)
class Ask:
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


class Found(NamedTuple):
    """A hit with its snippet cut into plain and marked runs."""

    hit: Hit
    runs: list[Run]


@router.get("/search")
def searched(
    request: Request, archive: TheArchive, words: TheWords,
    q: str = "", site: str = "", lang: str = "", block: str = "", at: str = "", since: str = "", page: str = "",
) -> Response:  # fmt: skip
    """Hits with facets; without words, the form alone."""
    return _answer(request, archive, words, Ask(q.strip(), site, lang, block, at, since), page)


@router.get("/search/chosen")
def went(archive: TheArchive, url: str = "") -> Response:
    """The way from an answer to a page, where choices are counted."""
    target = parse_user(url)
    note_chosen(archive, target)
    return RedirectResponse(f"/url/{inside(target)}", 303)


def _answer(request: Request, archive: Archive, words: WordIndex, ask: Ask, number: str) -> Response:
    if not ask.q:
        return page(request, "search.html", ask=ask, hits=None, facets={}, near=[], stood=None, problem="")
    try:
        question = _question(archive, ask)
    except UsageError as error:
        return page(request, "search.html", 400, ask=ask, hits=None, facets={}, near=[], stood=None, problem=str(error))
    hits = _hits(words, question, number)
    note_shown(archive, [found.hit.url for found in hits.rows])
    return page(
        request,
        "search.html",
        learns=archive.settings.search.learn,
        ask=ask,
        hits=hits,
        facets=_facets(facets(words, question)),
        near=_near(words, ask, question),
        stood=_stood(words, ask),
        problem="",
    )


def _question(archive: Archive, ask: Ask) -> Question:
    now = archive.clock()
    return parse_question(
        ask.q,
        sites=(ask.site,) if ask.site else (),
        languages=(ask.lang,) if ask.lang else (),
        blocks=(ask.block,) if ask.block else (),
        at=end_of(ask.at, now) if ask.at and not ask.since else None,
        since=parse_time(ask.since, now) if ask.since else None,
        until=end_of(ask.at, now) if ask.at and ask.since else None,
    )


def _hits(words: WordIndex, question: Question, wanted: str) -> Part[Found]:
    total = count(words, question)
    number, pages = place(min(total, _MOST), wanted, SIZE)
    start = (number - 1) * SIZE
    rows = [Found(hit, list(_runs(hit))) for hit in search(words, question, SIZE, start)]
    return Part(rows, number, pages, total, start)


def _runs(hit: Hit) -> Iterator[Run]:
    text, at = hit.snippet.text, 0
    for start, end in hit.snippet.marks:
        yield Run("same", text[at:start])
        yield Run("mark", text[start:end])
        at = end
    yield Run("same", text[at:])


def _facets(found: list[Facet]) -> dict[str, list[Facet]]:
    grouped: dict[str, list[Facet]] = {}
    for facet in found:
        rows = grouped.setdefault(facet.field, [])
        if facet.value and len(rows) < _FACETS:
            rows.append(facet)
    return grouped


def _near(words: WordIndex, ask: Ask, question: Question) -> list[Near]:
    """Words that stand near a single word, to narrow the question by."""
    if not ask.q.isalpha() or question.spans:
        return []
    rows = near(words, ask.q, 5, Question(limits=question.limits, at=question.at), 60)
    return [row for row in rows if len(row.word) >= _LEAST][:_NEAR]


def _stood(words: WordIndex, ask: Ask) -> Stood | None:
    """When the words, taken as a phrase, first and last stood anywhere."""
    phrase = ask.q.strip('"')
    if not all(letter.isalnum() or letter in " -'’" for letter in phrase):
        return None
    try:
        return when(words, phrase, ask.site)
    except (NotFound, UsageError):
        return None
