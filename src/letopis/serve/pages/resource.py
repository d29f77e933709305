"""`/url/<url>`: one page through time."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from letopis.archive import Archive
from letopis.catalog.activity import Activity
from letopis.catalog.queues import AGAIN, GONE, HELD, KNOWN, NEW
from letopis.model import Check, Version, from_millis
from letopis.schedule import VisitState
from letopis.schedule.why import span
from letopis.serve.pages.addresses import asked_page
from letopis.serve.pages.answering import PageRoute, page
from letopis.serve.pages.paging import part
from letopis.serve.pages.strip import strip
from letopis.serve.shared import TheArchive
from letopis.urls import host

router = APIRouter(route_class=PageRoute)

_STATES = {
    KNOWN: "No crawl plans to visit it.",
    NEW: "It waits for its first visit.",
    AGAIN: "It is visited again and again.",
    HELD: "A filter, a trap or the limit of its host keeps it back.",
    GONE: "It was not there and is given up.",
}
_OWN = ("checks-page", "versions-page")


class Plan(NamedTuple):
    """When a page is visited next, and what earlier visits taught."""

    state: str
    due: datetime | None
    interval: str
    visits: int
    changes: int


@router.get("/url/{rest:path}")
def resource(request: Request, archive: TheArchive) -> Response:
    """Everything that is known of one address: state, availability, versions, checks."""
    asked = asked_page(archive, request.scope, "/url/", _OWN)
    row = archive.answers.resource(asked.url)
    versions = archive.answers.versions(asked.url)
    checks = archive.answers.history(asked.url)
    return page(
        request,
        "resource.html",
        url=asked.url,
        host=host(asked.url),
        title=Activity(archive.catalog.database).title(row.id),
        last=checks[-1],
        strip=strip(checks, archive.clock()),
        plan=_plan(archive, row.id),
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


def _plan(archive: Archive, number: int) -> Plan:
    state, due, record, _, _ = archive.catalog.queues.plan_of(number)
    visits = VisitState.from_bytes(record)
    return Plan(
        _STATES[state],
        from_millis(due) if due is not None else None,
        span(visits.interval) if visits.interval else "",
        visits.visits,
        visits.changes,
    )
