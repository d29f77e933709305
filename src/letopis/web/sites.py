"""`/site/<host>`: a site as of any date: its map, pages, broken links, ranks, changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit
from weakref import ref

from fastapi import APIRouter, Request, Response

from letopis.api.door import context_of
from letopis.api.requests import origin_of
from letopis.archive import Archive
from letopis.archive.activity import DAY, activity_of
from letopis.archive.index_facts import require_site
from letopis.errors import NotFound, UsageError
from letopis.index.link_graph import Graph
from letopis.index.page_places import PageSources
from letopis.index.site_audit import AuditedPage
from letopis.index.site_maps import MapOutline
from letopis.model import Check, from_millis, parse_time, rfc3339, to_millis
from letopis.operations import Context, bind, site_listings
from letopis.operations.links import RankQuery, SiteMapQuery, SiteReportQuery, rank, site_report
from letopis.operations.site_listings import (
    FRESH,
    MOST_RANKS,
    AuditCounts,
    FindingRow,
    SiteAuditQuery,
    SiteListing,
    TimedGraph,
    audit_history,
    findings_listing,
    page_facts,
    site_audit,
    timed_graph,
)
from letopis.tuples import NamedTuple
from letopis.web.cache import PageCache, page_cache_of
from letopis.web.charts import MOST_WARM, ChangesByHour, HeatMap, bars, changes_by_hour, heat_map
from letopis.web.languages import translatable
from letopis.web.maps import (
    MOST_AREAS,
    MOST_DOTS,
    MOST_MAP_DEPTH,
    MOST_MAP_PAGES,
    MOST_UPRIGHT,
    LinkDrawing,
    TitleShortener,
    draw_links,
    map_tree,
    treemap,
)
from letopis.web.pages import PageRoute, render_page, short_time
from letopis.web.site_tables import (
    ANSWER_NAMES,
    AUDIT_COLUMNS,
    BROKEN_COLUMNS,
    EVENT_COLUMNS,
    EVENT_NAMES,
    FINDING_COLUMNS,
    FINDING_NAMES,
    ISSUE_NAMES,
    LINK_COLUMNS,
    PAGE_COLUMNS,
    RANK_COLUMNS,
    RankLine,
    audit_table,
    broken_line,
    event_line,
    page_line,
    with_lines,
    with_replaced_texts,
)
from letopis.web.tables import PAGE_ROWS, TableQuestion, make_table, table_download
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
    "report": translatable("Structure"),
    "audit": translatable("Audit"),
}
HEAT_DAYS = 42
_SIZE, _FEW = 50, 20
"""Rows of a page of the list of a large site, and of lists that hold more in each."""
_PLACES = {"audit": "pages", "changes": "events"}
"""Such lists, and where on their page they stand."""
_SORTED = 5_000
"""Pages up to which a site is sorted by its changes; larger ones are listed by address, a page at a time.

