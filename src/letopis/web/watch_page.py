"""`/watches/<number>`: one watch to read, change and copy, what its filters see, and where its alerts went.

`/watches/<number>/pick` shows the stored page, on which a click chooses the part to watch.
"""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from letopis.api.door import context_of
from letopis.api.requests import origin_of
from letopis.archive.differences import diff_side
from letopis.archive.watches import LatestChange, watched_pages
from letopis.change.offers import is_price
from letopis.errors import LetopisError, NotFound, UsageError, shell_words
from letopis.extract.rewriter import rewrite_under
from letopis.model import rfc3339, stamp14
from letopis.monitor.watch import WatchedValue
from letopis.monitor.watch_list import WatchEntry, WatchList
from letopis.operations import Context, alerts, bind
from letopis.operations import watches as operations
from letopis.replay.csp import SAFE_HEADERS, replay_policy
from letopis.schedule.policies import format_span
from letopis.tuples import NamedTuple
from letopis.web.alerts import shown_alerts
from letopis.web.cache import page_cache_of
from letopis.web.charts import value_curve
from letopis.web.history import unread_marks
from letopis.web.languages import translatable
from letopis.web.pages import FieldsDep, PageRoute, first_values, form_status, render_page
from letopis.web.tables import TableColumn, make_table, table_download
from letopis.web.watch_form import form_of_spec, said_in_form
from letopis.web.watches import carry_out, done_word, form_words, ticked

router = APIRouter(route_class=PageRoute)

_ALERTS = 50
_SHOWN_TEXT = 4000
_MOST_VALUES, _VALUES = 500, 20
"""Versions that a curve of values looks back, and rows of its table."""
VALUE_COLUMNS = (
    TableColumn("time", translatable("Since"), "time"),
    TableColumn("text", translatable("Value"), by="value"),
    TableColumn("value", translatable("Number"), "decimal", hidden=True),
    TableColumn("change", translatable("Difference"), "custom"),
)
_CHECKS = ("added", "another", "check", "resume")
"""Actions after which the watch is checked at once."""
_RUNNING = translatable("The check is running.")
_DUE = translatable("This watch is due now: this service checks it within seconds.")
_DUE_ELSEWHERE = translatable("This watch is due now; a running daemon checks it within seconds, else start {command}.")
_STAYS = ("check", "read", "unread", "pause", "resume", "snooze", "test")
"""Actions after which the page of the watch is shown again."""


class WatchNotice(NamedTuple):
    """What to say above a watch, and what its form holds instead of what is stored."""

    done: str = ""
    problem: str = ""
    form: Mapping[str, str] | None = None
    checks: str = ""
    since: str = ""


class NextLook(NamedTuple):
    """What somebody who asked for a check waits for: a sentence, or how long ago the last was and how soon the next."""

    words: str = ""
    ago: int = 0
    left: int = 0


def _next_look(context: Context, watch: operations.WatchDetails, ask: WatchNotice) -> NextLook | None:
    """None when nobody waits, or the check was made."""
    if watch.due is None:
        return None
    settings, left = context.archive.settings, (watch.due - context.moment()).total_seconds()
    since = rfc3339(watch.last_judged) if watch.last_judged is not None else ""
    if left <= 0:
        return NextLook(_DUE if settings.serve.work else _DUE_ELSEWHERE)
    if ask.checks not in ("added", "another", "check") or ask.since != since:
        return None
    if left > settings.monitor.min_interval or not since:
        return NextLook(_RUNNING)
    return NextLook("", round(settings.monitor.min_interval - left), max(1, round(left)))


class Preview(NamedTuple):
    """What the filters of the form leave of the newest version, or why they do not work."""

    text: str = ""
    cut: bool = False
    whole: int = 0
    left: int = 0
    problem: str = ""


@router.get("/watches/{number:row}")
def watch(request: Request, number: int, done: str = "", css: str = "", since: str = "") -> Response:
    """One watch; `css` puts a selector that was picked on the page into its form."""
    context = context_of(request)
    entry = WatchList(context.archive).by_id(number)
    form = form_of_spec(entry.spec, entry.watch.tag, entry.watch.name)
    if css:
        form |= {"css": css, "subject": _subject_of(context, entry, css, form["subject"]), "picked": "yes"}
    checks = done if done in _CHECKS else ""
    return _watch_page(request, number, WatchNotice(done_word(done), form=form, checks=checks, since=since))


def _subject_of(context: Context, entry: WatchEntry, css: str, stored: str) -> str:
    """What of a part that was picked is watched: its price, where it says no more than that."""
    if stored in ("price", "stock"):
        return stored
    seen = _preview(context, entry.watch.url, {"css": css, "subject": "part"})
    return "price" if seen is not None and is_price(seen.text.strip()) else "part"


