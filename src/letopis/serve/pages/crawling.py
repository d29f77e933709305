"""`/crawl`: how crawling goes, live; owners can add seeds."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, RedirectResponse

from letopis.archive import Archive
from letopis.catalog.accounts import OWN
from letopis.catalog.activity import Activity
from letopis.crawl import CrawlOptions, plant
from letopis.errors import UsageError
from letopis.model import rfc3339, to_millis
from letopis.serve.access import ThePrincipal
from letopis.serve.pages.answering import PageRoute, page
from letopis.serve.pages.forms import form_of
from letopis.serve.pages.remembered import remembered_of
from letopis.serve.shared import TheArchive
from letopis.urls import parse_user

router = APIRouter(route_class=PageRoute)

_HOSTS = 20
_MOST_SEEDS = 100


@router.get("/crawl")
def crawl(request: Request, archive: TheArchive, principal: ThePrincipal, planted: str = "") -> Response:
    """Figures now; a script asks for them again every few seconds."""
    return page(
        request,
        "crawl.html",
        figures=_remembered(request, archive),
        owner=principal.may(OWN),
        planted=planted if planted.isascii() and planted.isdigit() else "",
    )


@router.get("/crawl/figures")
def figures(request: Request, archive: TheArchive) -> Response:
    """The same figures for the script; whoever crawls, in whichever process, is counted."""
    return JSONResponse(_remembered(request, archive), headers={"cache-control": "no-store"})


def _remembered(request: Request, archive: Archive) -> dict[str, Any]:
    return remembered_of(request).get("crawl", 1, lambda: _figures(archive))


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
    seeds = (await form_of(request)).get("seeds", "").split()
    if not 0 < len(seeds) <= _MOST_SEEDS:
        raise UsageError(f"give 1 to {_MOST_SEEDS} addresses, one a line")
    options = CrawlOptions(tuple(parse_user(seed) for seed in seeds))
    await run_in_threadpool(plant, archive, options)
    return RedirectResponse(f"/crawl?planted={len(seeds)}", 303)
