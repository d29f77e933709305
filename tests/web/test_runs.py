"""Runs: the common jobs from small forms, their progress as it happens, and their results as tables."""

from __future__ import annotations

import asyncio
import json
import re
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_type_hints
from urllib.parse import urlencode, urlsplit

import pytest
from fastapi import Request
from remembered_world import answered_job, remember, small_world
from scripted_site import ScriptedSite
from served_archive import WebClient, running
from signed_in import FORM, Person, add_people

from letopis.archive import OWN, READ, WRITE, Archive
from letopis.archive.job_control import job_folder
from letopis.archive.jobs import COMMAND_LINE, ENDED, JobOutcome, JobQueue, WorkerReport, claims_of
from letopis.errors import Refused, UsageError
from letopis.jobs.supervisor import Supervisor
from letopis.model import rfc3339
from letopis.operations import Context
from letopis.operations.accounts import AuditQuery, list_audit
from letopis.operations.imports import SendFile, start_import
from letopis.operations.job_files import step_operations
from letopis.operations.job_rows import Job
from letopis.operations.jobs import JobNumber, ShowQuery, job_query, show_job
from letopis.operations.runs import StartRun, start_run
from letopis.web.run_steps import FIELD_NAMES, run_results, step_words


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive") as opened:
        add_people(opened)
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


def sign_in(web: WebClient, name: str) -> tuple[str, str]:
    person = Person(web, name)
    return person.cookie, person.csrf


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
    assert "Crawl of example.org" in shown


def test_what_a_run_lacks_is_told_on_the_page(web: WebClient) -> None:
    cookie, csrf = sign_in(web, "uwe")
    answer = web.ask(
        "POST", "/jobs/start", urlencode({"kind": "audit", "csrf": csrf}), Content_Type=FORM, Cookie=cookie
    )
    assert answer.status == 422
    assert "Enter a site" in answer.text


def test_a_form_that_is_refused_keeps_what_was_written_and_leaves_the_query_in_xml_shut(web: WebClient) -> None:
    uwe = Person(web, "uwe")
    asked = {"kind": "crawl", "site": "no address", "scope": "domain", "depth": "7", "delay": "30s", "browser": "1"}
    status, shown = uwe.send("/jobs/start", **asked)
    assert status == 422
    form = shown.partition('name="kind" value="crawl"')[2].partition("</form>")[0]
    for part in (
        'value="no address"',
        '<option value="domain" selected>',
        'value="7"',
        '<option value="30s" selected>',
    ):
        assert part in form
    boxes = {name: "checked" in rest for name, rest in re.findall(r'checkbox" name="(\w+)"([^>]*)', form)}
    assert boxes == {"requisites": False, "browser": True}
    assert shown.index('id="start"') < shown.index("Submit a query")
    assert '<details class="more"><summary>Submit a query' in shown
    assert 'value="other.example"' in uwe.send("/jobs/start", kind="export", site="other.example", format="nothing")[1]


def test_a_crawl_says_what_was_asked_of_it_and_failed_alone_leads_to_no_map(web: WebClient, archive: Archive) -> None:
    context = Context(archive, user="uwe", rights=READ | WRITE, origin="cli", private_ok=True)
    start_run(context, StartRun(kind="crawl", site="http://127.0.0.1:9/", depth=2, delay=timedelta(seconds=5)))
    asked = "the whole host · depth 2 · page limit 1\u202f000 · 5 s between requests · with images, styles and scripts"
    assert asked in web.get("/jobs/1").text
    assert "celý server · hloubka 2 · nejvýš stránek: 1\u202f000" in web.get("/jobs/1", Accept_Language="cs").text
    work_off(archive)
    assert 'href="/site/127.0.0.1:9"' not in web.get("/jobs/1").text


def test_files_and_checks_of_the_archive_do_not_wait_for_crawls(archive: Archive) -> None:
    context = Context(archive, user="olga", rights=READ | WRITE | OWN)
    crawl = start_run(context, StartRun(kind="crawl", site="https://example.org/")).value
    for asked in (StartRun(kind="export"), StartRun(kind="verify"), StartRun(kind="compact")):
        assert start_run(context, asked).value.package != crawl.package


