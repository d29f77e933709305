"""Chromium driven by playwright: the program, and one page rendered in it. Needs the extra `browser`.

It is started with nowhere to go: whatever a page asks for is answered by our own client.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from typing import Any

from playwright.async_api import Browser, BrowserContext, Error, Page, Playwright, Route, async_playwright
from playwright.async_api import Request as Asked

from letopis.errors import Unavailable
from letopis.fetch.client import Client
from letopis.model.web import Failure, FailureKind, Headers, Request, Response

_PATIENCE_SECONDS = 5.0
_LOST = "Connection closed while reading from the driver"
_FLAGS = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--js-flags=--max-old-space-size=512",
)
"""No name and no address leads anywhere from inside the browser, and it asks for nothing of its own."""


class Chromium:
    """One running browser without a window and with a profile that is thrown away."""

    def __init__(self, playwright: Playwright, browser: Browser) -> None:
        self._playwright = playwright
        self.browser = browser

    @classmethod
    async def start(cls, executable: str) -> Chromium:
        """A new one, or Unavailable."""
        _silence_lost_driver(asyncio.get_running_loop())
        playwright: Playwright | None = None
        try:
            playwright = await async_playwright().start()
            # Root has no sandbox to go into; everybody else has.
            browser = await playwright.chromium.launch(
                executable_path=executable, args=list(_FLAGS), chromium_sandbox=os.geteuid() != 0
            )
        except BaseException as error:
            if playwright is not None:
                await _stopped(playwright)
            if isinstance(error, Exception):  # a driver that is gone raises nothing more special
                raise Unavailable(f"{executable} did not start: {str(error).splitlines()[0]}") from None
            raise
        return cls(playwright, browser)

    async def answers(self) -> bool:
        """Whether it still listens, which only a question tells."""
        try:
            context = await asyncio.wait_for(self.browser.new_context(), _PATIENCE_SECONDS)
            await context.close()
        except Exception:  # as above
            return False
        return True

    async def close(self) -> None:
        """Ends it. One that no longer listens has lost its line to us and ends by itself."""
        with contextlib.suppress(Exception):  # as above
            await asyncio.wait_for(self.browser.close(), _PATIENCE_SECONDS)
        await _stopped(self._playwright)


async def _stopped(playwright: Playwright) -> None:
    with contextlib.suppress(Exception):  # as above
        await asyncio.wait_for(playwright.stop(), _PATIENCE_SECONDS)


def _silence_lost_driver(loop: asyncio.AbstractEventLoop) -> None:
    """A driver that ends before we end it, as at Ctrl-C, leaves a future behind that nobody asks."""
    before = loop.get_exception_handler() or asyncio.AbstractEventLoop.default_exception_handler

    def unless_the_driver(loop: asyncio.AbstractEventLoop, what: dict[str, Any]) -> None:
        if _LOST not in str(what.get("exception")):
            before(loop, what)

    loop.set_exception_handler(unless_the_driver)


MAX_REQUESTS = 300
"""What one page may load; further requests are refused."""
_AT_ONCE = 6
_MAX_PART_BYTES = 16 * 1024 * 1024
_MAX_ALL_BYTES = 4 * _MAX_PART_BYTES
_SETTLE_SECONDS = 5.0
_HOP_FIELDS = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive"})
_BODY_FIELDS = _HOP_FIELDS | {
    "content-type", "content-md5", "content-range", "accept-ranges", "digest", "repr-digest", "etag", "last-modified",
}  # fmt: skip
"""Fields that speak of the bytes that were sent, and not of the document that became of them."""
_OUR_FIELDS = frozenset({"cookie", "host", "user-agent", "accept-encoding", "connection", "range"})
_READ_DOCUMENT = """(() => {
  const kind = document.doctype ? new XMLSerializer().serializeToString(document.doctype) : "";
  const text = kind + (document.documentElement ? document.documentElement.outerHTML : "");
  return text.length > %d ? null : text;
})()"""


class PageRenderer:
    """Renders one answer. Whatever the page does ends at the deadline, and asks nobody but our client."""

    def __init__(self, client: Client, request: Request, response: Response, deadline: float) -> None:
        self._client = client
        self._request = request
        self._response = response
        self._deadline = deadline
        self._left = min(4 * request.limits.max_bytes, _MAX_ALL_BYTES)
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._loads: set[asyncio.Task[Response]] = set()
        self._begun = False
        self._requests = 0
        self._warnings: list[str] = []

    async def run(self, browser: Browser) -> Response:
        """The rendered page, or the failure to render it. TimeoutError comes from whoever set the deadline."""
        context: BrowserContext | None = None
        try:
            context = await browser.new_context(service_workers="block", accept_downloads=False)
            return await self._run(context)
        except Exception as error:  # a driver that is gone raises nothing more special
            return self._failed(f"the page could not be rendered: {(str(error).splitlines() or [''])[0]}")
        finally:
            for load in self._loads:
                load.cancel()
            if context is not None:
                await _close(context)

    async def _run(self, context: BrowserContext) -> Response:
        await context.route("**/*", self._answer)
        page = await context.new_page()
        await self._load_page(page)
        return await self._read(context, page)

    async def _load_page(self, page: Page) -> None:
        """Waits for the page, then until it rests for a moment; neither for long."""
        try:
            await page.goto(self._response.final_url, wait_until="load", timeout=self._milliseconds())
        except Error as error:
            self._warnings.append(f"the page did not load to its end: {str(error).splitlines()[0]}")
        try:
            await page.wait_for_load_state("networkidle", timeout=min(_SETTLE_SECONDS * 1000, self._milliseconds()))
        except Error:
            self._warnings.append("the page was still loading when it was read")

    def _milliseconds(self) -> float:
        """For one step, with a moment left for the reading."""
        left = self._deadline - time.monotonic()
        return max(1.0, 1000 * (left - min(_SETTLE_SECONDS, left / 4)))

    async def _read(self, context: BrowserContext, page: Page) -> Response:
        """The document by way of a world of our own, where the page's scripts cannot lie; no larger than allowed."""
        session = await context.new_cdp_session(page)
        frame = (await session.send("Page.getFrameTree"))["frameTree"]["frame"]
        world = await session.send("Page.createIsolatedWorld", {"frameId": frame["id"]})
        limit = self._request.limits.max_bytes
        expression = {
            "expression": _READ_DOCUMENT % limit,
            "contextId": world["executionContextId"],
            "returnByValue": True,
        }
        text = (await session.send("Runtime.evaluate", expression))["result"].get("value")
        body = text.encode("utf-8", "replace") if isinstance(text, str) else None
        if not str(frame["url"]).startswith(("http://", "https://")):
            return self._failed("the page led to an address that cannot be shown")
        if body is None or len(body) > limit:
            return self._failed("the rendered page is larger than the size limit", FailureKind.TOO_LARGE)
        return self._rendered(body, str(frame["url"]))

    def _rendered(self, body: bytes, address: str) -> Response:
        sent = self._response
        fields = tuple(field for field in sent.headers if field[0].lower() not in _BODY_FIELDS)
        moved = address if _changed_place(sent.final_url, address) else sent.final_url
        return sent._replace(
            final_url=moved,
            headers=(("Content-Type", "text/html; charset=utf-8"), *fields),
            body=body,
            warnings=(*sent.warnings, *self._warnings),
            as_sent=sent,
        )

    def _failed(self, words: str, kind: FailureKind = FailureKind.OTHER) -> Response:
        warnings = (*self._response.warnings, *self._warnings)
        return self._response._replace(body=b"", warnings=warnings, failure=Failure(kind, words))

    async def _answer(self, route: Route) -> None:
        """Gives the browser an answer of our client, or refuses. The page may be gone by then."""
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
            return self._response
        self._requests += 1
        if asked.method not in ("GET", "HEAD") or self._requests > MAX_REQUESTS or self._left <= 0:
            return None
        load = asyncio.create_task(self._load(asked.url, asked.method, _fields(asked.headers)))
        self._loads.add(load)
        load.add_done_callback(self._loads.discard)
        response = await load
        self._left -= len(response.body)
        return response

    async def _load(self, url: str, method: str, fields: Headers) -> Response:
        async with self._at_once:
            limits = self._request.limits
            size = max(1, min(limits.max_bytes, _MAX_PART_BYTES, self._left))
            seconds = max(0.001, self._deadline - time.monotonic())
            limits = limits._replace(max_bytes=size, total_seconds=min(limits.total_seconds, seconds))
            return await self._client.fetch(
                Request(url, method=method, headers=fields, limits=limits, private_ok=self._request.private_ok)
            )


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
        await asyncio.wait_for(context.close(), _SETTLE_SECONDS)
