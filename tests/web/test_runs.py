"""Runs: the common jobs from small forms, their progress as it happens, and their results as tables."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from remembered_world import answered_job, remember, small_world
from served_archive import WebClient, running

from letopis.archive import OWN, READ, WRITE, Archive
from letopis.catalog.accounts import Accounts
from letopis.errors import Refused, UsageError
from letopis.operations import Context
from letopis.operations.jobs import JobNumber, ShowQuery, job_query, show_job
from letopis.operations.runs import StartRun, start_run

FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive") as opened:
        accounts = Accounts(opened.catalog.database)
        for name, role in (("olga", "owner"), ("uwe", "user")):
            accounts.add(name, role, "a long password", 0)
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


def sign_in(web: WebClient, name: str) -> tuple[str, str]:
    fields = urlencode({"name": name, "password": "a long password"})
    cookie = web.ask("POST", "/login", fields, Content_Type=FORM).headers["set-cookie"].partition(";")[0]
    found = re.search(r'name="csrf" value="([^"]+)"', web.get("/jobs", Cookie=cookie).text)
    assert found
    return cookie, found[1]


def query_of(context: Context, number: int) -> str:
    return b"".join(job_query(context, JobNumber(id=number)).bytes()).decode()


def test_a_crawl_is_started_from_a_small_form_with_pictures_by_default(web: WebClient, archive: Archive) -> None:
    cookie, csrf = sign_in(web, "uwe")
    fields = {"kind": "crawl", "site": "https://example.org/", "depth": "2", "limit": "50", "requisites": "1"}
    answer = web.ask("POST", "/jobs/start", urlencode({**fields, "csrf": csrf}), Content_Type=FORM, Cookie=cookie)
    assert (answer.status, answer.headers["location"]) == (303, "/jobs/1")
    text = query_of(Context(archive, rights=READ | WRITE | OWN), 1)
    for part in ('maxlevel="2"', 'limit="50"', 'requisites="true"', "<url>https://example.org/</url>"):
        assert part in text
    shown = web.get("/jobs", Cookie=cookie).text
    assert 'data-run="1"' in shown
    assert "crawl of example.org" in shown


def test_what_a_run_lacks_is_told_on_the_page(web: WebClient) -> None:
    cookie, csrf = sign_in(web, "uwe")
    answer = web.ask(
        "POST", "/jobs/start", urlencode({"kind": "audit", "csrf": csrf}), Content_Type=FORM, Cookie=cookie
    )
    assert answer.status == 422
    assert "needs a site" in answer.text


def test_compacting_is_for_owners(web: WebClient, archive: Archive) -> None:
    with pytest.raises(Refused):
        start_run(Context(archive, user="uwe", rights=READ | WRITE), StartRun(kind="compact"))
    made = start_run(Context(archive, user="olga", rights=READ | WRITE | OWN), StartRun(kind="compact")).value
    assert made.state == "queued"
    with pytest.raises(UsageError, match="needs a site"):
        StartRun(kind="crawl")
    cookie, _ = sign_in(web, "uwe")
    assert 'value="compact"' not in web.get("/jobs", Cookie=cookie).text


def test_the_progress_of_open_runs_is_sent_as_it_happens(web: WebClient, archive: Archive) -> None:
    context = Context(archive, user="olga", rights=READ | WRITE | OWN)
    made = start_run(context, StartRun(kind="compact")).value
    with urllib.request.urlopen(f"{web.address}/jobs/events", timeout=60) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        line = stream.readline().decode()
    assert [run["id"] for run in json.loads(line.removeprefix("data: "))] == [made.id]
    assert show_job(context, ShowQuery(id=made.id)).value.state == "queued"  # type: ignore[union-attr]


def test_rows_of_a_result_are_a_table(tmp_path: Path) -> None:
    world = small_world()
    with Archive(tmp_path / "world") as archive:
        remember(archive, world, days=3)
        audited, mapped = (answered_job(archive, world.hosts[0], step) for step in ("audit", "map"))
        with running(archive) as web:
            shown = web.get(f"/jobs/{audited}").text
            assert '<th scope="col">title</th>' in shown
            assert f'href="/url/{world.url(0, 1)}"' in shown
            assert "<table>" not in web.get(f"/jobs/{mapped}").text
