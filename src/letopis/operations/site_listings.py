"""What pages show about a site, computed from the graph of links: complete counts, limited rows.

The operations of `operations.links` answer the same questions with all rows. Every value here is self-contained: it
may be kept long after the graph it was computed from is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from heapq import nsmallest
from itertools import islice
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from letopis.archive import READ
from letopis.archive.activity import DAY, HOUR, ChangeRow, HourRow
from letopis.errors import NotFound, UsageError
from letopis.index.link_graph import Graph, GraphTimes, LinkSnapshot
from letopis.index.link_reports import BrokenRow, ReportRow, broken_link_numbers, broken_rows
from letopis.index.link_storage import Int32, Ints
from letopis.index.page_ranks import SiteDiagram, rank_site, site_diagram
from letopis.index.site_audit import AUDIT_ISSUES, AuditedPage, MarkupReader, audit_site
from letopis.index.site_events import EVENT_KINDS, SiteChanges, SiteDifference, SiteEvent, site_changes
from letopis.index.site_maps import MapOutline, MapPage, document_pages, edges_between, map_outline, map_page, site_map
from letopis.index.url_table import ERROR, GOOD, REDIRECT, UNKNOWN
from letopis.lazy import np
from letopis.model import to_millis
from letopis.operations.context import Context
from letopis.operations.indexes import current_graph, known_site
from letopis.operations.operation import Rows, operation
from letopis.operations.parameters import Parameters, parameter
from letopis.tuples import NamedTuple

MOST_LISTED = 2_000
"""Rows of one kind that a list keeps; whoever wants all of them asks for the data."""
MOST_RANKS = 500
_UNCHECKED = 100
"""Addresses without an answer that stand below a list of broken links."""
FRESH = 5.0
"""Seconds for which a graph is good enough for a page."""
MOST_NAMED = 8
"""Addresses that one finding names."""
_BITS = 24
"""Of the number of an hour since 1970, for the next thousand years."""

T = TypeVar("T")


class TimedGraph(NamedTuple):
    """The links of the archive, and when they changed."""

    graph: Graph
    moments: GraphTimes


_moments: WeakKeyDictionary[Graph, GraphTimes] = WeakKeyDictionary()


def timed_graph(context: Context) -> TimedGraph:
    """All links up to now; the times of one graph are worked out once."""
    graph = current_graph(context)
    if graph not in _moments:
        _moments[graph] = GraphTimes(graph)
    return TimedGraph(graph, _moments[graph])


ANSWER_KINDS = ("page", "file", "redirect", "error")
"""What stands at an address: a page for people, something else, the way to another address, or an error."""


def count_answers(graph: Graph, site: str, at: int) -> dict[str, int]:
    """How many addresses of a site answered with what at a time in milliseconds."""
    moment, wanted = graph.as_of(at, site), graph.of_site(site)
    live, pages = int((moment.live & wanted).sum()), len(document_pages(moment, wanted))
    rest = (int(((moment.kind == kind) & wanted).sum()) for kind in (REDIRECT, ERROR))
    return dict(zip(ANSWER_KINDS, (pages, live - pages, *rest), strict=True))


class UncheckedTarget(NamedTuple):
    """An address that was never checked, and a page that links to it."""

    url: str
    source: str


class LinkTargets(NamedTuple):
    """How many addresses the pages of a site link to, how many of them were never checked, and the first of those."""

    targets: int
    unchecked: int
    listed: tuple[UncheckedTarget, ...]


def count_targets(graph: Graph, site: str, at: int) -> LinkTargets:
    """What a list of broken links can know of: how far the targets of the links have been looked at."""
    moment = graph.as_of(at, site)
    ours = np.flatnonzero(graph.of_site(site)[moment.sources])
    targets, first = np.unique(moment.targets[ours], return_index=True)
    unchecked = moment.kind[moment.ends[targets]] == UNKNOWN
    pairs = zip(targets[unchecked], moment.sources[ours[first[unchecked]]], strict=True)
    listed = (UncheckedTarget(moment.url(target), moment.url(source)) for target, source in islice(pairs, _UNCHECKED))
    return LinkTargets(len(targets), int(unchecked.sum()), tuple(listed))


class SiteListing(NamedTuple, Generic[T]):
    """A limited number of rows of each kind, and the total number of each."""

    rows: dict[str, list[T]]
    counts: dict[str, int]

    def of(self, kind: str) -> list[T]:
        """The rows of a kind, or of all kinds in their order."""
        return self.rows.get(kind, []) if kind else [row for rows in self.rows.values() for row in rows]

    def total(self, kind: str) -> int:
        """How many there are, listed or not."""
        return self.counts.get(kind, 0) if kind else sum(self.counts.values())


class DrawnSite(NamedTuple):
    """The links between the highest pages of a site, and the titles of these pages."""

    diagram: SiteDiagram
    titles: dict[str, str]


class FindingRow(NamedTuple):
    """A finding with the first of its addresses; `others` counts the rest."""

    finding: str
    detail: str
    urls: tuple[str, ...]
    others: int


class ChangeActivity(NamedTuple):
    """Changes of the most active pages by day, of all pages by hour; `pages` and `changes` count all of them."""

    days: list[ChangeRow]
    hours: list[HourRow]
    pages: int
    changes: int


def upper_map(graph: Graph, site: str, at: int, depth: int, most: int) -> MapOutline:
    """The part of the map down to a depth, at most so many pages; of a deeper one nobody knows which pages it lacks."""
    found = site_map(graph, site, at, depth=depth)
    outline = map_outline(found, most)
    return outline if int(found.tree.depths[-1]) < depth else outline._replace(unreached=0)


def drawn_site(graph: Graph, site: str, at: int, drawn: int) -> DrawnSite:
    """The links between the pages of the highest rank."""
    moment = graph.as_of(at, site)
    diagram = site_diagram(moment, site, drawn, rank_site(moment, site))
    return DrawnSite(diagram, {url: _title(moment, url) for url in diagram.urls})


class PageFacts(NamedTuple):
    """A page within its site: clicks from the home page, null if it cannot be reached, internal links, its status,
    and its redirect target.
    """

    page: MapPage
    clicks: int | None
    links_in: int
    links_out: int
    answer: str
    leads_to: str


def page_facts(graph: Graph, site: str, at: int, urls: Iterable[str]) -> dict[str, PageFacts]:
    """What there is to say of some pages at a time; of those that nobody had looked at then nothing."""
    moment = graph.as_of(at, site)
    clicks, count = np.full(len(moment.kind), -1, np.int32), len(moment.kind)
    with suppress(NotFound):
        tree = site_map(graph, site, at).tree
        clicks[tree.pages] = tree.depths
    sources, ends = edges_between(moment, moment.live)
    pairs = np.unique((sources.astype(np.int64) * count + ends)[sources != ends])
    leading, linked = np.bincount(pairs // count, minlength=count), np.bincount(pairs % count, minlength=count)
    numbers = {url: graph.addresses.find(url) for url in urls}
    people = np.zeros(count, bool)
    people[document_pages(moment, graph.of_site(site))] = True
    answers = {GOOD: "file", ERROR: "error", REDIRECT: "redirect"}
    return {
        url: PageFacts(
            map_page(moment, number, 0), None if clicks[number] < 0 else int(clicks[number]), int(linked[number]),
            int(leading[number]), "page" if people[number] else answers[int(moment.kind[number])],
            moment.url(int(moment.redirect[number])) if moment.redirect[number] >= 0 else "",
        )
        for url, number in numbers.items()
        if number >= 0 and moment.kind[number] != UNKNOWN
    }  # fmt: skip


def _title(moment: LinkSnapshot, url: str) -> str:
    version = int(moment.version[moment.graph.addresses.find(url)])
    return moment.graph.segment.titles[version] if version >= 0 else ""


def events_listing(graph: Graph, site: str, since: int, at: int) -> SiteListing[SiteEvent]:
    """What happened between two dates."""
    found = SiteDifference(graph.as_of(since, site), graph.as_of(at, site), site)
    return SiteListing({event: found.rows(event, MOST_LISTED) for event in EVENT_KINDS}, found.counts())


def broken_listing(graph: Graph, site: str, at: int) -> SiteListing[BrokenRow]:
    """Links that lead to an error, all of one kind."""
    moment = graph.as_of(at, site)
    links = broken_link_numbers(moment, site)
    return SiteListing({"broken": list(broken_rows(moment, links[:MOST_LISTED]))}, {"broken": len(links)})


def findings_listing(rows: Iterable[ReportRow], kinds: Iterable[str]) -> SiteListing[FindingRow]:
    """What a webmaster may want to fix, of the rows of the report those of some kinds."""
    listing: SiteListing[FindingRow] = SiteListing({kind: [] for kind in kinds}, {})
    for finding, detail, urls in rows:
        if (listed := listing.rows.get(finding)) is None:
            continue
        listing.counts[finding] = listing.counts.get(finding, 0) + 1
        if len(listed) < MOST_LISTED:
            listed.append(FindingRow(finding, detail, urls[:MOST_NAMED], max(0, len(urls) - MOST_NAMED)))
    return listing


def click_depths(graph: Graph, site: str, at: int) -> list[tuple[int, int]]:
    """How many pages of a site are how many clicks from its home page."""
    return sorted(Counter(site_map(graph, site, at).tree.depths.tolist()).items())


def change_activity(graph: Graph, site: str, since: int, at: int, liveliest: int) -> ChangeActivity:
    """Changes by day and by hour between two times, without asking the catalogue for each page."""
    changes = site_changes(graph, site, since, at)
    pages, totals = np.unique(changes.pages, return_counts=True)
    warm = _warmest(graph, pages, totals, liveliest)
    days = [ChangeRow(graph.addresses[page], day, count) for page, day, count in _by(changes, DAY) if page in warm]
    hours = [HourRow(graph.addresses[page], hour % 24, count) for page, hour, count in _by(changes, HOUR)]
    return ChangeActivity(days, hours, len(pages), len(changes.times))


def _warmest(graph: Graph, pages: Int32, totals: Ints, most: int) -> set[int]:
    """The pages with the most changes, those with as many by address."""
    least = np.partition(totals, -most)[-most] if len(totals) > most else 0
    near = zip(pages[totals >= least].tolist(), totals[totals >= least].tolist(), strict=True)
    return {page for page, _ in nsmallest(most, near, lambda one: (-one[1], graph.addresses[one[0]]))}


def _by(changes: SiteChanges, span: int) -> Iterator[tuple[int, int, int]]:
    """Page, number of the span since 1970, and changes of the page in it."""
    found, counts = np.unique(changes.pages.astype(np.int64) << _BITS | changes.times // span, return_counts=True)
    return zip((found >> _BITS).tolist(), (found & (1 << _BITS) - 1).tolist(), counts.tolist(), strict=True)


class SiteAuditQuery(Parameters):
    """Of which site, when, and which issues."""

    site: str = parameter("A host, or the address of a page to start from.", argument=True)
    at: datetime | None = parameter("As of this time.", default=None, ends_day=True)
    issue: str | None = parameter(
        f"Only pages with this issue: {', '.join(AUDIT_ISSUES)}.", default=None, longest=40, metavar="ISSUE"
    )
    limit: int = parameter("Maximum number of pages to read.", default=5000, at_least=1, at_most=100_000)


@operation(
    "site_audit", right=READ, row_key=("url", "issues"), verb="map audit", route=("GET", "/map/audit"), step="audit",
    listed="pages", element="page", columns=("url", "status", "depth", "title", "issues"),
    about={"site": str, "at": datetime, "issues": dict[str, int], "pages": int, "indexable": int}, errors=(404,),
    examples=(
        "letopis map audit example.org",
        "letopis map audit example.org --issue title-missing --at 2024-01-31 --json",
    ),
)  # fmt: skip
def site_audit(context: Context, asked: SiteAuditQuery) -> Rows[AuditedPage]:
    """Audit a site: titles, descriptions, headings, canonical addresses, images, redirects, orphans of every page.

    Each page stands with its issues; beside the pages stands how many have each, and how many pages search engines
    may list. Pages are read as they were then.
    """
    if asked.issue is not None and asked.issue not in AUDIT_ISSUES:
        raise UsageError(f"'{asked.issue}' is not an issue; choose one of {', '.join(AUDIT_ISSUES)}")
    name, graph = known_site(context, asked.site)
    when = context.moment(asked.at)
    found = site_map(graph, asked.site, to_millis(when), errors=True)
    reader = MarkupReader(context.archive)
    rows = list(audit_site(reader, found, asked.limit, context.steps_of("pages")))
    about = {"site": name, "at": when, "issues": _issue_counts(rows), "indexable": sum(row.indexable for row in rows)}
    kept = rows if asked.issue is None else [row for row in rows if asked.issue in row.issues]
    return Rows(kept, {**about, "pages": len(rows)}, remark="" if kept else "no page has such an issue")


def _issue_counts(rows: Sequence[AuditedPage]) -> dict[str, int]:
    """How many pages have each issue, those that none has left out."""
    found = Counter(issue for row in rows for issue in row.issues)
    return {issue: found[issue] for issue in AUDIT_ISSUES if issue in found}


class AuditCounts(NamedTuple):
    """An audit in figures: its time, how many pages were read, how many have issues, and how many have each issue."""

    at: datetime
    pages: int
    faulty: int
    issues: dict[str, int]


def audit_history(context: Context, site: str, times: Iterable[datetime], most: int) -> list[AuditCounts]:
    """The audits of a site at some times in figures; at most so many pages are read, each version of them once."""
    _, graph = known_site(context, site)
    reader = MarkupReader(context.archive)
    found = []
    for when in times:
        rows = list(audit_site(reader, site_map(graph, site, to_millis(when), errors=True), most))
        faulty = sum(bool(row.issues) for row in rows)
        found.append(AuditCounts(when, len(rows), faulty, _issue_counts(rows)))
    return found
