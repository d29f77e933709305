"""What people and programs see: the verbs, the HTTP routes, duplicates, ranking."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from word_chronicle import DATES
from word_doors import http

from letopis import Archive
from letopis.archive.accounts import projects_of
from letopis.cli.main import main
from letopis.errors import NotFound
from letopis.index.near_duplicates import duplicates_in_site, duplicates_of_page
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import search
from letopis.index.word_index import WordIndex
from letopis_demo import World

PROSE = "The archive keeps what the pages of this network said and the readers of it are with the record. "
DAY = timedelta(days=1)
Run = Callable[..., list[dict[str, Any]]]


def page(title: str, text: str) -> bytes:
    return f"<html lang=en><title>{title}</title><h1>{title}</h1><p>{text}</p></html>".encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Archive(tmp_path / "a") as archive:
        archive.put("http://a.example/one", page("Harbours", PROSE + "Ships &lt;b&gt; sails."), DATES[0])
        archive.put("http://a.example/two", page("Gardens", PROSE + "A harbour garden."), DATES[0])
        archive.put("http://a.example/two", page("Gardens", PROSE + "Roses."), DATES[0] + DAY)
        archive.put("http://b.example/", page("Harbour", PROSE + "Nothing else."), DATES[0])
        projects_of(archive).add("mine", "", ["http://b.example/"], 0)
    return tmp_path / "a"


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def ask(*words: str, status: int = 0) -> list[dict[str, Any]]:
        assert main([*words, "--json", "--archive", str(folder)]) == status
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return ask


def test_search_prints_the_rows_that_scripts_rely_on(run: Run) -> None:
    rows = run("search", "ships")
    assert {"url", "title", "snippet", "score", "time", "version"} <= set(rows[0])
    assert [(row["url"], row["title"], row["version"], row["time"]) for row in rows] == [
        ("http://a.example/one", "Harbours", 0, "2026-01-05T09:00:00Z")
    ]
    assert "<mark>Ships</mark> &lt;b&gt; sails" in rows[0]["snippet"]


def test_search_can_be_limited_in_every_way(run: Run) -> None:
    def urls(*words: str) -> set[str]:
        return {row["url"] for row in run("search", *words)}

    everywhere = {"http://a.example/one", "http://b.example/"}
    assert urls("harbour") == everywhere
    assert urls("harbour", "--at", DATES[0].isoformat()) == {*everywhere, "http://a.example/two"}
    assert urls("harbour", "--from", DATES[0].isoformat()) == {*everywhere, "http://a.example/two"}
    assert (
        urls("harbour", "--site", "http://b.example/x") == urls("harbour", "--project", "mine") == {"http://b.example/"}
    )
    assert urls("harbour", "--lang", "en") == everywhere
    assert urls("harbour", "--lang", "cs") == set()
    assert urls("ships", "--block", "paragraph") == {"http://a.example/one"}
    assert urls("ships", "--block", "h1") == set()
    assert len(run("search", "archive", "--limit", "1")) == 1
    assert len(run("search", "archive", "--offset", "2")) == 1


def test_search_explains_facets_and_rebuilds(run: Run) -> None:
    row = run("search", "harbour", "--explain")[0]
    why = row["why"]
    assert row["score"] == pytest.approx(why["words"] * why["freshness"] * why["rank"], abs=1e-3)
    assert run("search", "archive", "--facets")[:2] == [
        {"field": "site", "value": "a.example", "count": 2},
        {"field": "site", "value": "b.example", "count": 1},
    ]
    assert run("search", "--rebuild") == []
    assert len(run("search", "archive", "--rebuild")) == 3


def test_wrong_usage_and_unknown_things_have_their_status(run: Run) -> None:
    run("search", status=2)
    run("search", 'a "b', status=2)
    run("search", "x", "--project", "none", status=3)
    run("when", "never said", status=3)
    run("categories", "nowhere.example", status=3)
    run("duplicates", "nowhere.example", status=3)
    run("duplicates", "http://nowhere.example/x", status=3)
    assert run("search", "absent") == []


def test_the_other_verbs_answer(run: Run) -> None:
    assert {"word": "sail", "relevance": 0.5} in run("near", "ships", "--distance", "2")
    assert [row["word"] for row in run("near", "ships", "--distance", "1")] == ["record"]
    (stood,) = run("when", "harbour garden")
    assert (stood["first"], stood["gone"]) == ("2026-01-05T09:00:00Z", "2026-01-06T09:00:00Z")
    assert {url for row in run("categories", "a.example") for url in row["pages"]} == {
        "http://a.example/one",
        "http://a.example/two",
    }


def test_people_see_titles_and_addresses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "ships", "--archive", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "Harbours" in shown
    assert "http://a.example/one" in shown
    assert main(["categories", "a.example", "--archive", str(folder)]) == 0
    assert "pages" in capsys.readouterr().out


# HTTP


def get(archive: Archive, path: str, **query: object) -> tuple[int, Any]:
    answer = http(archive, path, query)
    return answer.status, answer.json()


def test_http_answers_what_the_verbs_answer(folder: Path) -> None:
    with Archive(folder) as archive:
        status, found = get(archive, "/api/v1/search", q="harbour", facets="true")
        assert (status, found.get("total")) == (200, 2), found
        assert {"url", "title", "snippet", "score", "time", "version"} <= set(found["results"][0])
        assert {"field": "site", "value": "b.example", "count": 1} in found["facets"]
        assert get(archive, "/api/v1/search", q="harbour", at="2026-01-05T10:00:00Z")[1]["total"] == 3
        assert get(archive, "/api/v1/search", q="harbour", project="mine")[1]["total"] == 1
        assert get(archive, "/api/v1/near", word="ships")[1]["near"][0]["word"] == "record"
        assert get(archive, "/api/v1/when", phrase="harbour garden")[1]["pages"] == 1
        assert get(archive, "/api/v1/categories", site="a.example")[0] == 200
        assert get(archive, "/api/v1/duplicates", site="a.example")[0] == 200
        assert get(archive, "/api/v1/search", q='"')[0] == 400
        assert get(archive, "/api/v1/search")[0] == 400
        assert get(archive, "/api/v1/when", phrase="never said")[0] == 404


# Order


def test_titles_count_more_and_fresh_pages_come_first(small: Archive) -> None:
    long_ago = DATES[0] - 700 * DAY
    small.put("http://a.example/old", page("Other", PROSE + "A lighthouse."), long_ago)
    small.put("http://a.example/new", page("Other", PROSE + "A lighthouse!"), DATES[0])
    small.put("http://a.example/title", page("Lighthouse", PROSE + "A thing."), long_ago)
    index = WordIndex(small)
    hits = search(index, parse_word_query("lighthouse"))
    assert [hit.url.rpartition("/")[2] for hit in hits] == ["title", "new", "old"]
    assert hits[1].why.words == pytest.approx(hits[2].why.words)
    assert hits[1].why.freshness == 1.0
    assert 0.75 < hits[2].why.freshness < 0.76


def test_a_rank_of_pages_can_be_mixed_in(small: Archive) -> None:
    for name in ("a", "b", "c"):
        small.put(f"http://{name}.example/", page(name, PROSE), DATES[0])
    index = WordIndex(small)
    weights = {"http://a.example/": 0.5, "http://b.example/": 3.0, "http://c.example/": 1.0}
    rows = {url: small.catalog.resources.find(url) for url in weights}
    ranks = {row.id: weights[url] for url, row in rows.items() if row is not None}
    hits = search(index, parse_word_query("archive"), rank=ranks.__getitem__)
    assert [hit.url[7] for hit in hits] == ["b", "c", "a"]
    assert [hit.why.rank for hit in hits] == [3.0, 1.0, 0.5]
    assert [hit.url[7] for hit in search(index, parse_word_query("archive"))] == ["a", "b", "c"]


# Duplicates


def test_planted_twins_are_found(small: Archive) -> None:
    world = World(seed=1, hosts=2, pages_per_host=90, noisy=0.0)
    host = world.hosts[1]
    planted = {frozenset((fact.url, fact.detail)) for fact in world.facts(host) if fact.kind == "twin"}
    for url in world.urls(host):
        answer = world.answer(host, url.removeprefix(f"http://{host}"), (), DATES[0])
        if answer.status == 200:
            small.put(url, answer.body, DATES[0], dict(answer.headers)["Content-Type"])
    found = {frozenset((pair.url, pair.other)) for pair in duplicates_in_site(small, host, 0.7)}
    assert planted
    assert found == planted


def test_duplicates_tell_equal_bytes_from_nearly_equal_text(small: Archive) -> None:
    text = " ".join(f"word{number} stands here" for number in range(200))
    small.put("http://a.example/1", page("One", text), DATES[0])
    small.put("http://b.example/1", page("One", text), DATES[0])
    small.put("http://a.example/2", page("One", text + " and a little more"), DATES[0])
    small.put(
        "http://a.example/3", page("Three", "something else altogether, of another kind, with other words"), DATES[0]
    )
    small.put("http://a.example/4", b"", DATES[0])
    small.put("http://a.example/5", b"\x89PNG", DATES[0], "image/png")
    pairs = duplicates_of_page(small, "http://a.example/1")
    assert [(pair.other, pair.exact) for pair in pairs] == [("http://b.example/1", True), ("http://a.example/2", False)]
    assert 0.9 < pairs[1].likeness < 1
    inside = duplicates_in_site(small, "a.example")
    assert [(pair.url, pair.other) for pair in inside] == [("http://a.example/1", "http://a.example/2")]
    with pytest.raises(NotFound):
        duplicates_in_site(small, "none.example")
