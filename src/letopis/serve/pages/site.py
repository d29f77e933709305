"""`/site/<host>`: a site as of any date: its map, pages, broken links, ranks, changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from letopis.archive import Archive
from letopis.catalog.activity import DAY, Activity
from letopis.errors import UnknownUrl, UsageError
from letopis.graph import Graph, SiteMap, broken_links, map_difference, rank_rows, rank_site, report, site_map
from letopis.model import parse_time, rfc3339, to_millis
from letopis.serve.pages.answering import PageRoute, page
from letopis.serve.pages.heat import heat
from letopis.serve.pages.paging import Part, part, place
from letopis.serve.pages.plots import style_guards
from letopis.serve.pages.remembered import Remembered, remembered_of
from letopis.serve.pages.rendering import day
from letopis.serve.pages.times import end_of
from letopis.serve.pages.tree import MOST_DEPTH, branches, picture
from letopis.serve.rest.graph import graph_of
from letopis.serve.shared import TheArchive
from letopis.urls import site as site_of

router = APIRouter(route_class=PageRoute)

VIEWS = {
    "map": "Map",
    "picture": "Picture",
    "pages": "Pages",
    "changes": "Changes",
    "broken": "Broken links",
    "ranks": "Ranks",
    "report": "Findings",
}
HEAT_DAYS = 42
_SIZE = 50
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
    pages = Activity(archive.catalog.database).count_pages(name)
    if not pages:
        raise UnknownUrl(f"no page of {name} is in this archive; try 'letopis crawl {name}'")
    now = archive.clock()
    seen_from = end_of(ask.at, now) if ask.at else now
    before = parse_time(ask.since, now) if ask.since else seen_from - timedelta(days=7)
    found = View(archive, remembered_of(request), name, seen_from, before, ask.page)
    return page(
        request,
        "site.html",
        site=name,
        pages=pages,
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
    total = activity.count_pages(view.site)
    number, pages = place(total, view.number, _SIZE)
    start = (number - 1) * _SIZE
    return {"listed": Part(activity.pages(view.site, _SIZE, start), number, pages, total, start)}


def _changes(view: View) -> dict[str, Any]:
    graph = view.graph()
    events = map_difference(
        graph.as_of(to_millis(view.since), view.site), graph.as_of(to_millis(view.at), view.site), view.site
    )
    last = to_millis(view.at) // DAY
    first = last - HEAT_DAYS + 1
    rows = Activity(view.archive.catalog.database).changes(view.site, first * DAY, to_millis(view.at))
    return {"events": part(events, view.number, _SIZE), "heat": heat(rows, first, last), "first_day": day(view.since)}


def _broken(view: View) -> dict[str, Any]:
    rows = list(broken_links(view.graph().as_of(to_millis(view.at)), view.site))
    return {"broken": part(rows, view.number, _SIZE)}


def _ranks(view: View) -> dict[str, Any]:
    moment = view.graph().as_of(to_millis(view.at))
    rows = rank_rows(moment, rank_site(moment, view.site), 500)
    return {"ranks": part(rows, view.number, _SIZE), "best": rows[0].rank if rows else 1.0}


def _report(view: View) -> dict[str, Any]:
    return {"findings": part(list(report(view.map(None))), view.number, _SIZE)}


_FILLED: dict[str, Callable[[View], dict[str, Any]]] = {
    "map": _map,
    "picture": _picture,
    "pages": _pages,
    "changes": _changes,
    "broken": _broken,
    "ranks": _ranks,
    "report": _report,
}
