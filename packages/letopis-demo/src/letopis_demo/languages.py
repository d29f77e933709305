"""Small vocabularies with their inflected forms, and the sentences and paragraphs made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random

from letopis_demo.streams import pick

CASES = "12467"
"""Nominative, genitive, accusative, locative and instrumental, by their school numbers."""


@dataclass(frozen=True, slots=True)
class DemoLanguage:
    """One language: nouns as (gender, five forms), adjective stems with endings, and sentence patterns.

    In a pattern `{1}` to `{7}` is an adjective with a noun in that case, `{v}` a verb that wants the accusative, `{d}`
    an adverb, `{p}` a person and `{y}` a year.
    """

    code: str
    nouns: tuple[tuple[str, ...], ...]
    stems: tuple[str, ...]
    endings: dict[str, tuple[str, ...]]
    verbs: tuple[str, ...]
    adverbs: tuple[str, ...]
    people: tuple[str, ...]
    patterns: tuple[str, ...]
    titles: tuple[str, ...]
    more: str
    home: str


def _nouns(table: str) -> tuple[tuple[str, ...], ...]:
    """`gender nominative genitive accusative locative instrumental` lines; `-` repeats the form before."""
    rows = []
    for line in table.strip().splitlines():
        gender, *forms = line.split()
        for place, form in enumerate(forms):
            forms[place] = forms[place - 1] if form == "-" else form
        rows.append((gender, *forms))
    return tuple(rows)


def _word_list(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _people(first: str, last: str) -> tuple[str, ...]:
    return tuple(f"{name} {family}" for name in first.split() for family in last.split())


CZECH = DemoLanguage(
    code="cs",
    nouns=_nouns("""
        m projekt projektu projekt projektu projektem
        m výzkum výzkumu výzkum výzkumu výzkumem
        m systém systému systém systému systémem
        m článek článku článek článku článkem
        m předmět předmětu předmět předmětu předmětem
        m program programu program programu programem
        m archiv archivu archiv archivu archivem
        m model modelu model modelu modelem
        m seminář semináře seminář semináři seminářem
        m rozvrh rozvrhu rozvrh rozvrhu rozvrhem
        m dokument dokumentu dokument dokumentu dokumentem
        m návrh návrhu návrh návrhu návrhem
        m výsledek výsledku výsledek výsledku výsledkem
        m zákon zákona zákon zákonu zákonem
        f katedra katedry katedru katedře katedrou
        f fakulta fakulty fakultu fakultě fakultou
        f knihovna knihovny knihovnu knihovně knihovnou
        f přednáška přednášky přednášku přednášce přednáškou
        f zpráva zprávy zprávu zprávě zprávou
        f metoda metody metodu metodě metodou
        f síť sítě síť síti sítí
        f práce práce práci práci prací
        f verze verze verzi verzi verzí
        f komise komise komisi komisi komisí
        f stránka stránky stránku stránce stránkou
        f úloha úlohy úlohu úloze úlohou
        f historie historie historii historii historií
        f budova budovy budovu budově budovou
        f služba služby službu službě službou
        n město města město městě městem
        n studium studia studium studiu studiem
        n centrum centra centrum centru centrem
        n řešení - - - řešením
        n měření - - - měřením
        n vydání - - - vydáním
        n pracoviště - - pracovišti pracovištěm
        n úložiště - - úložišti úložištěm
        n rozhodnutí - - - rozhodnutím
        n téma tématu téma tématu tématem
        n období - - - obdobím
    """),
    stems=_word_list(
        "nov velk rychl důležit zajímav otevřen společn praktick technick evropsk česk historick úspěšn pravideln "
        "dlouh jednoduch přesn veřejn odborn matematick vědeck podrobn městsk užitečn stručn ucelen"
    ),
    endings={"m": ("ý", "ého", "ý", "ém", "ým"), "f": ("á", "é", "ou", "é", "ou"), "n": ("é", "ého", "é", "ém", "ým")},
    verbs=_word_list(
        "popisuje sleduje podporuje obsahuje vyžaduje nabízí mění používá připravuje zkoumá představuje doplňuje "
        "ovlivňuje porovnává hodnotí uvádí vysvětluje rozšiřuje zveřejňuje nahrazuje"
    ),
    adverbs=_word_list("dnes pravidelně zdarma společně obvykle rychle postupně znovu dlouhodobě přehledně jinde"),
    people=_people(
        "Jana Petr Eva Tomáš Alena Karel Věra Jiří", "Nováček Dvorský Malina Kopecký Bartoň Hrubeš Zelenka Vlk"
    ),
    patterns=(
        "{1} {v} {4} {d}.",
        "Podle {2} {v} {1} {4}.",
        "{1} {v} {4} i {4} při {6}.",
        "{1} bez {2} {v} {4}, protože {1} {v} {4}.",
        "V roce {y} {v} {1} {4} při {6}.",
        "{p} {d} {v} {4} pro {4}.",
        "O {6} píše {p}, {1} přitom {v} {4}.",
        "{1} spolu s {7} {d} {v} {4}.",
    ),
    titles=("{1}", "{1} a {1}", "{p}: {1}", "O {6}", "{1} bez {2}"),
    more="Čtěte také",
    home="Úvod",
)

SLOVAK = DemoLanguage(
    code="sk",
    nouns=_nouns("""
        m projekt projektu projekt projekte projektom
        m výskum výskumu výskum výskume výskumom
        m systém systému systém systéme systémom
        m článok článku článok článku článkom
        m predmet predmetu predmet predmete predmetom
        m program programu program programe programom
        m archív archívu archív archíve archívom
        m model modelu model modeli modelom
        m návrh návrhu návrh návrhu návrhom
        m výsledok výsledku výsledok výsledku výsledkom
        m zákon zákona zákon zákone zákonom
        m dokument dokumentu dokument dokumente dokumentom
        f katedra katedry katedru katedre katedrou
        f fakulta fakulty fakultu fakulte fakultou
        f knižnica knižnice knižnicu knižnici knižnicou
        f prednáška prednášky prednášku prednáške prednáškou
        f správa správy správu správe správou
        f metóda metódy metódu metóde metódou
        f sieť siete sieť sieti sieťou
        f práca práce prácu práci prácou
        f verzia verzie verziu verzii verziou
        f stránka stránky stránku stránke stránkou
        f úloha úlohy úlohu úlohe úlohou
        f služba služby službu službe službou
        f história histórie históriu histórii históriou
        n mesto mesta mesto meste mestom
        n štúdium štúdia štúdium štúdiu štúdiom
        n centrum centra centrum centre centrom
        n riešenie riešenia riešenie riešení riešením
        n meranie merania meranie meraní meraním
        n rozhodnutie rozhodnutia rozhodnutie rozhodnutí rozhodnutím
        n pracovisko pracoviska pracovisko pracovisku pracoviskom
        n úložisko úložiska úložisko úložisku úložiskom
        n obdobie obdobia obdobie období obdobím
    """),
    stems=_word_list(
        "nov veľk dôležit zaujímav otvoren spoločn technick praktick historick úspešn pravideln dlh jednoduch presn "
        "verejn odborn matematick vedeck užitočn mestsk podrobn slovensk stručn"
    ),
    endings={"m": ("ý", "ého", "ý", "om", "ým"), "f": ("á", "ej", "ú", "ej", "ou"), "n": ("é", "ého", "é", "om", "ým")},
    verbs=_word_list(
        "opisuje sleduje podporuje obsahuje vyžaduje ponúka mení používa pripravuje skúma predstavuje dopĺňa "
        "ovplyvňuje porovnáva hodnotí uvádza vysvetľuje rozširuje zverejňuje nahrádza"
    ),
    adverbs=_word_list("dnes pravidelne zadarmo spoločne obvykle rýchlo postupne znovu dlhodobo prehľadne inde"),
    people=_people("Zuzana Marek Lucia Juraj Katarína Peter", "Kováčik Horváth Baláž Hudák Kráľ Mráz Lipták"),
    patterns=(
        "{1} {v} {4} {d}.",
        "Podľa {2} {v} {1} {4}.",
        "{1} {v} {4} aj {4} pri {6}.",
        "{1} bez {2} {v} {4}, lebo {1} {v} {4}.",
        "V roku {y} {v} {1} {4} pri {6}.",
        "{p} {d} {v} {4} pre {4}.",
        "O {6} píše {p}, {1} pritom {v} {4}.",
    ),
    titles=("{1}", "{1} a {1}", "{p}: {1}", "O {6}", "{1} bez {2}"),
    more="Čítajte tiež",
    home="Úvod",
)

RUSSIAN = DemoLanguage(
    code="ru",
    nouns=_nouns("""
        m проект проекта проект проекте проектом
        m журнал журнала журнал журнале журналом
        m архив архива архив архиве архивом
        m закон закона закон законе законом
        m город города город городе городом
        m вопрос вопроса вопрос вопросе вопросом
        m отчёт отчёта отчёт отчёте отчётом
        m институт института институт институте институтом
        m документ документа документ документе документом
        m результат результата результат результате результатом
        m музей музея музей музее музеем
        m рынок рынка рынок рынке рынком
        f газета газеты газету газете газетой
        f книга книги книгу книге книгой
        f школа школы школу школе школой
        f работа работы работу работе работой
        f программа программы программу программе программой
        f наука науки науку науке наукой
        f история истории историю истории историей
        f статья статьи статью статье статьёй
        f сеть сети сеть сети сетью
        f область области область области областью
        f библиотека библиотеки библиотеку библиотеке библиотекой
        f страница страницы страницу странице страницей
        f версия версии версию версии версией
        n время времени время времени временем
        n место места место месте местом
        n решение решения решение решении решением
        n издание издания издание издании изданием
        n общество общества общество обществе обществом
        n письмо письма письмо письме письмом
        n слово слова слово слове словом
        n исследование исследования исследование исследовании исследованием
        n собрание собрания собрание собрании собранием
    """),
    stems=_word_list(
        "нов важн открыт точн быстр научн учебн известн полезн подробн народн свободн современн электронн обычн "
        "успешн интересн общественн культурн стар главн отдельн"
    ),
    endings={
        "m": ("ый", "ого", "ый", "ом", "ым"),
        "f": ("ая", "ой", "ую", "ой", "ой"),
        "n": ("ое", "ого", "ое", "ом", "ым"),
    },
    verbs=_word_list(
        "описывает изучает поддерживает содержит предлагает меняет использует готовит представляет дополняет "
        "сравнивает оценивает объясняет расширяет публикует заменяет обсуждает сохраняет открывает"
    ),
    adverbs=_word_list("сегодня регулярно бесплатно вместе обычно быстро постепенно снова подробно наглядно"),
    people=_people("Анна Пётр Ольга Иван Мария Сергей", "Лукин Седых Черных Белых Коваленко Шевченко"),
    patterns=(
        "{1} {v} {4} {d}.",
        "После {2} {1} {v} {4}.",
        "{1} {v} {4} и {4}.",
        "{1} без {2} {v} {4}, потому что {1} {v} {4}.",
        "В {y} году {1} {v} {4}.",
        "{p} {d} {v} {4} для {2}.",
        "О {6} пишет {p}, и {1} {v} {4}.",
        "Вместе с {7} {1} {d} {v} {4}.",
    ),
    titles=("{1}", "{1} и {1}", "{p}: {1}", "О {6}", "{1} без {2}"),
    more="Читайте также",
    home="Главная",
)

_ENGLISH_NOUNS = _word_list(
    "archive page reader version server network report library station harbour garden market engine letter window "
    "council river method record copy visitor index schedule crawler budget signal journal region bridge museum "
    "measurement history document project language table format browser decision story lecture winter teacher"
)

ENGLISH = DemoLanguage(
    code="en",
    nouns=tuple(("x", *[noun] * 5) for noun in _ENGLISH_NOUNS),
    stems=_word_list(
        "new quiet public early careful small open common steady local plain recent useful exact bright distant "
        "gentle formal modern broken patient narrow general simple honest remote"
    ),
    endings={"x": ("",) * 5},
    verbs=_word_list(
        "describes follows supports contains requires offers changes uses prepares studies presents completes "
        "compares explains extends publishes replaces records measures keeps"
    ),
    adverbs=_word_list("today often slowly again together usually quickly locally elsewhere twice"),
    people=_people(
        "Ada Grace Edgar Alan Barbara Donald Frances", "Hollis Marsh Whitby Fenwick Lowell Archer Quill Dunn"
    ),
    patterns=(
        "The {1} {v} the {4} {d}.",
        "According to the {2}, the {1} {v} a {4}.",
        "A {1} {v} the {4} and the {4} near the {6}.",
        "Without the {2} a {1} {v} the {4}, because the {1} {v} the {4}.",
        "In {y} the {1} {v} the {4}.",
        "{p} {d} {v} the {4} for the {4}.",
        "{p} writes about the {6}, while the {1} {v} the {4}.",
    ),
    titles=("The {1}", "{1} and {1}", "{p}: the {1}", "About the {6}", "How a {1} {v} the {4}"),
    more="Read next",
    home="Home",
)


@cache
def _steps(pattern: str) -> tuple[tuple[str, str], ...]:
    """A pattern as pairs of literal text and the slot that follows it."""
    parts = pattern.replace("{", "}").split("}")
    if len(parts) % 2:
        parts.append("")
    return tuple(zip(parts[::2], parts[1::2], strict=True))


def _phrase(language: DemoLanguage, slot: str, chance: Random) -> str:
    case = CASES.index(slot)
    noun = pick(chance, language.nouns)
    return f"{pick(chance, language.stems)}{language.endings[noun[0]][case]} {noun[case + 1]}"


def _filled(language: DemoLanguage, slot: str, chance: Random) -> str:
    if slot in CASES:
        return _phrase(language, slot, chance)
    if slot == "y":
        return str(1960 + int(chance.random() * 66))
    return pick(chance, {"v": language.verbs, "d": language.adverbs, "p": language.people}[slot])


def _pattern_words(language: DemoLanguage, pattern: str, chance: Random) -> Iterator[str]:
    for literal, slot in _steps(pattern):
        yield literal
        if slot:
            yield _filled(language, slot, chance)


def fill_pattern(language: DemoLanguage, pattern: str, chance: Random) -> str:
    """The pattern with every slot filled and the first letter raised."""
    text = "".join(_pattern_words(language, pattern, chance))
    return text[:1].upper() + text[1:]


def make_paragraph(language: DemoLanguage, chance: Random) -> str:
    """Three to seven sentences."""
    count = 3 + int(chance.random() * 5)
    return " ".join(fill_pattern(language, pick(chance, language.patterns), chance) for _ in range(count))


def make_title(language: DemoLanguage, chance: Random) -> str:
    """A heading without a full stop."""
    return fill_pattern(language, pick(chance, language.titles), chance)
