"""An archived page that means harm, with its scripts running: what it finds, reaches and leaves behind."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from served_archive import WebClient, running

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.config import ServeSettings, Settings

AT = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
STAMP = "20240506070809"
PASSWORD = "correct horse"
HOSTILE = (Path(__file__).parents[1] / "site" / "hostile_site.html").read_text("utf-8")
CALLING = """<!doctype html><title>Calling</title><p>calling<script>
const call = `const peer = new RTCPeerConnection({ iceServers: [{ urls: "stun:127.0.0.1:STUN" }] });
peer.createDataChannel("x");
peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && top.postMessage({ api: "called" }, "*");
peer.createOffer().then((offer) => peer.setLocalDescription(offer))`;
const frame = document.createElement("iframe");
frame.src = `data:text/html,<script>${encodeURIComponent(call)}<` + "/script>";
document.body.append(frame);
</script>"""
FILLING = """<!doctype html><title>Filling</title><p>filling<script>
const opening = indexedDB.open('full', 1);
opening.onupgradeneeded = () => opening.result.createObjectStore('all', { autoIncrement: true });
opening.onsuccess = () => { const more = () => { const noise = new Uint8Array(4 << 20);
  for (let at = 0; at < noise.length; at += 65536) crypto.getRandomValues(noise.subarray(at, at + 65536));
  const put = opening.result.transaction('all', 'readwrite').objectStore('all').add(noise);
  put.onsuccess = more; }; more(); };
</script>"""


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[WebClient]:
    settings = Settings(serve=replace(ServeSettings(), public=False))
    with Archive(tmp_path / "a", settings=settings, clock=lambda: AT) as archive:
        accounts_of(archive).add("anna", "owner", PASSWORD, 0)
        with running(archive, replay=True) as web:
            page = HOSTILE.replace("HOME", web.address).replace("BASE", web.replay)
            archive.put("https://evil.example/", page.encode(), AT, content_type="text/html")
            archive.put("https://evil.example/sw.js", b"onfetch = () => 0", AT, content_type="text/javascript")
            archive.put("https://fills.example/", FILLING.encode(), AT, content_type="text/html")
            reader = (
                "<title>x</title><p id=found></p><script>found.textContent = localStorage.getItem('planted')</script>"
            )
            archive.put("https://other.example/", reader.encode(), AT, content_type="text/html")
            yield web


def open_page(browser: Any, web: WebClient, url: str) -> Any:
    tab = browser.new_page()
    tab.add_init_script("addEventListener('message', (event) => { if (event.data?.api) window.found = event.data; })")
    tab.goto(f"{web.address}/login")
    tab.fill("[name=name]", "anna")
    tab.fill("[name=password]", PASSWORD)
    tab.locator("form[action='/login'] button").click()
    tab.wait_for_url(f"{web.address}/")
    tab.goto(f"{web.address}/web/{STAMP}/{url}")
    tab.wait_for_url(f"{web.replay}/web/{STAMP}/{url}")
    return tab


def test_a_hostile_page_finds_nothing_of_its_reader_and_reaches_nobody(
    closed: WebClient, logged_browser: tuple[Any, list[str]]
) -> None:
    browser, asked = logged_browser
    del asked[:]
    tab = open_page(browser, closed, "https://evil.example/")
    pages: list[Any] = []
    tab.context.on("page", lambda page: pages.append(page))
    try:
        tab.wait_for_function("() => window.found")
        found = tab.evaluate("() => window.found")
        tab.wait_for_load_state("networkidle")
        assert tab.url.startswith(closed.replay)
        tab.goto(f"{closed.replay}/web/{STAMP}/https://other.example/")
        partition = tab.frame_locator("main iframe").locator("#found")
        partition.wait_for(state="attached")
        assert partition.inner_text() == "", "what a site stores is its own"
    finally:
        tab.context.close()
    assert found == {
        "cookie": "0", "parent": "SecurityError", "top": "SecurityError", "window": "null", "api": "404",
        "frame's own api": "TypeError", "worker": "TypeError", "our script as a worker": "TypeError",
        "webrtc": "undefined", "webrtc of a frame": "undefined", "webrtc of a written frame": "undefined",
        "storage": "null", "fetch of a frame": "404",
    }, json.dumps(found)  # fmt: skip
    assert [line for line in asked if "live.example" in line] == []
    assert pages == []


def test_a_frame_without_our_script_calls_nobody(tmp_path: Path, logged_browser: tuple[Any, list[str]]) -> None:
    """The browser itself refuses what the Connection-Allowlist of its page does not name."""
    browser, _ = logged_browser
    with socket.socket(type=socket.SOCK_DGRAM) as stun, Archive(tmp_path / "a", clock=lambda: AT) as archive:
        stun.bind(("127.0.0.1", 0))
        stun.setblocking(False)
        page = CALLING.replace("STUN", str(stun.getsockname()[1]))
        archive.put("https://calls.example/", page.encode(), AT, content_type="text/html")
        with running(archive, replay=True) as web:
            tab = browser.new_page()
            try:
                tab.add_init_script("addEventListener('message', (event) => { window.found ??= event.data?.api; })")
                tab.goto(f"{web.replay}/web/{STAMP}/https://calls.example/")
                tab.wait_for_function("() => window.found")
            finally:
                tab.close()
        with pytest.raises(BlockingIOError):
            stun.recv(100)


def test_a_page_that_fills_the_disk_of_its_reader_is_closed_and_emptied(
    closed: WebClient, logged_browser: tuple[Any, list[str]]
) -> None:
    browser, _ = logged_browser
    tab = open_page(browser, closed, "https://fills.example/")
    try:
        inner = tab.frame_locator("main iframe")
        inner.get_by_text("stored too much").wait_for()
        frame = next(one for one in tab.frames if one.url.endswith("/.letopis/full"))
        usage = frame.evaluate("async () => (await navigator.storage.estimate()).usage")
        assert usage < 64 << 20
    finally:
        tab.context.close()
