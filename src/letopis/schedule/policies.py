"""Revisit policies: from the result of a visit to the time of the next one, with the reason.

All share one small interface and one state of 42 bytes per page, so a page can change its policy at any time. They
are pure: the time is passed in with the result, and what the optimal policy learns over all pages is two values that
the caller stores.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from letopis.config.settings import ScheduleSettings
from letopis.errors import REPAIR, Damaged
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


class RevisitReason(NamedTuple):
    """The reason for one interval. `rule` names the step of the policy that decided."""

    policy: str
    rule: str
    interval: float
    visits: int
    changes: int
    gap: float = 0.0
    price: float = 0.0
    unbounded: float = 0.0

    @property
    def sentence(self) -> str:
        """For people: `letopis why URL`."""
        seen = f"{self.changes} of {max(self.visits - 1, 0)} later visits found a change"
        reason = _REASONS[self.rule].format(**self._words())
        return f"{seen}; {reason}; next after {format_span(self.interval)} ({self.policy})"

    def _words(self) -> dict[str, str]:
        unbounded = "never" if self.unbounded == float("inf") else f"after {format_span(self.unbounded)}"
        return {"gap": format_span(self.gap), "price": f"{self.price:.4g}", "unbounded": unbounded}


_REASONS = {
    "first": "this was the first visit",
    "even": "all pages have the same interval",
    "shorter": "it changed, so the interval shrinks",
    "longer": "it did not change, so the interval grows",
    "quiet": "it has been quiet for longer than the interval, so that time is taken",
    "failed": "the last visit failed, so it is tried again with growing pauses",
    "pays": "about one change in {gap}, at the present price ({price}) a visit pays {unbounded}",
    "rhythm": "about one change in {gap} and pages here keep a rhythm, a visit pays {unbounded} (price {price})",
    "explored": "about one change in {gap}, a visit pays {unbounded} (price {price}), but none waits longer than this",
    "bounded": "about one change in {gap}, a visit pays {unbounded} (price {price}), limited to the configured range",
}


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
    """What follows from a visit: the new state, when the next visit is due, and why."""

    state: VisitState
    due: float
    why: RevisitReason


class RevisitPolicy(Protocol):
    """Decides when a page is visited next."""

    @property
    def name(self) -> str:
        """As in the settings."""
        ...

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


def decision_after(policy: str, rule: str, state: VisitState, now: float, interval: float) -> RevisitDecision:
    """The decision to come back after `interval`."""
    state = state._replace(interval=interval)
    return RevisitDecision(state, now + interval, RevisitReason(policy, rule, interval, state.visits, state.changes))


def retry_decision(policy: str, state: VisitState, look: VisitResult, settings: ScheduleSettings) -> RevisitDecision:
    """After a failure: pauses that double from the least interval on; the learned interval stays."""
    state = state_after(state, look)
    pause = settings.min * 2.0 ** min(state.failures - 1, _LONGEST_DOUBLING)
    pause = min(max(pause, settings.min), settings.max)
    return RevisitDecision(state, look.now + pause, RevisitReason(policy, "failed", pause, state.visits, state.changes))


@dataclass(frozen=True, slots=True)
class UniformPolicy:
    """Every page after the same interval."""

    settings: ScheduleSettings
    name: str = "uniform"

    def next_visit(self, state: VisitState, look: VisitResult) -> RevisitDecision:
        """See `RevisitPolicy.next_visit`."""
        if look.changed is None:
            return retry_decision(self.name, state, look, self.settings)
        return decision_after(self.name, "even", state_after(state, look), look.now, self.settings.interval)


@dataclass(frozen=True, slots=True)
class AdaptivePolicy:
    """The interval shrinks when the page changed and grows when it did not."""

    settings: ScheduleSettings
    name: str = "adaptive"

    def next_visit(self, state: VisitState, look: VisitResult) -> RevisitDecision:
        """See `RevisitPolicy.next_visit`."""
        if look.changed is None:
            return retry_decision(self.name, state, look, self.settings)
        after = state_after(state, look)
        rule, interval = self._rule(state, after, look)
        bounded = min(max(interval, self.settings.min), self.settings.max)
        return decision_after(self.name, rule, after, look.now, bounded)

    def _rule(self, state: VisitState, after: VisitState, look: VisitResult) -> tuple[str, float]:
        if state.visits == 0:
            return "first", self.settings.interval
        before = state.interval or self.settings.interval
        if look.changed:
            return "shorter", before * (1.0 - self.settings.decrease)
        longer = before * (1.0 + self.settings.increase)
        quiet = look.now - after.last_change
        return ("quiet", quiet) if quiet > longer else ("longer", longer)
