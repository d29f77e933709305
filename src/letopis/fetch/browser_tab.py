"""One page in a Chromium, in a separate profile that is removed with it.

Whatever belongs to the page, its frames in other processes and its workers, waits at its start until its requests are
led to whoever answers for the page. Dialogs are dismissed; downloads, service workers and further windows are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from math import inf
from typing import Any

from letopis.fetch.chromium import HOLD_NEW_TARGETS, Chromium, close_target
from letopis.fetch.devtools import GONE, DevtoolsError, DevtoolsSession
from letopis.tuples import NamedTuple

_QUIET_SECONDS = 0.5
"""Without a request a page is quiet."""
_OPENING_SECONDS = 60.0
_CLOSING_SECONDS = 5.0
_WORLD = "letopis"
_FONTS = {
    "standard": "Times New Roman", "fixed": "Monospace", "serif": "Times New Roman", "sansSerif": "Arial",
    "cursive": "Comic Sans MS", "fantasy": "Impact",
}  # fmt: skip
"""What Chromium with a window has."""

Prepare = Callable[["BrowserTab", DevtoolsSession], None]
"""Has the requests of one target of a page led to whoever answers or counts them."""


class TabView(NamedTuple):
    """How large a page is, at which scale it is drawn, and which language it is requested in."""

    width: int
    height: int
    scale: float = 1.0
    language: str = ""


class BrowserTab:
    """One page; `open` and `close` it. For one loop."""

    def __init__(self, chromium: Chromium, context: str, view: TabView, prepare: Prepare) -> None:
        self._chromium = chromium
        self._context = context
        self._view = view
        self._prepare = prepare
        self._ready: asyncio.Future[DevtoolsSession] = asyncio.get_running_loop().create_future()
        self.frame = ""
        """Of the page itself, in whatever document."""
        self._has_document = False
        self._loaded = asyncio.Event()
        self._open: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._rests_since = asyncio.get_running_loop().time()
        self.on_crash: Callable[[], None] = lambda: None
        """Called when what shows the page has ended."""

    @classmethod
    async def open(cls, chromium: Chromium, view: TabView, prepare: Prepare) -> BrowserTab:
        """An empty page, or DevtoolsError."""
        browser = chromium.devtools.browser
        context = (await browser.send("Target.createBrowserContext", {"disposeOnDetach": True}))["browserContextId"]
        tab = chromium.tabs[context] = cls(chromium, context, view, prepare)
        try:
            async with asyncio.timeout(_OPENING_SECONDS):
                await tab._begin()
        except BaseException as error:
            await tab.close()
            if isinstance(error, TimeoutError):
                raise DevtoolsError("the browser opened no page") from None
            raise
        return tab

    async def _begin(self) -> None:
        browser, context = self._chromium.devtools.browser, {"browserContextId": self._context}
        browser.post("Browser.setDownloadBehavior", context | {"behavior": "deny"})
        size = {"width": self._view.width, "height": self._view.height}
        self.frame = (await browser.send("Target.createTarget", context | size | {"url": "about:blank"}))["targetId"]
        # The answer to a second call shows that all before it is done: what comes too late for a document is lost.
        await (await self._ready).send("Runtime.runIfWaitingForDebugger")

    async def close(self) -> None:
        """Removes it. A page that hangs must not block others; its process ends with the browser."""
        self._chromium.tabs.pop(self._context, None)
        self._ready.cancel()
        with contextlib.suppress(DevtoolsError, TimeoutError):
            async with asyncio.timeout(_CLOSING_SECONDS):
                await self._chromium.devtools.browser.send(
                    "Target.disposeBrowserContext", {"browserContextId": self._context}
                )

    @property
    def session(self) -> DevtoolsSession:
        """Of the page itself."""
        return self._ready.result()

    def enter(self, session: DevtoolsSession, target: dict[str, Any]) -> None:
        """Something of the page begins, and waits until it may go on."""
        kind = target["type"]
        if kind == "service_worker" or (kind == "page" and self._ready.done()):
            session.post("Runtime.runIfWaitingForDebugger")  # the opener waits for it
            close_target(self._chromium.devtools.browser, target)
            return
        session.on("Target.attachedToTarget", self._attached)
        session.on("Target.detachedFromTarget", lambda event: self._left(event["sessionId"]))
        self._prepare(self, session)
        session.post("Target.setAutoAttach", HOLD_NEW_TARGETS)
        if kind == "page":
            self._enter_page(session)
        if kind in ("page", "iframe"):
            self._set_language(session)
        session.post("Runtime.runIfWaitingForDebugger")
        if kind == "page":
            self._ready.set_result(session)

    def _attached(self, event: dict[str, Any]) -> None:
        self.enter(self._chromium.devtools.session(event["sessionId"]), event["targetInfo"])

    def _enter_page(self, session: DevtoolsSession) -> None:
        view = self._view

        def dismiss(event: dict[str, Any]) -> None:
            session.post("Page.handleJavaScriptDialog", {"accept": event.get("type") == "beforeunload"})

        session.on("Page.javascriptDialogOpening", dismiss)
        session.on("Page.loadEventFired", lambda event: self._loaded.set())
        session.on("Page.frameNavigated", self._navigated)
        session.on("Page.frameStoppedLoading", self._stopped)
        session.on("Inspector.targetCrashed", lambda event: self.on_crash())
        session.on(GONE, lambda event: self.on_crash())
        session.post("Page.enable")
        size = {"width": view.width, "height": view.height, "screenWidth": view.width, "screenHeight": view.height}
        metrics = size | {"deviceScaleFactor": 1, "mobile": False, "scale": view.scale}
        session.post("Emulation.setDeviceMetricsOverride", metrics | {"dontSetVisibleSize": True})
        # Chromium draws all that is visible, also where a page that is drawn small leaves it empty.
        drawn = {"width": max(1, round(view.width * view.scale)), "height": max(1, round(view.height * view.scale))}
        session.post("Emulation.setVisibleSize", drawn)
        session.post("Emulation.setFocusEmulationEnabled", {"enabled": True})
        session.post("Page.setFontFamilies", {"fontFamilies": _FONTS})

    def _navigated(self, event: dict[str, Any]) -> None:
        self._has_document = self._has_document or event["frame"]["id"] == self.frame

    def _stopped(self, event: dict[str, Any]) -> None:
        """A document that its scripts stop, or lead to what is none, such as a download, never says that it loaded."""
        if event["frameId"] == self.frame and self._has_document:
            self._loaded.set()

    def _set_language(self, session: DevtoolsSession) -> None:
        if language := self._view.language:
            session.post("Emulation.setUserAgentOverride", {"userAgent": "", "acceptLanguage": language})
            session.post("Emulation.setLocaleOverride", {"locale": language})

    # What the page asks for

    def begin(self, request: str, session: DevtoolsSession) -> None:
        """A request is under way."""
        self._open[request] = session.id
        self._changed.set()

    def end(self, request: str) -> None:
        """It is answered, or no longer awaited."""
        if self._open.pop(request, None) is not None:
            self._rests_since = asyncio.get_running_loop().time()
            self._changed.set()

    def _left(self, session: str) -> None:
        """A frame or a worker is gone, with its requests."""
        for request in [request for request, asker in self._open.items() if asker == session]:
            self.end(request)

    async def rest(self, seconds: float) -> bool:
        """Waits until the page has sent no request for a moment; whether that came in time."""
        try:
            async with asyncio.timeout(seconds):
                while (left := self._seconds_to_rest()) > 0:
                    self._changed.clear()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(left if left < inf else None):
                            await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _seconds_to_rest(self) -> float:
        return inf if self._open else self._rests_since + _QUIET_SECONDS - asyncio.get_running_loop().time()

    # What is done with the page

    async def goto(self, url: str, seconds: float) -> str:
        """Opens an address and waits until it is loaded, with or without an error; the error, or nothing."""
        self._loaded.clear()
        self._has_document = False
        try:
            async with asyncio.timeout(seconds):
                found = await self.session.send("Page.navigate", {"url": url, "transitionType": "typed"})
                if found.get("errorText"):
                    return str(found["errorText"])
                await self._loaded.wait()
        except TimeoutError:
            return f"it took longer than {seconds:g} s"
        return ""

    async def stop_scripts(self) -> None:
        """Stops all scripts of the page, also one that would never end; those of Letopis still run."""
        await self.session.send("Emulation.setScriptExecutionDisabled", {"value": True})
        await self.session.send("Runtime.terminateExecution")

    async def evaluate(self, expression: str) -> Any:
        """A value from an isolated world, which the scripts of the page cannot change."""
        world = await self.session.send("Page.createIsolatedWorld", {"frameId": self.frame, "worldName": _WORLD})
        asked = {"expression": expression, "contextId": world["executionContextId"]}
        found = await self.session.send("Runtime.evaluate", asked | {"returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in found:
            thrown = found["exceptionDetails"].get("exception", {})
            raise DevtoolsError(str(thrown.get("description") or "a script failed").splitlines()[0])
        return found["result"].get("value")

    async def call(self, function: str, *arguments: object) -> Any:
        """The result of a function in the same world."""
        return await self.evaluate(f"({function})(...{json.dumps(arguments)})")
