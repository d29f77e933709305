"""Other orders of an answer, pages that are gone, and pages with nearly the same text."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from word_chronicle import DATES

from letopis import Archive
from letopis.errors import UsageError
from letopis.index.page_text import NearTexts, text_runs
from letopis.index.query_language import parse_word_query
from letopis.index.search_ranking import PageWeights
from letopis.index.search_results import search as best_pages
from letopis.index.word_index import WordIndex
from letopis.model import Observation, Outcome, Response
from letopis.operations import Context, bind
from letopis.operations.words import SearchQuery, search

PAGE = "<html lang=en><title>{0}</title><p>{1}</p></html>"
LONG = "The same long paragraph about the history of the old library is found under several addresses of this site."


def put(archive: Archive, name: str, text: str, day: int) -> None:
    archive.put(f"http://a.example/{name}", PAGE.format(name, text).encode(), DATES[0] + timedelta(days=day))


def found(archive: Archive, **asked: object) -> list[str]:
    rows = search(Context(archive), bind(SearchQuery, {"q": "library", **asked}, DATES[-1]))
    return [row.url.rpartition("/")[2] for row in rows]


def test_an_answer_is_sorted_by_fit_by_date_or_by_rank(small: Archive) -> None:
    put(small, "much", "library " * 5, 1)
    put(small, "late", "a library among many other words of this page", 9)
    put(small, "known", "one more library among many other words of this page", 5)
    pages = {hit.url.rpartition("/")[2]: hit for hit in best_pages(WordIndex(small), parse_word_query("library"))}
    ids = {name: small.answers.resource(hit.url).id for name, hit in pages.items()}
    PageWeights.of([(ids["known"], 9.0), (ids["late"], 3.0), (ids["much"], 0.5)]).save(small.folder)
    assert found(small, sort="date") == ["late", "known", "much"]
    assert found(small, sort="date", limit=1, offset=1) == ["known"]
    assert found(small, sort="rank") == ["known", "late", "much"]
    assert found(small)[0] == "much"
    with pytest.raises(UsageError, match="relevance, date, rank"):
        found(small, sort="size")


def test_pages_with_nearly_the_same_text_stand_under_the_first(small: Archive) -> None:
    for number, name in enumerate(("one", "two", "three")):
        put(small, name, LONG * 3, number)
    put(small, "other", "This library is another one, of which nobody else writes a word.", 3)
    rows = list(search(Context(small), SearchQuery(query="library", collapse=True)))
    assert sorted(len(row.similar) for row in rows) == [0, 2]
    assert sorted(url for row in rows for url in (row.url, *row.similar)) == sorted(
        f"http://a.example/{name}" for name in ("one", "two", "three", "other")
    )
    assert len(found(small)) == 4
    assert text_runs("t\tTitle\nc\tone two\n") == {"one two"}


def test_a_page_that_is_gone_says_since_when(small: Archive) -> None:
    put(small, "here", LONG, 0)
    put(small, "gone", LONG, 0)
    url, first = "http://a.example/gone", DATES[0] + timedelta(days=2)
    for moment in (first, first + timedelta(days=1)):
        answer = Response(url, url, 404, (), b"", moment)
        small.record([Observation(answer, Outcome.UNAVAILABLE)])
    rows = {row.url: row.gone for row in search(Context(small), SearchQuery(query="library"))}
    assert rows == {"http://a.example/here": None, url: first}
    past = search(Context(small), SearchQuery(query="library", at=DATES[0] + timedelta(days=1)))
    assert [row.gone for row in past] == [None, None]


@given(st.lists(st.frozensets(st.sampled_from("abcdefghijkl"), max_size=12), max_size=12))
def test_the_first_text_nearly_the_same_is_found_as_by_comparing_all(texts: list[frozenset[str]]) -> None:
    known = NearTexts()
    for at, runs in enumerate(texts):
        near = (place for place in range(at) if len(runs & texts[place]) >= 0.9 * len(runs | texts[place]) > 0)
        assert known.first_near(runs) == next(near, None)
        known.add(runs)
