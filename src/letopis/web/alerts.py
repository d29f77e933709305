"""`/alerts`: what watches and saved searches have noticed, each with the text that came and went, read or not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from letopis.api.access import principal_of
from letopis.api.door import context_of
from letopis.archive import Archive
from letopis.archive.activity import activity_of, find_page
from letopis.archive.verdicts import ReplacedText, pair_texts, replaced_texts
from letopis.model import to_millis
from letopis.operations import alerts
from letopis.operations.saved_searches import SavedSearchesQuery, saved_list
from letopis.tuples import NamedTuple
from letopis.web.engine_words import alert_words
from letopis.web.history import unread_marks
from letopis.web.languages import translatable
from letopis.web.login import local_path
from letopis.web.pages import FieldsDep, PageRoute, render_page
from letopis.web.tables import TableColumn, TableQuestion, make_table, table_download

router = APIRouter(route_class=PageRoute)

_MOST_ALERTS, _SIZE = 1000, 20
"""Alerts that the list is made of, and those of one of its pages, each of which has much to say."""
_WITHOUT_TEXTS = re.compile(r" (?:shows nothing that the filters|has appeared;|has changed: (?!\d+ lines? added))")
"""Alerts of a change that say why its texts are not shown."""
_RESULTS = re.compile(r"' has (\d+) new results?: ")
ALERT_COLUMNS = (
    TableColumn("time", translatable("When"), "ago"),
    TableColumn("kind", translatable("What"), "custom"),
    TableColumn("url", translatable("Page"), "custom"),
    TableColumn("message", translatable("Message"), "custom"),
    TableColumn("tag", translatable("Tag"), hidden=True),
    TableColumn("reason", translatable("Reason"), hidden=True),
    TableColumn("score", translatable("Amount of change"), "decimal", hidden=True),
    TableColumn("open", translatable("Open"), "actions"),
)


class AlertLine(NamedTuple):
    """An alert as pages show it; title, texts and whether it was read are known of those that are seen."""

    alert: alerts.AlertDetails
    title: str = ""
    texts: Sequence[ReplacedText] = ()
    unread: bool = False

    def __getattr__(self, name: str) -> Any:
        """Fields of the alert are columns of the table."""
        return getattr(self.alert, name)

    @property
    def words(self) -> str:
        """The message in the reader's language, without the address, which stands beside it."""
        said = self.alert.message.removeprefix(self.alert.url).strip()
        return alert_words(said.removeprefix(f"({self.alert.name})").strip())

    @property
    def results(self) -> list[tuple[str, str]]:
        """Titles and addresses of what a saved search has found."""
        lines = self.alert.difference.splitlines() if self.alert.saved else []
        return [line.removeprefix("+").strip().rpartition(" ")[::2] for line in lines]

    @property
    def found_results(self) -> int:
        """How many it has found; the alert keeps the first hundred."""
        said = _RESULTS.search(self.alert.message)
        return int(said[1]) if said else len(self.results)


def alert_lines(found: Iterable[alerts.AlertDetails]) -> list[AlertLine]:
    """The alerts as a table takes them."""
    return list(map(_line, found))


def _line(one: alerts.AlertDetails) -> AlertLine:
    """Of a change with what the filters of the watch let through."""
    difference = one.difference.splitlines() if one.kind == "changed" else []
    gone, came = (
        [line[1:].strip() for line in difference if line[:1] == sign and line[:3] != sign * 3 and line[1:].strip()]
        for sign in ("-", "+")
    )
    return AlertLine(one, texts=pair_texts(gone, came))


def with_texts(archive: Archive, lines: Sequence[AlertLine]) -> list[AlertLine]:
    """The same with the titles of their pages and the texts that went and came."""
    return [_with_text(archive, line) for line in lines]


def _with_text(archive: Archive, line: AlertLine) -> AlertLine:
    row = find_page(archive, line.url)
    if row is None:
        return line
    line = line._replace(title=activity_of(archive).title(row.id))
    found = None
    if line.version and line.kind == "changed" and not line.texts and not _WITHOUT_TEXTS.search(line.message):
        found = archive.answers.checks_of_versions(line.url, [line.version]).get(line.version)
    return line._replace(texts=replaced_texts(found)) if found else line


def shown_alerts(request: Request, asked: alerts.AlertsQuery, watch: int | None = None) -> list[AlertLine]:
    """As lists beside other things show them, those of one watch or of all; whether they were read stands with them."""
    context = context_of(request)
    found = [row for row in alerts.watch_alerts(context, asked) if watch is None or row.watch in (None, watch)]
    return with_texts(context.archive, _with_marks(request, alert_lines(found)))


def _with_marks(request: Request, lines: Sequence[AlertLine]) -> list[AlertLine]:
    """The same with whether whoever looks has seen their pages since."""
    read = unread_marks(request, context_of(request)).read_at(line.url for line in lines)
    return [line._replace(unread=read.get(line.url, to_millis(line.time)) < to_millis(line.time)) for line in lines]


def count_unread(request: Request) -> int:
    """How many of the latest alerts are new to whoever signed in; none to others."""
    if principal_of(request).session is None:
        return 0
    found = alerts.watch_alerts(context_of(request), alerts.AlertsQuery(limit=_MOST_ALERTS))
    return sum(line.unread for line in _with_marks(request, alert_lines(found)))


@router.get("/alerts")
def all_alerts(request: Request, show: str = "") -> Response:
    """What watches have noticed, the newest first: all, or what is new to whoever looks."""
    context = context_of(request)
    lines = alert_lines(alerts.watch_alerts(context, alerts.AlertsQuery(limit=_MOST_ALERTS)))
    lines = _with_marks(request, lines)
    unread = [line for line in lines if line.unread]
    shown = unread if show == "unread" else lines
    table = make_table(request, ALERT_COLUMNS, shown, size=_SIZE, question=TableQuestion("watch_alerts"))
    return table_download(table, "alerts") or render_page(
        request, "alerts.html", table=table.with_part(partial(with_texts, context.archive)), show=show,
        total=len(lines), unread=len(unread), saved={one.id for one in saved_list(context, SavedSearchesQuery())},
    )  # fmt: skip


@router.post("/alerts")
def mark(request: Request, fields: FieldsDep) -> Response:
    """Marks the alerts of some pages, or all of them, as read or as unread, and leads back."""
    _mark(request, fields)
    return RedirectResponse(local_path(fields.get("back", ["/alerts"])[0]), 303)


def _mark(request: Request, fields: Mapping[str, list[str]]) -> None:
    context, urls = context_of(request), fields.get("url", [])
    marks = unread_marks(request, context)
    if fields.get("action") == ["unread"]:
        since = fields.get("since", ["0"])[0]
        marks.keep_unread(urls, int(since) if since.isascii() and since.isdigit() and len(since) < 16 else 0)
        return
    everything = alerts.watch_alerts(context, alerts.AlertsQuery(limit=_MOST_ALERTS)) if not urls else ()
    marks.move_to_newest([*urls, *{one.url for one in everything}])