def test_the_standing_crawl_calls_runs_as_their_list_does_and_deleting_asks_first(
    web: WebClient, archive: Archive
) -> None:
    start_run(Context(archive, user="olga", rights=READ | WRITE | OWN), StartRun(kind="export"))
    olga = Person(web, "olga")
    for path in ("/crawl", "/jobs"):
        assert "1 Download of the whole archive</a>" in olga.get(path).text
    olga.send("/jobs/1/pause")
    for path in ("/jobs/1", "/jobs"):
        form = olga.get(path).text.partition('action="/jobs/1/delete"')
        assert form[1]
        assert form[0].rpartition("<details")[2].startswith(' class="ask"'), path


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
    with urllib.request.urlopen(f"{web.address}/jobs/events", timeout=300) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        line = stream.readline().decode()
    assert [run["id"] for run in json.loads(line.removeprefix("data: "))] == [made.id]
    assert show_job(context, ShowQuery(id=made.id)).value.state == "queued"  # type: ignore[union-attr]


def test_a_crawl_that_knows_of_nothing_that_waits_is_not_said_to_be_a_quarter_done(
    web: WebClient, archive: Archive
) -> None:
    uwe = Person(web, "uwe")
    uwe.post("/jobs/start", kind="crawl", site="https://example.org/")
    claims = claims_of(archive)
    claim = claims.take(JobQueue(archive).show(1, COMMAND_LINE).package, "worker", 0, 2**62)
    assert claim is not None
    bars = []
    for waiting, share in ((0, 0.25), (3, 0.3)):
        claims.beat(claim, 2**62, WorkerReport(f"1/1 download: 1 fetched, {waiting} waiting", share, None))
        shown = uwe.get("/jobs/1").text
        assert ("total not known yet" in shown) == (waiting == 0)
        bars.append(re.findall(r"<progress [^>]*>", shown + uwe.get("/jobs").text))
    assert [["value=" in bar for bar in found] for found in bars] == [[False, False], [True, True]]
    job = show_job(Context(archive, user="uwe", rights=READ | WRITE), ShowQuery(id=1)).value
    assert isinstance(job, Job)
    rests = "1/1 download: 4 fetched, 3 waiting, example.org again at 2999-01-01T00:00:00Z (pause)"
    assert "next request" in step_words(job._replace(step=rests))
    assert "next request" not in step_words(job._replace(step=rests, state="paused"))


def test_rows_of_a_result_are_a_table(tmp_path: Path) -> None:
    world = small_world()
    with Archive(tmp_path / "world") as archive:
        remember(archive, world, days=3)
        audited, mapped = (answered_job(archive, world.hosts[0], step) for step in ("audit", "map"))
        with running(archive) as web:
            shown = web.get(f"/jobs/{audited}").text
            assert '<td data-label="Title" data-aside>' in shown
            rows = web.get(f"/jobs/{audited}?t1.as=csv&t1.sort=-size").text.splitlines()
            assert rows[0].startswith("url,")
            assert len(rows) > 2
            assert f'href="/url/{world.url(0, 1)}"' in shown
            assert f'href="/url/{world.url(0, 1)}"' in web.get(f"/jobs/{mapped}").text, "a tree is shown by its rows"


def test_an_audit_shows_its_issues_in_words_and_leads_to_their_pages(tmp_path: Path) -> None:
    world = small_world()
    host = world.hosts[0]
    with Archive(tmp_path / "world") as archive:
        remember(archive, world, days=1)
        number = answered_job(archive, host, "audit")
        with running(archive) as web:
            shown = web.get(f"/jobs/{number}").text
            czech = web.get(f"/jobs/{number}", Accept_Language="cs").text
    assert f"<h1>Audit of {host}</h1>" in shown
    assert f'<a href="/site/{host}?view=audit&amp;kind=title-long#pages">title too long</a>' in shown
    assert f'href="/site/{host}?view=audit">Audit of {host}</a>' in shown
    assert "Open to search engines" in shown
    issues = shown.partition('aria-label="Issues"')[2].partition("</table>")[0]
    assert re.search(r'class="badge changed">warning</span>.*put what matters first', issues, re.DOTALL)
    assert "dejte na začátek" in czech or "varování" in czech.partition('class="scroll cards issues"')[2]
    heads = re.findall(r'<a href="[^"]*t1\.sort=[^"]*">([^<]+)</a></th>', shown)
    assert heads == ["Page", "Status", "Issues", "Title", "Clicks", "Words", "Size"]
    assert '<span class="badge">canonical address missing</span>' in shown
    assert f"<h1>Audit webu {host}</h1>" in czech


