"""Search at any date equals a slow scan of what stood then, which shares no code with the index."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from word_chronicle import DATES, WORLD, SlowReader

from letopis.index.query_language import parse_word_query
from letopis.index.search_results import count_results, search, search_facets
from letopis.index.word_index import WordIndex
from letopis_demo.languages import CZECH, RUSSIAN

Chronicle = tuple[WordIndex, SlowReader]
CZECH_HOSTS = tuple(host for host in WORLD.hosts if WORLD.kind(host).language is CZECH)
RUSSIAN_HOSTS = tuple(host for host in WORLD.hosts if WORLD.kind(host).language is RUSSIAN)
# Between the dates too: what stood then is what was captured last before.
MOMENTS = [*DATES, DATES[1] + timedelta(days=2), DATES[-1] + timedelta(days=400)]


def found(index: WordIndex, text: str, at: datetime | None, **limits: tuple[str, ...]) -> set[str]:
    question = parse_word_query(text, at=at, **limits)  # type: ignore[arg-type]
    hits = search(index, question, 1000)
    assert len(hits) == len({hit.url for hit in hits}) == count_results(index, question)
    return {hit.url for hit in hits}


def of_hosts(urls: set[str], hosts: tuple[str, ...]) -> set[str]:
    return {url for url in urls if url.split("/")[2] in hosts}


def noun(language: object, base: str) -> set[str]:
    rows = [row for row in (CZECH.nouns if language is CZECH else RUSSIAN.nouns) if row[1] == base]
    return set(rows[0][1:])


@pytest.mark.parametrize("at", MOMENTS)
def test_each_pages_own_word_is_found_on_it_alone_while_it_stood(chronicle: Chronicle, at: datetime) -> None:
    index, reader = chronicle
    for host in WORLD.hosts:
        for url in list(WORLD.urls(host))[::5]:
            word = WORLD.reference(url)
            assert found(index, word, at) == reader.with_any({word.lower()}, at)


@pytest.mark.parametrize("at", MOMENTS)
@pytest.mark.parametrize(("asked", "base"), [("katedra", "katedra"), ("katedrou", "katedra"), ("městem", "město")])
def test_czech_words_are_found_in_all_their_forms(chronicle: Chronicle, at: datetime, asked: str, base: str) -> None:
    index, reader = chronicle
    slow = of_hosts(reader.with_any(noun(CZECH, base), at), CZECH_HOSTS)
    assert found(index, asked, at, sites=CZECH_HOSTS) == slow
    assert slow


@pytest.mark.parametrize("at", MOMENTS[:3])
@pytest.mark.parametrize(("asked", "base"), [("газета", "газета"), ("книгой", "книга")])
def test_russian_words_are_found_in_all_their_forms(chronicle: Chronicle, at: datetime, asked: str, base: str) -> None:
    index, reader = chronicle
    slow = of_hosts(reader.with_any(noun(RUSSIAN, base), at), RUSSIAN_HOSTS)
    assert found(index, asked, at, sites=RUSSIAN_HOSTS) == slow
    assert slow


@pytest.mark.parametrize("at", MOMENTS)
@pytest.mark.parametrize("phrase", ["nová katedra", "rychlý archiv", "the new report", "nového projektu"])
def test_phrases_are_found_as_they_stand(chronicle: Chronicle, at: datetime, phrase: str) -> None:
    index, reader = chronicle
    pattern = re.compile(rf"(?<!\w){phrase}(?!\w)", re.IGNORECASE)
    assert found(index, f'"{phrase}"', at) == {url for url, text in reader.at(at).items() if pattern.search(text)}


@pytest.mark.parametrize("at", MOMENTS[:3])
def test_prefixes_and_exclusions_equal_the_scan(chronicle: Chronicle, at: datetime) -> None:
    index, reader = chronicle
    texts = {url: set(re.findall(r"\w+", text.lower())) for url, text in reader.at(at).items()}
    starts = {url for url, words in texts.items() if any(word.startswith("knihov") for word in words)}
    without = {url for url in starts if not texts[url] & {"archivem", "katedrou"}}
    assert found(index, "knihov*", at) == starts
    assert found(index, 'knihov* -"archivem" -"katedrou"', at) == without
    assert without < starts
    either = {url for url, words in texts.items() if words & {"archivem", "katedrou"}}
    assert found(index, '"archivem" OR "katedrou"', at) == either


def test_nothing_is_found_before_the_first_date(chronicle: Chronicle) -> None:
    index, _ = chronicle
    assert found(index, "katedra", DATES[0] - timedelta(seconds=1)) == set()
    assert found(index, "katedra", DATES[0])


def test_without_a_date_the_newest_versions_are_searched(chronicle: Chronicle) -> None:
    index, _ = chronicle
    assert found(index, "archiv", None) == found(index, "archiv", DATES[-1])


def test_a_span_finds_whatever_stood_at_some_time_of_it(chronicle: Chronicle) -> None:
    index, reader = chronicle
    words = noun(CZECH, "předmět")
    ever = of_hosts(set().union(*(reader.with_any(words, date) for date in DATES)), CZECH_HOSTS)
    question = parse_word_query("předmět", sites=CZECH_HOSTS, since=DATES[0], until=DATES[-1])
    hits = search(index, question, 1000)
    assert {hit.url for hit in hits} == ever
    assert len(hits) == len(ever)
    early = search(index, parse_word_query("předmět", sites=CZECH_HOSTS, until=DATES[0]), 1000)
    assert {hit.url for hit in early} == of_hosts(reader.with_any(words, DATES[0]), CZECH_HOSTS)


def test_rows_name_the_version_that_stood_then(chronicle: Chronicle) -> None:
    index, _ = chronicle
    for at in DATES:
        for hit in search(index, parse_word_query("projekt", at=at), 20):
            version = index.archive.get(hit.url, at=at)
            assert (hit.version, hit.time) == (version.number, version.time)
            assert hit.until == version.valid_until


def test_pages_of_an_answer_fit_together(chronicle: Chronicle) -> None:
    index, _ = chronicle
    question = parse_word_query("archiv")
    whole = [hit.url for hit in search(index, question, 60)]
    parts = [hit.url for offset in range(0, 60, 7) for hit in search(index, question, min(7, 60 - offset), offset)]
    assert parts == whole


def test_facets_count_what_the_answer_has(chronicle: Chronicle) -> None:
    index, _ = chronicle
    question = parse_word_query("archiv", at=DATES[2])
    urls = found(index, "archiv", DATES[2])
    by_site = {facet.value: facet.count for facet in search_facets(index, question) if facet.field == "site"}
    assert by_site == {host: n for host in WORLD.hosts if (n := len(of_hosts(urls, (host,))))}
    languages = {facet.value: facet.count for facet in search_facets(index, question) if facet.field == "language"}
    assert sum(languages.values()) == len(urls)
    assert found(index, "archiv lang:cs", DATES[2]) | found(index, "archiv -lang:cs", DATES[2]) == urls


@pytest.mark.parametrize("at", [None, *MOMENTS])
def test_sifting_gives_what_limiting_gives(
    chronicle: Chronicle, monkeypatch: pytest.MonkeyPatch, at: datetime | None
) -> None:
    index, _ = chronicle
    for text in ("archiv", "katedra -knihovna", "new OR report", "site:news1.example projekt"):
        question = parse_word_query(text, at=at)
        answers = []
        for share in (0.0, 2.0):
            monkeypatch.setattr("letopis.index.search_results._MOSTLY", share)
            answers.append([(hit.url, hit.version, hit.score) for hit in search(index, question, 7)])
        assert answers[0] == answers[1]
        assert answers[0] or "-" in text
