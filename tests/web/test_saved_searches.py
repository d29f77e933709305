"""Saved searches on the pages: saved from a search or a table, changed, asked again and removed by who may."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from served_archive import WebClient, running
from signed_in import Person, add_people
from still_clock import Clock

from letopis.archive import Archive
from letopis.operations import Context
from letopis.operations.saved_looks import SavedSearchLoop
from letopis.operations.saved_searches import SavedSearchesQuery, saved_list


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def archive(tmp_path: Path, clock: Clock) -> Iterator[Archive]:
    with Archive(tmp_path / "archive", clock=clock) as opened:
        add_people(opened, (("olga", "owner"), ("uwe", "user"), ("eva", "user"), ("gabi", "guest")))
        opened.put("http://example.org/", b"<title>Home</title><p>harvest news</p>")
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


def link_to_save(text: str) -> str:
    found = re.search(r'href="(/saved/new\?[^"]*)"', text)
    assert found
    return unescape(found[1])


def hidden_fields(text: str) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="(question|with|page)" value="([^"]*)"', text):
        fields.setdefault(name, []).append(unescape(value))
    return fields


def test_a_search_is_saved_from_its_page_changed_and_removed(web: WebClient, archive: Archive, clock: Clock) -> None:
    uwe = Person(web, "uwe")
    form = uwe.see(link_to_save(uwe.see("/search?q=harvest&site=example.org")))
    kept = hidden_fields(form)
    assert kept["with"] == ["site=example.org"]
    made = uwe.send("/saved", **kept, name="Harvest", q="harvest", notify="https://example.org/hook")
    assert made == (303, "/saved/1?done=added")
    clock.pass_by(60)
    archive.put("http://example.org/new", b"<title>New harvest</title><p>harvest of today</p>")
    assert SavedSearchLoop(archive).look_at_due() == 1
    page = uwe.see("/saved/1")
    assert "New harvest" in page
    assert "/feed/json/saved/1" in page
    sent = page.partition("<h2>Notifications</h2>")[2]
    assert "https://example.org" in sent.partition("</ol>")[0]
    for place in ("/alerts", "/", "/watches"):
        alerts = uwe.see(place)
        assert "1 new result" in alerts
        assert '<a class="page" href="/saved/1">Harvest</a>' in alerts
        assert "New harvest</a></li>" in alerts
    assert uwe.send("/saved/1", name="Crops", q="news", filter="", notify="", action="save") == (
        303, "/saved/1?done=saved",
    )  # fmt: skip
    [row] = saved_list(Context(archive, user="uwe"), SavedSearchesQuery())
    assert (row.name, row.values, row.targets, row.results) == ("Crops", {"site": ["example.org"], "q": "news"}, 0, 1)
    assert uwe.send("/saved/1", action="check") == (303, "/saved/1?done=checked")
    assert uwe.send("/saved/1", action="test")[0] == 422, "it notifies nobody"
    assert uwe.send("/saved/1", name="Crops", q='title:"open', action="save")[0] == 422
    assert uwe.send("/saved/1", action="remove") == (303, "/saved?done=removed")
    assert uwe.get("/saved/1").status == 404
    assert "/saved/1" not in uwe.see("/alerts")


def test_a_table_is_saved_with_its_filter_and_its_page_leads_back(web: WebClient, archive: Archive) -> None:
    uwe, site = Person(web, "uwe"), "/site/example.org?view=report&filter=orphan"
    while "data-again" in (shown := uwe.see(site)):
        pass
    form = uwe.see(link_to_save(shown))
    kept = hidden_fields(form)
    assert (kept["question"], kept["with"]) == (["report"], ["site=example.org"])
    assert uwe.send("/saved", **kept, name="Orphans", filter="orphan")[0] == 303
    page = uwe.see("/saved/1")
    assert "example.org" in page
    assert unescape(page).count(kept["page"][0]) == 1
    assert "Orphans" in uwe.see("/saved")


def test_who_may_not_change_it_reads_it_without_its_targets(web: WebClient) -> None:
    Person(web, "uwe").send("/saved", name="Harvest", q="harvest", notify="https://example.org/hook?key=secret")
    for name in ("eva", "gabi"):
        person = Person(web, name)
        page = person.see("/saved/1")
        assert "Harvest" in page
        assert "secret" not in page
        assert 'name="action"' not in page
        assert person.send("/saved/1", action="remove")[0] == 403
    assert Person(web, "gabi").send("/saved", name="Mine", q="harvest")[0] == 403
    assert "Save this search" not in Person(web, "gabi").see("/search?q=harvest")
    assert Person(web, "olga").send("/saved/1", action="remove")[0] == 303


def test_what_cannot_be_saved_is_told_on_the_form_that_keeps_what_was_said(web: WebClient) -> None:
    uwe = Person(web, "uwe")
    status, shown = uwe.send("/saved", name="Files", q="harvest", notify="file:/etc/passwd")
    assert (status, "Files" in shown, "file:/etc/passwd" in shown) == (403, True, True)
    status, shown = uwe.send("/saved", name="Elsewhere", q="harvest", page="//elsewhere.example/")
    assert (status, "path of the web interface" in shown) == (422, True)


def test_an_alert_of_many_results_says_how_many_though_it_keeps_the_first_alone(
    web: WebClient, archive: Archive, clock: Clock
) -> None:
    uwe = Person(web, "uwe")
    uwe.send("/saved", question="search", name="Ships", q="frigate")
    for number in range(120):
        archive.put(f"http://example.org/ship{number}", f"<title>Ship {number}</title><p>a frigate".encode())
    clock.pass_by(60)
    assert SavedSearchLoop(archive).look_at_due() == 120
    for place in ("/alerts", "/"):
        assert "120 new results" in uwe.see(place)
    assert "and 117 more" in uwe.see("/alerts")


def test_a_table_of_one_site_is_saved_under_its_name(web: WebClient) -> None:
    shown = Person(web, "uwe").see("/saved/new?question=broken&with=site%3Dexample.org")
    assert 'value="Broken links: example.org"' in shown
