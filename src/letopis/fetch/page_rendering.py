"""One page rendered in Chromium as a reader would see it. Needs the extra `browser`.

Whatever the page does, it ends at its deadline, and asks nobody but whoever answers for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from playwright.async_api import Browser, BrowserContext, CDPSession, Error, Page, Route
from playwright.async_api import Request as Asked

from letopis.config import CaptureSettings
from letopis.errors import UsageError
from letopis.fetch.page_pictures import draw_at, take_screenshot
from letopis.fetch.page_steps import PageStep
from letopis.model.web import Failure, FailureKind, Headers, LoadedPage, Request, Response

AskResource = Callable[[Request], Awaitable[Response]]
"""Answers a request that a page makes; what went wrong stands in the answer."""

_AT_ONCE = 6
_UNSEEN = 0.1
"""The scale at which a page is drawn while it loads and is scrolled, when nobody looks; the page does not notice.

A picture has a scale of its own, and so it is drawn once.
"""
_MAX_PART_BYTES = 16 * 1024 * 1024
_MAX_SENT_BYTES = 1024 * 1024
"""Of a body that a page sends."""
_MAX_TEXT = 1024 * 1024
_CLOSING_SECONDS = 5.0
_MAX_WARNINGS = 20
_HOP_FIELDS = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive"})
_BODY_FIELDS = _HOP_FIELDS | {
    "content-type", "content-md5", "content-range", "accept-ranges", "digest", "repr-digest", "etag", "last-modified",
}  # fmt: skip
"""Fields that speak of the bytes that were sent, and not of the document that became of them."""
_OUR_FIELDS = frozenset({"cookie", "host", "user-agent", "accept-encoding", "connection", "range"})
_KINDS = {
    "image": "images", "stylesheet": "styles", "font": "fonts", "script": "scripts", "media": "media",
    "texttrack": "media", "document": "frames",
}  # fmt: skip
"""What the setting `capture.take` calls the kinds of requests; all others are `data`."""
_READ_PAGE = """((most, longest) => {
  const kind = document.doctype ? new XMLSerializer().serializeToString(document.doctype) : "";
  const page = kind + (document.documentElement ? document.documentElement.outerHTML : "");
  if (page.length > most) return null;
  return [page, longest && document.body ? document.body.innerText.slice(0, longest) : ""];
})(%d, %d)"""
"""The document and the text as shown, or null for a page that is too large."""
_ICONS = """[...document.querySelectorAll("link[rel~=icon i][href]")].slice(0, 8)
  .forEach((link) => { new Image().src = link.href; });"""
"""A window would show them; a browser without one does not ask for them."""
SCROLL = """(async () => {
  const step = Math.max(200, innerHeight), pause = () => new Promise(done => setTimeout(done, 50));
  for (let at = step, n = 0; at < document.documentElement.scrollHeight && n < 60; at += step, n++) {
    scrollTo(0, at); await pause();
  }
  scrollTo(0, 0);
})()"""


@dataclass(frozen=True, slots=True)
class RenderJob:
    """A page to be rendered: what was asked, what came, until when, and what is to be done on it."""

    request: Request
    response: Response
    deadline: float
    ask: AskResource
    steps: tuple[PageStep, ...] = ()


class PageRenderer:
    """Renders one answer."""

    def __init__(self, job: RenderJob, settings: CaptureSettings) -> None:
        self._job = job
        self._settings = settings
        self._left = settings.bytes
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._loads: set[asyncio.Task[Response]] = set()
        self._begun = False
        self._requests = 0
        self._refused = 0
        self._warnings: list[str] = []

    async def run(self, browser: Browser) -> Response:
        """The rendered page, or the failure to render it. TimeoutError comes from whoever set the deadline."""
        context: BrowserContext | None = None
        try:
            width, height = viewport_of(self._settings)
            context = await browser.new_context(
                service_workers="block", accept_downloads=False, viewport={"width": width, "height": height},
                locale=self._settings.language or None,
            )  # fmt: skip
            return await self._run(context)
        except Exception as error:  # a driver that is gone raises nothing more special
            return self._failed(f"the page could not be rendered: {(str(error).splitlines() or [''])[0]}")
        finally:
            for load in self._loads:
                load.cancel()
            if context is not None:
                await _close(context)

    async def _run(self, context: BrowserContext) -> Response:
        """As soon as the page has crashed what shows it, there is nothing left to wait for."""
        await context.route("**/*", self._answer)
        page = await context.new_page()
        capture = asyncio.ensure_future(self._capture(page, await context.new_cdp_session(page)))
        has_crashed = False

        def end(_: Page) -> None:
            nonlocal has_crashed
            has_crashed = True
            capture.cancel()

        page.on("crash", end)
        try:
            return await capture
        except asyncio.CancelledError:
            if not has_crashed:
                raise
            return self._failed("the page could not be rendered: it crashed the browser; it may take all memory")
        finally:
            capture.cancel()

    async def _capture(self, page: Page, session: CDPSession) -> Response:
        if not self._job.steps:  # whose clicks are aimed at what is drawn
            await draw_at(session, viewport_of(self._settings), _UNSEEN)
        await self._load_page(page)
        await self._take_steps(page)
        if self._settings.scroll:
            await self._scroll(page, session)
        return await self._read(session)

    async def _load_page(self, page: Page) -> None:
        """Waits for the page, then until it rests for a moment; neither for long."""
        timeout = min(1000 * self._settings.load, self._milliseconds())
        try:
            await page.goto(self._job.response.final_url, wait_until="load", timeout=timeout)
        except Error as error:
            self._warn(f"the page did not load to its end: {str(error).splitlines()[0]}")
        await self._wait_for_quiet(page)

    async def _wait_for_quiet(self, page: Page) -> None:
        timeout = min(1000 * self._settings.quiet, self._milliseconds())
        try:
            await page.wait_for_load_state("networkidle", timeout=timeout)
        except Error:
            self._warn("the page was still loading when it was read")

    async def _take_steps(self, page: Page) -> None:
        """A step that cannot be taken is told, and the page is kept as it is then."""
        for step in self._job.steps:
            try:
                await step.take(page, min(1000 * self._settings.load, self._milliseconds()))
            except Error as error:
                self._warn(f"the step '{step.kind} {step.selector}' failed: {str(error).splitlines()[0]}")
                return
            await self._wait_for_quiet(page)

    async def _scroll(self, page: Page, session: CDPSession) -> None:
        """Down to the end and up again: readers come by everything, and so does what loads only then."""
        before = self._requests
        with contextlib.suppress(Error, TimeoutError):
            async with asyncio.timeout(min(self._settings.quiet, self._milliseconds() / 1000)):
                await self._evaluate(session, _ICONS + SCROLL)
        if self._requests > before:
            await self._wait_for_quiet(page)

    def _milliseconds(self) -> float:
        """For one step, with a moment left for the reading."""
        left = self._job.deadline - time.monotonic()
        return max(1.0, 1000 * (left - min(self._settings.quiet, left / 4)))

    async def _read(self, session: CDPSession) -> Response:
        """The document, the text and the picture; none larger than allowed."""
        limit = self._job.request.limits.max_bytes
        frame = (await session.send("Page.getFrameTree"))["frameTree"]["frame"]
        read = await self._evaluate(session, _READ_PAGE % (limit, _MAX_TEXT if self._settings.text else 0))
        page, text = read if isinstance(read, list) else (None, "")
        body = page.encode("utf-8", "replace") if isinstance(page, str) else None
        if not str(frame["url"]).startswith(("http://", "https://")):
            return self._failed("the page led to an address that cannot be shown")
        if body is None or len(body) > limit:
            return self._failed("the rendered page is larger than the size limit", FailureKind.TOO_LARGE)
        shown = LoadedPage(screenshot=await self._screenshot(session), text=text)
        return self._rendered(body, str(frame["url"]), shown)

    async def _evaluate(self, session: CDPSession, expression: str) -> object:
        """A value by way of a world of our own, where the page's scripts cannot lie."""
        frame = (await session.send("Page.getFrameTree"))["frameTree"]["frame"]
        world = await session.send("Page.createIsolatedWorld", {"frameId": frame["id"]})
        asked = {"expression": expression, "contextId": world["executionContextId"]}
        found = await session.send("Runtime.evaluate", asked | {"returnByValue": True, "awaitPromise": True})
        value: object = found["result"].get("value")
        return value

    async def _screenshot(self, session: CDPSession) -> bytes:
        """The whole page up to a height; a page that cannot be pictured is kept without."""
        if self._settings.screenshot == "none":
            return b""
        try:
            return await take_screenshot(session, self._settings.screenshot, self._settings.screenshot_height)
        except Error as error:
            self._warn(f"no picture was taken: {str(error).splitlines()[0]}")
            return b""

    def _rendered(self, body: bytes, address: str, shown: LoadedPage) -> Response:
        sent = self._job.response
        fields = tuple(field for field in sent.headers if field[0].lower() not in _BODY_FIELDS)
        moved = address if _changed_place(sent.final_url, address) else sent.final_url
        return sent._replace(
            final_url=moved,
            headers=(("Content-Type", "text/html; charset=utf-8"), *fields),
            body=body,
            warnings=self._all_warnings(),
            as_sent=sent,
            loaded=shown,
        )

    def _failed(self, words: str, kind: FailureKind = FailureKind.OTHER) -> Response:
        sent = self._job.response
        return sent._replace(body=b"", warnings=self._all_warnings(), failure=Failure(kind, words), as_sent=sent)

    def _warn(self, sentence: str) -> None:
        if sentence not in self._warnings and len(self._warnings) < _MAX_WARNINGS:
            self._warnings.append(sentence)

    def _all_warnings(self) -> tuple[str, ...]:
        refused = (f"{self._refused} requests of the page were refused",) if self._refused else ()
        return (*self._job.response.warnings, *self._warnings, *refused)

    async def _answer(self, route: Route) -> None:
        """Gives the browser an answer, or refuses. The page may be gone by then."""
        with contextlib.suppress(Exception, asyncio.CancelledError):
            response = await self._answer_to(route.request)
            if response is None or response.status == 0 or response.failure is not None:
                await route.abort("blockedbyclient" if response is None else "failed")
                return
            fields = {name: value for name, value in response.headers if name.lower() not in _HOP_FIELDS}
            await route.fulfill(status=response.status, headers=fields, body=response.body)

    async def _answer_to(self, asked: Asked) -> Response | None:
        """None for what a look must not do, or may not do any more."""
        if not self._begun and asked.is_navigation_request():
            self._begun = True
            return self._job.response
        request = self._request(asked)
        if request is None:
            self._refused += 1
            return None
        load = asyncio.create_task(self._load(request))
        self._loads.add(load)
        load.add_done_callback(self._loads.discard)
        response = await load
        self._left -= len(response.body)
        return response

    def _request(self, asked: Asked) -> Request | None:
        """What is sent for a request of the page; None for what is not wanted, or too much."""
        self._requests += 1
        kind = _KINDS.get(asked.resource_type, "data")
        body = asked.post_data_buffer or b""
        if self._requests > self._settings.resources or self._left <= 0:
            return None
        if kind not in self._settings.take or len(body) > _MAX_SENT_BYTES:
            return None
        most = self._settings.media_bytes if kind in ("images", "media") else _MAX_PART_BYTES
        limits = self._job.request.limits
        seconds = max(0.001, self._job.deadline - time.monotonic())
        limits = limits._replace(
            max_bytes=max(1, min(limits.max_bytes, most, self._left)),
            total_seconds=min(limits.total_seconds, self._settings.load, seconds),
        )
        fields = _fields(asked.headers)
        private_ok = self._job.request.private_ok
        return Request(asked.url, asked.method, fields, limits=limits, private_ok=private_ok, body=body)

    async def _load(self, request: Request) -> Response:
        async with self._at_once:
            return await self._job.ask(request)


def viewport_of(settings: CaptureSettings) -> tuple[int, int]:
    """Width and height of pages in a browser; UsageError where the setting names none."""
    width, _, height = settings.viewport.partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        raise UsageError(f"capture.viewport is '{settings.viewport}', which is no size; write 1280x800")
    return max(100, min(int(width), 10_000)), max(100, min(int(height), 10_000))


def _fields(headers: dict[str, str]) -> Headers:
    """What the page says with a request; who asks, and how, is ours to say."""
    return tuple(
        (name, value)
        for name, value in headers.items()
        if name.lower() not in _OUR_FIELDS and not name.startswith((":", "sec-", "if-"))
    )


def _changed_place(sent: str, shown: str) -> bool:
    """Whether scripts led to another document; a browser writes the same address a little differently."""
    return sent.partition("#")[0].rstrip("/") != shown.partition("#")[0].rstrip("/")


async def _close(context: BrowserContext) -> None:
    """A page that hangs must not keep us from going on; its process ends with the browser."""
    with contextlib.suppress(Exception):
        await asyncio.wait_for(context.close(), _CLOSING_SECONDS)
