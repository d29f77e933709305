"""Word forms that the archive itself teaches."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from word_chronicle import DATES

from letopis import Archive
from letopis.archive.index_facts import lock_word
from letopis.config import SearchSettings
from letopis.index.base_forms import BaseForms
from letopis.index.learned_forms import FEWEST_WORDS, FormLearner, KnownForm, LearnedForms, learn_forms
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import search
from letopis.index.word_index import WordIndex

STEMS = [first + second + third for first in "bdfgk" for second in "aeiou" for third in ("ld", "rk", "nt", "st")]


def vocabulary() -> dict[str, KnownForm]:
    """Nouns of a language that was made up, with three cases; the dictionary lacks one of them."""
    listed = {stem + ending: KnownForm(stem, True) for stem in STEMS for ending in ("", "om", "uv")}
    return listed | {f"zork{ending}": KnownForm(f"zork{ending}", False) for ending in ("", "om", "uv")}


def test_a_word_that_no_dictionary_knows_joins_words_with_endings_that_belong_together() -> None:
    further = dict(FormLearner(vocabulary()).further_bases())
    assert further == {"zork": ["zorkom", "zorkuv"], "zorkom": ["zork", "zorkuv"], "zorkuv": ["zork", "zorkom"]}


def test_words_that_only_begin_alike_stay_apart() -> None:
    others = {f"zork{ending}": KnownForm(f"zork{ending}", False) for ending in ("alim", "eni")}
    further = dict(FormLearner(vocabulary() | others).further_bases())
    assert not others.keys() & further.keys()


def test_a_word_belongs_to_no_base_form_most_of_whose_forms_begin_otherwise() -> None:
    one_form = {"zorkom": KnownForm("zorkom", False), "zork": KnownForm("zork", True)}
    assert dict(FormLearner(vocabulary() | one_form).further_bases())["zorkom"] == ["zork", "zorkuv"]
    others = {f"plim{ending}": KnownForm("zork", True) for ending in ("a", "e", "o")}
    assert dict(FormLearner(vocabulary() | one_form | others).further_bases())["zorkom"] == ["zorkuv"]


class Dictionary:
    """What the dictionary of the language made up says."""

    def lemmatize(self, form: str, language: str) -> str:
        return self.listed(form, language) or form

    def listed(self, form: str, language: str) -> str | None:
        known = vocabulary().get(form)
        return known.base if known and known.listed else None

    def matching(self, beginnings: str, pattern: str, language: str) -> list[str]:
        return [word for word in vocabulary() if word[0] in beginnings and re.fullmatch(pattern, word)]


def test_german_nouns_are_found_beside_verbs_and_participles_are_words_of_their_own_once_they_are_inflected() -> None:
    words = "berichte berichts buche bücher gesetze gesetzt passen passend passende passenden schlafend erste ersterer"
    further = learn_forms({"de": Counter(words.split())}, bases := BaseForms(SearchSettings(languages=("de",))))
    assert further == {"berichte": {"bericht"}, "passenden": {"passende"}, "schlafend": {"schlafen"}}
    table = bases.of("de")
    assert table["passende"] == table["passend"] != table["passen"]
    assert table["organisierte"] == table["organisieren"]
    assert table["verwende"] == "verwenden"
    assert table["erstem"] != table["ersterem"] == table["ersterer"]


def test_tables_are_kept_for_the_base_forms_they_were_made_with(tmp_path: Path) -> None:
    bases = BaseForms(SearchSettings(languages=("xx",)), source=Dictionary)
    counted = Counter(
        dict.fromkeys([*vocabulary(), *(f"w{'abcdefgh'[n % 8] * (3 + n // 8)}" for n in range(FEWEST_WORDS))], 1)
    )
    made = LearnedForms(tmp_path)
    assert made.is_stale(100, bases.signature)
    made.learn(lambda: {"xx": counted}, 100, bases)
    again = LearnedForms(tmp_path)
    again.open(bases.signature)
    assert again.bases_of("zorkom") == ("zork", "zorkuv")
    assert again.members_of("zork") == ("zorkom", "zorkuv")
    assert again.bases_of("fald") == ()
    assert [again.is_stale(count, bases.signature) for count in (100, 120, 121)] == [False, False, True]
    assert again.is_stale(100, "other base forms")
    assert again.bases_of("zorkom") == ()


def test_an_index_of_other_base_forms_answers_until_it_is_made_anew(small: Archive) -> None:
    small.put("http://a.example/", b"<html lang=en><p>The library of this town is open every day.</p></html>", DATES[0])
    WordIndex(small).catch_up()
    lock_word(small, "town")
    index = WordIndex(small)
    assert index.lag() == 1
    with index.as_it_is():
        assert len(search(index, parse_word_query("libraries"))) == 1
    assert index.catch_up() == 1
    assert index.lag() == 0
