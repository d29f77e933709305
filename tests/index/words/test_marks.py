"""Words whose letters bear marks: vowel signs, points, tones, and accents that no letter has in one piece."""

from __future__ import annotations

import random
import re
import unicodedata
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from word_chronicle import DATES

from letopis import Archive
from letopis.index.page_text import _MARKS, WordsTogether, nfc, split_words
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import search
from letopis.index.vocabulary import completions, corrected_query
from letopis.index.word_analysis import nearby_words, phrase_history
from letopis.index.word_index import WordIndex

DAY = timedelta(days=1)
HINDI, ARABIC, HEBREW = ("दिन", "दान", "दीन", "हिन्दी", "शब्द"), ("كَتَبَ", "كُتُب", "كُتِبَ"), ("שָׁלוֹם", "שָׁלֵם", "דָּבָר")
TAMIL = ("தமிழ்", "நாள்", "நாளை")
YORUBA, GUARANI, VIETNAMESE = ("ẹ̀kọ́", "ẹ́kọ́"), ("g̃uahẽ", "guahẽ"), ("tiếng", "tiêng", "việt")
SCRIPTS = [HINDI, ARABIC, HEBREW, TAMIL, YORUBA, GUARANI, VIETNAMESE]
NAMES = ["hindi", "arabic", "hebrew", "tamil", "yoruba", "guarani", "vietnamese"]


def put(archive: Archive, name: str, text: str, day: float = 0) -> None:
    body = f'<html lang="xx"><title>.</title><p>{text}</p></html>'.encode()
    archive.put(f"http://{name}.example/", body, DATES[0] + day * DAY, "text/html; charset=utf-8")


def found(archive: Archive, asked: str, day: float | None = None) -> set[str]:
    at = None if day is None else DATES[0] + day * DAY
    return {hit.url[7:-9] for hit in search(archive.attached(WordIndex), parse_word_query(asked, at=at), 100)}


@pytest.mark.parametrize("words", SCRIPTS, ids=NAMES)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_word_is_one_word_in_every_script(words: tuple[str, ...], form: str) -> None:
    text = unicodedata.normalize(form, ", ".join(words) + ".")
    assert split_words(nfc(text)) == [nfc(word) for word in words]


def test_marks_are_those_that_a_letter_bears_and_nothing_else() -> None:
    in_ranges = re.compile(f"[{_MARKS}]")
    signs = [sign for sign in map(chr, range(0x10000)) if in_ranges.match(sign) and not sign.isalnum()]
    kinds = {unicodedata.category(sign) for sign in signs}
    assert {"Mn", "Mc"} <= kinds <= {"Mn", "Mc", "Cn"}
    for apart in "।॥־׀׃٪،۔ฯ๏ຯ་།៖\u200b\u3099\ufe0f\u20e3":
        assert not in_ranges.match(apart), hex(ord(apart))
    assert split_words("दिन।रात और שָׁלוֹם־עולם") == ["दिन", "रात", "और", "שָׁלוֹם", "עולם"]
    assert split_words(nfc("か\u3099東x\u0302京")) == ["が", "東", "x\u0302", "京"]


def test_what_stretches_an_arabic_word_is_no_letter_of_it(small: Archive) -> None:
    assert nfc("كتـــاب") == "كتاب"
    assert nfc("e\u00ad\u0301") == "é"
    put(small, "a", "هذا كتـــاب جديد")
    assert found(small, "كتاب") == found(small, "كـتاب") == {"a"}


@pytest.mark.parametrize("words", SCRIPTS, ids=NAMES)
def test_a_word_finds_the_pages_that_have_it_and_marks_all_of_it(small: Archive, words: tuple[str, ...]) -> None:
    for at, word in enumerate(words):
        put(small, f"p{at}", f"x1 {unicodedata.normalize('NFD', word)} x2")
    for at, word in enumerate(map(nfc, words)):
        for asked in (f'"{word}"', f'"x1 {word} x2"', f'"{word} x2"', f'"x1 {word}"'):
            assert found(small, asked) == {f"p{at}"}
        hits = search(small.attached(WordIndex), parse_word_query(word))
        assert [hit.snippet.hits for hit in hits if hit.url == f"http://p{at}.example/"] == [(word,)]
        starting = {f"p{other}" for other, longer in enumerate(words) if nfc(longer).startswith(word[:-1])}
        assert found(small, f"{word[:-1]}*") >= starting


def test_another_vowel_makes_another_word(small: Archive) -> None:
    for name, word in zip("abc", HINDI, strict=False):
        put(small, name, f"यह {word} है")
    assert [found(small, word) for word in HINDI[:3]] == [{"a"}, {"b"}, {"c"}]
    assert found(small, "द*") == {"a", "b", "c"}
    assert found(small, "दि*") == {"a"}
    assert not found(small, "न") | found(small, "द")


def test_words_with_marks_are_completed_corrected_and_told_with_their_neighbours(small: Archive) -> None:
    put(small, "a", "हिन्दी शब्द यहाँ है")
    index = small.attached(WordIndex)
    snapshot = index.snapshot()
    assert [known.word for known in completions(snapshot, "हिन्", 5)] == ["हिन्दी"]
    assert corrected_query(snapshot, "हिन्दि शब्द") == "हिन्दी शब्द"
    assert {near.word for near in nearby_words(index, "हिन्दी")} == {"शब्द", "यहाँ", "है"}
    assert phrase_history(index, "हिन्दी शब्द").pages == 1


@pytest.mark.parametrize("words", SCRIPTS, ids=NAMES)
def test_at_every_date_a_slow_reader_finds_the_same(tmp_path: Path, words: tuple[str, ...]) -> None:
    chance, known = random.Random(7), [*map(nfc, words), "plain", "月"]
    shown = [(name, day, chance.choices(known, k=4)) for day in range(5) for name in "abc"]
    with Archive(tmp_path / "a", clock=lambda: DATES[0] + 90 * DAY) as archive:
        for name, day, text in shown:
            put(archive, name, unicodedata.normalize("NFD", ", ".join(text)), day)
        for first in known:
            for second in known:
                for at in (None, 1.5, 3.5):
                    last = 4 if at is None else int(at)
                    having = {n for n, d, text in shown if d == last and (first, second) in pairwise(text)}
                    assert found(archive, f'"{first} {second}"', at) == having
            old = {n for n, d, text in shown if d == 2 and any(word.startswith(first) for word in text)}
            assert found(archive, f"{first}*", 2.5) >= old


SYLLABLES = ("न", "नि", "दा", "क्", "דְּ", "g", "g\u0303", "e", "é", "月", "ก", "กา", "น้ำ", "ស្តី", "ត", " ", ", ", "।")


@given(st.lists(st.sampled_from(SYLLABLES), max_size=9).map("".join))
@settings(max_examples=60, deadline=None)
def test_words_stand_together_where_they_follow_each_other(text: str) -> None:
    words = split_words(text)
    for at in range(len(words)):
        assert WordsTogether.of(tuple(words[at : at + 2]), False, ()).pattern.search(text)
        letter = words[at][0]
        assert bool(WordsTogether.of((letter,), False, ()).pattern.search(text)) == (letter in words)
