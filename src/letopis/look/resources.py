"""The requisites of a page: each is requested under the rules of its own host, and kept for the capture set.

A browser requests what the page's scripts need; without one the references in the page and in its styles are followed.
Nothing is requested twice for one set, and what a crawl has just recorded is not requested again.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from letopis.archive import Archive, RecordedCapture
from letopis.config import CaptureSettings
from letopis.errors import BadUrl, Damaged, NotFound
from letopis.fetch.addresses import is_public
from letopis.lazy import lazy
from letopis.look.known import KnownVersion, known_version
from letopis.model import Failure, FailureKind, Limits, Link, LinkType, LoadedPage, Observation, Request, Response
from letopis.urls import normalize
from letopis.urls.request_keys import HttpRequest, request_url

if TYPE_CHECKING:
    from letopis import extract
else:
    # Loading parsers takes longer than most checks, which follow no references.
    extract = lazy("letopis.extract")

AskWeb = Callable[[Request], Awaitable[Response]]
"""Sends a request in the turn of its host, as its robots.txt allows; failures are part of the answer."""
_KEPT_BYTES = 64 * 1024 * 1024
_AT_ONCE = 6
_LEVELS = 3
"""How deep references are followed: a page, its style sheet, what that imports."""
_STYLE_RELATIONS = ("stylesheet",)
_PICTURE_RELATIONS = ("icon", "apple-touch-icon", "mask-icon")
_FONT_ENDINGS = (".woff2", ".woff", ".ttf", ".otf", ".eot")
_PICTURE_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".svg", ".ico")
_KINDS = {
    LinkType.IMG: "images", LinkType.SCRIPT: "scripts", LinkType.MEDIA: "media", LinkType.IFRAME: "frames",
}  # fmt: skip
_NO_ADDRESS = Failure(FailureKind.OTHER, "this is not an address of the web")


class RecentResources:
    """Recorded answers of the last minutes, for the pages that use them next; bounded in bytes. For one loop."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, Response]] = OrderedDict()
        self._bytes = 0

    def keep(self, looks: Sequence[Observation], done: Sequence[RecordedCapture]) -> None:
        """Adds what was recorded: only what is durable is reused, so that every check that a set names exists."""
        for look, recorded in zip(looks, done, strict=True):
            if look.whole is None:
                continue
            times = {member.url: member.time for member in recorded.members}
            for one in look.whole.resources:
                if one.response.url in times:
                    self.add(one.response, times[one.response.url])

    def add(self, response: Response, recorded: datetime) -> None:
        """Stores an answer that is durable, with the time of its check."""
        if self._seconds <= 0 or not response.body or response.status != 200:
            return
        self._drop(response.url)
        self._kept[response.url] = (self._clock(), response._replace(at=recorded))
        self._bytes += len(response.body)
        while self._bytes > _KEPT_BYTES:
            self._drop(next(iter(self._kept)))

    def get(self, url: str) -> Response | None:
        """The answer, unless it is too old."""
        since, response = self._kept.get(url, (0.0, None))
        if response is not None and self._clock() - since > self._seconds:
            self._drop(url)
            return None
        return response

    def _drop(self, url: str) -> None:
        _, response = self._kept.pop(url, (0.0, None))
        self._bytes -= len(response.body) if response is not None else 0


