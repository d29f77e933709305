"""Words near a word, phrases in time, categories."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime, timedelta

import pytest
from lxml import html
from word_chronicle import DATES, WORLD, SlowReader

from letopis import Archive
from letopis.config import SearchSettings
from letopis.errors import NotFound, UsageError
from letopis.index.base_forms import BaseForms
from letopis.index.page_text import split_words
from letopis.index.query_language import WordQuery, parse_word_query
from letopis.index.search_results import search
from letopis.index.word_analysis import nearby_words, phrase_history, site_categories, stop_words
from letopis.index.word_index import WordIndex
from letopis.model import Observation, Outcome, Response
from letopis_demo.languages import CZECH

Chronicle = tuple[WordIndex, SlowReader]


def test_relevance_is_the_sum_of_inverse_distances_in_base_forms(small: Archive) -> None:
    text = (
        "Katedra řídicí techniky je při katedře kybernetiky. "
        "Podle které se také na fakultě může, již více pro studenty nebo ale."
    )
    small.put("http://a.example/", f"<html lang=cs><p>{text}</p><p>techniky</p></html>".encode(), DATES[0],
              "text/html; charset=utf-8")  # fmt: skip
    found = {row.word: row.relevance for row in nearby_words(WordIndex(small), "katedrou", 3)}
    # katedra(0) řídicí(1) technika(2) být(3) při(4) katedra(5) kybernetika(6) podle(7) který(8)
    assert found["řídicí"] == pytest.approx(1)
    assert found["technika"] == pytest.approx(1 / 2 + 1 / 3)
    assert found["kybernetika"] == pytest.approx(1)
    assert not {"katedra", "při", "být", "podle", "který"} & found.keys()
    assert "fakulta" not in found


@pytest.mark.parametrize("at", [DATES[0], DATES[2]])
def test_words_near_katedra_equal_a_slow_scan(chronicle: Chronicle, at: datetime) -> None:
    index, _ = chronicle
    host, bases = WORLD.hosts[0], BaseForms(SearchSettings()).of("cs")
    forms = next(set(row[1:]) for row in CZECH.nouns if row[1] == "katedra")
    sums: defaultdict[str, float] = defaultdict(float)
    for url in WORLD.urls(host):
        for words in running_text(host, url, at):
            for place in (place for place, word in enumerate(words) if word in forms):
                for other in range(max(0, place - 5), min(len(words), place + 6)):
                    if words[other] not in forms:
                        sums[bases[words[other]]] += 1 / abs(other - place)
    slow = {word: round(total, 6) for word, total in sums.items() if len(word) > 1 and word not in stop_words("cs")}
    question = WordQuery(limits=parse_word_query("x", sites=(host,)).limits, at=at)
    found = {row.word: row.relevance for row in nearby_words(index, "katedra", 5, question, 10_000)}
    assert slow
    assert found == slow


def test_words_near_a_word_come_from_the_pages_that_fit_best_where_only_so_many_are_read(small: Archive) -> None:
    for name, text in (("best", "harbour lights, harbour"), ("other", f"a harbour wall {'and other words ' * 40}")):
        small.put(f"http://{name}.example/", f"<title>{name}</title><p>{text}</p>".encode(), DATES[0], "text/html")
    found = {most: {row.word for row in nearby_words(WordIndex(small), "harbour", most_pages=most)} for most in (1, 2)}
    assert "light" in found[1]
    assert "wall" not in found[1]
    assert {"light", "wall"} <= found[2]


def running_text(host: str, url: str, at: datetime) -> list[list[str]]:
    """The words of each piece of a page as it was last captured, separated as its markup does."""
    captures = [WORLD.answer(host, url.removeprefix(f"http://{host}"), (), date) for date in DATES if date <= at]
    good = [answer for answer in captures if answer.status == 200]
    if not good:
        return []
    tree = html.document_fromstring(good[-1].body.decode(dict(good[-1].headers)["Content-Type"].rpartition("=")[2]))
    texts = [element.text_content() for element in tree.xpath("//title|//h1|//h2|//p|//li|//td|//th")]
    texts += tree.xpath("//meta[@name='description']/@content|//img/@alt")
    return [re.findall(r"\w+", text.lower()) for text in texts]


def test_near_wants_one_word(small: Archive) -> None:
    with pytest.raises(UsageError):
        nearby_words(WordIndex(small), "two words")


def test_a_phrase_is_followed_through_time(small: Archive) -> None:
    def page(text: str) -> bytes:
        return f"<html lang=en><p>{text}</p></html>".encode()

    first, second = "http://a.example/", "http://b.example/x"
    day = timedelta(days=1)
    for number, (url, text) in enumerate(
        [(second, "other"), (first, "new terms of service"), (second, "Terms of  service"), (first, "none")]
    ):
        small.put(url, page(text), DATES[0] + number * day)
    index = WordIndex(small)
    with pytest.raises(NotFound, match="has the word 'nowhere' in just this form; a search finds all forms"):
        phrase_history(index, "nowhere")
    stood = phrase_history(index, "terms of service")
    assert (stood.first, stood.first_url) == (DATES[0] + day, first)
    assert (stood.last, stood.last_url, stood.gone) == (DATES[0] + 2 * day, second, None)
    assert (stood.pages, stood.versions) == (2, 2)
    there = phrase_history(index, "terms of service", "a.example")
    assert (there.last, there.gone, there.versions) == (DATES[0] + day, DATES[0] + 3 * day, 1)
    response = Response(second, second, 304, (), b"", DATES[0] + 9 * day)
    small.record([Observation(response, Outcome.UNCHANGED)])
    assert phrase_history(index, "terms of service").last == DATES[0] + 9 * day
    with pytest.raises(NotFound):
        phrase_history(index, "service of terms")
    with pytest.raises(NotFound):
        phrase_history(index, "terms of service", "c.example")


def test_when_equals_the_scan_of_the_known_history(chronicle: Chronicle) -> None:
    index, reader = chronicle
    for word in ("nová katedra", "rychlý archiv", "dlouhé období"):
        pattern = re.compile(rf"(?<!\w){word}(?!\w)", re.IGNORECASE)
        seen = [at for texts in reader.seen.values() for at, text in texts if pattern.search(text)]
        stood = phrase_history(index, word)
        assert (stood.first, stood.last) == (min(seen), max(seen))


def test_categories_are_named_by_key_words_of_their_pages(small: Archive) -> None:
    topics = {
        "music": "guitar concert orchestra",
        "sport": "football goalkeeper stadium",
        "food": "recipe kitchen soup",
    }
    for name, words in topics.items():
        for number in range(4):
            text = f"Everybody writes about {words} and {name}, {words}. Unique{name}{number}."
            body = f"<html lang=en><title>{name} {number}</title><nav><a href=/>Home menu</a></nav><p>{text}</p></html>"
            small.put(f"http://a.example/{name}/{number}", body.encode(), DATES[0])
    index = WordIndex(small)
    tree = site_categories(index, "a.example")
    groups = {tuple(sorted({url.split("/")[3] for url in category.pages})): category for category in tree}
    assert set(groups) == {("music",), ("sport",), ("food",)}
    for (topic,), category in groups.items():
        assert category.name in {*topics[topic].split(), topic}
        assert len(category.pages) == 4
    assert site_categories(index, "http://a.example/") == tree
    assert site_categories(WordIndex(small), "a.example") == tree


def test_a_page_of_the_university_is_in_the_category_that_its_title_names(chronicle: Chronicle) -> None:
    index, _ = chronicle
    tree = {category.name: category for category in site_categories(index, WORLD.hosts[0], DATES[-1]) if category.name}
    bases, judged = index.bases().of("cs"), 0
    for hit in search(index, parse_word_query("katedra", sites=(WORLD.hosts[0],), at=DATES[-1]), 100):
        named = {bases[word] for word in split_words(hit.title.partition("|")[0])} & tree.keys()
        if len(named) == 1:
            judged += 1
            assert hit.url in tree[named.pop()].pages
    assert judged


def test_a_word_that_only_other_pages_have_is_not_told_to_be_on_none(small: Archive) -> None:
    small.put("http://a.example/", b"<p>one word", DATES[1])
    index = WordIndex(small)
    for question in (WordQuery(at=DATES[0]), parse_word_query("site:b.example")):
        with pytest.raises(NotFound, match=r"no page there and then has the word 'word'; .* ask about more pages"):
            nearby_words(index, "word", 5, question)
    with pytest.raises(NotFound, match=r"no archived page has the word 'zebra'; .* crawl more"):
        nearby_words(index, "zebra")


def test_every_page_is_in_the_tree_once_on_each_level(chronicle: Chronicle) -> None:
    index, reader = chronicle
    host = WORLD.hosts[0]
    tree = site_categories(index, host, DATES[1])
    pages = [url for category in tree for url in category.pages]
    assert sorted(pages) == sorted(url for url in reader.at(DATES[1]) if url.split("/")[2] == host)
    for category in tree:
        if category.children:
            assert sorted(url for child in category.children for url in child.pages) == sorted(category.pages)
    with pytest.raises(NotFound):
        site_categories(index, "nowhere.example")


def test_a_phrase_of_a_page_that_answers_404_is_not_still_there(small: Archive) -> None:
    urls, day = ("http://a.example/", "http://b.example/x"), timedelta(days=1)
    for url in urls:
        small.put(url, b"<html lang=en><p>new terms of service</p></html>", DATES[0])
    for number, url in enumerate(urls, 1):
        small.record([Observation(Response(url, url, 404, (), b"", DATES[0] + number * day), Outcome.UNAVAILABLE)])
        stood = phrase_history(WordIndex(small), "terms of service")
        assert (stood.last_url, stood.gone) == (urls[1], None if number == 1 else DATES[0] + 2 * day)
    small.put(urls[1], b"<html lang=en><p>new terms of service</p></html>", DATES[0] + 5 * day)
    assert phrase_history(WordIndex(small), "terms of service").gone is None
