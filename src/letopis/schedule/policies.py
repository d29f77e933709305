"""Revisit policies: from the result of a visit to the time of the next one, with the reason.

All share one small interface and one state of 42 bytes per page, so a page can change its policy at any time. They
are pure: the time is passed in with the result, and what the optimal policy learns over all pages is two values that
the caller stores.

The optimal policy visits pages where visits are worth most, within the budget. A page is due when a visit to it is
worth the current price. That solves the allocation under a budget without computing it for all pages at once:
`Pace` adjusts the price page by page. A higher price means fewer visits. The price follows two errors: the planned
rate (the sum of 1 / interval over all pages) against the budget, which is early and smooth, and the actual visits
against those allowed so far, which leaves no permanent error. It never needs all pages, so each agent can have its
own price for its share of the budget.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from letopis.config.settings import ScheduleSettings
from letopis.errors import REPAIR, Damaged
from letopis.schedule.worth import (
    AgeObjective,
    Belief,
    ChangeRhythm,
    FreshnessObjective,
    belief_changed,
    belief_unchanged,
    fade_belief,
    prior_belief,
)
from letopis.tuples import NamedTuple

_FORMAT = struct.Struct("<BBHHdfffffff")
_VERSION = 2
_FORMAT_1 = struct.Struct("<BBHHdfffff")
"""Version 1, which did not keep the sums; it is read still."""
_MAX_COUNT = 0xFFFF


class VisitState(NamedTuple):
    """A summary of the visits of one page. Times and durations are seconds.

    `last_change` is when a change was last detected (the first visit counts as one), `window` the time before it in
    which the change happened. `shape` and `scale` are the Gamma belief about the change rate of the page, with a mean
    of shape / scale changes per second. `quiet` and `busy` are sums of the times between visits: of those that found
    nothing new, and of those that found a change.
    """

    visits: int = 0
    changes: int = 0
    failures: int = 0
    last_visit: float = 0.0
    last_change: float = 0.0
    window: float = 0.0
    interval: float = 0.0
    shape: float = 0.0
    scale: float = 0.0
    quiet: float = 0.0
    busy: float = 0.0

    def to_bytes(self) -> bytes:
        """The stored form; durations keep seven digits, counters stop at 65535."""
        return _FORMAT.pack(
            _VERSION,
            min(self.failures, 255),
            min(self.visits, _MAX_COUNT),
            min(self.changes, _MAX_COUNT),
            self.last_visit,
            self.last_visit - self.last_change,
            self.window,
            self.interval,
            self.shape,
            self.scale,
            self.quiet,
            self.busy,
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> VisitState:
        """The inverse of `to_bytes`; empty bytes are a page never visited."""
        if not data:
            return cls()
        if len(data) == _FORMAT_1.size and data[0] == 1:
            _, failures, visits, changes, last, since, window, interval, shape, scale = _FORMAT_1.unpack(data)
            quiet, busy = since, changes * window
        elif len(data) == _FORMAT.size and data[0] == _VERSION:
            _, failures, visits, changes, last, since, window, interval, shape, scale, quiet, busy = _FORMAT.unpack(
                data
            )
        else:
            raise Damaged("a page's visit record is not one this release can read", REPAIR)
        return cls(visits, changes, failures, last, last - since, window, interval, shape, scale, quiet, busy)


_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def format_span(seconds: float) -> str:
    """A duration in its two largest units: `1 h 40 min`."""
    rest = round(seconds, 3) if seconds < 10.0 else float(round(seconds))
    for (size, name), (smaller, minor) in pairwise(_UNITS):
        if rest >= size:
            whole, left = divmod(rest, size)
            part = int(left // smaller)
            return f"{whole:.0f} {name}" + (f" {part} {minor}" if part else "")
    return f"{rest:g} s"


_LONGEST_DOUBLING = 20


class VisitResult(NamedTuple):
    """One finished visit; `changed` is None if it failed."""

    now: float
    changed: bool | None


class RevisitDecision(NamedTuple):
    """What follows from a visit: the new state, and when the next visit is due."""

    state: VisitState
    due: float


class RevisitPolicy(Protocol):
    """Decides when a page is visited next."""

    def next_visit(self, state: VisitState, look: VisitResult) -> RevisitDecision:
        """Take one look in. `due` is never before `look.now` plus the least interval."""
        ...


def state_after(state: VisitState, look: VisitResult, belief: tuple[float, float] | None = None) -> VisitState:
    """The state after a look, with a new belief if one is given; the interval is still the old one."""
    visits, changes, failures, last, changed, window, interval, *old, quiet, busy = state
    shape, scale = belief or old
    if look.changed is None:
        return state._replace(failures=failures + 1)
    if visits == 0:
        return VisitState(1, 0, 0, look.now, look.now, 0.0, interval, shape, scale)
    passed = max(0.0, look.now - last)
    if look.changed:
        changes, changed, window, busy = changes + 1, look.now, passed, busy + passed
    else:
        quiet += passed
    return VisitState(visits + 1, changes, 0, look.now, changed, window, interval, shape, scale, quiet, busy)


def decision_after(state: VisitState, now: float, interval: float) -> RevisitDecision:
    """The decision to come back after `interval`."""
    return RevisitDecision(state._replace(interval=interval), now + interval)


def retry_decision(state: VisitState, look: VisitResult, settings: ScheduleSettings) -> RevisitDecision:
    """After a failure: pauses that double from the least interval on; the learned interval stays."""
    state = state_after(state, look)
    pause = settings.min * 2.0 ** min(state.failures - 1, _LONGEST_DOUBLING)
    pause = min(max(pause, settings.min), settings.max)
    return RevisitDecision(state, look.now + pause)


@dataclass(frozen=True, slots=True)
class UniformPolicy:
    """Every page after the same interval."""

    settings: ScheduleSettings

    def next_visit(self, state: VisitState, look: VisitResult) -> RevisitDecision:
        """See `RevisitPolicy.next_visit`."""
        if look.changed is None:
            return retry_decision(state, look, self.settings)
        return decision_after(state_after(state, look), look.now, self.settings.interval)


@dataclass(frozen=True, slots=True)
class AdaptivePolicy:
    """The interval shrinks when the page changed and grows when it did not."""

    settings: ScheduleSettings

    def next_visit(self, state: VisitState, look: VisitResult) -> RevisitDecision:
        """See `RevisitPolicy.next_visit`."""
        if look.changed is None:
            return retry_decision(state, look, self.settings)
        after = state_after(state, look)
        interval = self._interval(state, after, look)
        return decision_after(after, look.now, min(max(interval, self.settings.min), self.settings.max))

    def _interval(self, state: VisitState, after: VisitState, look: VisitResult) -> float:
        if state.visits == 0:
            return self.settings.interval
        before = state.interval or self.settings.interval
        if look.changed:
            return before * (1.0 - self.settings.decrease)
        return max(before * (1.0 + self.settings.increase), look.now - after.last_change)


_PACE_FORMAT = struct.Struct("<ddddQ")
_PLAN_GAIN = 1.0
_DEBT_GAIN = 0.3
_MOST_DEBT = 1.0  # visits a page; beyond this, lost time is not made up for
_LONGEST_STEP = 0.05  # of an even interval; a longer silence means that nobody was visiting,
_LONGEST_GAPS = 5.0  # unless so few pages are known that visits are far apart anyway


class Pace:
    """Price and bookkeeping of one budget. Not shared between threads."""

    def __init__(self, interval: float, budget: float, price: float) -> None:
        """An even `interval` for each page, unless a `budget` in visits a second is given."""
        self._interval = interval
        self._budget = budget
        self._log_price = math.log(price)
        self._planned = 0.0
        self._debt = 0.0
        self._clock = -math.inf
        self.pages = 0

    @property
    def price(self) -> float:
        """What a visit must be worth now."""
        return math.exp(self._log_price)

    @property
    def budget(self) -> float:
        """Visits a second that are allowed to the pages known so far."""
        return self._budget or self.pages / self._interval

    @property
    def even(self) -> float:
        """The interval at which all pages alike would use up the budget."""
        return self.pages / self._budget if self._budget and self.pages else self._interval

    @property
    def load(self) -> float:
        """Planned visits over allowed visits."""
        return self._planned / self.budget if self.pages else 0.0

    def visited(self, before: float, after: float, now: float) -> None:
        """A visit was made; the page's interval was `before` (0: a new page) and is `after` now."""
        self.pages += before == 0.0
        self._planned += 1.0 / after - (1.0 / before if before else 0.0)
        step = min(max(0.0, now - self._clock), max(_LONGEST_STEP * self.even, _LONGEST_GAPS / self.budget))
        self._clock = max(self._clock, now)
        bound = _MOST_DEBT * self.pages
        self._debt = min(bound, max(-bound, self._debt + 1.0 - self.budget * step))
        error = math.log(max(self.load, 1e-6)) * _PLAN_GAIN + self._debt / self.pages * _DEBT_GAIN
        self._log_price += step / self.even * min(3.0, max(-3.0, error))

    def dropped(self, interval: float) -> None:
        """A page will not be visited any more."""
        self.pages = max(0, self.pages - 1)
        self._planned = max(0.0, self._planned - 1.0 / interval)

    def to_bytes(self) -> bytes:
        """The price and the books; budget and interval are settings."""
        clock = self._clock if self.pages else 0.0
        return _PACE_FORMAT.pack(self._log_price, self._planned, self._debt, clock, self.pages)

    def restore(self, data: bytes) -> None:
        """Take over what `to_bytes` gave."""
        if len(data) != _PACE_FORMAT.size:
            raise Damaged("the learned pace of the schedule cannot be read; delete it and it is learned again")
        self._log_price, self._planned, self._debt, self._clock, self.pages = _PACE_FORMAT.unpack(data)


