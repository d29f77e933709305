"""`/url/<url>`: one page through time, and what a reader has not seen of it yet."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from letopis.api.access import principal_of
from letopis.api.door import context_of
from letopis.archive.activity import activity_of
from letopis.archive.observers import UnreadMarks
from letopis.model import Check, Version
from letopis.monitor.watch import Watch
from letopis.monitor.watch_list import WatchList
from letopis.operations import Context
from letopis.operations.crawls import VisitQuery, explain_visit
from letopis.schedule.policies import format_span
from letopis.urls import host
from letopis.web.charts import availability_strip
from letopis.web.languages import translatable
from letopis.web.pages import PageRoute, list_page, page_address, render_page

router = APIRouter(route_class=PageRoute)

PLAN_STATES = (
    translatable("it is known, but no crawl plans to visit it"),
    translatable("it waits for its first visit"),
    translatable("it is visited again and again"),
    translatable("a filter, a trap, the limit of its host or a dropped site holds it back"),
    translatable("it was not there and is given up"),
)
"""What `explain_visit` says of a page, for the translations."""
_OWN = ("checks-page", "versions-page")
_CHOICES = 200


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
    row = archive.answers.resource(asked.url)
    versions, checks = archive.answers.versions(asked.url), archive.answers.history(asked.url)
    unread_marks(request, context).read([asked.url])
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
        watch=_watch(context, asked.url),
        versions=list_page(versions[::-1], asked.own.get("versions-page", ""), 25),
        choices=versions[::-1][:_CHOICES],
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


def _gap(checks: list[Check]) -> str:
    """How far apart two changes lie on the average; empty when fewer than two were seen."""
    times = [check.checked_at for check in checks if check.outcome == "changed" and check.meaningful is not False]
    return format_span((times[-1] - times[0]).total_seconds() / (len(times) - 1)) if len(times) > 1 else ""


def _watch(context: Context, url: str) -> Watch | None:
    entry = WatchList(context.archive).find(url)
    return entry.watch if entry is not None else None
