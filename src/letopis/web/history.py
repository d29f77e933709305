"""`/url/<url>`: one page through time, and what a reader has not seen of it yet."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter, Request, Response

from letopis.api.access import principal_of
from letopis.api.door import context_of
from letopis.archive.activity import activity_of
from letopis.archive.observers import UnreadMarks
from letopis.archive.reader import RecordReader
from letopis.model import Check, Version
from letopis.monitor.watch_list import WatchList
from letopis.operations import Context
from letopis.operations.crawls import VisitQuery, explain_visit
from letopis.schedule.policies import format_span
from letopis.urls import host
from letopis.web.charts import availability_strip
from letopis.web.languages import translatable
from letopis.web.pages import ListPage, PageRoute, list_page, page_address, page_position, render_page
from letopis.web.timebar import chosen_moment, time_bar

router = APIRouter(route_class=PageRoute)

PLAN_STATES = (
    translatable("it is known, but no crawl plans to visit it"),
    translatable("it waits for its first visit"),
    translatable("it is visited again and again"),
    translatable("a filter, a trap, the limit of its host or a dropped site holds it back"),
    translatable("it was not there and is given up"),
)
"""What `explain_visit` says of a page, for the translations."""
_OWN = ("checks-page", "versions-page", "at")
_CHOICES = 200
_VERSIONS = 25
MOST_RECENT = 2000
"""The last checks that the strip and the list of checks show; `letopis history` lists all."""


def unread_marks(request: Request, context: Context) -> UnreadMarks:
    """What is new to whoever signed in."""
    principal = principal_of(request)
    return UnreadMarks(context.archive, f"web:{principal.name}" if principal.session is not None else "")


@router.get("/url/{rest:path}")
def resource(request: Request) -> Response:
    """Everything that is known of one address: state, availability, versions, checks."""
    context = context_of(request)
    archive = context.archive
    asked = page_address(archive, request.scope, "/url/", _OWN)
    answers = archive.answers
    row = answers.resource(asked.url)
    checks = answers.newest_checks(asked.url, MOST_RECENT)
    newest = answers.versions(asked.url, row.versions - MOST_RECENT)
    versions = _versions_page(answers, asked.url, row.versions, asked.own.get("versions-page", ""))
    unread_marks(request, context).read([asked.url])
    at, now = chosen_moment(request, context.moment(), asked.own.get("at", "")), context.moment()
    return render_page(
        request,
        "resource.html",
        url=asked.url,
        host=host(asked.url),
        title=activity_of(archive).title(row.id),
        last=checks[-1],
        strip=availability_strip(checks, archive.clock()),
        plan=explain_visit(context, VisitQuery(url=asked.url)).value,
        gap=_gap(checks),
        watch=WatchList(archive).find(asked.url),
        versions=versions,
        choices=newest[::-1][:_CHOICES],
        verdicts=answers.checks_of_versions(asked.url, [version.number for version in versions.rows]),
        checks=list_page(checks[::-1], asked.own.get("checks-page", ""), 50),
        checked=answers.count_checks(asked.url),
        newest=newest[-1] if newest else None,
        then=_version_at(newest, at),
        at=at,
        bar=time_bar(request, at, ((version.time, 1) for version in newest), now),
        saved=_saved(newest),
    )


def _version_at(versions: list[Version], at: datetime | None) -> Version | None:
    """The version that was valid at a time, the first for an earlier one; the newest for now."""
    if not versions:
        return None
    before = [version for version in versions if at is None or version.time <= at]
    return before[-1] if before else versions[0]


def _versions_page(answers: RecordReader, url: str, count: int, wanted: str) -> ListPage[Version]:
    """The versions of one page of the list, newest first, found by their numbers."""
    number, pages = page_position(count, wanted, _VERSIONS)
    start = (number - 1) * _VERSIONS
    first = max(0, count - start - _VERSIONS)
    rows = answers.versions(url, first, count - start - first)
    return ListPage(rows[::-1], number, pages, count, start)


def _saved(versions: list[Version]) -> float | None:
    raw = sum(version.raw_bytes for version in versions)
    return 1 - sum(version.stored_bytes for version in versions) / raw if raw else None


def _gap(checks: list[Check]) -> str:
    """How far apart two changes lie on the average; empty when fewer than two were seen."""
    times = [check.checked_at for check in checks if check.outcome == "changed" and check.meaningful is not False]
    return format_span((times[-1] - times[0]).total_seconds() / (len(times) - 1)) if len(times) > 1 else ""
