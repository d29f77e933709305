"""Older versions are kept as differences, and what is read of them is what the record says."""

from __future__ import annotations

import random
import re
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from word_chronicle import DATES

from letopis import Archive, extract
from letopis.config import Settings, StoreSettings
from letopis.index.old_texts import OldTextWriter, kept_text, text_group, text_pieces
from letopis.index.page_text import snippet
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import search
from letopis.index.word_documents import document_content
from letopis.index.word_index import WordIndex
from letopis.model import Observation, Outcome, Response

START, DAY = DATES[0], timedelta(days=1)
PAGES = [f"http://example.org/{name}" for name in ("one", "two")]
LINES = st.lists(st.sampled_from(["alpha\n", "beta\n", "a beta\n", "gamma and beta\n", "\n", "x"]), max_size=12)


@given(LINES, LINES)
def test_a_text_is_the_sum_of_its_pieces(base: list[str], text: list[str]) -> None:
    pieces = text_pieces("".join(base), "".join(text))
    assert "".join(piece.own + "".join(base)[piece.start : piece.end] for piece in pieces) == "".join(text)


@given(st.lists(st.text(max_size=200), min_size=1, max_size=9), st.integers(0, 9))
def test_any_texts_are_read_back(texts: list[str], stop: int) -> None:
    kept: dict[int, str] = {}
    for some in (texts[:stop], texts[stop:]):
        # The second writer goes on where the first has stopped.
        writer = OldTextWriter(lambda page, number: text_group(page, number - 1, kept.__getitem__) if kept else None)
        for text in some:
            at = len(kept)
            kept[at] = writer.keep(1, at, at, text)

    def read(document: int) -> str:
        return kept_text(kept[document], read)

    assert [read(at) for at in kept] == texts


def test_differences_of_a_group_never_grow_longer_than_its_text_and_few_texts_tell_each() -> None:
    writer = OldTextWriter(lambda page, number: None)
    lines = [f"{'word ' * 20}{number}\n" for number in range(50)]
    kept: list[str] = []
    for number in range(300):
        lines[number % 50] = f"another line {number}\n"
        kept.append(writer.keep(1, number, number, "".join(lines)))
    groups = [text_group(1, number, kept.__getitem__) for number in range(300)]
    assert 3 < len({group.chain[0].id for group in groups}) < 60
    assert all(group.spent <= len(group.chain[0].text) for group in groups)
    assert all(len(group.chain) == 1 + group.chain[-1].place.bit_count() for group in groups)
    assert max(group.chain[-1].place for group in groups) > 16


def look(url: str, words: list[str], day: int) -> Observation:
    body = "".join(f"<p>{word} stands here on a line of its own" for word in words)
    page = f"<html lang=en><title>page</title><h1>{words[0]}</h1>{body}</html>".encode()
    response = Response(url, url, 200, (("Content-Type", "text/html"),), page, START + day * DAY)
    return Observation(response, Outcome.CHANGED, dated=True)


def assert_texts_as_read(archive: Archive, index: WordIndex, urls: list[str]) -> None:
    """Each version is found with the snippet that its own bytes give."""
    for url in urls:
        for known in archive.versions(url):
            version = archive.get(url, version=known.number)
            page = extract.read_page(version.body, version.url, version.headers)
            text = document_content(url, page, index.bases().of("en"))["page"].split("\n", 3)[3]
            for word in ("alpha", "delta", "here"):
                question = parse_word_query(word, at=known.time)
                hits = {hit.url: hit for hit in search(index, question)}
                assert (url in hits) == (word in text)
                if url in hits:
                    assert (hits[url].version, hits[url].title) == (known.number, "page")
                    pattern = re.compile(rf"(\b{word}\b)")
                    assert hits[url].snippet == snippet(text, pattern)


@pytest.mark.parametrize("seed", range(4))
def test_any_history_is_read_as_it_was(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]
    settings = Settings(store=StoreSettings(keep_versions=7))
    with Archive(tmp_path / "a", settings=settings, clock=lambda: START + 90 * DAY) as archive:
        index = WordIndex(archive)
        # Late ones too: what others refer to is written again, or goes.
        looks = [(url, day) for url in PAGES for day in chance.sample(range(40), 12)]
        chance.shuffle(looks)
        shown = chance.choices(words, k=12)
        for url, day in looks:
            shown[chance.randrange(len(shown))] = chance.choice(words)
            archive.record([look(url, shown, day)])
            if chance.random() < 0.4:
                index.catch_up()
        assert_texts_as_read(archive, index, PAGES)
        archive.compact()
        again = WordIndex(archive)
        assert all(len(archive.versions(url)) == 7 for url in PAGES)
        assert_texts_as_read(archive, again, PAGES)


def test_versions_are_read_after_an_older_one_comes_before_what_they_are_told_by(small: Archive) -> None:
    index, words = WordIndex(small), ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
    for day in range(10, 16):
        small.record([look(PAGES[0], [f"word{day}", *words], day)])
        index.catch_up()
    small.record([look(PAGES[0], ["late", *words], 5)])
    assert_texts_as_read(small, index, PAGES[:1])
