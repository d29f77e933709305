"""`/site/<host>`: a site as of any date: its map, pages, broken links, ranks, changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode
from weakref import WeakKeyDictionary, ref

from fastapi import APIRouter, Request, Response

from letopis.archive import Archive
from letopis.catalog.activity import DAY, Activity
from letopis.errors import UnknownUrl, UsageError
from letopis.graph import BrokenRow, Graph, Moments
from letopis.model import parse_time, rfc3339, stamp14, to_millis
from letopis.serve.pages import site_facts
from letopis.serve.pages.answering import PageRoute, page
from letopis.serve.pages.heat import Heat, heat
from letopis.serve.pages.languages import marked
from letopis.serve.pages.paging import Part, part, place
from letopis.serve.pages.plots import style_guards
from letopis.serve.pages.remembered import Remembered, remembered_of
from letopis.serve.pages.sections import Hours, by_hour
from letopis.serve.pages.site_facts import Listing
from letopis.serve.pages.times import end_of
from letopis.serve.pages.tree import Names, branches, picture
from letopis.serve.rest.graph import graph_of
from letopis.serve.shared import TheArchive
from letopis.urls import site as site_of

T = TypeVar("T")

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
EVENTS_CALLED = {
    "appeared": marked("appeared"),
    "vanished": marked("vanished"),
    "moved": marked("moved"),
    "renamed": marked("renamed"),
    "broken": marked("broken"),
    "mended": marked("mended"),
    "changed": marked("changed"),
}
HEAT_DAYS = 42
_SIZE = 50
_SORTED = 5_000
"""Pages up to which a site is sorted by its changes; larger ones are listed by address, a page at a time.

