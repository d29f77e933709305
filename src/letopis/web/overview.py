"""`/`: what the archive holds and what changed lately. `/find`, `/save`: to a page. `/storage`, `/settings`."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse
from markupsafe import Markup

from letopis.api.door import context_of
from letopis.api.requests import ArchiveDep
from letopis.archive import Archive
from letopis.archive.activity import DAY, activity_of, busiest_hosts, is_checked, recent_versions
from letopis.archive.crawl_status import crawl_figures
from letopis.errors import BadUrl
from letopis.model import Outcome, from_millis, to_millis
from letopis.model.rights import OWN
from letopis.operations import bind
from letopis.operations.checks import CheckCommand, check
from letopis.operations.totals import SettingRow, WholeArchive
from letopis.operations.totals import settings as list_settings
from letopis.operations.totals import storage as take_stock
from letopis.schedule.policies import format_span
from letopis.urls import host, parse_user_url
from letopis.web.cache import page_cache_of
from letopis.web.charts import Bar, bars
from letopis.web.languages import translatable
from letopis.web.pages import PageRoute, form_of, human_size, iso_day, render_page, url_in_path

router = APIRouter(route_class=PageRoute)

DAYS = 30
"""Days that the overview looks back."""
_LISTED = 30


class CrawlBacklog(NamedTuple):
    """What waits. `fresh` is the share of visited pages that are not overdue, None when none is planned."""

    new: int
    again: int
    due: int
    fresh: float | None


@router.get("/")
def overview(request: Request, archive: ArchiveDep, before: str = "") -> Response:
    """Totals, freshness, activity, hosts, latest changes; `before` goes further back in the list."""
    known = page_cache_of(request)
    queue = known.get("queue", 2, lambda: _backlog(archive))
    changes = recent_versions(archive, _LISTED + 1, _position(before))
    return render_page(
        request,
        "overview.html",
        stats=known.soon("stats", 10, archive.stats),
        queue=queue,
        days=known.get("days", 10, lambda: _days(archive)),
        hosts=known.soon("hosts", 10, lambda: busiest_hosts(archive, 12)),
        changes=changes[:_LISTED],
        older=changes[_LISTED - 1].id if len(changes) > _LISTED else None,
        before=before,
        first_start=not changes and not before and queue.new == 0,
    )


def _position(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else None


def _backlog(archive: Archive) -> CrawlBacklog:
    figures = crawl_figures(archive)
    fresh = 1 - figures.due / figures.again if figures.again else None
    return CrawlBacklog(figures.new, figures.again, figures.due, fresh)


def _days(archive: Archive) -> list[Bar]:
    """The last days, each with its bar; those without anything have an empty one."""
    first = to_millis(archive.clock()) // DAY - DAYS + 1
    found = {row.day: row for row in activity_of(archive).by_day(first * DAY)}
    rows = []
    for number in range(first, first + DAYS):
        row = found.get(number)
        label = iso_day(from_millis(number * DAY))
        rows.append((label, row.changed if row else 0, row.new if row else 0))
    return bars(rows)


@router.get("/find")
def find(archive: ArchiveDep, q: str = "") -> Response:
    """A known address leads to its page, a known host to its site, anything else to the search."""
    text = q.strip()
    address = _known_address(archive, text)
    if address is not None:
        return RedirectResponse(f"/url/{url_in_path(address)}", 303)
    if text and " " not in text and activity_of(archive).count_pages(_host(text), 1):
        return RedirectResponse(f"/site/{_host(text)}", 303)
    return RedirectResponse(f"/search?{urlencode({'q': text})}", 303)


@router.post("/save")
async def save(request: Request) -> Response:
    """Looks at an address that is not known yet, and leads to its page."""
    form = await form_of(request)
    return await run_in_threadpool(_save, request, form.get("url", ""))


def _save(request: Request, url: str) -> Response:
    context = context_of(request)
    answer = check(context, bind(CheckCommand, {"url": [url], "as": "", "now": True}, context.moment(), door="http"))
    found = next(iter(answer), None)
    if found is None or found.outcome is Outcome.REFUSED:
        for fault in answer.faults:
            raise fault
    return RedirectResponse(f"/url/{url_in_path(parse_user_url(url))}", 303)


def _known_address(archive: Archive, text: str) -> str | None:
    if not text or " " in text or not ("/" in text or "." in text or ":" in text):
        return None
    for candidate in (text, f"https://{text}"):
        try:
            url = parse_user_url(candidate)
        except BadUrl:
            continue
        if is_checked(archive, url):
            return url
    return None


def _host(text: str) -> str:
    try:
        return host(parse_user_url(text))
    except BadUrl:
        return ""


storage_router = APIRouter(route_class=PageRoute)

_PARTS = {
    translatable("packs"): translatable("Contents of all versions"),
    translatable("catalogue"): translatable("Facts: every check, version, header"),
    translatable("index"): translatable("Links and words; can be deleted and is built again"),
}


@storage_router.get("/storage")
def storage(request: Request, archive: ArchiveDep) -> Response:
    """Raw and stored sizes, packs, methods, retention."""
    known, context = page_cache_of(request), context_of(request)
    # What owners are told is kept apart from what others are.
    found = known.soon(("storage", context.may(OWN)), 30, lambda: take_stock(context, WholeArchive()).value)
    return render_page(
        request,
        "storage.html",
        stats=known.soon("stats", 10, archive.stats),
        methods=found.methods if found else None,
        folders=found.parts if found else (),
        purposes=_PARTS,
        keep=archive.settings.store,
        fetch=archive.settings.fetch,
        serve=archive.settings.serve,
        room=found and found.room,
        command=Markup("<code>letopis compact</code>"),
    )


settings_router = APIRouter(route_class=PageRoute)


@settings_router.get("/settings")
def settings(request: Request) -> Response:
    """The settings this service runs with; secrets are never shown."""
    rows = [_readable(row) for row in list_settings(context_of(request), WholeArchive())]
    sections = [(name, list(group)) for name, group in groupby(rows, lambda row: row.name.partition(".")[0])]
    return render_page(request, "settings.html", sections=sections, file=Markup("<code>letopis.toml</code>"))


def _readable(row: SettingRow) -> SettingRow:
    """A setting with its values in words and units that people read."""
    return row._replace(value=_readable_value(row.value, row.unit), default=_readable_value(row.default, row.unit))


def _readable_value(text: str, unit: str) -> str:
    if text in _WORDS:
        return _WORDS[text]
    if unit and text.replace(".", "", 1).isdigit() and float(text):
        return human_size(float(text)) if unit == "bytes" else format_span(float(text))
    return text


_WORDS = {"true": "yes", "false": "no", "": "none"}
