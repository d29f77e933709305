"""Checks, versions, contents, differences, totals and changes: alike in every door."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from scripted_site import ScriptedSite
from served_archive import WebClient, at, running

from letopis.archive import OWN, READ, WRITE, Archive
from letopis.archive.accounts import accounts_of
from letopis.archive.jobs import COMMAND_LINE, Requester
from letopis.cli import main
from letopis.config import FetchSettings, MonitorSettings, ServeSettings, Settings
from letopis.errors import LetopisError, QuotaUsedUp, Refused, Unavailable, UnknownUrl, UsageError
from letopis.jobs.execution import JobContext
from letopis.jobs.language.interpreter import run_query
from letopis.model import Change, Observation, Outcome, Response
from letopis.monitor.monitor import Monitor
from letopis.operations import Context, Document, bind, json_value
from letopis.operations.checks import CheckCommand, check, history, versions
from letopis.operations.crawls import _PLAN_STATES
from letopis.operations.job_files import parse_job_file
from letopis.operations.pages import diff, extract_page, get
from letopis.operations.settings import settings
from letopis.operations.totals import acknowledge, changes, stats, storage
from letopis.web.history import PLAN_STATES

URL = "http://example.org/"
ALL = READ | WRITE | OWN
OPEN = Settings(fetch=FetchSettings(private="always"), monitor=MonitorSettings(min_interval=0, delay=0))


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """Three versions of a page, all of one day."""
    with Archive(tmp_path / "archive", settings=OPEN, clock=lambda: at(60 * 24 * 30)) as opened:
        for number, minutes in enumerate((0, 60, 120)):
            opened.put(URL, b'<p>number %d</p><a href="/next">next</a>' % number, at(minutes))
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


@pytest.fixture
def head(archive: Archive) -> dict[str, str]:
    return {"Authorization": f"Bearer {accounts_of(archive).create_token('all', None, 'write', 0)}"}


@pytest.fixture
def shell(
    archive: Archive, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, bytes, str]]:
    monkeypatch.setenv("LETOPIS_MONITOR_MIN_INTERVAL", "0")

    def run(*words: str) -> tuple[int, bytes, str]:
        status = main(["--archive", str(archive.folder), *words])
        captured = capfdbinary.readouterr()
        return status, captured.out, captured.err.decode()

    return run


Shell = Callable[..., tuple[int, bytes, str]]


def ask(archive: Archive, operation: Any, rights: int = ALL, origin: Any = "cli", **values: Any) -> Any:
    context = Context(archive, user="olga", rights=rights, private_ok=True, origin=origin)
    return operation(context, bind(operation.parameters, values, archive.clock(), strict=True))


def text_of(document: Document) -> str:
    return b"".join(document.bytes()).decode()


class NoProgress:
    """The progress of a job that nobody looks at."""

    def step(self, number: int, of: int, what: str) -> None: ...
    def share(self, done: float, figures: str = "") -> None: ...
    def log(self, line: str) -> None: ...
    def cancelled(self) -> bool:
        return False


def job(archive: Archive, text: str, requester: Requester = COMMAND_LINE, *, private: bool = True) -> etree._Element:
    query = parse_job_file(text.encode(), archive.settings)
    context = JobContext(archive, archive.settings, NoProgress(), requester, private, None, archive.clock)
    return etree.fromstring(b"<result>" + run_query(query, context) + b"</result>")[0]


def rows_of(output: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


# Lists


@pytest.mark.parametrize(
    ("given", "numbers"),
    [
        ({}, [0, 1, 2]),
        ({"from": "2024-01-01T12:30:00Z"}, [1, 2]),
        ({"to": "2024-01-01"}, [0, 1, 2]),
        ({"to": "2023-12-31"}, []),
        ({"from": "2024-01-01", "to": "2024-01-01T13:00:00Z"}, [0, 1]),
        ({"limit": "2"}, [0, 1]),
    ],
)
def test_lists_are_cut_alike_by_every_door_and_a_date_means_the_whole_day(
    archive: Archive, web: WebClient, shell: Shell, given: dict[str, str], numbers: list[int]
) -> None:
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    query = "".join(f"&{name}={value}" for name, value in given.items())
    for operation, field in ((versions, "number"), (history, "version")):
        expected = [json_value(row) for row in ask(archive, operation, url=URL, **given)]
        assert [row[field] for row in expected] == numbers
        assert rows_of(shell(operation.name, URL, "--json", *words)[1]) == expected
        answer = web.get(f"/api/v1/{operation.name}?url=example.org{query}").json()
        assert (answer["url"], answer[operation.name]) == (URL, expected)


def test_versions_tell_the_servers_date_on_the_command_line_too(archive: Archive, shell: Shell) -> None:
    headers = (("Content-Type", "text/html"), ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT"))
    response = Response("http://dated.example/", "http://dated.example/", 200, headers, b"<p>old", at(1))
    archive.record([Observation(response, Outcome.NEW)])
    assert rows_of(shell("versions", "dated.example", "--json")[1])[0]["last_modified"] == headers[1][1]


def test_long_lists_go_on_at_their_cursor_over_http_and_are_whole_on_the_command_line(
    archive: Archive, web: WebClient, shell: Shell
) -> None:
    for minutes in range(1200):
        archive.put("http://long.example/", b"%d" % minutes, at(minutes))
    first = web.get("/api/v1/history?url=long.example").json()
    rest = web.get(f"/api/v1/history?url=long.example&cursor={first['cursor']}").json()
    assert (len(first["history"]), len(rest["history"]), rest["cursor"]) == (1000, 200, None)
    assert rows_of(shell("history", "long.example", "--json")[1]) == first["history"] + rest["history"]
    assert web.get("/api/v1/versions?url=long.example&cursor=x").status == 400


# Checks


def test_a_check_has_the_same_fields_in_every_door(
    archive: Archive, web: WebClient, head: dict[str, str], shell: Shell, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.redirect("/from", scripted_site.set("/to", b"<p>here"))
    shown = rows_of(shell("check", url, "--json", "--as", "me")[1])[0]
    assert list(shown)[:12] == [
        "url", "final_url", "checked_at", "available", "status", "outcome", "version", "digest", "length",
        "content_type", "redirects", "error",
    ]  # fmt: skip
    alone = web.post("/api/v1/check", {"url": url, "head": True}, **head).json()
    listed = web.post("/api/v1/check", {"url": [url], "as": ""}, **head).json()
    assert set(alone) == set(shown) == set(listed["checks"][0])
    assert listed["checks"][0]["changed_for_you"] is None
    page = job(archive, f"<query><check><url>{url}</url></check></query>")[0]
    assert page.get("digest") == shown["digest"]
    assert page.find("redirect").attrib == {name: str(value) for name, value in shown["redirects"][0].items()}


def test_a_page_that_is_not_there_is_a_row_in_every_door(
    archive: Archive, web: WebClient, head: dict[str, str], shell: Shell, scripted_site: ScriptedSite
) -> None:
    gone, there = scripted_site.url("/gone"), scripted_site.set("/there", b"x")
    answer = ask(archive, check, url=[gone, there])
    assert [row.outcome for row in answer] == ["unavailable", "new"]
    assert [type(fault) for fault in answer.faults] == [Unavailable]
    status, out, err = shell("check", gone, scripted_site.url("/lost"), there, "--json")
    assert (status, [row["status"] for row in rows_of(out)]) == (4, [404, 404, 200])
    assert err.count("is not available") == 2
    over_http = web.post("/api/v1/check", {"url": gone}, **head)
    assert (over_http.status, over_http.json()["outcome"]) == (200, "unavailable")
    assert [page.get("outcome") for page in job(archive, f"<query><check><url>{gone}</url></check></query>")] == [
        "unavailable"
    ]


def test_a_refused_address_is_a_row_or_an_error_and_always_recorded(
    tmp_path: Path, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.set("/private", b"x")
    strict = Settings(fetch=FetchSettings(private="never"))
    with Archive(tmp_path / "strict", settings=strict) as archive:
        token = accounts_of(archive).create_token("all", None, "write", 0)
        with running(archive) as web:
            assert web.post("/api/v1/check", {"url": url}, Authorization=f"Bearer {token}").status == 403
            listed = web.post("/api/v1/check", {"url": [url]}, Authorization=f"Bearer {token}").json()
        assert [row["outcome"] for row in listed["checks"]] == ["refused"]
        answer = check(Context(archive, rights=ALL), CheckCommand(url=(url,), now=True))
        assert [type(fault) for fault in answer.faults] == [Refused]
        asked = job(archive, f"<query><check now='true'><url>{url}</url></check></query>", private=False)
        assert [page.get("outcome") for page in asked] == ["refused"]
        assert {row.outcome for row in ask(archive, history, url=url)} == {"refused"}
        assert scripted_site.log == []


@pytest.mark.parametrize("words", [{"browser": True, "head": True}, {"url": []}, {"url": ["no such thing://"]}])
def test_a_check_that_makes_no_sense_is_refused_by_every_door(
    archive: Archive, web: WebClient, head: dict[str, str], shell: Shell, words: dict[str, Any]
) -> None:
    given = {"url": [URL], **words}
    with pytest.raises(UsageError):
        ask(archive, check, **given)
    assert web.post("/api/v1/check", given, **head).status == 422
    flags = [f"--{name}" for name in words if name != "url"]
    assert shell("check", *given["url"], *flags)[0] == 2
    attributes = "".join(f' {name}="true"' for name in words if name != "url")
    children = "".join(f"<url>{url}</url>" for url in given["url"])
    with pytest.raises(UsageError):
        job(archive, f"<query><check{attributes}>{children}</check></query>")


def test_checks_of_jobs_and_of_differences_count_against_the_quota(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/counted", b"x")
    anna = Requester("anna", READ | WRITE, "http")
    limited = replace(OPEN, serve=ServeSettings(checks_a_day=2))
    with Archive(tmp_path / "limited", settings=limited) as archive:
        job(archive, f"<query><check><url>{url}</url></check></query>", anna)
        job(archive, f'<query><diff url="{url}" as="anna"/></query>', anna)
        with pytest.raises(QuotaUsedUp):
            job(archive, f"<query><check><url>{url}</url></check></query>", anna)
        job(archive, f"<query><check><url>{url}</url></check></query>")


def test_a_monitor_is_shared_by_all_checks_of_a_process_and_ends_with_the_archive(
    tmp_path: Path, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.set("/shared", b"x")
    with Archive(tmp_path / "a", settings=OPEN) as archive:
        ask(archive, check, url=[url])
        ask(archive, check, url=[url])
        assert len(archive.closers) == 1
    assert archive.closers == []


# Contents and differences


def test_a_version_is_named_in_one_way_only(archive: Archive, web: WebClient, shell: Shell) -> None:
    with pytest.raises(UsageError, match="only one of"):
        ask(archive, get, url=URL, at="2024-01-01", version=0)
    assert web.get(f"/api/v1/content?url={URL}&at=2024-01-01&version=0").status == 400
    assert shell("get", URL, "--at", "2024-01-01", "--version", "0")[0] == 2
    assert shell("get", URL, "--version", "0", "--browser")[0] == 2


def test_the_version_of_a_day_is_its_last(archive: Archive, web: WebClient, shell: Shell) -> None:
    archive.put(URL, b"next day", at(60 * 24))
    assert b"number 2" in web.get(f"/api/v1/content?url={URL}&at=2024-01-01").body
    assert b"number 2" in shell("get", URL, "--at", "2024-01-01", "--offline")[1]
    assert "number 2" in text_of(ask(archive, get, url=URL, at="2024-01-01", offline=True))
    assert b"number 2" in web.get(f"/api/v1/extract?url={URL}&at=2024-01-01").body


def test_a_difference_of_one_day_is_from_its_beginning_to_its_end(
    archive: Archive, web: WebClient, shell: Shell
) -> None:
    archive.put(URL, b"<p>the day before</p>", at(-60 * 24))
    archive.put(URL, b"<p>the day after</p>", at(60 * 24))
    for day in ("2024-01-01", "2024-01", date(2024, 1, 1)):
        expected = text_of(ask(archive, diff, url=URL, **{"from": str(day)}, to="2024-01-01", offline=True))
        assert "-the day before" in expected
        assert "+number 2" in expected
        assert shell("diff", URL, "--from", str(day), "--to", "2024-01-01", "--offline")[1].decode() == expected
        assert web.get(f"/api/v1/diff?url={URL}&from={day}&to=2024-01-01").text == expected
        assert archive.diff(URL, day, "2024-01-01") == expected
        with Monitor(archive) as monitor:
            assert monitor.get(URL).get_diff(day, "2024-01-01") == expected


def test_the_end_of_a_difference_alone_means_the_version_before_it(
    archive: Archive, web: WebClient, shell: Shell
) -> None:
    then = "2024-01-01T13:30:00Z"
    expected = text_of(ask(archive, diff, url=URL, to=then, offline=True))
    assert "-number 0" in expected
    assert "+number 1" in expected
    assert shell("diff", URL, "--to", then, "--offline")[1].decode() == expected
    assert web.get(f"/api/v1/diff?url={URL}&to={then}").text == expected
    assert job(archive, f'<query><diff url="{URL}" to="{then}" offline="true"/></query>').text == expected
    page = web.get(f"/compare/{URL}?to={then}").text
    assert "<del>0</del>" in page
    assert "<ins>1</ins>" in page


def test_a_last_look_and_times_exclude_each_other(archive: Archive, shell: Shell) -> None:
    with pytest.raises(UsageError, match="leave one of them out"):
        ask(archive, diff, url=URL, to="2024-01-01", **{"as": "me"})
    assert shell("diff", URL, "--as", "me", "--from", "2024-01-01")[0] == 2
    with pytest.raises(Refused):
        ask(archive, diff, rights=READ, url=URL, **{"as": "me"})


def test_a_binary_difference_can_be_taken_out_of_a_job(archive: Archive, web: WebClient) -> None:
    found = job(archive, f'<query><diff url="{URL}" format="binary"/></query>')
    assert found.get("encoding") == "base64"
    assert b64decode(found.text or "") == web.get(f"/api/v1/diff?url={URL}&format=binary").body


def test_one_verdict_is_shown_by_every_door(archive: Archive, web: WebClient, shell: Shell) -> None:
    """Recorded as noise with a score of its own, which nobody judges again."""
    url = "http://judged.example/"
    headers = (("Content-Type", "text/html"),)
    for number, change in enumerate((None, Change(False, False, False, 0.125))):
        body = b"<p>The harvest began, and everybody came to help." if number else b"<p>Nothing has happened here."
        response = Response(url, url, 200, headers, body, at(number))
        outcome = Outcome.CHANGED if number else Outcome.NEW
        archive.record([Observation(response, outcome, change=change)])
    row = web.get(f"/api/v1/history?url={url}").json()["history"][1]
    assert (row["meaningful"], row["score"]) == (False, 0.125)
    shown = json.loads(shell("diff", url, "--format", "json", "--offline")[1])
    assert (shown["meaningful"], shown["score"]) == (False, 0.125)
    assert web.get(f"/api/v1/diff?url={url}&format=json").json() == shown
    assert "noise" in web.get(f"/compare/{url}").text
    assert "noise" in web.get(f"/url/{url}").text


def test_reading_over_http_never_checks_and_the_command_line_does(
    archive: Archive, web: WebClient, head: dict[str, str], shell: Shell, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.set("/page", b"<title>Found</title><p>text")
    for route in ("content", "diff", "extract", "history"):
        assert web.get(f"/api/v1/{route}?url={url}&to=2100-01-01", **head).status == 404
    with pytest.raises(UnknownUrl):
        ask(archive, diff, url=url, to="2100-01-01")
    assert scripted_site.log == []
    assert json.loads(shell("extract", url)[1])["title"] == "Found"
    assert len(scripted_site.log) == 1


def test_a_page_that_was_checked_in_vain_is_unavailable_to_extract(
    archive: Archive, shell: Shell, scripted_site: ScriptedSite
) -> None:
    gone = scripted_site.url("/gone")
    shell("check", gone)
    assert shell("extract", gone)[0] == 4
    assert shell("extract", gone, "--offline")[0] == 3
    with pytest.raises(Unavailable):
        ask(archive, extract_page, url=gone)


# The archive as a whole


def test_totals_count_links_in_every_door(archive: Archive, web: WebClient, shell: Shell) -> None:
    assert web.get(f"/api/v1/links?url={URL}").status == 200
    expected = json_value(ask(archive, stats).value)
    assert (expected["links"], expected["links_lag"], expected["search_lag"]) == (1, 0, 3)
    assert web.get("/api/v1/stats").json() == expected
    assert rows_of(shell("stats", "--json")[1]) == [expected]


def test_changes_are_listed_and_acknowledged_in_every_door(
    archive: Archive, web: WebClient, head: dict[str, str], shell: Shell
) -> None:
    expected = web.get("/api/v1/changes?client=anna").json()
    assert rows_of(shell("changes", "anna", "--json")[1]) == expected["changes"]
    first = expected["changes"][0]["cursor"]
    assert shell("changes", "ack", "anna", first)[0] == 0
    assert web.get("/api/v1/changes?client=anna").json()["changes"] == expected["changes"][1:]
    assert web.post("/api/v1/changes/ack", {"client": "anna", "cursor": expected["cursor"]}, **head).status == 200
    assert list(ask(archive, changes, client="anna")) == []
    for wrong in ({"client": "a b", "cursor": "v1"}, {"client": "anna", "cursor": "17"}):
        with pytest.raises(UsageError):
            ask(archive, acknowledge, **wrong)
        assert web.post("/api/v1/changes/ack", wrong, **head).status == 422
        assert shell("changes", "ack", *wrong.values())[0] == 2


def test_settings_and_room_are_shown_as_far_as_rights_go(
    archive: Archive, web: WebClient, head: dict[str, str], shell: Shell
) -> None:
    shown = {row["name"]: row for row in rows_of(shell("settings", "--json")[1])}
    listed = {row["name"]: row for row in web.get("/api/v1/settings").json()["settings"]}
    assert shown.keys() == listed.keys()
    assert listed["archive.path"]["value"] == "set; only owners see it"
    assert {row.name: row.value for row in ask(archive, settings)}["archive.path"] == str(archive.folder)
    assert ask(archive, storage, rights=READ).value.free_bytes is None
    assert web.get("/api/v1/storage").json()["free_bytes"] is None
    owned = web.get("/api/v1/storage", **head).json()
    assert owned["free_bytes"] > 0
    assert [part["name"] for part in owned["parts"]] == ["packs", "catalogue", "index"]
    assert [row["method"] for row in owned["methods"]]


def test_reading_verbs_make_no_archive_and_checking_ones_do(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/new", b"x")
    for words in (["history", url], ["get", url, "--offline"], ["diff", url], ["stats"], ["settings"]):
        # Settings hold before there is an archive.
        assert main(["--archive", str(tmp_path / "none"), *words]) == (0 if words == ["settings"] else 3), words
        assert not (tmp_path / "none").exists()
    assert main(["--archive", str(tmp_path / "made"), "get", url]) == 0
    assert (tmp_path / "made").is_dir()


def test_the_page_says_of_a_plan_what_the_operation_says() -> None:
    assert set(PLAN_STATES) == set(_PLAN_STATES.values())


def test_errors_have_one_class_in_every_door(archive: Archive, web: WebClient, shell: Shell) -> None:
    unknown = "http://unknown.example/"
    for operation in (history, versions, get, diff, extract_page):
        values = {"offline": True} if operation in (get, diff, extract_page) else {}
        with pytest.raises(LetopisError) as caught:
            ask(archive, operation, url=unknown, **values)
        assert caught.value.exit_status == 3
        assert operation.route is not None
        assert web.get(f"/api/v1{operation.route.path}?url={unknown}").json()["title"] == "UnknownUrl"
        flags = ["--offline"] if values else []
        assert shell(operation.verb or operation.name, unknown, *flags)[0] == 3


def test_a_bound_is_told_as_a_number_that_can_be_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--archive", str(tmp_path / "a"), "get", "http://a.example/", "--version", "9" * 20]) == 2
    assert "version must be at most 2147483648, not" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [["history", "x.test"], ["versions", "x.test"], ["export", "warc"], ["clone", "there", "copy"], ["search", "x"]],
)
def test_a_span_of_time_that_ends_before_it_begins_is_refused_by_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    with Archive(tmp_path / "a") as archive:
        archive.put("http://x.test/", b"<p>x")
    where = ["--archive", str(tmp_path / "a")]
    assert main([*where, *words, "--from", "2025", "--to", "2024"]) == 2
    assert "the span of time ends before it begins; 'from' must not be later than 'to'" in capsys.readouterr().err
    if words[0] in ("history", "versions"):
        assert main([*where, *words, "--from", "2025", "--to", "2025"]) == 0
