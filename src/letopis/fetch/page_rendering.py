"""One page rendered in Chromium as a reader would see it.

Whatever the page does, it ends at its deadline, and all its requests go through `ask`.

It is scrolled through before it is kept, so that what loads only for readers is loaded. Each window of it that is shown
on the way is drawn, which takes as much as a tenth of a capture. A page of which no document, script, style sheet or
answer has a word for what could wait for readers is scrolled to its end at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from letopis.config import CaptureSettings
from letopis.errors import UsageError
from letopis.fetch.browser_tab import BrowserTab, TabView
from letopis.fetch.chromium import Chromium
from letopis.fetch.devtools import DevtoolsError, DevtoolsSession
from letopis.fetch.page_pictures import packed_by_rows, take_screenshot
from letopis.fetch.page_steps import PageStep
from letopis.model.web import HOP_FIELDS, Failure, FailureKind, Headers, LoadedPage, Request, Response, shown_headers

AskResource = Callable[[Request], Awaitable[Response]]
"""Answers a request of a page; failures are in the answer."""

_AT_ONCE = 6
_UNSEEN = 0.1
"""The scale at which a page is drawn while it loads and is scrolled, without a picture; the page does not notice.

A picture has a scale of its own, and so it is drawn once.
"""
_MAX_PART_BYTES = 16 * 1024 * 1024
_MAX_SENT_BYTES = 1024 * 1024
"""Of a body that a page sends."""
_MAX_TEXT = 1024 * 1024
_MAX_WARNINGS = 20
_OUR_FIELDS = frozenset({"cookie", "host", "user-agent", "accept-encoding", "connection", "range"})
_KINDS = {
    "image": "images", "stylesheet": "styles", "font": "fonts", "script": "scripts", "media": "media",
    "texttrack": "media", "document": "frames",
}  # fmt: skip
"""What the setting `capture.take` calls the kinds of requests; all others are `data`.

Scripts of workers come without a kind, as some data does.
"""
_NO_TEXTS = frozenset({"Image", "Font", "Media"})
_FIELD_NAME = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_READ_PAGE = """((most, longest) => {
  const top = document.documentElement, roots = [], inner = [];
  for (const left = [document]; left.length;)
    for (const one of left.pop().querySelectorAll("*")) {
      const root = one.shadowRoot, frame = root ? null : one.contentDocument;
      if (root) roots.push(root);
      if (root || frame) left.push(root ?? frame);
      inner.push(...(root ? root.children : frame?.body ? [frame.body] : []));
    }
  const markup = () => !top ? "" : !roots.length || !top.getHTML ? top.outerHTML
    : top.cloneNode(false).outerHTML.slice(0, -"</html>".length) + top.getHTML({ shadowRoots: roots }) + "</html>";
  const kind = document.doctype ? new XMLSerializer().serializeToString(document.doctype) : "";
  const page = kind + markup();
  if (page.length > most) return [location.href, null, ""];
  const shown = () => [document.body, ...inner.filter((one) => one.checkVisibility())]
    .map((one) => one.innerText ?? "").filter((text) => text.trim()).join("\\n\\n").slice(0, longest);
  return [location.href, page, longest && document.body ? shown() : ""];
})(%d, %d)"""
"""Where it is, the document or null for one that is too large, and the text as shown.

