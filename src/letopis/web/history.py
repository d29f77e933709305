"""`/url/<url>`: one page through time, and what a reader has not seen of it yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from letopis.api.access import principal_of
from letopis.api.door import context_of
from letopis.archive import Archive
from letopis.archive.activity import activity_of
from letopis.archive.observers import UnreadMarks
from letopis.archive.verdicts import ReplacedText, judged, replaced_texts
from letopis.index.link_graph import Graph
from letopis.index.link_reports import LinkRow, links_for
from letopis.model import Check, Version, to_millis
from letopis.monitor.watch_list import WatchList
from letopis.operations import Context
from letopis.operations.checks import redirected_to
from letopis.operations.crawls import VisitQuery, explain_visit
from letopis.operations.site_listings import FRESH, timed_graph
from letopis.schedule.policies import format_span
from letopis.tuples import NamedTuple
from letopis.urls import host
from letopis.web.cache import page_cache_of
from letopis.web.charts import availability_strip
from letopis.web.languages import translatable
from letopis.web.pages import PageRoute, page_address, render_page, url_in_path
from letopis.web.tables import MOST_ROWS, TableAddress, TableColumn, first_download, make_table, table_names
from letopis.web.timebar import chosen_moment, time_bar

router = APIRouter(route_class=PageRoute)

PLAN_STATES = (
    translatable("known, but not planned by any crawl"),
    translatable("waiting for its first visit"),
    translatable("revisited regularly"),
    translatable("held back by a filter, a trap, the limit of its host, or because its site was dropped"),
    translatable("not found and given up"),
)
"""What `explain_visit` says of a page, for the translations."""
_SAVED_NOW = "saved.now"
_OWN = ("at", "alert", _SAVED_NOW, *table_names("v"), *table_names("c"), *table_names("in"), *table_names("out"))
_CHOICES = 200
_SIZE, _FEW, _MOST_COUNTED = 15, 6, 1000
"""Rows of each of the tables of a page, which are four, and those that need no filter; alerts of it that are counted
at most.
"""
VERSION_COLUMNS = (
    TableColumn("number", translatable("Version"), "custom"),
    TableColumn("time", translatable("Seen from"), "time"),
    TableColumn("verdict", translatable("What changed"), "custom"),
    TableColumn("raw_bytes", translatable("Size"), "size", aside=True),
    TableColumn("stored_bytes", translatable("Stored"), "size", aside=True),
    TableColumn("method", translatable("Stored as"), hidden=True),
    TableColumn("open", translatable("Open"), "actions", aside=True),
)
CHECK_COLUMNS = (
    TableColumn("checked_at", translatable("When"), "time"),
    TableColumn("verdict", translatable("Outcome"), "custom"),
    TableColumn("status", translatable("Status"), "custom"),
    TableColumn("version", translatable("Version"), "custom", aside=True),
    TableColumn("remarks", translatable("Notes"), "custom", aside=True),
)
LINK_COLUMNS = (
    TableColumn("target", translatable("Leads to"), "custom"),
    TableColumn("text", translatable("Text of the link")),
    TableColumn("type", translatable("Kind"), "custom"),
    TableColumn("rel", translatable("Relation"), hidden=True),
    TableColumn("title", translatable("Title"), hidden=True),
    TableColumn("status", translatable("Status"), "status"),
)
INLINK_COLUMNS = (TableColumn("source", translatable("Found on"), "page"), *LINK_COLUMNS[1:-1])
MOST_RECENT = 2000
"""The last checks that the strip and the list of checks show; `letopis history` lists all."""


def unread_marks(request: Request, context: Context) -> UnreadMarks:
    """What is new to whoever signed in."""
    principal = principal_of(request)
    return UnreadMarks(context.archive, f"web:{principal.name}" if principal.session is not None else "")


class ReadAlerts(NamedTuple):
    """How many alerts of a page whoever opened one of them has read by that, and since when nothing was read."""

    number: int
    before: int


READ_BEFORE = ReadAlerts(0, 0)


def mark_seen(request: Request, context: Context, url: str, until: int | None = None) -> ReadAlerts:
    """Whoever opened an alert of a page has read what is new of it, all of it or up to a time."""
    marks = unread_marks(request, context)
    before = marks.read_at([url]).get(url)
    if before is None:  # nobody signed in
        return READ_BEFORE
    found = [row for row in WatchList(context.archive).alerts(url, _MOST_COUNTED) if row.time > before]
    if until is not None:
        marks.move_up_to(url, until)
    elif found or marks.unread([url]):
        marks.move_to_newest([url])
    return ReadAlerts(sum(until is None or row.time <= until for row in found), before)


@router.get("/url/{rest:path}")
def resource(request: Request) -> Response:
    """Everything that is known of one address; with `alert`, whoever comes from that alert has read it."""
    context = context_of(request)
    archive = context.archive
    asked = page_address(archive, request.scope, "/url/", _OWN)
    answers = archive.answers
    row = answers.resource(asked.url)
    checks = answers.newest_checks(asked.url, MOST_RECENT)
    newest = answers.versions(asked.url, row.versions - MOST_RECENT)
    place = TableAddress(f"/url/{url_in_path(asked.url)}", asked.own)
    whole = partial(_with_verdicts, archive, asked.url)
    versions = make_table(
        place, VERSION_COLUMNS, [VersionLine(*_facts(one), None) for one in newest[::-1]], "v", _SIZE, few=_FEW
    )
    listed = make_table(place, CHECK_COLUMNS, [CheckLine(check) for check in checks[::-1]], "c", _SIZE, few=_FEW)
    whole_lines = partial(_judged_lines, archive)
    at, now = chosen_moment(request, context.moment(), asked.own.get("at", "")), context.moment()
    seen = page_cache_of(request).soon("graph", FRESH, lambda: timed_graph(context))
    links = seen and {
        name: make_table(
            place, columns, _links(seen.graph, asked.url, at or now, inward=name == "in"), name, _SIZE, few=_FEW
        )
        for name, columns in (("in", INLINK_COLUMNS), ("out", LINK_COLUMNS))
    }
    wanted = first_download(
        {"versions": versions.with_rows(whole), "checks": listed.with_rows(whole_lines)}
        | {f"links-{name}": table for name, table in (links or {}).items()}
    )
    if wanted is not None:
        return wanted
    then = _version_at(newest, at)
    seen_now = mark_seen(request, context, asked.url) if asked.own.get("alert") else READ_BEFORE
    return render_page(
        request, "resource.html", url=asked.url, host=host(asked.url), title=activity_of(archive).title(row.id),
        last=checks[-1], strip=availability_strip(checks, archive.clock()),
        plan=explain_visit(context, VisitQuery(url=asked.url)).value, gap=_gap(checks),
        watch=WatchList(archive).find(asked.url), kept=row.versions, versions=versions.with_part(whole),
        choices=newest[::-1][:_CHOICES], checks=listed.with_part(whole_lines), checked=answers.count_checks(asked.url),
        newest=newest[-1] if newest else None, then=then, at=at, seen=then and _seen_at(then, checks, at),
        bar=time_bar(request, at, ((version.time, 1) for version in newest), now), saved=_saved(newest), links=links,
        seen_now=seen_now, saved_now=bool(asked.own.get(_SAVED_NOW)),
    )  # fmt: skip


def _links(graph: Graph, url: str, at: datetime, *, inward: bool) -> list[LinkRow]:
    """The links to or of a page at a time; none while it is not in the index."""
    known = graph.addresses.find(url) >= 0
    return links_for(graph, url, to_millis(at), inward=inward)[:MOST_ROWS] if known else []


def _version_at(versions: list[Version], at: datetime | None) -> Version | None:
    """The version that was valid at a time, the first for an earlier one; the newest for now."""
    if not versions:
        return None
    before = [version for version in versions if at is None or version.time <= at]
    return before[-1] if before else versions[0]


def _seen_at(version: Version, checks: Sequence[Check], at: datetime | None) -> datetime:
    """When a version was seen last up to a time: whoever follows its links from there stays near that time."""
    seen = (check.checked_at for check in checks if check.version == version.number)
    return max((time for time in seen if at and time <= at), default=version.time)


class VersionLine(NamedTuple):
    """A version as the table shows it; `found` is the check that brought it, once somebody looks at the row."""

    number: int
    time: datetime
    raw_bytes: int
    stored_bytes: int
    method: str
    found: Check | None

    @property
    def verdict(self) -> str:
        """What the check that brought it said of the change."""
        return "new" if self.number == 0 else self.found.verdict if self.found is not None else "changed"

    @property
    def texts(self) -> list[ReplacedText]:
        """What went and came with it, each that went beside what took its place."""
        return replaced_texts(self.found)


def _facts(version: Version) -> tuple[int, datetime, int, int, str]:
    return version.number, version.time, version.raw_bytes, version.stored_bytes, version.method


def _with_verdicts(archive: Archive, url: str, rows: Sequence[VersionLine]) -> list[VersionLine]:
    checks = archive.answers.checks_of_versions(url, [row.number for row in rows]).values()
    found = {check.version: check for check in judged(archive, checks)}
    return [row._replace(found=found.get(row.number)) for row in rows]


def _judged_lines(archive: Archive, rows: Sequence[CheckLine]) -> list[CheckLine]:
    return list(map(CheckLine, judged(archive, (row.check for row in rows))))


@dataclass(frozen=True, slots=True)
class CheckLine:
    """A check as the table shows it."""

    check: Check

    def __getattr__(self, name: str) -> Any:
        return getattr(self.check, name)

    @property
    def remarks(self) -> str:
        """What is said of it in words."""
        return "; ".join(filter(None, [self.check.error, self.beside]))

    @property
    def beside(self) -> str:
        """Where it was led, and what to beware of."""
        hops = [f"{hop.status} → {hop.location}" for hop in self.check.redirects]
        if not hops and (target := redirected_to(self.check)):
            hops = [f"{self.check.status} → {target}"]
        return "; ".join([*hops, *self.check.warnings])


def _saved(versions: list[Version]) -> float | None:
    raw = sum(version.raw_bytes for version in versions)
    return 1 - sum(version.stored_bytes for version in versions) / raw if raw else None


def _gap(checks: list[Check]) -> str:
    """How far apart two changes lie on the average; empty when fewer than two were seen."""
    times = [check.checked_at for check in checks if check.outcome == "changed" and check.meaningful is not False]
    return format_span((times[-1] - times[0]).total_seconds() / (len(times) - 1)) if len(times) > 1 else ""
