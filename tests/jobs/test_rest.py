"""`/api/v1/jobs` and `/api/v1/crawls` on a real server: rights, refusals, answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from served_archive import Answer, WebClient, running

from letopis.archive import Archive
from letopis.archive.jobs import ENDED
from letopis.catalog.accounts import Accounts
from letopis.config import JobsSettings, Settings
from letopis.jobs.supervisor import Supervisor

MAP = b'<query package="mapgenerator" name="m"><map site="example.org"/></query>'
JOBS = "/api/v1/jobs"


@dataclass
class People:
    """A server, and a token for each name."""

    archive: Archive
    web: WebClient
    tokens: dict[str, str]

    def ask(self, who: str, method: str, path: str, body: bytes | None = None, kind: str = "application/xml") -> Answer:
        head = {"Authorization": f"Bearer {self.tokens[who]}"} if who else {}
        return self.web.ask(method, path, body, Content_Type=kind, **head)

    def submit(self, who: str, body: bytes, more: str = "") -> Answer:
        return self.ask(who, "POST", JOBS + more, body)

    def work_off(self) -> None:
        rows = self.archive.catalog.database

        def over() -> bool:
            found = rows.all("SELECT state FROM job")
            return all(row[0] in ENDED for row in found)

        asyncio.run(Supervisor(self.archive).run_until(over))


@pytest.fixture
def people(tmp_path: Path) -> Iterator[People]:
    settings = Settings(jobs=replace(JobsSettings(), queued=5))
    with Archive(tmp_path / "archive", settings=settings) as archive:
        archive.put("http://example.org/", b"<title>Home &lt;script></title><a href='/a'>a</a>")
        accounts = Accounts(archive.catalog.database)
        users = {"guest": "guest", "anna": "user", "bert": "user", "olga": "owner"}
        made = {name: accounts.add(name, role, None, 0) for name, role in users.items()}
        tokens = {name: accounts.create_token(name, user, "write", 0) for name, user in made.items()}
        with running(archive) as web:
            yield People(archive, web, tokens)


def test_a_question_is_asked_answered_and_read(people: People) -> None:
    made = people.submit("anna", MAP)
    assert made.status == 201
    assert (made.json()["id"], made.json()["state"], made.json()["owner"]) == (1, "queued", "anna")
    assert people.ask("", "GET", f"{JOBS}/1/result").status == 404
    people.work_off()
    assert people.ask("", "GET", f"{JOBS}/1").json()["state"] == "done"
    result = people.ask("", "GET", f"{JOBS}/1/result")
    assert (result.status, result.headers["content-type"]) == (200, "application/xml")
    assert b'<result id="1" package="mapgenerator"' in result.body
    assert "sandbox" in result.headers["content-security-policy"]
    assert "step 1 of 1" in people.ask("", "GET", f"{JOBS}/1/log").text
    assert b"<map" in people.ask("", "GET", f"{JOBS}/1/query").body
    page = people.ask("", "GET", f"{JOBS}/1/result?xslt=map-page")
    assert page.headers["content-type"].startswith("text/html")
    assert b"<script" not in page.body
    told = people.ask("", "GET", f"{JOBS}/1/result?format=json").json()
    assert (told["element"], told["state"]) == ("result", "done")
    assert people.ask("", "GET", f"{JOBS}/1/result?xslt=nothing").status == 400
    assert people.ask("", "GET", f"{JOBS}/1/result?xslt=own").status == 400


RIGHTS = [
    ("", "POST", "", 401), ("guest", "POST", "", 403), ("anna", "POST", "", 422),
    ("", "DELETE", "/{id}", 401), ("guest", "DELETE", "/{id}", 403), ("bert", "DELETE", "/{id}", 403),
    ("", "POST", "/{id}/refresh", 401), ("guest", "POST", "/{id}/refresh", 403), ("bert", "POST", "/{id}/refresh", 201),
    ("anna", "DELETE", "/{id}", 200), ("olga", "DELETE", "/{id}", 200),
    ("anna", "DELETE", "/999", 404), ("anna", "DELETE", "/x", 400), ("anna", "GET", "/0", 400),
    ("", "POST", "/favourites", 401), ("guest", "DELETE", "/favourites/m", 403),
    ("bert", "DELETE", "/favourites/m", 403), ("anna", "DELETE", "/favourites/m", 200),
    ("anna", "DELETE", "/favourites/n", 404), ("anna", "POST", "/favourites/m/refresh", 201),
    ("", "GET", "/favourites/m", 200), ("", "GET", "/packages", 200), ("", "GET", "/99999999999999999999", 400),
    ("anna", "POST", "/clean", 403), ("olga", "POST", "/clean", 200),
]  # fmt: skip


def test_rights(people: People) -> None:
    for who, method, path, status in RIGHTS:
        number = people.submit("anna", MAP, "?keep=true").json()["id"]
        answer = people.ask(who, method, JOBS + path.format(id=number))
        assert answer.status == status, (who, method, path, answer.text)
        for job in people.ask("", "GET", f"{JOBS}?state=queued").json()["jobs"]:
            people.ask("olga", "DELETE", f"{JOBS}/{job['id']}")


BAD_BODIES = [
    (b"", "application/xml"),
    (b"{}", "application/json"),
    (b"<query/>", "application/xml"),
    (b'<!DOCTYPE q [<!ENTITY e "x">]><query><map site="&e;"/></query>', "application/xml"),
    (MAP, "application/json"),
    (b"\x00\xff", "text/xml"),
]


def test_a_bad_body_is_422(people: People) -> None:
    for body, kind in BAD_BODIES:
        answer = people.ask("anna", "POST", JOBS, body, kind)
        assert (answer.status, answer.headers["content-type"]) == (422, "application/problem+json"), body
    assert people.ask("", "GET", JOBS).json() == {"jobs": [], "next": None}


def test_private_addresses_are_refused(people: People) -> None:
    for url in (
        "http://127.0.0.1/", "http://localhost/", "http://169.254.169.254/x", "http://[::1]/", "http://0x7f.1/",
    ):  # fmt: skip
        body = f'<query package="downloader"><download maxlevel="1"><url>{url}</url></download></query>'.encode()
        answer = people.submit("olga", body)
        assert (answer.status, answer.headers["content-type"]) == (403, "application/problem+json"), url
        crawl = people.ask("olga", "POST", "/api/v1/crawls", b'{"seeds": ["%s"]}' % url.encode(), "application/json")
        assert crawl.status == 403


def test_upkeep_is_for_owners(people: People) -> None:
    body = b'<query package="downloader"><cleaner/></query>'
    assert people.submit("anna", body).status == 403
    assert people.submit("olga", body).status == 201


def test_permission_masks_hold_through_http(people: People) -> None:
    hidden = MAP.replace(b"<query", b'<query permission="4"')
    assert people.submit("anna", hidden).status == 403
    assert people.submit("olga", hidden, "?keep=true").status == 201
    assert people.ask("anna", "GET", f"{JOBS}/1").status == 404
    assert people.ask("anna", "GET", f"{JOBS}/1/log").status == 404
    assert people.ask("anna", "POST", f"{JOBS}/1/refresh").status == 404
    assert people.ask("anna", "GET", f"{JOBS}/favourites").json() == {"favourites": []}
    assert len(people.ask("olga", "GET", JOBS).json()["jobs"]) == 1


def test_a_job_that_asks_what_only_owners_may_is_shown_to_owners_alone(people: People) -> None:
    usage = b'<query package="sengine"%s><usage/></query>'
    number = people.submit("olga", usage % b"").json()["id"]
    shown = people.submit("olga", usage % b' permission="1"').json()["id"]
    for who in ("", "anna"):
        assert people.ask(who, "GET", f"{JOBS}/{number}").status == 404
        assert people.ask(who, "GET", f"{JOBS}/{number}/log").status == 404
        assert people.ask(who, "GET", f"{JOBS}/{shown}").status == 200
    assert people.ask("olga", "GET", f"{JOBS}/{number}").status == 200


def test_a_full_queue_is_429(people: People) -> None:
    assert [people.submit("anna", MAP).status for _ in range(6)] == [201] * 5 + [429]
    assert people.submit("bert", MAP).status == 201


def test_lists_are_chosen_and_paged(people: People) -> None:
    for _ in range(3):
        people.submit("anna", MAP)
    first = people.ask("", "GET", f"{JOBS}?limit=2&state=queued&package=mapgenerator&owner=anna").json()
    assert ([job["id"] for job in first["jobs"]], first["next"]) == ([3, 2], 2)
    assert [job["id"] for job in people.ask("", "GET", f"{JOBS}?before=2").json()["jobs"]] == [1]
    assert people.ask("", "GET", f"{JOBS}?state=odd").status == 400


def test_favourites_are_kept_and_asked(people: People) -> None:
    body = MAP.replace(b'name="m"', b'name="my map" refresh="1h"')
    kept = people.ask("anna", "POST", f"{JOBS}/favourites", body)
    assert (kept.status, kept.json()["name"], kept.json()["every"]) == (201, "my map", 3600.0)
    name = quote("my map")
    assert people.ask("bert", "POST", f"{JOBS}/favourites/{name}/refresh").json()["name"] == "my map"
    assert b"my map" in people.ask("", "GET", f"{JOBS}/favourites/{name}").body


def test_files_of_a_job_can_be_fetched(people: People) -> None:
    body = b'<query package="downloader" permission="2"><export kind="cdxj" file="all.cdxj"/></query>'
    assert people.submit("anna", body).status == 201
    people.work_off()
    assert people.ask("", "GET", f"{JOBS}/1/files/all.cdxj").status == 404
    answer = people.ask("bert", "GET", f"{JOBS}/1/files/all.cdxj")
    assert (answer.status, b"org,example)/" in answer.body) == (200, True)
    for name in ("none", "..", "%2e%2e%2f%2e%2e%2fcatalogue.sqlite"):
        assert people.ask("olga", "GET", f"{JOBS}/1/files/{name}").status == 404


def test_crawls_are_planned_and_dropped_by_owners(people: People) -> None:
    path = "/api/v1/crawls"
    seeds = b'{"seeds": ["http://example.com/", "example.net"]}'
    assert [people.ask(who, "POST", path, seeds, "application/json").status for who in ("", "anna", "olga")] == [
        401,
        403,
        201,
    ]
    assert people.ask("", "GET", path).json()["new"] == 2
    dropped: Any = people.ask("olga", "DELETE", f"{path}?site=example.net").json()
    assert dropped == {"site": "example.net", "dropped": 1}
    assert people.ask("", "GET", path).json()["new"] == 1
    assert people.ask("olga", "POST", path, b'{"seeds": []}', "application/json").status == 422


def test_only_owners_have_results_saved_to_a_file(people: People) -> None:
    query = MAP.replace(b'name="m"', b'savefile="map.xml"')
    refused = people.submit("anna", query)
    assert (refused.status, "savefile" in refused.json()["detail"]) == (403, True)
    assert people.submit("olga", query).status == 201
    people.work_off()
    assert b'state="done"' in (people.archive.folder / "jobs" / "saved" / "map.xml").read_bytes()
