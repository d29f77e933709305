"""Answers on their way to being recorded: read and compared by the portion, while the next ones come in.

A page that is read right after it was fetched costs a third more than one
that is read among its like, and its host waits meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple

from letopis.crawl.decisions import Decisions
from letopis.frontier import HostFacts, Returned, Ticket
from letopis.model import Observation, Outcome, Response
from letopis.visit import Known, Manner, Visitor

PORTION_BYTES = 2 * 1024 * 1024
"""Bodies that are read in one go: some tens of milliseconds, for which nobody else has a turn."""
PORTION = 256
_KEPT = (Outcome.NEW, Outcome.CHANGED)


class Answer(NamedTuple):
    """What came of a ticket, what was known before it, and what the frontier was told."""

    ticket: Ticket
    response: Response
    known: Known | None
    returned: Returned
    host: HostFacts


class Finished(NamedTuple):
    """A look that is over but for its record."""

    ticket: Ticket
    look: Observation
    returned: Returned
    host: HostFacts


class Judging:
    """Answers in the order in which they came. Its length counts all that is not taken yet, read or not."""

    def __init__(self, visitor: Visitor, decisions: Decisions, manner: Manner) -> None:
        self._visitor = visitor
        self._decisions = decisions
        self._manner = manner
        self._answers: list[Answer] = []
        self._bytes = 0
        self._finished: list[Finished] = []
        self.held = 0
        """Bytes of the bodies of all that is not taken yet."""

    def __len__(self) -> int:
        """Looks that are not recorded yet."""
        return len(self._answers) + len(self._finished)

    def add(self, answer: Answer) -> None:
        """Lays an answer aside; see whether that `is_due` now."""
        size = len(answer.response.body)
        self._answers.append(answer)
        self._bytes += size
        self.held += size

    @property
    def is_due(self) -> bool:
        """Whether a portion is full."""
        return self._bytes >= PORTION_BYTES or len(self._answers) >= PORTION

    def work(self) -> None:
        """Reads and compares what has come."""
        answers, self._answers, self._bytes = self._answers, [], 0
        self._finished += map(self._judged, answers)

    def take(self) -> list[Finished]:
        """All of them, which are the caller's then."""
        self.work()
        finished, self._finished, self.held = self._finished, [], 0
        return finished

    def _judged(self, answer: Answer) -> Finished:
        ticket, response, known, returned, host = answer
        look = self._visitor.judge(response, known, self._manner)
        if known is not None and (ticket.new or self._manner.reread):
            # A check, an import or a narrower crawl has met the page before; its links were never followed.
            look = self._visitor.reread(look, known.final_url, self._manner)
        if look.outcome in _KEPT and not self._decisions.stores(look, ticket.depth):
            look = look._replace(keep_body=False)
        return Finished(ticket, look, returned, host)
