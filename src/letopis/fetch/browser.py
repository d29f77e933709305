"""Pages as a browser shows them, beside what the server sent. Needs the extra `browser`.

The browser itself reaches no network: every request it makes is answered
through our own client, so that limits, manners and the rule about private
addresses hold for scripts and pictures as they do for the page.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from letopis.errors import MissingExtra
from letopis.fetch.client import Client
from letopis.model.web import Request, Response

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Route

MAX_REQUESTS = 300
"""What one page may load; further requests are refused."""
_SETTLE_SECONDS = 5.0
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_OFFLINE = ("--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--disable-sync")
_HOP_FIELDS = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive"})


@dataclass(frozen=True, slots=True)
class Rendered:
    """The raw answer, and the document after its scripts have run (UTF-8; empty when it could not be rendered)."""

    response: Response
    dom: bytes
    requests: int = 0
    warnings: tuple[str, ...] = ()


class BrowserFetcher:
    """Renders pages in one Chromium; use it as an async context manager."""

    def __init__(self, client: Client, *, executable: str = "") -> None:
        self._client = client
        self._executable = executable or find_browser()
        self._playwright: Any = None
        self._browser: Browser | None = None

    async def __aenter__(self) -> Self:
        self._playwright = await _playwright()
        arguments = [*_OFFLINE, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        self._browser = await self._playwright.chromium.launch(executable_path=self._executable, args=arguments)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._browser is not None:
            await self._browser.close()
        if self._playwright is not None:
            await self._playwright.stop()

    async def fetch(self, request: Request) -> Rendered:
        """The page, rendered within the request's time and size limits. Never raises for what the page does."""
        response = await self._client.fetch(request)
        if not _is_page(response) or self._browser is None:
            return Rendered(response, b"")
        visit = Visit(self._client, request, response)
        context = await self._browser.new_context(service_workers="block", accept_downloads=False)
        try:
            async with asyncio.timeout(request.limits.total_seconds):
                dom = await _render(context, visit)
        except TimeoutError:
            return visit.rendered(b"", "the page took too long to render")
        finally:
            await _close(context)
        return visit.rendered(dom)


class Visit:
    """Answers what one page asks for while it is rendered, within bounds."""

    def __init__(self, client: Client, request: Request, response: Response) -> None:
        self._client = client
        self._request = request
        self._response = response
        self._left = request.limits.max_bytes * 4
        self.requests = 0
        self.warnings: list[str] = []

    @property
    def url(self) -> str:
        """Where the page really is."""
        return self._response.final_url

    async def answer(self, route: Route) -> None:
        """Gives the browser an answer of our client, or refuses."""
        asked = route.request
        self.requests += 1
        if asked.method not in ("GET", "HEAD") or self.requests > MAX_REQUESTS or self._left <= 0:
            return await route.abort("blockedbyclient")
        response = self._response if asked.url == self.url else await self._load(asked.url, asked.method)
        self._left -= len(response.body)
        if response.status == 0 or response.failure is not None:
            return await route.abort("failed")
        fields = {name: value for name, value in response.headers if name.lower() not in _HOP_FIELDS}
        return await route.fulfill(status=response.status, headers=fields, body=response.body)

    def rendered(self, dom: bytes, warning: str = "") -> Rendered:
        """What the visit came to."""
        if len(dom) > self._request.limits.max_bytes:
            dom, warning = b"", "the rendered page is larger than the size limit"
        warnings = [*self.warnings, *([warning] if warning else [])]
        return Rendered(self._response, dom, self.requests, tuple(warnings))

    async def _load(self, url: str, method: str) -> Response:
        limits = replace(self._request.limits, max_bytes=max(1, min(self._request.limits.max_bytes, self._left)))
        part = Request(url, method=method, limits=limits, private_ok=self._request.private_ok)
        return await self._client.fetch(part)


def find_browser() -> str:
    """The Chromium on the PATH, or MissingExtra."""
    for program in _PROGRAMS:
        path = shutil.which(program)
        if path is not None:
            return path
    raise MissingExtra("no Chromium was found; install the system's package 'chromium', or set fetch.browser = false")


async def _playwright() -> Any:
    try:
        from playwright.async_api import async_playwright  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("rendering needs playwright; install it with: pip install 'letopis[browser]'") from None
    return await async_playwright().start()


async def _render(context: BrowserContext, visit: Visit) -> bytes:
    from playwright.async_api import Error  # noqa: PLC0415

    await context.route("**/*", visit.answer)
    page = await context.new_page()
    try:
        await page.goto(visit.url, wait_until="load", timeout=0)
    except Error as error:
        visit.warnings.append(f"the page did not load to its end: {str(error).splitlines()[0]}")
    try:
        await page.wait_for_load_state("networkidle", timeout=_SETTLE_SECONDS * 1000)
    except Error:
        visit.warnings.append("the page was still loading when it was read")
    try:
        return (await page.content()).encode("utf-8", "replace")
    except Error as error:
        visit.warnings.append(f"the rendered page could not be read: {str(error).splitlines()[0]}")
        return b""


async def _close(context: BrowserContext) -> None:
    """A page that hangs must not keep us from going on; its process ends with the browser."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(context.close(), _SETTLE_SECONDS)


def _is_page(response: Response) -> bool:
    return response.failure is None and response.status != 304 and bool(response.body) and _says_html(response)


def _says_html(response: Response) -> bool:
    kind = response.header("content-type", "text/html").partition(";")[0].strip().lower()
    return kind in ("text/html", "application/xhtml+xml")