def _watch_page(request: Request, number: int, notice: WatchNotice, status: int = 200) -> Response:
    context = context_of(request)
    details = operations.watch_show(context, operations.OneWatch(id=number)).value
    url = details.url
    form, page = notice.form or {}, watched_pages(context.archive, [url])[0]
    sent = alerts.watch_deliveries(context, alerts.DeliveriesQuery(url=url, limit=_ALERTS))
    seen = _values(request, details, page.change)
    curve = value_curve([(one.time, one.text, one.value) for one in seen or ()], context.moment())
    table = make_table(request, VALUE_COLUMNS, curve.steps[::-1], key="v", size=_VALUES) if curve else None
    return table_download(table, f"watch-{number}") or render_page(
        request, "watch.html", status, curve=curve, values=table, counting=seen is None, watch=details, page=page,
        rhythm=details.cron or format_span(details.every),
        others=[entry for entry in WatchList(context.archive).of_page(url) if entry.id != number],
        alerts=shown_alerts(request, alerts.AlertsQuery(url=url, limit=_ALERTS), number),
        deliveries=[row for row in sent if row.saved is None and row.name == details.name],
        preview=_preview(context, url, form), unread=url in unread_marks(request, context).unread([url]),
        may_change=context.may_change(details.owner),
        waits=_next_look(context, details, notice), ask=notice, form=form, **form_words(context),
    )  # fmt: skip


def _has_values(watch: operations.WatchDetails) -> bool:
    """Whether it watches a price, or another number for which it has a bound."""
    bounds = any(one.kind in ("below", "above") for one in watch.conditions)
    return bounds or any(one.kind == "price" for one in watch.filters)


def _values(request: Request, watch: operations.WatchDetails, newest: LatestChange | None) -> list[WatchedValue] | None:
    """What a watch of numbers saw, read again with every new version; None while that takes long."""
    if newest is None or not _has_values(watch):
        return []
    context, asked = context_of(request), alerts.ValuesQuery(id=watch.id, limit=_MOST_VALUES)
    state = (newest.number, tuple((one.kind, one.expression) for one in watch.filters))
    return page_cache_of(request).soon(
        ("values", watch.id), 0, lambda: list(alerts.watch_values(context, asked)), state
    )


def _preview(context: Context, url: str, form: Mapping[str, str]) -> Preview | None:
    """None for a page of which no version is kept."""
    said = {name: value for name, value in said_in_form(form, {}).items() if name == "filters"}
    try:
        asked = bind(operations.PreviewQuery, {"url": url, **said}, context.moment(), door="http")
        seen = operations.watch_preview(context, asked).value
    except NotFound:
        return None
    except UsageError as error:
        return Preview(problem=shell_words(error))
    return Preview(seen.text[:_SHOWN_TEXT], len(seen.text) > _SHOWN_TEXT, seen.whole, len(seen.text))


@router.post("/watches/{number:row}")
def change(request: Request, number: int, fields: FieldsDep) -> Response:
    """Saves the form, shows what its filters see, or does one of the actions."""
    form = ticked(first_values(fields), fields)
    action = form.get("action", "save")
    try:
        if action == "preview":
            return _watch_page(request, number, WatchNotice(form={**form, "picked": "yes"}))
        if action == "clone":
            return RedirectResponse(f"/watches/{_clone(request, number)}?done=cloned", 303)
        if action in _STAYS:
            before = WatchList(context_of(request).archive).by_id(number).last_judged
            carry_out(request, [str(number)], action, form)
            since = f"&since={rfc3339(before)}" if action == "check" and before is not None else ""
            return RedirectResponse(f"/watches/{number}?done={action}{since}", 303)
        _save(request, number, form, fields)
    except LetopisError as error:
        shown = form if action in ("save", "preview") else _stored_form(request, number)
        return _watch_page(request, number, WatchNotice(problem=shell_words(error), form=shown), form_status(error))
    return RedirectResponse(f"/watches/{number}?done=saved", 303)


def _stored_form(request: Request, number: int) -> dict[str, str]:
    entry: WatchEntry = WatchList(context_of(request).archive).by_id(number)
    return form_of_spec(entry.spec, entry.watch.tag, entry.watch.name)


def _clone(request: Request, number: int) -> int:
    return operations.watch_clone(context_of(request), operations.OneWatch(id=number)).value.id


def _save(request: Request, number: int, form: Mapping[str, str], fields: Mapping[str, list[str]]) -> None:
    """The form is the whole watch: what it leaves empty is taken back."""
    context = context_of(request)
    said = said_in_form(form, fields)
    said |= {"id": str(number), "replace": True, "tag": form.get("tag", ""), "name": form.get("name", "")}
    operations.watch_edit(context, bind(operations.EditWatch, said, context.moment(), door="http"))


@router.get("/watches/{number:row}/pick")
def pick(request: Request, number: int) -> Response:
    """The stored page, on which a click chooses what to watch."""
    archive = context_of(request).archive
    entry = WatchList(archive).by_id(number)
    version = archive.get(entry.watch.url)
    return render_page(request, "pick.html", watch=entry.watch, number=number, seen=version)


@router.get("/watches/{number:row}/copy")
def copy(request: Request, number: int) -> Response:
    """The newest version of the page for that: it runs nothing and loads nothing but captures.

    It keeps our origin, so that our page can ask which element lies under the pointer.
    """
    archive = context_of(request).archive
    version = archive.get(WatchList(archive).by_id(number).watch.url)
    side = diff_side(version)
    text = rewrite_under(f"/web/{stamp14(version.time)}/", version.url, side.source, page=True)
    policy = replay_policy(origin_of(request.scope), "allow-same-origin")
    headers = {"content-security-policy": policy, **SAFE_HEADERS}
    return Response(text, headers=headers, media_type="text/html; charset=utf-8")
