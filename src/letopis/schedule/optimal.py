"""The optimal policy: visits go where they are worth most, within the budget.

Each page is due when a visit to it is worth the current price. This solves the allocation under a budget without ever
solving it for all pages at once: `Pace` adjusts the price page by page. A higher price means fewer visits. The price
follows two errors: the planned rate (the sum of 1 / interval over all pages) against the budget, which is early and
smooth, and the actual visits against those allowed so far, which leaves no permanent error. It never examines all
pages, so each agent can have its own price for its share of the budget.
"""

from __future__ import annotations

import math
import struct

from letopis.config.settings import ScheduleSettings
from letopis.errors import Damaged
from letopis.schedule.policies import (
    AdaptivePolicy,
    RevisitDecision,
    RevisitPolicy,
    RevisitReason,
    UniformPolicy,
    VisitResult,
    VisitState,
    retry_decision,
    state_after,
)
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

_FORMAT = struct.Struct("<ddddQ")
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
        return _FORMAT.pack(self._log_price, self._planned, self._debt, clock, self.pages)

    def restore(self, data: bytes) -> None:
        """Take over what `to_bytes` gave."""
        if len(data) != _FORMAT.size:
            raise Damaged("the learned pace of the schedule cannot be read; delete it and it is learned again")
        self._log_price, self._planned, self._debt, self._clock, self.pages = _FORMAT.unpack(data)


_SURE = 3.0  # changes a belief must be worth before its page teaches the rhythm
_SHARP = 0.6  # of a gap: longer intervals say nothing of the phase
_MAGIC = b"LSO1"


class OptimalPolicy:
    """Maximises freshness (or captured changes), or minimises age, under a budget. One per agent."""

    name = "optimal"

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
            return retry_decision(self.name, state, look, self._settings)
        after = state_after(state, look, self._learned(state, look))
        why = self._why(after, self.pace.price)
        self.pace.visited(state.interval, why.interval, look.now)
        return RevisitDecision(after._replace(interval=why.interval), look.now + why.interval, why)

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

    def _why(self, state: VisitState, price: float) -> RevisitReason:
        """The decision for the belief in the state, with its reason."""
        belief = state.shape, state.scale
        gap = self.rhythm.gap(belief)
        rule, best = "pays", 0.0
        if self.rhythm.regular and state.changes and isinstance(self._objective, FreshnessObjective):
            rule, best = "rhythm", self.rhythm.pays_after(self._objective, belief, self._phase(state, gap), price)
        else:
            best = self._objective.pays_after(belief, price)
        rule, interval = self._bounded(rule, best)
        return RevisitReason(self.name, rule, interval, state.visits, state.changes, gap, price, best)

    def _bounded(self, rule: str, best: float) -> tuple[str, float]:
        longest = self.pace.even / self._settings.exploration if self._settings.exploration > 0.0 else math.inf
        interval = min(max(min(best, longest), self._settings.min), self._settings.max)
        if interval == best:
            return rule, best
        return ("explored" if interval == longest else "bounded"), interval


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
