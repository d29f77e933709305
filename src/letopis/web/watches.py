"""`/watches`: standing checks, what they last saw, their alerts, and actions on several of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from letopis.api.access import principal_of
from letopis.api.door import context_of
from letopis.archive.verdicts import ReplacedText, replaced_texts
from letopis.archive.watches import WatchedPage, watched_pages
from letopis.errors import LetopisError, QuotaUsedUp, UsageError, shell_words
from letopis.model.rights import WRITE
from letopis.monitor.watch import FILTER_KINDS
from letopis.monitor.watch_list import WatchList
from letopis.operations import Context, Operation, alerts, bind, watch_options
from letopis.operations import watches as operations
from letopis.operations.parameters import NoParameters
from letopis.schedule.policies import format_span
from letopis.tuples import NamedTuple
from letopis.web.alerts import alert_lines, shown_alerts
from letopis.web.history import unread_marks
from letopis.web.languages import translatable
from letopis.web.pages import FieldsDep, PageRoute, first_values, form_status, listed_addresses, render_page
from letopis.web.tables import TableAddress, TableColumn, TableQuestion, make_table, table_download
from letopis.web.watch_form import ALERT_NAMES, CONDITION_NAMES, SPANS, SUBJECTS, said_in_form

router = APIRouter(route_class=PageRoute)

_SIZE = 40
_MOST = 2000
"""Watches that are sorted and filtered; of more, those of a tag can be listed."""
_MOST_COUNTED = 300
"""Watches of which the unread ones are counted on every page; of more, when somebody asks for them."""
_ALERTS = 8
WATCH_COLUMNS = (
    TableColumn("url", translatable("Page"), "custom"),
    TableColumn("state", translatable("State"), "custom"),
    TableColumn("change", translatable("Last change"), "custom"),
    TableColumn("rhythm", translatable("How often"), "custom", aside=True, by="every"),
    TableColumn("due", translatable("Next check"), "due", aside=True),
    TableColumn("name", translatable("Name of the watch"), hidden=True),
    TableColumn("tag", translatable("Tag"), hidden=True),
    TableColumn("owner", translatable("Owner"), hidden=True),
    TableColumn("failures", translatable("Failures in a row"), "number", hidden=True),
    TableColumn("undelivered", translatable("Not delivered"), "number", hidden=True),
)
_DONE = {
    "added": translatable("Watching. The first check is running."),
    "another": translatable("This page was already watched; that watch was not changed, and this is another one."),
    "kept": translatable("This page is already watched; its watch was not changed."),
    "removed": translatable("Watches removed; what they recorded stays."),
    "check": translatable("These watches are due now; they are checked within seconds."),
    "pause": translatable("Watches paused."),
    "resume": translatable("Resumed; due now."),
    "tag": translatable("Tag changed."),
    "read": translatable("Everything is marked as read."),
    "unread": translatable("Marked as unread."),
    "test": translatable("The test notification was delivered."),
    "snooze": translatable("Their notifications are held back, and sent afterwards."),
    "saved": translatable("Watch saved."),
    "cloned": translatable("This is the copy; it has its own name."),
}
_ACTIONS: dict[str, Operation[Any, Any]] = {
    "check": operations.watch_check,
    "resume": operations.watch_resume,
    "pause": operations.watch_pause,
    "tag": operations.watch_tag,
    "remove": operations.watch_remove,
    "test": alerts.watch_test,
    "snooze": operations.watch_snooze,
}


class WatchLine(NamedTuple):
    """A watch as the list shows it; what its page last showed is known of those that are seen."""

    watch: operations.WatchDetails
    rhythm: str
    page: WatchedPage | None = None
    unread: bool = False
    texts: Sequence[ReplacedText] = ()

    def __getattr__(self, name: str) -> Any:
        """Fields of the watch are columns of the table."""
        return getattr(self.watch, name)

    @property
    def state(self) -> str:
        """In a word, for the filter and for files."""
        if self.watch.paused:
            return "paused"
        return "snoozed" if self.watch.snoozed else "failing" if self.watch.failures else "active"

    @property
    def change(self) -> datetime | None:
        """When its page changed last."""
        found = self.page.change if self.page is not None else None
        return found.time if found is not None and found.number else None


class WatchesNotice(NamedTuple):
    """Which watches, and what to say above them."""

    tag: str = ""
    show: str = ""
    done: str = ""
    problem: str = ""
    form: Mapping[str, str] = MappingProxyType({})


@router.get("/watches")
def watches(request: Request, tag: str = "", show: str = "", done: str = "") -> Response:
    """All watches, those of a tag, or those in a state: unread, failing, paused."""
    return _watches_page(request, WatchesNotice(tag, show, done_word(done)))


def _watches_page(request: Request, notice: WatchesNotice, status: int = 200) -> Response:
    """The list, a page of it."""
    context = context_of(request)
    counts = {row.tag: row.watches for row in watch_options.watch_tags(context, NoParameters()) if row.watches}
    asked = operations.WatchListQuery(tag=notice.tag or None, limit=_MOST)
    lines = [WatchLine(one, one.cron or format_span(one.every)) for one in operations.watch_list(context, asked)]
    where = TableAddress("/watches", request.query_params)
    whole = partial(_whole_lines, request, context)
    if request.query_params.get("sort", "").removeprefix("-") == "change":
        lines = list(whole(lines))
    question = TableQuestion("watch_list", {"tag": notice.tag} if notice.tag else {})
    shown = _in_states(request, context, lines)
    table = make_table(where, WATCH_COLUMNS, shown.get(notice.show, lines), size=_SIZE, question=question)
    return table_download(table.with_rows(whole), "watches") or render_page(
        request, "watches.html", status, table=table.with_part(whole),
        total=counts.get(notice.tag, 0) if notice.tag else sum(counts.values()),
        tags=[(name, count) for name, count in counts.items() if name], everything=sum(counts.values()), ask=notice,
        alerts=shown_alerts(request, alerts.AlertsQuery(limit=_ALERTS)), shown=shown,
        may_write=principal_of(request).may(WRITE), **form_words(context),
    )  # fmt: skip


def _in_states(request: Request, context: Context, lines: list[WatchLine]) -> dict[str, list[WatchLine]]:
    """The watches that want somebody, by what of."""
    counted = lines if len(lines) <= _MOST_COUNTED or request.query_params.get("show") == "unread" else []
    unread = unread_marks(request, context).unread(line.watch.url for line in counted)
    return {
        "unread": [line for line in lines if line.watch.url in unread],
        "failing": [line for line in lines if line.watch.failures and not line.watch.paused],
        "paused": [line for line in lines if line.watch.paused],
    }


def form_words(context: Context) -> dict[str, Any]:
    """What the form of a watch offers, as its template wants it."""
    return {
        "usual": context.archive.settings.monitor.every,
        "kinds": ", ".join(FILTER_KINDS),
        "subjects": SUBJECTS,
        "spans": SPANS,
        "alert_names": ALERT_NAMES,
        "condition_names": CONDITION_NAMES,
    }


def _whole_lines(request: Request, context: Context, lines: Sequence[WatchLine]) -> list[WatchLine]:
    urls = [line.watch.url for line in lines]
    unread = unread_marks(request, context).unread(urls)
    return [
        line._replace(page=page, unread=line.watch.url in unread, texts=_texts(context, line.watch, page))
        for line, page in zip(lines, watched_pages(context.archive, urls), strict=True)
    ]


def _texts(context: Context, watch: operations.WatchDetails, page: WatchedPage) -> Sequence[ReplacedText]:
    """What went and came in the last change; through filters what its alert says, and nothing where none was raised."""
    if page.change is None or not page.change.number:
        return ()
    if not watch.filters:
        return replaced_texts(page.change)
    raised = alert_lines(alerts.watch_alerts(context, alerts.AlertsQuery(url=watch.url, limit=_ALERTS)))
    return next((one.texts for one in raised if (one.watch, one.time) == (watch.id, page.change.time)), ())


def _refused(request: Request, error: LetopisError, form: Mapping[str, str] | None = None) -> Response:
    """The page again, with what is wrong."""
    answer = _watches_page(request, WatchesNotice(problem=shell_words(error), form=form or {}), form_status(error))
    if isinstance(error, QuotaUsedUp):
        answer.headers["retry-after"] = str(error.seconds)
    return answer


@router.post("/watches")
def add(request: Request, fields: FieldsDep) -> Response:
    """New watches from the form: of pages, or of all that a sitemap names.

    A page that is watched already gets another watch: nothing of the first is lost.
    """
    context, form = context_of(request), first_values(fields)
    said = said_in_form(form, fields) | {"url": listed_addresses(form.get("url", "")), "another": True}
    said |= {"sitemap": True} if form.get("kind") == "sitemap" else {}
    try:
        made = list(operations.watch_add(context, bind(operations.AddWatches, said, context.moment(), door="http")))
    except LetopisError as error:
        return _refused(request, error, ticked(form, fields))
    done = "another" if any(one.name for one in made) else "added"
    return RedirectResponse(f"/watches/{made[0].id}?done={done}" if len(made) == 1 else f"/watches?done={done}", 303)


def ticked(form: Mapping[str, str], fields: Mapping[str, list[str]]) -> dict[str, str]:
    """The form with a field for each alert that is ticked, as its template shows it."""
    return {**form, **{f"alert-{kind}": "yes" for kind in fields.get("alert", [])}}


actions_router = APIRouter(route_class=PageRoute)


@actions_router.post("/watches/many")
def many(request: Request, fields: FieldsDep) -> Response:
    """Checks now, pauses, resumes, tags, marks as read or removes the chosen watches."""
    urls, action = fields.get("url", []), fields.get("action", [""])[0]
    try:
        if not urls:
            raise UsageError("choose at least one watch first")
        if action == "remove" and "confirmed" not in fields:
            return _confirmation(request, urls)
        carry_out(request, urls, action, first_values(fields))
    except LetopisError as error:
        return _refused(request, error)
    return RedirectResponse(f"/watches?done={'removed' if action == 'remove' else action}", 303)


def _confirmation(request: Request, urls: list[str]) -> Response:
    entries = WatchList(context_of(request).archive).known_entries(urls)
    return render_page(request, "confirm.html", watches=[entry.watch for entry in entries], urls=urls)


def done_word(done: str) -> str:
    """What to say above a page of watches after something was done."""
    return _DONE.get(done, "")


def carry_out(request: Request, urls: list[str], action: str, form: Mapping[str, str]) -> None:
    """One of the actions on some watches."""
    context = context_of(request)
    if action in ("read", "unread"):
        marks = unread_marks(request, context)
        change = marks.move_to_newest if action == "read" else marks.keep_unread
        change([entry.watch.url for entry in WatchList(context.archive).known_entries(urls)])
        return
    if action not in _ACTIONS:
        raise UsageError(f"unknown action '{action[:20]}'; choose one of {', '.join((*_ACTIONS, 'read'))}")
    values = {"url": urls} | {name: form[name] for name in ("tag", "for") if form.get(name)}
    chosen = _ACTIONS[action]
    known = {one.alias: values[one.alias] for one in chosen.parameters_in("http") if one.alias in values}
    answer = chosen(context, bind(chosen.parameters, known, context.moment(), door="http"))
    for fault in answer.faults:
        raise fault