def test_every_field_of_results_of_steps_has_a_name_for_people() -> None:
    """Of the steps that forms start, and of those that the pages show as well."""
    for step in ("audit", "broken", "duplicates", "links", "mapdiff", "pagerank", "report", "verify"):
        rows = get_type_hints(step_operations()[step].run)["return"].__args__[0]
        fields = getattr(rows, "_fields", None) or rows.__dataclass_fields__
        assert {name for name in fields if name not in FIELD_NAMES} <= {"parent_before", "exact"}, step


def test_a_run_that_failed_says_so_as_an_error_and_leads_to_what_it_asked(web: WebClient, archive: Archive) -> None:
    context = Context(archive, user="uwe", rights=READ | WRITE, origin="cli", private_ok=True)
    start_run(context, StartRun(kind="crawl", site="http://127.0.0.1:9/", depth=0))
    start_run(context, StartRun(kind="audit", site="nowhere.example"))
    work_off(archive)
    uwe = Person(web, "uwe")
    crawl, audit = (uwe.get(f"/jobs/{number}").text for number in (1, 2))
    assert "'letopis " not in show_job(context, ShowQuery(id=1)).value.message  # type: ignore[union-attr]
    for shown in (crawl, audit):
        assert '<div class="note bad" role="alert"><p><strong>This run failed.</strong>' in shown
        assert "letopis " not in shown.partition('id="advanced"')[0].partition("<main")[2]
    assert "None of the pages could be fetched. Reason: no connection. The server may be down" in crawl
    assert 'id="last"' not in crawl, "what failed is listed once"
    assert 'href="/jobs?like=1#start"' in crawl
    assert "None of the pages could be fetched. Reason: no connection." in uwe.get("/jobs").text, (
        "the list says why too"
    )
    assert '<span class="badge unavailable">no connection</span>' in crawl.partition('id="failures"')[2]
    assert 'href="/url/http://127.0.0.1:9/"' in crawl
    assert "No page of nowhere.example is in the archive; crawl it first." in audit
    assert 'href="/site/nowhere.example' not in audit, "nobody is sent to a page that is not there"
    assert "Crawl nowhere.example</button>" in audit


def test_a_crawl_of_a_page_that_is_gone_says_with_which_status_it_answers(
    web: WebClient, archive: Archive, scripted_site: ScriptedSite
) -> None:
    context = Context(archive, rights=7, origin="cli", private_ok=True)
    start_run(context, StartRun(kind="crawl", site=scripted_site.url("/gone"), depth=0))
    work_off(archive)
    assert "Reason: status 404.</p>" in web.get("/jobs/1").text
    assert "D\u016fvod: stav 404." in web.get("/jobs", Accept_Language="cs").text


def test_a_run_is_started_again_from_a_form_that_says_what_was_asked(web: WebClient, archive: Archive) -> None:
    uwe = Person(web, "uwe")
    asked = {"scope": "prefix", "depth": "2", "limit": "7", "delay": "5s", "browser": "1"}
    uwe.post("/jobs/start", kind="crawl", site="https://example.org/docs/", **asked)
    uwe.post("/jobs/start", kind="export", site="example.org", format="warc")
    crawl, export = (uwe.get(f"/jobs?like={number}").text.partition('id="start"')[2] for number in (1, 2))
    assert 'value="https://example.org/docs/" required' in crawl
    for said in ('value="prefix" selected', 'max="100" value="2"', 'max="1000000" value="7"', 'value="5s" selected'):
        assert said in crawl
    assert re.findall(r'name="(requisites|browser)" value="1"( checked)?', crawl) == [
        ("requisites", ""), ("browser", " checked"),
    ]  # fmt: skip
    assert "aria-invalid" not in crawl
    assert '<input name="site" value="example.org" placeholder' in export
    assert 'value="warc" selected' in export


