"""Pages are found by what links call them, as of any date: weighed lower, explained, and never wrongly."""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from word_chronicle import DATES

from letopis import Archive, Put
from letopis.cli.main import main
from letopis.config import Settings, StoreSettings
from letopis.index.anchor_index import LAST_MOMENT, MAX_PAGES, AnchorMatch
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import count_results, search, search_facets
from letopis.index.word_index import WordIndex

DAY = timedelta(days=1)
START = DATES[0]
HOME, FRUIT, ROSES = "http://x.org/", "http://x.org/p", "http://x.org/q"


def page(text: str, **links: str) -> bytes:
    shown = " ".join(f"<a href=/{target}>{called}</a>" for target, called in links.items())
    return f"<html lang=en><title>Page</title><p>{text}</p><p>{shown}</p></html>".encode()


@pytest.fixture
def index(small: Archive) -> WordIndex:
    """A page that is called by a word which does not stand on it, and for five days by another one."""
    small.put(HOME, page("Welcome everybody", p="Grapefruit recipes", q="Roses"), START)
    small.put(FRUIT, page("Cut it and eat it with sugar"), START)
    small.put(ROSES, page("Roses, grapefruits and other plants"), START)
    small.put(HOME, page("Welcome everybody", p="Citrus", q="Roses"), START + 5 * DAY)
    return WordIndex(small)


def found(index: WordIndex, words: str, at: datetime | None = None, **limits: datetime) -> list[str]:
    return [hit.url for hit in search(index, parse_word_query(words, at=at, **limits))]


def test_a_page_is_found_by_what_links_call_it(index: WordIndex) -> None:
    assert found(index, "citrus") == [HOME, FRUIT]
    assert found(index, "grapefruit recipe", START + DAY) == [HOME, FRUIT]


def test_pages_with_a_name_are_held_for_the_number_and_the_facets_of_an_answer(index: WordIndex) -> None:
    def asked(word: str) -> dict[int, AnchorMatch]:
        clause = parse_word_query(word).clauses[0]
        return reader.pages(snapshot, clause, (LAST_MOMENT, LAST_MOMENT), MAX_PAGES)

    snapshot = index.snapshot()
    reader = index.names(snapshot)
    assert reader is not None
    first = asked("citrus")
    assert first
    assert asked("citrus") is first
    assert not any(asked(f"word{number}") for number in range(300))
    assert asked("citrus") is not first
    assert asked("citrus").keys() == first.keys()


def test_what_links_call_a_page_holds_as_of_the_date(index: WordIndex) -> None:
    assert FRUIT in found(index, "grapefruit", START + DAY)
    assert FRUIT not in found(index, "grapefruit")
    assert FRUIT not in found(index, "citrus", START + 4 * DAY)
    assert found(index, "citrus", START - DAY) == []
    assert FRUIT in found(index, "grapefruit", since=START + DAY)
    assert FRUIT not in found(index, "grapefruit", since=START + 6 * DAY)


def test_words_of_a_page_and_of_its_names_go_together(index: WordIndex) -> None:
    assert found(index, "recipes sugar", START + DAY) == [FRUIT]
    assert found(index, '"grapefruit recipes" sugar', START + DAY) == [FRUIT]
    assert found(index, "grape* sugar", START + DAY) == [FRUIT]
    assert found(index, "recipes sugar -cut", START + DAY) == []
    assert found(index, "recipes roses", START + DAY) == [HOME]


def test_a_kind_of_block_asks_for_the_page_itself(index: WordIndex) -> None:
    question = parse_word_query("citrus", blocks=("paragraph",))
    assert [hit.url for hit in search(index, question)] == [HOME]


