import pytest

from letopis.extract import read_page
from letopis.extract.metadata import primary_language

TEXTS = {
    "cs": (
        "Vláda dnes schválila návrh zákona, který podle ministra zlepší dostupnost bydlení. "
        "Poslanci o něm budou jednat příští týden a podle opozice bude rozprava dlouhá, protože se "
        "jedná o téma, které zajímá mnoho lidí."
    ),
    "sk": (
        "Vláda dnes schválila návrh zákona, ktorý podľa ministra zlepší dostupnosť bývania. "
        "Poslanci o ňom budú rokovať budúci týždeň a podľa opozície bude rozprava dlhá, pretože ide "
        "o tému, ktorá zaujíma veľa ľudí."
    ),
    "ru": (
        "Правительство сегодня одобрило проект закона, который, по словам министра, улучшит "
        "доступность жилья. Депутаты будут обсуждать его на следующей неделе."
    ),
    "en": (
        "The government today approved a bill that the minister says will improve access to "
        "housing. Members of parliament will debate it next week and the opposition expects a long "
        "discussion."
    ),
    "de": (
        "Die Regierung hat heute einen Gesetzentwurf gebilligt, der nach Angaben des Ministers den "
        "Zugang zu Wohnraum verbessern wird. Die Abgeordneten werden nächste Woche darüber beraten."
    ),
}


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("declared", ["", "en", "cs", "right"])
def test_the_text_decides_about_the_language(language, declared):
    said = language if declared == "right" else declared
    found = read_page(
        f"<html lang='{said}'><p>{TEXTS[language]}".encode(), "http://a.org/", (("Content-Type", "text/html"),)
    )
    assert found.language == language
    assert found.declared_language == said


def test_too_little_text_leaves_what_is_declared():
    assert read_page(b"<html lang=fr><p>OK", "http://a.org/", (("Content-Type", "text/html"),)).language == "fr"


@pytest.mark.parametrize(
    ("tag", "expected"),
    [("cs-CZ", "cs"), ("EN_us.UTF-8", "en"), ("", ""), ("x", ""), ("<script>", ""), ("čeština", "")],
)
def test_language_tags_are_cut(tag, expected):
    assert primary_language(tag) == expected
