"""`/crawl`: how crawling goes, live; owners can add seeds."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, RedirectResponse
from markupsafe import Markup

from letopis.archive import Archive
from letopis.catalog.accounts import OWN
from letopis.catalog.activity import Activity
from letopis.crawl import CrawlOptions, plant
from letopis.crawl.freshness import freshness
from letopis.errors import LetopisError, UsageError
from letopis.fetch import private_ok
from letopis.jobs.guarding import refuse_private
from letopis.model import rfc3339, to_millis
from letopis.serve.access import principal_of
from letopis.serve.pages.answering import PageRoute, page
from letopis.serve.pages.forms import form_of
from letopis.serve.pages.remembered import remembered_of
from letopis.serve.problems import status_of
from letopis.serve.shared import TheArchive
from letopis.urls import parse_user

router = APIRouter(route_class=PageRoute)

_HOSTS = 20
_MOST_SEEDS = 100


@router.get("/crawl")
def crawl(request: Request, archive: TheArchive, planted: str = "") -> Response:
    """Figures now; a script asks for them again every few seconds."""
    count = int(planted) if planted.isascii() and planted.isdigit() and len(planted) < 5 else 0
    return _shown(request, archive, planted=count)


def _shown(
    request: Request, archive: Archive, status: int = 200, *, planted: int = 0, problem: str = "", seeds: str = ""
) -> Response:
    return page(
        request,
        "crawl.html",
        status,
        figures=_remembered(request, archive),
        owner=principal_of(request).may(OWN),
        planted=planted,
        problem=problem,
        seeds=seeds,
        command=Markup("<code>letopis run</code>"),
    )


@router.get("/crawl/figures")
def figures(request: Request, archive: TheArchive) -> Response:
    """The same figures for the script; whoever crawls, in whichever process, is counted."""
    return JSONResponse(_remembered(request, archive), headers={"cache-control": "no-store"})


def _remembered(request: Request, archive: Archive) -> dict[str, Any]:
    remembered = remembered_of(request)
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
async def plan(request: Request, archive: TheArchive) -> Response:
    """Seeds from the form wait for the daemon; the gate lets only owners in here."""
    form = await form_of(request)
    return await run_in_threadpool(_plan, request, archive, form)


def _plan(request: Request, archive: Archive, form: dict[str, str]) -> Response:
    seeds = form.get("seeds", "").split()
    try:
        if not 0 < len(seeds) <= _MOST_SEEDS:
            raise UsageError(f"give 1 to {_MOST_SEEDS} addresses, one a line")
        options = CrawlOptions(tuple(parse_user(seed) for seed in seeds), revisit_now=bool(form.get("again")))
        if not private_ok(archive.settings.fetch.private, "http"):
            refuse_private(options.seeds)
        plant(archive, options)
    except LetopisError as error:
        return _shown(request, archive, status_of(error), problem=str(error), seeds=form.get("seeds", ""))
    return RedirectResponse(f"/crawl?planted={len(seeds)}", 303)
