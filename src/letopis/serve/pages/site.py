"""`/site/<host>`: a site as of any date: its map, pages, broken links, ranks, changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from fastapi import APIRouter, Request, Response

from letopis.archive import Archive
from letopis.catalog.activity import DAY, Activity
from letopis.errors import UnknownUrl, UsageError
from letopis.graph import (
    BrokenRow,
    Graph,
    SiteMap,
    broken_links,
    map_difference,
    rank_rows,
    rank_site,
    report,
    site_map,
    sketch,
)
from letopis.model import parse_time, rfc3339, stamp14, to_millis
from letopis.serve.pages.answering import PageRoute, page
from letopis.serve.pages.drawing import MOST_PAGES, drawing
from letopis.serve.pages.heat import Heat, heat
from letopis.serve.pages.languages import marked
from letopis.serve.pages.paging import Part, part, place
from letopis.serve.pages.plots import style_guards
from letopis.serve.pages.remembered import Remembered, remembered_of
from letopis.serve.pages.rendering import day
from letopis.serve.pages.sections import Hours, by_hour
from letopis.serve.pages.times import end_of
from letopis.serve.pages.tree import MOST_DEPTH, Names, branches, picture
from letopis.serve.rest.graph import graph_of
from letopis.serve.shared import TheArchive
from letopis.urls import site as site_of

router = APIRouter(route_class=PageRoute)

VIEWS = {
    "map": marked("Map"),
    "picture": marked("Picture"),
    "links": marked("Links"),
    "pages": marked("Pages"),
    "changes": marked("Changes"),
    "broken": marked("Broken links"),
    "ranks": marked("Ranks"),
    "report": marked("Findings"),
}
FINDINGS = {
    "orphan": marked("nobody links to it"),
    "unreachable": marked("no way from the home page"),
    "chain": marked("long redirect"),
    "loop": marked("redirect in a circle"),
    "duplicate-title": marked("same title"),
    "duplicate-content": marked("same content"),
}
HEAT_DAYS = 42
_SIZE = 50
_SORTED = 5_000
"""Pages up to which a site is sorted by its changes; larger ones are listed by address, a page at a time."""
_FRESH = 5.0
"""Seconds for which a graph is good enough for a page."""


@dataclass(frozen=True, slots=True)
class View:
    """What one view of a site is made from."""

    archive: Archive
    known: Remembered
    site: str
    at: datetime
    since: datetime
    number: str

    def graph(self) -> Graph:
        """The links of the archive, at most a few seconds old."""
        return self.known.get("graph", _FRESH, lambda: graph_of(self.archive))

    def count(self) -> int:
        """How many of its pages are known."""
        activity = Activity(self.archive.catalog.database)
        return self.known.get(("pages of", self.site), 5, lambda: activity.count_pages(self.site))

    def map(self, depth: int | None = MOST_DEPTH) -> SiteMap:
        """The map at the date."""
        return site_map(self.graph(), self.site, to_millis(self.at), depth=depth)


class Ask(NamedTuple):
    """The parameters of a view, as they stand in its link."""

    view: str
    at: str
    since: str
    page: str


@router.get("/site/{name}")
def site(
    request: Request, archive: TheArchive, name: str, view: str = "map", at: str = "", since: str = "", page: str = ""
) -> Response:
    """One view of a site; `at` is the date it is seen from, `since` the one it is compared with."""
    if view not in VIEWS:
        raise UsageError(f"there is no view '{view[:40]}'; choose one of {', '.join(VIEWS)}")
    return _answer(request, archive, site_of(name), Ask(view, at, since, page))


def _answer(request: Request, archive: Archive, name: str, ask: Ask) -> Response:
    if not Activity(archive.catalog.database).count_pages(name, 1):
        raise UnknownUrl(f"no page of {name} is in this archive; try 'letopis crawl {name}'")
    now = archive.clock()
    seen_from = end_of(ask.at, now) if ask.at else now
    before = parse_time(ask.since, now) if ask.since else seen_from - timedelta(days=7)
    found = View(archive, remembered_of(request), name, seen_from, before, ask.page)
    return page(
        request,
        "site.html",
        site=name,
        pages=found.count(),
        view=ask.view,
        views=VIEWS,
        at=seen_from,
        since=before,
        dated=bool(ask.at),
        link=urlencode({"view": ask.view, "at": rfc3339(seen_from)}),
        kept=urlencode({name: value for name, value in (("at", ask.at), ("since", ask.since)) if value}),
        **_FILLED[ask.view](found),
    )


def _map(view: View) -> dict[str, Any]:
    return {"tree": branches(view.map())}


def _picture(view: View) -> dict[str, Any]:
    return {"picture": picture(view.map()), "guards": style_guards()}


def _pages(view: View) -> dict[str, Any]:
    activity = Activity(view.archive.catalog.database)
    total = view.count()
    if total > _SORTED:
        found = activity.pages_after(view.site, _SIZE + 1, view.number if ")" in view.number else "")
        rows = [row for _, row in found[:_SIZE]]
        return {"listed": Part(rows, 1, 1, total, 0), "after": found[_SIZE - 1][0] if len(found) > _SIZE else ""}
    number, pages = place(total, view.number, _SIZE)
    start = (number - 1) * _SIZE
    return {"listed": Part(activity.pages(view.site, _SIZE, start), number, pages, total, start), "after": ""}


def _changes(view: View) -> dict[str, Any]:
    graph = view.graph()
    events = map_difference(
        graph.as_of(to_millis(view.since), view.site), graph.as_of(to_millis(view.at), view.site), view.site
    )
    by_day, hours = _heat(view) if view.count() <= _SORTED else (None, None)
    shown = {"heat": by_day, "hours": hours, "guards": style_guards() if hours and hours.rows else ()}
    return {"events": part(events, view.number, _SIZE), "first_day": day(view.since), **shown}


def _heat(view: View) -> tuple[Heat, Hours]:
    activity, until = Activity(view.archive.catalog.database), to_millis(view.at)
    last = until // DAY
    first = last - HEAT_DAYS + 1
    by_day = heat(activity.changes(view.site, first * DAY, until), first, last)
    return by_day, by_hour(activity.changes_by_hour(view.site, first * DAY, until))


def _links(view: View) -> dict[str, Any]:
    found = sketch(view.graph().as_of(to_millis(view.at), view.site), view.site, MOST_PAGES)
    titles = _titles(view.archive, found.urls)
    names = Names(titles.values())
    return {"drawing": drawing(found, lambda url: names.of(titles[url]) or urlsplit(url).path)}


def _titles(archive: Archive, urls: list[str]) -> dict[str, str]:
    activity = Activity(archive.catalog.database)
    rows = {url: archive.catalog.resources.find(url) for url in urls}
    return {url: activity.title(row.id) if row else "" for url, row in rows.items()}


def _broken(view: View) -> dict[str, Any]:
    rows = list(broken_links(view.graph().as_of(to_millis(view.at)), view.site))
    return {"broken": part(rows, view.number, _SIZE), "kept_copy": _kept_copy}


def _kept_copy(row: BrokenRow) -> str:
    """Where our archive shows what a broken link led to; empty when it never worked while we looked."""
    return f"/web/{stamp14(row.last_good)}/{row.final or row.target}" if row.last_good else ""


def _ranks(view: View) -> dict[str, Any]:
    moment = view.graph().as_of(to_millis(view.at))
    rows = rank_rows(moment, rank_site(moment, view.site), 500)
    return {"ranks": part(rows, view.number, _SIZE), "best": rows[0].rank if rows else 1.0}


def _report(view: View) -> dict[str, Any]:
    found = view.map(None)
    rows = [row for row in report(found) if row.finding in FINDINGS]
    depths = sorted(Counter(found.tree.depths.tolist()).items())
    return {"findings": part(rows, view.number, _SIZE), "findings_called": FINDINGS, "depths": depths}


_FILLED: dict[str, Callable[[View], dict[str, Any]]] = {
    "map": _map,
    "picture": _picture,
    "links": _links,
    "pages": _pages,
    "changes": _changes,
    "broken": _broken,
    "ranks": _ranks,
    "report": _report,
}
