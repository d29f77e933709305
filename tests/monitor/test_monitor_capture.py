"""Whole pages by a real Chromium: what a set holds, how it is asked for, and pages that behave badly."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode

import pytest
from patience import UNHURRIED, UNHURRIED_COMMANDS
from scripted_site import ScriptedSite
from served_archive import running

from letopis import Archive, Monitor
from letopis.cli.main import main
from letopis.config import CaptureSettings, FetchSettings, MonitorSettings, Settings
from letopis.fetch.page_steps import parse_steps
from letopis.model import Check, Outcome
from letopis.monitor.watch import WatchSpec
from letopis.monitor.watch_list import WatchList

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
if not (shutil.which("chromium-headless-shell") or shutil.which("chromium")):
    pytestmark.append(pytest.mark.skip(reason="NO CHROMIUM: browser checks did not run; 'make browser' installs it"))

PAGE = b"""<!doctype html><title>Prices</title><link rel=stylesheet href=/style.css><p id=price>loading
<button id=more onclick="fetch('/more').then(found => found.text()).then(say)">more</button>
<input id=q><select id=s><option>a<option>b</select><script>
const say = text => document.body.append(text);
fetch("/search", {method: "POST", body: JSON.stringify({q: "brno"}), headers: {"content-type": "application/json"}})
  .then(found => found.json()).then(found => say("found " + found.count));
