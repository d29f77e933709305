"""Responses on their way into the archive: read in batches, planned for the next visit, recorded in one transaction,
and counted.

A page that is read right after its fetch costs a third more than one that is read in a batch, and its host waits.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from letopis.archive import Archive
from letopis.archive.queues import FrontierQueue, FrontierState, HostUpdate, LeasesLost, NewUrl, PlannedUrl, QueueUpdate
from letopis.crawl.selection import CrawlDecisions, CrawlSelection, PlanLimits, added_up
from letopis.errors import LetopisError, NotReady
from letopis.frontier.frontier import Frontier
from letopis.frontier.leases import LeaseManager
from letopis.frontier.queue import Ticket
from letopis.look.known import KnownVersion
from letopis.look.politeness import FetchResult
from letopis.look.visitor import LookOptions, Visitor
from letopis.model import Observation, Outcome, Response, rfc3339, to_millis
from letopis.schedule.policies import OptimalPolicy, RevisitPolicy, VisitResult, VisitState
from letopis.tuples import NamedTuple


class CrawlPause(NamedTuple):
    """A crawl that has nothing to fetch now. If `until` is None, it waits for URLs that others plan."""

    until: datetime | None
    paused_hosts: bool
    """Whether pages are due whose hosts asked for a pause; else none is due."""

    @property
    def sentence(self) -> str:
        """What it waits for, and until when."""
        if self.until is None:
            return "nothing is planned; waiting for pages that others plan"
        if self.paused_hosts:
            return f"all pages that are due wait for a pause of their hosts, the first until {rfc3339(self.until)}"
        return f"nothing is due before {rfc3339(self.until)}; waiting until then"

    def row(self) -> dict[str, object]:
        """For --json and the web interface."""
        until = None if self.until is None else rfc3339(self.until)
        return {"waits_until": until, "paused_hosts": self.paused_hosts}

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> CrawlPause | None:
        """The inverse of `row`; None where it is not in it."""
        until = row.get("waits_until")
        moment = None if until is None else datetime.fromisoformat(until)
        return cls(moment, row["paused_hosts"]) if "waits_until" in row else None


def earliest_pause(pauses: Sequence[CrawlPause | None]) -> CrawlPause | None:
    """The pause of several agents: None while any of them has something to fetch."""
    known = [pause for pause in pauses if pause is not None]
    ends = [pause for pause in known if pause.until is not None]
    return None if len(known) < len(pauses) else min(ends or known)


@dataclass(slots=True)
class CrawlStats:
    """Counts since the crawl began; `seconds` is its duration.

    `not_asked` are pages excluded by robots.txt, a setting or a limit, by kind: they were not requested.
    """

    fetched: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    bytes: int = 0
    links: int = 0
    first_visits: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    pause: CrawlPause | None = None
    """What is waited for now; None while there is something to fetch."""
    not_asked: Counter[str] = field(default_factory=Counter)

    def count(self, look: Observation, first: bool, links: int) -> None:
        """Takes one finished look in."""
        if look.outcome is Outcome.REFUSED:
            self.not_asked[_error_kind(look)] += 1
            return
        self.fetched += 1
        self.first_visits += first
        self.links += links
        self.bytes += look.response.wire_bytes
        match look.outcome:
            case Outcome.NEW:
                self.new += 1
            case Outcome.CHANGED:
                self.changed += 1
            case Outcome.UNCHANGED:
                self.unchanged += 1
            case _:
                self.errors[_error_kind(look)] += 1

    @property
    def rate(self) -> float:
        """Pages a second."""
        return self.fetched / self.seconds if self.seconds else 0.0

    @property
    def new_share(self) -> float:
        """Share of fetches that were first visits."""
        return self.first_visits / self.fetched if self.fetched else 0.0

    def row(self) -> dict[str, object]:
        """For --json and the web interface."""
        return {
            "fetched": self.fetched,
            "new": self.new,
            "changed": self.changed,
            "unchanged": self.unchanged,
            "errors": dict(self.errors),
            "not_asked": dict(self.not_asked),
            "bytes": self.bytes,
            "links": self.links,
            "new_share": round(self.new_share, 3),
            "pages_per_second": round(self.rate, 1),
            "seconds": round(self.seconds, 1),
        } | ({} if self.pause is None else self.pause.row())

    def add(self, other: CrawlStats) -> None:
        """Takes in what another agent did at the same time."""
        for name in ("fetched", "new", "changed", "unchanged", "bytes", "links", "first_visits"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.errors.update(other.errors)
        self.not_asked.update(other.not_asked)
        self.seconds = max(self.seconds, other.seconds)
        self.pause = other.pause

    def plus(self, other: CrawlStats) -> CrawlStats:
        """Both together."""
        total = replace(self, errors=Counter(self.errors), not_asked=Counter(self.not_asked))
        total.add(other)
        return total

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> CrawlStats:
        """The inverse of `row`, as far as it goes."""
        first = round(row["new_share"] * row["fetched"])
        return cls(
            row["fetched"], row["new"], row["changed"], row["unchanged"], row["bytes"], row["links"], first,
            Counter(row["errors"]), row["seconds"], CrawlPause.from_row(row),
            Counter(row["not_asked"]),
        )  # fmt: skip


def _error_kind(look: Observation) -> str:
    failure = look.response.failure
    return failure.kind.value if failure else str(look.response.status)


READ_BATCH_BYTES = 2 * 1024 * 1024
"""Bodies that are read in one go: some tens of milliseconds, for which nobody else has a turn."""
READ_BATCH = 256
_KEPT_OUTCOMES = (Outcome.NEW, Outcome.CHANGED)


class PendingLook(NamedTuple):
    """The result of a ticket, what was known before it, and what the frontier was told."""

    ticket: Ticket
    response: Response
    known: KnownVersion | None
    returned: FetchResult
    host: HostUpdate


class FinishedLook(NamedTuple):
    """A look that only needs to be recorded."""

    ticket: Ticket
    look: Observation
    returned: FetchResult
    host: HostUpdate


class PendingLooks:
    """Responses in the order of their arrival. The length counts all that were not taken yet, read or not."""

    def __init__(self, visitor: Visitor, decisions: CrawlDecisions, options: LookOptions) -> None:
        self._visitor = visitor
        self._decisions = decisions
        self._options = options
        self._answers: list[PendingLook] = []
        self._bytes = 0
        self._finished: list[FinishedLook] = []
        self._count = 0
        self.held = 0
        """Bytes of the bodies of all that is not taken yet."""

    def __len__(self) -> int:
        """Looks that are not recorded yet."""
        return self._count

    def add(self, answer: PendingLook) -> None:
        """Lays an answer aside; see whether that `is_due` now."""
        size = answer.response.held_bytes
        self._answers.append(answer)
        self._count += 1
        self._bytes += size
        self.held += size

    @property
    def is_due(self) -> bool:
        """Whether a portion is full."""
        return self._bytes >= READ_BATCH_BYTES or len(self._answers) >= READ_BATCH

    def work(self) -> None:
        """Reads and compares what has come."""
        answers, self._answers, self._bytes = self._answers, [], 0
        self._visitor.expect((answer.response, answer.known) for answer in answers)
        self._finished += map(self._judged, answers)

    def take(self) -> list[FinishedLook]:
        """All of them, which are the caller's then."""
        self.work()
        finished, self._finished, self.held, self._count = self._finished, [], 0, 0
        return finished

    def _judged(self, answer: PendingLook) -> FinishedLook:
        ticket, response, known, returned, host = answer
        look = self._visitor.judge(response, known, self._options)
        if known is not None and (ticket.new or self._options.reread):
            # A check, an import or a narrower crawl has met the page before; its links were never followed.
            look = self._visitor.reread(look, known.final_url, self._options)
        if look.outcome in _KEPT_OUTCOMES and not self._decisions.stores(look, ticket.depth):
            look = look._replace(keep_body=False)
        return FinishedLook(ticket, look, returned, host)


