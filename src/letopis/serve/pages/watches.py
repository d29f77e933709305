"""`/watches`: standing checks, and what they have told."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from letopis.archive import Archive
from letopis.catalog.accounts import WRITE
from letopis.errors import LetopisError
from letopis.model import Check, from_millis, parse_duration
from letopis.monitor.book import Entry, WatchBook
from letopis.monitor.rules import parse_rules
from letopis.monitor.watch import WatchSpec
from letopis.schedule.why import span
from letopis.serve.access import principal_of
from letopis.serve.pages.answering import PageRoute, page
from letopis.serve.pages.forms import form_of
from letopis.serve.pages.paging import Part, part
from letopis.serve.shared import TheArchive

router = APIRouter(route_class=PageRoute)

_SIZE = 50
_FIELDS = ("css", "xpath", "jsonpath", "ignore")


class Line(NamedTuple):
    """A watch as the list shows it, with the last check of its page."""

    entry: Entry
    rhythm: str
    last: Check | None


class Told(NamedTuple):
    """An alert."""

    time: datetime
    url: str
    kind: str
    message: str


@router.get("/watches")
def watches(request: Request, archive: TheArchive, tag: str = "", page: str = "") -> Response:
    """All watches, or those of a tag."""
    return _shown(request, archive, tag, page)


def _shown(request: Request, archive: Archive, tag: str, number: str, status: int = 200, problem: str = "") -> Response:
    book = WatchBook(archive)
    entries = book.entries()
    chosen = part([entry for entry in entries if not tag or entry.watch.tag == tag], number, _SIZE)
    rows = [Line(entry, _rhythm(entry), archive.answers.last_check(entry.watch.url)) for entry in chosen.rows]
    return page(
        request,
        "watches.html",
        status,
        watches=Part(rows, chosen.number, chosen.pages, chosen.total, chosen.first),
        tags=sorted({entry.watch.tag for entry in entries if entry.watch.tag}),
        tag=tag,
        alerts=[Told(from_millis(row.time), row.url, row.kind, row.message) for row in book.alerts(limit=30)],
        may_write=principal_of(request).may(WRITE),
        problem=problem,
    )


def _rhythm(entry: Entry) -> str:
    return entry.watch.cron or f"every {span(entry.watch.every)}"


@router.post("/watches")
async def add(request: Request, archive: TheArchive) -> Response:
    """A new watch from the form."""
    form = await form_of(request)
    return await run_in_threadpool(_add, request, archive, form)


def _add(request: Request, archive: Archive, form: dict[str, str]) -> Response:
    try:
        urls = form.get("url", "").split()
        WatchBook(archive).add(urls, _spec(form), form.get("tag", ""))
    except LetopisError as error:
        return _shown(request, archive, "", "", 422, str(error))
    return RedirectResponse("/watches", 303)


def _spec(form: dict[str, str]) -> WatchSpec:
    """Marked as one that came through HTTP: its addresses are held to what the owner allowed."""
    return WatchSpec(
        every=parse_duration(form["every"]) if form.get("every") else None,
        filters=tuple((name, form[name]) for name in _FIELDS if form.get(name)),
        notify=tuple(form.get("notify", "").split()),
        when=parse_rules(form["when"]) if form.get("when") else (),
        origin="http",
    )


@router.post("/watches/remove")
async def remove(request: Request, archive: TheArchive) -> Response:
    """Ends a watch; what it recorded stays."""
    form = await form_of(request)
    await run_in_threadpool(WatchBook(archive).remove, form.get("url", ""))
    return RedirectResponse("/watches", 303)
