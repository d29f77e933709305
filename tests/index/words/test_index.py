"""The index follows the log: step by step, from several sides, after every kind of loss."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from word_chronicle import DATES

from letopis import Archive
from letopis.config import SearchSettings, Settings, StoreSettings
from letopis.errors import SettingError
from letopis.index import word_snapshot
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import search
from letopis.index.word_documents import WORDS_FORMAT
from letopis.index.word_index import WordIndex
from letopis.lazy import Query
from letopis.model import Observation, Outcome, Response

URL = "http://example.org/page"
DAY = timedelta(days=1)
START = DATES[0]


def page(text: str) -> bytes:
    return f"<html lang=en><title>t</title><p>{text}</p></html>".encode()


def urls(index: WordIndex, text: str, day: float | None = None) -> list[tuple[str, int]]:
    at = None if day is None else START + day * DAY
    return sorted((hit.url, hit.version) for hit in search(index, parse_word_query(text, at=at), 100))


def look(url: str, text: str, day: float) -> Observation:
    response = Response(url, url, 200, (("Content-Type", "text/html"),), page(text), START + day * DAY)
    return Observation(response, Outcome.CHANGED, dated=True)


def test_a_newer_version_ends_the_one_before(small: Archive) -> None:
    index = WordIndex(small)
    small.put(URL, page("alpha"), START)
    assert urls(index, "alpha") == [(URL, 0)]
    small.put(URL, page("beta"), START + DAY)
    assert urls(index, "alpha") == []
    assert urls(index, "beta") == [(URL, 1)]
    assert urls(index, "alpha", 0.5) == [(URL, 0)]
    assert urls(index, "alpha", 1) == []


def test_many_versions_taken_in_at_once_equal_those_taken_in_one_by_one(tmp_path: Path) -> None:
    answers = []
    for step in (1, 20):
        with Archive(tmp_path / str(step)) as archive:
            index = WordIndex(archive)
            for number in range(20):
                archive.put(URL, page(f"common word{number}"), START + number * DAY)
                if number % step == 0:
                    index.catch_up()
            answers.append([urls(index, "common", day) for day in range(20)])
    assert answers[0] == answers[1] == [[(URL, day)] for day in range(20)]


def test_a_version_that_comes_in_late_is_put_in_its_place(small: Archive) -> None:
    index = WordIndex(small)
    small.put(URL, page("alpha"), START)
    small.put(URL, page("gamma"), START + 10 * DAY)
    assert urls(index, "gamma") == [(URL, 1)]
    small.record([look(URL, "beta", 5)])
    assert [urls(index, word, 7) for word in ("alpha", "beta", "gamma")] == [[], [(URL, 1)], []]
    assert urls(index, "gamma") == [(URL, 2)]
    assert urls(index, "alpha", 4) == [(URL, 0)]


def test_a_version_found_to_have_begun_earlier_is_found_earlier(small: Archive) -> None:
    index = WordIndex(small)
    small.put(URL, page("alpha"), START + 10 * DAY)
    assert urls(index, "alpha", 5) == []
    small.record([look(URL, "alpha", 3)])
    assert urls(WordIndex(small), "alpha", 5) == [(URL, 0)]


def test_dropped_versions_are_no_longer_found(tmp_path: Path) -> None:
    settings = Settings(store=StoreSettings(keep_versions=1))
    with Archive(tmp_path / "a", settings=settings, clock=lambda: START + 9 * DAY) as archive:
        for number, word in enumerate(("alpha", "beta", "gamma")):
            archive.put(URL, page(word), START + number * DAY)
        assert urls(WordIndex(archive), "alpha", 0) == [(URL, 0)]
        archive.compact()
        index = WordIndex(archive)
        assert urls(index, "alpha", 0) == []
        assert urls(index, "gamma") == [(URL, 0)]


def test_two_followers_of_one_archive_agree(small: Archive) -> None:
    first, second = WordIndex(small), WordIndex(small)
    for number in range(6):
        small.put(f"{URL}{number}", page(f"word{number} shared"), START + number * DAY)
        writer, reader = (first, second) if number % 2 else (second, first)
        assert len(urls(writer, "shared")) == number + 1
        assert urls(reader, f"word{number}") == [(f"{URL}{number}", 0)]
        assert reader.catch_up() == 0


def test_a_deleted_folder_is_built_again(small: Archive) -> None:
    index = WordIndex(small)
    small.put(URL, page("alpha"), START)
    assert urls(index, "alpha") == [(URL, 0)]
    shutil.rmtree(small.folder / "index" / "words")
    assert urls(index, "alpha") == [(URL, 0)]
    assert urls(WordIndex(small), "alpha") == [(URL, 0)]


def test_rebuild_answers_the_same(small: Archive) -> None:
    index = WordIndex(small)
    for number in range(5):
        small.put(URL, page(f"alpha word{number}"), START + number * DAY)
        index.catch_up()
    before = [urls(index, "alpha", day) for day in range(6)]
    assert index.rebuild() == 5
    assert [urls(index, "alpha", day) for day in range(6)] == before


@pytest.mark.parametrize("name", ["meta.json", ".managed.json"])
def test_an_index_that_cannot_be_opened_is_built_again(small: Archive, name: str) -> None:
    small.put(URL, page("alpha"), START)
    assert urls(WordIndex(small), "alpha") == [(URL, 0)]
    (file,) = (small.folder / "index" / "words").glob(f"*/{name}")
    file.write_bytes(b"{ broken")
    assert urls(WordIndex(small), "alpha") == [(URL, 0)]


def test_lag_counts_what_is_not_yet_taken_in_and_takes_nothing_in(small: Archive) -> None:
    index = WordIndex(small)
    small.put(URL, page("alpha"), START)
    assert (index.lag(), index.lag()) == (1, 1)
    index.catch_up()
    assert index.lag() == 0
    small.put(URL, page("beta"), START + DAY)
    assert (index.lag(), WordIndex(small).lag()) == (1, 1)


def test_catching_up_can_be_stopped_and_goes_on_later(small: Archive) -> None:
    index = WordIndex(small)
    small.put(URL, page("alpha"), START)
    assert index.catch_up(stop=lambda: True) == 0
    assert index.lag() == 1
    assert index.catch_up() == 1


def test_an_index_that_is_turned_off_says_so(tmp_path: Path) -> None:
    settings = Settings(search=SearchSettings(enabled=False))
    with Archive(tmp_path / "a", settings=settings) as archive, pytest.raises(SettingError, match=r"search\.enabled"):
        WordIndex(archive).catch_up()
    assert not (tmp_path / "a" / "index").exists()


def test_other_languages_in_the_settings_make_the_index_anew(tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=Settings(search=SearchSettings(languages=()))) as archive:
        text = "The servers are described here and the pages of it are about the servers of this network"
        archive.put(URL, page(text), START)
        assert urls(WordIndex(archive), "server") == []
    with Archive(tmp_path / "a") as archive:
        assert urls(WordIndex(archive), "server") == [(URL, 0)]


def test_what_cannot_be_read_as_text_does_no_harm(small: Archive) -> None:
    small.put(URL, bytes(range(256)) * 4, START, "image/png")
    small.put(URL + "2", b"", START)
    small.put(URL + "3", "plain \udce4 words".encode("utf-8", "surrogatepass"), START, "text/plain")
    index = WordIndex(small)
    assert urls(index, "words") == [(URL + "3", 0)]
    assert len(urls(index, "site:example.org")) == 3


def test_what_words_belong_together_is_kept_once_and_an_index_of_another_release_is_made_anew(small: Archive) -> None:
    index = WordIndex(small)
    for day in range(3):
        small.put(f"{URL}/{day}", page(f"libraries and ferries {day}"), START + day * DAY)
        assert len(urls(index, "library")) == day + 1
    assert index.snapshot().searcher.doc_freq("forms", ">libraries=library") == 1
    folder = small.folder / "index" / "words"
    (folder / f"v{WORDS_FORMAT}").rename(folder / f"v{WORDS_FORMAT - 1}")
    assert len(urls(WordIndex(small), "library")) == 3
    assert [file.name for file in folder.glob("v*")] == [f"v{WORDS_FORMAT}"]


def test_a_text_that_stands_twice_on_a_page_is_found_as_a_phrase_and_by_its_link(small: Archive) -> None:
    link = '<p><a href="/x">read the report</a></p>'
    small.put(URL, f"<html lang=en><title>t</title>{link}<h2>between</h2>{link}</html>".encode(), START)
    for asked in ('"the report"', 'link:"the report"', "link:report", "report"):
        assert urls(WordIndex(small), asked) == [(URL, 0)]


def test_pages_are_held_for_further_questions_as_long_as_they_are_few(
    small: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_snapshot, "_HELD_CHARACTERS", 500)
    for number in range(20):
        small.put(f"{URL}/{number}", page(f"fern {number} {'x' * 60}"), START)
    index = WordIndex(small)
    snapshot = index.snapshot()
    places = [address for _, address in snapshot.hits(Query.term_query(snapshot.schema, "base", "fern", "freq"), 20)]
    assert snapshot.stored(places[0]) is snapshot.stored(places[0])
    held = [snapshot.stored(place) for place in places]
    assert [snapshot.stored(place) for place in places] == held
    assert len({one.url for one in held}) == 20
    assert snapshot.stored(places[0]) is not held[0]
