"""Questions about links, as of any date: maps of sites and their changes, links, broken links, ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from letopis.archive import OWN, READ, WRITE, Archive
from letopis.archive.cluster import cluster_client, tasks_at_once
from letopis.archive.verdicts import first_texts, verdict_between
from letopis.errors import LetopisError, Refused
from letopis.index.link_graph import LinkSnapshot
from letopis.index.link_reports import BrokenRow, LinkRow, RankRow, ReportRow, broken_links, links_for, rank_rows
from letopis.index.link_reports import site_report as report_of
from letopis.index.map_formats import MAP_FORMATS, sitemap_files
from letopis.index.page_places import PageSources, missing_places, with_places
from letopis.index.page_ranks import DAMPING, PageRanks, cluster_flow, rank_site, save_ranks
from letopis.index.site_events import SiteEvent, site_difference
from letopis.index.site_maps import SiteMap
from letopis.index.site_maps import site_map as map_of
from letopis.index.url_table import UNKNOWN
from letopis.lazy import lazy, np
from letopis.model import Change, to_millis
from letopis.model.printing import counted
from letopis.monitor.checker import CheckOptions
from letopis.operations.checks import check_pages
from letopis.operations.context import Context
from letopis.operations.indexes import current_graph, known_site
from letopis.operations.operation import Document, Rows, operation
from letopis.operations.parameters import CLI_ONLY, NOT_CLI, NOT_HTTP, Parameters, parameter
from letopis.urls import parse_user_url, site

if TYPE_CHECKING:
    from letopis.jobs import xslt
else:
    xslt = lazy("letopis.jobs.xslt")  # a map seldom needs a stylesheet

MapForm = Literal["text", "html", "json", "xml", "sitemap", "dot", "svg", "snippet"]
_MAP_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox allow-top-navigation"
}
_AT = "As of this time; default: now."
_SITE = "A host (host[:port]) or an address."
MAX_DEPTH = 1_000_000
MAX_RANKS = 10_000
MAX_CHECKED = 10_000
"""Addresses that one question has checked."""


class SiteMapQuery(Parameters):
    """Which map, and in which form."""

    site: str = parameter(_SITE, argument=True)
    at: datetime | None = parameter(_AT, default=None, ends_day=True)
    depth: int | None = parameter("Levels below the home page.", default=None, at_least=0, at_most=MAX_DEPTH)
    format: MapForm | None = parameter("Output format; default: text.", default=None)
    all: bool = parameter("Show pages that answer with an error too.", default=False)
    xslt: str | None = parameter("XSLT stylesheet to apply to the XML.", default=None, metavar="FILE", doors=CLI_ONLY)


@operation(
    "map", right=READ, verb="map", route=("GET", "/map"), step="map", on_cluster=True, errors=(404,),
    examples=(
        "letopis map example.org",
        "letopis map example.org --at 2024-01-31 --format html > map.html",
        "letopis map example.org --format sitemap -o sitemap.xml",
        "letopis map example.org --xslt mine.xsl",
        "letopis map example.org --cluster tcp://scheduler.example:8786",
        "letopis map diff example.org 2024-01-01 2024-02-01",
    ),
    tool=True,
)  # fmt: skip
def site_map(context: Context, asked: SiteMapQuery) -> Document:
    """Show the hierarchical map of a site as of any date.

    A page hangs under the first page, breadth first from the home page, that links to it.
    """
    form = "xml" if asked.xslt else asked.format or context.form
    depth = MAP_FORMATS[form].depth if asked.depth is None else asked.depth
    found = site_map_value(context, asked, depth)
    if depth is None and (beside := len(found.unreached())):
        pages = counted(beside, "further page")
        context.progress.remark(f"no page of the map leads to {pages} of the site: 'letopis map report {found.site}'")
    if asked.xslt:
        data = "".join(MAP_FORMATS[form].write(found)).encode("utf-8", "replace")
        return Document([xslt.run_xslt(data, Path(asked.xslt).read_bytes())], "application/xml")
    files = (lambda name: _files(found, name)) if form == "sitemap" else None
    return Document(MAP_FORMATS[form].write(found), MAP_FORMATS[form].media_type, _MAP_HEADERS, files)


def site_map_value(context: Context, asked: SiteMapQuery, depth: int | None) -> SiteMap:
    """The map itself, for pages that lay it out."""
    graph = known_site(context, asked.site)[1]
    return map_of(graph, asked.site, to_millis(context.moment(asked.at)), depth=depth, errors=asked.all)


def _files(found: SiteMap, name: str) -> Iterator[tuple[str, bytes]]:
    """A sitemap that is too long for one file."""
    for file in sitemap_files(found, name):
        yield file.name, file.text.encode()


class SiteReportQuery(Parameters):
    """Of which site, and when."""

    site: str = parameter(_SITE, argument=True)
    at: datetime | None = parameter(_AT, default=None, ends_day=True)


@operation(
    "report", right=READ, row_key=("finding", "detail", "urls"), verb="map report", route=("GET", "/map/report"),
    step="report", listed="findings", element="finding", columns=("finding", "detail", "urls"),
    about={"site": str, "at": datetime}, errors=(404,),
    examples=("letopis map report example.org", "letopis map report example.org --at 2024-01-31 --json"),
)  # fmt: skip
def site_report(context: Context, asked: SiteReportQuery) -> Rows[ReportRow]:
    """List orphans, redirect chains, duplicate titles and depths of a site."""
    when = context.moment(asked.at)
    found = map_of(known_site(context, asked.site)[1], asked.site, to_millis(when))
    return Rows(report_of(found), {"site": site(asked.site), "at": when})


class SiteEventsQuery(Parameters):
    """Between which two times, in either order."""

    site: str = parameter(_SITE, argument=True)
    start: datetime = parameter("One of the two times.", named="from", argument=True, metavar="T1")
    to: datetime | None = parameter(
        "The other time; default: now.", default=None, argument=True, metavar="T2", ends_day=True
    )
    texts: bool = parameter("For changed pages, the first removed and added text between the two times.", default=False)


@operation(
    "mapdiff", right=READ, row_key=("event", "url", "to"), verb="map diff", route=("GET", "/map/diff"), step="mapdiff",
    listed="events", element="event", columns=("event", "url", "title", "to", "before", "parent"),
    about={"site": str, "from": datetime, "to": datetime}, errors=(404,),
    examples=("letopis map diff example.org 2024-01-01 2024-02-01",), tool=True,
)  # fmt: skip
def site_events(context: Context, asked: SiteEventsQuery) -> Rows[SiteEvent]:
    """List what appeared, vanished, moved, broke or changed on a site between two times."""
    name, graph = known_site(context, asked.site)
    first, last = sorted((asked.start, context.moment(asked.to)))
    rows = site_difference(graph, name, to_millis(first), to_millis(last))
    shown = with_changed_texts(context.archive, rows, first, last) if asked.texts else rows
    return Rows(shown, {"site": name, "from": first, "to": last})


def with_changed_texts(
    archive: Archive, events: Iterable[SiteEvent], first: datetime, last: datetime
) -> Iterator[SiteEvent]:
    """The events with the texts that went and came on pages that changed: what a comparison of both times shows."""
    for event in events:
        change = change_of_event(archive, event, first, last)
        yield event._replace(**first_texts(change)._asdict(), verdict=change.verdict) if change else event


def change_of_event(archive: Archive, event: SiteEvent, first: datetime, last: datetime) -> Change | None:
    """What is said of both versions of a page that changed; None where one is not here or had another address."""
    if event.event not in ("changed", "renamed"):
        return None
    try:
        return verdict_between(archive, archive.get(event.url, at=first), archive.get(event.url, at=last))
    except LetopisError:
        return None


class LinksQuery(Parameters):
    """Whose links, and in which direction."""

    url: str = parameter("A page, or a host for all links of its pages.", argument=True, metavar="URL|SITE")
    direction: Literal["out", "in"] = parameter("Outgoing or incoming links.", default="out", doors=NOT_CLI)
    inward: bool = parameter("Incoming links.", default=False, flags=("--in",), doors=CLI_ONLY)
    outward: bool = parameter("Outgoing links (the default).", default=False, flags=("--out",), doors=CLI_ONLY)
    at: datetime | None = parameter(_AT, default=None, ends_day=True)


@operation(
    "links", right=READ, row_key=("source", "target", "type"), verb="links", route=("GET", "/links"), step="links",
    element="link", columns=("source", "target", "type", "text"), about={"url": str, "direction": str, "at": datetime},
    errors=(404,),
    examples=(
        "letopis links https://example.org/",
        "letopis links https://example.org/ --in --at 2024-01-31 --json",
        "letopis links example.org",
    ),
    tool=True,
)  # fmt: skip
def links(context: Context, asked: LinksQuery) -> Rows[LinkRow]:
    """List the links of a page, the links to it, or all links of a site."""
    when = context.moment(asked.at)
    inward = asked.inward or asked.direction == "in"
    of_site = "/" not in asked.url and not inward
    graph = known_site(context, asked.url)[1] if of_site else current_graph(context)
    rows = links_for(graph, asked.url, to_millis(when), inward=inward, outward=asked.outward or not inward)
    return Rows(rows, {"url": asked.url, "direction": "in" if inward else "out", "at": when})


class LinksToQuery(Parameters):
    """To which page, and when."""

    url: str = parameter("Address of the page.")
    at: datetime | None = parameter(_AT, default=None, ends_day=True)


@operation(
    "links_in", right=READ, route=("GET", "/links/in"), listed="links", about={"url": str, "at": datetime},
    errors=(404,),
)  # fmt: skip
def links_to(context: Context, asked: LinksToQuery) -> Rows[LinkRow]:
    """List the links that lead to a page, and the addresses that redirect to it."""
    when, url = context.moment(asked.at), parse_user_url(asked.url)
    return Rows(links_for(current_graph(context), url, to_millis(when), inward=True), {"url": url, "at": when})


class BrokenLinksQuery(Parameters):
    """Of which site, and when."""

    site: str = parameter(_SITE, argument=True)
    at: datetime | None = parameter(_AT, default=None, ends_day=True)
    fragments: bool = parameter("List links to missing fragments too.", default=False)
    check: Literal["site", "all"] | None = parameter(
        "First check linked pages that were never checked: on the site, or on other hosts too.",
        default=None,
        doors=NOT_HTTP,
    )


@operation(
    "broken", right=READ, row_key=("source", "target"), verb="broken", route=("GET", "/broken"), step="broken",
    element="link", columns=("source", "target", "status", "since", "text", "last_good"),
    about={"site": str, "at": datetime}, errors=(404,),
    examples=(
        "letopis broken example.org",
        "letopis broken example.org --at 2024-01-31 --json",
        "letopis broken example.org --fragments --check all",
    ),
    tool=True,
)  # fmt: skip
def broken(context: Context, asked: BrokenLinksQuery) -> Rows[BrokenRow]:
    """List the broken links of a site: on which page, since when, and when the target last answered.

    Over HTTP a run of the kind `broken` checks first what was never checked.
    """
    name, graph = known_site(context, asked.site)
    if asked.check:
        _check_unknown(context, graph.as_of(to_millis(context.moment(None)), name), name, asked.check == "all")
        graph = current_graph(context)
    when = context.moment(asked.at)
    moment, sources = graph.as_of(to_millis(when), name), PageSources(context.archive, when)
    rows = with_places(broken_links(moment, name), sources)
    more = missing_places(moment, name, sources) if asked.fragments else ()
    return Rows(chain(rows, more), {"site": name, "at": when})


def _check_unknown(context: Context, moment: LinkSnapshot, name: str, everywhere: bool) -> None:
    """Looks at linked addresses that no crawl came to: behind nofollow, in forms and objects, on other hosts."""
    if not context.may(WRITE):
        raise Refused("checking links needs the right to write; ask an owner of this archive")
    targets = np.unique(moment.targets[moment.graph.of_site(name)[moment.sources]])
    unknown = targets[moment.kind[targets] == UNKNOWN]
    if not everywhere:
        unknown = unknown[moment.graph.of_site(name)[unknown]]
    if len(unknown) > MAX_CHECKED:
        context.progress.remark(
            f"{len(unknown)} linked addresses were never checked; {MAX_CHECKED} of them are now, ask again for more"
        )
    options = CheckOptions(uid="", head=True, private_ok=context.private_ok)
    check_pages(context, [moment.url(number) for number in unknown[:MAX_CHECKED]], options)


class RankQuery(Parameters):
    """Which pages to rank, and how many to show."""

    site: str | None = parameter("A host (host[:port]) or an address; default: all pages.", default=None, argument=True)
    top: int = parameter("Only the N highest.", default=1000, at_least=1, at_most=MAX_RANKS)
    external: bool = parameter("Rank linked addresses on other hosts too.", default=False)
    at: datetime | None = parameter(_AT, default=None, ends_day=True)
    coefficient: float = parameter("Damping of PageRank.", default=DAMPING, at_least=0.01, at_most=0.99)


@operation(
    "rank", right=READ, verb="rank", route=("GET", "/rank"), step="pagerank", element="page", columns=("rank", "url"),
    on_cluster=True, about={"coefficient": float, "site": str | None, "at": datetime}, errors=(404,),
    examples=(
        "letopis rank example.org --top 20",
        "letopis rank --at 2024-01-31",
        "letopis rank example.org --external",
    ),
)  # fmt: skip
def rank(context: Context, asked: RankQuery) -> Rows[RankRow]:
    """Rank pages by the links between them (PageRank, 0.85, mean about 1).

    The ranks of all pages as of now are kept: search puts well-linked pages first with them.
    """
    name, graph = known_site(context, asked.site) if asked.site else (None, current_graph(context))
    when = context.moment(asked.at)
    moment = graph.as_of(to_millis(when), name)
    ranked = _ranked(context, moment, name, asked)
    if name is None and asked.at is None and not asked.external and context.rights & OWN:
        with context.reading_on(lambda: True):
            save_ranks(context.archive, moment, ranked)
    about = {"coefficient": asked.coefficient, "site": name, "at": when}
    return Rows(rank_rows(moment, ranked, asked.top), about)


def _ranked(context: Context, moment: LinkSnapshot, name: str | None, asked: RankQuery) -> PageRanks:
    """Here, or with the links spread over a cluster."""
    address = context.archive.settings.cluster.address
    if not address:
        return rank_site(moment, name, external=asked.external, damping=asked.coefficient)
    with cluster_client(address) as client:
        flow = cluster_flow(client, tasks_at_once(client))
        return rank_site(moment, name, external=asked.external, damping=asked.coefficient, make_flow=flow)
