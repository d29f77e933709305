"""A page of an archive as a browser replays it: what it asked for and what was answered, and how it looks.

The browser reaches the replay of the archive and nothing else, and each page has its time.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from letopis.config import CaptureSettings
from letopis.fetch.browser_tab import BrowserTab, TabView
from letopis.fetch.chromium import Chromium
from letopis.fetch.devtools import DevtoolsError, DevtoolsSession
from letopis.fetch.page_pictures import COUNT_PIXELS, take_screenshot, width_of
from letopis.fetch.page_rendering import SCROLL, viewport_of

_MOST_REQUESTS = 5000
_ICON = "/favicon.ico"
_OURS = "/.letopis/"
"""The path of the replay's own files."""
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
    _asked: dict[str, dict[str, Any]] = field(default_factory=dict)

    def follow(self, tab: BrowserTab, session: DevtoolsSession) -> None:
        """From now on what the page, a frame or a worker asks for is counted."""

        def begin(event: dict[str, Any]) -> None:
            if "redirectResponse" in event:
                self._finish(event["requestId"], event["redirectResponse"])
            self._asked[event["requestId"]] = event["request"]
            tab.begin(event["requestId"], session)

        def end(event: dict[str, Any]) -> None:
            self._asked.pop(event["requestId"], None)
            tab.end(event["requestId"])

        def fail(event: dict[str, Any]) -> None:
            self._fail(event["requestId"])
            end(event)

        session.on("Network.requestWillBeSent", begin)
        session.on("Network.responseReceived", lambda event: self._finish(event["requestId"], event["response"]))
        session.on("Network.loadingFinished", end)
        session.on("Network.loadingFailed", fail)
        session.post("Network.enable")

    def _finish(self, number: str, response: dict[str, Any]) -> None:
        """An answer came; a 404 with our mark says that nothing was captured."""
        fields = {name.lower(): value for name, value in response["headers"].items()}
        lost, place = _MARK.search(fields.get("server-timing", "")), urlsplit(response["url"])
        if place.scheme == "data" or place.hostname == self.origin or place.path.startswith(_OURS):
            return
        if lost is None:
            self._add(self.answered, f"{self._asked.get(number, {}).get('method', 'GET')} {response['url']}")
        elif urlsplit(lost[1]).path != _ICON:
            # A browser requests this icon automatically, whether a page has one or not.
            self._add(self.missing, lost[1])

    def _fail(self, number: str) -> None:
        """No answer came: the policy kept it from the live web. What a page stops itself is not missing."""
        url = self._asked.get(number, {}).get("url", "")
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and not (parts.hostname or "").endswith(self.origin):
            self._add(self.missing, url)

    def _add(self, where: dict[str, None], name: str) -> None:
        if len(where) < _MOST_REQUESTS:
            where[name.partition("#")[0]] = None


class ReplayVisitor:
    """Opens pages of the replay origin `base` one after the other; pictures have the size that captures have."""

    def __init__(self, chromium: Chromium, base: str, settings: CaptureSettings) -> None:
        self._chromium = chromium
        self._host = urlsplit(base).hostname or ""
        self._settings = settings

    async def visit(self, address: str, captured: bytes = b"") -> ReplayedPage:
        """Opens a page as a reader would: waits for quiet, scrolls, waits; then compares it with a picture."""
        view = TabView(*viewport_of(self._settings), language=self._settings.language)
        requests = _PageRequests(self._host)
        tab = await BrowserTab.open(self._chromium, view, requests.follow)
        try:
            await tab.goto(address, self._settings.load)
            await tab.rest(self._settings.quiet)
            with contextlib.suppress(DevtoolsError, TimeoutError):
                async with asyncio.timeout(self._settings.quiet):
                    await tab.evaluate(SCROLL)
            await tab.rest(self._settings.quiet)
            picture = await self._picture(tab, self._scale_of(captured, view.width))
        finally:
            await tab.close()
        likeness = await self._likeness(view, picture, captured) if picture and captured else None
        return ReplayedPage(len(requests.answered), tuple(requests.missing), likeness)

    def _scale_of(self, captured: bytes, width: int) -> float:
        """Pictures are as large as the page, or as the setting says."""
        scale = self._settings.screenshot_scale
        return 1.0 if width_of(captured) - scale * width > (1 - scale) * width / 2 else scale

    async def _picture(self, tab: BrowserTab, scale: float) -> bytes:
        with contextlib.suppress(DevtoolsError, TimeoutError):
            async with asyncio.timeout(self._settings.load):
                return await take_screenshot(tab.session, "png", self._settings.screenshot_height, scale)
        return b""

    async def _likeness(self, view: TabView, one: bytes, other: bytes) -> float | None:
        """In a separate page, which no page of an archive can influence."""
        blank = await BrowserTab.open(self._chromium, view, lambda tab, session: None)
        try:
            with contextlib.suppress(DevtoolsError):
                return float(await blank.call(COUNT_PIXELS, [b64encode(one).decode(), b64encode(other).decode()]))
            return None
        finally:
            await blank.close()
