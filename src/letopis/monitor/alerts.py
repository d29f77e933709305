"""(watch, history, change) -> alerts: which alerts follow from the checks since the last judgement of a watch. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache

from letopis.archive.watches import stored_json
from letopis.model import Check, Outcome, from_millis, rfc3339, to_millis
from letopis.monitor.watch import AlertKind, AlertRule, Watch
from letopis.tuples import NamedTuple

_JSON = json.JSONEncoder(separators=(",", ":")).encode


class WatchState(NamedTuple):
    """What a watch remembers between two checks; times in milliseconds.

    `version` is the id of the version it last judged, `judged` the time of the last check it considered, `failures`
    counts unavailable checks in a row, `down` and `still` say that it has already alerted about them.
    """

    judged: int = 0
    version: int | None = None
    failures: int = 0
    down: bool = False
    status: int = 0
    final_url: str = ""
    changed: int = 0
    still: bool = False
    blind: bool = False
    """Whether its filters select nothing of the version that was judged last."""

    def to_json(self) -> str:
        """For the catalogue."""
        return _JSON(self._asdict())

    @classmethod
    def from_json(cls, text: str) -> WatchState:
        """The inverse."""
        return cls(**stored_json(text))


class WatchDifference(NamedTuple):
    """What changed between the version that was judged last and the newest, through the filters of the watch.

    `counts` is the answer of `change.count`; `share` is 0..1 of the page; `score` and `reason` are those of the
    verdict.
    """

    counts: bool
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    share: float = 0.0
    text: str = ""
    score: float = 0.0
    reason: str = ""
    number: int | None = None
    """That of the newest version."""
    since: datetime | None = None
    """When that version was first seen."""
    problem: str = ""
    """Why the difference cannot be seen; then it counts whatever the conditions are."""
    empty: bool = False
    """Whether the filters select nothing of the newest version."""


class WatchHistory(NamedTuple):
    """The state at the last judgement and all checks since, oldest first; `version` is the newest one's id."""

    state: WatchState
    checks: Sequence[Check]
    version: int | None
    now: datetime


class Alert(NamedTuple):
    """One reason to notify, as a sentence, with the difference if there is one."""

    kind: AlertKind
    time: datetime
    message: str
    difference: str = ""
    score: float | None = None
    reason: str = ""
    version: int | None = None
    """The version it speaks of, which others may have recorded after the check; None where that is the check's."""


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
        if first:
            alerts += _appeared(watch, history)
        if change is not None:
            alerts += _of_version(watch, history, change, first=first)
        counted = first or (change is not None and change.counts)
        changed, still = (to_millis(history.now), False) if counted else (state.changed, state.still)
        blind = state.blind if change is None else change.empty
        state = state._replace(version=history.version, changed=changed, still=still, blind=blind)
    quiet = _quiet(watch, state, history.now)
    return [*alerts, *quiet], state._replace(still=True) if quiet else state


@lru_cache(maxsize=256)
def _rules(when: tuple[AlertRule, ...]) -> dict[AlertKind, AlertRule]:
    """By kind, the first of each; remembered, since most watches have the same few."""
    return {rule.kind: rule for rule in reversed(when)}


def _of_check(watch: Watch, state: WatchState, check: Check) -> list[Alert]:
    """What one check says by itself: up or down, another status, another target."""
    asked = ((kind, sentence_of) for kind, sentence_of in _CHECK_RULES.items() if kind in _rules(watch.when))
    said = ((kind, sentence_of(watch, state, check)) for kind, sentence_of in asked)
    return [Alert(kind, check.checked_at, sentence) for kind, sentence in said if sentence]


def _unavailable(watch: Watch, state: WatchState, check: Check) -> str:
    failures = state.failures + 1
    if check.available is not False or state.down or failures < _rules(watch.when)[AlertKind.UNAVAILABLE].amount:
        return ""
    times = f"{failures} times in a row" if failures > 1 else "now"
    return f"{_subject(watch)} is unavailable {times}: {check.error or f'status {check.status}'}"


def _recovered(watch: Watch, state: WatchState, check: Check) -> str:
    """After an alert of failures; where those are not asked for, after any failure."""
    was_down = state.down if AlertKind.UNAVAILABLE in _rules(watch.when) else state.failures
    if not check.available or not was_down:
        return ""
    return f"{_subject(watch)} is available again after {state.failures} failed checks"


def _another_status(watch: Watch, state: WatchState, check: Check) -> str:
    status = _status(check)
    if not status or state.status in (0, status):
        return ""
    return f"{_subject(watch)} answers with status {status}, before it was {state.status}"


