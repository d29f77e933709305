"""Sentences of alerts are kept in English and read in the language of the reader."""

from __future__ import annotations

import pytest

from letopis.web.alert_words import alert_words
from letopis.web.languages import CZECH, use_language

SENTENCES = [
    ("is unavailable now: status 503", "je nyní nedostupná: stav 503"),
    ("is unavailable 3 times in a row: no answer", "je nedostupná po 3. za sebou: no answer"),
    ("is available again after 2 failed checks", "je opět dostupná, předtím neúspěšných kontrol: 2"),
    ("answers with status 404, before it was 200", "odpovídá stavem 404, předtím 200"),
    ("now leads to http://a/, before to http://b/", "nyní vede na http://a/, předtím na http://b/"),
    ("has changed: 1 line added, 2 removed", "se změnila: přidáno řádků 1, odebráno 2"),
    ("has not changed since 2026-01-01T00:00:00Z", "se nezměnila od 2026-01-01T00:00:00Z"),
]


@pytest.mark.parametrize(("english", "czech"), SENTENCES)
def test_the_sentence_of_an_alert_is_said_in_czech(english: str, czech: str) -> None:
    with use_language(CZECH):
        assert alert_words(english) == czech


def test_what_is_no_sentence_of_ours_stays_and_what_pages_say_is_escaped() -> None:
    with use_language(CZECH):
        assert alert_words("something else") == "something else"
        assert "<b>" not in alert_words("is unavailable now: <b>")