def test_what_ended_and_would_begin_anew_offers_no_second_way_to_run_it_again(web: WebClient, archive: Archive) -> None:
    uwe = Person(web, "uwe")
    uwe.post("/jobs/start", kind="crawl", site="https://example.org/")
    uwe.post("/jobs/start", kind="audit", site="example.org")
    for number in (1, 2):
        uwe.post(f"/jobs/{number}/cancel")
    assert 'action="/jobs/1/resume"' in uwe.get("/jobs/1").text
    assert 'action="/jobs/2/resume"' not in uwe.get("/jobs/2").text
    assert 'action="/jobs/2/refresh"' in uwe.get("/jobs/2").text


def test_the_addresses_of_a_crawl_are_chosen_by_their_outcome(
    web: WebClient, archive: Archive, scripted_site: ScriptedSite
) -> None:
    scripted_site.set("/", b'<title>Home</title><a href="/gone">gone</a>')
    context = Context(archive, rights=7, origin="cli", private_ok=True)
    start_run(context, StartRun(kind="crawl", site=scripted_site.url("/"), depth=1))
    work_off(archive)
    listed = web.get("/jobs/1?outcome=new").text.partition('id="last"')[2].partition("</table>")[0]
    assert f'href="/url/{scripted_site.url("/")}"' in listed
    assert f'href="/url/{scripted_site.url("/gone")}"' not in listed
    assert (
        '<a href="/jobs/1?outcome=unavailable#last">unavailable <span class="count">1</span></a>'
        in web.get("/jobs/1").text
    )
    assert f'href="/web/{scripted_site.url("/")}">Browse the captured site</a>' in web.get("/jobs/1").text


def test_a_verified_archive_says_that_nothing_is_wrong(web: WebClient, archive: Archive) -> None:
    start_run(Context(archive, user="olga", rights=READ | WRITE | OWN), StartRun(kind="verify"))
    work_off(archive)
    shown = web.get("/jobs/1").text
    assert "<h1>Verification of the archive</h1>" in shown
    assert '<p class="note good" role="status">No problems found' in shown
    assert 'href="/storage">Storage</a>' in shown


def act(web: WebClient, cookie: str, csrf: str, path: str) -> tuple[int, str]:
    answer = web.ask("POST", path, urlencode({"csrf": csrf}), Content_Type=FORM, Cookie=cookie)
    return answer.status, answer.headers.get("location", "")


def test_a_run_is_paused_resumed_stopped_and_deleted_where_it_is_listed(web: WebClient, archive: Archive) -> None:
    cookie, csrf = sign_in(web, "uwe")
    start_run(Context(archive, user="uwe", rights=READ | WRITE), StartRun(kind="audit", site="example.org"))
    assert act(web, cookie, csrf, "/jobs/1/pause") == (303, "/jobs/1")
    shown = web.get("/jobs", Cookie=cookie).text
    assert "data-run=" not in shown
    for action in ("resume", "cancel", "delete"):
        assert f'action="/jobs/1/{action}"' in shown
    assert act(web, cookie, csrf, "/jobs/1/resume") == (303, "/jobs/1")
    assert 'action="/jobs/1/pause"' in web.get("/jobs/1", Cookie=cookie).text
    assert act(web, cookie, csrf, "/jobs/1/delete")[0] == 400
    assert act(web, cookie, csrf, "/jobs/1/cancel") == (303, "/jobs/1")
    assert act(web, cookie, csrf, "/jobs/1/delete") == (303, "/jobs")
    assert web.get("/jobs/1", Cookie=cookie).status == 404
    assert act(web, cookie, csrf, "/jobs/1/explode")[0] == 404
    done = [row.action for row in list_audit(Context(archive, rights=READ | WRITE | OWN), AuditQuery())]
    assert {"job paused", "job resumed", "job deleted"} <= set(done)


def test_others_see_a_run_and_cannot_change_it(web: WebClient, archive: Archive) -> None:
    start_run(Context(archive, user="olga", rights=READ | WRITE | OWN), StartRun(kind="audit", site="example.org"))
    cookie, csrf = sign_in(web, "uwe")
    shown = web.get("/jobs/1", Cookie=cookie).text
    assert 'action="/jobs/1/' not in shown
    archive.put("http://example.org/", b"<title>Home</title>", archive.clock())
    assert '<a href="/jobs/1">Audit of example.org</a>' in web.get("/", Cookie=cookie).text
    assert act(web, cookie, csrf, "/jobs/1/pause")[0] == 403


