"""Pages in a real Chromium: what they may ask for, how long they may take, and what becomes of them."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from misbehaving_site import Site
from patience import UNHURRIED
from scripted_site import ScriptedSite

from letopis.config.settings import FetchSettings
from letopis.errors import MissingExtra
from letopis.fetch.browser import BrowserFetcher, find_browser, require_browser
from letopis.fetch.browser_tab import BrowserTab, TabView
from letopis.fetch.client import Client
from letopis.fetch.curl import CurlTransport
from letopis.fetch.page_rendering import PageRenderer, RenderJob
from letopis.model import FailureKind, Limits, Request, Response

CHROMIUM = any(shutil.which(name) for name in ("chromium-headless-shell", "chromium", "google-chrome"))
browser_test = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(not CHROMIUM, reason="NO CHROMIUM"),
]


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    settings = FetchSettings(retries=0)
    transport = CurlTransport(settings, clock=now)
    yield Client(transport, settings, user_agent="t", clock=now)
    await transport.close()


@pytest.fixture
async def browser(client: Client) -> AsyncIterator[BrowserFetcher]:
    fetcher = BrowserFetcher(client, settings=UNHURRIED)
    yield fetcher
    await fetcher.close()


def test_a_missing_browser_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MissingExtra, match=r"'chromium-headless-shell' or 'chromium', or name one in fetch\.chromium"):
        find_browser()


def test_a_program_that_is_none_is_named() -> None:
    with pytest.raises(MissingExtra, match=r"fetch\.chromium names '/nonexistent/chromium'"):
        require_browser("/nonexistent/chromium")


async def test_without_a_browser_the_look_fails_and_says_why(client: Client, scripted_site: ScriptedSite) -> None:
    fetcher = BrowserFetcher(client, executable="/nonexistent/chromium")
    found = await fetcher.fetch(Request(scripted_site.set("/", b"<p>page")))
    assert found.failure is not None
    assert "fetch.chromium" in found.failure.message
    assert not found.available


async def test_a_program_that_is_no_browser_is_a_failure(
    client: Client, scripted_site: ScriptedSite, tmp_path: Path
) -> None:
    program = tmp_path / "browser"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    found = await BrowserFetcher(client, executable=str(program)).fetch(Request(scripted_site.set("/", b"<p>page")))
    assert found.failure is not None
    assert "did not start" in found.failure.message


async def test_what_is_no_page_comes_as_it_was_sent(browser: BrowserFetcher, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/data", b'{"a": 1}', Content_Type="application/json")
    found = await browser.fetch(Request(url))
    assert (found.body, found.as_sent) == (b'{"a": 1}', None)


class TestInChromium:
    pytestmark = browser_test

    async def test_scripts_have_run_and_what_was_sent_is_kept(
        self, browser: BrowserFetcher, misbehaving_site: Site
    ) -> None:
        found = await browser.fetch(Request(misbehaving_site.url("scripted")))
        assert b"written by a script" in found.body
        assert found.header("content-type") == "text/html; charset=utf-8"
        assert found.as_sent is not None
        assert b"written by a script" not in found.as_sent.body

    async def test_the_page_itself_is_asked_for_once_and_without_conditions(
        self, browser: BrowserFetcher, scripted_site: ScriptedSite
    ) -> None:
        url = scripted_site.set("/a", b"<p>page", ETag='"1"', validates=True)
        found = await browser.fetch(Request(url, etag='"1"'))
        assert [(path, "if-none-match" in fields) for _, path, fields in scripted_site.log] == [("/a", False)]
        assert found.header("etag") == ""
        assert found.as_sent is not None
        assert found.as_sent.header("etag") == '"1"'

    async def test_many_pages_share_one_browser(self, browser: BrowserFetcher, scripted_site: ScriptedSite) -> None:
        urls = [scripted_site.set(f"/{number}", _writes(f"page {number}")) for number in range(6)]
        found = await asyncio.gather(*(browser.fetch(Request(url)) for url in urls))
        assert [f"page {number}".encode() in one.body for number, one in enumerate(found)] == [True] * 6
        assert len(_browsers()) == 1
        await browser.close()
        assert _browsers() == []

    async def test_a_page_has_no_pages_of_the_browser_itself_beside_it(
        self, browser: BrowserFetcher, scripted_site: ScriptedSite
    ) -> None:
        await browser.fetch(Request(scripted_site.set("/", _writes("shown"))))
        assert browser._chromium is not None
        page = await BrowserTab.open(browser._chromium, TabView(800, 600), lambda tab, session: None)
        asked = {"filter": [{}]}
        targets = (await browser._chromium.devtools.browser.send("Target.getTargets", asked))["targetInfos"]
        assert {target["type"] for target in targets} == {"page", "tab"}
        assert [target["url"] for target in targets] == ["about:blank"] * 2
        await page.close()

    async def test_a_browser_that_ended_is_started_again(
        self, browser: BrowserFetcher, scripted_site: ScriptedSite
    ) -> None:
        url = scripted_site.set("/", _writes("shown"))
        await browser.fetch(Request(url))
        assert browser._chromium is not None
        os.killpg(browser._chromium.devtools.pid, signal.SIGKILL)
        assert b"shown" in (await browser.fetch(Request(url))).body

    async def test_a_page_that_is_not_rendered_in_time_is_left(
        self, browser: BrowserFetcher, client: Client, misbehaving_site: Site
    ) -> None:
        request = Request(misbehaving_site.url("scripted"))
        sent = await client.fetch(request)
        hurried = request._replace(limits=Limits(total_seconds=0.001))
        found = await browser.render(hurried, sent, client.fetch)
        assert found.failure is not None
        assert found.failure.kind is FailureKind.TIMEOUT
        assert found.as_sent == sent
        # The browser is not lost with it.
        assert b"written by a script" in (await browser.fetch(request)).body

    async def test_fields_that_browsers_pass_over_do_not_keep_an_answer_from_the_page(
        self, browser: BrowserFetcher, scripted_site: ScriptedSite
    ) -> None:
        scripted_site.set("/data", b"the data", **{"Content_Type": "text/plain", "X Odd (name)": "1"})
        page = b"<body><script>fetch('/data').then(found => found.text()).then(text => document.body.append(text))"
        found = await browser.fetch(Request(scripted_site.set("/", page + b"</script>", **{"X Odd (name)": "1"})))
        assert found.failure is None
        assert b"the data<" in found.body

    async def test_a_page_that_is_sent_as_a_file_comes_as_it_was_sent(
        self, browser: BrowserFetcher, scripted_site: ScriptedSite
    ) -> None:
        url = scripted_site.set("/", _writes("shown"), Content_Disposition='Attachment; filename="page.html"')
        found = await browser.fetch(Request(url))
        assert (found.body, found.failure, found.as_sent) == (_writes("shown"), None, None)

    async def test_a_page_that_grows_over_the_limit_is_too_large(
        self, browser: BrowserFetcher, scripted_site: ScriptedSite
    ) -> None:
        url = scripted_site.set("/", b"<body><script>document.body.append('x'.repeat(5000))</script>")
        found = await browser.fetch(Request(url, limits=Limits(max_bytes=4000)))
        assert found.failure is not None
        assert found.failure.kind is FailureKind.TOO_LARGE

    async def test_a_page_that_leads_elsewhere_tells_where(
        self, browser: BrowserFetcher, scripted_site: ScriptedSite
    ) -> None:
        target = scripted_site.set("/there", _writes("arrived"))
        found = await browser.fetch(Request(scripted_site.set("/", b"<script>location.href = '/there'</script>")))
        assert found.final_url == target
        assert b"arrived" in found.body

    async def test_what_a_page_posts_is_sent_as_it_is(
        self, browser: BrowserFetcher, scripted_site: ScriptedSite
    ) -> None:
        page = b"<body><script>fetch('/search', {method: 'POST', body: 'q=brno'}).then(found => found.text())"
        page += b".then(text => document.body.append(text))</script>"
        scripted_site.set("/search", b"three pages", Content_Type="text/plain")
        found = await browser.fetch(Request(scripted_site.set("/", page)))
        assert b"three pages" in found.body
        assert [(method, path) for method, path, _ in scripted_site.log] == [("GET", "/"), ("POST", "/search")]
        assert [body for _, body in scripted_site.posts] == [b"q=brno"]


HOSTILE = """<!doctype html><title>Hostile</title><body><link rel=preconnect href="http://127.0.0.1:{tcp}">
<img src="http://127.0.0.1:{tcp}/image"><iframe src="http://127.0.0.1:{tcp}/frame"></iframe>
<script>
const say = text => document.body.append(text + ". ");
fetch("http://127.0.0.1:{tcp}/secret", {{mode: "no-cors"}}).then(() => say("fetched"), () => say("fetch refused"));
const socket = new WebSocket("ws://127.0.0.1:{tcp}/socket");
socket.onerror = () => say("socket refused");
try {{
  const peer = new RTCPeerConnection({{iceServers: [{{urls: "stun:127.0.0.1:{udp}"}},
    {{urls: "turn:127.0.0.1:{tcp}?transport=tcp", username: "u", credential: "p"}}]}});
  peer.createDataChannel("x");
  peer.createOffer().then(offer => peer.setLocalDescription(offer));
}} catch (error) {{ say("no calls"); }}
</script>"""


@pytest.fixture
def listeners() -> Iterator[tuple[socket.socket, socket.socket]]:
    with closing(socket.create_server(("127.0.0.1", 0))) as tcp, closing(socket.socket(type=socket.SOCK_DGRAM)) as udp:
        udp.bind(("127.0.0.1", 0))
        tcp.setblocking(False)
        udp.setblocking(False)
        yield tcp, udp


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
@pytest.mark.skipif(not CHROMIUM, reason="NO CHROMIUM")
async def test_a_hostile_page_reaches_nobody_on_private_addresses(
    client: Client, browser: BrowserFetcher, listeners: tuple[socket.socket, socket.socket]
) -> None:
    """By no way that a browser knows: pictures, frames, scripts, sockets, calls, connections made ahead of time."""
    tcp, udp = listeners
    page = HOSTILE.format(tcp=tcp.getsockname()[1], udp=udp.getsockname()[1]).encode()
    url = "http://public.example/"
    sent = Response(url, url, 200, (("Content-Type", "text/html"),), page, now())
    request = Request(url, private_ok=False, limits=Limits(total_seconds=300))
    chromium = await browser._running()
    job = RenderJob(request, sent, time.monotonic() + 300, client.fetch)
    found = await PageRenderer(job, UNHURRIED).run(chromium)
    assert b"fetch refused" in found.body
    assert b"socket refused" in found.body
    with pytest.raises(BlockingIOError):
        tcp.accept()
    with pytest.raises(BlockingIOError):
        udp.recv(100)


def _writes(text: str) -> bytes:
    return f"<!doctype html><body><script>document.body.append({text!r})</script>".encode()


def _browsers() -> list[str]:
    """Chromium programs that this process has started, not counting those they started themselves."""
    found: dict[str, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"chromium" in words[0] and b"--remote-debugging-pipe" in words and _ours(int(folder.name)):
                found[folder.name] = (folder / "stat").read_text().rpartition(")")[2].split()[1]
    return [number for number, parent in found.items() if parent not in found]


def _ours(process: int) -> bool:
    while process > 1:
        if process == os.getpid():
            return True
        process = int((Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[1])
    return False
