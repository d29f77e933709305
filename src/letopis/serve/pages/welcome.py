"""`/welcome`: the first start, after the owner is made: where the archive is, and what to look at first."""

from __future__ import annotations

import shutil
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse
from markupsafe import Markup

from letopis.archive import Archive
from letopis.crawl import CrawlOptions, plant
from letopis.errors import LetopisError
from letopis.fetch import private_ok
from letopis.jobs.guarding import refuse_private
from letopis.model import parse_duration
from letopis.monitor.book import WatchBook
from letopis.monitor.watch import WatchSpec
from letopis.serve.pages.answering import PageRoute, page
from letopis.serve.pages.forms import form_of
from letopis.serve.shared import TheArchive
from letopis.urls import parse_user

router = APIRouter(route_class=PageRoute)

_RUN, _OPTION = Markup("<code>letopis run</code>"), Markup("<code>--archive</code>")


class Place(NamedTuple):
    """Where the archive is, and how much room there is."""

    catalogue: str
    packs: str
    free: int
    total: int


@router.get("/welcome")
def welcome(request: Request, archive: TheArchive) -> Response:
    """The last step of the first start; it can be opened again at any time."""
    return _shown(request, archive)


def _shown(request: Request, archive: Archive, status: int = 200, problem: str = "", url: str = "") -> Response:
    return page(
        request,
        "welcome.html",
        status,
        place=_place(archive),
        public=archive.settings.serve.public,
        problem=problem,
        url=url,
        command=_RUN,
        option=_OPTION,
    )


def _place(archive: Archive) -> Place:
    disk = shutil.disk_usage(archive.folder)
    remote = archive.catalog.database.dialect.name != "sqlite"
    packs = archive.settings.store.url or str(archive.folder / "packs")
    return Place("PostgreSQL" if remote else str(archive.folder), packs, disk.free, disk.total)


@router.post("/welcome")
async def begin(request: Request, archive: TheArchive) -> Response:
    """The first watch, or the first site to crawl."""
    form = await form_of(request)
    return await run_in_threadpool(_begin, request, archive, form)


def _begin(request: Request, archive: Archive, form: dict[str, str]) -> Response:
    try:
        url = parse_user(form.get("url", ""))
        if form.get("what") == "crawl":
            return _crawl(archive, url)
        every = parse_duration(form.get("every") or "1h")
        WatchBook(archive).add([url], WatchSpec(every=every, origin="http"))
    except LetopisError as error:
        return _shown(request, archive, 422, str(error), form.get("url", ""))
    return RedirectResponse("/watches?done=added", 303)


def _crawl(archive: Archive, url: str) -> Response:
    if not private_ok(archive.settings.fetch.private, "http"):
        refuse_private((url,))
    plant(archive, CrawlOptions((url,)))
    return RedirectResponse("/crawl?planted=1", 303)
