"""The loop of watches: due pages are checked, judged, and notified about.

Every step is durable before the next one begins: the check is recorded, then the judgement with its alerts and
pending deliveries, then each delivery. The loop may therefore be killed at any point.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from letopis.archive import Archive
from letopis.archive.observers import LastCheck, last_checks_of
from letopis.archive.watches import AlertRow, JudgedWatch, NewAlert, WatchRow, watches_of
from letopis.fetch import Origin, private_ok
from letopis.fetch.page_steps import parse_steps
from letopis.lazy import lazy
from letopis.model import Check, to_millis
from letopis.monitor.alerts import Alert, WatchDifference, WatchHistory, WatchState, decide_alerts
from letopis.monitor.checker import Checker, CheckOptions, open_checker
from letopis.monitor.notifications import FailedDelivery, Outbox
from letopis.monitor.watch import AlertKind, Watch, WatchedUrl, WatchSpec
from letopis.monitor.watch_list import WatchList, new_watch_row, watch_of_row, way_of_looking
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    from letopis.monitor import views
else:
    views = lazy("letopis.monitor.views")

BATCH = 256
"""Watches that are judged together."""
POLL_SECONDS = 5.0
"""How soon the loop notices watches that another process has added."""
_ROUND_SECONDS = 60.0
"""How long watches of one round wait for their turns at hosts that others ask as well."""
_POSTPONED_MILLIS = 10_000
_CLAIM_MILLIS = 300_000
"""How long watches belong to whoever took them: longer than a round lasts. Those of a process that died wait for it."""
_SITEMAP_ALERTS = (AlertKind.UNAVAILABLE, AlertKind.RECOVERED, AlertKind.STATUS, AlertKind.REDIRECT)


class WatchResult(NamedTuple):
    """One watch whose page was checked: the check, its alerts, its state and time afterwards."""

    row: WatchRow
    watch: Watch
    check: Check
    alerts: tuple[Alert, ...]
    state: WatchState
    due: datetime


class Watcher:
    """Runs watches. For one loop; several processes may run in parallel, and each watch is run by one of them."""

    def __init__(
        self,
        archive: Archive,
        checks: Checker,
        outbox: Outbox,
        report: Callable[[WatchResult], None] = lambda judged: None,
        chance: Callable[[], float] = random.random,
        recorded: Callable[[int], None] = lambda looks: None,
        waiting: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self._archive = archive
        self._checks = checks
        self._outbox = outbox
        self._report = report
        self._chance = chance
        self._recorded, self._waiting = recorded, waiting
        self._watches = watches_of(archive)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends `run` after the batch in hand; safe to call from a signal handler of the loop."""
        self._stopping.set()

    @property
    def stopped(self) -> bool:
        """Whether it was told to end."""
        return self._stopping.is_set()

    async def run(self) -> None:
        """Goes on until `stop`."""
        while not self._stopping.is_set():
            await self.run_due(_ROUND_SECONDS)
            await self._rest()

    async def run_due(self, seconds: float = math.inf) -> int:
        """Checks everything that is due now once, then sends what waits; answers how many watches were due.

        Those at hosts that many ask, whose turn does not come within some seconds, are due again a little later, so
        that they hold no others up.
        """
        count, now = 0, to_millis(self._archive.clock())
        while not self._stopping.is_set():
            until = to_millis(self._archive.clock()) + _CLAIM_MILLIS
            rows = self._watches.claim_due(now, BATCH, until)
            if not rows:
                break
            await self._batch(rows, until, seconds)
            count += len(rows)
            await self._outbox.send_due()
        await self._outbox.send_due()
        return count

    async def _rest(self) -> None:
        due = self._watches.next_due()
        left = (due - to_millis(self._archive.clock())) / 1000 if due is not None else POLL_SECONDS
        try:
            await asyncio.wait_for(self._stopping.wait(), min(max(left, 0.05), POLL_SECONDS))
        except TimeoutError:
            return

    async def _batch(self, rows: Sequence[WatchRow], until: int, seconds: float) -> None:
        """Checks and judges watches that are ours `until` then."""
        tags = WatchList(self._archive).tag_defaults()
        watches = [watch_of_row(row, tags, self._archive.settings.monitor) for row in rows]
        urls = [watch.url for watch in watches]
        before = last_checks_of(self._archive, urls)
        checks = await self._check(watches, seconds)
        late = {row.id for row, url in zip(rows, urls, strict=True) if self._postponed(row, checks.get(url), until)}
        after = last_checks_of(self._archive, urls)
        judged = [
            self._judge(row, watch, checks[watch.url], before.get(watch.url), after[watch.url])
            for row, watch in zip(rows, watches, strict=True)
            if row.id not in late
        ]
        self._record(judged, until)
        for one in judged:
            self._report(one)
            if one.watch.kind == "sitemap" and one.check.available:
                await self._expand(one)

    def _postponed(self, row: WatchRow, check: Check | None, until: int) -> bool:
        """Whether there was no look that the watch has not judged: it is due again when the next one is possible.

        Unless somebody gave it another time meanwhile.
        """
        monitor = self._archive.settings.monitor
        if check is None:
            due = to_millis(self._archive.clock()) + _POSTPONED_MILLIS
        elif check.cached and to_millis(check.checked_at) <= WatchState.from_json(row.state).judged:
            due = to_millis(check.checked_at) + round(monitor.min_interval * 1000)
        else:
            return False
        found = self._watches.by_id(row.id)
        if found is not None and found.due == until:
            self._watches.set_due([found], due)
        return True

    async def _check(self, watches: Sequence[Watch], seconds: float) -> dict[str, Check]:
        """What came of those whose turn at their host came within some seconds."""
        answers: dict[str, Check] = {}
        alike: dict[tuple[object, ...], list[Watch]] = {}
        for watch in watches:
            alike.setdefault((watch.origin, *way_of_looking(watch)), []).append(watch)
        for part in alike.values():
            urls = [watch.url for watch in part]
            answers |= await self._checks.check_some(urls, self._options_of(part[0]), seconds)
        return answers

    def _options_of(self, watch: Watch) -> CheckOptions:
        return self._options(watch.origin)._replace(
            browser=watch.browser or bool(watch.steps), requisites=watch.requisites,
            steps=parse_steps(watch.steps), headers=watch.headers, patience=math.inf, stopped=self._stopping.is_set,
            recorded=self._recorded, waiting=self._waiting,
        )  # fmt: skip

    def _options(self, origin: Origin) -> CheckOptions:
        return CheckOptions(uid="", private_ok=private_ok(self._archive.settings.fetch.private, origin))

    def _judge(
        self, row: WatchRow, watch: Watch, check: Check, before: LastCheck | None, after: LastCheck
    ) -> WatchResult:
        state, now = WatchState.from_json(row.state), self._archive.clock()
        history = WatchHistory(state, self._unjudged(state, check, before), after.newest, now)
        rules = watch if watch.kind == "page" else _availability_alerts(watch)
        alerts, state = decide_alerts(rules, history, self._change(watch, history))
        return WatchResult(row, watch, check, tuple(alerts), state, watch.next_time(now, self._chance()))

    def _unjudged(self, state: WatchState, check: Check, before: LastCheck | None) -> Sequence[Check]:
        """The checks since the last judgement; the record is read only when others have checked in between."""
        if to_millis(check.checked_at) <= state.judged:
            return ()
        first = not state.judged
        if first or (before is not None and before.time == state.judged):
            return (check,)
        return list(self._archive.answers.checks(check.url, since=state.judged + 1))

    def _change(self, watch: Watch, history: WatchHistory) -> WatchDifference | None:
        old, new = history.state.version, history.version
        if new is None or old == new or watch.kind == "sitemap":
            return None
        if old is None:
            return views.first_sight(self._archive, watch, new) if watch.filters else None
        return views.watch_difference(self._archive, watch, old, new, history.checks)

    def _record(self, judged: Sequence[WatchResult], until: int) -> None:
        """State, alerts and their deliveries, all or nothing."""
        states = [JudgedWatch(one.state.to_json(), until, to_millis(one.due), one.row.id) for one in judged]
        self._watches.save_judged(states, [alert for one in judged if one.alerts for alert in self._alerts(one)])

    def _alerts(self, one: WatchResult) -> Iterator[NewAlert]:
        guarded = not self._options(one.watch.notify_origin).private_ok
        for alert in one.alerts:
            facts = {
                "tag": one.watch.tag, "watch": one.row.id, "name": one.watch.name, "difference": alert.difference,
                "version": one.check.version if alert.version is None else alert.version,
                "score": alert.score, "reason": alert.reason, "summary": bool(one.watch.summary),
            }  # fmt: skip
            row = AlertRow(0, one.watch.url, str(alert.kind), to_millis(alert.time), alert.message, json.dumps(facts))
            due = max(to_millis(one.watch.notifies_at(self._archive.clock())), to_millis(alert.time))
            yield NewAlert(row, [(target, guarded) for target in one.watch.notify], due)

    async def _expand(self, one: WatchResult) -> None:
        """Watches the pages that a sitemap names, and no longer those that it dropped."""
        options = self._options(one.watch.origin)
        pages = await views.sitemap_pages(self._archive, self._checks, one.watch.url, options)
        if not pages:
            return
        now, spec = to_millis(self._archive.clock()), WatchSpec.from_json(one.row.spec)
        names = [WatchedUrl(url, "page", one.watch.tag, one.watch.url) for url in pages]
        # As due as the sitemap was, so that this very round checks them.
        rows = [new_watch_row(named, spec, now)._replace(due=one.row.due) for named in names]
        self._watches.follow_sitemap(one.watch.url, rows)


