"""Alerts of watches and saved searches, their notifications, tests of their targets, and values that watches saw."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from letopis.archive import OWN, READ, WRITE
from letopis.archive.watches import AlertRow, DeliveryRow, stored_json
from letopis.errors import NotReady, UsageError
from letopis.fetch import Origin, private_ok
from letopis.lazy import lazy
from letopis.model import from_millis
from letopis.monitor.notifications import TestSource, send_test, shown_target
from letopis.monitor.watch import WatchedValue
from letopis.monitor.watch_list import WatchList
from letopis.operations.context import Context
from letopis.operations.operation import Rows, operation
from letopis.operations.parameters import Parameters, parameter
from letopis.operations.saved_searches import OneSavedSearch, SavedQuestion, own_search
from letopis.operations.watch_options import refuse_others
from letopis.operations.watches import WatchedUrls
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    from letopis.monitor import views
else:
    views = lazy("letopis.monitor.views")


class AlertsQuery(Parameters):
    """Which alerts."""

    url: str | None = parameter("Only alerts of this page.", default=None, argument=True)
    limit: int = parameter("Maximum number of rows.", default=100, at_least=1, at_most=1000)
    before: int | None = parameter(
        "Only alerts older than the one with this id.", default=None, at_least=0, at_most=2**63 - 1
    )


class AlertDetails(NamedTuple):
    """An alert of a watch or a saved search: its number, name and tag at that time; `version` is what it saw.

    `difference` is what the filters of a watch left of a change: removed (-) and added (+) lines. For a saved search
    (`saved` is its number) it is the new results, each with a title and an address.
    """

    id: int
    time: datetime
    kind: str
    url: str
    message: str
    tag: str
    watch: int | None
    saved: int | None
    name: str
    version: int | None
    score: float | None
    reason: str
    difference: str


@operation(
    "watch_alerts", right=READ, verb="watch alerts", route=("GET", "/watches/alerts"), listed="alerts", tool=True,
    row_key=("id",), columns=("id", "time", "kind", "url", "message"),
    examples=("letopis watch alerts", "letopis watch alerts https://example.org/ --limit 10 --json"),
)  # fmt: skip
def watch_alerts(context: Context, asked: AlertsQuery) -> Rows[AlertDetails]:
    """List the alerts of watches, newest first; earlier ones come with the id of the last row as 'before'."""
    return Rows(map(_alert, WatchList(context.archive).alerts(asked.url, asked.limit, asked.before)))


def _alert(row: AlertRow) -> AlertDetails:
    facts = stored_json(row.facts)
    return AlertDetails(
        row.id, from_millis(row.time), row.kind, row.url, row.message, facts.get("tag", ""), facts.get("watch"),
        facts.get("saved"), facts.get("name", ""), facts.get("version"),
        facts.get("score"), facts.get("reason", ""), facts.get("difference", ""),
    )  # fmt: skip


class DeliveriesQuery(Parameters):
    """Which notifications."""

    url: str | None = parameter("Only notifications about this page.", default=None, argument=True)
    limit: int = parameter("Maximum number of rows.", default=100, at_least=1, at_most=1000)


class Delivery(NamedTuple):
    """An alert, or a test, and its delivery to one target; only owners see the target in full.

    `kind` is that of the alert, or test; `saved` is the number of its saved search, if it has one; `state` is
    pending, sent or failed. `due` is the time of the next attempt, or for a sent one when it was sent.
    """

    alert: int
    url: str
    name: str
    target: str
    state: str
    attempts: int
    due: datetime
    error: str
    message: str
    kind: str
    saved: int | None


@operation(
    "watch_deliveries", right=READ, verb="watch deliveries", route=("GET", "/watches/deliveries"), listed="deliveries",
    columns=("due", "state", "target", "attempts", "error", "message"),
    examples=("letopis watch deliveries", "letopis watch deliveries https://example.org/ --json"),
)  # fmt: skip
def watch_deliveries(context: Context, asked: DeliveriesQuery) -> Rows[Delivery]:
    """List the notifications of alerts and tests, newest first: where each went, whether it was taken, and why not."""
    found = WatchList(context.archive).deliveries(asked.url, asked.limit)
    return Rows([_delivery(context, row, alert) for row, alert in found])


def _delivery(context: Context, row: DeliveryRow, alert: AlertRow) -> Delivery:
    target = row.target if context.may(OWN) else shown_target(row.target)
    facts = stored_json(alert.facts)
    return Delivery(
        alert.id, alert.url, facts.get("name", ""), target, row.state, row.attempts,
        from_millis(row.due), row.error, alert.message, alert.kind, facts.get("saved"),
    )  # fmt: skip


class TestedTarget(NamedTuple):
    """Whether a target accepted a test notification, and if not, why; only owners see the target in full.

    `url` is the page of the watch, or the page of the web interface for the saved search.
    """

    url: str
    target: str
    delivered: bool
    error: str


def _test_sentence(row: TestedTarget) -> str:
    return f"{row.url}: {row.target} took the test notification" if row.delivered else f"{row.url}: {row.error}"


@operation(
    "watch_test", right=WRITE, verb="watch test", route=("POST", "/watches/test"), listed="targets", creates=False,
    sentence=_test_sentence, errors=(404, 429), examples=("letopis watch test https://example.org/",),
)  # fmt: skip
def watch_test(context: Context, asked: WatchedUrls) -> Rows[TestedTarget]:
    """Send a test notification to every target of watches now, and say which of them took it."""
    entries = refuse_others(context, WatchList(context.archive).known_entries(asked.urls))
    sources = [
        _AlertSource(
            TestSource(f"watch of {one.watch.url}", one.watch.url, {"watch": one.id, "name": one.watch.name}),
            target, one.watch.notify_origin,
        )
        for one in entries
        for target in one.watch.notify
    ]  # fmt: skip
    if not sources:
        raise UsageError(
            "these watches have no notification target; add one with 'letopis watch edit ID --notify TARGET'"
        )
    return _tested(context, sources)


@operation(
    "saved_test", right=WRITE, verb="saved test", route=("POST", "/saved/{id}/test"), listed="targets", creates=False,
    sentence=_test_sentence, errors=(403, 404, 429), examples=("letopis saved test 1",),
)  # fmt: skip
def saved_test(context: Context, asked: OneSavedSearch) -> Rows[TestedTarget]:
    """Send a test notification to every target of a saved search now, and say which of them took it."""
    row = own_search(context, asked.id)
    saved = SavedQuestion.from_json(row.spec)
    if not saved.notify:
        raise UsageError("it has no notification target; add one with 'letopis saved edit ID --notify TARGET'")
    source = TestSource(f"saved search '{row.name}'", f"/saved/{row.id}", {"saved": row.id, "name": row.name})
    return _tested(context, [_AlertSource(source, target, saved.origin) for target in saved.notify])


class _AlertSource(NamedTuple):
    """The source of alerts, one of its targets, and the door through which that was set."""

    source: TestSource
    target: str
    origin: Origin


def _tested(context: Context, sources: Sequence[_AlertSource]) -> Rows[TestedTarget]:
    archive = context.archive
    context.charge("checks", len(sources))
    rows = []
    for one in sources:
        guarded = not private_ok(archive.settings.fetch.private, one.origin)
        error = send_test(archive, one.source, one.target, guarded=guarded)
        shown = one.target if context.may(OWN) else shown_target(one.target)
        rows.append(TestedTarget(one.source.url, shown, not error, error))
    failed = [row for row in rows if row.error]
    return Rows(
        rows, faults=[NotReady(f"a test notification of {row.url} did not arrive: {row.error}") for row in failed]
    )


class ValuesQuery(Parameters):
    """Which watch, and how many versions."""

    id: int = parameter("Number of the watch.", argument=True, at_least=1, at_most=2**62)
    limit: int = parameter("Look at the newest N versions only.", default=500, at_least=1, at_most=10_000)


@operation(
    "watch_values", right=READ, verb="watch values", route=("GET", "/watches/{id}/values"), listed="values",
    creates=False, errors=(404,), examples=("letopis watch values 1", "letopis watch values 1 --json"),
)  # fmt: skip
def watch_values(context: Context, asked: ValuesQuery) -> Rows[WatchedValue]:
    """List what a watch saw over time, oldest first: each text behind its filters, such as a price, and its number."""
    return Rows(views.watched_values(context.archive, WatchList(context.archive).by_id(asked.id).watch, asked.limit))
