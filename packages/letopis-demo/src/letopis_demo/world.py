"""The simulated web as a whole: a pure function of a seed, an address and a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal

from letopis.errors import UnknownUrl, UsageError
from letopis.model import Headers, from_millis, to_millis
from letopis.tuples import NamedTuple
from letopis_demo.pages import chain_of, reference_word, render_page, title_of
from letopis_demo.plans import PagePlan, WorldShape, last_modified, plan_of, state_of, steady_until
from letopis_demo.resources import (
    DemoResponse,
    HostMoment,
    TimedResponse,
    conditional_response,
    html_response,
    http_time,
    redirect_response,
    resource_at,
    sentence_response,
)
from letopis_demo.sites import SiteKind, kind_of, mirrored_host, page_at, page_path
from letopis_demo.streams import NEVER, draw_bits, moments

START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)

EventKind = Literal["appeared", "vanished", "moved", "renamed", "changed"]
FactKind = Literal["broken", "chain", "twin", "mirror", "aba", "noise", "disallowed"]


class WorldEvent(NamedTuple):
    """Something that happens to a page at a known time; `detail` is its new address or title."""

    at: datetime
    kind: EventKind
    url: str
    detail: str = ""


class WorldFact(NamedTuple):
    """Something that is so all the time; `detail` is the address it is about, or the kind of noise."""

    kind: FactKind
    url: str
    detail: str


class World:
    """A reproducible web with a known history.

    Everything is computed when asked for: the size of a world costs no
    memory. Two worlds with the same arguments answer byte for byte the same.
    """

    def __init__(
        self,
        seed: int = 1,
        hosts: int = 7,
        pages_per_host: int = 60,
        start: datetime = START,
        *,
        span: timedelta = timedelta(days=30),
        pace: float = 1.0,
        article_every: timedelta = timedelta(hours=1),
        crawl_delay: float = 1.0,
        noisy: float = 0.1,
        bulk: float = 1.0,
        authorities: tuple[str, ...] = (),
    ) -> None:
        if hosts < 1 or pages_per_host < 1 or pace <= 0 or start.tzinfo is None:
            raise UsageError("a world needs one host, one page a host, a pace above 0 and a start with a time zone")
        gap = max(5, int(article_every.total_seconds() * 1000 / pace))
        span_millis = int(span.total_seconds() * 1000)
        self.shape = WorldShape(
            seed, hosts, pages_per_host, to_millis(start), span_millis, pace, gap, crawl_delay, noisy, bulk
        )
        self.authorities = authorities or tuple(f"{kind_of(host).name}{host}.example" for host in range(hosts))
        if len(self.authorities) != hosts:
            raise UsageError(f"a world of {hosts} hosts needs {hosts} addresses, not {len(self.authorities)}")
        self._numbers = {authority: host for host, authority in enumerate(self.authorities)}

    def at(self, authorities: tuple[str, ...]) -> World:
        """The same world under other addresses (`host` or `host:port`, one a host)."""
        other = World(hosts=self.shape.hosts, authorities=authorities)
        other.shape = self.shape
        return other

    @property
    def start(self) -> datetime:
        """When the history begins."""
        return from_millis(self.shape.start)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The authorities of all hosts."""
        return self.authorities

    def number(self, host: str) -> int | None:
        """The number of the host with that authority; None when it is not of this world."""
        return self._numbers.get(host)

    def kind(self, host: str) -> SiteKind:
        """What kind of site a host is."""
        return kind_of(self._host(host))

    def url(self, host: int, page: int, moved: bool = False) -> str:
        """The address of a page; `moved` gives the one after its move."""
        return f"http://{self.authorities[host]}{page_path(kind_of(host), page, moved)}"

    def seeds(self) -> list[str]:
        """The home pages of all hosts."""
        return [self.url(host, 0) for host in range(self.shape.hosts)]

    def urls(self, host: str) -> Iterator[str]:
        """The first address of every page that a host ever has, in the order of their numbers."""
        number = self._host(host)
        return (self.url(number, page) for page in range(self.shape.pages))

    def plan(self, url: str) -> PagePlan:
        """All that is planted on the page with that address."""
        return self._locate(url)[0]

    def title(self, url: str, at: datetime) -> str:
        """The title (as in its main heading) of a page."""
        plan, _ = self._locate(url)
        return title_of(self.shape, plan.host, plan.page, plan.renamed <= to_millis(at))

    def reference(self, url: str) -> str:
        """A word that stands on this page and, mirrors aside, on no other."""
        plan, _ = self._locate(url)
        return reference_word(plan.host, plan.page)

    def versions(self, url: str, until: datetime) -> list[datetime]:
        """When the address began to show the page and each meaningful change up to `until`. Noise does not count."""
        plan, moved = self._locate(url)
        begin, end = (plan.moves, plan.dies) if moved else (plan.born, min(plan.dies, plan.moves))
        last = min(to_millis(until), end - 1)
        if begin > last:
            return []
        return [from_millis(moment) for moment in (begin, *moments(plan.streams, begin, last))]

    def body(self, url: str, at: datetime) -> bytes:
        """The bytes that a GET of that address gives at that time, whatever the status."""
        authority, address = self._split(url)
        return self.answer(authority, address, (), at).body

    def answer(self, host: str, path: str, headers: Headers | Mapping[str, str], at: datetime) -> DemoResponse:
        """What the host says to a GET of a path (with its query) at a time."""
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        held = self.held(self._host(host), path, to_millis(at))
        return conditional_response(held, {name.lower(): value for name, value in pairs})

    def held(self, host: int, address: str, at: int) -> TimedResponse:
        """The answer to an unconditional GET and how long it stands; the time in milliseconds."""
        place = HostMoment(self.shape, host, f"http://{self.authorities[host]}", at)
        found = page_at(kind_of(host), address)
        if found and found[0] < self.shape.pages:
            return self._page(plan_of(self.shape, mirrored_host(host), found[0]), found[1], at)
        return resource_at(place, address) or TimedResponse(sentence_response(404, "There is no such page."))

    def _page(self, plan: PagePlan, moved: bool, at: int) -> TimedResponse:
        until = steady_until(plan, at)
        if at < plan.born or (moved and at < plan.moves):
            return TimedResponse(sentence_response(404, "There is no such page."), until)
        if at >= plan.dies:
            return TimedResponse(sentence_response(410 if plan.page % 2 else 404, "This page is gone."), until)
        if plan.moves <= at and not moved:
            return TimedResponse(redirect_response(301, page_path(kind_of(plan.host), plan.page, True)), until)
        state = state_of(plan, at)
        headers: list[tuple[str, str]] = []
        if plan.etag:
            headers.append(("ETag", f'"{draw_bits(plan.page, repr(state)):016x}"'))
        if plan.dating != "none":
            dates = {"honest": last_modified(plan, at), "now": at, "frozen": self.shape.start}
            headers.append(("Last-Modified", http_time(dates[plan.dating])))
        if plan.dating == "now":
            until = min(until, (at // 1000 + 1) * 1000)
        body = render_page(self.shape, plan, state, self.authorities)
        return TimedResponse(
            html_response(200, body, kind_of(plan.host).charset, tuple(headers)), until, plan.dating == "honest"
        )

    def events(self, after: datetime, until: datetime, kinds: tuple[EventKind, ...] | None = None) -> list[WorldEvent]:
        """What happens in (after, until] on all hosts, in order of time; `kinds` narrows it."""
        begin, end = to_millis(after), to_millis(until)
        found = [
            event
            for host in range(self.shape.hosts)
            for page in range(self.shape.pages)
            for event in self._happenings(host, plan_of(self.shape, mirrored_host(host), page), begin, end)
            if kinds is None or event.kind in kinds
        ]
        return sorted(found)

    def _happenings(self, host: int, plan: PagePlan, begin: int, end: int) -> Iterator[WorldEvent]:
        url, new = self.url(host, plan.page), self.url(host, plan.page, True)
        name = title_of(self.shape, plan.host, plan.page, True)
        single: tuple[tuple[int, EventKind, str], ...] = (
            (plan.born if plan.born > self.shape.start else NEVER, "appeared", ""),
            (plan.dies, "vanished", ""),
            (plan.moves, "moved", new),
            (plan.renamed, "renamed", name),
        )
        for moment, kind, detail in single:
            if begin < moment <= end:
                yield WorldEvent(from_millis(moment), kind, url, detail)
        for moment in moments(plan.streams, max(begin, plan.born), min(end, plan.dies - 1)):
            if moment != plan.renamed:
                yield WorldEvent(from_millis(moment), "changed", new if plan.moves <= moment else url)

    def facts(self, host: str) -> Iterator[WorldFact]:
        """What is planted on a host for good: broken links, redirect chains, twins, mirrors, noise."""
        number = self._host(host)
        base = f"http://{host}"
        yield WorldFact("disallowed", f"{base}/private/notes.html", f"{base}/robots.txt")
        if mirrored_host(number) != number:
            yield WorldFact("mirror", f"{base}/", self.url(mirrored_host(number), 0))
        for page in range(self.shape.pages):
            yield from self._planted(base, number, plan_of(self.shape, mirrored_host(number), page))

    def _planted(self, base: str, host: int, plan: PagePlan) -> Iterator[WorldFact]:
        url = self.url(host, plan.page)
        if plan.broken:
            yield WorldFact("broken", url, f"{base}/missing/{plan.page}.html")
        if plan.chain:
            yield WorldFact("chain", url, base + chain_of(self.shape, plan))
        if plan.role == "twin":
            yield WorldFact("twin", url, self.url(host, plan.content))
        if plan.flip:
            yield WorldFact("aba", url, f"{plan.flip.period / 1000:g}s")
        if plan.noise:
            yield WorldFact("noise", url, plan.noise)

    def _host(self, host: str) -> int:
        number = self._numbers.get(host)
        if number is None:
            raise UnknownUrl(f"'{host}' is not a host of this world; see `hosts`")
        return number

    def _split(self, url: str) -> tuple[str, str]:
        authority, slash, rest = url.removeprefix("http://").partition("/")
        return authority, (slash or "/") + rest

    def _locate(self, url: str) -> tuple[PagePlan, bool]:
        authority, address = self._split(url)
        host = self._host(authority)
        found = page_at(kind_of(host), address)
        if found is None or found[0] >= self.shape.pages:
            raise UnknownUrl(f"'{url}' is not a page of this world; see `urls`")
        return plan_of(self.shape, mirrored_host(host), found[0]), found[1]