Nobody waits for the views of a larger one either: the first of each is made in the background.
"""
_SECTIONS = 12
"""Largest parts of a site that stand beside its picture."""
_AUDITS = 12
"""Times at which the audit shows how many pages had issues."""
_MOMENTS = 50
"""Times of changes that are offered to compare with."""
_MOST_AUDITED_AGAIN = 500
"""Pages up to which a site is audited at earlier times as well."""


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
    home: str = ""

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

        def value(seen: TimedGraph) -> T | None:
            at = seen.moments.last(to_millis(self.at))
            key = (name, self.site, at if self.ask.at else None)
            return self._kept(key, lambda: make(seen.graph, self.site, at), (ref(seen.graph), at))

        return self._of_links(value)

    def between(self, name: str, make: Callable[[Graph, str, int, int], T]) -> T | None:
        """The same for the time between the two dates."""

        def value(seen: TimedGraph) -> T | None:
            since, at = (seen.moments.last(to_millis(time)) for time in (self.since, self.at))
            key = (name, self.site, since if self.ask.since or self.ask.at else None, at if self.ask.at else None)
            return self._kept(key, lambda: make(seen.graph, self.site, since, at), (ref(seen.graph), since, at))

        return self._of_links(value)

    def soon(self, name: str, make: Callable[[], T]) -> T | None:
        """A value that nobody waits for, made again when the links of the archive are others."""
        seen = self._links()
        if seen is None:
            return None
        at = seen.moments.last(to_millis(self.at))
        return self.known.soon((name, self.site, at if self.ask.at else None), 0, make, (ref(seen.graph), at))

    def _links(self) -> TimedGraph | None:
        """The links of the archive, at most a few seconds old; None while they are read for the first time."""
        return self.known.soon("graph", FRESH, lambda: timed_graph(self.context))

    def _of_links(self, value: Callable[[TimedGraph], T | None]) -> T | None:
        """Asks once more where a site that the archive knows is newer than the links at hand."""
        seen = self._links()
        try:
            return None if seen is None else value(seen)
        except NotFound:
            fresh = self.known.anew("graph", lambda: timed_graph(self.context))
            if seen is not None and fresh.graph is seen.graph:
                raise
            return value(fresh)

    def _kept(self, key: tuple[object, ...], make: Callable[[], T], state: tuple[object, ...]) -> T | None:
        return (self.known.soon if self.is_large() else self.known.get)(key, 0, make, state)


@router.get("/site/{name}")
def site(
    request: Request, name: str, view: str = "map", at: str = "", since: str = "", page: str = "", kind: str = ""
) -> Response:
    """One view of a site; `at` is the date it is seen from, `since` the one it is compared with."""
    if view not in SITE_VIEWS:
        raise UsageError(f"unknown view '{view[:40]}'; choose one of {', '.join(SITE_VIEWS)}")
    return _answer(request, name, SiteQuery(view, at, since, page, kind))


def _answer(request: Request, where: str, ask: SiteQuery) -> Response:
    context = context_of(request)
    name, now = require_site(context.archive, where), context.moment()
    ask = ask._replace(at=chosen_time(request, ask.at))
    query = bind(SiteMapQuery, {"site": name, "at": ask.at or None}, now)
    seen_from = query.at or now
    before = parse_time(ask.since, now) if ask.since else seen_from - timedelta(days=7)
    found = SiteView(context, page_cache_of(request), name, seen_from, before, ask, origin_of(request.scope))
    filled = _FILLED[ask.view](found)
    if filled and "rows" in filled:
        asked = _QUESTIONS.get(ask.view)
        question = asked and TableQuestion(asked[0], {"site": name, **asked[1]})
        size, place = _FEW if ask.view in (*_PLACES, "ranks") else PAGE_ROWS, _PLACES.get(ask.view, "")
        table = make_table(request, filled["columns"], filled["rows"], size=size, question=question, place=place)
        wanted = table_download(table.with_rows(filled.get("whole", list)), f"{name}-{ask.view}")
        if wanted is not None:
            return wanted
        filled |= {"table": table.with_part(filled.get("whole", list))}
    if filled and filled.get("audits"):
        filled |= {"over": make_table(request, *audit_table(filled["audits"]), key="over")}
        wanted = table_download(filled["over"], f"{name}-issues-over-time")
        if wanted is not None:
            return wanted
    return render_page(
        request, "site.html", site=name,
        pages=None if ask.at else found.count(), answers=found.now("answers", site_listings.count_answers),
        view=ask.view, answers_called=ANSWER_NAMES, views=SITE_VIEWS, at=seen_from, since=before, dated=bool(ask.at),
        bar=time_bar(request, seen_from if ask.at else None, found.times(), now), moments=_moments(found.times()),
        link=urlencode(
            {"view": ask.view, "at": rfc3339(seen_from)} | ({"since": rfc3339(before)} if ask.since else {})
        ),
        kept=urlencode({name: value for name, value in (("at", ask.at), ("since", ask.since)) if value}),
        waiting=filled is None, checked=_checked(context, request.query_params.get("checked", "")), **(filled or {}),
    )  # fmt: skip


def _moments(times: Sequence[CountedTime]) -> list[datetime]:
    """The last minutes by which something had changed, the newest first."""
    ended = {when.replace(second=0, microsecond=0) + timedelta(minutes=1) for when, _ in times}
    return sorted(ended, reverse=True)[:_MOMENTS]


def _checked(context: Context, url: str) -> Check | None:
    """The last check of an address that somebody had checked again from a list."""
    try:
        return context.archive.answers.newest_checks(url, 1)[-1] if url else None
    except NotFound:
        return None


def _upper_map(view: SiteView, most: int) -> MapOutline | None:
    return view.now(
        f"map of {most}", lambda graph, site, at: site_listings.upper_map(graph, site, at, MOST_MAP_DEPTH, most)
    )


_MARKED = ("changed", "renamed", "appeared", "moved")
"""What the map marks on the pages that it shows; of several the last one."""


def _map(view: SiteView) -> dict[str, Any] | None:
    """The tree; compared with an earlier date, its pages bear what happened to them since."""
    found = _upper_map(view, MOST_MAP_PAGES)
    events = view.between("events", site_listings.events_listing) if view.ask.since else SiteListing({}, {})
    if found is None or events is None:
        return None
    marks = {row.to or row.url: row for event in _MARKED for row in events.rows.get(event, ())}
    known = {"tree": map_tree(found), "marks": marks, "gone": events.rows.get("vanished", ())}
    return {**known, "compared": bool(view.ask.since), "counts": events.counts, "events_called": EVENT_NAMES}


def _picture(view: SiteView) -> dict[str, Any] | None:
    found, narrow = _upper_map(view, MOST_AREAS), _upper_map(view, MOST_UPRIGHT)
    if found is None or narrow is None:
        return None
    tree = map_tree(found)
    sections = sorted((one for one in tree.root.children if one.below), key=lambda one: -one.below)[:_SECTIONS]
    pictures = {"wide": treemap(found), "upright": treemap(narrow, upright=True)}
    return {"pictures": pictures, "sections": sections, "tree": tree}


def _pages(view: SiteView) -> dict[str, Any] | None:
    """Those that were there then, with what the links say of them; nobody waits for that of a large site."""
    activity = activity_of(view.archive)
    number = view.ask.page
    if view.is_large():
        found = activity.pages_after(view.site, _SIZE + 1, number if ")" in number else "")
        rows = [row for _, row in found[:_SIZE]]
        after = found[_SIZE - 1][0] if len(found) > _SIZE else ""
    else:
        rows, after = activity.pages(view.site, _SORTED, 0), ""
    urls, dated = [row.url for row in rows], bool(view.ask.at)
    facts = view.now(f"facts {number}", lambda graph, site, at: page_facts(graph, site, at, urls))
    if facts is None and dated:
        return None
    lines = [page_line(row, (facts or {}).get(row.url), dated) for row in rows if not dated or row.url in (facts or {})]
    named = TitleShortener(row.title for row in rows).of
    # How often a page was looked at is known of now alone.
    columns = [column for column in PAGE_COLUMNS if not dated or column.name not in ("versions", "checked")]
    kinds = {} if facts is None or view.is_large() else Counter(line.answer for line in lines)
    wanted = view.ask.kind if kinds else ""
    shown = [line for line in lines if not wanted or line.answer == wanted]
    table = {"columns": columns, "rows": shown, "after": after, "named": named}
    return {**table, "counts": kinds, "kind": wanted}


def _changes(view: SiteView) -> dict[str, Any] | None:
    found = view.between("events", site_listings.events_listing)
    if found is None:
        return None
    by_day, hours = _heat(view) or (None, None)
    shown = {"heat": by_day, "hours": hours}
    newest = sorted(found.of(view.ask.kind), key=lambda row: row.time or view.since, reverse=True)
    whole = partial(with_replaced_texts, view.archive, view.since, view.at)
    table = {"columns": EVENT_COLUMNS, "rows": list(map(event_line, newest)), "whole": whole}
    named = TitleShortener(row.title for row in newest).of
    return {**table, "events_called": EVENT_NAMES, "named": named, **_kinds(view, found), **shown}


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
    return found and {"drawing": found, "columns": LINK_COLUMNS, "rows": found.dots}


def _broken(view: SiteView) -> dict[str, Any] | None:
    found = view.now("broken", site_listings.broken_listing)
    if found is None:
        return None
    rows = [broken_line(view.home, row) for row in found.of("")]
    whole = partial(with_lines, PageSources(view.archive, view.at), view.archive.answers)
    known = view.now("targets", site_listings.count_targets)
    return {"total": found.total(""), "columns": BROKEN_COLUMNS, "rows": rows, "whole": whole, "known": known}


def _ranks(view: SiteView) -> dict[str, Any] | None:
    def ranked(graph: Graph, site: str, since: int, at: int) -> list[RankLine]:
        asked = (RankQuery(site=site, top=MOST_RANKS, at=from_millis(when)) for when in (since, at))
        before, found = ({row.url: row.rank for row in rank(view.context, one)} for one in asked)
        facts = page_facts(graph, site, at, found)
        return [
            RankLine(
                place, url, facts[url].page.title, value, value - before[url] if url in before else None,
                facts[url].links_in, facts[url].clicks,
            )
            for place, (url, value) in enumerate(found.items(), 1)
        ]  # fmt: skip

    found = view.between("ranks", ranked)
    if found is None:
        return None
    named = TitleShortener(row.title for row in found).of
    return {"columns": RANK_COLUMNS, "rows": found, "named": named}


_ALONE = ("orphan", "unreachable")
"""Findings of one page each, which is called by its title."""
_ALONE_COLUMNS = ("finding", "detail")


def _report(view: SiteView) -> dict[str, Any] | None:
    def report(graph: Graph, site: str, at: int) -> SiteListing[FindingRow]:
        found = findings_listing(
            site_report(view.context, SiteReportQuery(site=site, at=from_millis(at))), FINDING_NAMES
        )
        facts = page_facts(graph, site, at, (row.urls[0] for kind in _ALONE for row in found.rows[kind]))
        named = {
            kind: [row._replace(detail=facts[row.urls[0]].page.title) for row in found.rows[kind]] for kind in _ALONE
        }
        return found._replace(rows=found.rows | named)

    found, depths = view.now("findings", report), view.now("depths", site_listings.click_depths)
    if found is None or depths is None:
        return None
    # What all rows of a list have in common does not stand in each.
    common = {"": (), "orphan": _ALONE_COLUMNS, "unreachable": _ALONE_COLUMNS}.get(view.ask.kind, ("finding",))
    columns = [column for column in FINDING_COLUMNS if column.name not in common]
    table = {"columns": columns, "rows": found.of(view.ask.kind)}
    return {**table, "findings_called": FINDING_NAMES, "depths": depths, **_kinds(view, found)}


def _audit(view: SiteView) -> dict[str, Any] | None:
    """Every page with its issues; made in the background, and kept as long as nothing changes."""
    found = view.soon("audit", lambda: _audited(view))
    if found is None:
        return None
    rows, about = found
    kept = [row for row in rows if not view.ask.kind or view.ask.kind in row.issues]
    over_time = None if len(rows) > _MOST_AUDITED_AGAIN else view.soon("audits", lambda: _audits(view))
    return {
        "columns": AUDIT_COLUMNS,
        "rows": kept,
        "counts": about["issues"],
        "about": about,
        "faulty": sum(bool(row.issues) for row in rows),
        "kind": view.ask.kind,
        "issues_called": ISSUE_NAMES,
        "audits": over_time or [],
        "audit_bars": bars([(short_time(one.at), sum(one.issues.values()), 0) for one in over_time or []]),
    }


def _audits(view: SiteView) -> list[AuditCounts]:
    """The audits at some of the times at which the site changed, up to the one that is seen."""
    times = [moment for moment, _ in view.times() if moment <= view.at]
    step = max(1, -(-len(times) // _AUDITS))
    return audit_history(view.context, view.site, times[::-1][::step][::-1], _MOST_AUDITED_AGAIN)


def _audited(view: SiteView) -> tuple[list[AuditedPage], Mapping[str, Any]]:
    found = site_audit(view.context, SiteAuditQuery(site=view.site, at=view.at if view.ask.at else None))
    return list(found), found.about


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
_QUESTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "changes": ("mapdiff", {"from": "7d ago"}),
    "broken": ("broken", {}),
    "report": ("report", {}),
    "audit": ("site_audit", {}),
}
"""Views whose tables can be saved: the operation that answers the same, and its parameters beside the site."""
