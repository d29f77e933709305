"""Archived pages in a real browser: shown with what belongs to them, and unable to do anything else."""

from __future__ import annotations

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


@pytest.fixture(params=[False, True], ids=["still", "scripted"])
def closed(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[WebClient, bool]]:
    """An archive that only its owner may read, with and without scripts of archived pages."""
    with serving(tmp_path / "a", public=False, scripts=request.param) as archive, running(archive) as web:
        yield web, request.param


def sign_in(tab: Any, address: str) -> None:
    tab.goto(f"{address}/login")
    tab.fill("[name=name]", "anna")
    tab.fill("[name=password]", PASSWORD)
    tab.locator("form[action='/login'] button").click()
    tab.wait_for_url(f"{address}/")


def test_a_page_of_a_closed_archive_shows_its_pictures_to_those_who_may_read(
    chromium: Any, closed: tuple[WebClient, bool]
) -> None:
    web, _ = closed
    tab = chromium.new_page()
    answers: dict[str, int] = {}
    tab.on("response", lambda answer: answers.update({answer.url.rpartition("/")[2]: answer.status}))
    try:
        sign_in(tab, web.address)
        tab.goto(f"{web.address}/web/{STAMP}/http://evil.example/", wait_until="load")
        inner = tab.frame_locator("iframe")
        inner.locator("#pic").wait_for()
        assert answers["pic.png"] == 200
        inner.locator("#on").click()
        inner.locator("#second").wait_for()
        assert "second page" in inner.locator("#second").inner_text()
    finally:
        tab.close()


def test_an_archived_page_reaches_neither_us_nor_anybody_else(chromium: Any, closed: tuple[WebClient, bool]) -> None:
    web, scripted = closed
    tab = chromium.new_page()
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(f"{request.method} {request.url}"))
    try:
        sign_in(tab, web.address)
        tab.goto(f"{web.address}/web/{STAMP}/http://evil.example/")
        mark = tab.frame_locator("iframe").locator("#mark")
        mark.wait_for()
        if scripted:
            tab.wait_for_function("true")
            tab.frames[1].wait_for_function("document.getElementById('mark').textContent !== 'untouched'")
            found = dict(part.split(":") for part in mark.inner_text().split())
            assert found["fetch"] == "refused"
            assert all(found[name] == "SecurityError" for name in ("cookie", "parent", "storage", "top"))
        else:
            assert mark.inner_text() == "untouched"
        assert tab.url.startswith(web.address)
        assert not [one for one in asked if one.startswith("POST") and not one.endswith("/login")]
        assert all(one.split(" ")[1].startswith(web.address) for one in asked)
        tab.goto(f"{web.address}/")
        assert tab.locator("h1").is_visible()
    finally:
        tab.close()


def test_a_ticket_reads_archived_pages_and_nothing_else(tmp_path: Path) -> None:
    with serving(tmp_path / "a", public=False) as archive, running(archive) as web:
        form = f"name=anna&password={PASSWORD.replace(' ', '+')}"
        signed = web.ask("POST", "/login", form, Content_Type="application/x-www-form-urlencoded")
        cookie = signed.headers["set-cookie"].partition(";")[0]
        page = web.get(f"/web/{STAMP}/http://evil.example/", Cookie=cookie, Sec_Fetch_Dest="document").text
        ticket = page.partition("/web/~")[2].partition("/")[0]
        assert web.get(f"/web/~{ticket}/{STAMP}/http://evil.example/pic.png").body == PICTURE
        assert web.get(f"/web/~{ticket}x/{STAMP}/http://evil.example/pic.png").status == 401
        assert web.get(f"/api/v1/stats?x=/web/~{ticket}/").status == 401
        assert ticket not in web.get(f"/web/{STAMP}/http://evil.example/", Cookie=cookie).headers["link"]
        Accounts(archive.catalog.database).end_sessions(Accounts(archive.catalog.database).user("anna").id)
        assert web.get(f"/web/~{ticket}/{STAMP}/http://evil.example/pic.png").status == 401


def test_a_public_archive_needs_no_tickets(tmp_path: Path) -> None:
    with serving(tmp_path / "a") as archive, running(archive) as web:
        assert "/web/~" not in web.get(f"/web/{STAMP}/http://evil.example/", Sec_Fetch_Dest="document").text
