"""The nine use cases, rule by rule, through the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_site import ScriptedSite

from letopis import Monitor
from letopis.cli.main import main

OLD = b"<h1>Hours</h1><p>Open from nine to five on every working day.</p>"
NEW = b"<h1>Hours</h1><p>Closed for the whole of August, see you later.</p>"


class Shell:
    """Runs commands on one archive; `rows` are the JSON lines of the last one."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[bytes]) -> None:
        self._folder = folder
        self._capture = capture
        self.out = b""
        self.err = ""

    def __call__(self, *words: str) -> int:
        status = main(["--archive", str(self._folder), *words])
        captured = self._capture.readouterr()
        self.out, self.err = captured.out, captured.err.decode()
        return status

    def rows(self, *words: str) -> list[dict[str, Any]]:
        self(*words, "--json")
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def letopis(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    for name in ("LETOPIS_ARCHIVE", "LETOPIS_CONFIG", "LETOPIS_FETCH_PRIVATE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LETOPIS_MONITOR_MIN_INTERVAL", "0")
    shell = Shell(tmp_path / "a", capfdbinary)
    shell("init")
    return shell


@pytest.fixture
def changed_page(letopis: Shell, scripted_site: ScriptedSite) -> Callable[[], tuple[str, list[str]]]:
    """A page with two versions, and the times of its two checks."""

    def make() -> tuple[str, list[str]]:
        url = scripted_site.set("/page", OLD)
        letopis("check", url)
        scripted_site.set("/page", NEW)
        letopis("check", url)
        return url, [row["time"] for row in letopis.rows("history", url)]

    return make


Made = Callable[[], tuple[str, list[str]]]


def test_uc1_unknown_url_exits_3_without_a_request(letopis: Shell, scripted_site: ScriptedSite) -> None:
    assert letopis("get", scripted_site.url("/page"), "--at", "2024-01-01") == 3
    assert scripted_site.log == []


def test_uc1_before_the_first_version_gives_the_oldest(letopis: Shell, changed_page: Made) -> None:
    url, _ = changed_page()
    assert letopis("get", url, "--at", "2001-01-01") == 0
    assert letopis.out == OLD


def test_uc1_between_two_versions_gives_the_one_valid_then(letopis: Shell, changed_page: Made) -> None:
    url, times = changed_page()
    letopis("get", url, "--at", times[0])
    assert letopis.out == OLD
    letopis("get", url, "--at", times[1])
    assert letopis.out == NEW


def test_uc1_later_than_the_last_check_checks_first(
    letopis: Shell, changed_page: Made, scripted_site: ScriptedSite
) -> None:
    url, _ = changed_page()
    scripted_site.set("/page", b"third")
    letopis("get", url, "--at", "2100-01-01")
    assert letopis.out == b"third"
    scripted_site.set("/page", b"", status=500)
    assert letopis("get", url, "--at", "2100-01-01") == 4


def test_uc1_by_number(letopis: Shell, changed_page: Made) -> None:
    url, _ = changed_page()
    letopis("get", url, "--version", "0")
    assert letopis.out == OLD
    assert letopis("get", url, "--version", "2") == 3


def test_uc2_current_version_or_exit_4(letopis: Shell, scripted_site: ScriptedSite) -> None:
    assert letopis("get", scripted_site.set("/page", OLD)) == 0
    assert letopis.out == OLD
    assert letopis("get", scripted_site.url("/nothing")) == 4
    assert "404" in letopis.err


def test_uc3_since_my_last_look_each_uid_apart(letopis: Shell, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)

    def mine(uid: str) -> Any:
        return letopis.rows("check", url, "--as", uid)[0]["changed_for_you"]

    assert (mine("me"), mine("other"), mine("me")) == (None, None, False)
    scripted_site.set("/page", NEW)
    assert (mine("me"), mine("me"), mine("other")) == (True, False, True)


def test_uc3_unavailable_exits_4_and_keeps_my_place(letopis: Shell, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)
    letopis("check", url)
    scripted_site.set("/page", b"", status=410)
    assert letopis("check", url) == 4
    scripted_site.set("/page", NEW)
    assert letopis.rows("check", url)[0]["changed_for_you"] is True


def test_uc4_difference_since_my_last_look_and_empty_after_uc3(letopis: Shell, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)
    letopis("check", url, "--as", "me")
    scripted_site.set("/page", NEW)
    assert letopis("diff", url, "--as", "me") == 0
    assert b"+Closed" in letopis.out
    assert letopis("diff", url, "--as", "me") == 0
    assert letopis.out == b""
    assert letopis("diff", scripted_site.url("/nothing"), "--as", "me") == 4


def test_uc5_between_two_times(letopis: Shell, changed_page: Made, scripted_site: ScriptedSite) -> None:
    url, times = changed_page()
    letopis("diff", url, "--from", times[0], "--to", times[1])
    assert b"-Open" in letopis.out
    letopis("diff", url, "--from", times[0], "--to", times[0])
    assert letopis.out == b""
    assert letopis("diff", scripted_site.url("/other"), "--from", times[0]) == 3


def test_uc6_records_time_header_and_version(letopis: Shell, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)
    row = letopis.rows("check", "--now", url)[0]
    assert (row["outcome"], row["version"], row["available"], row["status"]) == ("new", 0, True, 200)
    assert letopis.rows("check", "--now", url)[0]["outcome"] == "unchanged"
    assert [one["outcome"] for one in letopis.rows("history", url)] == ["new", "unchanged"]
    scripted_site.set("/page", b"sorry", status=500)
    assert letopis("check", "--now", url) == 4
    assert [one["available"] for one in letopis.rows("history", url)] == [True, True, False]


def test_uc7_available_now(letopis: Shell, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)
    assert letopis.rows("check", url)[0]["available"] is True
    scripted_site.set("/page", b"", status=410)
    assert letopis.rows("check", url)[0]["available"] is False


def test_uc8_history_or_exit_3(letopis: Shell, changed_page: Made, scripted_site: ScriptedSite) -> None:
    _, times = changed_page()
    assert len(times) == 2
    assert times == sorted(times)
    assert letopis("history", scripted_site.url("/other")) == 3


def test_uc9_last_available_version_tolerates_failure(
    letopis: Shell, changed_page: Made, scripted_site: ScriptedSite
) -> None:
    url, _ = changed_page()
    scripted_site.set("/page", b"", status=410)
    assert letopis("get", url, "--last-available") == 0
    assert letopis.out == NEW
    assert letopis("get", scripted_site.url("/nothing"), "--last-available") == 3
    assert letopis("get", url) == 4
    assert "--last-available" in letopis.err
    assert letopis("get", scripted_site.url("/nothing")) == 4
    assert "--last-available" not in letopis.err


def test_inside_the_minimum_interval_the_record_answers(
    letopis: Shell, scripted_site: ScriptedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LETOPIS_MONITOR_MIN_INTERVAL", "1h")
    url = scripted_site.set("/page", OLD)
    assert letopis.rows("check", url)[0]["cached"] is False
    assert letopis.rows("check", url)[0]["cached"] is True
    assert len(scripted_site.log) == 1
    assert letopis.rows("check", url, "--now")[0]["cached"] is False


def test_too_large_exits_5_unless_forced(
    letopis: Shell, scripted_site: ScriptedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LETOPIS_FETCH_MAX_BYTES", "1000")
    url = scripted_site.set("/big", b"x" * 2000)
    assert letopis("check", url) == 5
    assert letopis("check", url, "--force") == 0
    letopis("get", url, "--offline")
    assert len(letopis.out) == 2000


def test_several_urls_are_all_tried_and_the_first_failure_counts(letopis: Shell, scripted_site: ScriptedSite) -> None:
    urls = [scripted_site.url("/nothing"), scripted_site.set("/page", OLD)]
    assert [row["outcome"] for row in letopis.rows("check", *urls)] == ["unavailable", "new"]
    assert letopis("check", *urls) == 4


def test_private_addresses_can_be_forbidden_to_the_command_line(
    letopis: Shell, scripted_site: ScriptedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LETOPIS_FETCH_PRIVATE", "never")
    assert letopis("check", scripted_site.set("/page", OLD)) == 7
    assert scripted_site.log == []


def test_watch_add_list_run_remove(letopis: Shell, scripted_site: ScriptedSite, tmp_path: Path) -> None:
    url = scripted_site.set("/page", OLD)
    file = tmp_path / "alerts.jsonl"
    words = ("--every", "1ms", "--tag", "t", "--ignore", "x", "--notify", f"file:{file}", "--when", "changed,status")
    assert letopis("watch", "add", url, *words) == 0
    row = letopis.rows("watch", "list")[0]
    assert (row["url"], row["tag"], row["when"], row["every"]) == (url, "t", "changed,status", 0.001)
    assert [one["outcome"] for one in letopis.rows("watch", "run", "--once")] == ["new"]
    scripted_site.set("/page", NEW)
    assert [one["alerts"] for one in letopis.rows("watch", "run", "--once")] == [["changed"]]
    assert [json.loads(line)["kind"] for line in file.read_text().splitlines()] == ["changed"]
    assert [one["kind"] for one in letopis.rows("watch", "alerts")] == ["changed"]
    assert letopis("watch", "remove", url) == 0
    assert letopis("watch", "remove", url) == 3
    assert letopis.rows("watch", "run", "--once") == []


@pytest.mark.parametrize(
    "words",
    [
        ["--cron", "x"], ["--when", "x"], ["--css", "::["], ["--every", "x"], ["--notify", "file://elsewhere/x"],
        ["--more-than", "x"], ["--jsonpath", "x["],
    ],
)  # fmt: skip
def test_wrong_watch_exits_2(letopis: Shell, words: list[str]) -> None:
    assert letopis("watch", "add", "http://example.org/", *words) == 2
    assert letopis.err.startswith("letopis: ")


def test_watch_without_anything_to_watch_exits_2(letopis: Shell) -> None:
    assert letopis("watch", "add") == 2
    assert letopis("watch", "add", "--tag", "news", "--every", "2h") == 0


def test_texts_that_are_no_addresses_keep_nobody_from_the_others(
    letopis: Shell, scripted_site: ScriptedSite, tmp_path: Path
) -> None:
    good, second = scripted_site.set("/a", OLD), scripted_site.set("/b", NEW)
    asked = [good, "gopher://example.org/", second]
    assert letopis("check", *asked) == 2
    assert "'gopher://example.org/' cannot be fetched" in letopis.err
    assert [row["outcome"] for row in letopis.rows("check", *asked)] == ["unchanged", "refused", "unchanged"]
    with Monitor(tmp_path / "a") as monitor:
        checks = monitor.check_multi(asked)
    assert [(check.url, check.available) for check in checks] == [(good, True), (asked[1], None), (second, True)]
