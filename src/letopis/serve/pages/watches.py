"""`/watches`: standing checks, what they last saw, and what they have told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from letopis.archive import Archive
from letopis.archive.facts import Details
from letopis.catalog.accounts import WRITE
from letopis.catalog.activity import Activity
from letopis.catalog.rows import ResourceRow
from letopis.errors import LetopisError
from letopis.model import Check, from_millis, parse_duration
from letopis.monitor.book import Entry, WatchBook
from letopis.monitor.rules import parse_rules
from letopis.monitor.watch import WatchSpec
from letopis.schedule.why import span
from letopis.serve.access import principal_of
from letopis.serve.pages.answering import PageRoute, page
from letopis.serve.pages.forms import form_of
from letopis.serve.pages.languages import marked
from letopis.serve.pages.marks import Marks
from letopis.serve.pages.paging import Part, place
from letopis.serve.quotas import WATCHES, charge
from letopis.serve.shared import TheArchive

router = APIRouter(route_class=PageRoute)

_SIZE = 40
_FIELDS = ("css", "xpath", "jsonpath", "ignore")
_DONE = {
    "added": marked("The watch is there; its first look is due now."),
    "removed": marked("The watches are gone; what they recorded stays."),
    "check": marked("They are due now; a running daemon looks within seconds."),
    "pause": marked("They rest until they are resumed."),
    "resume": marked("They are due now and go on as before."),
    "tag": marked("They have the new tag."),
    "read": marked("Everything is marked as read."),
}


class Change(NamedTuple):
    """The newest version of a page at a glance: when it came, and what it brought."""

    time: datetime
    number: int
    came: str
    gone: str
    score: float | None


class Line(NamedTuple):
    """A watch as the list shows it."""

    entry: Entry
    rhythm: str
    title: str
    last: Check | None
    change: Change | None
    unread: bool


class Told(NamedTuple):
    """An alert."""

    time: datetime
    url: str
    kind: str
    message: str


class Ask(NamedTuple):
    """Which watches, and what to say above them."""

    tag: str = ""
    number: str = ""
    done: str = ""
    problem: str = ""
    form: Mapping[str, str] = MappingProxyType({})


@router.get("/watches")
def watches(request: Request, archive: TheArchive, tag: str = "", page: str = "", done: str = "") -> Response:
    """All watches, or those of a tag."""
    return shown(request, archive, Ask(tag, page, _DONE.get(done, "")))


def shown(request: Request, archive: Archive, ask: Ask, status: int = 200) -> Response:
    """The list, a page of it."""
    book = WatchBook(archive)
    counts = book.tag_counts()
    total = counts.get(ask.tag, 0) if ask.tag else sum(counts.values())
    number, pages = place(total, ask.number, _SIZE)
    entries = book.part(ask.tag, _SIZE, (number - 1) * _SIZE)
    alerts = [Told(from_millis(row.time), row.url, row.kind, row.message) for row in book.alerts(limit=20)]
    return page(
        request,
        "watches.html",
        status,
        watches=Part(_lines(request, archive, entries), number, pages, total, (number - 1) * _SIZE),
        tags=[(name, count) for name, count in counts.items() if name],
        everything=sum(counts.values()),
        ask=ask,
        alerts=alerts,
        may_write=principal_of(request).may(WRITE),
    )


def _lines(request: Request, archive: Archive, entries: Sequence[Entry]) -> list[Line]:
    found = [archive.catalog.resources.find(entry.watch.url) for entry in entries]
    unread = Marks(archive, principal_of(request)).unread(row for row in found if row is not None)
    return [_line(archive, entry, row, unread) for entry, row in zip(entries, found, strict=True)]


def _line(archive: Archive, entry: Entry, row: ResourceRow | None, unread: set[int]) -> Line:
    rhythm = entry.watch.cron or span(entry.watch.every)
    if row is None:
        return Line(entry, rhythm, "", None, None, unread=False)
    title = Activity(archive.catalog.database).title(row.id)
    last = archive.answers.last_check(entry.watch.url)
    return Line(entry, rhythm, title, last, _change(archive, row), row.id in unread)


def _change(archive: Archive, row: ResourceRow) -> Change | None:
    version = archive.catalog.versions.by_id(row.newest) if row.newest is not None else None
    if version is None:
        return None
    details = Details.unpack(version.extra)
    came = next((text for kind, _, text in _blocks(details) if kind == "added"), "")
    gone = next((text for kind, _, text in _blocks(details) if kind == "removed"), "")
    return Change(from_millis(version.time), version.number, came, gone, details.score)


def _blocks(details: Details) -> list[tuple[str, str, str]]:
    """Changed blocks as what happened, where, and the text."""
    parts = [(block.partition(": ")[0], block.partition(": ")[2]) for block in details.blocks]
    return [(head.partition(" ")[0], head.partition(" ")[2], text) for head, text in parts]


@router.post("/watches")
async def add(request: Request, archive: TheArchive) -> Response:
    """New watches from the form: of pages, or of all that a sitemap names."""
    form = await form_of(request)
    return await run_in_threadpool(_add, request, archive, form)


def _add(request: Request, archive: Archive, form: dict[str, str]) -> Response:
    urls = form.get("url", "").split()
    charge(archive, principal_of(request), WATCHES, len(urls))
    try:
        if form.get("kind") == "sitemap":
            WatchBook(archive).add([], _spec(form), form.get("tag", ""), urls)
        else:
            WatchBook(archive).add(urls, _spec(form), form.get("tag", ""))
    except LetopisError as error:
        return shown(request, archive, Ask(problem=str(error), form=form), 422)
    return RedirectResponse("/watches?done=added", 303)


def _spec(form: dict[str, str]) -> WatchSpec:
    """Marked as one that came through HTTP: its addresses are held to what the owner allowed."""
    return WatchSpec(
        every=parse_duration(form["every"]) if form.get("every") else None,
        filters=tuple((name, form[name]) for name in _FIELDS if form.get(name)),
        notify=tuple(form.get("notify", "").split()),
        when=parse_rules(form["when"]) if form.get("when") else (),
        origin="http",
        browser=form.get("browser") == "yes",
    )
