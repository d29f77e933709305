"""`/watches`: standing checks, what they last saw, their alerts, and actions on several of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from letopis.api.access import principal_of
from letopis.api.door import context_of
from letopis.api.requests import http_status_of
from letopis.archive.watches import WatchedPage, watched_pages
from letopis.errors import LetopisError, QuotaUsedUp, UsageError, shell_words
from letopis.model.rights import WRITE
from letopis.monitor.watch import FILTER_KINDS
from letopis.operations import Context, Operation, bind
from letopis.operations import watches as operations
from letopis.schedule.policies import format_span
from letopis.web.history import unread_marks
from letopis.web.languages import translatable
from letopis.web.pages import ListPage, PageRoute, fields_of, form_of, page_position, render_page

router = APIRouter(route_class=PageRoute)

_SIZE = 40
_ALERTS = 20
_PLAIN_FIELDS = ("every", "cron", "jitter", "tag", "when")
_DONE = {
    "added": translatable("Watch saved; new ones are checked now."),
    "removed": translatable("Watches removed; what they recorded stays."),
    "check": translatable("They are due now; a running daemon checks them within seconds."),
    "pause": translatable("Watches paused."),
    "resume": translatable("Watches resumed; they are due now."),
    "tag": translatable("Tag changed."),
    "read": translatable("Everything is marked as read."),
    "test": translatable("The test notification was delivered."),
}
_ACTIONS: dict[str, Operation[Any, Any]] = {
    "check": operations.watch_check,
    "resume": operations.watch_resume,
    "pause": operations.watch_pause,
    "tag": operations.watch_tag,
    "remove": operations.watch_remove,
    "test": operations.watch_test,
}


class WatchLine(NamedTuple):
    """A watch as the list shows it."""

    watch: operations.WatchDetails
    rhythm: str
    page: WatchedPage
    unread: bool


class WatchesNotice(NamedTuple):
    """Which watches, and what to say above them."""

    tag: str = ""
    number: str = ""
    done: str = ""
    problem: str = ""
    form: Mapping[str, str] = MappingProxyType({})


@router.get("/watches")
def watches(request: Request, tag: str = "", page: str = "", done: str = "") -> Response:
    """All watches, or those of a tag."""
    return _watches_page(request, WatchesNotice(tag, page, _DONE.get(done, "")))


def _watches_page(request: Request, notice: WatchesNotice, status: int = 200) -> Response:
    """The list, a page of it."""
    context = context_of(request)
    counts = {row.tag: row.watches for row in operations.watch_tags(context, operations.NoParameters()) if row.watches}
    total = counts.get(notice.tag, 0) if notice.tag else sum(counts.values())
    number, pages = page_position(total, notice.number, _SIZE)
    first = (number - 1) * _SIZE
    asked = operations.WatchListQuery(tag=notice.tag or None, limit=_SIZE, offset=first)
    lines = _lines(request, context, list(operations.watch_list(context, asked)))
    return render_page(
        request,
        "watches.html",
        status,
        watches=ListPage(lines, number, pages, total, first),
        tags=[(name, count) for name, count in counts.items() if name],
        everything=sum(counts.values()),
        ask=notice,
        alerts=list(operations.watch_alerts(context, operations.AlertsQuery(limit=_ALERTS))),
        kinds=", ".join(FILTER_KINDS),
        may_write=principal_of(request).may(WRITE),
    )


def _lines(request: Request, context: Context, found: Sequence[operations.WatchDetails]) -> list[WatchLine]:
    urls = [watch.url for watch in found]
    unread = unread_marks(request, context).unread(urls)
    return [
        WatchLine(watch, watch.cron or format_span(watch.every), page, watch.url in unread)
        for watch, page in zip(found, watched_pages(context.archive, urls), strict=True)
    ]


def _refused(request: Request, error: LetopisError, form: Mapping[str, str] | None = None) -> Response:
    """The page again, with what is wrong."""
    status = 422 if isinstance(error, UsageError) else http_status_of(error)
    answer = _watches_page(request, WatchesNotice(problem=shell_words(error), form=form or {}), status)
    if isinstance(error, QuotaUsedUp):
        answer.headers["retry-after"] = str(error.seconds)
    return answer


@router.post("/watches")
async def add(request: Request) -> Response:
    """New watches from the form: of pages, or of all that a sitemap names."""
    form = await form_of(request)
    return await run_in_threadpool(_add, request, form)


def _add(request: Request, form: Mapping[str, str]) -> Response:
    context = context_of(request)
    try:
        operations.watch_add(context, bind(operations.AddWatches, _values(form), context.moment(), door="http"))
    except LetopisError as error:
        return _refused(request, error, form)
    return RedirectResponse("/watches?done=added", 303)


def _values(form: Mapping[str, str]) -> dict[str, Any]:
    """What the form says, as the operation takes it; a field that was left empty says nothing."""
    filters = [{"kind": kind, "expression": form[kind]} for kind in FILTER_KINDS if form.get(kind)]
    filters += _lines_of(form.get("filters", ""), "expression")
    lists = {
        "url": form.get("url", "").split(),
        "filters": filters,
        "notify": form.get("notify", "").split(),
        "conditions": _lines_of(form.get("conditions", ""), "value"),
    }
    plain = {name: form.get(name) for name in _PLAIN_FIELDS}
    flags = {"sitemap": form.get("kind") == "sitemap", "browser": form.get("browser") == "yes"}
    return {name: value for name, value in {**plain, **flags, **lists}.items() if value}


def _lines_of(text: str, name: str) -> list[dict[str, str]]:
    """Lines such as `ignore [0-9]+ visitors` as objects: a kind, and what stands behind it."""
    lines = [line.strip().partition(" ") for line in text.splitlines() if line.strip()]
    return [{"kind": kind, name: rest.strip()} for kind, _, rest in lines]


actions_router = APIRouter(route_class=PageRoute)


@actions_router.post("/watches/many")
async def many(request: Request) -> Response:
    """Checks now, pauses, resumes, tags, marks as read or removes the chosen watches."""
    fields = await fields_of(request)
    return await run_in_threadpool(_many, request, fields)


def _many(request: Request, fields: Mapping[str, list[str]]) -> Response:
    urls, action = fields.get("url", []), fields.get("action", [""])[0]
    try:
        if not urls:
            raise UsageError("choose at least one watch first")
        if action == "remove" and "confirmed" not in fields:
            return render_page(request, "confirm.html", urls=urls)
        _carry_out(request, urls, action, fields.get("tag", [""])[0])
    except LetopisError as error:
        return _refused(request, error)
    return RedirectResponse(f"/watches?done={'removed' if action == 'remove' else action}", 303)


def _carry_out(request: Request, urls: list[str], action: str, tag: str) -> None:
    context = context_of(request)
    if action == "read":
        unread_marks(request, context).read(urls)
        return
    if action not in _ACTIONS:
        raise UsageError(f"there is no action '{action[:20]}'; choose one of {', '.join((*_ACTIONS, 'read'))}")
    values = {"url": urls, "tag": tag}
    chosen = _ACTIONS[action]
    answer = chosen(context, bind(chosen.parameters, values, context.moment(), door="http"))
    for fault in answer.faults:
        raise fault
