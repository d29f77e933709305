"""A removed text and its replacement, as lists show them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from letopis.archive.verdicts import ReplacedText

WORDS = st.lists(st.sampled_from(["one", "two", "three", "EUR", "40"]), max_size=8).map(" ".join)


@pytest.mark.parametrize(
    ("removed", "added", "parts"),
    [
        ("EUR 40.27", "EUR 50.34", ("EUR", "40.27", "50.34", "")),
        ("a bridge of nine arches", "a bridge of seven arches", ("a bridge of", "nine", "seven", "arches")),
        ("in stock", "sold out", ("", "in stock", "sold out", "")),
        ("", "a new sentence", ("", "", "a new sentence", "")),
        ("one and one", "one and one and one", ("one and one", "", "and one", "")),
        ("same", "same", ("same", "", "", "")),
    ],
)
def test_the_words_that_differ_stand_between_those_that_both_have(
    removed: str, added: str, parts: tuple[str, ...]
) -> None:
    assert ReplacedText(removed, added).parts == parts


@given(WORDS, WORDS)
def test_the_parts_make_both_texts_again(removed: str, added: str) -> None:
    parts = ReplacedText(removed, added).parts
    for middle, whole in ((parts.removed, removed), (parts.added, added)):
        assert " ".join(filter(None, (parts.before, middle, parts.after))) == whole


def test_a_number_without_a_word_beside_it_is_called_one() -> None:
    assert ReplacedText("30160", "40 240").is_number
    assert not ReplacedText("30160 visits", "40240 visits").is_number
