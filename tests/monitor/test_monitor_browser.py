"""Checks and watches of pages whose text comes from scripts, by the command line, Python and HTTP."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from patience import UNHURRIED, UNHURRIED_COMMANDS, until
from scripted_site import ScriptedSite
from served_archive import running

from letopis import Archive, Monitor
from letopis.catalog.accounts import Accounts
from letopis.cli.main import main
from letopis.config import FetchSettings, MonitorSettings, Settings
from letopis.errors import MissingExtra
from letopis.model import Outcome
from letopis.monitor.watch import WatchSpec

PAGE = b"""<!doctype html><title>Prices</title><h1>Prices</h1><p id=price>loading</p><script>
fetch("/price.json").then(found => found.json()).then(found => {
  document.getElementById("price").textContent = "The price is " + found.price + " crowns today.";
});</script>"""
in_chromium = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
if not (shutil.which("chromium-headless-shell") or shutil.which("chromium")):
    in_chromium.append(pytest.mark.skip(reason="NO CHROMIUM: browser checks did not run; 'make browser' installs it"))


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in UNHURRIED_COMMANDS.items():
        monkeypatch.setenv(name, value)


def priced(site: ScriptedSite, price: int) -> str:
    site.set("/price.json", json.dumps({"price": price}).encode(), Content_Type="application/json")
    return site.set("/", PAGE, ETag='"same"', validates=True)


class TestInChromium:
    pytestmark = in_chromium

    def test_a_change_that_a_script_brings_is_a_version(
        self,
        tmp_path: Path,
        scripted_site: ScriptedSite,
        capfdbinary: pytest.CaptureFixture[bytes],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("LETOPIS_MONITOR_MIN_INTERVAL", "0")

        def letopis(*words: str) -> bytes:
            assert main(["--archive", str(tmp_path / "a"), *words]) == 0
            return capfdbinary.readouterr().out

        url = priced(scripted_site, 10)
        assert json.loads(letopis("check", "--browser", url, "--json"))["outcome"] == "new"
        priced(scripted_site, 12)
        changed = json.loads(letopis("check", "--browser", "--now", url, "--json"))
        assert (changed["outcome"], changed["meaningful"], changed["version"]) == ("changed", True, 1)
        assert b"The price is 12 crowns today." in letopis("get", url, "--offline")
        assert letopis("get", url, "--offline", "--as-is") == PAGE
        assert b"+The price is 12 crowns today." in letopis("diff", url)
        priced(scripted_site, 14)
        assert b"The price is 14 crowns" in letopis("get", url, "--browser")

    def test_the_monitor_of_a_script_looks_through_a_browser(self, tmp_path: Path, scripted_site: ScriptedSite) -> None:
        settings = Settings(monitor=MonitorSettings(min_interval=0.001), capture=UNHURRIED)
        with Archive(tmp_path / "a", settings=settings) as archive, Monitor(archive) as monitor:
            monitor.use_browser()
            page = monitor.get(priced(scripted_site, 10))
            assert b"The price is 10 crowns" in page.get_last_version().body
            assert page.changed() is False
            priced(scripted_site, 12)
            assert "+The price is 12 crowns today." in str(page.changes())

    def test_a_watch_tells_what_a_script_has_changed(
        self, tmp_path: Path, scripted_site: ScriptedSite, capfdbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        url, alerts = priced(scripted_site, 10), tmp_path / "alerts.jsonl"
        settings = tmp_path / "letopis.toml"
        settings.write_text("[monitor]\nmin_interval = 0.001\nevery = 0.001\n")
        base = ["--archive", str(tmp_path / "a"), "--config", str(settings), "watch"]
        assert main([*base, "add", url, "--browser", "--css", "#price", "--notify", f"file:{alerts}"]) == 0
        assert main([*base, "run", "--once"]) == 0
        priced(scripted_site, 12)
        assert main([*base, "run", "--once"]) == 0
        capfdbinary.readouterr()
        assert "The price is 12 crowns today." in json.loads(alerts.read_text().splitlines()[-1])["difference"]
        assert main([*base, "list", "--json"]) == 0
        assert json.loads(capfdbinary.readouterr().out)["browser"] is True

    @pytest.mark.files
    def test_ctrl_c_leaves_no_browser_behind(self, tmp_path: Path, scripted_site: ScriptedSite) -> None:
        url = scripted_site.set("/", b"<script>setInterval(() => fetch('/more?' + Math.random()), 100)</script>")
        words = [sys.executable, "-m", "letopis.cli", "--archive", str(tmp_path / "a"), "check", "--browser", url]
        process = subprocess.Popen(words, start_new_session=True, stderr=subprocess.PIPE)
        try:
            until(lambda: any(path.startswith("/more") for _, path, _ in scripted_site.log))
            started = _family(process.pid)
            os.killpg(process.pid, signal.SIGINT)
            _, said = process.communicate(timeout=300)
        finally:
            process.kill()
        assert process.returncode == 130
        assert b"Traceback" not in said
        assert len(started) > 2
        until(lambda: not any(map(_lives, started)))

    def test_through_http_a_browser_is_guarded_like_any_check(
        self, tmp_path: Path, scripted_site: ScriptedSite
    ) -> None:
        url = priced(scripted_site, 10)
        with Archive(tmp_path / "a") as archive, running(archive) as web:
            token = Accounts(archive.catalog.database).create_token("writer", None, "write", 0)
            head = {"Authorization": f"Bearer {token}"}
            assert web.post("/api/v1/check", {"url": url, "browser": True}).status == 401
            assert web.post("/api/v1/check", {"url": url, "browser": True}, **head).status == 403
            assert scripted_site.log == []

    def test_through_http_where_the_owner_allows_it_pages_are_rendered(
        self, tmp_path: Path, scripted_site: ScriptedSite
    ) -> None:
        url = priced(scripted_site, 10)
        settings = Settings(fetch=FetchSettings(private="always"), capture=UNHURRIED)
        with Archive(tmp_path / "a", settings=settings) as archive, running(archive) as web:
            token = Accounts(archive.catalog.database).create_token("writer", None, "write", 0)
            head = {"Authorization": f"Bearer {token}"}
            found = web.post("/api/v1/check", {"url": url, "browser": True}, **head).json()
            assert found["outcome"] == Outcome.NEW
            assert b"The price is 10 crowns" in web.get(f"/api/v1/content?url={url}").body
            assert web.get(f"/api/v1/content?url={url}&as_is=true").body == PAGE


def test_without_a_browser_commands_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    for words in (["check", "--browser"], ["watch", "add", "--browser"], ["get", "--browser"]):
        assert main(["--archive", str(tmp_path / "a"), *words, "http://127.0.0.1:9/"]) == 1
        assert b"install" in capfdbinary.readouterr().err


def test_without_a_browser_services_say_so_too(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    settings = Settings(fetch=FetchSettings(chromium="/nonexistent/chromium", private="always"))
    with Archive(tmp_path / "a", settings=settings) as archive, running(archive) as web:
        token = Accounts(archive.catalog.database).create_token("writer", None, "write", 0)
        for route in ("check", "watches"):
            body = {"url": scripted_site.url("/"), "browser": True}
            answer = web.post(f"/api/v1/{route}", body, Authorization=f"Bearer {token}")
            assert answer.status == 501, answer.text
        with pytest.raises(MissingExtra), Monitor(archive) as monitor:
            monitor.use_browser()


def test_a_header_cannot_be_asked_through_a_browser(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["--archive", str(tmp_path / "a"), "check", "--browser", "--head", "http://127.0.0.1:9/"]) == 2
    assert b"leave one of them out" in capfdbinary.readouterr().err


def test_the_specification_of_a_watch_remembers_the_browser() -> None:
    spec = WatchSpec(browser=True)
    assert WatchSpec.from_json(spec.to_json()) == spec
    assert WatchSpec().over(spec).browser
    assert "browser" not in WatchSpec().to_json()


def _family(process: int) -> list[int]:
    """A process with all that it and its children have started."""
    children = Path(f"/proc/{process}/task").glob("*/children")
    found = [int(number) for file in children for number in file.read_text().split()]
    return [process, *(one for child in found for one in _family(child))]


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
