"""Scripts of the release before go on working: old names are read and answered, with a warning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_archive import WebClient, at, running

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.archive.watches import AlertRow, JudgedWatch, NewAlert, watches_of
from letopis.cli import main
from letopis.monitor.watch import WatchSpec
from letopis.monitor.watch_list import WatchList
from letopis.operations.old_names import OLD_OPTIONS, OldOption, current_words
from letopis.operations.operation import all_operations

URL = "http://example.org/"
SINCE = "@1794787200"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """A page with three versions, of which the first had another link, and a watch with an alert."""
    with Archive(tmp_path / "archive", clock=lambda: at(500)) as opened:
        for number, minutes in enumerate((0, 60, 120)):
            opened.put(URL, b'<title>t</title><a href="/%d">next</a>' % number, at(minutes))
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


def run(archive: Archive, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    assert main(["--archive", str(archive.folder), *words]) == 0
    shown = capsys.readouterr()
    return shown.out, shown.err


# The command line


@pytest.mark.parametrize(
    ("old", "now"),
    [
        (["map", "example.org", "--report"], ["map", "report", "example.org"]),
        (["map", "--report", "--json", "example.org"], ["map", "report", "--json", "example.org"]),
        (["watch", "list", "--alerts"], ["watch", "alerts"]),
        (["watch", "list", "--json", "--alerts"], ["watch", "alerts", "--json"]),
    ],
)
def test_an_old_option_does_what_the_word_of_today_does_and_warns_in_one_line(
    archive: Archive, capsys: pytest.CaptureFixture[str], old: list[str], now: list[str]
) -> None:
    WatchList(archive).add([URL], WatchSpec())
    row = watches_of(archive).find(URL)
    assert row is not None
    alert = AlertRow(0, URL, "changed", 1, "it changed", "{}")
    watches_of(archive).save_judged([JudgedWatch(row.id, "{}", row.due, row.due)], [NewAlert(alert, ())])
    expected, quiet = run(archive, capsys, *now)
    shown, warning = run(archive, capsys, *old)
    assert shown == expected
    [line] = warning.removesuffix(quiet).splitlines()
    assert f"is '{now[0]} {now[1]}' now" in line


def test_words_after_the_end_of_options_and_values_are_never_taken_for_old_names() -> None:
    assert current_words("map", ["--", "--report"]) == (["--", "--report"], "")
    assert current_words("watch", ["add", "--tag", "list"]) == (["add", "--tag", "list"], "")
    assert current_words("watch", ["list", "--alerts", "--tag", "list"])[0] == ["alerts", "--tag", "list"]


@pytest.mark.parametrize("old", OLD_OPTIONS)
def test_every_old_option_leads_to_a_verb_of_today(old: OldOption) -> None:
    assert f"{old.verb} {old.now}" in {operation.verb for operation in all_operations().values()}


def test_doctor_tells_its_findings_under_both_names(archive: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--archive", str(archive.folder), "doctor", "--json"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows
    assert all((row["well"], row["said"]) == (row["ok"], row["detail"]) for row in rows)


# HTTP


def test_a_queued_crawl_tells_how_many_seeds_were_planted(archive: Archive, web: WebClient) -> None:
    head = {"Authorization": f"Bearer {accounts_of(archive).create_token('all', None, 'write', 0)}"}
    answer = web.post("/api/v1/crawls", {"seeds": ["http://a.example/", "http://b.example/"]}, **head)
    assert (answer.status, answer.json()["planted"], answer.json()["queued"]) == (201, 2, 2)
    assert answer.headers["deprecation"] == SINCE


def test_links_tell_the_version_that_they_stood_in(archive: Archive, web: WebClient) -> None:
    now = web.get(f"/api/v1/links?url={URL}")
    assert (now.json()["version"], now.json()["time"]) == (2, "2024-01-01T14:00:00Z")
    assert now.headers["deprecation"] == SINCE
    then = web.get(f"/api/v1/links?url={URL}&at=2024-01-01T12:30:00Z").json()
    assert (then["version"], then["links"][0]["target"]) == (0, f"{URL}0")
    assert "version" not in web.get(f"/api/v1/links?url={URL}&direction=in").json()


def test_links_take_the_time_under_its_old_name(web: WebClient) -> None:
    asked = web.get(f"/api/v1/links?url={URL}&time=2024-01-01T12:30:00Z").json()
    assert asked == web.get(f"/api/v1/links?url={URL}&at=2024-01-01T12:30:00Z").json()
    both = web.get(f"/api/v1/links?url={URL}&time=2024-01-01T12:30:00Z&at=2024-01-01T14:30:00Z").json()
    assert both["version"] == 2


def test_answers_without_old_names_carry_no_warning(web: WebClient) -> None:
    assert "deprecation" not in web.get("/api/v1/stats").headers
