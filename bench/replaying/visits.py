"""One visit of a page in Chromium: what it asked for and got, what its scripts complained of, and how it looked."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import BrowserContext, Error, Frame, Page, Response

from bench.replaying.warc_files import key_of
from letopis.fetch.page_rendering import SCROLL
from letopis.urls.request_keys import HttpRequest, request_url

WIDTH, HEIGHT = 1280, 1600
_LOAD = 120_000
_QUIET = 30_000
"""Milliseconds that a busy machine may need; whatever behaves is there much sooner."""
_REST = 1_000
_PLACES = re.compile(r"(?:https?|blob|data):[^\s'\")]+|\d+|_____WB\$wombat\$\w+")
Original = Callable[[str], str | None]
"""The address of which one of a player's is the replay; None for what the player has for itself."""


@dataclass
class Visit:
    """What happened on a page."""

    found: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    errors: Counter[str] = field(default_factory=Counter)
    picture: bytes = b""
    note: str = ""


class Visitor:
    """Opens pages with one player and listens."""

    def __init__(self, context: BrowserContext, original: Original) -> None:
        self._context = context
        self._original = original
        self._size = {"width": WIDTH, "height": HEIGHT}

    def visit(self, address: str, shown: Callable[[Page], Frame]) -> Visit:
        """Opens an address and waits until what `shown` names is quiet; its frame is brought to the common size."""
        for _ in range(3):
            visit, tab = Visit(), self._context.new_page()
            try:
                tab.set_viewport_size(self._size)  # type: ignore[arg-type]
                self._listen(tab, visit)
                frame = self._opened(tab, address, shown)
                if not self._fits(tab, frame):
                    continue
                visit.picture = self._picture(tab, frame)
            except Error as error:
                visit.note = str(error).splitlines()[0]
                continue
            finally:
                self._context.remove_listener("weberror", self._on_error)
                tab.close()
            break
        return visit

    def _listen(self, tab: Page, visit: Visit) -> None:
        self._on_error = lambda one: visit.errors.update([_PLACES.sub("*", str(one.error)).strip()[:200]])
        self._context.on("weberror", self._on_error)
        tab.on("response", lambda response: self._took(response, visit))

    def _took(self, response: Response, visit: Visit) -> None:
        with suppress(Error):
            asked = response.request
            url = self._original(response.url)
            if url is None or asked.method == "OPTIONS":
                return
            sent = HttpRequest(asked.method, asked.headers.get("content-type", ""), asked.post_data_buffer or b"")
            key = key_of(request_url(url, sent))
            (visit.found if response.status < 400 else visit.lost).add(key)

    def _opened(self, tab: Page, address: str, shown: Callable[[Page], Frame]) -> Frame:
        with suppress(Error):
            tab.goto(address, wait_until="load", timeout=_LOAD)
        frame = shown(tab)
        with suppress(Error):
            frame.wait_for_load_state("load", timeout=_LOAD)
        with suppress(Error):
            tab.wait_for_load_state("networkidle", timeout=_QUIET)
        with suppress(Error):
            frame.evaluate(SCROLL)
            tab.wait_for_load_state("networkidle", timeout=_QUIET)
        tab.wait_for_timeout(_REST)
        return frame

    def _fits(self, tab: Page, frame: Frame) -> bool:
        """Whether the page has the common size; else the next one gets what is left for it."""
        width, height = frame.evaluate("[innerWidth, innerHeight]")
        if (width, height) == (WIDTH, HEIGHT):
            return True
        self._size["width"] += WIDTH - width
        self._size["height"] += HEIGHT - height
        return False

    def _picture(self, tab: Page, frame: Frame) -> bytes:
        options: dict[str, Any] = {"animations": "disabled", "caret": "hide", "timeout": _LOAD}
        if frame == tab.main_frame:
            return tab.screenshot(**options)
        box = frame.frame_element().bounding_box()
        assert box is not None
        return tab.screenshot(clip={"x": box["x"], "y": box["y"], "width": WIDTH, "height": HEIGHT}, **options)


def frame_at(match: Callable[[str], bool], seconds: float = 60.0) -> Callable[[Page], Frame]:
    """Waits for the frame whose address fits."""

    def shown(tab: Page) -> Frame:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = next((frame for frame in tab.frames if match(frame.url)), None)
            if found is not None:
                return found
            tab.wait_for_timeout(100)
        raise Error(f"no page was shown: {[frame.url for frame in tab.frames]}")

    return shown