def test_a_file_that_is_dropped_becomes_a_run_that_takes_it_in(web: WebClient, archive: Archive) -> None:
    har = {"log": {"entries": [har_entry("http://session.example/")]}}
    cookie, csrf = sign_in(web, "olga")
    sent = {"Content_Type": "application/octet-stream", "Cookie": cookie, "X_CSRF_Token": csrf}
    answer = web.ask("POST", "/api/v1/runs/import?name=../my%20session.har", json.dumps(har), **sent)
    assert answer.status == 201, answer.text
    assert 'name="import of my-session.har"' in query_of(Context(archive, rights=READ | WRITE | OWN), 1)
    work_off(archive)
    assert archive.get("http://session.example/").body == b"<title>A session</title>"
    assert [file.name for file in (archive.folder / "jobs").rglob("*") if file.is_file()] == []
    shown = web.get("/jobs/1", Cookie=cookie).text
    assert "done" in shown
    assert '<a class="button" href="/site/session.example">Map of session.example</a>' in shown
    assert 'href="/sites"' not in shown.partition("<main")[2]
    user, token = sign_in(web, "uwe")
    assert web.ask("POST", "/api/v1/runs/import", "x", **{**sent, "Cookie": user, "X_CSRF_Token": token}).status == 403


def test_an_import_of_what_is_there_already_says_so() -> None:
    data = (
        b'<result><import records="9" taken="0" checks="0" versions="0" same="4" refused=\'{"no date": 2}\'/></result>'
    )
    (found,) = run_results(Request({"type": "http"}), data)
    assert [(one.label, one.value) for one in found.figures] == [
        ("Imported", 0), ("Already known", 4), ("Rejected", 2),
    ]  # fmt: skip
    assert found.nothing.startswith("Everything in this file is already in the archive")


@pytest.mark.parametrize(
    ("wish", "page", "words"),
    [("watches=true", "/watches", "two.example"), ("seeds=page", "/crawl", "2 pages never visited")],
)
def test_a_list_of_addresses_that_is_dropped_is_watched_or_crawled(
    web: WebClient, archive: Archive, wish: str, page: str, words: str
) -> None:
    cookie, csrf = sign_in(web, "olga")
    assert f'<option value="{wish}">' in web.get("/jobs", Cookie=cookie).text
    sent = {"Content_Type": "application/octet-stream", "Cookie": cookie, "X_CSRF_Token": csrf}
    listed = "http://one.example/\nhttp://two.example/\n"
    assert web.ask("POST", f"/api/v1/runs/import?name=list.txt&{wish}", listed, **sent).status == 201
    work_off(archive)
    shown = web.get("/jobs/1", Cookie=cookie).text
    assert f'class="button" href="{page}"' in shown
    assert words in web.get(page, Cookie=cookie).text


def test_what_cannot_be_taken_in_fails_with_its_reason_and_leaves_no_file(
    web: WebClient, archive: Archive, tmp_path: Path
) -> None:
    file = tmp_path / "upload"
    file.write_bytes(b"\x00\x01 no archive at all")
    context = Context(archive, user="olga", rights=READ | WRITE | OWN)
    start_import(context, SendFile(file=file, name="odd.bin"))
    work_off(archive)
    job = show_job(context, ShowQuery(id=1)).value  # type: ignore[union-attr]
    assert (job.state, bool(job.message)) == ("failed", True)
    assert [left for left in (archive.folder / "jobs").rglob("*") if left.is_file()] == []
    shown = web.get("/jobs/1", Cookie=sign_in(web, "olga")[0]).text
    actions = ("resume", "refresh", "delete")
    assert [f'"/jobs/1/{action}"' in shown for action in actions] == [False, False, True], "there is no file any more"


def test_the_archive_is_verified_as_a_run(web: WebClient, archive: Archive) -> None:
    cookie, csrf = sign_in(web, "olga")
    fields = urlencode({"kind": "verify", "csrf": csrf})
    assert web.ask("POST", "/jobs/start", fields, Content_Type=FORM, Cookie=cookie).status == 303
    work_off(archive)
    assert show_job(Context(archive, rights=7), ShowQuery(id=1)).value.state == "done"  # type: ignore[union-attr]


