"""Everything that belongs to a page asks us and nobody else, and steps are taken as a reader would take them."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from patience import UNHURRIED

from letopis.config import CaptureSettings
from letopis.fetch import chromium as chromium_flags
from letopis.fetch.browser import find_browser
from letopis.fetch.browser_tab import BrowserTab, TabView
from letopis.fetch.chromium import Chromium
from letopis.fetch.devtools import DevtoolsError, Parameters
from letopis.fetch.page_pictures import take_screenshot, width_of
from letopis.fetch.page_rendering import PageRenderer, RenderJob
from letopis.fetch.page_steps import parse_steps
from letopis.model import Failure, FailureKind, Limits, Request, Response

pytestmark = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(not (shutil.which("chromium-headless-shell") or shutil.which("chromium")), reason="NO CHROMIUM"),
]
SCRIPT = "text/javascript"


class Web:
    """Answers for every host, and remembers what it was asked."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[str, bytes]] = {}
        self.asked: list[Request] = []

    def put(self, url: str, text: str, kind: str = "text/html") -> str:
        self.pages[url] = (kind, text.encode())
        return url

    async def ask(self, request: Request) -> Response:
        self.asked.append(request)
        return self.answer(request.url)

    def answer(self, url: str) -> Response:
        kind, body = self.pages.get(url, ("text/plain", f"answer of {url}".encode()))
        return Response(url, url, 200, (("Content-Type", kind),), body, datetime.now(UTC))

    async def shown(self, chromium: Chromium, url: str, *steps: str, settings: CaptureSettings = UNHURRIED) -> Response:
        request = Request(url, limits=Limits(total_seconds=300))
        job = RenderJob(request, self.answer(url), time.monotonic() + 300, self.ask, parse_steps(steps))
        return await PageRenderer(job, replace(settings, screenshot="none")).run(chromium)

    @property
    def urls(self) -> list[str]:
        return sorted(request.url for request in self.asked)


@pytest.fixture
def web() -> Web:
    return Web()


@pytest.fixture(params=["together", "apart"])
async def chromium(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Chromium]:
    """Frames of other sites in the process of the page, or in processes of their own, as larger browsers have it."""
    if request.param == "apart":
        monkeypatch.setattr(chromium_flags, "_FLAGS", (*chromium_flags._FLAGS, "--site-per-process"))
    made = await Chromium.start(find_browser())
    yield made
    await made.close()


def text_of(found: Response) -> str:
    assert found.failure is None, found.failure
    assert found.loaded is not None
    return found.loaded.text


WHOLE = """<!doctype html><body><iframe src="http://b.example/frame"></iframe><script>
const say = (text) => document.body.append(text + "; ");
onmessage = (event) => say(event.data);
new Worker("/worker.js").onmessage = (event) => say(event.data);
new SharedWorker("/shared.js").port.onmessage = (event) => say(event.data);
</script>"""


async def test_frames_and_workers_ask_us(chromium: Chromium, web: Web) -> None:
    page = web.put("http://a.example/", WHOLE)
    send = "fetch('/data?{0}').then((found) => found.text()).then((text) => {1}.postMessage('{0} ' + text{2}))"
    web.put("http://b.example/frame", f"<script>{send.format('frame', 'parent', ', `*`')}</script>")
    web.put("http://a.example/worker.js", send.format("worker", "self", ""), SCRIPT)
    shared = f"onconnect = (event) => {send.format('shared', 'event.ports[0]', '')}"
    web.put("http://a.example/shared.js", shared, SCRIPT)
    text = text_of(await web.shown(chromium, page))
    for name, host in (("frame", "b"), ("worker", "a"), ("shared", "a")):
        assert f"{name} answer of http://{host}.example/data?{name}" in text
    assert len(web.urls) == 6


