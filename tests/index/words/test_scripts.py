"""Scripts whose words are written in several ways, and scripts that leave no blanks between words."""

from __future__ import annotations

from datetime import timedelta

import pytest
from word_chronicle import DATES

from letopis import Archive
from letopis.errors import UsageError
from letopis.index.page_text import nfc, split_words
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import search
from letopis.index.vocabulary import completions, corrected_query
from letopis.index.word_analysis import nearby_words, phrase_history
from letopis.index.word_index import WordIndex


def put(archive: Archive, name: str, text: str, day: float = 0, language: str = "xx") -> None:
    body = f'<html lang="{language}"><title>.</title><p>{text}</p></html>'.encode()
    archive.put(f"http://{name}.example/", body, DATES[0] + timedelta(day), "text/html; charset=utf-8")


def found(archive: Archive, asked: str, day: float | None = None) -> list[str]:
    at = None if day is None else DATES[0] + timedelta(day)
    return [hit.url[7:-9] for hit in search(archive.attached(WordIndex), parse_word_query(asked, at=at), 100)]


WRITTEN = [
    ("كتب", "كَتَبَ"),
    ("احمد", "أَحْمَد"),
    ("مدرسة", "مدرسه"),
    ("کتابی", "كتابي"),
    ("שלום", "שָׁלוֹם"),
    ("елка", "ёлка"),
    ("замок", "за́мок"),
    ("फिल्म", "फ़िल्म"),
    ("हंस", "हँस"),
    ("tieng", "tiếng"),
    ("isik", "ışık"),
    ("οδος", "οδός"),
    ("2567", "๒๕๖๗"),
    ("1402", "۱۴۰۲"),
]


@pytest.mark.parametrize(("plain", "full"), WRITTEN)
def test_a_word_is_found_with_its_points_and_without_the_exact_form_first(
    small: Archive, plain: str, full: str
) -> None:
    put(small, "plain", f"x1 {plain} x2")
    put(small, "full", f"x1 {full} x2")
    put(small, "other", "x1 ни x2 no نعم לא नहीं 7")
    assert found(small, plain) == ["plain", "full"]
    assert found(small, full) == ["full", "plain"]
    assert sorted(found(small, f"{plain}*")) == sorted(found(small, f"{full}*")) == ["full", "plain"]
    assert found(small, f'"x1 {full}"') == ["full"]
    (hit,) = search(small.attached(WordIndex), parse_word_query(f"{plain} site:full.example"))
    assert hit.snippet.hits == (nfc(full),)


@pytest.mark.parametrize(
    ("shown", "typed"),
    [("ﬁnance", "finance"), ("ﺍﻟﻜﺘﺎﺏ", "الكتاب"), ("ｶﾞﾗｽ", "ガラス"), ("Ｔｏｋｙｏ", "tokyo"), ("２０２４", "2024"),
     ("co\u00adope\u00adrate", "cooperate"), ("می\u200cخواهم", "میخواهم"), ("ab\u200ec", "abc"),
     ("क\u094d\u200dष", "क्ष")],
)  # fmt: skip
def test_letters_of_another_shape_and_signs_without_one_make_no_other_word(
    small: Archive, shown: str, typed: str
) -> None:
    put(small, "a", f"x1 {shown} x2")
    assert found(small, typed) == found(small, shown) == found(small, f'"x1 {typed} x2"') == ["a"]


def test_capitals_of_greek_words_end_as_small_letters_do(small: Archive) -> None:
    put(small, "a", "ΟΔΟΣ ΑΘΗΝΩΝ")
    assert found(small, "οδός") == found(small, "ΟΔΟΣ*") == found(small, "οδοσ") == ["a"]


THAI = "ราคาน้ำมันวันนี้แพงมาก"
RUNS = [
    (THAI, ["น้ำมัน", "ราคา", "วันนี้", "ราคา วันนี้", "แพงมาก", "น้ำม*"], ["มันวาง", "นํ้า", "น้อย"]),
    ("ພາສາລາວສະບາຍດີ", ["ພາສາ", "ລາວ", "ສະບາຍ"], ["ລາຍ"]),
    ("မြန်မာဘာသာစကား", ["မြန်မာ", "ဘာသာ", "စကား"], ["မြစ်"]),
    ("ភាសាខ្មែរសួស្តីពិភពលោក", ["ខ្មែរ", "ភាសា", "ពិភពលោក"], ["មែរ"]),
    ("東京都知事選挙", ["東京", "知事", "選挙"], ["京東"]),
]


