"""Archived pages in a real browser: shown with what belongs to them, and unable to do anything else."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from served_archive import WebClient, running

from letopis.archive import Archive
from letopis.catalog.accounts import Accounts
from letopis.config import ServeSettings, Settings

AT = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
STAMP = "20240506070809"
PASSWORD = "correct horse"
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cfc0f01f"
    "00050001ff56c72f0d0000000049454e44ae426082"
)
HOSTILE = b"""<!doctype html><title>Hostile</title><body>
<p id=mark>untouched</p><img id=pic src=/pic.png><a id=on href=/second>on</a>
<form id=f action=/logout method=post></form>
<script>
function tried(what, act) { try { act(); return what + ':done'; } catch (e) { return what + ':' + e.name; } }
var found = [tried('cookie', () => document.cookie.length),
  tried('parent', () => parent.document.body.innerHTML), tried('storage', () => localStorage.setItem('a', 'b')),
  tried('top', () => { top.location = 'about:blank'; })];
fetch('/api/v1/users').then(r => found.push('fetch:' + r.status), e => found.push('fetch:refused')).finally(() => {
  document.getElementById('mark').textContent = found.join(' ');
});
try { document.getElementById('f').submit(); } catch (e) {}
</script>"""


def serving(folder: Path, **serve: Any) -> Archive:
    settings = Settings(serve=replace(ServeSettings(), **serve))
    archive = Archive(folder, settings=settings, clock=lambda: AT)
    archive.put("http://evil.example/", HOSTILE, at=AT)
    archive.put("http://evil.example/pic.png", PICTURE, at=AT, content_type="image/png")
    archive.put("http://evil.example/second", b"<p id=second>second page", at=AT)
    Accounts(archive.catalog.database).add("anna", "owner", PASSWORD, 0)
    return archive


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[WebClient]:
    """An archive that only its owner may read."""
    with serving(tmp_path / "a", public=False) as archive, running(archive) as web:
        yield web


ESCAPING = b"""<!doctype html><title>Escaping</title><body><p id=mark>untouched</p>
<a id=new target=_blank href=/second>new window</a> <a id=top target=_top href=/second>top</a>
<script>
document.getElementById('mark').textContent = 'ran';
window.open('https://elsewhere.invalid/');
const line = new RTCPeerConnection({iceServers: [{urls: 'turn:127.0.0.1:%d', username: 'out', credential: 'x'}]});
line.createDataChannel('x');
line.createOffer().then(offer => line.setLocalDescription(offer));
</script>"""


def sign_in(tab: Any, address: str) -> None:
    tab.goto(f"{address}/login")
    tab.fill("[name=name]", "anna")
    tab.fill("[name=password]", PASSWORD)
    tab.locator("form[action='/login'] button").click()
    tab.wait_for_url(f"{address}/")


def test_a_page_of_a_closed_archive_shows_its_pictures_to_those_who_may_read(chromium: Any, closed: WebClient) -> None:
    web = closed
    tab = chromium.new_page()
    try:
        sign_in(tab, web.address)
        with tab.expect_response(lambda answer: answer.url.endswith("/pic.png")) as picture:
            tab.goto(f"{web.address}/web/{STAMP}/http://evil.example/")
        assert picture.value.status == 200
        inner = tab.frame_locator("iframe")
        inner.locator("#pic").wait_for()
        inner.locator("#on").click()
        inner.locator("#second").wait_for()
        assert "second page" in inner.locator("#second").inner_text()
    finally:
        tab.close()


def test_a_page_of_a_closed_archive_runs_nothing_and_reaches_nobody_else(chromium: Any, closed: WebClient) -> None:
    tab = chromium.new_page()
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(f"{request.method} {request.url}"))
    try:
        sign_in(tab, closed.address)
        tab.goto(f"{closed.address}/web/{STAMP}/http://evil.example/")
        mark = tab.frame_locator("iframe").locator("#mark")
        mark.wait_for()
        assert mark.inner_text() == "untouched"
        assert tab.url.startswith(closed.address)
        assert not [one for one in asked if one.startswith("POST") and not one.endswith("/login")]
        assert all(one.split(" ")[1].startswith(closed.address) for one in asked)
        tab.goto(f"{closed.address}/web/{STAMP}if_/http://evil.example/")
        assert tab.locator("#mark").inner_text() == "untouched", "nor where it is opened by itself"
        tab.goto(f"{closed.address}/")
        assert tab.locator("h1").is_visible()
    finally:
        tab.close()


def test_a_page_that_everybody_may_read_runs_nothing_opens_nothing_and_is_of_no_origin(
    chromium: Any, tmp_path: Path
) -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear,
        serving(tmp_path / "a") as archive,
        running(archive) as web,
    ):
        ear.bind(("127.0.0.1", 0))
        ear.setblocking(False)
        archive.put("http://evil.example/out", ESCAPING % ear.getsockname()[1], at=AT)
        tab = chromium.new_page()
        pages: list[Any] = []
        tab.context.on("page", lambda page: pages.append(page) if page is not tab else None)
        try:
            tab.goto(f"{web.address}/web/{STAMP}/http://evil.example/out")
            inner = tab.frame_locator("iframe")
            assert inner.locator("#mark").inner_text() == "untouched"
            inner.locator("#new").click()
            inner.locator("#top").click()
            tab.wait_for_load_state("networkidle")
            assert tab.url == f"{web.address}/web/{STAMP}/http://evil.example/out"
        finally:
            tab.close()
        assert pages == []
        with pytest.raises(BlockingIOError):
            ear.recv(2048)


def test_no_address_of_an_archived_page_is_a_right(tmp_path: Path) -> None:
    with serving(tmp_path / "a", public=False) as archive, running(archive) as web:
        form = f"name=anna&password={PASSWORD.replace(' ', '+')}"
        signed = web.ask("POST", "/login", form, Content_Type="application/x-www-form-urlencoded")
        cookie = signed.headers["set-cookie"].partition(";")[0]
        framed = web.get(f"/web/{STAMP}/http://evil.example/", Cookie=cookie, Sec_Fetch_Dest="document")
        page = web.get(f"/web/{STAMP}if_/http://evil.example/", Cookie=cookie)
        for found in re.findall(r"/web/[^\s\"'<>]+", framed.text + page.text + framed.headers["link"]):
            assert web.get(found).status == 401, found
        assert web.get(f"/web/{STAMP}/http://evil.example/pic.png", Cookie=cookie).body == PICTURE
