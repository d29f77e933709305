"""`/watches`: standing checks, what they last saw, their alerts, and actions on several of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from letopis.api.access import principal_of
from letopis.api.requests import ArchiveDep
from letopis.api.watches import WATCH_QUOTA, charge_quota
from letopis.archive import Archive
from letopis.archive.records import CheckDetails
from letopis.catalog.activity import Activity
from letopis.catalog.schema import ResourceRow
from letopis.errors import LetopisError, UsageError
from letopis.model import Check, from_millis, parse_duration
from letopis.model.rights import WRITE
from letopis.monitor.watch import WatchSpec, parse_alert_rules
from letopis.monitor.watch_list import WatchEntry, WatchList
from letopis.schedule.policies import format_span
from letopis.web.history import UnreadMarks
from letopis.web.languages import translatable
from letopis.web.pages import ListPage, PageRoute, fields_of, form_of, page_position, render_page

router = APIRouter(route_class=PageRoute)

_SIZE = 40
_FIELDS = ("css", "xpath", "jsonpath", "ignore")
_DONE = {
    "added": translatable("The watch is there; its first look is due now."),
    "removed": translatable("The watches are gone; what they recorded stays."),
    "check": translatable("They are due now; a running daemon looks within seconds."),
    "pause": translatable("They rest until they are resumed."),
    "resume": translatable("They are due now and go on as before."),
    "tag": translatable("They have the new tag."),
    "read": translatable("Everything is marked as read."),
}


class LatestChange(NamedTuple):
    """The newest version of a page at a glance: when it came, and what it brought."""

    time: datetime
    number: int
    came: str
    gone: str
    score: float | None


class WatchLine(NamedTuple):
    """A watch as the list shows it."""

    entry: WatchEntry
    rhythm: str
    title: str
    last: Check | None
    change: LatestChange | None
    unread: bool


class AlertLine(NamedTuple):
    """An alert."""

    time: datetime
    url: str
    kind: str
    message: str


class WatchListQuery(NamedTuple):
    """Which watches, and what to say above them."""

    tag: str = ""
    number: str = ""
    done: str = ""
    problem: str = ""
    form: Mapping[str, str] = MappingProxyType({})


@router.get("/watches")
def watches(request: Request, archive: ArchiveDep, tag: str = "", page: str = "", done: str = "") -> Response:
    """All watches, or those of a tag."""
    return render_watches(request, archive, WatchListQuery(tag, page, _DONE.get(done, "")))


def render_watches(request: Request, archive: Archive, ask: WatchListQuery, status: int = 200) -> Response:
    """The list, a page of it."""
    book = WatchList(archive)
    counts = book.tag_counts()
    total = counts.get(ask.tag, 0) if ask.tag else sum(counts.values())
    number, pages = page_position(total, ask.number, _SIZE)
    entries = book.part(ask.tag, _SIZE, (number - 1) * _SIZE)
    alerts = [AlertLine(from_millis(row.time), row.url, row.kind, row.message) for row in book.alerts(limit=20)]
    return render_page(
        request,
        "watches.html",
        status,
        watches=ListPage(_lines(request, archive, entries), number, pages, total, (number - 1) * _SIZE),
        tags=[(name, count) for name, count in counts.items() if name],
        everything=sum(counts.values()),
        ask=ask,
        alerts=alerts,
        may_write=principal_of(request).may(WRITE),
    )


def _lines(request: Request, archive: Archive, entries: Sequence[WatchEntry]) -> list[WatchLine]:
    found = [archive.catalog.resources.find(entry.watch.url) for entry in entries]
    unread = UnreadMarks(archive, principal_of(request)).unread(row for row in found if row is not None)
    return [_line(archive, entry, row, unread) for entry, row in zip(entries, found, strict=True)]


def _line(archive: Archive, entry: WatchEntry, row: ResourceRow | None, unread: set[int]) -> WatchLine:
    rhythm = entry.watch.cron or format_span(entry.watch.every)
    if row is None:
        return WatchLine(entry, rhythm, "", None, None, unread=False)
    title = Activity(archive.catalog.database).title(row.id)
    last = archive.answers.last_check(entry.watch.url)
    return WatchLine(entry, rhythm, title, last, _change(archive, row), row.id in unread)


def _change(archive: Archive, row: ResourceRow) -> LatestChange | None:
    version = archive.catalog.versions.by_id(row.newest) if row.newest is not None else None
    if version is None:
        return None
    details = CheckDetails.unpack(version.extra)
    came = next((text for kind, _, text in _blocks(details) if kind == "added"), "")
    gone = next((text for kind, _, text in _blocks(details) if kind == "removed"), "")
    return LatestChange(from_millis(version.time), version.number, came, gone, details.score)


def _blocks(details: CheckDetails) -> list[tuple[str, str, str]]:
    """Changed blocks as what happened, where, and the text."""
    parts = [(block.partition(": ")[0], block.partition(": ")[2]) for block in details.blocks]
    return [(head.partition(" ")[0], head.partition(" ")[2], text) for head, text in parts]


@router.post("/watches")
async def add(request: Request, archive: ArchiveDep) -> Response:
    """New watches from the form: of pages, or of all that a sitemap names."""
    form = await form_of(request)
    return await run_in_threadpool(_add, request, archive, form)


def _add(request: Request, archive: Archive, form: dict[str, str]) -> Response:
    urls = form.get("url", "").split()
    charge_quota(archive, principal_of(request), WATCH_QUOTA, len(urls))
    try:
        if form.get("kind") == "sitemap":
            WatchList(archive).add([], _spec(form), form.get("tag", ""), urls)
        else:
            WatchList(archive).add(urls, _spec(form), form.get("tag", ""))
    except LetopisError as error:
        return render_watches(request, archive, WatchListQuery(problem=str(error), form=form), 422)
    return RedirectResponse("/watches?done=added", 303)


def _spec(form: dict[str, str]) -> WatchSpec:
    """Marked as one that came through HTTP: its addresses are held to what the owner allowed."""
    return WatchSpec(
        every=parse_duration(form["every"]) if form.get("every") else None,
        filters=tuple((name, form[name]) for name in _FIELDS if form.get(name)),
        notify=tuple(form.get("notify", "").split()),
        when=parse_alert_rules(form["when"]) if form.get("when") else (),
        origin="http",
        browser=form.get("browser") == "yes",
    )


actions_router = APIRouter(route_class=PageRoute)


@actions_router.post("/watches/many")
async def many(request: Request, archive: ArchiveDep) -> Response:
    """Looks now, lets rest, resumes, tags, marks as read or removes the chosen watches."""
    fields = await fields_of(request)
    return await run_in_threadpool(_many, request, archive, fields)


def _many(request: Request, archive: Archive, fields: dict[str, list[str]]) -> Response:
    urls, action = fields.get("url", []), fields.get("action", [""])[0]
    try:
        if not urls:
            raise UsageError("choose at least one watch first")
        if action == "remove" and "confirmed" not in fields:
            return render_page(request, "confirm.html", urls=urls)
        return _carried_out(request, archive, urls, action, fields.get("tag", [""])[0])
    except LetopisError as error:
        return render_watches(request, archive, WatchListQuery(problem=str(error)), 422)


def _carried_out(request: Request, archive: Archive, urls: list[str], action: str, tag: str) -> Response:
    book = WatchList(archive)
    actions: dict[str, Callable[[], object]] = {
        "check": lambda: book.resume(urls),
        "resume": lambda: book.resume(urls),
        "pause": lambda: book.pause(urls),
        "tag": lambda: book.retag(urls, tag),
        "read": lambda: _mark_read(request, archive, urls),
        "remove": lambda: [book.remove(url) for url in urls],
    }
    if action not in actions:
        raise UsageError(f"there is no action '{action[:20]}'; choose one of {', '.join(actions)}")
    actions[action]()
    return RedirectResponse(f"/watches?done={'removed' if action == 'remove' else action}", 303)


def _mark_read(request: Request, archive: Archive, urls: list[str]) -> None:
    rows = (archive.catalog.resources.find(url) for url in urls)
    UnreadMarks(archive, principal_of(request)).read(row for row in rows if row is not None)
