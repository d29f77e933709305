"""Jobs through every door: the same rows, the same refusals, the same statuses."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from served_archive import Answer, WebClient, running

from letopis.archive import OWN, READ, WRITE, Archive
from letopis.archive.accounts import accounts_of
from letopis.archive.job_control import job_folder
from letopis.archive.jobs import ENDED, JobQueue, QueueFull
from letopis.cli.main import main
from letopis.config import JobsSettings, ServeSettings, Settings
from letopis.errors import NotFound, QuotaUsedUp, Refused, UsageError
from letopis.jobs.supervisor import Supervisor
from letopis.operations import Context, Rows, Value, bind, json_value
from letopis.operations import jobs as operations

MAP = b'<query package="mapgenerator" name="7"><map site="example.org"/></query>'
MISSING = b'<query package="sengine"><diff url="http://example.org/none" offline="true"/></query>'
JOBS = "/api/v1/jobs"
FORM = "application/x-www-form-urlencoded"


@dataclass
class Doors:
    """An archive with its server, its command line, and the operations themselves."""

    archive: Archive
    web: WebClient
    tokens: dict[str, str]
    capture: pytest.CaptureFixture[str]
    folder: Path

    def run(self, operation: Any, user: str = "anna", **values: Any) -> Any:
        rights = READ | WRITE | (OWN if user == "olga" else 0)
        context = Context(self.archive, user=user, rights=rights, origin="http")
        answer = operation(context, bind(operation.parameters, values, self.archive.clock(), strict=True))
        return answer.value if isinstance(answer, Value) else list(answer) if isinstance(answer, Rows) else answer

    def rest(self, user: str, method: str, path: str, body: bytes | None = None) -> Answer:
        head = {"Authorization": f"Bearer {self.tokens[user]}"}
        return self.web.ask(method, JOBS + path, body, Content_Type="application/xml", **head)

    def sign_in(self, name: str) -> tuple[str, str]:
        fields = urlencode({"name": name, "password": "a long password"})
        cookie = self.web.ask("POST", "/login", fields, Content_Type=FORM).headers["set-cookie"].partition(";")[0]
        found = re.search(r'name="csrf" value="([^"]+)"', self.web.get("/jobs", Cookie=cookie).text)
        assert found
        return cookie, found[1]

    def page(self, who: tuple[str, str], path: str, **fields: str) -> Answer:
        body = urlencode({"csrf": who[1], **fields})
        return self.web.ask("POST", path, body, Content_Type=FORM, Cookie=who[0])

    def verb(self, *words: str) -> tuple[int, str, str]:
        status = main(["--archive", str(self.archive.folder), "jobs", *words])
        captured = self.capture.readouterr()
        return status, captured.out, captured.err

    def file(self, text: bytes) -> str:
        place = self.folder / "job.xml"
        place.write_bytes(text)
        return str(place)

    def work_off(self) -> None:
        queue = JobQueue(self.archive)
        asyncio.run(Supervisor(self.archive).run_until(lambda: set(queue.counts()) <= set(ENDED)))


@pytest.fixture
def doors(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[Doors]:
    settings = Settings(jobs=replace(JobsSettings(), queued=2), serve=replace(ServeSettings(), checks_a_day=1))
    with Archive(tmp_path / "archive", settings=settings) as archive:
        archive.put("http://example.org/", b"<title>Home</title><a href='/a'>a</a>")
        accounts = accounts_of(archive)
        made = {
            name: accounts.add(name, role, "a long password", 0)
            for name, role in (("anna", "user"), ("bert", "user"), ("olga", "owner"))
        }
        tokens = {name: accounts.create_token(name, user, "write", 0) for name, user in made.items()}
        with running(archive) as web:
            yield Doors(archive, web, tokens, capfd, tmp_path)


def test_a_job_has_the_same_fields_in_every_door(doors: Doors) -> None:
    made = doors.run(operations.submit_job, xml=MAP, keep=True)
    row = json_value(made)
    assert doors.rest("anna", "GET", "/1").json() == row
    assert json.loads(doors.verb("show", "1", "--json")[1]) == row
    assert [json_value(job) for job in doors.run(operations.list_jobs)] == [row]
    assert doors.rest("anna", "GET", "").json() == {"jobs": [row], "next": None}
    assert [json.loads(line) for line in doors.verb("list", "--json")[1].splitlines()] == [row]
    kept = [json_value(query) for query in doors.run(operations.list_favourites)]
    assert doors.rest("bert", "GET", "/favourites").json() == {"favourites": kept}
    assert [json.loads(line) for line in doors.verb("favourites", "--json")[1].splitlines()] == kept
    assert {"priority", "permission"} <= set(kept[0])


def test_the_class_of_a_failure_reaches_every_door(doors: Doors) -> None:
    doors.run(operations.submit_job, xml=MISSING)
    doors.work_off()
    found = doors.run(operations.show_job, id=1)
    assert (found.state, found.error) == ("failed", "UnknownUrl")
    assert doors.rest("anna", "GET", "/1").json()["error"] == "UnknownUrl"
    assert "UnknownUrl" in doors.web.get("/jobs/1").text
    assert b'<error class="UnknownUrl">' in doors.rest("anna", "GET", "/1/result").body
    status, out, err = doors.verb("refresh", "1", "--wait")
    assert status == 3
    assert '<error class="UnknownUrl">' in out
    assert "job 2 failed: step 1, <diff>" in err


def test_a_full_queue_is_429_in_every_door_of_http(doors: Doors) -> None:
    anna = doors.sign_in("anna")
    job = doors.run(operations.submit_job, xml=MISSING)
    doors.work_off()
    for _ in range(2):
        doors.run(operations.submit_job, xml=MAP)
    with pytest.raises(QueueFull, match="'anna' has 2 jobs in the queue"):
        doors.run(operations.submit_job, xml=MAP)
    doors.run(operations.keep_query, "bert", xml=MAP.replace(b'"7"', b'"mine"'))
    for path, body in (("", MAP), (f"/{job.id}/refresh", b""), ("/favourites/mine/refresh", b"")):
        answer = doors.rest("anna", "POST", path, body)
        assert (answer.status, answer.json()["title"]) == (429, "QueueFull"), path
    assert doors.page(anna, "/jobs", xml=MAP.decode()).status == 429
    assert doors.page(anna, "/jobs", favourite="mine").status == 429
    assert doors.page(anna, f"/jobs/{job.id}/refresh").status == 429


REFUSED = [
    (b"<query><cleaner/></query>", Refused, 403),
    (b'<query permission="4"><map site="example.org"/></query>', Refused, 403),
    (b"<query><check><url>http://0x7f.1/</url></check></query>", Refused, 403),
    (b'<query><diff url="http://127.0.0.1/"/></query>', Refused, 403),
    (b'<query package="nowhere"><x/></query>', NotFound, 404),
    (b"<query><dance/></query>", UsageError, 422),
]


@pytest.mark.parametrize(("text", "error", "status"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_may_not_be_asked_is_refused_alike(doors: Doors, text: bytes, error: type[Exception], status: int) -> None:
    with pytest.raises(error):
        doors.run(operations.submit_job, xml=text)
    with pytest.raises(error):
        doors.run(operations.keep_query, xml=text)
    assert doors.rest("anna", "POST", "", text).status == status
    assert doors.rest("anna", "POST", "/favourites", text).status == status
    page = doors.page(doors.sign_in("anna"), "/jobs", xml=text.decode())
    assert page.status == status
    assert 'role="alert"' in page.text
    assert doors.run(operations.list_jobs) == []


def test_an_owner_may_clean_and_others_may_not(doors: Doors) -> None:
    assert doors.run(operations.submit_job, "olga", xml=b"<query><cleaner/></query>").state == "queued"
    doors.work_off()
    assert doors.rest("anna", "POST", "/clean").status == 403
    assert doors.rest("olga", "POST", "/clean", b'{"older_than": "1h"}').json() == {"jobs": 0}
    assert json.loads(doors.verb("clean", "--json")[1]) == {"jobs": 0}


def test_job_steps_are_charged_to_whoever_asked(doors: Doors) -> None:
    urls = b"<url>http://a.example/</url><url>http://b.example/</url>"
    doors.run(operations.submit_job, xml=b"<query><check>%s</check></query>" % urls)
    doors.work_off()
    job = doors.run(operations.show_job, id=1)
    assert (job.state, job.error) == ("failed", QuotaUsedUp.__name__)
    assert "'anna' has used up the 1 checks of today" in job.message


def test_a_query_whose_name_is_a_number_can_be_run_again(doors: Doors) -> None:
    doors.run(operations.keep_query, xml=MAP)
    status, _, err = doors.verb("refresh", "7")
    assert (status, "there is no job 7" in err) == (3, True)
    assert doors.verb("refresh", "7", "--name")[:2] == (0, "1\n")
    assert doors.verb("favourite", "7")[1].startswith("<query")
    assert doors.run(operations.refresh_job, id="7", name=True).id == 1
    assert doors.rest("anna", "POST", "/favourites/7/refresh").json()["id"] == 1


def test_several_jobs_are_cancelled_though_one_cannot_be(doors: Doors) -> None:
    for _ in range(2):
        doors.run(operations.submit_job, xml=MAP)
    status, out, err = doors.verb("cancel", "1", "9", "2")
    assert (status, out) == (3, "job 1 is cancelled\njob 2 is cancelled\n")
    assert "there is no job 9" in err
    assert doors.rest("anna", "DELETE", "/9").status == 404
    assert doors.rest("anna", "DELETE", "/1").status == 400
    assert doors.page(doors.sign_in("anna"), "/jobs/1/cancel").status == 400


def test_files_are_listed_and_read_in_every_door(doors: Doors) -> None:
    job = doors.run(operations.submit_job, xml=MAP)
    folder = job_folder(doors.archive, job.id)
    folder.mkdir(parents=True)
    (folder / "a b.txt").write_bytes(b"content")
    assert doors.rest("anna", "GET", f"/{job.id}/files").json() == {"files": [{"name": "a b.txt", "bytes": 7}]}
    assert json.loads(doors.verb("files", "1", "--json")[1]) == {"name": "a b.txt", "bytes": 7}
    answer = doors.rest("anna", "GET", f"/{job.id}/files/a%20b.txt")
    assert (answer.body, answer.headers["content-disposition"]) == (b"content", 'attachment; filename="a b.txt"')
    assert doors.verb("file", "1", "a b.txt")[1] == "content"
    assert doors.verb("file", "1", "../x")[0] == 3


def test_what_to_show_of_a_job_is_one_thing(doors: Doors) -> None:
    doors.run(operations.submit_job, xml=MAP)
    assert doors.verb("show", "1", "--log", "--query")[0] == 2
    status, _, err = doors.verb("show", "1", "-o", "x")
    assert (status, "-o needs --result" in err) == (2, True)
    status, _, err = doors.verb("submit", doors.file(MAP), "-o", "x")
    assert (status, "-o needs --wait" in err) == (2, True)
    assert len(doors.run(operations.list_jobs)) == 1


def test_jobs_of_system_users_stand_behind_those_of_people(doors: Doors) -> None:
    with doors.archive.catalog.transaction() as cursor:
        cursor.run("UPDATE account_user SET system = 1 WHERE name = 'bert'")
    assert doors.run(operations.submit_job, "bert", xml=MAP).system
    assert doors.rest("bert", "POST", "", MAP).json()["system"]
    assert not doors.rest("anna", "POST", "", MAP).json()["system"]