_GONE_STATUSES = (404, 410)


class PlannedLook(NamedTuple):
    """A finished look with its consequences, decided once however often recording is attempted."""

    done: FinishedLook
    plan: PlannedUrl


_AGAIN, _GONE = int(FrontierState.AGAIN), int(FrontierState.GONE)


class RevisitPlanner:
    """Asks the policy, except for pages that the owner does not want to revisit. For one thread."""

    def __init__(self, policy: RevisitPolicy, decisions: CrawlDecisions, counts: str) -> None:
        """`counts` tells what counts as a change, as the setting `change.count` does."""
        self._policy = policy
        self._decisions = decisions
        self._counts_bytes = counts == "bytes"

    def planned(self, done: FinishedLook) -> PlannedLook:
        """Teaches the policy, so it is called once a look."""
        ticket, look = done.ticket, done.look
        absent = look.response.status in _GONE_STATUSES
        seen = look.response.available and not absent
        changed = self._is_change(look) if seen else None
        state = VisitState.from_bytes(ticket.schedule)
        decision = self._policy.next_visit(state, VisitResult(done.returned.finished / 1000, changed))
        record = decision.state.to_bytes()
        if (absent and ticket.new) or not self._decisions.revisits(look, ticket.depth):
            if isinstance(self._policy, OptimalPolicy):
                self._policy.forget(decision.state)
            return PlannedLook(done, PlannedUrl(_GONE, None, record, ticket.id))
        return PlannedLook(done, PlannedUrl(_AGAIN, int(decision.due * 1000), record, ticket.id))

    def _is_change(self, look: Observation) -> bool:
        """What the schedule learns from."""
        if look.outcome is not Outcome.CHANGED or look.change is None:
            return False
        return self._counts_bytes or look.change.meaningful is None or look.change.meaningful


