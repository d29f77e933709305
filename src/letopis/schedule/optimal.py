"""The optimal policy: visits go where they are worth most, and no more of them than the budget.

Each page is due when a visit to it is worth the present price. That is the
solution of the allotment under a budget without ever solving it for all
pages at once: the price is kept right by `Pace`, page by page.
"""

from __future__ import annotations

import math

from letopis.config.sections import ScheduleSettings
from letopis.errors import Damaged
from letopis.schedule import belief as beliefs
from letopis.schedule.belief import Belief
from letopis.schedule.pace import Pace
from letopis.schedule.policies import Decision, Look, noted, try_again
from letopis.schedule.rhythm import Rhythm
from letopis.schedule.state import VisitState
from letopis.schedule.why import Why
from letopis.schedule.worth import Age, Weighted

_SURE = 3.0  # changes a belief must be worth before its page teaches the rhythm
_SHARP = 0.6  # of a gap: longer intervals say nothing of the phase
_HOST_FLOOR = 0.2  # a host's own price stays near the common one, to be ready when it binds
_MAGIC = b"LSO1"


class Optimal:
    """Highest freshness (or captured changes, or least age) under a budget. One per agent."""

    name = "optimal"

    def __init__(self, settings: ScheduleSettings, memory: bytes = b"") -> None:
        """`memory` is what `remember` gave when the last run ended."""
        self._settings = settings
        self._objective = objective_of(settings)
        start = self._objective.worth(beliefs.prior(settings.interval), settings.interval)
        self.pace = Pace(settings.interval, settings.budget, start)
        self.rhythm = Rhythm()
        self._hosts: dict[int, Pace] = {}
        if memory:
            self._recall(memory)

    def limit_host(self, host: int, visits_a_second: float) -> None:
        """From now on the pages of this host share a budget of their own."""
        self._hosts.setdefault(host, Pace(self._settings.interval, visits_a_second, self.pace.price))

    def price(self, host: int = 0) -> float:
        """What a visit must be worth: the common price, or the host's where that is higher."""
        own = self._hosts.get(host)
        return self.pace.price if own is None else max(self.pace.price, own.price)

    def next_visit(self, state: VisitState, look: Look) -> Decision:
        """See `Policy.next_visit`."""
        if look.changed is None:
            return try_again(self.name, state, look, self._settings)
        after = noted(state, look, self._learned(state, look))
        why = self._why(after, self.price(look.host) / look.weight)
        self._account(state.interval, why.interval, look)
        return Decision(after._replace(interval=why.interval), look.now + why.interval, why)

    def explain(self, state: VisitState, weight: float = 1.0, host: int = 0) -> Why:
        """Why a page in this state waits as long as it does, at the present price."""
        known = state if state.scale else state._replace(shape=1.0, scale=self._settings.interval)
        return self._why(known, self.price(host) / weight)

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
            raise Damaged("what the schedule learned cannot be read; delete it and it is learned anew")
        end = 6 + int.from_bytes(memory[4:6], "little")
        self.pace.restore(memory[6:end])
        self.rhythm = Rhythm.from_bytes(memory[end:])

    def _learned(self, state: VisitState, look: Look) -> Belief:
        belief = (state.shape, state.scale) if state.scale else beliefs.prior(self._settings.interval)
        if state.visits == 0:
            return belief
        if look.changed and look.modified_age is not None:
            belief = beliefs.dated(belief, look.modified_age)
        else:
            seconds = self._busy_seconds(state, look, belief)
            belief = beliefs.changed(belief, seconds) if look.changed else beliefs.unchanged(belief, seconds)
        return beliefs.fade(belief, self._settings.memory)

    def _busy_seconds(self, state: VisitState, look: Look, belief: Belief) -> float:
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

    def _why(self, state: VisitState, price: float) -> Why:
        """The decision for the belief in the state, with its reason."""
        belief = state.shape, state.scale
        gap = self.rhythm.gap(belief)
        rule, best = "pays", 0.0
        if self.rhythm.regular and state.changes and isinstance(self._objective, Weighted):
            rule, best = "rhythm", self.rhythm.pays_after(self._objective, belief, self._phase(state, gap), price)
        else:
            best = self._objective.pays_after(belief, price)
        rule, interval = self._bounded(rule, best)
        return Why(self.name, rule, interval, state.visits, state.changes, gap, price, best)

    def _bounded(self, rule: str, best: float) -> tuple[str, float]:
        longest = self.pace.even / self._settings.exploration if self._settings.exploration > 0.0 else math.inf
        interval = min(max(min(best, longest), self._settings.min), self._settings.max)
        if interval == best:
            return rule, best
        return ("explored" if interval == longest else "bounded"), interval

    def _account(self, before: float, interval: float, look: Look) -> None:
        self.pace.visited(before, interval, look.now)
        own = self._hosts.get(look.host)
        if own is not None:
            own.visited(before, interval, look.now, floor=self.pace.price * _HOST_FLOOR)


def objective_of(settings: ScheduleSettings) -> Weighted | Age:
    """The objective that the settings name; `alpha` overrides it when it is not negative."""
    if settings.alpha >= 0.0:
        return Weighted(settings.alpha)
    if settings.objective == "age":
        return Age()
    return Weighted(1.0 if settings.objective == "captured" else 0.0)