Nobody waits for the views of a larger one either: the first of each is made in the background.
"""
_FRESH = 5.0
"""Seconds for which a graph is good enough for a page."""


class Ask(NamedTuple):
    """The parameters of a view, as they stand in its link."""

    view: str
    at: str
    since: str
    page: str
    kind: str


class Seen(NamedTuple):
    """The links of the archive, and when they changed."""

    graph: Graph
    moments: Moments


_moments: WeakKeyDictionary[Graph, Moments] = WeakKeyDictionary()


def _seen(archive: Archive) -> Seen:
    graph = graph_of(archive)
    if graph not in _moments:
        _moments[graph] = Moments(graph)
    return Seen(graph, _moments[graph])


@dataclass(frozen=True, slots=True)
class View:
    """What one view of a site is made from."""

    archive: Archive
    known: Remembered
    site: str
    at: datetime
    since: datetime
    ask: Ask

    def is_large(self) -> bool:
        """Whether nobody should wait for all of its pages."""
        return self._few() > _SORTED

    def count(self) -> int | None:
        """How many of its pages are known; None while many of them are counted."""
        count = Activity(self.archive.catalog.database).count_pages
        return self.known.soon(("pages of", self.site), 5, lambda: count(self.site)) if self.is_large() else self._few()

    def _few(self) -> int:
        count = Activity(self.archive.catalog.database).count_pages
        return self.known.get(("some of", self.site), 5, lambda: count(self.site, _SORTED + 1))

    def now(self, name: str, make: Callable[[Graph, str, int], T]) -> T | None:
        """A value of the site at the date, worked out once as long as nothing changes; None while that takes long."""
        seen = self._links()
        if seen is None:
            return None
        at = seen.moments.last(to_millis(self.at))
        key = (name, self.site, at if self.ask.at else None)
        return self._kept(key, lambda: make(seen.graph, self.site, at), (ref(seen.graph), at))

    def between(self, name: str, make: Callable[[Graph, str, int, int], T]) -> T | None:
        """The same for the time between the two dates."""
        seen = self._links()
        if seen is None:
            return None
        since, at = (seen.moments.last(to_millis(time)) for time in (self.since, self.at))
        key = (name, self.site, since if self.ask.since or self.ask.at else None, at if self.ask.at else None)
        return self._kept(key, lambda: make(seen.graph, self.site, since, at), (ref(seen.graph), since, at))

    def _links(self) -> Seen | None:
        """The links of the archive, at most a few seconds old; None while they are read for the first time."""
        return self.known.soon("graph", _FRESH, lambda: _seen(self.archive))

    def _kept(self, key: tuple[object, ...], make: Callable[[], T], state: tuple[object, ...]) -> T | None:
        return (self.known.soon if self.is_large() else self.known.get)(key, 0, make, state)


@router.get("/site/{name}")
def site(
    request: Request,
    archive: TheArchive,
    name: str,
    view: str = "map",
    at: str = "",
    since: str = "",
    page: str = "",
    kind: str = "",
) -> Response:
    """One view of a site; `at` is the date it is seen from, `since` the one it is compared with."""
    if view not in VIEWS:
        raise UsageError(f"there is no view '{view[:40]}'; choose one of {', '.join(VIEWS)}")
    return _answer(request, archive, site_of(name), Ask(view, at, since, page, kind))


def _answer(request: Request, archive: Archive, name: str, ask: Ask) -> Response:
    if not Activity(archive.catalog.database).count_pages(name, 1):
        raise UnknownUrl(f"no page of {name} is in this archive; try 'letopis crawl {name}'")
    now = archive.clock()
    seen_from = end_of(ask.at, now) if ask.at else now
    before = parse_time(ask.since, now) if ask.since else seen_from - timedelta(days=7)
    found = View(archive, remembered_of(request), name, seen_from, before, ask)
    filled = _FILLED[ask.view](found)
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
        waiting=filled is None,
        **(filled or {}),
    )


def _map(view: View) -> dict[str, Any] | None:
    found = view.now("map", site_facts.upper_map)
    return found and {"tree": branches(found)}


def _picture(view: View) -> dict[str, Any] | None:
    found = view.now("map", site_facts.upper_map)
    return found and {"picture": picture(found), "guards": style_guards()}


def _pages(view: View) -> dict[str, Any]:
    activity = Activity(view.archive.catalog.database)
    number = view.ask.page
    if view.is_large():
        found = activity.pages_after(view.site, _SIZE + 1, number if ")" in number else "")
        rows = [row for _, row in found[:_SIZE]]
        listed, after = Part(rows, 1, 1, len(rows), 0), found[_SIZE - 1][0] if len(found) > _SIZE else ""
    else:
        total = view.count() or 0
        at, pages = place(total, number, _SIZE)
        start = (at - 1) * _SIZE
        listed, after = Part(activity.pages(view.site, _SIZE, start), at, pages, total, start), ""
    return {"listed": listed, "after": after, "named": Names(row.title for row in listed.rows).of}


def _changes(view: View) -> dict[str, Any] | None:
    found = view.between("events", site_facts.events)
    if found is None:
        return None
    by_day, hours = _heat(view) or (None, None)
    shown = {"heat": by_day, "hours": hours, "guards": style_guards() if hours and hours.rows else ()}
    return {"events": _listed(view, found), "events_called": EVENTS_CALLED, **_kinds(view, found), **shown}


def _listed(view: View, found: Listing[T]) -> Part[T]:
    return part(found.of(view.ask.kind), view.ask.page, _SIZE)


def _kinds(view: View, found: Listing[Any]) -> dict[str, Any]:
    """The kinds that a reader can choose from, the one that is chosen, and how many there are of it."""
    return {"counts": found.counts, "kind": view.ask.kind, "total": found.total(view.ask.kind)}


def _heat(view: View) -> tuple[Heat, Hours] | None:
    """Changes by day and by hour; None while those of a large site are counted."""
    activity, until = Activity(view.archive.catalog.database), to_millis(view.at)
    first, last = until // DAY - HEAT_DAYS + 1, until // DAY
    if view.is_large():
        return view.now(f"days up to {last}", lambda graph, site, at: site_facts.pulse(graph, site, at, first, last))
    by_day = heat(activity.changes(view.site, first * DAY, until), first, last)
    return by_day, by_hour(activity.changes_by_hour(view.site, first * DAY, until))


def _links(view: View) -> dict[str, Any] | None:
    found = view.now("ranks", site_facts.ranked)
    return found and {"drawing": found.drawing}


def _broken(view: View) -> dict[str, Any] | None:
    found = view.now("broken", site_facts.broken)
    return found and {"broken": _listed(view, found), "total": found.total(""), "kept_copy": _kept_copy}


def _kept_copy(row: BrokenRow) -> str:
    """Where our archive shows what a broken link led to; empty when it never worked while we looked."""
    return f"/web/{stamp14(row.last_good)}/{row.final or row.target}" if row.last_good else ""


def _ranks(view: View) -> dict[str, Any] | None:
    found = view.now("ranks", site_facts.ranked)
    if found is None:
        return None
    return {"ranks": part(found.rows, view.ask.page, _SIZE), "best": found.rows[0].rank if found.rows else 1.0}


def _report(view: View) -> dict[str, Any] | None:
    found = view.now("findings", lambda graph, site, at: site_facts.found(graph, site, at, FINDINGS))
    if found is None:
        return None
    listing = found.listing
    shown = {"findings": _listed(view, listing), "findings_called": FINDINGS, "depths": found.depths}
    return {**shown, **_kinds(view, listing)}


_FILLED: dict[str, Callable[[View], dict[str, Any] | None]] = {
    "map": _map,
    "picture": _picture,
    "links": _links,
    "pages": _pages,
    "changes": _changes,
    "broken": _broken,
    "ranks": _ranks,
    "report": _report,
}
