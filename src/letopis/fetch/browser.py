"""Pages as a browser shows them, beside what the server sent. Needs the extra `browser`.

The browser itself reaches no network: every request it makes is answered
through our own client, so that limits, manners and the rule about private
addresses hold for scripts and pictures as they do for the page.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

from letopis.errors import MissingExtra, Unavailable
from letopis.fetch.client import Client
from letopis.lazy import lazy
from letopis.model.web import Failure, FailureKind, Request, Response

if TYPE_CHECKING:
    from letopis.fetch import chromium as chromium_driver
    from letopis.fetch.chromium import Chromium
else:
    chromium_driver = lazy("letopis.fetch.chromium")

PAGES = 4
"""Pages that are open at the same time."""
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PAGE_TYPES = ("text/html", "application/xhtml+xml")


class BrowserFetcher:
    """Renders pages in one Chromium, which is started for the first of them; `close` ends it.

    For one loop, any number of concurrent calls. Each page has a profile of
    its own, which is forgotten with it.
    """

    def __init__(self, client: Client, *, executable: str = "") -> None:
        self._client = client
        self._executable = executable
        self._chromium: Chromium | None = None
        self._starting = asyncio.Lock()
        self._pages = asyncio.Semaphore(PAGES)

    async def fetch(self, request: Request) -> Response:
        """The page after its scripts have run, within the request's limits; `as_sent` is what they ran on.

        Never raises for what the page does. A page that cannot be rendered is
        a failure, not the raw page: the next look would call that a change.
        What is no page comes as it was sent. Conditions of the request are
        not sent on, since scripts may show news on a document that stays.
        """
        deadline = time.monotonic() + request.limits.total_seconds
        response = await self._client.fetch(request._replace(etag="", last_modified="", unchanged_if=()))
        if not _is_page(response):
            return response
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())), self._pages:
                return await self._render(request, response, deadline)
        except TimeoutError:
            seconds = request.limits.total_seconds
            return _failed(response, FailureKind.TIMEOUT, f"the page was not rendered within {seconds:g} s")
        except (MissingExtra, Unavailable) as error:
            return _failed(response, FailureKind.OTHER, str(error))

    async def close(self) -> None:
        """Ends the browser with everything in it."""
        async with self._starting:
            chromium, self._chromium = self._chromium, None
            if chromium is not None:
                await chromium.close()

    async def _render(self, request: Request, response: Response, deadline: float) -> Response:
        """Once more when the browser itself ended under the page: by a crash, or by the Ctrl-C that ends us soon."""
        require_browser(self._executable)
        chromium = await self._running()
        rendered = await chromium_driver.PageRenderer(self._client, request, response, deadline).run(chromium.browser)
        if rendered.failure is None or await chromium.answers():
            return rendered
        await self._lost(chromium)
        chromium = await self._running()
        return await chromium_driver.PageRenderer(self._client, request, response, deadline).run(chromium.browser)

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
        """Clears away a browser that no longer answers, unless another page has done so."""
        async with self._starting:
            if self._chromium is chromium:
                self._chromium = None
                await chromium.close()


def require_browser(executable: str = "") -> None:
    """MissingExtra when pages cannot be rendered here."""
    if find_spec("playwright") is None:
        raise MissingExtra("rendering needs playwright; install it with: pip install 'letopis[browser]'")
    find_browser(executable)


def find_browser(executable: str = "") -> str:
    """The Chromium that the settings name or that is on the PATH, or MissingExtra."""
    for program in (executable,) if executable else _PROGRAMS:
        path = shutil.which(program)
        if path is not None:
            return path
    if executable:
        raise MissingExtra(f"fetch.chromium names '{executable}', which is no program; name a Chromium")
    raise MissingExtra("no Chromium was found; install the system's package 'chromium', or name one in fetch.chromium")


def _failed(response: Response, kind: FailureKind, words: str) -> Response:
    return response._replace(body=b"", failure=Failure(kind, words))


def _is_page(response: Response) -> bool:
    if response.failure is not None or not 200 <= response.status < 300 or not response.body:
        return False
    return response.header("content-type", "text/html").partition(";")[0].strip().lower() in _PAGE_TYPES