def _availability_alerts(watch: Watch) -> Watch:
    """A sitemap is a list, not a page: its changes show in the watches it makes."""
    return watch._replace(when=tuple(rule for rule in watch.when if rule.kind in _SITEMAP_ALERTS))


@asynccontextmanager
async def open_watcher(
    archive: Archive,
    report: Callable[[WatchResult], None] = lambda judged: None,
    undelivered: Callable[[FailedDelivery], None] = lambda failed: None,
    recorded: Callable[[int], None] = lambda looks: None,
    waiting: Callable[[str], None] = lambda sentence: None,
) -> AsyncIterator[Watcher]:
    """A watcher with connections of its own; `undelivered` hears of every notification that was not taken.

    `recorded` hears how many pages were looked at, long before they are judged where hosts have pauses; `waiting` gets
    a sentence about each such host.
    """
    outbox = Outbox(archive, report=undelivered)
    WatchList(archive).bring_back()
    outbox.bring_back()
    async with open_checker(archive) as checks:
        yield Watcher(archive, checks, outbox, report, recorded=recorded, waiting=waiting)


def result_row(judged: WatchResult) -> Mapping[str, object]:
    """What `watch run` prints of one watch."""
    return {
        "url": judged.watch.url,
        "checked_at": judged.check.checked_at,
        "outcome": judged.check.outcome,
        "status": judged.check.status,
        "version": judged.check.version,
        "alerts": [str(alert.kind) for alert in judged.alerts],
        "due": judged.due,
    }