_SURE = 3.0  # changes a belief must be worth before its page teaches the rhythm
_SHARP = 0.6  # of a gap: longer intervals say nothing of the phase
_MAGIC = b"LSO1"


class OptimalPolicy:
    """Maximises freshness (or captured changes), or minimises age, under a budget. One per agent."""

    def __init__(self, settings: ScheduleSettings, memory: bytes = b"") -> None:
        """`memory` is what `remember` gave when the last run ended."""
        self._settings = settings
        self._objective = objective_for(settings)
        start = self._objective.worth(prior_belief(settings.interval), settings.interval)
        self.pace = Pace(settings.interval, settings.budget, start)
        self.rhythm = ChangeRhythm()
        if memory:
            self._recall(memory)

    def next_visit(self, state: VisitState, look: VisitResult) -> RevisitDecision:
        """See `RevisitPolicy.next_visit`."""
        if look.changed is None:
            return retry_decision(state, look, self._settings)
        after = state_after(state, look, self._learned(state, look))
        interval = self._bounded(self._pays_after(after))
        self.pace.visited(state.interval, interval, look.now)
        return decision_after(after, look.now, interval)

    def forget(self, state: VisitState) -> None:
        """The page will not be visited any more; its share goes to the others."""
        if state.interval:
            self.pace.dropped(state.interval)

    def remember(self) -> bytes:
        """What was learned over all pages, for the next run."""
        pace = self.pace.to_bytes()
        return _MAGIC + len(pace).to_bytes(2, "little") + pace + self.rhythm.to_bytes()

    def _recall(self, memory: bytes) -> None:
        if memory[:4] != _MAGIC:
            raise Damaged("what the schedule learned cannot be read; delete it and it is learned again")
        end = 6 + int.from_bytes(memory[4:6], "little")
        self.pace.restore(memory[6:end])
        self.rhythm = ChangeRhythm.from_bytes(memory[end:])

    def _learned(self, state: VisitState, look: VisitResult) -> Belief:
        belief = (state.shape, state.scale) if state.scale else prior_belief(self._settings.interval)
        if state.visits == 0:
            return belief
        seconds = self._busy_seconds(state, look, belief)
        belief = belief_changed(belief, seconds) if look.changed else belief_unchanged(belief, seconds)
        return fade_belief(belief, self._settings.memory)

    def _busy_seconds(self, state: VisitState, look: VisitResult, belief: Belief) -> float:
        """The time since the last visit, as the rhythm counts it; teaches the rhythm on the way."""
        seconds = max(0.0, look.now - state.last_visit)
        if state.changes == 0 or seconds == 0.0:
            return seconds
        gap = self.rhythm.gap(belief)
        start = self._phase(state, gap)
        end = start + seconds / gap
        if belief[0] > _SURE and seconds < _SHARP * gap:
            self.rhythm.learn(start, end, bool(look.changed))
        return self.rhythm.busy(start, end) * gap if self.rhythm.regular else seconds

    def _phase(self, state: VisitState, gap: float) -> float:
        """Where in its rhythm the page was at its last visit, the change being taken as mid-window."""
        since = state.last_visit - state.last_change + min(state.window, gap) / 2.0
        return max(0.0, since / gap)

    def _pays_after(self, state: VisitState) -> float:
        """When a visit pays at the present price, by the belief in the state."""
        belief, price = (state.shape, state.scale), self.pace.price
        if self.rhythm.regular and state.changes and isinstance(self._objective, FreshnessObjective):
            phase = self._phase(state, self.rhythm.gap(belief))
            return self.rhythm.pays_after(self._objective, belief, phase, price)
        return self._objective.pays_after(belief, price)

    def _bounded(self, best: float) -> float:
        longest = self.pace.even / self._settings.exploration if self._settings.exploration > 0.0 else math.inf
        return min(max(min(best, longest), self._settings.min), self._settings.max)


def objective_for(settings: ScheduleSettings) -> FreshnessObjective | AgeObjective:
    """The objective that the settings name; `alpha` overrides it when it is not negative."""
    if settings.alpha >= 0.0:
        return FreshnessObjective(settings.alpha)
    if settings.objective == "age":
        return AgeObjective()
    return FreshnessObjective(1.0 if settings.objective == "captured" else 0.0)


def make_policy(settings: ScheduleSettings, memory: bytes = b"") -> RevisitPolicy:
    """A policy ready for use; `memory` is what an `OptimalPolicy` remembered of the last run."""
    if settings.policy == "uniform":
        return UniformPolicy(settings)
    if settings.policy == "adaptive":
        return AdaptivePolicy(settings)
    return OptimalPolicy(settings, memory)