def test_names_count_less_than_words_and_are_explained(index: WordIndex) -> None:
    home, fruit = search(index, parse_word_query("citrus"), explain=True)
    assert (fruit.why.words, fruit.why.named) == (pytest.approx(0.0, abs=1e-6), "Citrus")
    assert 0 < fruit.why.links < home.why.words
    roses = next(hit for hit in search(index, parse_word_query("roses")) if hit.url == ROSES)
    alone = search(index, parse_word_query("roses", blocks=("paragraph",)))
    assert roses.why.words > 0 < roses.why.links
    assert roses.score == pytest.approx((roses.why.words + roses.why.links) * roses.why.freshness)
    assert {hit.why.links for hit in alone} == {0.0}


def test_counts_and_facets_know_what_is_found_by_names(index: WordIndex) -> None:
    question = parse_word_query("citrus site:x.org")
    assert count_results(index, question) == len(search(index, question)) == 2
    assert [(facet.value, facet.count) for facet in search_facets(index, question) if facet.field == "site"] == [
        ("x.org", 2)
    ]
    assert count_results(index, parse_word_query("citrus site:other.org")) == 0
    assert search(index, parse_word_query("citrus", resources=frozenset())) == []


def test_pages_of_an_answer_fit_together_whoever_names_them(small: Archive) -> None:
    small.put(HOME, page("start", **{f"n{number}": "Harbour" for number in range(30)}), START)
    for number in range(60):
        text = "A harbour with ships" if number >= 30 else "Ships"
        small.put(f"{HOME}n{number}", page(f"{text} {number}"), START)
    index, question = WordIndex(small), parse_word_query("harbour")
    whole = [hit.url for hit in search(index, question, 100)]
    assert len(whole) == len(set(whole)) == 31 + MAX_PAGES == count_results(index, question)
    parts = [hit.url for start in range(0, 60, 10) for hit in search(index, question, 10, start)]
    assert parts == whole


def test_few_pages_are_added_however_many_are_called_so(small: Archive) -> None:
    names = {f"n{number}": "Harbour" for number in range(2 * MAX_PAGES)}
    small.put(HOME, page("start", **names), START)
    list(small.put_many(Put(HOME + name, page("Ships"), START) for name in names))
    assert len(search(WordIndex(small), parse_word_query("harbour"), 1000)) == MAX_PAGES + 1


# A small web of nonsense with a history, and what stands on its pages and is said of them, without any index.

WORDS = ("bado", "fige", "kuli", "mope", "ratu", "sevo")
ADDRESSES = tuple(f"{HOME}{name}" for name in "abcde")


class Shown(NamedTuple):
    """A page as it stood from a day on: its own words, and its links with theirs."""

    day: int
    url: str
    words: tuple[str, ...]
    links: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def body(self) -> bytes:
        links = " ".join(f"<a href={target}>{' '.join(words)}</a>" for target, words in self.links)
        return f"<html lang=xx><p>{' '.join(self.words)}</p><p>{links}</p></html>".encode()


some_words = st.lists(st.sampled_from(WORDS), max_size=2).map(tuple)
some_links = st.lists(st.tuples(st.sampled_from(ADDRESSES), some_words), max_size=3).map(tuple)
some_pages = st.builds(Shown, st.integers(0, 5), st.sampled_from(ADDRESSES), some_words, some_links)


def slowly(history: list[Shown], words: set[str], day: int) -> set[str]:
    """Pages that have all of some words on them or in what other pages call them."""
    web = {shown.url: shown for shown in sorted(history, key=lambda shown: shown.day) if shown.day <= day}
    said = {url: {*shown.words, *(word for _, text in shown.links for word in text)} for url, shown in web.items()}
    for url, shown in web.items():
        for target, text in shown.links:
            if target != url and target in web:
                said[target].update(text)
    return {url for url, known in said.items() if words <= known}


