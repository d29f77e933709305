"""`/crawl`: how crawling goes, live, and new seeds. `/welcome`: the first watch or crawl of a new archive."""

from __future__ import annotations

import shutil
from typing import Any, NamedTuple

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, RedirectResponse
from markupsafe import Markup

from letopis.api.access import principal_of
from letopis.api.requests import ArchiveDep, http_status_of
from letopis.archive import Archive
from letopis.catalog.activity import Activity
from letopis.crawl import CrawlOptions, enqueue_seeds
from letopis.crawl.freshness import freshness
from letopis.errors import LetopisError, UsageError
from letopis.fetch import private_ok
from letopis.jobs.language.job_file import refuse_private_urls
from letopis.model import parse_duration, rfc3339, to_millis
from letopis.model.rights import OWN
from letopis.monitor.watch import WatchSpec
from letopis.monitor.watch_list import WatchList
from letopis.urls import parse_user_url
from letopis.web.cache import page_cache_of
from letopis.web.pages import PageRoute, form_of, render_page

router = APIRouter(route_class=PageRoute)

_HOSTS = 20
_MOST_SEEDS = 100


@router.get("/crawl")
def crawl(request: Request, archive: ArchiveDep, planted: str = "") -> Response:
    """Figures now; a script asks for them again every few seconds."""
    count = int(planted) if planted.isascii() and planted.isdigit() and len(planted) < 5 else 0
    return _crawl_page(request, archive, planted=count)


def _crawl_page(
    request: Request, archive: Archive, status: int = 200, *, planted: int = 0, problem: str = "", seeds: str = ""
) -> Response:
    return render_page(
        request,
        "crawl.html",
        status,
        figures=_cached_figures(request, archive),
        owner=principal_of(request).may(OWN),
        planted=planted,
        problem=problem,
        seeds=seeds,
        command=Markup("<code>letopis run</code>"),
    )


@router.get("/crawl/figures")
def figures(request: Request, archive: ArchiveDep) -> Response:
    """The same figures for the script; whoever crawls, in whichever process, is counted."""
    return JSONResponse(_cached_figures(request, archive), headers={"cache-control": "no-store"})


def _cached_figures(request: Request, archive: Archive) -> dict[str, Any]:
    remembered = page_cache_of(request)
    return remembered.get("crawl", 1, lambda: _figures(archive)) | {
        "ready": remembered.soon("ready hosts", 2, lambda: _ready(archive)),
        "freshness": remembered.soon("freshness", 30, lambda: freshness(archive)),
    }


def _ready(archive: Archive) -> int:
    return archive.catalog.queues.ready_hosts(to_millis(archive.clock()))


def _figures(archive: Archive) -> dict[str, Any]:
    activity, queues = Activity(archive.catalog.database), archive.catalog.queues
    now = to_millis(archive.clock())
    waiting = queues.waiting()
    return {
        "time": rfc3339(archive.clock()),
        "fetched": activity.fetched(),
        "versions": activity.last_version(),
        "new": waiting.new,
        "again": waiting.again,
        "due": queues.due_again(now),
        "hosts": [row._asdict() for row in activity.busy_hosts(_HOSTS)],
    }


@router.post("/crawl")
async def plan(request: Request, archive: ArchiveDep) -> Response:
    """Seeds from the form wait for the daemon; the gate lets only owners in here."""
    form = await form_of(request)
    return await run_in_threadpool(_plan, request, archive, form)


def _plan(request: Request, archive: Archive, form: dict[str, str]) -> Response:
    seeds = form.get("seeds", "").split()
    try:
        if not 0 < len(seeds) <= _MOST_SEEDS:
            raise UsageError(f"give 1 to {_MOST_SEEDS} addresses, one a line")
        options = CrawlOptions(tuple(parse_user_url(seed) for seed in seeds), revisit_now=bool(form.get("again")))
        if not private_ok(archive.settings.fetch.private, "http"):
            refuse_private_urls(options.seeds)
        enqueue_seeds(archive, options)
    except LetopisError as error:
        return _crawl_page(request, archive, http_status_of(error), problem=str(error), seeds=form.get("seeds", ""))
    return RedirectResponse(f"/crawl?planted={len(seeds)}", 303)


welcome_router = APIRouter(route_class=PageRoute)

_RUN, _OPTION = Markup("<code>letopis run</code>"), Markup("<code>--archive</code>")


class ArchiveLocation(NamedTuple):
    """Where the archive is, and how much room there is."""

    catalogue: str
    packs: str
    free: int
    total: int


@welcome_router.get("/welcome")
def welcome(request: Request, archive: ArchiveDep) -> Response:
    """The last step of the first start; it can be opened again at any time."""
    return _welcome_page(request, archive)


def _welcome_page(request: Request, archive: Archive, status: int = 200, problem: str = "", url: str = "") -> Response:
    return render_page(
        request,
        "welcome.html",
        status,
        place=_location(archive),
        public=archive.settings.serve.public,
        problem=problem,
        url=url,
        command=_RUN,
        option=_OPTION,
    )


def _location(archive: Archive) -> ArchiveLocation:
    disk = shutil.disk_usage(archive.folder)
    remote = archive.catalog.database.dialect.name != "sqlite"
    packs = archive.settings.store.url or str(archive.folder / "packs")
    return ArchiveLocation("PostgreSQL" if remote else str(archive.folder), packs, disk.free, disk.total)


@welcome_router.post("/welcome")
async def begin(request: Request, archive: ArchiveDep) -> Response:
    """The first watch, or the first site to crawl."""
    form = await form_of(request)
    return await run_in_threadpool(_begin, request, archive, form)


def _begin(request: Request, archive: Archive, form: dict[str, str]) -> Response:
    try:
        url = parse_user_url(form.get("url", ""))
        if form.get("what") == "crawl":
            return _crawl(archive, url)
        every = parse_duration(form.get("every") or "1h")
        WatchList(archive).add([url], WatchSpec(every=every, origin="http"))
    except LetopisError as error:
        return _welcome_page(request, archive, 422, str(error), form.get("url", ""))
    return RedirectResponse("/watches?done=added", 303)


def _crawl(archive: Archive, url: str) -> Response:
    if not private_ok(archive.settings.fetch.private, "http"):
        refuse_private_urls((url,))
    enqueue_seeds(archive, CrawlOptions((url,)))
    return RedirectResponse("/crawl?planted=1", 303)
