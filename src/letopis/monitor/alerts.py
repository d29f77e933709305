"""(watch, history, change) -> alerts: what a watch says about the checks since it last spoke. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from letopis.model import Check, from_millis, rfc3339, to_millis
from letopis.monitor.watch import AlertKind, AlertRule, Watch

_JSON = json.JSONEncoder(separators=(",", ":")).encode
_SAME_STATUS = {304: 200}
"""A 304 stands for the answer that it spares us."""


class WatchState(NamedTuple):
    """What a watch remembers between two looks; times in milliseconds.

    `version` is the id of the version it last judged, `judged` the time of
    the last check it considered, `failures` counts unavailable checks in a
    row, `down` and `still` say that it has already complained of them.
    """

    judged: int = 0
    version: int | None = None
    failures: int = 0
    down: bool = False
    status: int = 0
    final_url: str = ""
    changed: int = 0
    still: bool = False

    def to_json(self) -> str:
        """For the catalogue."""
        return _JSON(self._asdict())

    @classmethod
    def from_json(cls, text: str) -> WatchState:
        """The inverse."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class WatchDifference:
    """What changed between the version that was judged last and the newest, through the watch's filters.

    `counts` is the answer of `change.count`; `share` is 0..1 of the page.
    """

    counts: bool
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    share: float = 0.0
    text: str = ""


class WatchHistory(NamedTuple):
    """The state at the last look and all checks since, oldest first; `version` is the newest one's id."""

    state: WatchState
    checks: Sequence[Check]
    version: int | None
    now: datetime


class Alert(NamedTuple):
    """One thing to tell, as a sentence, with the difference where there is one."""

    kind: AlertKind
    time: datetime
    message: str
    difference: str = ""


def decide_alerts(
    watch: Watch, history: WatchHistory, change: WatchDifference | None
) -> tuple[list[Alert], WatchState]:
    """The alerts of the checks that have not been judged yet, and the state after them.

    Judging the same checks again from the same state gives the same alerts,
    so a crash before they are recorded loses and doubles nothing.
    """
    alerts: list[Alert] = []
    state = history.state
    for check in history.checks:
        alerts += _of_check(watch, state, check)
        state = _after(watch, state, check)
    if history.version != state.version and history.version is not None:
        first = state.version is None
        if not first and change is not None and _interests(watch, change):
            alerts.append(_changed(watch, history, change))
        counted = first or (change is not None and change.counts)
        changed, still = (to_millis(history.now), False) if counted else (state.changed, state.still)
        state = state._replace(version=history.version, changed=changed, still=still)
    quiet = _quiet(watch, state, history.now)
    return [*alerts, *quiet], state._replace(still=True) if quiet else state


@lru_cache(maxsize=256)
def _rules(when: tuple[AlertRule, ...]) -> dict[AlertKind, AlertRule]:
    """By kind, the first of each; remembered, since most watches have the same few."""
    return {rule.kind: rule for rule in reversed(when)}


def _of_check(watch: Watch, state: WatchState, check: Check) -> list[Alert]:
    """What one check says by itself: up or down, another status, another target."""
    found: list[Alert] = []
    rules = _rules(watch.when)
    down, up = rules.get(AlertKind.UNAVAILABLE), rules.get(AlertKind.RECOVERED)
    if down and not check.available and not state.down and state.failures + 1 >= down.amount:
        times = f"{state.failures + 1} times in a row" if state.failures else "now"
        why = check.error or f"status {check.status}"
        found.append(Alert(AlertKind.UNAVAILABLE, check.checked_at, f"{watch.url} is unavailable {times}: {why}"))
    if up and check.available and (state.down if down else state.failures):
        sentence = f"{watch.url} is available again after {state.failures} failed checks"
        found.append(Alert(AlertKind.RECOVERED, check.checked_at, sentence))
    status = _status(check)
    if AlertKind.STATUS in rules and status and state.status and status != state.status:
        sentence = f"{watch.url} answers with status {status}, before it was {state.status}"
        found.append(Alert(AlertKind.STATUS, check.checked_at, sentence))
    if AlertKind.REDIRECT in rules and check.available and state.final_url not in ("", check.final_url):
        sentence = f"{watch.url} now leads to {check.final_url}, before to {state.final_url}"
        found.append(Alert(AlertKind.REDIRECT, check.checked_at, sentence))
    return found


def _status(check: Check) -> int:
    return _SAME_STATUS.get(check.status, check.status)


def _after(watch: Watch, state: WatchState, check: Check) -> WatchState:
    down = _rules(watch.when).get(AlertKind.UNAVAILABLE)
    failures = 0 if check.available else state.failures + 1
    return state._replace(
        judged=to_millis(check.checked_at),
        failures=failures,
        down=bool(failures) and (state.down or (down is not None and failures >= down.amount)),
        status=_status(check) or state.status,
        final_url=check.final_url if check.available else state.final_url,
    )


def _interests(watch: Watch, change: WatchDifference) -> bool:
    if AlertKind.CHANGED not in _rules(watch.when) or not change.counts:
        return False
    return all(one.holds(change.added, change.removed, change.share) for one in watch.conditions)


def _changed(watch: Watch, history: WatchHistory, change: WatchDifference) -> Alert:
    came = len(change.added)
    lines = f"{came} {'line' if came == 1 else 'lines'} added, {len(change.removed)} removed"
    when = history.checks[-1].checked_at if history.checks else history.now
    return Alert(AlertKind.CHANGED, when, f"{watch.url} has changed: {lines}", change.text)


def _quiet(watch: Watch, state: WatchState, now: datetime) -> list[Alert]:
    rule = _rules(watch.when).get(AlertKind.UNCHANGED)
    if rule is None or state.still or to_millis(now) - state.changed < rule.amount * 1000:
        return []
    since = rfc3339(from_millis(state.changed))
    return [Alert(AlertKind.UNCHANGED, now, f"{watch.url} has not changed since {since}")]
