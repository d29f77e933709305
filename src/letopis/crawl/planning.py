"""What a look means for the next visit of its URL."""

from __future__ import annotations

from typing import NamedTuple

from letopis.catalog.queues import AGAIN, GONE
from letopis.crawl.decisions import Decisions
from letopis.crawl.judging import Finished
from letopis.model import Observation, Outcome
from letopis.schedule import Look, Optimal, Policy, VisitState

_NOT_THERE = (404, 410)


class Planned(NamedTuple):
    """A finished look with what follows from it, decided once however often recording is tried."""

    done: Finished
    plan: tuple[int, int | None, bytes, int]
    """State, due time and visit record after the look, and the URL."""


class Planner:
    """Asks the policy, and tells it what the owner does not want to see again. For one thread."""

    def __init__(self, policy: Policy, decisions: Decisions, counts: str) -> None:
        """`counts` tells what counts as a change, as the setting `change.count` does."""
        self._policy = policy
        self._decisions = decisions
        self._counts_bytes = counts == "bytes"

    def planned(self, done: Finished) -> Planned:
        """Teaches the policy, so each look is told once."""
        ticket, look = done.ticket, done.look
        absent = look.response.status in _NOT_THERE
        seen = look.response.available and not absent and look.outcome is not Outcome.REFUSED
        changed = self._is_change(look) if seen else None
        state = VisitState.from_bytes(ticket.schedule)
        decision = self._policy.next_visit(state, Look(done.returned.finished / 1000, changed, host=ticket.host_id))
        record = decision.state.to_bytes()
        if (absent and ticket.new) or not self._decisions.revisits(look, ticket.depth):
            if isinstance(self._policy, Optimal):
                self._policy.forget(decision.state)
            return Planned(done, (GONE, None, record, ticket.id))
        return Planned(done, (AGAIN, int(decision.due * 1000), record, ticket.id))

    def _is_change(self, look: Observation) -> bool:
        """What the schedule learns from."""
        if look.outcome is not Outcome.CHANGED or look.change is None:
            return False
        return self._counts_bytes or look.change.meaningful is None or look.change.meaningful
