"""`/url/<url>`: one page through time, and what a reader has not seen of it yet."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from letopis.api.access import Principal, principal_of
from letopis.api.requests import ArchiveDep
from letopis.archive import Archive
from letopis.catalog.activity import Activity
from letopis.catalog.queues import AGAIN, GONE, HELD, KNOWN, NEW
from letopis.catalog.resources import ObserverState
from letopis.catalog.schema import ResourceRow
from letopis.catalog.watches import Watches
from letopis.model import Check, Version, from_millis, to_millis
from letopis.monitor.watch import Watch
from letopis.monitor.watch_list import WatchList
from letopis.schedule import VisitState
from letopis.schedule.policies import format_span
from letopis.urls import host
from letopis.web.charts import availability_strip
from letopis.web.languages import translatable
from letopis.web.pages import PageRoute, list_page, page_address, render_page


class UnreadMarks:
    """Unread marks of one person; whoever is not signed in has none."""

    def __init__(self, archive: Archive, principal: Principal) -> None:
        self._archive = archive
        self._uid = f"web:{principal.name}" if principal.session is not None else ""

    def unread(self, resources: Iterable[ResourceRow]) -> set[int]:
        """Ids of the pages that have a newer version than the person has seen, or changed before they ever looked."""
        rows = list(resources)
        if not self._uid:
            return set()
        looks = self._archive.catalog.observers.looks(self._uid, [row.id for row in rows])
        return {row.id for row in rows if _is_unread(row, looks.get(row.id))}

    def read(self, resources: Iterable[ResourceRow]) -> None:
        """The person has seen the newest versions of these pages."""
        rows = list(resources)
        unread = self.unread(rows)
        if not unread:
            return
        now = to_millis(self._archive.clock())
        looks = [(row.id, ObserverState(row.newest, now)) for row in rows if row.id in unread]
        with self._archive.catalog.transaction() as cursor:
            self._archive.catalog.observers.set_many(cursor, self._uid, looks)


def _is_unread(row: ResourceRow, look: ObserverState | None) -> bool:
    if row.newest is None:
        return False
    return row.versions > 1 if look is None else (look.version or 0) < row.newest


router = APIRouter(route_class=PageRoute)

_STATES = {
    KNOWN: translatable("No crawl plans to visit it."),
    NEW: translatable("It waits for its first visit."),
    AGAIN: translatable("It is visited again and again."),
    HELD: translatable("A filter, a trap or the limit of its host keeps it back."),
    GONE: translatable("It was not there and is given up."),
}
_OWN = ("checks-page", "versions-page")


class RevisitPlan(NamedTuple):
    """When a page is visited next, and what earlier visits taught."""

    state: str
    due: datetime | None
    interval: str
    visits: int
    changes: int
    failures: int
    gap: str
    policy: str


@router.get("/url/{rest:path}")
def resource(request: Request, archive: ArchiveDep) -> Response:
    """Everything that is known of one address: state, availability, versions, checks."""
    asked = page_address(archive, request.scope, "/url/", _OWN)
    row = archive.answers.resource(asked.url)
    versions = archive.answers.versions(asked.url)
    checks = archive.answers.history(asked.url)
    UnreadMarks(archive, principal_of(request)).read([row])
    return render_page(
        request,
        "resource.html",
        url=asked.url,
        host=host(asked.url),
        title=Activity(archive.catalog.database).title(row.id),
        last=checks[-1],
        strip=availability_strip(checks, archive.clock()),
        plan=_plan(archive, row.id, checks),
        watch=_watch(archive, asked.url),
        versions=list_page(versions[::-1], asked.own.get("versions-page", ""), 25),
        choices=versions[::-1][:200],
        verdicts=_verdicts(checks),
        checks=list_page(checks[::-1], asked.own.get("checks-page", ""), 50),
        newest=versions[-1] if versions else None,
        saved=_saved(versions),
    )


def _verdicts(checks: list[Check]) -> dict[int, Check]:
    """The check that brought each version."""
    return {
        check.version: check for check in checks if check.version is not None and check.outcome in ("new", "changed")
    }


def _saved(versions: list[Version]) -> float | None:
    raw = sum(version.raw_bytes for version in versions)
    return 1 - sum(version.stored_bytes for version in versions) / raw if raw else None


def _plan(archive: Archive, number: int, checks: list[Check]) -> RevisitPlan:
    state, due, record, _, _ = archive.catalog.queues.plan_of(number)
    visits = VisitState.from_bytes(record)
    return RevisitPlan(
        _STATES[state],
        from_millis(due) if due is not None else None,
        format_span(visits.interval) if visits.interval else "",
        visits.visits,
        visits.changes,
        visits.failures,
        _gap(checks),
        archive.settings.schedule.policy,
    )


def _gap(checks: list[Check]) -> str:
    """How far apart two changes lie on the average; empty when fewer than two were seen."""
    times = [check.checked_at for check in checks if check.outcome == "changed" and check.meaningful is not False]
    return format_span((times[-1] - times[0]).total_seconds() / (len(times) - 1)) if len(times) > 1 else ""


def _watch(archive: Archive, url: str) -> Watch | None:
    found = Watches(archive.catalog.database).find(url)
    return WatchList(archive).entry(found).watch if found else None