@pytest.mark.parametrize(("text", "words", "others"), RUNS, ids=["thai", "lao", "burmese", "khmer", "japanese"])
def test_a_word_inside_a_run_without_blanks_is_found_and_marked(
    small: Archive, text: str, words: list[str], others: list[str]
) -> None:
    put(small, "a", text)
    put(small, "b", "nothing")
    put(small, "a", "something else", day=3)
    put(small, "c", text, day=3)
    for word in words:
        assert found(small, word) == found(small, f"{word} -nothing") == ["c"]
        assert found(small, word, day=1) == ["a"]
        (hit,) = search(small.attached(WordIndex), parse_word_query(word))
        assert hit.snippet.hits == tuple([text[text.index("น้ำ") :]] if word.endswith("*") else word.split())
    for word in others:
        assert not found(small, word) + found(small, word, day=1)
    assert phrase_history(small.attached(WordIndex), words[0]).pages == 2


def test_a_sign_belongs_to_the_letter_that_bears_it() -> None:
    assert split_words("น้ำ ก็ ២០ สวัสดี") == ["น้ำ", "ก็", "២០", "ส", "วั", "ส", "ดี"]
    assert split_words("ស្តី မင်္ဂလာ") == ["ស្តី", "မ", "င်္ဂ", "လာ"]
    assert split_words("iPhone16ของแท้") == ["iphone16", "ข", "อ", "ง", "แ", "ท้"]


def test_runs_without_blanks_are_completed_as_far_as_pages_agree(small: Archive) -> None:
    for name, text in zip("abc", (THAI, "ราคาน้ำมันโลก", "น้ำตาล"), strict=True):
        put(small, name, text)
    snapshot = small.attached(WordIndex).snapshot()
    completed = {known.word: known.versions for known in completions(snapshot, "ราคา", 9)}
    assert completed["ราคาน้ำมัน"] == 2
    assert all(word.startswith("ราคาน้ำมัน") for word in completed)
    assert {known.word for known in completions(snapshot, "น้ำ", 9)} >= {"น้ำ", "น้ำมัน", "น้ำตาล"}
    assert completions(snapshot, "ขาย", 9) == []
    assert corrected_query(snapshot, "ราคาน้ำมัน") == "ราคาน้ำมัน"


def test_words_near_one_of_a_run_without_blanks_are_pairs_of_its_characters(small: Archive) -> None:
    put(small, "a", "東京大学の入試 Tokyo")
    put(small, "b", "京都大学")
    near = {row.word: row.relevance for row in nearby_words(small.attached(WordIndex), "東京")}
    assert near["大学"] == 1
    assert near["入試"] > near["tokyo"] > 0
    assert "京都" not in near
    with pytest.raises(UsageError, match="one word"):
        nearby_words(small.attached(WordIndex), "two words")


CZECH = ("Pražského hradu si všimli velcí ptáci.", "Řada lidí vidí město.", "Kůň a koně.")


@pytest.mark.parametrize(
    ("typed", "name"),
    [("prazsky", "a"), ("prazskym", "a"), ("ptak", "a"), ("ptakovi", "a"), ("clovek", "b"), ("radou", "b"),
     ("mestech", "b"), ("kun", "c"), ("konim", "c")],
)  # fmt: skip
def test_words_typed_without_accents_are_found_in_all_forms(small: Archive, typed: str, name: str) -> None:
    for page, text in zip("abc", CZECH, strict=True):
        put(small, page, text, language="cs")
    assert found(small, typed) == [name]


def test_a_word_that_needs_no_accents_stays_before_those_that_do(small: Archive) -> None:
    put(small, "council", "Rada města zasedla, radu vedl starosta.", language="cs")
    put(small, "row", "Dlouhá řada lidí a řady aut.", language="cs")
    assert found(small, "rada") == ["council", "row"]
    assert found(small, "řada") == ["row", "council"]
