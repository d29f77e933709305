"""Policies: from what a visit found to the time of the next one.

All share one small interface and one state, so a page can change its policy
at any time. They are pure: time comes in with the look, and what the optimal
policy learns over all pages is two values that the caller keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from letopis.config.sections import ScheduleSettings
from letopis.schedule.state import VisitState
from letopis.schedule.why import Why

_LONGEST_DOUBLING = 20


class Look(NamedTuple):
    """One finished visit.

    `changed` is None when it failed. `weight` is the page's importance.
    `modified_age` is the age of the change where a trusted Last-Modified
    tells it. `host` names the host for limits of its own.
    """

    now: float
    changed: bool | None
    weight: float = 1.0
    modified_age: float | None = None
    host: int = 0


class Decision(NamedTuple):
    """What follows from a look: the new state, when the next visit is due, and why."""

    state: VisitState
    due: float
    why: Why


class Policy(Protocol):
    """Decides about the next visit."""

    @property
    def name(self) -> str:
        """As in the settings."""
        ...

    def next_visit(self, state: VisitState, look: Look) -> Decision:
        """Take one look in. `due` is never before `look.now` plus the least interval."""
        ...


def noted(state: VisitState, look: Look, belief: tuple[float, float] | None = None) -> VisitState:
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


def decide(policy: str, rule: str, state: VisitState, now: float, interval: float) -> Decision:
    """The decision to come back after `interval`."""
    state = state._replace(interval=interval)
    return Decision(state, now + interval, Why(policy, rule, interval, state.visits, state.changes))


def try_again(policy: str, state: VisitState, look: Look, settings: ScheduleSettings) -> Decision:
    """After a failure: pauses that double from the least interval on; the learned interval stays."""
    state = noted(state, look)
    pause = settings.min * 2.0 ** min(state.failures - 1, _LONGEST_DOUBLING)
    pause = min(max(pause, settings.min), settings.max)
    return Decision(state, look.now + pause, Why(policy, "failed", pause, state.visits, state.changes))


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every page after the same interval."""

    settings: ScheduleSettings
    name: str = "uniform"

    def next_visit(self, state: VisitState, look: Look) -> Decision:
        """See `Policy.next_visit`."""
        if look.changed is None:
            return try_again(self.name, state, look, self.settings)
        return decide(self.name, "even", noted(state, look), look.now, self.settings.interval)


@dataclass(frozen=True, slots=True)
class Adaptive:
    """The interval shrinks when the page changed and grows when it did not."""

    settings: ScheduleSettings
    name: str = "adaptive"

    def next_visit(self, state: VisitState, look: Look) -> Decision:
        """See `Policy.next_visit`."""
        if look.changed is None:
            return try_again(self.name, state, look, self.settings)
        after = noted(state, look)
        rule, interval = self._rule(state, after, look)
        bounded = min(max(interval, self.settings.min), self.settings.max)
        return decide(self.name, rule, after, look.now, bounded)

    def _rule(self, state: VisitState, after: VisitState, look: Look) -> tuple[str, float]:
        if state.visits == 0:
            return "first", self.settings.interval
        before = state.interval or self.settings.interval
        if look.changed:
            return "shorter", before * (1.0 - self.settings.decrease)
        longer = before * (1.0 + self.settings.increase)
        quiet = look.now - after.last_change
        return ("quiet", quiet) if quiet > longer else ("longer", longer)