@pytest.mark.parametrize("flags", ["ours", "a browser that knows no such flag"])
async def test_windows_do_not_open_and_the_page_is_shown_all_the_same(
    web: Web, flags: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if flags != "ours":
        kept = (flag for flag in chromium_flags._FLAGS if flag != "--block-new-web-contents")
        monkeypatch.setattr(chromium_flags, "_FLAGS", (*kept, "--disable-popup-blocking"))
    page = web.put(
        "http://a.example/",
        "<body><script>for (let n = 0; n < 40; n++) open('/w' + n); document.body.append('went on')</script>",
    )
    chromium = await Chromium.start(find_browser())
    try:
        assert "went on" in text_of(await web.shown(chromium, page))
        assert (web.urls, chromium.tabs) == ([], {})
    finally:
        await chromium.close()


HIDES_ITS_TEXT = """<!doctype html><html lang=en><body><x-card></x-card><iframe srcdoc="<p>in a frame"></iframe><script>
for (const [host, name] of [[document.querySelector("x-card"), "outer"], ["", "inner"]]) {
  const card = host || document.querySelector("x-card").shadowRoot.appendChild(document.createElement("x-card"));
  card.attachShadow({ mode: "open" }).innerHTML =
    `<style>p { color: teal }</style><p>${name} tree</p><p hidden>not shown`;
}</script>"""


async def test_what_is_shown_in_shadow_trees_and_frames_is_kept_too(chromium: Chromium, web: Web) -> None:
    found = await web.shown(chromium, web.put("http://a.example/", HIDES_ITS_TEXT))
    assert sorted(text_of(found).split("\n\n")) == ["in a frame", "inner tree", "outer tree"]
    assert found.body.startswith(b'<!DOCTYPE html><html lang="en"><head></head><body><x-card>')
    assert found.body.count(b'<template shadowrootmode="open"><style>') == 2


async def test_service_workers_and_downloads_are_refused(chromium: Chromium, web: Web) -> None:
    page = web.put(
        "http://localhost/",
        "<body><a id=file href=/file download>file</a><script>navigator.serviceWorker.register('/sw.js').then("
        "() => document.body.append('registered'), () => document.body.append('refused')); file.click()</script>",
    )
    web.put("http://localhost/sw.js", "onfetch = () => 0", SCRIPT)
    assert text_of(await web.shown(chromium, page)).endswith("refused")
    assert "http://localhost/sw.js" not in web.urls
    assert not list(chromium.devtools.folder.rglob("file*"))


async def test_bytes_that_a_page_sends_arrive_as_they_are_also_at_another_host(chromium: Chromium, web: Web) -> None:
    page = web.put(
        "http://a.example/",
        "<body><script>const sent = { method: 'PUT', headers: { 'x-own': '1' },"
        "  body: Uint8Array.from({ length: 300000 }, (_, n) => n % 251) };"
        "fetch('http://c.example/put', sent).then((found) => found.text()).then((text) => document.body.append(text))"
        "</script>",
    )
    assert "answer of http://c.example/put" in text_of(await web.shown(chromium, page))
    (request,) = web.asked
    assert (request.method, ("x-own", "1") in request.headers) == ("PUT", True)
    assert request.body == bytes(number % 251 for number in range(300_000))


async def test_a_page_has_the_language_and_the_size_of_the_settings(chromium: Chromium, web: Web) -> None:
    script = "document.body.append([navigator.language, (0.5).toLocaleString(), innerWidth, innerHeight].join(' '))"
    settings = replace(UNHURRIED, language="cs-CZ", viewport="640x480")
    page = web.put("http://a.example/", f"<body><script>{script}</script>")
    assert text_of(await web.shown(chromium, page, settings=settings)) == "cs-CZ 0,5 640 480"


async def test_pages_have_nothing_of_each_other(chromium: Chromium, web: Web) -> None:
    page = web.put("http://a.example/", "<body><script>document.body.append(document.cookie + localStorage.x);"
                   "document.cookie = 'a=b'; localStorage.x = 1</script>")  # fmt: skip
    assert [text_of(await web.shown(chromium, page)) for _ in range(2)] == ["undefined"] * 2


STEPS = """<!doctype html><style>#cover { position: fixed; inset: 0 } #far { margin-top: 3000px }</style><body>
<div id=cover></div><p><span id=wide>wide<br>two lines</span></p>
<input id=field value=before><textarea id=area></textarea><div id=free contenteditable>old</div><input id=day type=date>
<select id=late></select><button id=off disabled>off</button><button id=far>far</button><x-card></x-card>
<script>
const told = [], say = (text) => told.push(text);
const root = document.querySelector("x-card").attachShadow({ mode: "open" });
root.innerHTML = "<button id=inside>inside</button>";
root.firstChild.onclick = (event) => say("inside " + event.isTrusted);
for (const id of ["off", "far", "wide"]) document.getElementById(id).onclick = () => say(id);
for (const id of ["field", "area", "free", "day"]) document.getElementById(id).oninput = (event) =>
  say(id + "=" + (event.target.value ?? event.target.textContent));
late.onchange = () => say("late=" + late.value);
setTimeout(() => { off.disabled = false; late.innerHTML = "<option value=1>one<option value=2>two"; }, 300);
setTimeout(() => { cover.remove(); }, 400);
</script>"""


async def test_steps_wait_until_a_reader_could_take_them(chromium: Chromium, web: Web) -> None:
    page = web.put("http://a.example/", STEPS + "<script>setInterval(() => document.title = told.join())</script>")
    steps = (
        "click #off", "click #far", "click #wide", "click #inside", "type #field = after", "type #area = x < y",
        "type #free = new", "type #day = 2024-05-06", "select #late = two", "scroll #off", "wait 0.1",
    )  # fmt: skip
    found = await web.shown(chromium, page, *steps)
    assert found.warnings == ()
    told = found.body.decode().partition("<title>")[2].partition("</title>")[0].replace("&lt;", "<")
    assert told == "off,far,wide,inside true,field=after,area=x < y,free=new,day=2024-05-06,late=2"


@pytest.mark.parametrize("chromium", ["together"], indirect=True)
@pytest.mark.parametrize(
    ("step", "why"),
    [
        ("click #nowhere", "there is no such element"),
        ("wait [hidden]", "it is not visible"),
        ("click #below", "something covers it"),
        ("type p = x", "it takes no text"),
        ("select select = 3", "there is no such option"),
        ("click ##", "SyntaxError"),
    ],
)
async def test_a_step_that_cannot_be_taken_says_why(chromium: Chromium, web: Web, step: str, why: str) -> None:
    page = web.put(
        "http://a.example/",
        "<p>text<p hidden>unseen</p><select><option>1</select><button id=below style='position: fixed; top: 0'>b"
        "</button><div style='position: fixed; inset: 0'></div>",
    )
    found = await web.shown(chromium, page, step, settings=replace(UNHURRIED, load=3.0))
    (warning,) = found.warnings
    assert warning.startswith(f"the step '{step.partition(' = ')[0]}' failed: ")
    assert why in warning
    assert b"<p>text" in found.body


async def test_steps_go_on_in_the_document_that_a_click_leads_to(chromium: Chromium, web: Web) -> None:
    page = web.put("http://a.example/", "<a id=next href=http://b.example/>next</a>")
    target = web.put("http://b.example/", "<body><script>setTimeout(() => document.body.innerHTML = "
                     "'<button id=more onclick=document.body.append(`done`)>more', 300)</script>")  # fmt: skip
    found = await web.shown(chromium, page, "click #next", "click #more")
    assert (found.warnings, found.final_url) == ((), target)
    assert text_of(found).endswith("done")


async def test_a_browser_that_is_killed_under_a_page_ends_the_page_at_once(chromium: Chromium, web: Web) -> None:
    page = web.put("http://a.example/", "<img src=/never>")

    async def ask(request: Request) -> Response:
        os.killpg(chromium.devtools.pid, signal.SIGKILL)
        await asyncio.Event().wait()
        raise AssertionError

    job = RenderJob(Request(page), web.answer(page), time.monotonic() + 300, ask)
    found = await PageRenderer(job, UNHURRIED).run(chromium)
    assert found.failure is not None
    assert "crashed the browser" in found.failure.message


async def test_what_nobody_can_answer_is_a_failed_request(chromium: Chromium, web: Web) -> None:
    page = web.put(
        "http://a.example/", "<body><script>fetch('/odd').catch(() => document.body.append('failed'))</script>"
    )

    async def ask(request: Request) -> Response:
        raise ValueError("odd")

    job = RenderJob(Request(page), web.answer(page), time.monotonic() + 300, ask)
    assert text_of(await PageRenderer(job, replace(UNHURRIED, screenshot="none")).run(chromium)) == "failed"


async def test_an_answer_that_a_browser_does_not_take_is_a_failed_request(chromium: Chromium, web: Web) -> None:
    page = web.put("http://a.example/", "<body><script>fetch('/odd').then(() => document.body.append('answered'),"
                   "() => document.body.append('failed'))</script>")  # fmt: skip
    web.put("http://a.example/odd", "x", "text/plain\nX: y")
    assert text_of(await web.shown(chromium, page)) == "failed"


async def test_scripts_that_never_end_are_stopped_and_the_page_is_read(chromium: Chromium, web: Web) -> None:
    page = web.put("http://a.example/", "<p>text<script>onload = () => setTimeout(() => { for (;;); })</script>")
    job = RenderJob(Request(page), web.answer(page), time.monotonic() + 300, web.ask)
    tab = await BrowserTab.open(chromium, TabView(400, 300), PageRenderer(job, UNHURRIED)._intercept)
    assert await tab.goto(page, 300) == ""
    await tab.stop_scripts()
    assert await tab.evaluate("document.body.innerText") == "text"
    await tab.close()


@pytest.mark.parametrize("script", ["location = '/file'", "location = 'mailto:a@b.example'", "window.stop()"])
async def test_a_document_that_never_says_it_loaded_is_not_waited_for(
    chromium: Chromium, web: Web, script: str
) -> None:
    page = web.put("http://a.example/", f"<body>text<script>{script}</script>")
    web.put("http://a.example/file", "x", "application/zip")
    found = await web.shown(chromium, page)
    assert text_of(found) == "text"
    assert found.warnings == ()


async def test_a_page_that_leads_away_over_our_bounds_stays_and_one_that_leads_nowhere_says_where(
    chromium: Chromium, web: Web
) -> None:
    leading = "<body>text<script>onload = () => setTimeout(() => { location = '/next' })</script>"
    page = web.put("http://a.example/", leading)
    web.put("http://a.example/next", "<body>next")
    found = await web.shown(chromium, page, settings=replace(UNHURRIED, take=("scripts",)))
    assert text_of(found) == "text"
    assert found.warnings == ("1 requests of the page were refused",)

    async def ask(request: Request) -> Response:
        return web.answer(request.url)._replace(failure=Failure(FailureKind.DNS, "no such host"))

    job = RenderJob(Request(page), web.answer(page), time.monotonic() + 300, ask)
    found = await PageRenderer(job, UNHURRIED).run(chromium)
    assert found.failure is not None
    assert found.warnings == ("the page led to http://a.example/next: no such host",)


TALL = """document.body.innerHTML = "<p style='margin-top: 2000px; border: 50px solid teal'>far below";
addEventListener("resize", () => { document.title += ` ${innerWidth}` });"""


async def test_a_page_does_not_notice_its_picture_which_shows_what_lies_below_the_window(chromium: Chromium) -> None:
    async def pictured(height: int) -> tuple[bytes, str]:
        tab = await BrowserTab.open(chromium, TabView(400, height, 0.1), lambda tab, session: None)
        await tab.evaluate(TALL)
        picture = await take_screenshot(tab.session, "png", 2100, 0.75)
        title = await tab.evaluate("new Promise((done) => requestAnimationFrame(() => done(document.title)))")
        await tab.close()
        return picture, title

    picture, noticed = await pictured(300)
    assert noticed == ""
    assert width_of(picture) == 300
    assert picture == (await pictured(2100))[0], "a window that shows all of it"


async def test_a_picture_that_chromium_fails_to_take_is_taken_again(
    chromium: Chromium, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab = await BrowserTab.open(chromium, TabView(400, 300, 0.1), lambda tab, session: None)
    send, failures = tab.session.send, ["Unable to capture screenshot"]

    async def failing(method: str, parameters: Parameters | None = None) -> dict[str, Any]:
        if method == "Page.captureScreenshot" and failures:
            raise DevtoolsError(failures.pop())
        return await send(method, parameters)

    monkeypatch.setattr(tab.session, "send", failing)
    assert width_of(await take_screenshot(tab.session, "png", 2100, 0.75)) == 300
    await tab.close()


async def test_a_page_that_is_drawn_small_has_a_window_of_its_size(chromium: Chromium) -> None:
    tab = await BrowserTab.open(chromium, TabView(1280, 800, 0.1), lambda tab, session: None)
    sizes = "[innerWidth, innerHeight, outerWidth, outerHeight, screen.width, screen.height, devicePixelRatio]"
    assert await tab.evaluate(sizes) == [1280, 800, 1280, 800, 1280, 800, 1]
    await tab.close()