@settings(max_examples=40 if not os.environ.get("LETOPIS_LONG") else 2000, deadline=None)
@given(st.lists(some_pages, max_size=9), st.sets(st.sampled_from(WORDS), min_size=1, max_size=2))
def test_at_every_date_a_slow_reader_finds_the_same_pages(
    tmp_path_factory: pytest.TempPathFactory, history: list[Shown], words: set[str]
) -> None:
    once = list({(shown.day, shown.url): shown for shown in history}.values())
    with Archive(tmp_path_factory.mktemp("names")) as archive:
        for shown in once:
            archive.put(shown.url, shown.body, START + shown.day * DAY)
        index = WordIndex(archive)
        for day in range(6):
            question = parse_word_query(" ".join(f'"{word}"' for word in sorted(words)), at=START + day * DAY)
            hits = search(index, question, 100)
            assert {hit.url for hit in hits} == slowly(once, words, day)
            assert len(hits) == count_results(index, question)


# Following


def test_names_are_taken_in_again_when_enough_is_new(small: Archive) -> None:
    list(small.put_many(Put(f"{HOME}{number}", page("Ships"), START) for number in range(40)))
    index = WordIndex(small)
    assert found(index, "harbour") == []
    small.put(f"{HOME}new", page("x", **{"1": "Harbour"}), START)
    assert (found(index, "harbour"), index.names_lag()) == ([f"{HOME}new"], 1)
    small.put(f"{HOME}newer", page("y"), START)
    assert (found(index, "harbour"), index.names_lag()) == ([f"{HOME}new", f"{HOME}1"], 0)


def test_names_that_are_behind_are_told_and_taken_in_by_a_rebuild(
    small: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    list(small.put_many(Put(f"{HOME}{number}", page("Ships"), START) for number in range(40)))
    found(WordIndex(small), "harbour")
    small.put(f"{HOME}new", page("x", **{"1": "Harbour"}), START)
    where = ("--archive", str(small.folder))
    assert main(["search", "harbour", "--explain", *where]) == 0
    assert "1 versions behind" in capsys.readouterr().err
    assert main(["stats", "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out)["names_lag"] == 1
    assert main(["search", "harbour", "--rebuild", "--explain", *where]) == 0
    told = capsys.readouterr()
    assert 'called "Harbour" by links' in told.out
    assert "behind" not in told.err


def test_a_source_that_retention_dropped_names_nothing_any_more(tmp_path: Path) -> None:
    kept = Settings(store=StoreSettings(keep_versions=1))
    with Archive(tmp_path / "a", settings=kept, clock=lambda: START + 9 * DAY) as archive:
        archive.put(FRUIT, page("sugar"), START)
        archive.put(HOME, page("a", p="Grapefruit"), START)
        archive.put(HOME, page("b", p="Citrus"), START + DAY)
        assert FRUIT in found(WordIndex(archive), "grapefruit", START)
        archive.compact()
        assert FRUIT not in found(WordIndex(archive), "grapefruit", START)


@pytest.mark.parametrize("harm", ["current.json", "names", "inside"])
def test_an_index_of_names_that_is_lost_or_damaged_is_made_anew(index: WordIndex, harm: str) -> None:
    assert FRUIT in found(index, "citrus")
    folder = index.archive.folder / "index" / "words" / "names"
    if harm == "current.json":
        (folder / harm).write_bytes(b'{"folder": "x", "more": 1}')
    elif harm == "names":
        shutil.rmtree(folder)
    else:
        for file in folder.glob("*/meta.json"):
            file.write_bytes(b"rubbish")
    assert FRUIT in found(WordIndex(index.archive), "citrus")


def test_several_readers_see_what_either_has_made(index: WordIndex) -> None:
    other = WordIndex(index.archive)
    assert FRUIT in found(index, "citrus")
    assert FRUIT in found(other, "citrus")
    index.archive.put(HOME, page("Welcome", p="Lemons"), START + 7 * DAY)
    assert FRUIT in found(other, "lemons")
    assert FRUIT in found(index, "lemons")
    folders = [file for file in (index.archive.folder / "index" / "words" / "names").iterdir() if file.is_dir()]
    assert len(folders) == 1


def test_a_folder_that_cannot_be_written_leaves_search_without_names(index: WordIndex) -> None:
    index.catch_up()
    (index.archive.folder / "index" / "words" / "names").write_bytes(b"in the way")
    assert found(index, "citrus") == [HOME]