def _another_target(watch: Watch, state: WatchState, check: Check) -> str:
    if not check.available or state.final_url in ("", check.final_url):
        return ""
    return f"{_subject(watch)} now leads to {check.final_url}, before to {state.final_url}"


def _another_header(watch: Watch, state: WatchState, check: Check) -> str:
    """Of a document that is too large only the header is known; conditions about its text cannot be judged."""
    if check.outcome is not Outcome.TOO_LARGE or not check.meaningful or watch.conditions:
        return ""
    return f"{_subject(watch)} has changed; it is too large to be stored, its header says: {'; '.join(check.blocks)}"


_CHECK_RULES: dict[AlertKind, Callable[[Watch, WatchState, Check], str]] = {
    AlertKind.UNAVAILABLE: _unavailable,
    AlertKind.RECOVERED: _recovered,
    AlertKind.STATUS: _another_status,
    AlertKind.REDIRECT: _another_target,
    AlertKind.CHANGED: _another_header,
}
"""What one check may say against the state before it: the sentence of an alert, empty where there is none."""


def _status(check: Check) -> int:
    return 200 if check.status == 304 else check.status  # a 304 stands for the answer that it spares us


def _after(watch: Watch, state: WatchState, check: Check) -> WatchState:
    down = _rules(watch.when).get(AlertKind.UNAVAILABLE)
    failures = state.failures if check.available is None else 0 if check.available else state.failures + 1
    return state._replace(
        judged=to_millis(check.checked_at),
        failures=failures,
        down=bool(failures) and (state.down or (down is not None and failures >= down.amount)),
        status=_status(check) or state.status,
        final_url=check.final_url if check.available else state.final_url,
    )


def _of_version(watch: Watch, history: WatchHistory, change: WatchDifference, *, first: bool) -> list[Alert]:
    """What a new version says: that it changed, or else that the watch sees nothing of it, which is told once."""
    if AlertKind.CHANGED not in _rules(watch.when):
        return []
    fits = all(one.holds(change.added, change.removed, change.share) for one in watch.conditions)
    if not first and change.counts and (change.problem or fits):
        return [_changed(watch, history, change, _change_words(change))]
    if change.empty and not history.state.blind:
        return [_changed(watch, history, change, "shows nothing that the filters of the watch select; change them")]
    return []


def _appeared(watch: Watch, history: WatchHistory) -> list[Alert]:
    """That a page which was asked in vain has its first version; conditions about its text cannot be judged."""
    state, rules = history.state, _rules(watch.when)
    asked = state.judged and (state.failures or state.status)
    told_up = AlertKind.RECOVERED in rules and (state.down or AlertKind.UNAVAILABLE not in rules)
    if not asked or AlertKind.CHANGED not in rules or watch.conditions or (state.failures and told_up):
        return []
    before = "it was too large to be stored" if not state.failures else f"it answered with status {state.status}"
    said = before if state.status else "it did not answer"
    return [Alert(AlertKind.CHANGED, _checked(history), f"{_subject(watch)} has appeared; before, {said}")]


def _checked(history: WatchHistory) -> datetime:
    return history.checks[-1].checked_at if history.checks else history.now


def _changed(watch: Watch, history: WatchHistory, change: WatchDifference, said: str) -> Alert:
    checked = _checked(history)
    # Somebody else may have seen the version after the check that is judged: nobody is told of it before it was there.
    when = max(checked, change.since or checked)
    message = f"{_subject(watch)} {said}"
    return Alert(AlertKind.CHANGED, when, message, change.text, change.score, change.reason, change.number)


def _change_words(change: WatchDifference) -> str:
    if change.problem:
        return f"has changed: {change.problem}"
    came = len(change.added)
    if not came and not change.removed:
        return "has changed: other bytes, the same lines of text"
    lines = f"{came} {'line' if came == 1 else 'lines'} added, {len(change.removed)} removed"
    return f"has changed: {lines}{'; the filters of the watch select nothing now' if change.empty else ''}"


def _subject(watch: Watch) -> str:
    """What alerts are about: the address, and the name of a watch beside others."""
    return f"{watch.url} ({watch.name})" if watch.name else watch.url


def _quiet(watch: Watch, state: WatchState, now: datetime) -> list[Alert]:
    rule = _rules(watch.when).get(AlertKind.UNCHANGED)
    if rule is None or state.still or to_millis(now) - state.changed < rule.amount * 1000:
        return []
    since = rfc3339(from_millis(state.changed))
    return [Alert(AlertKind.UNCHANGED, now, f"{_subject(watch)} has not changed since {since}")]
