"""Lemma dictionaries on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
import simplemma
from hypothesis import given
from hypothesis import strategies as st
from simplemma.strategies.dictionaries import DefaultDictionaryFactory

from letopis.index.form_tables import LemmaTable, write_lemma_table
from letopis.index.lemma_tables import LemmaDictionaries, SimplemmaSource, cache_folder

SMALL = "ms"
"""A language with a small dictionary."""
FORM, LEMMA = list(DefaultDictionaryFactory().get_dictionary(SMALL).items())[-1]
WORD = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\t\n"), min_size=1, max_size=8)


@given(lemmas=st.dictionaries(WORD, WORD, max_size=200), others=st.lists(WORD))
def test_a_table_answers_as_the_dictionary_it_was_made_of(
    tmp_path_factory: pytest.TempPathFactory, lemmas: dict[str, str], others: list[str]
) -> None:
    file = tmp_path_factory.mktemp("tables") / "xx.lemmas"
    write_lemma_table(file, lemmas)
    table = LemmaTable(file)
    assert dict(table) == lemmas
    assert [table.get(word) for word in others] == [lemmas.get(word) for word in others]


def test_words_have_the_lemmas_of_simplemma(tmp_path: Path) -> None:
    lemmatizer = SimplemmaSource(tmp_path)
    words = [*list(DefaultDictionaryFactory().get_dictionary("cs"))[::5000], "nezname", "Praha-západ", "o'Brien"]
    for _ in range(2):
        assert [lemmatizer.lemmatize(word, "cs") for word in words] == [simplemma.lemmatize(w, "cs") for w in words]
        lemmatizer = SimplemmaSource(tmp_path)


def test_a_damaged_table_is_made_anew(tmp_path: Path) -> None:
    LemmaDictionaries(tmp_path).get_dictionary(SMALL)
    file = next(tmp_path.glob("ms-*"))
    whole = file.read_bytes()
    for damaged in (b"", whole[:100], whole[:-10], b"X" * 1000):
        file.write_bytes(damaged)
        assert LemmaDictionaries(tmp_path).get_dictionary(SMALL)[FORM] == LEMMA
        assert file.read_bytes() == whole


def test_a_block_that_cannot_be_read_is_taken_from_the_source(tmp_path: Path) -> None:
    LemmaDictionaries(tmp_path).get_dictionary(SMALL)
    file = next(tmp_path.glob("ms-*"))
    data = bytearray(file.read_bytes())
    data[len(data) // 3 :] = bytes(len(data) - len(data) // 3)
    file.write_bytes(data)
    assert LemmaDictionaries(tmp_path).get_dictionary(SMALL)[FORM] == LEMMA


def test_without_a_place_to_write_words_have_their_lemmas_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert LemmaDictionaries(tmp_path / "file").get_dictionary(SMALL)[FORM] == LEMMA


def test_a_language_that_is_asked_for_much_moves_to_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("letopis.index.lemma_tables._MANY", 10)
    LemmaDictionaries(tmp_path).get_dictionary(SMALL)
    dictionary = LemmaDictionaries(tmp_path).get_dictionary(SMALL)
    assert {dictionary[FORM] for _ in range(20)} == {LEMMA}
    next(tmp_path.glob("ms-*")).write_bytes(b"")
    assert dictionary[FORM] == LEMMA


def test_tables_lie_in_the_cache_folder_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "letopis" / "lemmas"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "letopis" / "lemmas"
