"""A page of an archive as a browser replays it: what it asked for and what was answered, and how it looks.

Needs the extra `browser`. The browser reaches the replay of the archive and nothing else, and each page has its time.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from base64 import b64encode
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, CDPSession, Error, Page, Request, Response

from letopis.config import CaptureSettings
from letopis.fetch.page_pictures import COUNT_PIXELS, take_screenshot
from letopis.fetch.page_rendering import SCROLL, viewport_of

_CLOSING_SECONDS = 5.0
_MOST_REQUESTS = 5000
_ICON = "/favicon.ico"
_OURS = "/.letopis/"
"""Where the replay answers with files of its own."""
_MARK = re.compile(r'missing;desc="([^"]*)"')
"""How the replay marks what was never captured."""


@dataclass(frozen=True, slots=True)
class ReplayedPage:
    """What a replay showed: how many requests were answered, the addresses of those that were not, and the likeness."""

    answered: int
    missing: tuple[str, ...]
    likeness: float | None = None


@dataclass
class _PageRequests:
    """The requests of one page, each once."""

    origin: str
    answered: dict[str, None] = field(default_factory=dict)
    missing: dict[str, None] = field(default_factory=dict)

    def finish(self, response: Response) -> None:
        """An answer came; a 404 with our mark says that nothing was captured."""
        lost = _MARK.search(response.headers.get("server-timing", ""))
        place = urlsplit(response.url)
        if place.hostname == self.origin or place.path.startswith(_OURS):
            return
        if lost is None:
            self._add(self.answered, f"{response.request.method} {response.url}")
        elif urlsplit(lost[1]).path != _ICON:
            # A browser asks for this icon by itself, whether a page has one or not.
            self._add(self.missing, lost[1])

    def fail(self, asked: Request) -> None:
        """No answer came: the policy kept it from the live web. What a page stops itself is not missing."""
        parts = urlsplit(asked.url)
        if parts.scheme in ("http", "https") and not (parts.hostname or "").endswith(self.origin):
            self._add(self.missing, asked.url)

    def _add(self, where: dict[str, None], name: str) -> None:
        if len(where) < _MOST_REQUESTS:
            where[name.partition("#")[0]] = None


class ReplayVisitor:
    """Opens pages of the replay origin `base` one after the other; pictures have the size that captures have."""

    def __init__(self, browser: Browser, base: str, settings: CaptureSettings) -> None:
        self._browser = browser
        self._host = urlsplit(base).hostname or ""
        self._settings = settings

    async def visit(self, address: str, captured: bytes = b"") -> ReplayedPage:
        """Opens a page as a reader would: waits for quiet, scrolls, waits; then compares it with a picture."""
        width, height = viewport_of(self._settings)
        context = await self._browser.new_context(
            service_workers="block", accept_downloads=False, viewport={"width": width, "height": height},
            locale=self._settings.language or None,
        )  # fmt: skip
        try:
            return await self._visit(context, address, captured)
        finally:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(context.close(), _CLOSING_SECONDS)

    async def _visit(self, context: BrowserContext, address: str, captured: bytes) -> ReplayedPage:
        page, requests = await context.new_page(), _PageRequests(self._host)
        page.on("response", requests.finish)
        page.on("requestfailed", requests.fail)
        with contextlib.suppress(Error):
            await page.goto(address, wait_until="load", timeout=1000 * self._settings.load)
        session = await context.new_cdp_session(page)
        await self._rest(page)
        with contextlib.suppress(Error, TimeoutError):
            async with asyncio.timeout(self._settings.quiet):
                await page.evaluate(SCROLL)
        await self._rest(page)
        picture = await self._picture(session)
        likeness = await self._likeness(context, picture, captured) if picture and captured else None
        return ReplayedPage(len(requests.answered), tuple(requests.missing), likeness)

    async def _rest(self, page: Page) -> None:
        with contextlib.suppress(Error):
            await page.wait_for_load_state("networkidle", timeout=1000 * self._settings.quiet)

    async def _picture(self, session: CDPSession) -> bytes:
        with contextlib.suppress(Error):
            return await take_screenshot(session, "png", self._settings.screenshot_height)
        return b""

    async def _likeness(self, context: BrowserContext, one: bytes, other: bytes) -> float | None:
        blank = await context.new_page()
        with contextlib.suppress(Error):
            return float(await blank.evaluate(COUNT_PIXELS, [b64encode(one).decode(), b64encode(other).decode()]))
        return None