</script><div style="height: 5000px"></div><img loading=lazy src=/lazy.png>"""


def served(site: ScriptedSite) -> str:
    site.set("/style.css", b"p { background: url(/back.png) }", Content_Type="text/css")
    site.set("/search", b'{"count": 3}', Content_Type="application/json")
    site.set("/more", b"what a click brings", Content_Type="text/plain")
    for name in ("back", "lazy"):
        site.set(f"/{name}.png", name.encode(), Content_Type="image/png")
    return site.set("/", PAGE)


def opened(folder: Path, capture: CaptureSettings) -> Archive:
    monitor, fetch = MonitorSettings(min_interval=0), FetchSettings(total=90, retries=0)
    return Archive(folder, settings=Settings(monitor=monitor, fetch=fetch, capture=capture))


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with opened(tmp_path / "a", replace(UNHURRIED, resources=50, screenshot="webp")) as made:
        yield made


@pytest.fixture
def hurried(tmp_path: Path) -> Iterator[Archive]:
    """For pages that are never ready."""
    with opened(tmp_path / "h", CaptureSettings(load=4, quiet=1.5, resources=50, screenshot="webp")) as made:
        yield made


def captured(archive: Archive, *urls: str, steps: tuple[str, ...] = ()) -> list[Check]:
    with Monitor(archive) as monitor:
        options = monitor.options._replace(now=True, browser=True, steps=parse_steps(steps))
        return monitor.look(list(urls), options)


def paths(archive: Archive, url: str) -> set[str]:
    found = archive.sets.of(url)[-1]
    return {member.url.removeprefix(url.rpartition("/")[0]) for member in archive.sets.members(found)}


def test_a_browser_check_is_a_set_with_picture_and_text(archive: Archive, scripted_site: ScriptedSite) -> None:
    url = served(scripted_site)
    captured(archive, url)
    found = archive.sets.of(url)[0]
    assert paths(archive, url) == {"/style.css", "/back.png", "/lazy.png", "/search?__wb_method=POST&q=brno"}
    assert archive.sets.text(found).endswith("found 3")
    assert archive.sets.screenshot(found)[8:12] == b"WEBP"
    assert archive.get(scripted_site.url("/search?__wb_method=POST&q=brno")).body == b'{"count": 3}'
    assert [body for _, body in scripted_site.posts] == [b'{"q":"brno"}']


def test_steps_are_taken_before_the_page_is_kept(archive: Archive, scripted_site: ScriptedSite) -> None:
    url = served(scripted_site)
    steps = ("wait #more", "type #q = word", "select #s = b", "click #more", "wait 0.1")
    (check,) = captured(archive, url, steps=steps)
    assert check.warnings == ()
    assert "/more" in paths(archive, url)
    assert "what a click brings" in archive.sets.text(archive.sets.of(url)[0])


def test_a_step_that_cannot_be_taken_is_told_and_the_page_kept(hurried: Archive, scripted_site: ScriptedSite) -> None:
    url = served(scripted_site)
    (check,) = captured(hurried, url, steps=("click #nosuch",))
    assert check.outcome is Outcome.NEW
    assert any("the step 'click #nosuch' failed" in warning for warning in check.warnings)


def test_sets_are_asked_for_by_command_and_by_http(
    tmp_path: Path,
    scripted_site: ScriptedSite,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LETOPIS_CAPTURE_SCREENSHOT", "png")
    monkeypatch.setenv("LETOPIS_CAPTURE_VIEWPORT", "640x480")
    for name, value in UNHURRIED_COMMANDS.items():
        monkeypatch.setenv(name, value)
    url = served(scripted_site)

    def letopis(*words: str) -> bytes:
        assert main(["--archive", str(tmp_path / "b"), *words]) == 0
        return capfdbinary.readouterr().out

    letopis("check", url, "--step", "click #more")
    (row,) = map(json.loads, letopis("sets", url, "--json").splitlines())
    assert (row["members"], row["has_screenshot"], row["has_text"]) == (5, True, True)
    members = [json.loads(line)["url"] for line in letopis("set", url, "--json").splitlines()]
    assert scripted_site.url("/more") in members
    picture = letopis("screenshot", url)
    assert picture.startswith(b"\x89PNG")
    assert int.from_bytes(picture[16:20]) == 640 * 3 // 4, "three quarters of the window"
    assert b"what a click brings" in letopis("shown-text", url)
    with Archive(tmp_path / "b") as archive, running(archive) as web:
        asked = urlencode({"url": url})
        assert web.ask("GET", f"/api/v1/screenshot?{asked}").body == picture
        assert web.ask("GET", f"/api/v1/screenshot?{asked}").headers["content-type"] == "image/png"
        assert json.loads(web.ask("GET", f"/api/v1/sets?{asked}").body)["sets"][0]["members"] == 5
        assert web.ask("GET", "/api/v1/set?url=http://never.example/").status == 404


async def test_a_watch_captures_whole_pages(archive: Archive, scripted_site: ScriptedSite) -> None:
    from letopis.monitor.watcher import open_watcher

    url = served(scripted_site)
    WatchList(archive).add([url], WatchSpec(browser=True, steps=("click #more",)))
    async with open_watcher(archive) as watcher:
        await watcher.run_due()
    assert "/more" in paths(archive, url)


GOOD = b"<!doctype html><body><script>document.body.append('a good page')</script>"
BAD = {
    "never quiet": b"<p>text<script>setInterval(() => fetch('/tick?' + Math.random()), 20)</script>",
    "a thousand requests": b"<p>text<script>for (let n = 0; n < 1000; n++) fetch('/n?' + n)</script>",
    "an endless download": b"<p>text<img src=/endless>",
    "alerts": b"<p>text<script>for (let n = 0; n < 20; n++) alert(n); confirm('?'); prompt('?')</script>",
    "navigates away": b"<p>text<script>location.href = '/elsewhere'</script>",
    "never ends": b"<p>text<script>onload = () => setTimeout(() => { for (;;); })</script>",
    "crashes": b"<p>text<img src=/tick><script>onload = () => { const kept = []; "
    b"while (true) kept.push(new Array(1e6).fill(kept.length + 0.5)); }</script>",
}


class _Endless(BaseHTTPRequestHandler):
    """Bad pages, and bytes that never end."""

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].strip("/").replace("-", " ")
        body = BAD.get(name, GOOD if name in ("good", "elsewhere") else b"tick")
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if body != b"tick" else "text/plain")
        if name != "endless":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        while name == "endless":
            try:
                self.wfile.write(bytes(1 << 16))
            except OSError:
                return

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def bad_site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Endless)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("name", BAD)
def test_a_bad_page_is_bounded_and_named_and_harms_no_other(
    hurried: Archive, bad_site: str, scripted_site: ScriptedSite, name: str
) -> None:
    """The good page lies on another host, so that both are open at the same time."""
    archive = hurried
    bad, good = bad_site + name.replace(" ", "-"), scripted_site.set("/good", GOOD)
    begun = time.monotonic()
    found, other = captured(archive, bad, good)
    assert time.monotonic() - begun < 300
    assert other.outcome is Outcome.NEW
    assert b"a good page" in archive.get(good).body
    if name == "crashes":
        assert found.outcome is Outcome.UNAVAILABLE
        assert "it crashed the browser" in found.error
        # What the server sent is kept with the check, and so is what the page had loaded.
        assert archive.answers.error_body(bad, found.checked_at) == BAD[name]
        assert archive.history(bad_site + "tick")
    elif name == "navigates away":
        assert found.final_url == bad_site + "elsewhere"
        assert b"a good page" in archive.get(bad).body
        assert archive.as_sent(archive.get(bad)).body == BAD[name]
    else:
        assert b"<p>text" in archive.get(bad).body
    told = {
        "never quiet": "still loading",
        "never ends": "its scripts were stopped",
        "a thousand requests": "requests of the page were refused",
    }
    assert any(told.get(name, "") in warning for warning in (*found.warnings, "")), found.warnings
    assert sum(one.members for one in archive.sets.of(bad)) <= 50
    assert list(archive.verify()) == []
