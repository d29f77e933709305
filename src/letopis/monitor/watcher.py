"""The loop of watches: what is due is checked, judged, and notified.

Every step is durable before the next one begins (see `catalog/watches.py`),
so the loop may be killed at any point.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from letopis.archive import Archive
from letopis.catalog import Cursor
from letopis.catalog.versions import LastCheck, last_checks
from letopis.catalog.watches import AlertRow, Watches, WatchRow
from letopis.config import MonitorSettings
from letopis.fetch import private_ok
from letopis.model import Check, to_millis
from letopis.monitor.alerts import Alert, WatchDifference, WatchHistory, WatchState, decide_alerts
from letopis.monitor.checker import Checker, CheckOptions, open_checker
from letopis.monitor.notifications import Outbox
from letopis.monitor.watch import AlertKind, Watch, WatchedUrl, WatchKind, WatchSpec, settle_watch


def tag_defaults(watches: Watches) -> dict[str, WatchSpec]:
    """The defaults of every tag that has some."""
    return {name: WatchSpec.from_json(text) for name, text in watches.tags().items()}


def watch_of_row(row: WatchRow, tags: Mapping[str, WatchSpec], settings: MonitorSettings) -> Watch:
    """The watch that a row means."""
    kind: WatchKind = "sitemap" if row.kind == "sitemap" else "page"
    return settle_watch(
        WatchedUrl(row.url, kind, row.tag, row.source), _parse_spec(row.spec), tags.get(row.tag), settings
    )


@lru_cache(maxsize=256)
def _parse_spec(text: str) -> WatchSpec:
    """Watches of one sitemap or one habit share their specification."""
    return WatchSpec.from_json(text)


def new_watch_row(named: WatchedUrl, spec: WatchSpec, now: int) -> WatchRow:
    """A new watch, due at once; how long it has not changed is counted from now on."""
    state = WatchState(changed=now).to_json()
    return WatchRow(0, named.url, named.kind, named.tag, named.source, spec.to_json(), state, now, now)


BATCH = 256
"""Watches that are judged together."""
POLL_SECONDS = 5.0
"""How soon the loop notices watches that another process has added."""
_SITEMAP_ALERTS = (AlertKind.UNAVAILABLE, AlertKind.RECOVERED, AlertKind.STATUS, AlertKind.REDIRECT)


class WatchResult(NamedTuple):
    """One watch that was looked at: its check, its alerts, its state and time afterwards."""

    row: WatchRow
    watch: Watch
    check: Check
    alerts: tuple[Alert, ...]
    state: WatchState
    due: datetime


class Watcher:
    """Runs watches. For one loop; several processes may run side by side and at worst check twice."""

    def __init__(
        self,
        archive: Archive,
        checks: Checker,
        outbox: Outbox,
        tell: Callable[[WatchResult], None] = lambda judged: None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._archive = archive
        self._checks = checks
        self._outbox = outbox
        self._tell = tell
        self._chance = chance
        self._watches = Watches(archive.catalog.database)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends `run` after the batch in hand; safe to call from a signal handler of the loop."""
        self._stopping.set()

    async def run(self) -> None:
        """Goes on until `stop`."""
        while not self._stopping.is_set():
            await self.run_due()
            await self._rest()

    async def run_due(self) -> int:
        """Looks once at everything that is due now, then sends what waits; answers how many were looked at."""
        count, now = 0, to_millis(self._archive.clock())
        while not self._stopping.is_set():
            rows = self._watches.due(now, BATCH)
            if not rows:
                break
            await self._batch(rows)
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

    async def _batch(self, rows: Sequence[WatchRow]) -> None:
        tags = tag_defaults(self._watches)
        watches = [watch_of_row(row, tags, self._archive.settings.monitor) for row in rows]
        urls = [watch.url for watch in watches]
        before = last_checks(self._archive.catalog.database, urls)
        checks = await self._check(watches)
        after = last_checks(self._archive.catalog.database, urls)
        judged = [
            self._judge(row, watch, checks[watch.url], before.get(watch.url), after[watch.url])
            for row, watch in zip(rows, watches, strict=True)
        ]
        self._record(judged)
        for one in judged:
            self._tell(one)
            if one.watch.kind == "sitemap" and one.check.available:
                await self._expand(one)

    async def _check(self, watches: Sequence[Watch]) -> dict[str, Check]:
        answers: dict[str, Check] = {}
        for origin, browser in sorted({(watch.origin, watch.browser) for watch in watches}):
            urls = [watch.url for watch in watches if (watch.origin, watch.browser) == (origin, browser)]
            found = await self._checks.check(urls, replace(self._options(origin == "http"), browser=browser))
            answers.update(zip(urls, found, strict=True))
        return answers

    def _options(self, from_http: bool) -> CheckOptions:
        allowed = private_ok(self._archive.settings.fetch.private, "http" if from_http else "cli")
        return CheckOptions(uid="", private_ok=allowed)

    def _judge(
        self, row: WatchRow, watch: Watch, check: Check, before: LastCheck | None, after: LastCheck
    ) -> WatchResult:
        state, now = WatchState.from_json(row.state), self._archive.clock()
        history = WatchHistory(state, self._unjudged(state, check, before), after.newest, now)
        rules = watch if watch.kind == "page" else _availability_alerts(watch)
        alerts, state = decide_alerts(rules, history, self._change(watch, history))
        return WatchResult(row, watch, check, tuple(alerts), state, watch.next_time(now, self._chance()))

    def _unjudged(self, state: WatchState, check: Check, before: LastCheck | None) -> Sequence[Check]:
        """The checks since the last judgement; the record is read only when others looked in between."""
        if to_millis(check.checked_at) <= state.judged:
            return ()
        first = not state.judged
        if first or (before is not None and before.time == state.judged):
            return (check,)
        known = self._archive.history(check.url)
        return [one for one in known if to_millis(one.checked_at) > state.judged]

    def _change(self, watch: Watch, history: WatchHistory) -> WatchDifference | None:
        old, new = history.state.version, history.version
        if old is None or new is None or old == new or watch.kind == "sitemap":
            return None
        # Loaded late on purpose: comparing needs every parser, and most rounds find nothing new.
        from letopis.monitor.views import watch_difference  # noqa: PLC0415

        return watch_difference(self._archive, watch, old, new, history.checks)

    def _record(self, judged: Sequence[WatchResult]) -> None:
        """State, alerts and their deliveries, all or nothing."""
        rows = [(one.state.to_json(), to_millis(one.due), one.row.id) for one in judged]
        with self._archive.catalog.transaction() as cursor:
            self._watches.judged(cursor, rows)
            for one in judged:
                for alert in one.alerts:
                    self._alert(cursor, one, alert)

    def _alert(self, cursor: Cursor, one: WatchResult, alert: Alert) -> None:
        facts = {"tag": one.watch.tag, "version": one.check.version, "difference": alert.difference}
        row = AlertRow(0, one.watch.url, str(alert.kind), to_millis(alert.time), alert.message, json.dumps(facts))
        guarded = not self._options(one.watch.origin == "http").private_ok
        self._watches.alert(cursor, row, [(target, guarded) for target in one.watch.notify])

    async def _expand(self, one: WatchResult) -> None:
        """Watches the pages that a sitemap names, and no longer those that it dropped."""
        # Loaded late on purpose, like comparing: only sitemaps need the parsers.
        from letopis.monitor.views import sitemap_pages  # noqa: PLC0415

        options = self._options(one.watch.origin == "http")
        pages = await sitemap_pages(self._archive, self._checks, one.watch.url, options)
        if not pages:
            return
        now, spec = to_millis(self._archive.clock()), WatchSpec.from_json(one.row.spec)
        names = [WatchedUrl(url, "page", one.watch.tag, one.watch.url) for url in pages]
        # As due as the sitemap was, so that this very round looks at them.
        rows = [new_watch_row(named, spec, now)._replace(due=one.row.due) for named in names]
        with self._archive.catalog.transaction() as cursor:
            self._watches.add_new(cursor, rows)
            self._watches.remove_gone(cursor, one.watch.url, pages)


def _availability_alerts(watch: Watch) -> Watch:
    """A sitemap is a list, not a page: its changes show in the watches it makes."""
    return watch._replace(when=tuple(rule for rule in watch.when if rule.kind in _SITEMAP_ALERTS))


@asynccontextmanager
async def open_watcher(
    archive: Archive, tell: Callable[[WatchResult], None] = lambda judged: None
) -> AsyncIterator[Watcher]:
    """A watcher with connections of its own."""
    async with open_checker(archive) as checks:
        yield Watcher(archive, checks, Outbox(archive), tell)


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
