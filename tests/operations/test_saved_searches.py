"""Saved searches: asked again when versions come; a result is alerted of once, whoever dies in between."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from scripted_site import ScriptedSite
from served_archive import running
from still_clock import Clock

from letopis.archive import OWN, READ, WRITE, Archive
from letopis.archive.accounts import accounts_of
from letopis.archive.audit import audit_entries
from letopis.archive.watches import FoundResult, SavedLook, saved_searches_of, watches_of
from letopis.cli import main
from letopis.config import DatabaseSettings, FetchSettings, SearchSettings, Settings
from letopis.errors import NotFound, Refused, UsageError
from letopis.monitor.notifications import Outbox
from letopis.operations import Context
from letopis.operations.alerts import AlertsQuery, saved_test, watch_alerts
from letopis.operations.saved_looks import CheckSavedCommand, SavedSearchLoop, saved_check
from letopis.operations.saved_searches import (
    EditSearch,
    OneSavedSearch,
    SavedResultsQuery,
    SavedSearch,
    SavedSearchesQuery,
    SaveSearch,
    saved_add,
    saved_edit,
    saved_list,
    saved_remove,
    saved_results,
    saved_show,
)

OPEN = Settings(fetch=FetchSettings(private="always"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "postgresql"])
def archive(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Archive]:
    new = request.param == "postgresql"
    database = DatabaseSettings(url=request.getfixturevalue("new_database")()) if new else DatabaseSettings()
    with Archive(tmp_path / "a", settings=replace(OPEN, database=database), clock=clock) as opened:
        put(opened, "one")
        yield opened


def put(archive: Archive, name: str, text: str = "harvest of the year") -> None:
    archive.put(f"http://example.org/{name}", f"<title>{name}</title><p>{text}</p>".encode())


def person(archive: Archive, name: str, rights: int = READ | WRITE) -> Context:
    return Context(archive, user=name, rights=rights)


def save(context: Context, name: str = "Harvest", q: str | None = "harvest", **more: Any) -> SavedSearch:
    return saved_add(context, SaveSearch(name=name, query=q, **more)).value


def urls(context: Context, number: int = 1) -> list[str]:
    return [row.url for row in saved_results(context, SavedResultsQuery(id=number))]


def look(archive: Archive) -> int:
    return SavedSearchLoop(archive).look_at_due()


def test_what_is_there_is_known_and_what_comes_is_alerted_of_once(archive: Archive, clock: Clock) -> None:
    uwe = person(archive, "uwe")
    made = save(uwe)
    assert (made.results, made.owner, urls(uwe)) == (1, "uwe", ["http://example.org/one"])
    clock.pass_by(60)
    assert look(archive) == 0
    put(archive, "two")
    put(archive, "other", "nothing of the kind")
    assert look(archive) == 1
    clock.pass_by(60)
    put(archive, "two", "harvest of another year")
    assert look(archive) == 0, "it has been found before"
    [alert] = watches_of(archive).alerts()
    assert (alert.kind, alert.url) == ("found", "http://example.org/two")
    assert "'Harvest' has 1 new result: two" in alert.message
    assert urls(uwe) == ["http://example.org/two", "http://example.org/one"]


def test_its_alerts_name_it_and_the_results_that_came(archive: Archive, clock: Clock) -> None:
    uwe = person(archive, "uwe")
    save(uwe)
    clock.pass_by(60)
    put(archive, "two")
    look(archive)
    [alert] = watch_alerts(uwe, AlertsQuery())
    assert (alert.saved, alert.name, alert.watch) == (1, "Harvest", None)
    assert alert.difference == "+ two http://example.org/two"


def test_a_test_reaches_its_targets_and_only_who_may_change_it_sends_one(archive: Archive, tmp_path: Path) -> None:
    olga = person(archive, "olga", READ | WRITE | OWN)
    save(olga, notify=(f"file:{tmp_path}/told",))
    [tested] = saved_test(olga, OneSavedSearch(id=1))
    assert (tested.url, tested.delivered, tested.error) == ("/saved/1", True, "")
    assert "Test of the saved search 'Harvest'" in "".join(
        file.read_text() for file in tmp_path.rglob("*") if file.is_file() and "told" in str(file)
    )
    assert not list(watch_alerts(olga, AlertsQuery())), "nothing is recorded"
    with pytest.raises(Refused):
        saved_test(person(archive, "eva"), OneSavedSearch(id=1))
    save(olga, name="Silent")
    with pytest.raises(UsageError, match="no notification target"):
        saved_test(olga, OneSavedSearch(id=2))


def test_it_is_not_asked_without_new_versions_but_for_once_an_hour(archive: Archive, clock: Clock) -> None:
    save(person(archive, "uwe"))
    searches, newest = saved_searches_of(archive), 10**9
    now = int(clock().timestamp() * 1000)
    assert searches.due(now + 60_000, 0) == []
    assert len(searches.due(now + 60_000, newest)) == 1
    assert len(searches.due(now + 3_600_000, 0)) == 1
    assert len(searches.due(now - 10**9, newest)) == 1, "a time that only a wrong clock can have set"


def test_a_look_that_was_begun_and_not_recorded_is_made_again_when_its_claim_is_over(
    archive: Archive, clock: Clock
) -> None:
    save(person(archive, "uwe"))
    put(archive, "two")
    searches = saved_searches_of(archive)
    [row] = searches.all()
    assert searches.claim(row, int(clock().timestamp() * 1000) + 300_000) is not None
    assert searches.claim(row, 1) is None, "another has it"
    clock.pass_by(60)
    assert look(archive) == 0
    clock.pass_by(300)
    assert look(archive) == 1
    assert len(watches_of(archive).alerts()) == 1


def test_a_change_while_it_is_asked_makes_that_look_void(archive: Archive, clock: Clock) -> None:
    uwe = person(archive, "uwe")
    save(uwe)
    put(archive, "two")
    searches = saved_searches_of(archive)
    [row] = searches.all()
    claimed = searches.claim(row, 10**15)
    assert claimed is not None
    saved_edit(uwe, EditSearch(id=1, query="nothing at all"))
    found = [FoundResult("digest", 1, "http://example.org/two", "two")]
    done = searches.record_look(claimed, SavedLook(1, 1, 1), found, lambda new: pytest.fail("no alert"))
    assert done == []
    assert (saved_show(uwe, OneSavedSearch(id=1)).value.results, watches_of(archive).alerts()) == (0, [])


def test_only_who_saved_it_and_administrators_change_it_and_the_log_says_who(archive: Archive) -> None:
    uwe, eva, olga = person(archive, "uwe"), person(archive, "eva"), person(archive, "olga", READ | WRITE | OWN)
    save(uwe, notify=("https://example.org/hook?key=secret",))
    assert saved_show(uwe, OneSavedSearch(id=1)).value.notify == ("https://example.org/hook?key=secret",)
    seen = saved_show(eva, OneSavedSearch(id=1)).value
    assert (seen.notify, seen.targets) == (None, 1)
    for refused in (
        lambda: saved_edit(eva, EditSearch(id=1, name="mine")),
        lambda: saved_remove(eva, OneSavedSearch(id=1)),
        lambda: saved_check(eva, CheckSavedCommand(id=1)),
    ):
        with pytest.raises(Refused, match="belongs to 'uwe'"):
            refused()
    assert list(saved_check(eva, CheckSavedCommand())) == [], "without a number, one's own"
    assert save(eva).id == 2, "a name is one's own"
    saved_edit(olga, EditSearch(id=1, name="Crops"))
    saved_remove(uwe, OneSavedSearch(id=1))
    with pytest.raises(NotFound):
        saved_show(uwe, OneSavedSearch(id=1))
    assert [(row.who, row.action) for row in audit_entries(archive, 2)] == [
        ("uwe", "saved search removed"), ("olga", "saved search changed"),
    ]  # fmt: skip
    saved_remove(eva, OneSavedSearch(id=2))
    assert save(olga).id == 3, "whoever subscribed to the feed of the second one does not get this one's"


def test_searches_of_whoever_left_tell_nobody_and_go_to_no_other_of_that_name(archive: Archive, clock: Clock) -> None:
    accounts = accounts_of(archive)
    for name, role in (("olga", "owner"), ("uwe", "user"), ("eva", "user")):
        accounts.add(name, role, "a long password", 1)
    save(person(archive, "uwe"), notify=("https://example.org/hook",))
    save(person(archive, "eva"))
    accounts.remove("uwe")
    accounts.add("uwe", "user", "another password", 2)
    clock.pass_by(60)
    put(archive, "two")
    assert look(archive) == 1
    assert [row.owner for row in saved_searches_of(archive).all()] == ["eva"]
    assert [json.loads(alert.facts)["saved"] for alert in watches_of(archive).alerts()] == [2]


def test_what_cannot_be_asked_is_refused_before_anything_is_saved(archive: Archive) -> None:
    uwe = person(archive, "uwe")
    save(uwe)
    for wrong in (
        {"name": "Harvest"},
        {"q": ""},
        {"q": 'title:"open'},
        {"question": "list_audit", "q": None},
        {"question": "jobs", "q": None},
        {"question": "broken", "q": None, "values": ("site",)},
        {"question": "broken", "q": None, "values": ("place=example.org",)},
        {"page": "https://elsewhere.example/"},
        {"page": "//elsewhere.example/"},
        {"page": "/\\elsewhere.example/"},
        {"name": " "},
    ):
        with pytest.raises(UsageError):
            save(uwe, **{"name": "Another", "q": "harvest", **wrong})
    with pytest.raises(NotFound):
        save(uwe, "Another", None, question="broken", values=("site=nowhere.example",))
    settings = replace(archive.settings, fetch=FetchSettings(private="cli"))
    with Archive(archive.folder, settings=settings) as guarded, pytest.raises(Refused, match="of the owner"):
        save(person(guarded, "uwe"), "Another", notify=("file:/etc/passwd",))
    assert len(list(saved_list(uwe, SavedSearchesQuery()))) == 1


def test_another_question_begins_with_what_it_has_and_another_name_keeps_all(archive: Archive, clock: Clock) -> None:
    uwe = person(archive, "uwe")
    save(uwe)
    put(archive, "other", "winter of the year")
    clock.pass_by(60)
    assert saved_edit(uwe, EditSearch(id=1, name="Crops")).value.results == 1
    assert saved_edit(uwe, EditSearch(id=1, query="winter")).value.results == 1
    assert urls(uwe) == ["http://example.org/other"]
    assert look(archive) == 0
    assert watches_of(archive).alerts() == []


def test_a_table_with_its_filter_is_asked_again_like_a_search(archive: Archive, clock: Clock) -> None:
    uwe = person(archive, "uwe")
    made = save(uwe, "Untitled", None, question="site_audit", values=("site=example.org",), filter="title-missing",
                page="/site/example.org?view=audit&filter=title-missing")  # fmt: skip
    assert (made.results, made.values) == (0, {"site": "example.org"})
    archive.put("http://example.org/bare", b"<p>no title at all</p>")
    clock.pass_by(60)
    assert look(archive) == 1
    assert watches_of(archive).alerts()[0].url == "http://example.org/bare"
    alerts = save(uwe, "All alerts", None, question="watch_alerts")
    assert alerts.results == 0, "alerts of saved searches would alert of themselves"


def test_a_question_that_fails_is_told_and_asked_again(archive: Archive, clock: Clock) -> None:
    uwe = person(archive, "uwe")
    save(uwe)
    settings = replace(archive.settings, search=SearchSettings(enabled=False))
    with Archive(archive.folder, settings=settings, clock=clock) as without:
        put(without, "two")
        assert SavedSearchLoop(without).look_at_due() == 0
    assert "turned off" in saved_show(uwe, OneSavedSearch(id=1)).value.error
    clock.pass_by(120)
    assert look(archive) == 1
    assert saved_show(uwe, OneSavedSearch(id=1)).value.error == ""


DIES = """
import os, signal, sys
from letopis.archive import Archive
from letopis.catalog.saved_searches import SavedSearches
from letopis.operations.saved_looks import SavedSearchLoop