def test_the_page_of_a_crawl_lists_its_last_addresses_and_its_errors(
    web: WebClient, archive: Archive, scripted_site: ScriptedSite
) -> None:
    scripted_site.set("/", b'<title>Home</title><a href="/a">a</a> <a href="/gone">gone</a>')
    scripted_site.set("/a", b"<title>A</title>")
    context = Context(archive, rights=7, origin="cli", private_ok=True)
    start_run(context, StartRun(kind="crawl", site=scripted_site.url("/"), depth=1))
    work_off(archive)
    shown = web.get("/jobs/1").text
    errors, last = shown.partition('id="failures"')[2].partition('id="last"')[::2]
    for path in ("/", "/a", "/gone"):
        assert f'href="/url/{scripted_site.url(path)}"' in last
    assert f'href="/url/{scripted_site.url("/gone")}"' in errors
    assert '<span class="badge unavailable">404</span>' in errors
    assert f'href="/url/{scripted_site.url("/a")}"' not in errors
    assert f'href="/site/{urlsplit(scripted_site.url("/")).netloc}?view=changes"' in shown


def test_a_crawl_is_as_slow_as_asked_and_never_faster_than_the_setting(
    archive: Archive, scripted_site: ScriptedSite
) -> None:
    scripted_site.set("/", b'<title>Home</title><a href="/a">a</a>')
    scripted_site.set("/a", b"<title>A</title>")
    context = Context(archive, rights=7, origin="cli", private_ok=True)
    start_run(context, StartRun(kind="crawl", site=scripted_site.url("/"), depth=1, delay=timedelta(seconds=2)))
    assert 'delay="2s"' in query_of(context, 1)
    work_off(archive)
    times = [
        when for when, (_, path, _) in zip(scripted_site.times, scripted_site.log, strict=True) if path != "/robots.txt"
    ]
    assert len(times) == 2
    assert times[1] - times[0] >= 2


def har_entry(url: str) -> dict[str, object]:
    return {
        "startedDateTime": "2024-05-06T07:08:09.000Z", "time": 1,
        "request": {"method": "GET", "url": url, "httpVersion": "HTTP/1.1", "headers": [], "cookies": [],
                    "queryString": [], "headersSize": -1, "bodySize": 0},
        "response": {"status": 200, "statusText": "OK", "httpVersion": "HTTP/1.1", "cookies": [], "redirectURL": "",
                     "headers": [{"name": "Content-Type", "value": "text/html"}], "headersSize": -1, "bodySize": 24,
                     "content": {"size": 24, "mimeType": "text/html", "text": "<title>A session</title>"}},
        "cache": {}, "timings": {"send": 0, "wait": 1, "receive": 0},
    }  # fmt: skip


def work_off(archive: Archive) -> None:
    """The queue, by real workers, until nothing waits."""
    queue, until = JobQueue(archive), time.monotonic() + 300

    def over() -> bool:
        assert time.monotonic() < until, "the queue does not move"
        return set(queue.counts()) <= set(ENDED)

    asyncio.run(Supervisor(archive).run_until(over))


def test_a_run_in_the_queue_says_what_it_waits_for(web: WebClient, archive: Archive) -> None:
    uwe = Person(web, "uwe")
    for _ in range(2):
        uwe.post("/jobs/start", kind="crawl", site="https://example.org/")
    assert "No worker is running" in uwe.get("/jobs/1").text
    assert "1 other run is before it." in uwe.get("/jobs/2").text
    claims = claims_of(archive)
    claim = claims.take(JobQueue(archive).show(1, COMMAND_LINE).package, "worker", 0, 2**62)
    assert claim is not None
    claims.beat(claim, 2**62, WorkerReport("1/1 download: 12 fetched, 30 waiting", 0.2, None))
    assert uwe.send("/jobs/1/pause") == (303, "/jobs/1?stopping=1"), "it runs: pausing takes a moment"
    assert "Requested;" in uwe.get("/jobs/1?stopping=1").text
    assert 'Waiting for run <a href="/jobs/1">1 Crawl of example.org</a>' in uwe.get("/jobs/2").text
    assert ">12 fetched, 30 waiting<" in uwe.get("/jobs/1").text, "of its only step nobody needs the name"
    assert "prohlédnuto 12, čeká 30" in web.get("/jobs/1", Accept_Language="cs", Cookie=uwe.cookie).text


