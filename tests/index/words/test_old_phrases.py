"""What is asked of older versions word by word is what a slow reading of their blocks tells."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from word_chronicle import DATES

from letopis import Archive, extract
from letopis.errors import UsageError
from letopis.index import word_snapshot
from letopis.index.page_text import MAX_WORD_LENGTH, StoredPage, WordsTogether
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import count_results, search
from letopis.index.word_analysis import first_places, phrase_history
from letopis.index.word_index import WordIndex
from letopis.model import Page

START, DAY = DATES[0], timedelta(days=1)
URLS = [f"http://{host}.example/{name}" for host in "ab" for name in ("one", "two", "three")]
WORDS = ("red", "red", "green", "green", "blue", "redder", "p", "été", "mouse", "mice", "月", "日")
ASKED = {
    '"red green"': lambda page: together(page, ("red", "green")),
    '"p red"': lambda page: together(page, ("p", "red")),
    '"月日"': lambda page: together(page, ("月", "日")),
    'h1:"green blue"': lambda page: together(page, ("green", "blue"), "h1"),
    'link:"blue red"': lambda page: together(page, ("blue", "red"), "link"),
    'item:"red blue" OR h1:été': lambda page: together(page, ("red", "blue"), "item") or together(page, ("été",), "h1"),
    'green -"red green"': lambda page: together(page, ("green",)) and not together(page, ("red", "green")),
    '"été red" "blue blue"': lambda page: together(page, ("été", "red")) and together(page, ("blue", "blue")),
    "link:green": lambda page: together(page, ("green",), "link"),
    '"redder"': lambda page: together(page, ("redder",)),
    "h1:redd*": lambda page: together(page, ("redder",), "h1"),
    "red*": lambda page: together(page, ("red",)) or together(page, ("redder",)),
    '"mouse"': lambda page: together(page, ("mouse",)),
    "mou*": lambda page: together(page, ("mouse",)),
    "green -mou*": lambda page: together(page, ("green",)) and not together(page, ("mouse",)),
    'h1:"mice"': lambda page: together(page, ("mice",), "h1"),
}


def blocks(page: Page, kind: str) -> list[str]:
    """The texts of a kind of block, or of all but those that stand inside of others."""
    if kind == "link":
        return [link.text for link in page.links] + [block.text for block in page.blocks if block.kind == "link"]
    return [block.text for block in page.blocks if kind in ("", block.kind)]


def together(page: Page, words: tuple[str, ...], kind: str = "") -> bool:
    for text in blocks(page, kind):
        found = re.findall(r"[月日]|[^\W月日]+", text.lower())
        if any(tuple(found[at : at + len(words)]) == words for at in range(len(found))):
            return True
    return False


def body(chance: random.Random, lines: list[str]) -> bytes:
    """A page of some lines, of which one is another one than before."""
    lines[chance.randrange(len(lines))] = " ".join(chance.choices(WORDS, k=chance.randint(1, 6)))
    head, first, second, third, *others = lines
    link = f'<p>see <a href="/">{first}</a>, {second}</p><ul><li>{third}</ul>'
    parts = "".join(f"<p>{line}</p>" for line in others)
    return f"<html lang=en><title>page</title><h1>{head}</h1>{link}{parts}</html>".encode()


def every_page(archive: Archive) -> list[tuple[str, int, datetime, datetime | None, Page]]:
    found = []
    for url in URLS:
        for known in archive.versions(url):
            one = archive.get(url, version=known.number)
            page = extract.read_page(one.body, one.url, one.headers)
            found.append((url, one.number, one.time, one.valid_until, page))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_phrases_and_kinds_of_any_time_are_those_that_stood(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with Archive(tmp_path / "a", clock=lambda: START + 90 * DAY) as archive:
        index = WordIndex(archive)
        shown = {url: [" ".join(chance.choices(WORDS, k=4)) for _ in range(8)] for url in URLS}
        for day in range(12):
            for url in URLS:
                archive.put(url, body(chance, shown[url]), START + day * DAY)
            if chance.random() < 0.5:
                index.catch_up()
        pages = every_page(archive)
        for asked, holds in ASKED.items():
            assert_found_as_read(index, asked, holds, pages)
        life, having = phrase_history(index, "red green"), [row for row in pages if ASKED['"red green"'](row[4])]
        assert (life.versions, life.pages) == (len(having), len({row[0] for row in having}))
        assert life.first == min(row[2] for row in having)


def assert_found_as_read(
    index: WordIndex,
    asked: str,
    holds: Callable[[Page], bool],
    pages: list[tuple[str, int, datetime, datetime | None, Page]],
) -> None:
    for day in (None, -1, 0.5, 3, 7.5, 11, 20):
        at = None if day is None else START + day * DAY
        standing = {
            (url, number)
            for url, number, time, until, page in pages
            if holds(page) and (until is None if at is None else time <= at and (until is None or until > at))
        }
        question = parse_word_query(asked, at=at)
        assert {(hit.url, hit.version) for hit in search(index, question, 100)} == standing, (asked, day)
        assert count_results(index, question) == len(standing)
    since, until = START + 2 * DAY, START + 5 * DAY
    told = {url for url, _, time, end, page in pages if holds(page) and time <= until and (end is None or end > since)}
    question = parse_word_query(asked, since=since, until=until, sites=("a.example",))
    assert {hit.url for hit in search(index, question, 100)} == {url for url in told if "//a." in url}


def test_too_many_older_versions_for_a_phrase_are_an_error_that_says_how_to_ask(
    small: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_snapshot, "_MOST_READ", 3)
    for url in URLS[:5]:
        for day, word in enumerate(("red green", "blue")):
            small.put(url, f"<html lang=en><p>{word} here</p></html>".encode(), START + day * DAY)
    index = WordIndex(small)
    with pytest.raises(UsageError, match=r"more than 3 older versions have the words 'red green'.*ask for one site"):
        search(index, parse_word_query('"red green"', at=START))
    assert search(index, parse_word_query('"red green"')) == []
    assert len(search(index, parse_word_query('"red green"', at=START, sites=("b.example",)))) == 2
    # Where words stood first is read from the oldest on.
    assert list(first_places(index, ["red green"])) == [(URLS[0], START)]


def test_only_whole_words_next_to_each_other_stand_together() -> None:
    long = "x" * (MAX_WORD_LENGTH + 5)
    page = StoredPage("", "", "", f"t\tred\np\tgreen {long} blue\np\ta-red, green b\np\t月・日\n")

    def stands(*words: str, prefix: bool = False) -> bool:
        return WordsTogether.of(words, prefix, ()).stands_in(page, [])

    assert stands("red", "green")
    assert stands("green", long[:MAX_WORD_LENGTH])
    assert stands(long[:MAX_WORD_LENGTH], "blue")
    assert stands("red", "gr", prefix=True)
    assert not stands("ed", "green")
    assert not stands("red", "gree")
    assert not stands("p", "green")
    assert not stands("blue", "a")
    assert not stands("月", "日")
