"""`/url/<url>`: one page through time."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from letopis.archive import Archive
from letopis.catalog.activity import Activity
from letopis.catalog.queues import AGAIN, GONE, HELD, KNOWN, NEW
from letopis.catalog.watches import Watches
from letopis.model import Check, Version, from_millis
from letopis.monitor.book import WatchBook
from letopis.monitor.watch import Watch
from letopis.schedule import VisitState
from letopis.schedule.why import span
from letopis.serve.access import principal_of
from letopis.serve.pages.addresses import asked_page
from letopis.serve.pages.answering import PageRoute, page
from letopis.serve.pages.languages import marked
from letopis.serve.pages.marks import Marks
from letopis.serve.pages.paging import part
from letopis.serve.pages.strip import strip
from letopis.serve.shared import TheArchive
from letopis.urls import host

router = APIRouter(route_class=PageRoute)

_STATES = {
    KNOWN: marked("No crawl plans to visit it."),
    NEW: marked("It waits for its first visit."),
    AGAIN: marked("It is visited again and again."),
    HELD: marked("A filter, a trap or the limit of its host keeps it back."),
    GONE: marked("It was not there and is given up."),
}
_OWN = ("checks-page", "versions-page")


class Plan(NamedTuple):
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
def resource(request: Request, archive: TheArchive) -> Response:
    """Everything that is known of one address: state, availability, versions, checks."""
    asked = asked_page(archive, request.scope, "/url/", _OWN)
    row = archive.answers.resource(asked.url)
    versions = archive.answers.versions(asked.url)
    checks = archive.answers.history(asked.url)
    Marks(archive, principal_of(request)).read([row])
    return page(
        request,
        "resource.html",
        url=asked.url,
        host=host(asked.url),
        title=Activity(archive.catalog.database).title(row.id),
        last=checks[-1],
        strip=strip(checks, archive.clock()),
        plan=_plan(archive, row.id, checks),
        watch=_watch(archive, asked.url),
        versions=part(versions[::-1], asked.own.get("versions-page", ""), 25),
        choices=versions[::-1][:200],
        verdicts=_verdicts(checks),
        checks=part(checks[::-1], asked.own.get("checks-page", ""), 50),
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


def _plan(archive: Archive, number: int, checks: list[Check]) -> Plan:
    state, due, record, _, _ = archive.catalog.queues.plan_of(number)
    visits = VisitState.from_bytes(record)
    return Plan(
        _STATES[state],
        from_millis(due) if due is not None else None,
        span(visits.interval) if visits.interval else "",
        visits.visits,
        visits.changes,
        visits.failures,
        _gap(checks),
        archive.settings.schedule.policy,
    )


def _gap(checks: list[Check]) -> str:
    """How far apart two changes lie on the average; empty when fewer than two were seen."""
    times = [check.checked_at for check in checks if check.outcome == "changed" and check.meaningful is not False]
    return span((times[-1] - times[0]).total_seconds() / (len(times) - 1)) if len(times) > 1 else ""


def _watch(archive: Archive, url: str) -> Watch | None:
    found = Watches(archive.catalog.database).find(url)
    return WatchBook(archive).entry(found).watch if found else None
