"""`letopis jobs` as people type it, with the real language and real workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from patience import until
from scripted_site import ScriptedSite

from letopis.cli.main import main

MAP = '<query package="mapgenerator" name="m"><map site="example.org"/></query>'
DIFFERENCE = '<query package="sengine"><diff url="http://example.org/none" offline="true"/></query>'


class Shell:
    """Runs commands on one archive."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capture = capture
        self.out = self.err = ""

    def __call__(self, *words: str) -> int:
        status = main(["--archive", str(self.folder / "archive"), *words])
        captured = self._capture.readouterr()
        self.out, self.err = captured.out, captured.err
        return status

    def rows(self, *words: str) -> list[dict[str, Any]]:
        self(*words, "--json")
        return [json.loads(line) for line in self.out.splitlines()]

    def file(self, text: str) -> str:
        place = self.folder / "job.xml"
        place.write_text(text)
        return str(place)


@pytest.fixture
def letopis(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    shell = Shell(tmp_path, capfd)
    page = tmp_path / "page.html"
    page.write_text("<title>Home</title><a href='/a'>a</a>")
    shell("put", "http://example.org/", str(page))
    return shell


def test_a_job_is_worked_off_by_the_command_itself_when_no_daemon_runs(letopis: Shell) -> None:
    assert letopis("jobs", "submit", letopis.file(MAP), "--wait") == 0
    result = ElementTree.fromstring(letopis.out)
    assert (result.tag, result.get("state"), result.get("package")) == ("result", "done", "mapgenerator")
    assert [child.tag for child in result] == ["map"]
    assert result.get("started")
    assert result.get("finished")
    row = letopis.rows("jobs", "list")[0]
    assert (row["id"], row["state"], row["package"], row["name"], row["priority"]) == (
        1,
        "done",
        "mapgenerator",
        "m",
        0,
    )
    assert letopis("jobs", "show", "1", "--result", "-o", str(letopis.folder / "r.xml")) == 0
    assert ElementTree.parse(letopis.folder / "r.xml").getroot().get("id") == "1"
    assert letopis.rows("jobs", "show", "1", "--result")[0]["id"] == "1"
    assert letopis("jobs", "show", "1", "--log") == 0
    assert "step 1 of 1: map" in letopis.out
    assert letopis("jobs", "show", "1", "--query") == 0
    assert "<map site=" in letopis.out
    sheet = letopis.folder / "mine.xsl"
    sheet.write_text(
        '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:output method="text"/>'
        '<xsl:template match="/result"><xsl:value-of select="//page/@title"/></xsl:template></xsl:stylesheet>'
    )
    assert letopis("jobs", "show", "1", "--xslt", str(sheet)) == 0
    assert letopis.out.strip() == "Home"


def test_a_failed_job_exits_with_the_status_of_its_error_and_says_why(letopis: Shell) -> None:
    assert letopis("jobs", "submit", letopis.file(DIFFERENCE), "--wait") == 3
    assert 'state="failed"' in letopis.out
    assert '<error class="UnknownUrl">step 1, &lt;diff&gt;' in letopis.out
    assert "job 1 failed: step 1, <diff>" in letopis.err
    assert letopis("jobs", "show", "1") == 0
    assert "state: failed\n" in letopis.out
    assert "error: UnknownUrl" in letopis.out
    assert letopis("jobs", "refresh", "1", "--wait", "--json") == 3
    assert json.loads(letopis.out)["error"] == "UnknownUrl"


def test_jobs_wait_are_cancelled_and_asked_again(letopis: Shell) -> None:
    assert letopis("jobs", "submit", letopis.file(MAP), "--keep", "--system") == 0
    assert letopis.out == "1\n"
    assert letopis("jobs", "refresh", "m") == 0
    assert letopis.out == "1\n"
    assert [row["system"] for row in letopis.rows("jobs", "list", "--state", "queued")] == [True]
    assert letopis.rows("jobs", "cancel", "1")[0]["state"] == "cancelled"
    assert letopis("jobs", "cancel", "1") == 2
    assert letopis.rows("jobs", "refresh", "1")[0]["id"] == 2
    assert [row["name"] for row in letopis.rows("jobs", "favourites")] == ["m"]
    assert letopis("jobs", "forget", "m") == 0
    assert letopis("jobs", "forget", "m") == 3
    assert "downloader" in {row["name"] for row in letopis.rows("jobs", "packages")}


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["show", "7"], 3),
        (["cancel", "7"], 3),
        (["refresh", "7"], 3),
        (["refresh", "nothing"], 3),
        (["show", "x"], 2),
        (["submit", "nothing.xml"], 2),
        (["submit", "page.html"], 2),
        (["submit", "page.html", "-o", "x"], 2),
        (["list", "--state", "odd"], 2),
    ],
)
def test_what_is_wrong_is_one_sentence(letopis: Shell, words: list[str], status: int) -> None:
    assert letopis("jobs", *words) == status
    assert letopis.err.startswith("letopis: ")
    assert letopis.err.count("\n") == 1


