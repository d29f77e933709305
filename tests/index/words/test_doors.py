"""One question about words, the same answer in every door: verb, route, step of a job, web page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from word_chronicle import DATES
from word_doors import http, job, verb

from letopis import Archive
from letopis.archive.accounts import projects_of
from letopis.archive.index_facts import choice_counts
from letopis.config import SearchSettings, Settings
from letopis.errors import NotFound, UsageError
from letopis.index.word_index import WordIndex
from letopis.operations import Cancelled, Context, Silent, bind
from letopis.operations.duplicates import DuplicatesQuery, duplicates
from letopis.operations.words import (
    CategoriesQuery,
    NearWordsQuery,
    PhraseQuery,
    SearchQuery,
    categories,
    current_words,
    near,
    search,
    when,
    word_index,
)

DAY = timedelta(days=1)
PROSE = "The archive keeps what the pages of this network said and the readers of it are with the record. "
CZECH = "Archiv uchovává, co stránky této sítě říkaly, a čtenáři je mají v záznamu, jak tam tehdy opravdu stály. "
ONE, TWO, HOME, CESTA = "http://a.example/one", "http://a.example/two", "http://b.example/", "http://c.example/cesta"
SETTINGS = Settings(search=SearchSettings(learn=True))


def page(language: str, title: str, text: str) -> bytes:
    return f"<html lang={language}><title>{title}</title><h1>{title}</h1><p>{text}</p></html>".encode()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    folder = tmp_path_factory.mktemp("doors") / "a"
    with Archive(folder, settings=SETTINGS, clock=lambda: DATES[-1]) as made:
        made.put(ONE, page("en", "Harbours", PROSE + "Ships in the harbour."), DATES[0])
        made.put(TWO, page("en", "Gardens", PROSE + "A harbour garden."), DATES[0])
        made.put(TWO, page("en", "Gardens", PROSE + "A harbour with roses."), DATES[0] + DAY)
        made.put(HOME, page("en", "Harbour", PROSE + "Nothing else."), DATES[0])
        made.put(CESTA, page("cs", "Harbour", CZECH + "Cesta do přístavu."), DATES[0])
        made.put("http://b.example/copy", page("en", "Harbour", PROSE + "Nothing else."), DATES[0])
        projects_of(made).add("mine", "", [HOME], 0)
        yield made


@pytest.fixture
def context(archive: Archive) -> Context:
    return Context(archive)


Urls = Callable[..., list[set[str]]]


@pytest.fixture
def urls(archive: Archive, context: Context) -> Urls:
    """The pages that each door finds for the same values."""

    def ask(**values: list[str] | str) -> list[set[str]]:
        words = [values.get("q", "harbour")]
        for name in ("site", "lang", "block", "at", "from", "to", "project"):
            given = values.get(name, [])
            for value in [given] if isinstance(given, str) else given:
                words += [f"--{name}", value]
        status, rows = verb(archive.folder, "search", *map(str, words))
        assert status == 0
        raw = {"q": "harbour", **values}
        directly = search(context, bind(SearchQuery, raw, archive.clock()))
        answer = http(archive, "/api/v1/search", raw).json()
        attributes = "".join(
            f' {name}="{value if isinstance(value, str) else " ".join(value)}"'
            for name, value in values.items()
            if name != "q"
        )
        step = job(archive, f"<search{attributes}>{raw['q']}</search>")
        assert int(step.get("total", "")) == answer["total"] == directly.about["total"]
        return [
            {row.url for row in directly}, {row["url"] for row in rows}, {row["url"] for row in answer["results"]},
            {str(row.get("url")) for row in step},
        ]  # fmt: skip

    return ask


def same(found: list[set[str]], wanted: set[str]) -> None:
    assert all(urls == wanted for urls in found), found


def test_several_sites_languages_and_blocks_are_alternatives_in_every_door(urls: Urls) -> None:
    copy = "http://b.example/copy"
    same(urls(site=["a.example", "c.example"]), {ONE, TWO, CESTA})
    same(urls(site="http://b.example/x"), {HOME, copy})
    same(urls(lang=["en", "cs"]), {ONE, TWO, HOME, copy, CESTA})
    same(urls(lang=["cs"]), {CESTA})
    same(urls(block=["title", "h1"]), {ONE, HOME, copy, CESTA})
    same(urls(project="mine"), {HOME})


def test_a_bare_date_means_all_of_its_day(urls: Urls) -> None:
    day = DATES[0].date().isoformat()
    same(urls(q='"harbour garden"', at=day), {TWO})
    same(urls(q='"harbour garden"', to=day), {TWO})
    same(urls(q="roses", at=day), set())
    same(urls(q="roses", **{"from": day}), {TWO})


def test_pages_of_a_span_of_time_are_counted_once(archive: Archive, context: Context) -> None:
    since = DATES[0].isoformat()
    found = search(context, bind(SearchQuery, {"q": "harbour", "site": "a.example", "from": since}, DATES[-1]))
    assert (len(list(found)), found.about["total"]) == (2, 2)
    assert http(archive, "/api/v1/search", {"q": "garden*", "from": since}).json()["total"] == 1
    assert job(archive, f'<search from="{since}">garden*</search>').get("total") == "1"


QUESTIONS = ["search x --site {}", "near x --site {}", "when x --site {}", "categories {}", "duplicates {}"]


@pytest.mark.parametrize("words", QUESTIONS)
def test_a_site_that_nobody_knows_is_not_found(archive: Archive, words: str) -> None:
    assert verb(archive.folder, *words.format("nowhere.example").split())[0] == 3
    name, *rest = words.split()
    query = {"site": "nowhere.example", "q": "x", "word": "x", "phrase": "x"}
    assert http(archive, f"/api/v1/{name}", query).status == 404
    step = {"near": "wordprefix"}.get(name, name)
    text = "x" if "x" in rest else ""
    with pytest.raises(NotFound, match=r"no page of nowhere\.example is in the archive; crawl it first"):
        job(archive, f'<{step} site="nowhere.example">{text}</{step}>')


def test_pages_of_the_web_interface_know_unknown_sites_too(archive: Archive) -> None:
    assert http(archive, "/search", {"q": "x", "site": "nowhere.example"}).status == 404
    assert http(archive, "/duplicates", {"site": "nowhere.example"}).status == 404
    shown = http(archive, "/search", {"q": "harbour", "site": "a.example b.example"})
    assert shown.status == 200
    assert b"<mark>harbour</mark>" in shown.body
    assert http(archive, "/search", {"q": "harbour", "project": "mine"}).body.count(b'class="where"') == 1
    assert http(archive, "/search", {"q": "harbour", "project": "none"}).status == 404
    assert http(archive, "/search", {"q": "harbour", "page": "999"}).status == 200


@pytest.mark.parametrize(
    ("name", "most", "step"),
    [("search", 1000, '<search limit="{}">harbour</search>'), ("near", 10_000, '<wordprefix limit="{}" of="a"/>')],
)
def test_every_door_has_the_same_limits(archive: Archive, name: str, most: int, step: str) -> None:
    for value, fits in ((most, True), (most + 1, False), (0, False)):
        assert verb(archive.folder, name, "harbour", "--limit", str(value))[0] == (0 if fits else 2)
        query = {"q": "harbour", "word": "harbour", "limit": value}
        assert http(archive, f"/api/v1/{name}", query).status == (200 if fits else 400)
        if fits:
            job(archive, step.format(value))
        else:
            with pytest.raises(UsageError, match="limit"):
                job(archive, step.format(value))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"q": "x", "lang": "english"}, "'english' is not a language code"),
        ({"q": "x", "block": "shoe"}, "'shoe' is not a kind of block"),
        ({"q": 'a "b'}, "a quotation mark is missing"),
        ({"q": "x", "at": "2026-01-01", "from": "2026-01-01"}, "exclude each other"),
        ({"q": ""}, "the query is empty"),
        ({"q": "x", "offset": "10001"}, "offset"),
    ],
)
def test_a_bad_question_is_refused_with_one_sentence(
    archive: Archive, capsys: pytest.CaptureFixture[str], values: dict[str, str], sentence: str
) -> None:
    options = [word for name, value in values.items() if name != "q" for word in (f"--{name}", value)]
    assert verb(archive.folder, "search", values["q"], *options)[0] == 2
    assert sentence in capsys.readouterr().err
    answer = http(archive, "/api/v1/search", values)
    assert (answer.status, sentence in answer.json()["detail"]) == (400, True)
    attributes = "".join(f' {name}="{value}"' for name, value in values.items() if name != "q")
    with pytest.raises(UsageError, match=sentence):
        job(archive, f"<search{attributes}>{values['q']}</search>")
    with pytest.raises(UsageError, match=sentence):
        bind(SearchQuery, values, archive.clock())


def test_facets_stand_beside_the_hits_or_alone(archive: Archive) -> None:
    wanted = {"field": "site", "value": "b.example", "count": 2}
    answer = http(archive, "/api/v1/search", {"q": "harbour", "facets": "true"}).json()
    assert wanted in answer["facets"]
    assert len(answer["results"]) == answer["total"] == 5
    step = job(archive, '<search facets="true">harbour</search>')
    assert {"field": "site", "value": "b.example", "count": "2"} in [dict(one.attrib) for one in step.iter("facet")]
    assert (step.get("count"), len(list(step.iter("hit")))) == ("5", 5)
    assert wanted in verb(archive.folder, "search", "harbour", "--facets")[1]


def test_every_door_can_explain_a_score(archive: Archive) -> None:
    row = http(archive, "/api/v1/search", {"q": "ships", "explain": "true"}).json()["results"][0]
    assert row["why"]["found_as"] == ["Ships"]
    [shown] = verb(archive.folder, "search", "ships", "--explain")[1]
    assert {**shown["why"], "freshness": 0} == {**row["why"], "freshness": 0}
    [hit] = job(archive, '<search explain="true">ships</search>').iter("hit")
    assert json.loads(hit.get("why", ""))["found_as"] == ["Ships"]
    assert verb(archive.folder, "search", "ships")[1][0]["why"] is None


def test_words_near_a_word_are_the_same_everywhere(archive: Archive, context: Context) -> None:
    rows = verb(archive.folder, "near", "ships", "--distance", "2", "--site", "a.example", "--site", "b.example")[1]
    assert rows
    query = {"word": "ships", "distance": 2, "site": ["a.example", "b.example"]}
    assert http(archive, "/api/v1/near", query).json() == {"word": "ships", "distance": 2, "near": rows}
    step = job(archive, '<wordprefix between="2" site="a.example b.example">ships</wordprefix>')
    assert (step.get("between"), step.get("of"), step.get("count")) == ("2", "ships", str(len(rows)))
    assert [one.get("word") for one in step] == [row["word"] for row in rows]
    found = near(context, NearWordsQuery(word="ships", distance=2, sites=("a.example", "b.example")))
    assert [row._asdict() for row in found] == rows
    of_one_page = verb(archive.folder, "near", "ships", "--distance", "2", "--pages", "1")[1]
    assert http(archive, "/api/v1/near", {"word": "ships", "distance": 2, "pages": 1}).json()["near"] == of_one_page
    assert of_one_page


def test_the_history_of_a_phrase_is_the_same_everywhere(archive: Archive, context: Context) -> None:
    [row] = verb(archive.folder, "when", "harbour garden", "--site", "a.example", "--site", "b.example")[1]
    assert row["gone"] == "2026-01-06T09:00:00Z"
    assert http(archive, "/api/v1/when", {"phrase": "harbour garden", "site": "a.example"}).json() == row
    assert job(archive, '<when site="a.example">harbour garden</when>').get("gone") == row["gone"]
    assert when(context, PhraseQuery(phrase="harbour garden")).value.pages == 1
    with pytest.raises(NotFound):
        when(context, PhraseQuery(phrase="harbour garden", sites=("b.example",)))


def test_categories_name_the_host_and_nest(archive: Archive, context: Context) -> None:
    rows = verb(archive.folder, "categories", "a.example")[1]
    answer = http(archive, "/api/v1/categories", {"site": "http://a.example/one"}).json()
    assert (answer["site"], answer["categories"]) == ("a.example", rows)
    step = job(archive, "<categories>a.example</categories>")
    assert [one.get("pages", "").split() for one in step] == [row["pages"] for row in rows]
    assert [row.pages for row in categories(context, CategoriesQuery(site="a.example"))]


def test_duplicates_of_a_page_and_within_a_site(archive: Archive, context: Context) -> None:
    pair = {"url": HOME, "other": "http://b.example/copy", "likeness": 1.0, "exact": True}
    assert verb(archive.folder, "duplicates", "b.example")[1] == [pair]
    assert verb(archive.folder, "duplicates", HOME)[1] == [pair]
    within = http(archive, "/api/v1/duplicates", {"site": "http://b.example/copy"}).json()
    assert within == {"site": "b.example", "url": None, "duplicates": [pair]}
    assert http(archive, "/api/v1/duplicates", {"url": HOME}).json()["duplicates"] == [pair]
    assert [one.get("other") for one in job(archive, f'<duplicates url="{HOME}"/>')] == [pair["other"]]
    assert http(archive, "/api/v1/duplicates", {"url": HOME, "site": "b.example"}).status == 400
    assert http(archive, "/api/v1/duplicates").status == 400
    with pytest.raises(NotFound):
        duplicates(context, DuplicatesQuery(url="http://b.example/none"))


def test_equal_documents_of_the_whole_archive_are_listed(archive: Archive) -> None:
    [row] = verb(archive.folder, "duplicates", "copies")[1]
    assert (row["copies"], row["urls"]) == (2, [HOME, "http://b.example/copy"])
    assert http(archive, "/api/v1/duplicates/copies").json() == {"copies": [row]}


def test_what_was_shown_and_chosen_counts_whichever_door_was_used(tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=SETTINGS) as archive:
        archive.put(ONE, page("en", "Harbours", PROSE))
        search(Context(archive), SearchQuery(query="archive"))
        http(archive, "/api/v1/search", {"q": "archive"})
        http(archive, "/search", {"q": "archive"})
        job(archive, "<search>archive</search>")
        assert http(archive, "/api/v1/search/chosen", body={"url": ONE}).status == 204
        assert http(archive, "/search/chosen", {"url": ONE}).headers["location"] == f"/url/{ONE}"
        assert http(archive, "/api/v1/search/chosen", body={"url": "javascript:x"}).status == 422
        assert list(choice_counts(archive).values()) == [(4, 2)]


class Stopped(Silent):
    """Nobody wants the answer."""

    def cancelled(self) -> bool:
        return True


def test_work_that_nobody_wants_stops_and_goes_on_later(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        for number in range(3):
            archive.put(f"http://a.example/{number}", page("en", f"Page {number}", PROSE))
        stopped = Context(archive, progress=Stopped())
        with pytest.raises(Cancelled):
            search(stopped, SearchQuery(query="archive"))
        assert word_index(archive).lag() == 3
        assert len(list(search(Context(archive), SearchQuery(query="archive")))) == 3
        with pytest.raises(Cancelled):
            current_words(stopped, rebuild=True)
        with pytest.raises(Cancelled):
            duplicates(stopped, DuplicatesQuery(site="a.example"))
        assert len(list(search(Context(archive), SearchQuery(query="archive")))) == 3


def test_all_who_ask_in_a_process_share_one_index(archive: Archive) -> None:
    assert word_index(archive) is word_index(archive) is archive.attached(WordIndex)


def test_what_links_say_beside_their_text_is_found_in_every_door(tmp_path: Path) -> None:
    """The `title=` of a link, as a word of the page and as a word of its links; entries of feeds have dates there."""
    body = page("en", "Menu", PROSE + "<a href='/x' title='Timetable of ferries'>more</a> <a href='/y' title='y'>y</a>")
    feed = (
        b"<rss version='2.0'><channel><title>News</title><item><title>first</title><link>http://a.example/n</link>"
        b"<pubDate>Mon, 01 Jan 2024 00:00:00 GMT</pubDate></item></channel></rss>"
    )
    with Archive(tmp_path / "a", clock=lambda: DATES[-1]) as made:
        made.put(ONE, body, DATES[0])
        made.put(TWO, page("en", "Other", PROSE), DATES[0])
        made.put(HOME, feed, DATES[0], content_type="application/rss+xml")
        for words in ("timetable", "link:ferries", '"timetable of ferries"'):
            status, rows = verb(made.folder, "search", words)
            assert (status, [row["url"] for row in rows]) == (0, [ONE])
            answer = http(made, "/api/v1/search", {"q": words}).json()
            assert [row["url"] for row in answer["results"]] == [ONE]
        assert "</mark> of ferries" in http(made, "/api/v1/search", {"q": "timetable"}).json()["results"][0]["snippet"]
        assert verb(made.folder, "search", "2024-01-01T00:00:00+00:00")[1] == []