def test_a_crawl_says_which_host_it_waits_for_and_why(web: WebClient, archive: Archive) -> None:
    uwe = Person(web, "uwe")
    uwe.post("/jobs/start", kind="crawl", site="https://example.org/")
    claims = claims_of(archive)
    claim = claims.take(JobQueue(archive).show(1, COMMAND_LINE).package, "worker", 0, 2**62)
    assert claim is not None
    later, past = (rfc3339(datetime.now(UTC) + timedelta(hours=hours)) for hours in (2, -2))
    for until, why, said in (
        (later, "429", "16 fetched, 2 waiting; 127.0.0.4 answered with 429; next request in "),
        (later, "pause", "16 fetched, 2 waiting; next request to 127.0.0.4 in "),
        (past, "429", "16 fetched, 2 waiting</span>"),
    ):
        step = f"1/1 download: 16 fetched, 2 waiting, 127.0.0.4 again at {until} ({why})"
        claims.beat(claim, 2**62, WorkerReport(step, 0.2, None))
        assert said in uwe.get("/jobs/1").text
    claims.finish(claim, 1, JobOutcome("done", "", b"", "", step="1/1 download: 18 fetched"))
    shown = uwe.get("/jobs/1").text.partition("<main")[2].partition('id="advanced"')[0]
    assert "<p>18 fetched</p>" in shown
    assert "waiting" not in shown


def test_counts_and_words_of_a_run_are_the_same_live_and_on_its_page(web: WebClient, archive: Archive) -> None:
    uwe = Person(web, "uwe")
    uwe.post("/jobs/start", kind="crawl", site="https://example.org/")
    claims = claims_of(archive)
    claim = claims.take(JobQueue(archive).show(1, COMMAND_LINE).package, "worker", 0, 2**62)
    assert claim is not None
    log = "".join(
        f"2026-01-01T00:00:00Z {status} {outcome} https://example.org/{number}\n"
        for number, (status, outcome) in enumerate((("200", "new"), ("200", "new"), ("robots", "refused")))
    )
    claims.beat(claim, 2**62, WorkerReport("1/1 download: 2 fetched, 1 waiting", 0.2, log))
    asked = urllib.request.Request(f"{web.address}/jobs/events?run=1", headers={"Cookie": uwe.cookie})
    with urllib.request.urlopen(asked, timeout=300) as stream:
        (run,) = json.loads(stream.readline().decode().removeprefix("data: "))
    assert run["outcomes"] == {"new": 2, "refused": 1}
    assert run["called"]["refused"] == "not asked"
    shown = uwe.get("/jobs/1").text
    assert '<span class="badge new">new</span> 2' in shown
    assert '<span class="badge refused">not asked</span> 1' in shown


def test_a_file_that_is_not_whole_is_not_offered(web: WebClient, archive: Archive) -> None:
    uwe = Person(web, "uwe")
    uwe.post("/jobs/start", kind="crawl", site="https://example.org/")
    folder = job_folder(archive, 1)
    folder.mkdir(parents=True)
    (folder / ".site.wacz.5e5384a1.part").write_bytes(b"x")
    (folder / "whole.wacz").write_bytes(b"x")
    assert [row["name"] for row in uwe.get("/api/v1/jobs/1/files").json()["files"]] == ["whole.wacz"]
    assert ".part" not in uwe.get("/jobs/1").text
    assert uwe.get("/api/v1/jobs/1/files/.site.wacz.5e5384a1.part").status == 404


def test_a_crawl_that_is_done_waits_for_nothing_and_counts_what_was_fetched(
    archive: Archive, scripted_site: ScriptedSite
) -> None:
    scripted_site.set("/robots.txt", b"User-agent: *\nDisallow: /secret")
    scripted_site.set("/", b'<title>Home</title><a href="/a">a</a><a href="/secret">s</a>')
    scripted_site.set("/a", b"<title>A</title>")
    context = Context(archive, rights=7, origin="cli", private_ok=True)
    start_run(context, StartRun(kind="crawl", site=scripted_site.url("/"), depth=1))
    work_off(archive)
    job = JobQueue(archive).show(1, COMMAND_LINE)
    assert (job.state, job.step) == ("done", "1/1 download: 2 fetched")