Open shadow trees are in both: as templates with shadowrootmode in the document, and their text behind that of the
page, as is the text of frames that the page may read.
"""
_ICONS = """[...document.querySelectorAll("link[rel~=icon i][href]")].slice(0, 8)
  .forEach((link) => { new Image().src = link.href; });"""
"""A window would show them; a browser without one does not ask for them."""


@dataclass(frozen=True, slots=True)
class RenderJob:
    """A page to be rendered: the request, the answer, the deadline, and the steps on it."""

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
        self._loads: set[asyncio.Task[None]] = set()
        self._begun = False
        self._requests = 0
        self._refused = 0
        self._waits_for_readers = bool(job.steps) or page_may_wait_for_readers(job.response.body)
        self._warnings: list[str] = []

    async def run(self, chromium: Chromium) -> Response:
        """The rendered page, or the failure to render it. TimeoutError comes from the caller's deadline."""
        tab: BrowserTab | None = None
        try:
            width, height = viewport_of(self._settings)
            # Clicks of steps are aimed at what is drawn.
            view = TabView(width, height, 1.0 if self._job.steps else _UNSEEN, self._settings.language)
            tab = await BrowserTab.open(chromium, view, self._intercept)
            rendered = await self._run(tab)
        except (DevtoolsError, UsageError) as error:
            return self._failed(f"the page could not be rendered: {error}")
        finally:
            for load in self._loads:
                load.cancel()
            if tab is not None:
                await tab.close()
        return await _with_packed_picture(rendered)

    async def _run(self, tab: BrowserTab) -> Response:
        """As soon as the page has crashed what shows it, there is nothing left to wait for."""
        capture = asyncio.ensure_future(self._capture(tab))
        has_crashed = False

        def end() -> None:
            nonlocal has_crashed
            has_crashed = True
            capture.cancel()

        tab.on_crash = end
        try:
            return await capture
        except asyncio.CancelledError:
            if not has_crashed:
                raise
            return self._failed("the page could not be rendered: it crashed the browser; it may take all memory")
        finally:
            capture.cancel()

    async def _capture(self, tab: BrowserTab) -> Response:
        await self._load_page(tab)
        await self._take_steps(tab)
        if self._settings.scroll:
            await self._scroll(tab)
        return await self._read(tab)

    async def _load_page(self, tab: BrowserTab) -> None:
        """Waits for the page, then until it rests for a moment; neither for long."""
        error = await tab.goto(self._job.response.final_url, min(self._settings.load, self._seconds()))
        if error:
            self._warn(f"the page did not load to its end: {error}")
        await self._wait_for_quiet(tab)

    async def _wait_for_quiet(self, tab: BrowserTab) -> None:
        if not await tab.rest(min(self._settings.quiet, self._seconds())):
            self._warn("the page was still loading when it was read")

    async def _take_steps(self, tab: BrowserTab) -> None:
        """A step that fails is reported, and the page is recorded as it is then."""
        for step in self._job.steps:
            try:
                await step.take(tab, min(self._settings.load, self._seconds()))
            except DevtoolsError as error:
                self._warn(f"the step '{step.kind} {step.selector}' failed: {error}")
                return
            await self._wait_for_quiet(tab)

    async def _scroll(self, tab: BrowserTab) -> None:
        """Down to the end and up again: readers come by everything, and so does what loads only then.

        A page in which nothing can wait for them is not drawn at each place on the way, which is dear.
        """
        waited = self._waits_for_readers
        await self._scroll_by(tab, _ICONS + (SCROLL if waited else JUMP))
        if self._waits_for_readers and not waited:  # by what came only then, such as a frame
            await self._scroll_by(tab, SCROLL)

    async def _scroll_by(self, tab: BrowserTab, script: str) -> None:
        before = self._requests
        with contextlib.suppress(DevtoolsError, TimeoutError):
            async with asyncio.timeout(min(self._settings.quiet, self._seconds())):
                await tab.evaluate(script)
        if self._requests > before:
            await self._wait_for_quiet(tab)

    def _seconds(self) -> float:
        """For one step, with a moment left for the reading."""
        left = self._job.deadline - time.monotonic()
        return max(0.001, left - min(self._settings.quiet, left / 4))

    async def _read(self, tab: BrowserTab) -> Response:
        """The document, the text and the picture; none larger than allowed."""
        limit = self._job.request.limits.max_bytes
        address, page, text = await self._read_document(tab, limit)
        body = page.encode("utf-8", "replace") if isinstance(page, str) else None
        if not address.startswith(("http://", "https://")):
            return self._failed("the page navigated to an address that cannot be shown")
        if body is None or len(body) > limit:
            return self._failed("the rendered page is larger than the size limit", FailureKind.TOO_LARGE)
        return self._rendered(body, address, LoadedPage(screenshot=await self._screenshot(tab), text=text))

    async def _read_document(self, tab: BrowserTab, limit: int) -> list[Any]:
        """See `_READ_PAGE`. Nothing is read while a script runs, or while scripts lead from document to document."""
        reading = _READ_PAGE % (limit, _MAX_TEXT if self._settings.text else 0)
        try:
            async with asyncio.timeout(min(self._settings.load, self._seconds())):
                return list(await tab.evaluate(reading))
        except (DevtoolsError, TimeoutError):
            await tab.stop_scripts()
            found = list(await tab.evaluate(reading))
            self._warn("the page did not answer, so its scripts were stopped")
            return found

    async def _screenshot(self, tab: BrowserTab) -> bytes:
        """The whole page up to a height; a page that cannot be pictured is kept without."""
        asked, seconds = self._settings, min(self._settings.load, self._seconds())
        if asked.screenshot == "none":
            return b""
        size = asked.screenshot_height, asked.screenshot_scale
        try:
            async with asyncio.timeout(seconds):
                return await take_screenshot(tab.session, asked.screenshot, *size)
        except DevtoolsError as error:
            self._warn(f"no picture was taken: {error}")
        except TimeoutError:
            self._warn(f"no picture was taken: it took longer than {seconds:.3g} s")
        return b""

    def _rendered(self, body: bytes, address: str, shown: LoadedPage) -> Response:
        sent = self._job.response
        moved = address if _changed_place(sent.final_url, address) else sent.final_url
        return sent._replace(
            final_url=moved,
            headers=shown_headers(sent.headers, "text/html; charset=utf-8"),
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

    def _intercept(self, tab: BrowserTab, session: DevtoolsSession) -> None:
        """Every request of the page, a frame or a worker waits for our answer."""

        def begin(asked: dict[str, Any]) -> None:
            load = asyncio.ensure_future(self._answer(tab, session, asked))
            self._loads.add(load)
            load.add_done_callback(self._loads.discard)

        session.on("Fetch.requestPaused", begin)
        session.post("Fetch.enable", {"patterns": [{"urlPattern": "*"}]})

    async def _answer(self, tab: BrowserTab, session: DevtoolsSession, asked: dict[str, Any]) -> None:
        """Gives the browser an answer, or refuses. The page may be gone by then."""
        number = {"requestId": asked["requestId"]}
        tab.begin(asked["requestId"], session)
        response: Response | None = None
        try:
            if _is_preflight(asked["request"]):
                await session.send("Fetch.fulfillRequest", number | _consent(asked["request"]))
                return
            response = await self._answer_to(asked)
            if response is not None and response.status != 0 and response.failure is None:
                await session.send("Fetch.fulfillRequest", number | _fulfilment(asked["request"], response))
                return
            leads_away = asked["resourceType"] == "Document" and asked["frameId"] == tab.frame
            if leads_away and response is not None and response.failure is not None:
                self._warn(f"the page led to {asked['request']['url'][:300]}: {response.failure.message}")
            # Where it may not be led, the page stays as it is: that is our bound, and no fault of the page.
            refusal = "Aborted" if leads_away else "BlockedByClient"
            session.post("Fetch.failRequest", number | {"errorReason": "Failed" if response else refusal})
        except Exception:  # no answer, or one that the browser does not take: the page must not wait for it
            session.post("Fetch.failRequest", number | {"errorReason": "Failed"})
        finally:
            tab.end(asked["requestId"])

    async def _answer_to(self, asked: dict[str, Any]) -> Response | None:
        """None for what a look must not do, or may not do any more."""
        if not self._begun and asked["resourceType"] == "Document":
            self._begun = True
            return self._job.response
        request = self._request(asked["request"], asked["resourceType"].lower())
        if request is None:
            self._refused += 1
            return None
        async with self._at_once:
            response = await self._job.ask(request)
        self._left -= len(response.body)
        if not self._waits_for_readers and asked["resourceType"] not in _NO_TEXTS:
            self._waits_for_readers = may_wait_for_readers(response.body)
        return response

    def _request(self, asked: dict[str, Any], name: str) -> Request | None:
        """What is sent for a request of the page; None for what is not wanted, or too much."""
        self._requests += 1
        kind = _KINDS.get(name, "data")
        wanted = kind in self._settings.take or (name == "other" and "scripts" in self._settings.take)
        body = b"".join(b64decode(part.get("bytes", "")) for part in asked.get("postDataEntries", ()))
        if self._requests > self._settings.resources or self._left <= 0:
            return None
        if not wanted or len(body) > _MAX_SENT_BYTES:
            return None
        most = self._settings.media_bytes if kind in ("images", "media") else _MAX_PART_BYTES
        limits = self._job.request.limits
        seconds = max(0.001, self._job.deadline - time.monotonic())
        limits = limits._replace(
            max_bytes=max(1, min(limits.max_bytes, most, self._left)),
            total_seconds=min(limits.total_seconds, self._settings.load, seconds),
        )
        fields = _fields(asked["headers"])
        private_ok = self._job.request.private_ok
        return Request(asked["url"], asked["method"], fields, limits=limits, private_ok=private_ok, body=body)


async def _with_packed_picture(rendered: Response) -> Response:
    """Packed when the page is closed: it would be drawn again meanwhile, as it was before its picture was taken."""
    loaded = rendered.loaded
    if loaded is None or not loaded.screenshot:
        return rendered
    screenshot = await asyncio.to_thread(packed_by_rows, loaded.screenshot)
    return rendered._replace(loaded=loaded._replace(screenshot=screenshot))


def viewport_of(settings: CaptureSettings) -> tuple[int, int]:
    """Width and height of pages in a browser; UsageError where the setting names none."""
    width, _, height = settings.viewport.partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        raise UsageError(f"capture.viewport is '{settings.viewport}', which is not a size; write 1280x800")
    return max(100, min(int(width), 10_000)), max(100, min(int(height), 10_000))


def _fields(headers: dict[str, str]) -> Headers:
    """The header fields of a request of the page; those that identify Letopis are not taken from it."""
    named = ((name.lower(), value) for name, value in headers.items())
    return tuple(
        (name, value) for name, value in named if name not in _OUR_FIELDS and not name.startswith((":", "sec-", "if-"))
    )


def _is_preflight(asked: dict[str, Any]) -> bool:
    """Whether the browser itself asks if a page may ask another host; scripts cannot set this field."""
    return asked["method"] == "OPTIONS" and "Access-Control-Request-Method" in asked["headers"]


def _consent(asked: dict[str, Any]) -> dict[str, object]:
    """It may: the host itself answers the request that follows."""
    fields = {
        "Access-Control-Allow-Origin": asked["headers"].get("Origin", "*"),
        "Access-Control-Allow-Methods": asked["headers"]["Access-Control-Request-Method"],
        "Access-Control-Allow-Headers": asked["headers"].get("Access-Control-Request-Headers", ""),
        "Access-Control-Allow-Credentials": "true",
    }
    return {"responseCode": 204, "responseHeaders": _listed(fields.items())}


def _fulfilment(asked: dict[str, Any], response: Response) -> dict[str, object]:
    """An answer as the browser takes it; a page may read what other hosts answered it."""
    # One field that browsers pass over would have the whole answer refused here.
    known = [(name, value) for name, value in response.headers if _FIELD_NAME.fullmatch(name)]
    fields = [(name, value) for name, value in known if name.lower() not in HOP_FIELDS]
    origin, place = asked["headers"].get("Origin", ""), urlsplit(asked["url"])
    is_open = any(name.lower() == "access-control-allow-origin" for name, _ in fields)
    if origin and not is_open and origin != f"{place.scheme}://{place.netloc}":
        fields += [("Access-Control-Allow-Origin", origin), ("Access-Control-Allow-Credentials", "true")]
    body = b64encode(response.body).decode()
    return {"responseCode": response.status, "responseHeaders": _listed(fields), "body": body}


def _listed(fields: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in fields]


def _changed_place(sent: str, shown: str) -> bool:
    """Whether scripts led to another document; a browser writes the same address a little differently."""
    return sent.partition("#")[0].rstrip("/") != shown.partition("#")[0].rstrip("/")


_MOST_READ = 256 * 1024
"""Of one text; a longer one may hold anything."""
_WAITS = (
    # What browsers load late, and how scripts that do so name it.
    b"scroll", b"lazy", b"observer", b"content-visibility", b"animation-timeline",
    # Parts of a page that are not found from its document.
    b"attachshadow", b"shadowroot", b"srcdoc", b"contentdocument", b"contentwindow",
    # Asks where it is.
    b"boundingclient", b"clientrects", b"offsettop", b"pageyoffset", b"frompoint", b"checkvisibility",
    # Looks again and again.
    b"interval", b"timeout", b"animationframe", b"idlecallback", b"messagechannel", b"postmessage", b"onmessage",
    # Texts within texts, and another coding of characters.
    b"\\x", b"\\u", b"eval", b"atob", b"fromcharcode", b"fromcodepoint", b"unescape", b"import(", b"script;base64",
    b"\0",
)  # fmt: skip
_MAKES_SCRIPTS = b"Function("
_LOADS_LATE = re.compile(rb"loading\s*=\s*[\"']?lazy(?![\w-])", re.IGNORECASE)
_SIZED_LATE = re.compile(rb"sizes\s*=\s*[\"']?\s*auto", re.IGNORECASE)
"""Only while it loads late, a picture is chosen by the size that it has on the page."""
_SCROLL = """(async () => {
  const step = Math.max(200, innerHeight, %s), pause = () => new Promise(done => setTimeout(done, 50));
  for (let at = step, n = 0; at < document.documentElement.scrollHeight && n < 60; at += step, n++) {
    scrollTo(0, at); await pause();
  }
  scrollTo(0, 0);
})()"""
_LOAD_LATE_PARTS = """for (const one of document.querySelectorAll("[loading=lazy i]")) {
  if (!one.checkVisibility()) continue;
  const said = one.getAttribute("loading");
  one.loading = "eager";
  one.setAttribute("loading", said);
}"""
"""Starts loading what Chromium loads late, and restores the attributes afterwards."""
SCROLL = _SCROLL % 0
"""Window by window."""
JUMP = _LOAD_LATE_PARTS + _SCROLL % "document.documentElement.scrollHeight - 1"
"""To the end at once."""


def page_may_wait_for_readers(page: bytes) -> bool:
    """The same as `may_wait_for_readers` of a page itself; what `JUMP` tells to load does not wait. Pure."""
    if len(page) > _MOST_READ or _SIZED_LATE.search(page):
        return True
    return may_wait_for_readers(_LOADS_LATE.sub(b" ", page))


def may_wait_for_readers(text: bytes) -> bool:
    """Whether something in a text that a page has may load more when its place is scrolled to. Pure."""
    if len(text) > _MOST_READ or _MAKES_SCRIPTS in text:
        return True
    lowered = text.lower()
    return any(word in lowered for word in _WAITS)
