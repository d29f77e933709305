"""The availability strip: the whole history of a page as one row of colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from letopis.model import Check, Outcome

WIDTH = 1000.0
_LEAST = 1.5
_MOST_SPANS = 400


class Span(NamedTuple):
    """A stretch of time in one state: `up`, `down` or `refused`."""

    state: str
    start: datetime
    end: datetime
    checks: int
    x: float
    width: float


class Tick(NamedTuple):
    """A version on the strip."""

    number: int
    time: datetime
    x: float


class Strip(NamedTuple):
    """Everything the drawing needs. `up_share` is the share of the time known in which the page was available."""

    spans: list[Span]
    ticks: list[Tick]
    start: datetime
    end: datetime
    up_share: float


def strip(checks: Sequence[Check], now: datetime) -> Strip | None:
    """The strip of a history, oldest check first; each check holds until the next one. None without any."""
    if not checks:
        return None
    start, end = checks[0].checked_at, max(now, checks[-1].checked_at)
    whole = max((end - start).total_seconds(), 1.0)

    def place(moment: datetime) -> float:
        return round(WIDTH * (moment - start).total_seconds() / whole, 2)

    runs = list(_runs(checks, end))
    spans = [Span(state, a, b, n, place(a), max(_LEAST, place(b) - place(a))) for state, a, b, n in runs]
    up = sum((b - a).total_seconds() for state, a, b, _ in runs if state == "up")
    ticks = [
        Tick(c.version, c.checked_at, place(c.checked_at)) for c in checks if _brought(c) and c.version is not None
    ]
    # Of the time in which nobody was allowed to ask nothing is known.
    total = sum((b - a).total_seconds() for state, a, b, _ in runs if state != "refused")
    return Strip(_bounded(spans), ticks[-_MOST_SPANS:], start, end, up / total if total else _last_share(runs))


def _runs(checks: Sequence[Check], end: datetime) -> Iterable[tuple[str, datetime, datetime, int]]:
    state, start, count = _state(checks[0]), checks[0].checked_at, 0
    for check in checks:
        if _state(check) != state:
            yield state, start, check.checked_at, count
            state, start, count = _state(check), check.checked_at, 0
        count += 1
    yield state, start, end, count


def _last_share(runs: Sequence[tuple[str, datetime, datetime, int]]) -> float:
    return 1.0 if runs[-1][0] == "up" else 0.0


def _bounded(spans: list[Span]) -> list[Span]:
    """The longest spans in their order: thousands of slivers would only blur."""
    if len(spans) <= _MOST_SPANS:
        return spans
    least = sorted((span.width for span in spans), reverse=True)[_MOST_SPANS]
    return [span for span in spans if span.width > least or span.state != "up"][: 2 * _MOST_SPANS]


def _state(check: Check) -> str:
    if check.outcome is Outcome.REFUSED:
        return "refused"
    return "up" if check.available else "down"


def _brought(check: Check) -> bool:
    return check.outcome in (Outcome.NEW, Outcome.CHANGED)
