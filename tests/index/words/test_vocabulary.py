"""Words like a given one: with other accents, with a typo, longer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from letopis.archive import Archive
from letopis.errors import UsageError
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import search
from letopis.index.vocabulary import accent_pattern, completions, corrected_query, corrections, edit_distance, folded
from letopis.index.word_index import WordIndex, derive_base_forms
from letopis.operations import Context
from letopis.operations.word_forms import CompletionQuery, complete
from letopis.operations.words import SearchQuery
from letopis.operations.words import search as search_operation

PAGES = {
    "http://a.example/kun": "Příliš žluťoučký kůň úpěl ďábelské ódy. Rada města zasedla.",
    "http://a.example/rada": "Byla to dlouhá řada lidí před školou.",
    "http://a.example/plain": "Skola bez hacku, katedra kybernetiky.",
    "http://b.example/straße": "Łódź und Đakovo: die Straße der Häuser, Αθήνα.",
    "http://a.example/school": "Škola a školy v kraji, katedra češtiny, katedry.",
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    with Archive(tmp_path_factory.mktemp("accents") / "archive") as archive:
        for url, text in PAGES.items():
            body = f'<html lang="cs"><title>x</title><p>{text}</p></html>'.encode()
            archive.put(url, body, datetime(2024, 1, 1, tzinfo=UTC), "text/html; charset=utf-8")
        yield archive


def found(archive: Archive, words: str) -> list[str]:
    return [hit.url.rpartition("/")[2] for hit in search(archive.attached(WordIndex), parse_word_query(words))]


def test_words_are_found_without_their_accents(archive: Archive) -> None:
    assert found(archive, "zlutoucky") == ["kun"]
    assert found(archive, "kun upel") == ["kun"]
    assert found(archive, "ZLUTOUCKY") == ["kun"]


@pytest.mark.parametrize("typed", ["lodz", "dakovo", "strasse", "STRASSE", "haeuser", "αθηνα", "ΑΘΗΝΑ"])
def test_letters_that_no_accent_makes_are_found_as_they_are_typed(archive: Archive, typed: str) -> None:
    assert found(archive, typed) == ["stra%C3%9Fe"]


def test_words_with_accents_find_pages_written_without_them(archive: Archive) -> None:
    assert set(found(archive, "škola")) == {"school", "plain", "rada"}


def test_the_form_that_was_typed_comes_first(archive: Archive) -> None:
    assert found(archive, "rada") == ["kun", "rada"]
    assert found(archive, "řada") == ["rada", "kun"]
    assert found(archive, "skola")[0] == "plain"


def test_words_with_soft_hyphens_are_found_whole(small: Archive) -> None:
    body = '<html lang="de"><meta charset="utf-8"><title>x</title><p>Das Donau&shy;dampf&shy;schiff kommt.</p></html>'
    small.put("http://a.example/schiff", body.encode(), datetime(2024, 1, 1, tzinfo=UTC), "text/html; charset=utf-8")
    (hit,) = search(small.attached(WordIndex), parse_word_query('"donaudampfschiff"'))
    assert hit.snippet.hits == ("Donaudampfschiff",)


@pytest.mark.parametrize("cry", ["a" * 21, "a" * 64, "a" * 65, "ae" * 40, "oe" * 32])
def test_a_cry_of_any_length_is_a_word_that_no_page_has(archive: Archive, cry: str) -> None:
    assert found(archive, cry) == found(archive, f"{cry}*") == found(archive, f'"{cry}"') == []
    assert completions(archive.attached(WordIndex).snapshot(), cry, 5) == []


def test_words_in_quotes_are_found_as_they_stand(archive: Archive) -> None:
    assert found(archive, '"skola"') == ["plain"]
    assert found(archive, '"zlutoucky"') == []


def test_prefixes_do_not_mind_accents(archive: Archive) -> None:
    assert found(archive, "zlut*") == ["kun"]


@pytest.mark.parametrize("typed", ["strass*", "STRASSE*", "straß*", "haeu*", "hauser*"])
def test_two_letters_of_a_prefix_may_stand_for_one(archive: Archive, typed: str) -> None:
    assert found(archive, typed) == ["stra%C3%9Fe"]
    assert found(archive, f"{typed[1:]}") == []


def test_prefixes_of_older_versions_may_have_two_letters_for_one(small: Archive) -> None:
    for day, text in enumerate(("Die lange Straße, nahe der Hauptstraße.", "Nichts.")):
        body = f'<html lang="de"><meta charset="utf-8"><title>x</title><p>{text}</p></html>'
        small.put("http://a.example/", body.encode(), datetime(2024, 1, 1 + day, tzinfo=UTC), "text/html")
    index = small.attached(WordIndex)
    for blocks in ((), ("paragraph",)):
        then = {"at": datetime(2024, 1, 1, 12, tzinfo=UTC), "blocks": blocks}
        (hit,) = search(index, parse_word_query("strasse*", **then))
        assert hit.snippet.hits == ("Straße",)
        assert not search(index, parse_word_query("trasse*", **then))


def test_snippets_mark_the_word_with_its_accents(archive: Archive) -> None:
    hit = search(archive.attached(WordIndex), parse_word_query("zlutoucky"))[0]
    assert hit.snippet.hits == ("žluťoučký",)


def test_a_typo_is_answered_with_the_word_that_the_archive_has(archive: Archive) -> None:
    rows = search_operation(Context(archive), SearchQuery(query="katdera -skola"))
    assert list(rows) == []
    assert rows.about["suggestion"] == "katedra -skola"
    assert rows.remark == "nothing found; did you mean: katedra -skola"


@pytest.mark.parametrize(
    ("typed", "meant"), [("zlutoucki", "žluťoučký"), ("dabelke", "ďábelské"), ("zlutuocky", "žluťoučký")]
)
def test_a_typo_of_those_who_type_without_accents_is_answered_too(archive: Archive, typed: str, meant: str) -> None:
    rows = search_operation(Context(archive), SearchQuery(query=typed))
    assert rows.about["suggestion"] == meant


def test_words_in_quotes_that_stand_nowhere_so_are_suggested_without_quotes(archive: Archive) -> None:
    asked = SearchQuery(query='"katedra skola"')
    assert search_operation(Context(archive), asked).about["suggestion"] == "katedra skola"
    for words in ('site:"a.example" "xx"', '"l*brary"', '"site: nowhere"'):
        assert search_operation(Context(archive), SearchQuery(query=words)).about["suggestion"] == ""


def test_nothing_is_suggested_where_it_would_find_nothing(archive: Archive) -> None:
    asked = SearchQuery(query="katdera zlutoucky")
    assert search_operation(Context(archive), asked).about["suggestion"] == ""
    assert search_operation(Context(archive), SearchQuery(query='"katdera"')).about["suggestion"] == ""


def test_who_skips_all_that_was_found_is_not_told_that_nothing_was(archive: Archive) -> None:
    rows = search_operation(Context(archive), SearchQuery(query="katedra", offset=5))
    assert (list(rows), rows.about["total"]) == ([], 2)
    assert rows.remark == "no more results: 2 pages found, and you skipped 5"


def test_words_are_completed_the_most_frequent_first(archive: Archive) -> None:
    rows = list(complete(Context(archive), CompletionQuery(beginning="Kat")))
    assert [row.word for row in rows] == ["katedra", "katedry"]
    assert rows[0].versions == 2
    assert {row.word for row in complete(Context(archive), CompletionQuery(beginning="skol"))} == {
        "skola", "škola", "školy", "školou",
    }  # fmt: skip


def test_one_letter_is_not_completed() -> None:
    with pytest.raises(UsageError, match="two letters"):
        CompletionQuery(beginning="k ")


def test_a_word_with_every_accent_matches_its_pattern() -> None:
    for word in (
        "žluťoučký",
        "łódź",
        "naïve",
        "façade",
        "ångström",
        "straße",
        "œuvre",
        "đakovo",
        "ışık",
        "αθήνα",
        "đẹp",
    ):
        assert re.fullmatch(accent_pattern(folded(word)), word)


@pytest.mark.parametrize(
    ("typed", "written"),
    [("lodz", "łódź"), ("strasse", "straße"), ("haeuser", "häuser"), ("smorrebrod", "smørrebrød"), ("coeur", "cœur"),
     ("isik", "ışık"), ("da", "đà"), ("nang", "nẵng"), ("αθηνα", "αθήνα"), ("aarhus", "århus"), ("strasse", "strasse")],
)  # fmt: skip
def test_letters_that_a_keyboard_lacks_are_typed_as_others(typed: str, written: str) -> None:
    assert re.fullmatch(accent_pattern(typed), written)
    assert not re.fullmatch(accent_pattern(typed), typed + "x")


WORDS = st.text("abcč", max_size=6)


@given(WORDS, WORDS, st.integers(0, 3))
def test_the_distance_of_words_is_the_shortest_way_of_changes(first: str, second: str, most: int) -> None:
    assert edit_distance(first, second, most) == min(_slow_distance(first, second), most + 1)


def _slow_distance(first: str, second: str) -> int:
    """The same from its definition."""
    if not first or not second:
        return len(first) + len(second)
    found = min(
        _slow_distance(first[1:], second) + 1,
        _slow_distance(first, second[1:]) + 1,
        _slow_distance(first[1:], second[1:]) + (first[0] != second[0]),
    )
    if len(first) > 1 and len(second) > 1 and first[0] == second[1] and first[1] == second[0]:
        found = min(found, _slow_distance(first[2:], second[2:]) + 1)
    return found


def test_words_that_older_versions_alone_have_are_completed_and_corrected_as_they_stood(small: Archive) -> None:
    url = "http://a.example/"
    for day, text in enumerate(("Setkání před katedrou.", "Katedra mlčí.", "Nic nového.")):
        body = f'<html lang="cs"><title>x</title><p>{text} Univerzita zve všechny studenty na přednášky.</p></html>'
        small.put(url, body.encode(), datetime(2024, 1, 1 + day, tzinfo=UTC), "text/html; charset=utf-8")
    snapshot = small.attached(WordIndex).snapshot()
    assert [(found.word, found.versions) for found in completions(snapshot, "kated", 5)] == [
        ("katedra", 1),
        ("katedrou", 1),
    ]
    assert [found.word for found in corrections(snapshot, "katderou")] == ["katedrou"]
    assert corrected_query(snapshot, "katdera katedrou katedry") == "katedra katedrou katedra"


def test_words_get_base_forms_that_stood_in_older_versions_alone(small: Archive) -> None:
    for day, text in enumerate(("blorga", "blorgou", "jiné")):
        body = f'<html lang="cs"><title>x</title><p>{text} Univerzita zve všechny studenty na přednášky.</p></html>'
        small.put("http://a.example/", body.encode(), datetime(2024, 1, 1 + day, tzinfo=UTC), "text/html")
    index = small.attached(WordIndex)
    assert ("blorgou", "blorga") in derive_base_forms(index, "ou", "a")
    # A base form that never stood is none of its words.
    assert all(base != "katedra" for _, base in derive_base_forms(index, "ou", "a"))
