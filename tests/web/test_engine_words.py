"""Sentences of the engine are kept in English and read in the words of the pages and the language of the reader."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import letopis
from letopis.web import engine_words
from letopis.web.engine_words import HEALTH, REWORDED, alert_words, error_words, finding_words
from letopis.web.languages import CZECH, use_language

SENTENCES = [
    ("is unavailable now: status 503", "je nyní nedostupná: stav 503"),
    ("is unavailable 3 times in a row: no answer", "je nedostupná po 3. za sebou: no answer"),
    ("is available again after 2 failed checks", "je opět dostupná, předtím neúspěšných kontrol: 2"),
    ("answers with status 404, before it was 200", "odpovídá stavem 404, předtím 200"),
    ("now leads to http://a/, before to http://b/", "nyní vede na http://a/, předtím na http://b/"),
    ("has changed: 1 line added, 2 removed", "se změnila: přidáno řádků 1, odebráno 2"),
    ("has appeared; before, it answered with status 404", "se objevila; předtím odpovídala stavem 404"),
    ("has appeared; before, it did not answer", "se objevila; předtím neodpovídala"),
    ("has appeared; before, it was too large to be stored", "se objevila; předtím byla příliš velká k uložení"),
    ("has changed: other bytes, the same lines of text", "se změnila: jiné bajty, stejný text"),
    ("has changed: the version that was seen last is no longer kept, or cannot be read",
     "se změnila: the version that was seen last is no longer kept, or cannot be read"),
    ("shows nothing that the filters of the watch select; change them",
     "neobsahuje nic, co vybírají filtry sledování; změňte filtry"),
    ("has not changed since 2026-01-01T00:00:00Z", "se nezměnila od 2026-01-01T00:00:00Z"),
]  # fmt: skip


@pytest.mark.parametrize(("english", "czech"), SENTENCES)
def test_the_sentence_of_an_alert_is_said_in_czech(english: str, czech: str) -> None:
    with use_language(CZECH):
        assert alert_words(english) == czech


def test_what_is_no_sentence_of_ours_stays_and_what_pages_say_is_escaped() -> None:
    with use_language(CZECH):
        assert alert_words("something else") == "something else"
        assert "<b>" not in alert_words("is unavailable now: <b>")


@pytest.mark.parametrize(
    ("english", "czech"),
    [
        ("no connection could be made (Connection refused)", "Nepodařilo se navázat spojení (Connection refused)."),
        ("more than 20 redirects follow one another", "Následuje po sobě víc než 20 přesměrování."),
    ],
)
def test_why_a_check_failed_is_said_in_czech(english: str, czech: str) -> None:
    with use_language(CZECH):
        assert error_words(english) == czech


def said_by_the_engine() -> set[str]:
    """Every text of the code, with `{}` where a value stands."""
    found = set()
    for path in set(Path(letopis.__file__).parent.rglob("*.py")) - {Path(engine_words.__file__)}:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
                found.add("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


_PUT_TOGETHER = ("{size} GB free", "{folder} is read-only", "{curl}, without https", "{file} is used",
                 "{file} is missing", 'installed, not used; add "{affix}" to search.affixes')  # fmt: skip
"""Sentences whose value is formatted or added to them."""


def test_checks_of_the_installation_are_said_in_the_language_of_the_reader() -> None:
    assert finding_words("python") == "python"
    with use_language(CZECH):
        assert finding_words("71.8 GB free") == "volných 71.8 GB"
        assert finding_words("installed") == "nainstalováno"
        assert finding_words("<b>") == "&lt;b&gt;"


def test_pages_reword_only_what_the_engine_says() -> None:
    engine = {_bare(text) for text in said_by_the_engine()}
    parts = {"to '{owner}'": "{}", "to the owners": "{}", "nothing to {what}": "nothing to pause"}
    parts |= {"'{text}' is not a duration; {hint}": "{error}", " ({detail})": ""}
    for sentence in (*REWORDED, *HEALTH):
        if sentence in _PUT_TOGETHER:
            continue
        composed = sentence
        for said, source in parts.items():
            composed = composed.replace(said, source)
        assert {_bare(sentence), _bare(composed)} & engine, sentence


def _bare(text: str) -> str:
    return re.sub(r"[^\w{}]+", " ", re.sub(r"\{\w+\}", "{}", text))


@pytest.mark.parametrize(
    ("english", "shown", "czech"),
    [
        ("there is no job 999; see the list of jobs", "There is no run 999.", "Běh 999 neexistuje."),
        ("job 7 is already done; there is nothing to pause", "Run 7 has ended: done.", "Běh 7 už skončil: hotovo."),
        (
            "the watch 1 of http://a.example/ belongs to 'olga'; make one of your own under a name",
            "This watch belongs to olga; watch the page yourself to have one of your own.",
            "Toto hlídání patří účtu olga; vlastní získáte, když začnete stránku hlídat sami.",
        ),
        (
            "an unknown thing befell job 3; raise jobs.memory",
            "An unknown thing befell run 3; raise jobs.memory.",
            '<span lang="en">An unknown thing befell run 3; raise jobs.memory.</span>',
        ),
    ],
)
def test_what_went_wrong_is_said_of_runs_and_in_the_language_of_the_reader(
    english: str, shown: str, czech: str
) -> None:
    assert error_words(english) == shown
    with use_language(CZECH):
        assert error_words(english) == czech


def test_what_an_error_quotes_is_escaped() -> None:
    for sentence in ("there is no job '<b>'; see the list of runs", "nobody knows <b>"):
        assert "<b>" not in error_words(sentence)
