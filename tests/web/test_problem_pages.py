"""People get pages where programs get problem documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from scripted_site import ScriptedSite
from served_archive import WebClient, running
from signed_in import BROWSER, FORM, add_people, session_cookie

from letopis.archive import Archive
from letopis.config import FetchSettings, Settings


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive", settings=Settings(fetch=FetchSettings(private="always"))) as opened:
        add_people(opened, (("olga", "owner"), ("gabi", "guest"), ("uwe", "user")))
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


def sign_in(web: WebClient, name: str) -> dict[str, str]:
    return {"Cookie": session_cookie(web, name), **BROWSER}


@pytest.mark.parametrize(
    "path", ["/url/http://nowhere.example/", "/web/2026/http://nowhere.example/", "/jobs/77", "/watches/9"]
)
def test_what_is_not_there_is_told_on_a_page_to_browsers(web: WebClient, path: str) -> None:
    answer = web.get(path, **BROWSER)
    assert answer.status == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "<h1>Not in this archive</h1>" in answer.text


def test_what_nobody_foresaw_is_told_on_a_page_and_to_programs_as_a_document(
    web: WebClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a secret of the machine")

    monkeypatch.setattr("letopis.web.crawls.recent_versions", fail)
    answer = web.get("/crawl", **BROWSER)
    assert (answer.status, answer.headers["content-type"]) == (500, "text/html; charset=utf-8")
    assert "<h1>Something went wrong</h1>" in answer.text
    assert "the cause is in its log" in answer.text
    assert "secret" not in answer.text
    document = web.get("/crawl")
    assert (document.status, document.headers["content-type"]) == (500, "application/problem+json")
    assert "secret" not in document.text


def test_an_address_that_leads_nowhere_says_so_and_a_site_that_is_not_there_can_be_crawled(web: WebClient) -> None:
    for path in (
        "/nowhere",
        "/site/",
        "/url/",
        "/compare/",
        "/feed/site/nowhere.example",
        "/feed/url/http://no.example/",
    ):
        answer = web.get(path, **BROWSER)
        assert answer.status in (400, 404), path
        assert answer.headers["content-type"].startswith("text/html"), path
    assert "<h1>No such page</h1>" in web.get("/nowhere", **BROWSER).text
    site = web.get("/site/nowhere.example", **sign_in(web, "uwe"))
    assert site.status == 404
    assert 'name="kind" value="crawl"' in site.text


@pytest.mark.parametrize(("path", "place"), [("/jobs/999", "/jobs"), ("/jobs/x", "/jobs"), ("/watches/9", "/watches")])
def test_what_is_not_there_is_called_as_the_pages_call_it_and_leads_to_its_list(
    web: WebClient, path: str, place: str
) -> None:
    main = web.get(path, **BROWSER).text.partition("<main")[2].partition("</main>")[0]
    assert re.search(rf'<a href="{place}">', main)
    assert not re.search(r"\bjobs?\b(?!/)", re.sub(r"<[^>]*>", "", main))


@pytest.mark.parametrize("path", ["/docs/none", "/join?invitation=x", "/jobs/999"])
def test_what_is_not_there_is_told_in_the_language_of_the_reader(web: WebClient, path: str) -> None:
    answer = web.get(path, **BROWSER, Accept_Language="cs")
    assert (answer.status, '<span lang="en">' in answer.text) == (404, False)


TIMES = ("at=nonsense", "since=1.1.", "at=20269999", "at=9999999d+ago", "since=x+ago")


def test_a_time_that_cannot_be_read_is_told_in_the_language_of_the_reader(web: WebClient, archive: Archive) -> None:
    archive.put("http://a.example/", b"<p>text</p>")
    asked = [f"/site/a.example?{time}" for time in TIMES]
    for path in (*asked, "/compare/http://a.example/?from=x", "/compare/http://a.example/?to=x", "/replay/go"):
        answer = web.get(path, **BROWSER, Accept_Language="cs")
        assert (answer.status, '<span lang="en">' in answer.text) == (400, False), path
    assert "nonsense není čas" in web.get("/as-of?at=nonsense", **BROWSER, Accept_Language="cs").text


@pytest.mark.parametrize("path", ["/nowhere", "/web/2026/http://nowhere.example/", "/api/v1/watches/9"])
def test_programs_get_a_problem_document(web: WebClient, path: str) -> None:
    answer = web.get(path, Accept="application/json")
    assert answer.status == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert json.loads(answer.text)["status"] == 404


def test_routes_for_programs_answer_browsers_with_problem_documents_too(web: WebClient) -> None:
    answer = web.get("/api/v1/watches/9", **BROWSER)
    assert answer.headers["content-type"] == "application/problem+json"


def test_somebody_signed_in_without_the_right_is_told_so_and_not_to_sign_in(web: WebClient) -> None:
    guest = sign_in(web, "gabi")
    for path in ("/welcome", "/accounts/users"):
        answer = web.get(path, **guest)
        assert answer.status == 403
        assert "<h1>Not allowed</h1>" in answer.text
        assert "Your account is not allowed to do this" in answer.text
        assert "As gabi, you can read everything here" in answer.text
        assert "Sign in" not in answer.text
    for path in ("/watches", "/crawl", "/jobs", "/"):
        assert "Sign in" not in web.get(path, **guest).text, path


def test_administration_is_in_the_menu_of_owners_alone(web: WebClient) -> None:
    for name, seen in (("olga", True), ("uwe", False), ("gabi", False)):
        shown = web.get("/", **sign_in(web, name)).text
        assert ('href="/settings"' in shown) == seen, name


def test_an_unknown_address_can_be_saved_watched_or_its_site_crawled(
    web: WebClient, archive: Archive, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.set("/page", b"<title>Found</title><p>A page that nobody looked at before.</p>")
    stranger = web.get(f"/url/{url}", **BROWSER).text
    assert "Save it now" not in stranger
    assert f"/login?next=/url/{url}" in stranger
    owner = sign_in(web, "olga")
    offered = web.get(f"/url/{url}", **owner).text
    for name in ("Save it now", "Watch it", "Crawl its site"):
        assert name in offered
    searched = web.get(f"/search?{urlencode({'q': url})}", **owner).text
    assert f'<input type="hidden" name="site" value="{url}">' in searched
    assert "Save it now" in searched
    assert "Save it now" not in web.get("/search?q=title:none.such", **owner).text
    found = re.search(r'name="csrf" value="([^"]+)"', offered)
    assert found
    body = urlencode({"url": url, "csrf": found[1]})
    saved = web.ask("POST", "/save", body, Content_Type=FORM, **owner)
    assert (saved.status, saved.headers["location"]) == (303, f"/url/{url}?saved.now=1")
    assert b"nobody looked" in archive.get(url).body
    assert web.get(f"/url/{url}", **owner).status == 200


def test_a_page_that_replay_lacks_can_be_saved_watched_or_its_site_crawled(web: WebClient) -> None:
    lacking = "/web/2026/http://nowhere.example/page"
    shown = web.get(lacking, **sign_in(web, "uwe")).text
    for action in ('action="/save"', 'action="/watches"', 'action="/jobs/start"'):
        assert action in shown
    assert shown.count('name="url" value="http://nowhere.example/page"') == 2
    guest = web.get(lacking, **sign_in(web, "gabi")).text
    assert 'action="/save"' not in guest
    assert "ask an owner of this archive" in guest
    assert "/login?next=" in web.get(lacking, **BROWSER).text
