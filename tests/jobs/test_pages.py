"""`/jobs` in the web interface: the queue, one job, forms that work without a script."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import urlencode

import pytest
from served_archive import Answer, WebClient, running

from letopis.archive import Archive
from letopis.archive.jobs import ENDED
from letopis.catalog.accounts import Accounts
from letopis.jobs.supervisor import Supervisor

FORM = "application/x-www-form-urlencoded"
MAP = '<query package="mapgenerator" name="the &lt;map&gt;"><map site="example.org"/></query>'


class Browser:
    """Somebody who signed in."""

    def __init__(self, web: WebClient, name: str) -> None:
        self._web = web
        fields = urlencode({"name": name, "password": "a long password"})
        answer = web.ask("POST", "/login", fields, Content_Type=FORM)
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        found = re.search(r'name="csrf" value="([^"]+)"', self.get("/jobs").text)
        assert found
        self.csrf = found[1]

    def get(self, path: str) -> Answer:
        return self._web.get(path, Cookie=self.cookie)

    def send(self, path: str, **fields: str) -> Answer:
        return self._web.ask(
            "POST", path, urlencode({"csrf": self.csrf, **fields}), Content_Type=FORM, Cookie=self.cookie
        )


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    with Archive(tmp_path_factory.mktemp("jobs") / "archive") as made:
        made.put("http://example.org/", b"<title>Home</title><a href='/a'>a</a>")
        for name, role in (("uwe", "user"), ("ida", "user"), ("olga", "owner")):
            Accounts(made.catalog.database).add(name, role, "a long password", 0)
        yield made


@pytest.fixture(scope="module")
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


@pytest.fixture(scope="module")
def uwe(web: WebClient) -> Browser:
    return Browser(web, "uwe")


def job_of(answer: Answer) -> int:
    assert answer.status == 303, answer.text
    found = re.fullmatch(r"/jobs/(\d+)", answer.headers["location"])
    assert found
    return int(found[1])


def work_off(archive: Archive) -> None:
    database = archive.catalog.database

    def over() -> bool:
        return all(row[0] in ENDED for row in database.all("SELECT state FROM job"))

    asyncio.run(Supervisor(archive).run_until(over))


def test_a_question_is_asked_watched_and_answered(web: WebClient, uwe: Browser, archive: Archive) -> None:
    number = job_of(uwe.send("/jobs", xml=MAP, keep="1"))
    shown = uwe.get(f"/jobs/{number}").text
    assert "queued" in shown
    assert "Stop" in shown
    work_off(archive)
    shown = web.get(f"/jobs/{number}").text
    assert "the &lt;map&gt;" in shown
    assert "&lt;result id=" in shown
    assert f"/jobs/{number}/cancel" not in shown
    framed = web.get(f"/jobs/{number}?xslt=map-page").text
    source = re.search(r'<iframe class="framed" sandbox [^>]*src="([^"]+)"', framed)
    assert source
    answer = web.get(unescape(source[1]))
    assert answer.headers["content-type"].startswith("text/html")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert b"Home" in answer.body
    listed = web.get("/jobs?state=done").text
    assert f'<a href="/jobs/{number}">' in listed
    assert "Stored queries" in listed
    again = job_of(uwe.send(f"/jobs/{number}/refresh"))
    assert again > number
    assert job_of(uwe.send("/jobs", favourite="the <map>")) == again
    assert uwe.send(f"/jobs/{again}/cancel").status == 303
    assert "cancelled" in web.get(f"/jobs/{again}").text
    assert uwe.send("/jobs/forget", name="the <map>").status == 303
    assert "Stored queries" not in web.get("/jobs").text


def test_what_is_wrong_is_told_on_the_page_and_the_text_stays(uwe: Browser) -> None:
    answer = uwe.send("/jobs", xml="<query><odd/></query>")
    assert answer.status == 422
    assert 'role="alert"' in answer.text
    assert "&lt;odd/&gt;" in answer.text
    private = '<query package="downloader"><download maxlevel="1"><url>http://127.0.0.1/</url></download></query>'
    assert "is on a private network" in uwe.send("/jobs", xml=private).text


def test_nobody_asks_or_cancels_without_the_right(web: WebClient, uwe: Browser) -> None:
    number = job_of(uwe.send("/jobs", xml=MAP))
    for path in ("/jobs", f"/jobs/{number}/cancel", f"/jobs/{number}/refresh", "/jobs/forget"):
        assert web.ask("POST", path, urlencode({"xml": MAP}), Content_Type=FORM).status == 401
        forged = web.ask("POST", path, urlencode({"xml": MAP}), Content_Type=FORM, Cookie=uwe.cookie)
        assert forged.status == 403
    ida = Browser(web, "ida")
    assert "Cancel" not in ida.get(f"/jobs/{number}").text
    assert ida.send(f"/jobs/{number}/cancel").status == 403
    assert Browser(web, "olga").send(f"/jobs/{number}/cancel").status == 303
    assert uwe.send(f"/jobs/{number}/cancel").status == 400


@pytest.mark.parametrize("path", ["/jobs/9999", "/jobs/x", "/jobs/9999/result", "/jobs/" + "9" * 30])
def test_unknown_jobs_are_a_page(web: WebClient, path: str) -> None:
    answer = web.get(path)
    assert (answer.status, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")


@pytest.mark.parametrize("path", ["/jobs?state=odd", "/jobs?before=x&package=%3Cb%3E", "/jobs?before=" + "9" * 40])
def test_nonsense_in_the_address_is_400_as_in_rest(web: WebClient, path: str) -> None:
    assert web.get(path).status == web.get(f"/api/v1{path}").status == 400
