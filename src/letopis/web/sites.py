"""`/site/<host>`: a site as of any date: its map, pages, broken links, ranks, changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode, urlsplit
from weakref import ref

from fastapi import APIRouter, Request, Response

from letopis.api.door import context_of
from letopis.archive import Archive
from letopis.archive.activity import DAY, activity_of
from letopis.archive.index_facts import require_site
from letopis.errors import UsageError
from letopis.index.link_graph import Graph
from letopis.index.link_reports import BrokenRow, RankRow
from letopis.index.site_audit import AuditedPage
from letopis.index.site_maps import MapOutline
from letopis.model import from_millis, parse_time, rfc3339, stamp14, to_millis
from letopis.operations import Context, bind, site_listings
from letopis.operations.links import RankQuery, SiteMapQuery, SiteReportQuery, rank, site_report
from letopis.operations.site_audits import SiteAuditQuery, site_audit
from letopis.operations.site_listings import (
    MOST_RANKS,
    FindingRow,
    SiteListing,
    TimedGraph,
    findings_listing,
    timed_graph,
)
from letopis.web.cache import PageCache, page_cache_of
from letopis.web.charts import MOST_WARM, ChangesByHour, HeatMap, changes_by_hour, heat_map
from letopis.web.languages import translatable
from letopis.web.maps import (
    MOST_DOTS,
    MOST_MAP_DEPTH,
    MOST_MAP_PAGES,
    LinkDrawing,
    TitleShortener,
    draw_links,
    map_tree,
    treemap,
)
from letopis.web.pages import ListPage, PageRoute, list_page, page_position, render_page
from letopis.web.tables import TableColumn, make_table, table_download
from letopis.web.timebar import CountedTime, chosen_time, site_times, time_bar

T = TypeVar("T")

router = APIRouter(route_class=PageRoute)

SITE_VIEWS = {
    "map": translatable("Map"),
    "picture": translatable("Picture"),
    "links": translatable("Links"),
    "pages": translatable("Pages"),
    "changes": translatable("Changes"),
    "broken": translatable("Broken links"),
    "ranks": translatable("Ranks"),
    "report": translatable("Findings"),
    "audit": translatable("Audit"),
}
FINDING_NAMES = {
    "orphan": translatable("nobody links to it"),
    "unreachable": translatable("no way from the home page"),
    "chain": translatable("long redirect"),
    "loop": translatable("redirect in a circle"),
    "duplicate-title": translatable("same title"),
    "duplicate-content": translatable("same content"),
}
ISSUE_NAMES = {
    "error": translatable("error status"),
    "title-missing": translatable("title missing"),
    "title-long": translatable("title too long"),
    "title-duplicate": translatable("title of several pages"),
    "description-missing": translatable("description missing"),
    "description-long": translatable("description too long"),
    "description-duplicate": translatable("description of several pages"),
    "heading-missing": translatable("main heading missing"),
    "headings-several": translatable("several main headings"),
    "canonical-missing": translatable("canonical address missing"),
    "canonical-elsewhere": translatable("canonical address is another"),
    "hreflang-not-mutual": translatable("hreflang not answered"),
    "image-without-alt": translatable("image without alt text"),
    "mixed-content": translatable("loads parts without https"),
    "large": translatable("very large"),
    "deep": translatable("many clicks away"),
    "orphan": translatable("nobody links to it"),
    "unreachable": translatable("no way from the home page"),
    "redirect-chain": translatable("long redirect"),
    "redirect-loop": translatable("redirect in a circle"),
    "content-duplicate": translatable("same content"),
}
AUDIT_COLUMNS = (
    TableColumn("url", translatable("Page"), "page"),
    TableColumn("status", translatable("Status"), "status"),
    TableColumn("issues", translatable("Issues"), "badges"),
    TableColumn("title", translatable("Title")),
    TableColumn("description", translatable("Description")),
    TableColumn("heading", translatable("Main heading"), hidden=True),
    TableColumn("headings", translatable("Main headings"), "number", hidden=True),
    TableColumn("canonical", translatable("Canonical address"), hidden=True),
    TableColumn("alternates", translatable("Languages"), "number", hidden=True),
    TableColumn("depth", translatable("Clicks"), "number"),
    TableColumn("bytes", translatable("Size"), "size"),
    TableColumn("images", translatable("Images"), "number", hidden=True),
    TableColumn("without_alt", translatable("Images without alt text"), "number", hidden=True),
    TableColumn("insecure", translatable("Parts without https"), "number", hidden=True),
)
BROKEN_COLUMNS = (
    TableColumn("target", translatable("Leads to"), "page"),
    TableColumn("status", translatable("Status"), "status"),
    TableColumn("since", translatable("Since"), "time"),
    TableColumn("source", translatable("Found on"), "page"),
    TableColumn("text", translatable("Text of the link")),
    TableColumn("last_good", translatable("Last good version"), "time"),
)
RANK_COLUMNS = (
    TableColumn("url", translatable("Page"), "page"),
    TableColumn("rank", translatable("Rank"), "decimal"),
)
EVENT_NAMES = {
    "appeared": translatable("appeared"),
    "vanished": translatable("vanished"),
    "moved": translatable("moved"),
    "renamed": translatable("renamed"),
    "broken": translatable("broken"),
    "mended": translatable("mended"),
    "changed": translatable("changed"),
}
HEAT_DAYS = 42
_SIZE = 50
_SORTED = 5_000
"""Pages up to which a site is sorted by its changes; larger ones are listed by address, a page at a time.

