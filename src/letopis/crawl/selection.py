"""Which URLs a crawl takes: its scope, the filters of its owner, seeds that moved, and stored plans.

There are five decision points: schedule, fetch, follow, store, revisit. A filter does not refuse what it cannot know
yet.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from letopis.archive import Archive
from letopis.archive.queues import (
    CrawlPlan,
    FrontierQueue,
    NewUrl,
    PlanSpending,
    crawl_plans,
    keeps_crawl_plans,
    visited_hosts,
)
from letopis.config import CrawlSettings
from letopis.errors import UsageError
from letopis.fetch import is_private_url
from letopis.frontier.filters import (
    CrawlFilter,
    CrawlFocus,
    FilterFacts,
    TrapDetector,
    focus_score,
    link_interest,
    parse_crawl_filter,
    poor_before,
)
from letopis.lazy import lazy
from letopis.model import LinkType, Observation, Page, header, to_millis
from letopis.urls import host as host_of
from letopis.urls import join, parse_user_url, url_key
from letopis.urls.rules import UrlRules, without_tracking
from letopis.urls.scope import Scope, ScopeKind, Scopes

if TYPE_CHECKING:
    from letopis.urls import rules as url_rules
else:
    url_rules = lazy("letopis.urls.rules")

_MAX_MOVES = 10


def may_follow_move(seed: str, target: str) -> bool:
    """A site of the internet that points into a house is not followed there, though one inside may point to another."""
    return not is_private_url(target) or is_private_url(seed)


def moved_seeds(archive: Archive, seeds: Iterable[str]) -> tuple[str, ...]:
    """Where redirects led from the seeds at their last visits; empty for those that stayed where they are."""
    return tuple(target for seed in seeds for target in _move_targets(archive, parse_user_url(seed)))


def _move_targets(archive: Archive, url: str) -> list[str]:
    found: list[str] = []
    for _ in range(_MAX_MOVES):
        target = _move_target(archive, url)
        if target is None or target in found or not may_follow_move(url, target):
            break
        found.append(target)
        url = target
    return found


def _move_target(archive: Archive, url: str) -> str | None:
    check = archive.answers.last_check(url)
    if check is None or not 300 <= check.status < 400:
        return None
    location = header(check.headers, "location")
    return join(url, location) if location else None


FOLLOWED_LINKS = frozenset(
    {LinkType.A, LinkType.AREA, LinkType.IFRAME, LinkType.REDIRECT, LinkType.FEED, LinkType.SITEMAP}
)


@dataclass(frozen=True, slots=True)
class CrawlSelection:
    """What a crawl wants: its scope, depth and rules of addresses. `max_depth` None means unlimited."""

    scope: Scope | Scopes
    max_depth: int | None = None
    rules: UrlRules = field(default_factory=UrlRules)
    drop_tracking: bool = True

    def address(self, url: str) -> str | None:
        """The address that is really asked for, or None when the rules ignore it."""
        clean = without_tracking(url) if self.drop_tracking else url
        if not self.rules.redirects and not self.rules.varlists:
            return clean
        verdict = self.rules.apply(clean)
        return None if verdict.ignored else verdict.url

    def allows(self, url: str, depth: int) -> bool:
        """Whether an address may be fetched at that distance from the seeds."""
        return (self.max_depth is None or depth <= self.max_depth) and self.scope.allows(url)

    def links(self, look: Observation, depth: int, met: Container[str] = ()) -> list[NewUrl]:
        """Candidates that a finished look brings, in document order, each address once.

        Most have been seen before, so whether they are wanted is asked later, of those that passed the sieve: see
        `admitted`. Their host is still empty. Addresses in `met` have passed it already and are left out.
        """
        found: dict[str, NewUrl] = {}
        location = redirect_of_look(look)
        if location:
            seed = look.response.url
            moves = depth == 0 and self.scope.reaches(seed) and may_follow_move(seed, location)
            self._take(found, location, depth, moves=moves)
        if look.page is not None and "nofollow" not in look.page.robots:
            self._take_links(found, look.page, depth, met)
        return list(found.values())

    def admitted(self, candidates: Iterable[NewUrl]) -> list[NewUrl]:
        """Those that may be fetched, with their hosts."""
        return [
            link if link.host else NewUrl(link.key, link.url, host_of(link.url), link.depth, link.priority)
            for link in candidates
            if link.host or self.allows(link.url, link.depth)
        ]

    def _take_links(self, found: dict[str, NewUrl], page: Page, depth: int, met: Container[str]) -> None:
        # By position, in half the time: most links were met before, and each page has dozens.
        for target, kind, _, rel, _ in page.links:
            if target not in met and kind in FOLLOWED_LINKS and "nofollow" not in rel:
                self._take(found, target, depth + 1)

    def _take(self, found: dict[str, NewUrl], target: str, depth: int, *, moves: bool = False) -> None:
        """With `moves` the target stands for a seed, and is admitted wherever it lies."""
        url = self.address(target)
        if url is not None and url not in found:
            found[url] = NewUrl(url_key(url), url, host_of(url) if moves and self.scope.chooses(url) else "", depth)


def redirect_of_look(look: Observation) -> str:
    """Where a recorded redirect points to; empty when the answer is none."""
    if look.page is None or not 300 <= look.response.status < 400:
        return ""
    return next((link.target for link in look.page.links if link.type is LinkType.REDIRECT), "")


_MAX_TEXT = 20_000


class CrawlDecisions:
    """The decisions of one crawl. Caches hosts and patterns, both limited; for one thread."""

    def __init__(self, settings: CrawlSettings) -> None:
        self._schedule = _parse_optional_filter(settings.schedule_if)
        self._fetch = _parse_optional_filter(settings.fetch_if)
        self._follow = _parse_optional_filter(settings.follow_if)
        self._store = _parse_optional_filter(settings.store_if)
        self._revisit = _parse_optional_filter(settings.revisit_if)
        keywords = tuple(word.lower() for word in settings.keywords)
        self._focus = CrawlFocus(keywords, frozenset(settings.languages)) if keywords or settings.languages else None
        self._order = settings.order
        self._traps = TrapDetector(settings.trap_depth, settings.trap_pages)
        self._max_hosts = settings.max_hosts
        self._hosts: set[str] = set()

    def schedules(self, found: Sequence[NewUrl], now: datetime) -> list[NewUrl]:
        """Which unseen URLs are planned."""
        return [url for url in found if self._plans(url, now.year)]

    def _plans(self, url: NewUrl, year: int) -> bool:
        if self._schedule is not None and not self._schedule.passes(_address_facts(url.url, url.host, url.depth)):
            return False
        return self._touches(url.host) and not self._traps.why(url.url, year)

    def _touches(self, host: str) -> bool:
        """Whether a host is one of those that may be asked at all; the first ones are, seeds before others."""
        if self._max_hosts and host not in self._hosts:
            if len(self._hosts) >= self._max_hosts:
                return False
            self._hosts.add(host)
        return True

    def refusing_setting(self, url: str, host: str, depth: int) -> str:
        """The name of the setting by which a planned URL is not asked for; empty when it is."""
        if not self._touches(host):
            return "crawl.max_hosts"
        allowed = self._fetch is None or self._fetch.passes(_address_facts(url, host, depth))
        return "" if allowed else "crawl.fetch_if"

    @property
    def ranks(self) -> bool:
        """Whether the pages come first for which links say most; a focus has an order of its own."""
        return self._order == "rank" and self._focus is None

    def stores(self, look: Observation, depth: int) -> bool:
        """Whether the content of a look is kept."""
        return self._store is None or self._store.passes(filter_facts(look, depth))

    def revisits(self, look: Observation, depth: int) -> bool:
        """Whether a page is visited again."""
        return self._revisit is None or self._revisit.passes(filter_facts(look, depth))

    def links(self, look: Observation, links: list[NewUrl], depth: int, priority: float = 0.0) -> list[NewUrl]:
        """The links of a page that are followed, in a focused crawl the promising ones first.

        `priority` is that of the page: it tells how many pages before it were poor.
        """
        if self._follow is not None and not self._follow.passes(filter_facts(look, depth)):
            return []
        focus = self._focus
        if self.ranks:
            return passed_on(links, priority)
        if focus is None or look.page is None or redirect_of_look(look):
            return links if focus is None else [link._replace(priority=priority) for link in links]
        value = focus_score(focus, look.page.title, look.page.text[:_MAX_TEXT], look.page.language)
        anchors = {link.target: link.text for link in look.page.links}
        poor = poor_before(priority)
        judged = [(link, link_interest(focus, value, poor, anchors.get(link.url, ""))) for link in links]
        return [link._replace(priority=interest.priority) for link, interest in judged if interest.follow]


_SEED_RANK = 1.0


def passed_on(links: Sequence[NewUrl], rank: float) -> list[NewUrl]:
    """The links of a page, each with an equal part of what the page itself was worth when it was visited.

    Added up over all pages that link to it, that is the rank of a page as far as the crawl knows the web by now.
    """
    share = (rank or _SEED_RANK) / max(1, len(links))
    return [link._replace(priority=share) for link in links]


def added_up(links: Iterable[NewUrl]) -> list[NewUrl]:
    """Each address once, with the priorities of all links to it together."""
    found: dict[int, NewUrl] = {}
    for link in links:
        before = found.get(link.key)
        found[link.key] = link if before is None else before._replace(priority=before.priority + link.priority)
    return list(found.values())


def reads_text(settings: CrawlSettings) -> bool:
    """Whether any decision of a crawl asks what stands on a page, not only where it leads."""
    asked = settings.follow_if + settings.store_if + settings.revisit_if
    return bool(settings.keywords or settings.languages) or "words" in asked or "lang" in asked


def _parse_optional_filter(expression: str) -> CrawlFilter | None:
    return parse_crawl_filter(expression) if expression else None


def _address_facts(url: str, host: str, depth: int) -> FilterFacts:
    path = "/" + url.partition("://")[2].partition("/")[2]
    return FilterFacts(url=url, host=host, path=path, depth=depth)


def filter_facts(look: Observation, depth: int) -> FilterFacts:
    """Everything a filter may ask of a finished look."""
    response, page = look.response, look.page
    host = response.url.partition("://")[2].partition("/")[0]
    known = _address_facts(response.url, host, depth)
    return known._replace(
        type=page.content_type if page else response.header("content-type").partition(";")[0],
        status=response.status,
        bytes=len(response.body),
        lang=page.language if page else None,
        words=page.text[:_MAX_TEXT] if page else None,
    )


_MAX_VISITED_HOSTS = 10_000


def plan_scopes(archive: Archive, plans: Iterable[CrawlPlan]) -> tuple[Scope, ...]:
    """The scopes of some crawls, those alike as one; where none was ever kept, the hosts that were visited.

    Plans that cannot be carried out have none: see `unusable_plans`.
    """
    seeds: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for plan in plans:
        if not _why_unusable(plan):
            own = seeds.setdefault((plan.scope, plan.include, plan.exclude), [])
            own += [*plan.seeds, *moved_seeds(archive, plan.seeds)]
    if not seeds and not keeps_crawl_plans(archive):
        visited = visited_hosts(archive, _MAX_VISITED_HOSTS)
        return (Scope(ScopeKind.HOST, tuple(f"http://{name}/" for name in visited)),)
    return tuple(Scope(ScopeKind(kind), tuple(own), *patterns) for (kind, *patterns), own in seeds.items())


def plan_rules(text: str) -> UrlRules:
    """The rules that a plan carries as XML; UsageError where they are none."""
    if not text:
        return UrlRules()
    rules = url_rules.rules_from_xml(text.encode())
    if not rules.redirects and not rules.varlists:
        raise UsageError("the rules are empty; write them inside <urltransform>...</urltransform>")
    return rules


class PlanLimits:
    """How much of each crawl may still be planned: a page counts for the first limited crawl that allows it and has
    room.

    What an unlimited crawl allows is not counted, and what none allows (images from elsewhere, a seed that moved) is
    left to others. Hosts to which a seed moved belong to the seed. For one thread.
    """

    def __init__(self, archive: Archive, plans: Sequence[CrawlPlan] | None) -> None:
        """`plans` None: nothing is gone on with, so no plan limits anything."""
        self._archive = archive
        self._goes_on, plans = plans is not None, plans or ()
        limited = [plan for plan in plans if plan.is_limited and not _why_unusable(plan)]
        self._free = plan_scopes(archive, [plan for plan in plans if not plan.is_limited]) if limited else ()
        self._plans = [_PlanRoom(plan, plan_scopes(archive, [plan])) for plan in limited]
        self._known = _as_asked(plans)

    @property
    def are_any(self) -> bool:
        """Whether any crawl is limited."""
        return bool(self._plans)

    def hold(self) -> bool:
        """False when crawls were asked for, changed or dropped since; else what other agents planned counts too."""
        if not self._goes_on:
            return True
        plans = crawl_plans(self._archive)
        for room in self._plans:
            room.refresh(plans)
        return _as_asked(plans) == self._known

    def admit(self, link: NewUrl) -> bool:
        """Whether a page may be planned."""
        return self._is_uncounted(link) or self._room_for(link) is not None

    def take(self, link: NewUrl) -> None:
        """The page is planned."""
        room = None if self._is_uncounted(link) else self._room_for(link)
        if room is not None:
            room.take(link.host)

    def is_used_up(self, url: str) -> bool:
        """Whether every crawl that allows a page has had its bytes or its time."""
        rooms = [room for room in self._plans if room.allows(url)]
        now = to_millis(self._archive.clock())
        return bool(rooms) and all(room.is_used_up(now) for room in rooms) and not self._is_free(url)

    def fetched(self, url: str, taken: int) -> None:
        """A page came, with so many bytes from the network."""
        room = None if self._is_free(url) else next((room for room in self._plans if room.allows(url)), None)
        if room is not None:
            room.taken += taken

    def spent(self) -> list[PlanSpending]:
        """What was taken and is not recorded yet."""
        return [room.spending() for room in self._plans if room.pages or room.taken]

    def recorded(self) -> None:
        """All that was taken is in the archive now."""
        for room in self._plans:
            room.record()

    def _is_uncounted(self, link: NewUrl) -> bool:
        return self._is_free(link.url) or not any(room.allows(link.url) for room in self._plans)

    def _is_free(self, url: str) -> bool:
        return any(scope.allows(url) for scope in self._free)

    def _room_for(self, link: NewUrl) -> _PlanRoom | None:
        now = to_millis(self._archive.clock())
        return next((room for room in self._plans if room.allows(link.url) and room.has_room(link.host, now)), None)


class _PlanRoom:
    """What is left of one limited crawl."""

    def __init__(self, plan: CrawlPlan, scopes: tuple[Scope, ...]) -> None:
        self._plan = plan
        self._scopes = scopes
        self._free_hosts = {host_of(seed) for scope in scopes for seed in scope.seeds}
        self._new_hosts: list[str] = []
        self.pages = self.taken = 0

    def allows(self, url: str) -> bool:
        return any(scope.allows(url) for scope in self._scopes)

    def is_used_up(self, now: int) -> bool:
        plan = self._plan
        if plan.until is not None and now >= plan.until:
            return True
        return plan.max_bytes is not None and plan.taken + self.taken >= plan.max_bytes

    def has_room(self, host: str, now: int) -> bool:
        plan = self._plan
        if self.is_used_up(now) or (plan.limit is not None and plan.planned + self.pages >= plan.limit):
            return False
        most = plan.max_hosts
        return most is None or self._is_met(host) or len(plan.hosts) + len(self._new_hosts) < most

    def take(self, host: str) -> None:
        self.pages += 1
        if self._plan.max_hosts is not None and not self._is_met(host):
            self._new_hosts.append(host)

    def _is_met(self, host: str) -> bool:
        return host in self._plan.hosts or host in self._free_hosts or host in self._new_hosts

    def refresh(self, plans: Iterable[CrawlPlan]) -> None:
        own = self._plan
        self._plan = next((plan for plan in plans if (plan.seeds, plan.origin) == (own.seeds, own.origin)), own)

    def spending(self) -> PlanSpending:
        return PlanSpending(self._plan.seeds, self._plan.origin, self.pages, tuple(self._new_hosts), self.taken)

    def record(self) -> None:
        hosts = (*self._plan.hosts, *self._new_hosts)
        planned, taken = self._plan.planned + self.pages, self._plan.taken + self.taken
        self._plan = self._plan._replace(planned=planned, hosts=hosts, taken=taken)
        self.pages, self.taken, self._new_hosts = 0, 0, []


def _as_asked(plans: Iterable[CrawlPlan]) -> list[CrawlPlan]:
    """Without what was planned of them since."""
    return [plan._replace(planned=0, hosts=(), taken=0) for plan in plans]


_REACH_SECONDS = 5.0


class PrivateReach:
    """Which URLs of the queue may be on private addresses, if the command line of the owner may request such addresses.

    In an archive that only its owner crawls: all. In one that also has crawls planned through HTTP: those that a crawl
    of the owner reaches, whoever planned them; for an unlimited crawl, the hosts of its seeds.
    """

    def __init__(self, archive: Archive, queue: FrontierQueue) -> None:
        self._archive = archive
        self._queue = queue
        self._read = -_REACH_SECONDS
        self._scopes: tuple[Scope, ...] = ()

    def allows(self, url: str) -> bool:
        """Whether a URL that the queue gave out may be asked wherever it lies."""
        if not self._queue.for_others or self._archive.settings.fetch.private == "always":
            return True
        return any(scope.reaches(url) for scope in self._own_scopes())

    def _own_scopes(self) -> tuple[Scope, ...]:
        if time.monotonic() - self._read >= _REACH_SECONDS:
            own = [plan for plan in crawl_plans(self._archive) if plan.origin == "cli"]
            bounded = [plan._replace(scope=ScopeKind.HOST) if plan.scope == ScopeKind.ANY else plan for plan in own]
            self._scopes, self._read = plan_scopes(self._archive, bounded), time.monotonic()
        return self._scopes


def unusable_plans(archive: Archive) -> list[str]:
    """Sentences about kept crawls that cannot be carried out, as those of earlier releases may be; others go on."""
    return [
        f"the crawl of {' '.join(plan.seeds)} is left out: {why}; crawl it again with other patterns"
        for plan in crawl_plans(archive)
        if (why := _why_unusable(plan))
    ]


def _why_unusable(plan: CrawlPlan) -> str:
    """Empty for a plan that can be carried out."""
    try:
        Scope(ScopeKind(plan.scope), plan.seeds, plan.include, plan.exclude)
        plan_rules(plan.rules)
    except (UsageError, ValueError) as error:
        return str(error)
    return ""
