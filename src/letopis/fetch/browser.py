"""Pages as a browser shows them, in addition to what the server sent. Needs a Chromium.

The browser itself reaches no network: every request it makes is answered through our own client, so that limits,
manners and the rule about private addresses hold for scripts and pictures as they do for the page.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from letopis.config import CaptureSettings
from letopis.errors import MissingExtra, Unavailable
from letopis.fetch.client import Client
from letopis.lazy import lazy
from letopis.model.web import Failure, FailureKind, Request, Response

if TYPE_CHECKING:
    import shutil

    from letopis.fetch import chromium as chromium_driver
    from letopis.fetch import page_rendering
    from letopis.fetch.chromium import Chromium
    from letopis.fetch.page_rendering import AskResource
    from letopis.fetch.page_steps import PageStep
else:
    shutil = lazy("shutil")
    chromium_driver = lazy("letopis.fetch.chromium")
    page_rendering = lazy("letopis.fetch.page_rendering")

_PAGES_OF_ONE = 500
"""Pages after which a browser is replaced by a new one, which ends its memory leaks."""
_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""The one without a window first: it shows the same pages for half of the processor time."""
_PAGE_TYPES = ("text/html", "application/xhtml+xml")


class BrowserFetcher:
    """Renders pages in one Chromium, which is started for the first of them; `close` ends it.

    For one loop, any number of concurrent calls. Each page has a separate profile, which is removed with it.
    """

    def __init__(self, client: Client, *, executable: str = "", settings: CaptureSettings | None = None) -> None:
        self._client = client
        self._executable = executable
        self._settings = settings or CaptureSettings()
        self._chromium: Chromium | None = None
        self._starting = asyncio.Lock()
        self._pages = asyncio.Semaphore(max(1, self._settings.pages))
        self._open = 0
        self._shown = 0

    async def fetch(self, request: Request) -> Response:
        """The page after its scripts have run, within the request's limits; `as_sent` is what they ran on.

        Never raises for what the page does. A page that cannot be rendered is a failure, not the raw page: the next
        look would call that a change. What is no page comes as it was sent. Conditions of the request are not sent on,
        since scripts may show news on a document that stays.
        """
        response = await self._client.fetch(request._replace(etag="", last_modified="", unchanged_if=()))
        return await self.render(request, response, self._client.fetch)

    async def render(
        self, request: Request, response: Response, ask: AskResource, steps: tuple[PageStep, ...] = ()
    ) -> Response:
        """The same of an answer that is there already; `ask` answers for the page's own requests.

        The time limit begins when one of the pages is free.
        """
        if not _is_page(response):
            return response
        seconds = request.limits.total_seconds
        try:
            require_browser(self._executable)
            async with self._pages, asyncio.timeout(seconds):
                deadline = time.monotonic() + seconds
                return await self._render(page_rendering.RenderJob(request, response, deadline, ask, steps))
        except TimeoutError:
            return _failed(response, FailureKind.TIMEOUT, f"the page was not rendered within {seconds:g} s")
        except (MissingExtra, Unavailable) as error:
            return _failed(response, FailureKind.OTHER, str(error))

    async def close(self) -> None:
        """Ends the browser with everything in it."""
        async with self._starting:
            chromium, self._chromium = self._chromium, None
            if chromium is not None:
                await chromium.close()

    async def _render(self, job: page_rendering.RenderJob) -> Response:
        """Once more when the browser itself ended under the page: by a crash, or by the Ctrl-C that ends us soon."""
        chromium = await self._running()
        self._open += 1
        try:
            rendered = await page_rendering.PageRenderer(job, self._settings).run(chromium)
            if rendered.failure is None or await chromium.answers():
                return rendered
            await self._lost(chromium)
            chromium = await self._running()
            return await page_rendering.PageRenderer(job, self._settings).run(chromium)
        finally:
            self._open -= 1
            self._shown += 1
            if self._shown >= _PAGES_OF_ONE and not self._open:
                self._shown = 0
                await self._lost(chromium)

    async def _running(self) -> Chromium:
        async with self._starting:
            if self._chromium is None:
                program = find_browser(self._executable)
                try:
                    self._chromium = await chromium_driver.Chromium.start(program)
                except Unavailable:  # what ends a browser under its page can end it before
                    self._chromium = await chromium_driver.Chromium.start(program)
            return self._chromium

    async def _lost(self, chromium: Chromium) -> None:
        """Removes a browser that no longer answers, unless another page has done so."""
        async with self._starting:
            if self._chromium is chromium:
                self._chromium = None
                await chromium.close()


def require_browser(executable: str = "") -> None:
    """MissingExtra when pages cannot be rendered here."""
    find_browser(executable)


def find_browser(executable: str = "") -> str:
    """The Chromium that the settings name or that is on the PATH, or MissingExtra."""
    for program in (executable,) if executable else _PROGRAMS:
        path = shutil.which(program)
        if path is not None:
            return path
    if executable:
        raise MissingExtra(f"fetch.chromium names '{executable}', which is not a program; name a Chromium")
    raise MissingExtra(
        "no Chromium was found; install the system's package 'chromium-headless-shell' or 'chromium', or name one in "
        "fetch.chromium"
    )


def _failed(response: Response, kind: FailureKind, words: str) -> Response:
    return response._replace(body=b"", failure=Failure(kind, words), as_sent=response)


def _is_page(response: Response) -> bool:
    if response.failure is not None or not 200 <= response.status < 300 or not response.body:
        return False
    if response.header("content-disposition").strip().lower().startswith("attachment"):
        return False  # browsers offer it as a file
    return response.header("content-type", "text/html").partition(";")[0].strip().lower() in _PAGE_TYPES