class PageResources:
    """The resources of one page as they are requested; `loaded` has the results."""

    def __init__(
        self, archive: Archive, page: Response, ask: AskWeb, recent: RecentResources, *, private_ok: bool
    ) -> None:
        """A page of the public web must not reach private addresses, whoever requested it."""
        self._archive = archive
        self._ask = ask
        self._recent = recent
        self._own = {page.url, page.final_url, *(hop.url for hop in page.hops)}
        self._private_ok = private_ok and not is_public(page.ip)
        self._resources: list[Response] = []
        self._reused: dict[str, datetime] = {}

    def loaded(self, shown: LoadedPage | None = None) -> LoadedPage:
        """All that came, with the picture and the text of a browser."""
        return (shown or LoadedPage())._replace(resources=tuple(self._resources), reused=tuple(self._reused.items()))

    async def ask(self, request: Request) -> Response:
        """The answer to a request of the page: one that was just recorded, or a new one from the host."""
        url = _address_of(request)
        if not url:
            return Response(request.url, request.url, 0, (), b"", self._archive.clock(), failure=_NO_ADDRESS)
        plain = request.method == "GET"
        kept = self._recent.get(url) if plain else None
        if kept is not None:
            self._reused[url] = kept.at
            return kept
        request = request._replace(private_ok=self._private_ok)
        known = known_version(self._archive, url) if plain and url not in self._own else None
        response = (await self._ask(_with_conditions(request, known)))._replace(url=url)
        whole = self._whole(response, known)
        if whole is None:
            response = whole = (await self._ask(request))._replace(url=url)
        if url not in self._own:
            self._resources.append(response)
        return whole

    def _whole(self, response: Response, known: KnownVersion | None) -> Response | None:
        """The answer with its body, which may be that of the version it refers to; None if that is gone."""
        if known is None or not (response.status == 304 or response.skipped):
            return response
        try:
            stored = self._archive.answers.numbered(response.url, known.number)
        except (Damaged, NotFound):
            return None
        return response._replace(status=200, headers=stored.headers, body=stored.body, skipped=False)


def _address_of(request: Request) -> str:
    """The URL under which the answer to a request is kept; empty if it is not a web URL."""
    fields = {name.lower(): value for name, value in request.headers}
    asked = HttpRequest(request.method, fields.get("content-type", ""), request.body)
    try:
        return normalize(request_url(request.url, asked))
    except BadUrl:
        return ""


def _with_conditions(request: Request, known: KnownVersion | None) -> Request:
    if known is None:
        return request
    tags = known.validators
    return request._replace(
        etag=tags.etag, last_modified=tags.last_modified, unchanged_if=known.unchanged_if(),
        validators_for=known.final_url,
    )  # fmt: skip


async def load_requisites(
    resources: PageResources, page: Response, body: bytes, limits: Limits, settings: CaptureSettings
) -> None:
    """Requests what a page and its styles refer to, within limits of count, bytes and the time of one exchange."""
    await _Requisites(resources, limits, settings).load(page._replace(body=body))


class _Requisites:
    def __init__(self, resources: PageResources, limits: Limits, settings: CaptureSettings) -> None:
        self._resources = resources
        self._limits = limits
        self._settings = settings
        self._met: set[str] = set()
        self._left = settings.bytes
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    async def load(self, page: Response) -> None:
        documents: Sequence[Response] = [page]
        try:
            async with asyncio.timeout(self._limits.total_seconds):
                for _ in range(_LEVELS):
                    wanted = [one for document in documents for one in self._wanted(document)]
                    documents = await asyncio.gather(*(self._one(kind, url) for kind, url in wanted))
        except TimeoutError:
            return

    def _wanted(self, document: Response) -> Iterator[tuple[str, str]]:
        """Kind and URL of the references of a document that were not seen yet."""
        if not document.body or not document.available:
            return
        for link in extract.read_page(document.body, document.final_url, document.headers, mode="basic").links:
            kind = requisite_kind(link)
            if kind not in self._settings.take or link.target in self._met:
                continue
            if len(self._met) >= self._settings.resources:
                return
            self._met.add(link.target)
            yield kind, link.target

    async def _one(self, kind: str, url: str) -> Response:
        async with self._at_once:
            most = self._settings.media_bytes if kind in ("images", "media") else self._limits.max_bytes
            limits = self._limits._replace(max_bytes=max(1, min(self._limits.max_bytes, most, self._left)))
            response = await self._resources.ask(Request(url, limits=limits))
        self._left -= len(response.body)
        is_document = kind in ("styles", "frames")
        return response if is_document else response._replace(body=b"")


def requisite_kind(link: Link) -> str:
    """The name of a reference in the setting `capture.take`; empty for links to other pages."""
    if link.type is LinkType.LINK:
        relations = link.rel.lower().split()
        if any(one in _STYLE_RELATIONS for one in relations):
            return "styles"
        return "images" if any(one in _PICTURE_RELATIONS for one in relations) else ""
    if link.type is LinkType.CSS:
        path = link.target.partition("?")[0].lower()
        return "fonts" if path.endswith(_FONT_ENDINGS) else "images" if path.endswith(_PICTURE_ENDINGS) else "styles"
    return "" if link.rel == "cite" else _KINDS.get(link.type, "")
