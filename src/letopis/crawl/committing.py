"""Recording finished looks with all that follows from them: the next visits, the hosts, the links they found."""

from __future__ import annotations

import time
from collections.abc import Callable

from letopis.archive import Archive, Recorded
from letopis.catalog import Cursor
from letopis.crawl.decisions import Decisions
from letopis.crawl.durable import CatalogQueue
from letopis.crawl.figures import Figures
from letopis.crawl.holding import Holding, LeasesLost
from letopis.crawl.judging import Finished
from letopis.crawl.planning import Planned, Planner
from letopis.crawl.selection import Selection
from letopis.errors import LetopisError, NotReady
from letopis.frontier import Frontier, NewUrl
from letopis.model import to_millis
from letopis.schedule import Optimal, Policy
from letopis.visit import Visitor

RETRY_SECONDS = 1.0
_PATIENCE_SECONDS = 300.0
"""How long an agent of a fleet keeps what it could not record while a service is away."""
_MET = 100_000
"""Addresses remembered as they stand in pages: the menus of a site are worked out once, not on every page."""


class Committing:
    """The commits of one agent. What could not be recorded waits here, and then nothing new should be begun."""

    def __init__(
        self,
        archive: Archive,
        visitor: Visitor,
        frontier: Frontier,
        queue: CatalogQueue,
        policy: Policy,
        select: Callable[[], Selection],
        decisions: Decisions,
        holding: Holding | None,
    ) -> None:
        """`select` is asked again when a page stands for a seed that has moved."""
        self._archive = archive
        self._visitor = visitor
        self._frontier = frontier
        self._queue = queue
        self._policy = policy
        self._select = select
        self._selection = select()
        self._decisions = decisions
        self._holding = holding
        self._planner = Planner(policy, decisions, archive.settings.change.count)
        self._met: set[str] = set()
        self._kept: list[Planned] = []
        self._planned: list[NewUrl] = []
        self._kept_since = 0.0
        self.retry_at = 0.0
        """When what waits should be tried again, by `time.monotonic`."""
        self.figures = Figures()

    @property
    def is_waiting(self) -> bool:
        """Whether something could not be recorded yet."""
        return bool(self._kept)

    def commit(self, batch: list[Finished], listed: list[NewUrl]) -> None:
        """Records looks, what waited, and URLs that sitemaps name, as one; durable unless it `is_waiting` then."""
        self._prepare(batch, listed)
        self._try()

    def _prepare(self, batch: list[Finished], listed: list[NewUrl]) -> None:
        """Decides what follows from finished looks; each is decided once, for deciding teaches sieve and policy."""
        self._kept += map(self._planner.planned, batch)
        found = [link for done in batch for link in self._links(done)] + listed
        fresh = self._selection.admitted(self._frontier.sift(found))
        self._met.update(link.url for link in found)
        if len(self._met) > _MET:
            self._met.clear()
        self._planned += self._decisions.schedules(fresh, self._archive.clock())

    def _links(self, done: Finished) -> list[NewUrl]:
        depth = done.ticket.depth
        if depth == 0 and not self._selection.scope.reaches(done.ticket.url):
            # A redirect that led here may be recorded by now, whoever followed it.
            self._selection = self._select()
        links = self._decisions.links(done.look, self._selection.links(done.look, depth, self._met), depth)
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
            self._kept, self._planned, self._kept_since = [], [], 0.0
            self._frontier.notice(hosts)

    def _record(self, batch: list[Planned]) -> list[int]:
        """Hosts that got URLs."""
        hosts: list[int] = []

        def extend(cursor: Cursor, recorded: list[Recorded]) -> None:
            if self._holding is not None:
                self._holding.check(cursor, (each.done.ticket for each in batch), self._now())
            with self._queue.inside(cursor):
                hosts.extend(self._follow(cursor, batch))

        self._visitor.record([each.done.look for each in batch], extend)
        return hosts

    def _follow(self, cursor: Cursor, batch: list[Planned]) -> list[int]:
        """What looks mean for their URLs, their hosts and the links they found; hosts that got URLs."""
        queues = self._archive.catalog.queues
        queues.finish(cursor, [each.plan for each in batch])
        if isinstance(self._policy, Optimal):
            queues.set_memory(cursor, self._policy.remember())
        latest = {each.done.host.id: each.done.host for each in batch}
        queues.set_hosts(cursor, [(*facts[1:], number) for number, facts in latest.items()])
        return self._queue.add(self._planned, self._now())

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
        if self._holding is None or now - self._kept_since > _PATIENCE_SECONDS:
            raise error
        self.retry_at = now + RETRY_SECONDS

    def _now(self) -> int:
        return to_millis(self._archive.clock())