RETRY_SECONDS = 1.0
_PATIENCE_SECONDS = 300.0
"""How long an agent of a fleet keeps what it could not record while a service is away."""
_MAX_MET = 100_000
"""Addresses remembered as they stand in pages: the menus of a site are worked out once, not on every page."""


class BatchCommitter:
    """The commits of one agent. What could not be recorded waits here; until then, nothing new should be started."""

    def __init__(
        self,
        archive: Archive,
        visitor: Visitor,
        frontier: Frontier,
        queue: FrontierQueue,
        policy: RevisitPolicy,
        select: Callable[[], CrawlSelection],
        decisions: CrawlDecisions,
        lease_manager: LeaseManager | None,
        limit: Callable[[], PlanLimits] | None = None,
    ) -> None:
        """`select` is asked again when a page stands for a seed that has moved, and with `limit` when plans change."""
        self._archive = archive
        self._visitor = visitor
        self._frontier = frontier
        self._queue = queue
        self._policy = policy
        self._select = select
        self._selection = select()
        self._decisions = decisions
        self._lease_manager = lease_manager
        self._limit = limit or (lambda: PlanLimits(archive, None))
        self._limits = self._limit()
        self._planner = RevisitPlanner(policy, decisions, archive.settings.change.count)
        self._met: set[str] = set()
        self._kept: list[PlannedLook] = []
        self._planned: list[NewUrl] = []
        self._linked: list[NewUrl] = []
        self._kept_since = 0.0
        self.retry_at = 0.0
        """When what waits should be tried again, by `time.monotonic`."""
        self.figures = CrawlStats()

    @property
    def is_waiting(self) -> bool:
        """Whether something could not be recorded yet."""
        return bool(self._kept)

    def is_used_up(self, url: str) -> bool:
        """Whether the crawls that would ask for a page have had their bytes or their time."""
        return self._limits.are_any and self._limits.is_used_up(url)

    def took(self, url: str, taken: int) -> None:
        """A page came, with so many bytes from the network."""
        if self._limits.are_any:
            self._limits.fetched(url, taken)

    def commit(self, batch: list[FinishedLook], listed: list[NewUrl]) -> None:
        """Records looks, what waited, and URLs that sitemaps name, as one; durable unless it `is_waiting` then."""
        self._prepare(batch, listed)
        self._try()

    def _prepare(self, batch: list[FinishedLook], listed: list[NewUrl]) -> None:
        """Decides what follows from finished looks; each is decided once, for deciding teaches sieve and policy."""
        self._kept += map(self._planner.planned, batch)
        if not self._limits.hold():
            self._limits, self._selection = self._limit(), self._select()
        found = [link for done in batch for link in self._links(done)] + listed
        if self._decisions.ranks:
            found = self._ranked(found)
        if self._limits.are_any:
            self._planned += self._within_limits(found)
            return
        fresh = self._selection.admitted(self._frontier.filter_unseen(found))
        self._met.update(link.url for link in found)
        if len(self._met) > _MAX_MET:
            self._met.clear()
        self._planned += self._decisions.schedules(fresh, self._archive.clock())

    def _ranked(self, found: list[NewUrl]) -> list[NewUrl]:
        """Links added up; to those that were met before what their pages say for them is added."""
        links = added_up(found)
        unseen = {link.key for link in self._frontier.unseen(links)}
        self._linked += [link for link in links if link.key not in unseen]
        return links

    def _within_limits(self, found: list[NewUrl]) -> list[NewUrl]:
        """What no limit leaves out. That does not count as seen: it is planned where somebody raises the limit."""
        unseen: dict[int, NewUrl] = {}
        for link in self._frontier.unseen(found):
            unseen.setdefault(link.key | 1, link)
        planned = []
        for link in self._selection.admitted(unseen.values()):
            if self._limits.admit(link) and self._decisions.schedules([link], self._archive.clock()):
                self._limits.take(link)
                planned.append(link)
        return self._frontier.filter_unseen(planned)

    def _links(self, done: FinishedLook) -> list[NewUrl]:
        depth = done.ticket.depth
        if depth == 0 and not self._selection.scope.reaches(done.ticket.url):
            # A redirect that led here may be recorded by now, whoever followed it.
            self._selection = self._select()
        # Where links say which page comes first, those to pages that were met before say it too.
        found = self._selection.links(done.look, depth, () if self._decisions.ranks else self._met)
        links = self._decisions.links(done.look, found, depth, done.ticket.priority)
        self.figures.count(done.look, done.ticket.new, len(links))
        return links

    def _try(self) -> None:
        if not self._kept:
            return
        try:
            hosts = self._record(self._kept)
        except LeasesLost as lost:
            self._let_go(lost.hosts)
        except NotReady as error:
            self._keep_for_later(error)
        else:
            self._frontier.recorded(each.done.ticket for each in self._kept)
            self._kept, self._planned, self._linked, self._kept_since = [], [], [], 0.0
            self._limits.recorded()
            self._frontier.notice(hosts)

    def _record(self, batch: list[PlannedLook]) -> list[int]:
        """Hosts that got URLs."""
        lease_manager, policy, now = self._lease_manager, self._policy, self._now()
        update = QueueUpdate(
            self._archive,
            self._queue,
            [each.plan for each in batch],
            [each.done.host for each in batch],
            self._planned,
            policy.remember() if isinstance(policy, OptimalPolicy) else None,
            lease_manager.held((each.done.ticket for each in batch), now) if lease_manager is not None else None,
            self._limits.spent(),
            self._linked,
            json.dumps(self.figures.row()) if self._queue.agent is not None else "",
        )
        self._visitor.record([each.done.look for each in batch], update.write, update.hosts)
        return update.noticed

    def _let_go(self, hosts: set[int]) -> None:
        """Looks at hosts that went to others are not ours to record; those fetch them again."""
        gone = [each.done.ticket for each in self._kept if each.done.ticket.host_id in hosts]
        self._kept = [each for each in self._kept if each.done.ticket.host_id not in hosts]
        self._frontier.recorded(gone)
        for host in hosts:
            self._frontier.drop_host(host)
        self._try()

    def _keep_for_later(self, error: LetopisError) -> None:
        """An agent of a fleet waits for a service that is away; one alone tells its owner at once."""
        now = time.monotonic()
        self._kept_since = self._kept_since or now
        if self._lease_manager is None or now - self._kept_since > _PATIENCE_SECONDS:
            raise error
        self.retry_at = now + RETRY_SECONDS

    def _now(self) -> int:
        return to_millis(self._archive.clock())