recorded = SavedSearches.record_look

def record(self, *given):
    if sys.argv[2] == "after":
        recorded(self, *given)
    os.kill(os.getpid(), signal.SIGKILL)

SavedSearches.record_look = record
with Archive(sys.argv[1]) as archive:
    SavedSearchLoop(archive).look_at_due()
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_between_finding_and_telling_nothing_is_lost_or_doubled(tmp_path: Path, moment: str) -> None:
    folder, told = tmp_path / "a", tmp_path / "told.jsonl"
    with Archive(folder, settings=OPEN) as archive:
        put(archive, "one")
        save(Context(archive, rights=READ | WRITE | OWN, origin="cli"), notify=(f"file:{told}",))
        put(archive, "two")
    done = subprocess.run([sys.executable, "-c", DIES, str(folder), moment], timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL
    later = datetime.now(UTC) + timedelta(minutes=10)
    with Archive(folder, settings=OPEN, clock=lambda: later) as archive:
        for _ in range(2):
            look(archive)
            asyncio.run(Outbox(archive).send_due())
        [alert] = watches_of(archive).alerts()
        assert [row.state for row in watches_of(archive).deliveries(alert.id)] == ["sent"]
    [line] = told.read_text().splitlines()
    assert json.loads(line)["url"] == "http://example.org/two"


def shell(capfd: pytest.CaptureFixture[str], folder: Path, *words: str) -> tuple[int, list[dict[str, Any]], str]:
    status = main(["--archive", str(folder), *words, "--json"])
    told = capfd.readouterr()
    return status, [json.loads(line) for line in told.out.splitlines()], told.err


def test_the_command_line_saves_asks_again_and_whatever_runs_the_watches_tells(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, told = tmp_path / "a", tmp_path / "told.jsonl"
    with Archive(folder) as archive:
        put(archive, "one")
    status, [made], _ = shell(capfd, folder, "saved", "add", "Harvest", "harvest", "--notify", f"file:{told}")
    assert (status, made["results"], made["notify"]) == (0, 1, [f"file:{told}"])
    with Archive(folder) as archive:
        put(archive, "two")
    status, found, _ = shell(capfd, folder, "saved", "check")
    assert (status, [row["url"] for row in found]) == (0, ["http://example.org/two"])
    assert shell(capfd, folder, "watch", "run", "--once")[0] == 0
    [line] = told.read_text().splitlines()
    assert json.loads(line)["sentence"] == "'Harvest' has 1 new result: two"
    status, [row], _ = shell(capfd, folder, "saved", "edit", "1", "--name", "Crops", "--notify", "")
    assert (row["name"], row["targets"]) == ("Crops", 0)
    assert shell(capfd, folder, "saved", "show", "7")[0] == 3
    assert shell(capfd, folder, "saved", "remove", "1")[0] == 0
    assert shell(capfd, folder, "saved", "list")[1] == []


def test_the_feed_of_a_saved_search_has_what_it_found_with_lasting_names(
    tmp_path: Path, scripted_site: ScriptedSite
) -> None:
    with Archive(tmp_path / "a", settings=OPEN) as archive:
        put(archive, "one")
        uwe = person(archive, "uwe")
        save(uwe, "Crops & <b>more</b>")
        put(archive, "two")
        assert len(list(saved_check(uwe, CheckSavedCommand(id=1)))) == 1
        with running(archive) as web:
            atom, feed = web.get("/feed/saved/1"), web.get("/feed/json/saved/1")
            assert atom.headers["content-type"].startswith("application/atom+xml")
            assert "Crops &amp; &lt;b&gt;more&lt;/b&gt;" in atom.text
            items = json.loads(feed.text)["items"]
            assert [item["external_url"] for item in items] == ["http://example.org/two", "http://example.org/one"]
            assert len({item["id"] for item in items}) == 2
            assert web.get("/feed/saved/1", If_None_Match=atom.headers["etag"]).status == 304
            assert web.get("/feed/saved/2").status == 404
            api = web.get("/api/v1/saved/1/results").json()
            assert [row["url"] for row in api["results"]] == [item["external_url"] for item in items]
