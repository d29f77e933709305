"""Versions of a page with the same words share a document, and every answer is what a slow reading of all gives."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from word_chronicle import DATES

from letopis import Archive
from letopis.config import Settings, StoreSettings
from letopis.index.query_language import WordQuery, parse_word_query
from letopis.index.search_results import count_results, search
from letopis.index.word_analysis import phrase_history
from letopis.index.word_index import WordIndex
from letopis.model import Observation, Outcome, Response, Version

START, DAY = DATES[0], timedelta(days=1)
PAGES = [f"http://example.org/{name}" for name in ("one", "two", "three")]
WORDS = ("alpha", "beta", "gamma")
DAYS = 40
Told = tuple[str, int, datetime, datetime | None]
"""Address, number and validity of a version."""


def body(text: str, unseen: int) -> bytes:
    """A page whose bytes differ where no reader sees it."""
    return f'<html lang=en><title>t</title><p data-n="{unseen}">{text}</p></html>'.encode()


def look(url: str, text: str, unseen: int, time: datetime) -> Observation:
    page = Response(url, url, 200, (("Content-Type", "text/html"),), body(text, unseen), time)
    return Observation(page, Outcome.CHANGED, dated=True)


def documents(index: WordIndex) -> int:
    """How many documents stand for versions."""
    snapshot = index.snapshot()
    return int(snapshot.searcher.num_docs) - snapshot.marks()


def told(index: WordIndex, question: WordQuery) -> set[Told]:
    hits = search(index, question, 100)
    assert len(hits) == count_results(index, question)
    return {(hit.url, hit.version, hit.time, hit.until) for hit in hits}


def every_version(archive: Archive, urls: list[str]) -> list[Version]:
    return [archive.get(url, version=found.number) for url in urls for found in archive.versions(url)]


def read(versions: list[Version], word: str, since: datetime, until: datetime) -> set[Told]:
    """The last version with a word that was valid in a span, page by page."""
    found = {}
    for version in versions:
        overlaps = version.time <= until and (version.valid_until is None or version.valid_until > since)
        if overlaps and word.encode() in version.body:
            found[version.url] = (version.url, version.number, version.time, version.valid_until)
    return set(found.values())


def assert_as_read(index: WordIndex, versions: list[Version]) -> None:
    for word in WORDS:
        for day in range(-1, DAYS + 1, 3):
            at = START + day * DAY + timedelta(hours=1)
            until = at + 5 * DAY
            assert told(index, parse_word_query(word, at=at)) == read(versions, word, at, at)
            assert told(index, parse_word_query(word, since=at, until=until)) == read(versions, word, at, until)
        last = START + 1000 * DAY
        assert told(index, parse_word_query(word)) == read(versions, word, last, last)


@pytest.mark.parametrize("seed", range(6))
def test_any_history_is_told_as_it_is_read(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with Archive(tmp_path / "a") as archive:
        index = WordIndex(archive)
        # Late ones too: versions come in between others, and in the middle of runs.
        looks = [(url, day) for url in PAGES for day in chance.sample(range(DAYS), 12)]
        chance.shuffle(looks)
        for number, (url, day) in enumerate(looks):
            text = chance.choice(WORDS) if chance.random() < 0.3 else WORDS[day // 15]
            archive.record([look(url, text, number, START + day * DAY)])
            if chance.random() < 0.3:
                index.catch_up()
        versions = every_version(archive, PAGES)
        assert_as_read(index, versions)
        before = documents(index)
        assert before < len(versions)
        index.rebuild()
        assert_as_read(index, versions)
        assert documents(index) == before


def test_a_page_seen_again_with_the_same_words_needs_no_second_document(small: Archive) -> None:
    index = WordIndex(small)
    for number in range(8):
        small.put(PAGES[0], body("alpha", number), START + number * DAY)
        index.catch_up()
    assert documents(index) == 1
    assert told(index, parse_word_query("alpha")) == {(PAGES[0], 7, START + 7 * DAY, None)}
    life = phrase_history(index, "alpha")
    assert (life.first, life.last, life.pages, life.versions) == (START, START + 7 * DAY, 1, 8)


def test_what_retention_drops_inside_a_run_is_no_longer_named(tmp_path: Path) -> None:
    settings = Settings(store=StoreSettings(keep_versions=2))
    with Archive(tmp_path / "a", settings=settings, clock=lambda: START + 90 * DAY) as archive:
        for number in range(6):
            archive.put(PAGES[0], body("alpha", number), START + number * DAY)
        WordIndex(archive).catch_up()
        archive.compact()
        index = WordIndex(archive)
        assert_as_read(index, every_version(archive, PAGES[:1]))
        assert told(index, parse_word_query("alpha", at=START + DAY)) == set()
        assert documents(index) == 1
