"""`/`: what the archive holds, how fresh it is, and what changed lately. `/find`: from a text to a page."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from letopis.archive import Archive
from letopis.catalog.activity import DAY, Activity
from letopis.errors import BadUrl
from letopis.model import from_millis, to_millis
from letopis.serve.pages.answering import PageRoute, page
from letopis.serve.pages.bars import Bar, bars
from letopis.serve.pages.remembered import remembered_of
from letopis.serve.pages.rendering import day, inside
from letopis.serve.shared import TheArchive
from letopis.urls import host, parse_user

router = APIRouter(route_class=PageRoute)

DAYS = 30
"""Days that the overview looks back."""
_LISTED = 30


class Queue(NamedTuple):
    """What waits. `fresh` is the share of visited pages that are not overdue, None when none is planned."""

    new: int
    again: int
    due: int
    fresh: float | None


@router.get("/")
def overview(request: Request, archive: TheArchive, before: str = "") -> Response:
    """Totals, freshness, activity, hosts, latest changes; `before` goes further back in the list."""
    known = remembered_of(request)
    now = to_millis(archive.clock())
    queue = known.get("queue", 2, lambda: _queue(archive, now))
    changes = archive.catalog.recent.changes(_LISTED + 1, _position(before))
    return page(
        request,
        "overview.html",
        stats=known.soon("stats", 10, archive.stats),
        queue=queue,
        days=known.get("days", 10, lambda: _days(archive, now)),
        hosts=known.soon("hosts", 10, lambda: archive.catalog.recent.hosts(12)),
        changes=changes[:_LISTED],
        older=changes[_LISTED - 1].id if len(changes) > _LISTED else None,
        before=before,
        first_start=not changes and not before and queue.new == 0,
    )


def _position(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else None


def _queue(archive: Archive, now: int) -> Queue:
    waiting = archive.catalog.queues.waiting()
    due = archive.catalog.queues.due_again(now)
    return Queue(waiting.new, waiting.again, due, 1 - due / waiting.again if waiting.again else None)


def _days(archive: Archive, now: int) -> list[Bar]:
    """The last days, each with its bar; those without anything have an empty one."""
    first = now // DAY - DAYS + 1
    found = {row.day: row for row in Activity(archive.catalog.database).by_day(first * DAY)}
    rows = []
    for number in range(first, first + DAYS):
        row = found.get(number)
        label = day(from_millis(number * DAY))
        rows.append((label, row.changed if row else 0, row.new if row else 0))
    return bars(rows)


@router.get("/find")
def find(archive: TheArchive, q: str = "") -> Response:
    """A known address leads to its page, a known host to its site, anything else to the search."""
    text = q.strip()
    address = _known_address(archive, text)
    if address is not None:
        return RedirectResponse(f"/url/{inside(address)}", 303)
    if text and " " not in text and Activity(archive.catalog.database).count_pages(_host(text), 1):
        return RedirectResponse(f"/site/{_host(text)}", 303)
    return RedirectResponse(f"/search?{urlencode({'q': text})}", 303)


def _known_address(archive: Archive, text: str) -> str | None:
    if not text or " " in text or not ("/" in text or "." in text or ":" in text):
        return None
    for candidate in (text, f"https://{text}"):
        try:
            url = parse_user(candidate)
        except BadUrl:
            continue
        row = archive.catalog.resources.find(url)
        if row is not None and row.checked is not None:
            return url
    return None


def _host(text: str) -> str:
    try:
        return host(parse_user(text))
    except BadUrl:
        return ""