Nobody waits for the views of a larger one either: the first of each is made in the background.
"""
_FRESH = 5.0
"""Seconds for which a graph is good enough for a page."""


class SiteQuery(NamedTuple):
    """The parameters of a view, as they stand in its link."""

    view: str
    at: str
    since: str
    page: str
    kind: str


@dataclass(frozen=True, slots=True)
class SiteView:
    """What one view of a site is made from."""

    context: Context
    known: PageCache
    site: str
    at: datetime
    since: datetime
    ask: SiteQuery

    @property
    def archive(self) -> Archive:
        """The archive that is served."""
        return self.context.archive

    def is_large(self) -> bool:
        """Whether nobody should wait for all of its pages."""
        return self._few() > _SORTED

    def count(self) -> int | None:
        """How many of its pages are known; None while many of them are counted."""
        count = activity_of(self.archive).count_pages
        return self.known.soon(("pages of", self.site), 5, lambda: count(self.site)) if self.is_large() else self._few()

    def _few(self) -> int:
        count = activity_of(self.archive).count_pages
        return self.known.get(("some of", self.site), 5, lambda: count(self.site, _SORTED + 1))

    def times(self) -> list[CountedTime]:
        """When its pages changed, for the time bar; nobody waits for those of a large site."""
        now = self.context.moment()
        made = partial(site_times, activity_of(self.archive), self.site, now)
        return [] if self.is_large() else self.known.get(("times", self.site), 10, made)

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

    def soon(self, name: str, make: Callable[[], T]) -> T | None:
        """A value that nobody waits for, made again when the links of the archive are others."""
        seen = self._links()
        if seen is None:
            return None
        at = seen.moments.last(to_millis(self.at))
        return self.known.soon((name, self.site, at if self.ask.at else None), 0, make, (ref(seen.graph), at))

    def _links(self) -> TimedGraph | None:
        """The links of the archive, at most a few seconds old; None while they are read for the first time."""
        return self.known.soon("graph", _FRESH, lambda: timed_graph(self.context))

    def _kept(self, key: tuple[object, ...], make: Callable[[], T], state: tuple[object, ...]) -> T | None:
        return (self.known.soon if self.is_large() else self.known.get)(key, 0, make, state)


@router.get("/site/{name}")
def site(
    request: Request,
    name: str,
    view: str = "map",
    at: str = "",
    since: str = "",
    page: str = "",
    kind: str = "",
) -> Response:
    """One view of a site; `at` is the date it is seen from, `since` the one it is compared with."""
    if view not in SITE_VIEWS:
        raise UsageError(f"there is no view '{view[:40]}'; choose one of {', '.join(SITE_VIEWS)}")
    return _answer(request, name, SiteQuery(view, at, since, page, kind))


def _answer(request: Request, where: str, ask: SiteQuery) -> Response:
    context = context_of(request)
    name, now = require_site(context.archive, where), context.moment()
    ask = ask._replace(at=chosen_time(request, ask.at))
    query = bind(SiteMapQuery, {"site": name, "at": ask.at or None}, now)
    seen_from = query.at or now
    before = parse_time(ask.since, now) if ask.since else seen_from - timedelta(days=7)
    found = SiteView(context, page_cache_of(request), name, seen_from, before, ask)
    filled = _FILLED[ask.view](found)
    if filled and "rows" in filled:
        columns, rows = filled["columns"], filled["rows"]
        wanted = table_download(request, columns, rows, f"{name}-{ask.view}")
        if wanted is not None:
            return wanted
        filled |= {"table": make_table(request, columns, rows)}
    return render_page(
        request,
        "site.html",
        site=name,
        pages=found.now("pages then", site_listings.count_pages) if ask.at else found.count(),
        view=ask.view,
        views=SITE_VIEWS,
        at=seen_from,
        since=before,
        dated=bool(ask.at),
        bar=time_bar(request, seen_from if ask.at else None, found.times(), now),
        link=urlencode({"view": ask.view, "at": rfc3339(seen_from)}),
        kept=urlencode({name: value for name, value in (("at", ask.at), ("since", ask.since)) if value}),
        waiting=filled is None,
        **(filled or {}),
    )


def _upper_map(graph: Graph, site: str, at: int) -> MapOutline:
    return site_listings.upper_map(graph, site, at, MOST_MAP_DEPTH, MOST_MAP_PAGES)


def _map(view: SiteView) -> dict[str, Any] | None:
    found = view.now("map", _upper_map)
    return found and {"tree": map_tree(found)}


def _picture(view: SiteView) -> dict[str, Any] | None:
    found = view.now("map", _upper_map)
    return found and {"picture": treemap(found)}


def _pages(view: SiteView) -> dict[str, Any]:
    activity = activity_of(view.archive)
    number = view.ask.page
    if view.is_large():
        found = activity.pages_after(view.site, _SIZE + 1, number if ")" in number else "")
        rows = [row for _, row in found[:_SIZE]]
        listed, after = ListPage(rows, 1, 1, len(rows), 0), found[_SIZE - 1][0] if len(found) > _SIZE else ""
    else:
        total = view.count() or 0
        at, pages = page_position(total, number, _SIZE)
        start = (at - 1) * _SIZE
        listed, after = ListPage(activity.pages(view.site, _SIZE, start), at, pages, total, start), ""
    return {"listed": listed, "after": after, "named": TitleShortener(row.title for row in listed.rows).of}


def _changes(view: SiteView) -> dict[str, Any] | None:
    found = view.between("events", site_listings.events_listing)
    if found is None:
        return None
    by_day, hours = _heat(view) or (None, None)
    shown = {"heat": by_day, "hours": hours}
    return {"events": _listed(view, found), "events_called": EVENT_NAMES, **_kinds(view, found), **shown}


def _listed(view: SiteView, found: SiteListing[T]) -> ListPage[T]:
    return list_page(found.of(view.ask.kind), view.ask.page, _SIZE)


def _kinds(view: SiteView, found: SiteListing[Any]) -> dict[str, Any]:
    """The kinds that a reader can choose from, the one that is chosen, and how many there are of it."""
    return {"counts": found.counts, "kind": view.ask.kind, "total": found.total(view.ask.kind)}


def _heat(view: SiteView) -> tuple[HeatMap, ChangesByHour] | None:
    """Changes by day and by hour; None while those of a large site are counted."""
    activity, until = activity_of(view.archive), to_millis(view.at)
    first, last = until // DAY - HEAT_DAYS + 1, until // DAY
    if view.is_large():
        return view.now(f"days up to {last}", lambda graph, site, at: _large_heat(graph, site, at, first, last))
    by_day = heat_map(activity.changes(view.site, first * DAY, until), first, last)
    return by_day, changes_by_hour(activity.changes_by_hour(view.site, first * DAY, until))


def _large_heat(graph: Graph, site: str, at: int, first: int, last: int) -> tuple[HeatMap, ChangesByHour]:
    found = site_listings.change_activity(graph, site, first * DAY, at, MOST_WARM)
    by_day = heat_map(found.days, first, last)
    return by_day._replace(pages=found.pages, changes=found.changes), changes_by_hour(found.hours)


def _drawing(graph: Graph, site: str, at: int) -> LinkDrawing:
    found = site_listings.drawn_site(graph, site, at, MOST_DOTS)
    names = TitleShortener(found.titles.values())
    return draw_links(found.diagram, lambda url: names.of(found.titles[url]) or urlsplit(url).path)


def _links(view: SiteView) -> dict[str, Any] | None:
    found = view.now("drawing", _drawing)
    return found and {"drawing": found}


def _broken(view: SiteView) -> dict[str, Any] | None:
    found = view.now("broken", site_listings.broken_listing)
    if found is None:
        return None
    listed, rows = _listed(view, found), found.of("")
    return {
        "broken": listed,
        "total": found.total(""),
        "kept_copy": _kept_copy,
        "columns": BROKEN_COLUMNS,
        "rows": rows,
    }


def _kept_copy(row: BrokenRow) -> str:
    """Where our archive shows what a broken link led to; empty when it never worked while we looked."""
    return f"/web/{stamp14(row.last_good)}/{row.final or row.target}" if row.last_good else ""


def _ranks(view: SiteView) -> dict[str, Any] | None:
    def ranked(graph: Graph, site: str, at: int) -> list[RankRow]:
        return list(rank(view.context, RankQuery(site=site, top=MOST_RANKS, at=from_millis(at))))

    found = view.now("ranks", ranked)
    if found is None:
        return None
    return {"columns": RANK_COLUMNS, "rows": found}


def _report(view: SiteView) -> dict[str, Any] | None:
    def report(graph: Graph, site: str, at: int) -> SiteListing[FindingRow]:
        return findings_listing(
            site_report(view.context, SiteReportQuery(site=site, at=from_millis(at))), FINDING_NAMES
        )

    found, depths = view.now("findings", report), view.now("depths", site_listings.click_depths)
    if found is None or depths is None:
        return None
    shown = {"findings": _listed(view, found), "findings_called": FINDING_NAMES, "depths": depths}
    return {**shown, **_kinds(view, found)}


def _audit(view: SiteView) -> dict[str, Any] | None:
    """Every page with its issues; made in the background, and kept as long as nothing changes."""
    found = view.soon("audit", lambda: _audited(view))
    if found is None:
        return None
    rows, counts = found
    kept = [row for row in rows if not view.ask.kind or view.ask.kind in row.issues]
    return {
        "columns": AUDIT_COLUMNS,
        "rows": kept,
        "counts": counts,
        "kind": view.ask.kind,
        "issues_called": ISSUE_NAMES,
    }


def _audited(view: SiteView) -> tuple[list[AuditedPage], dict[str, int]]:
    found = site_audit(view.context, SiteAuditQuery(site=view.site, at=view.at if view.ask.at else None))
    return list(found), found.about["issues"]


_FILLED: dict[str, Callable[[SiteView], dict[str, Any] | None]] = {
    "map": _map,
    "picture": _picture,
    "links": _links,
    "pages": _pages,
    "changes": _changes,
    "broken": _broken,
    "ranks": _ranks,
    "report": _report,
    "audit": _audit,
}
