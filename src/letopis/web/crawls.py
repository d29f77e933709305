"""`/crawl`: how the standing crawl goes, live. `/welcome`: the first watch or crawl of a new archive."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from markupsafe import Markup

from letopis.api.access import principal_of
from letopis.api.door import context_of
from letopis.api.requests import ArchiveDep
from letopis.archive import Archive
from letopis.archive.activity import is_checked, recent_versions
from letopis.errors import LetopisError, shell_words
from letopis.model import parse_time
from letopis.model.rights import OWN
from letopis.operations import bind, json_value
from letopis.operations.crawls import (
    CrawlStatusQuery,
    DropSiteCommand,
    EnqueueSeedsCommand,
    crawl_status,
    drop_site,
    enqueue_seeds,
)
from letopis.operations.watches import AddWatches, add_watches
from letopis.tuples import NamedTuple
from letopis.urls import parse_user_url
from letopis.web.cache import page_cache_of
from letopis.web.jobs import open_runs
from letopis.web.languages import translatable
from letopis.web.pages import FormDep, PageRoute, form_status, render_page
from letopis.web.tables import TableAddress, TableColumn, make_table, table_download

router = APIRouter(route_class=PageRoute)

_HOSTS, _LISTED_HOSTS = 20, 200
"""Hosts whose figures move, and those that the table has at most."""
HOST_COLUMNS = (
    TableColumn("name", translatable("Host"), "site"),
    TableColumn("fetched", translatable("Fetches"), "number"),
    TableColumn("waiting", translatable("Never visited"), "number", aside=True),
    TableColumn("due", translatable("Overdue"), "number"),
    TableColumn("failures", translatable("Failures in a row"), "number", aside=True),
    TableColumn("crawl_delay", translatable("Requested pause"), "custom", aside=True),
    TableColumn("ip", translatable("IP address"), hidden=True),
    TableColumn("visits", translatable("Actions"), "actions"),
)
_LATEST = 6
_FLAGS = ("requisites", "browser", "revisit_now")


@router.get("/crawl")
def crawl(request: Request, archive: ArchiveDep, queued: str = "", dropped: str = "") -> Response:
    """Figures now; a script asks for them again every few seconds."""
    count = int(queued) if queued.isascii() and queued.isdigit() and len(queued) < 10 else None
    return _crawl_page(request, archive, queued=count, dropped=dropped[:300])


def _crawl_page(
    request: Request, archive: Archive, status: int = 200, *, queued: int | None = None, dropped: str = "",
    problem: str = "",
) -> Response:  # fmt: skip
    context, owner, figures = context_of(request), principal_of(request).may(OWN), _cached_figures(request)
    found = page_cache_of(request).get(
        "crawl hosts", 2, lambda: crawl_status(context, CrawlStatusQuery(hosts=_LISTED_HOSTS, quick=True)).value.hosts
    )
    address = TableAddress("/crawl", {n: v for n, v in request.query_params.items() if n not in ("queued", "dropped")})
    unasked = figures["new"] - sum(row.waiting for row in found) if len(found) < _LISTED_HOSTS else 0
    hosts = make_table(address, HOST_COLUMNS if owner else HOST_COLUMNS[:-1], found)
    return table_download(hosts, "hosts") or render_page(
        request, "crawl.html", status, figures=figures, hosts=hosts, listed=_LISTED_HOSTS, unasked=unasked,
        soon=[(row["url"], parse_time(row["due"], archive.clock())) for row in figures["next"]],
        latest=recent_versions(archive, _LATEST), runs=open_runs(context),
        queued=queued, dropped=dropped, problem=problem, works=archive.settings.serve.work,
        command=Markup("<code>letopis run</code>"),
    )  # fmt: skip


@router.get("/crawl/figures")
def figures(request: Request) -> Response:
    """The same figures for the script; whoever crawls, in whichever process, is counted."""
    return JSONResponse(_cached_figures(request), headers={"cache-control": "no-store"})


def _cached_figures(request: Request) -> dict[str, Any]:
    """What costs more on a large archive is counted less often."""
    cache, context = page_cache_of(request), context_of(request)
    found = cache.get("crawl", 1, lambda: crawl_status(context, CrawlStatusQuery(hosts=_HOSTS, quick=True)).value)
    whole = cache.soon("whole crawl", 10, lambda: crawl_status(context, CrawlStatusQuery(hosts=0)).value)
    status: dict[str, Any] = json_value(found)
    return status if whole is None else status | {"ready": whole.ready, "freshness": whole.freshness}


@router.post("/crawl")
def enqueue(request: Request, archive: ArchiveDep, form: FormDep) -> Response:
    """Seeds from the form, or all pages of a host, wait for the daemon; the gate lets only owners in here."""
    if host := form.get("host", ""):
        scheme = "https" if is_checked(archive, f"https://{host}/") else "http"
        form = {**form, "seeds": f"{scheme}://{host}/", "requisites": "on", "revisit_now": "on"}
    try:
        if host and form.get("action") == "drop":
            drop_site(context_of(request), DropSiteCommand(site=host))
            return RedirectResponse("/crawl?dropped=" + quote(host), 303)
        queued = _queued(request, form)
    except LetopisError as error:
        return _crawl_page(request, archive, form_status(error), problem=shell_words(error))
    return RedirectResponse(f"/crawl?queued={queued}", 303)


def _queued(request: Request, form: dict[str, str]) -> int:
    """How many pages wait now that did not before."""
    context = context_of(request)
    patterns = {name: tuple(form.get(name, "").split()) for name in ("include", "exclude")}
    flags = {name: bool(form.get(name)) for name in _FLAGS}
    values = {**form, **patterns, **flags, "seeds": form.get("seeds", "").split()}
    asked = bind(EnqueueSeedsCommand, values, context.moment())
    return enqueue_seeds(context, asked).value.queued


welcome_router = APIRouter(route_class=PageRoute)

_NO_FORM: Mapping[str, str] = MappingProxyType({})
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


def _welcome_page(
    request: Request, archive: Archive, status: int = 200, problem: str = "", form: Mapping[str, str] = _NO_FORM
) -> Response:
    return render_page(
        request, "welcome.html", status, place=_location(archive), public=archive.settings.serve.public,
        problem=problem, form=form, works=archive.settings.serve.work, command=_RUN, option=_OPTION,
    )  # fmt: skip


def _location(archive: Archive) -> ArchiveLocation:
    disk = shutil.disk_usage(archive.folder)
    packs = archive.settings.store.url or str(archive.folder / "packs")
    return ArchiveLocation(
        "PostgreSQL" if archive.settings.database.url else str(archive.folder), packs, disk.free, disk.total
    )


@welcome_router.post("/welcome")
def begin(request: Request, archive: ArchiveDep, form: FormDep) -> Response:
    """The first watch, or the form of the first crawl."""
    url = form.get("url", "")
    try:
        parse_user_url(url)
        if form.get("what") == "crawl":
            return RedirectResponse(f"/jobs?site={quote(url, safe='')}#start", 303)
        context = context_of(request)
        asked = bind(AddWatches, {"url": url, "every": form.get("every", "1h")}, context.moment())
        watch = next(iter(add_watches(context, asked, keep=True)))
    except LetopisError as error:
        return _welcome_page(request, archive, form_status(error), shell_words(error), form)
    return RedirectResponse(f"/watches/{watch.id}?done={watch.outcome}", 303)