def command(folder: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "letopis.cli", "--archive", str(folder / "archive"), *words]


@pytest.fixture
def daemon(letopis: Shell) -> Iterator[subprocess.Popen[str]]:
    words = command(letopis.folder, "run", "--port", "0")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            assert "listening on" in process.stdout.readline()
            yield process
        finally:
            process.terminate()
            assert process.wait(300) == 0


def test_the_daemon_works_jobs_off(letopis: Shell, daemon: subprocess.Popen[str]) -> None:
    assert letopis("jobs", "submit", letopis.file(MAP), "--wait") == 0
    assert 'state="done"' in letopis.out
    assert daemon.poll() is None


def test_ctrl_c_leaves_the_job_in_the_queue(letopis: Shell, scripted_site: ScriptedSite) -> None:
    links = "".join(f"<a href='/{number}'>{number}</a>" for number in range(300))
    url = scripted_site.set("/", links.encode())
    text = f'<query package="downloader"><download maxlevel="2"><url>{url}</url></download></query>'
    with subprocess.Popen(
        command(letopis.folder, "jobs", "submit", letopis.file(text), "--wait"),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as job:  # fmt: skip
        try:
            # At a second a page it would take minutes.
            until(lambda: len(scripted_site.log) > 2)
            os.killpg(job.pid, signal.SIGINT)
            _, errors = job.communicate(timeout=300)
        finally:
            job.kill()
    assert job.returncode == 130
    assert "job 1 stays in the queue" in errors
    assert letopis.rows("jobs", "list")[0]["state"] == "queued"


def test_help_and_lists_load_no_parser(letopis: Shell) -> None:
    code = (
        "import sys\nfrom letopis.cli.main import main\n"
        "main(sys.argv[1:])\nassert not {'numpy', 'tantivy', 'fastapi'} & set(sys.modules), sys.modules.keys()"
    )
    for words in (["--help"], ["--archive", str(letopis.folder / "archive"), "jobs", "list"]):
        assert subprocess.run([sys.executable, "-c", code, *words], capture_output=True).returncode == 0


def test_each_refresh_of_a_query_saves_its_result_to_the_file_it_names(letopis: Shell) -> None:
    query = MAP.replace('name="m"', 'name="m" savefile="map.xml"')
    assert letopis("jobs", "submit", letopis.file(query), "--keep", "--wait") == 0
    saved = letopis.folder / "archive" / "jobs" / "saved" / "map.xml"
    first = ElementTree.parse(saved).getroot()
    assert (first.get("state"), [child.tag for child in first]) == ("done", ["map"])
    assert letopis("jobs", "refresh", "m", "--wait") == 0
    second = ElementTree.parse(saved).getroot()
    assert int(second.get("id", "0")) > int(first.get("id", "0"))
    assert letopis("jobs", "submit", letopis.file(query.replace("map.xml", "../map.xml"))) == 2
