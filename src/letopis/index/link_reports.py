"""Links of a page, links to it, broken links, and what a webmaster wants to know about a site besides its map: orphans,
redirect chains, duplicates, depths.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from datetime import datetime

from letopis.errors import UnknownUrl, check_remedy
from letopis.index.link_graph import MAX_REDIRECTS, Graph, LinkSnapshot
from letopis.index.link_storage import Int32, Ints
from letopis.index.page_ranks import PageRanks
from letopis.index.site_maps import SiteMap, document_pages, edges_between
from letopis.index.url_table import ERROR, IGNORED, NEVER, REDIRECT, UNKNOWN
from letopis.lazy import np
from letopis.model import from_millis
from letopis.tuples import NamedTuple
from letopis.urls import parse_user_url
from letopis.urls import site as site_of


class LinkRow(NamedTuple):
    """One link; redirects have the type `redirect` and no text.

    `status` is how its target answers in the end, 0 without an answer, null where nobody looked.
    """

    source: str
    target: str
    type: str
    text: str
    rel: str = ""
    title: str = ""
    status: int | None = None


class BrokenRow(NamedTuple):
    """A link to an address that answers with an error; status 0 when there was no answer at all.

    `since` is the first failed check in a row, `last_good` the last good one before it. `final` is the address that
    fails, where redirects lead there. `line` and `column` say where the link stands in the source, from 1 on; 0 where
    nobody looked. A link of type `fragment` leads to a page that has no such place.
    """

    source: str
    target: str
    status: int
    since: datetime | None
    text: str
    last_good: datetime | None
    type: str = "a"
    final: str = ""
    line: int = 0
    column: int = 0


class RankRow(NamedTuple):
    """A page and its rank."""

    url: str
    rank: float


def url_number(graph: Graph, url: str) -> int:
    """The number of an address; UnknownUrl when no page ever was there or linked to it."""
    number = graph.addresses.find(url)
    if number < 0:
        raise UnknownUrl(f"{url} was never archived or linked to", check_remedy(url))
    return number


def links_out(moment: LinkSnapshot, url: str) -> list[LinkRow]:
    """The links of a page in document order; of an address that redirects, where it leads."""
    number = url_number(moment.graph, url)
    place = int(np.searchsorted(moment.pages, number))
    rows = _redirect_rows(moment, np.array([number]))
    if place < len(moment.pages) and moment.pages[place] == number:
        rows += _link_rows(moment, _without_ignored(moment, np.arange(moment.bounds[place], moment.bounds[place + 1])))
    return rows


def links_in(moment: LinkSnapshot, url: str) -> list[LinkRow]:
    """The links to an address, by page, and the addresses that redirect to it; none to one that rules ignore."""
    number = url_number(moment.graph, url)
    redirecting = np.flatnonzero((moment.redirect == number) & (moment.kind == REDIRECT))
    links = _without_ignored(moment, np.flatnonzero(moment.targets == number))
    return _link_rows(moment, links) + _redirect_rows(moment, redirecting)


def _without_ignored(moment: LinkSnapshot, links: Ints) -> Ints:
    """Those of some links whose targets no rule ignores."""
    ruled = moment.graph.ruled
    if ruled is None:
        return links
    ignored = ruled.urls[ruled.targets == IGNORED]
    found: Ints = links[~np.isin(moment.targets[links], ignored)]
    return found


def links_for(graph: Graph, what: str, time: int, *, inward: bool = False, outward: bool = False) -> list[LinkRow]:
    """The links of a page, the links to it, or, where only a host is named, all links of a site; at a time."""
    if "://" not in what and "/" not in what and not inward:
        return links_of_site(graph.as_of(time, site_of(what)), site_of(what))
    address = parse_user_url(what)
    moment = graph.around(time, url_number(graph, address))
    rows = links_out(moment, address) if outward or not inward else []
    return rows + (links_in(moment, address) if inward else [])


def links_of_site(moment: LinkSnapshot, site: str) -> list[LinkRow]:
    """All links on the pages of a site."""
    return _link_rows(moment, _without_ignored(moment, np.flatnonzero(moment.graph.of_site(site)[moment.sources])))


def _redirect_rows(moment: LinkSnapshot, numbers: Ints) -> list[LinkRow]:
    found = [number for number in numbers if moment.kind[number] == REDIRECT]
    return [LinkRow(moment.url(number), moment.url(moment.redirect[number]), "redirect", "") for number in found]


def _link_rows(moment: LinkSnapshot, links: Ints) -> list[LinkRow]:
    texts = moment.graph.texts(moment.places(links))
    return [
        LinkRow(
            moment.url(moment.sources[link]), moment.url(moment.targets[link]), moment.type_name(link), *text,
            None if moment.kind[end] == UNKNOWN else int(moment.status[end]),
        )
        for link, text, end in zip(links, texts, moment.ends[moment.targets[links]], strict=True)
    ]  # fmt: skip


def broken_links(moment: LinkSnapshot, site: str | None = None) -> Iterator[BrokenRow]:
    """Links on the live pages of a site that lead to an error or into a loop, each pair of addresses once."""
    return broken_rows(moment, broken_link_numbers(moment, site))


def broken_link_numbers(moment: LinkSnapshot, site: str | None = None) -> Ints:
    """The same by their numbers in the snapshot."""
    is_bad = (moment.kind == ERROR) | (moment.redirect >= 0)
    links = np.flatnonzero(is_bad[moment.ends][moment.targets])
    if site is not None:
        links = links[moment.graph.of_site(site)[moment.sources[links]]]
    pairs = moment.sources[links].astype(np.int64) * len(moment.kind) + moment.targets[links]
    found: Ints = links[np.sort(np.unique(pairs, return_index=True)[1])]
    return found


def broken_rows(moment: LinkSnapshot, links: Ints) -> Iterator[BrokenRow]:
    """What there is to say of some links that are broken."""
    texts = moment.graph.texts(moment.places(links))
    for link, (text, _, _) in zip(links, texts, strict=True):
        yield _broken_row(moment, int(link), int(moment.ends[moment.targets[link]]), text)


def _broken_row(moment: LinkSnapshot, link: int, end: int, text: str) -> BrokenRow:
    target, states, state = int(moment.targets[link]), moment.graph.states, int(moment.state[end])
    return BrokenRow(
        source=moment.url(moment.sources[link]), target=moment.url(target), status=int(moment.status[end]),
        since=time_or_none(states.since[state]) if state >= 0 else None, text=text,
        last_good=time_or_none(states.good[state]) if state >= 0 else None, type=moment.type_name(link),
        final=moment.url(end) if end != target else "",
    )  # fmt: skip


def time_or_none(millis: int) -> datetime | None:
    """A stored time; None for NEVER."""
    return None if millis == NEVER else from_millis(int(millis))


def rank_rows(moment: LinkSnapshot, ranked: PageRanks, top: int | None = None) -> list[RankRow]:
    """Pages by rank, highest first; equal ranks by address number, which is the order of discovery."""
    order = np.lexsort((ranked.pages, -ranked.ranks))[:top]
    return [RankRow(moment.url(ranked.pages[at]), round(float(ranked.ranks[at]), 6)) for at in order]


_MIN_CHAIN = 2
"""Redirects in a row from which a chain is worth a row."""


class ReportRow(NamedTuple):
    """One finding about a site; `urls` in an order that fits its kind."""

    finding: str
    detail: str
    urls: tuple[str, ...]


class SiteFinding(NamedTuple):
    """The same with the numbers of its pages, whose addresses have not been looked up."""

    finding: str
    detail: str
    pages: Sequence[int]


def site_report(found: SiteMap) -> Iterator[ReportRow]:
    """All findings: orphan, unreachable, chain, loop, duplicate-title, duplicate-content, depth."""
    for finding, detail, pages in site_findings(found):
        yield ReportRow(finding, detail, tuple(found.moment.url(page) for page in pages))
    for depth, count in enumerate(np.bincount(found.tree.depths)):
        yield ReportRow("depth", f"{depth}: {count} pages", ())


def site_findings(found: SiteMap) -> Iterator[SiteFinding]:
    """All findings but the depths, in the same order."""
    moment = found.moment
    pages = document_pages(moment, moment.graph.of_site(found.site))
    yield from _orphans(found)
    yield from _chains(moment, found.site)
    segment, versions = moment.graph.segment, moment.version[pages]
    yield from _duplicates("duplicate-title", pages, [segment.titles[version] for version in versions.tolist()])
    yield from _duplicates("duplicate-content", pages, segment.digests[versions].tolist())


def _orphans(found: SiteMap) -> Iterator[SiteFinding]:
    """Pages that no page of the site links to, and those that are linked but not from the home page on."""
    moment = found.moment
    sources, targets = edges_between(moment, moment.live)
    linked = np.zeros(len(moment.kind), bool)
    linked[targets[sources != targets]] = True
    outside = found.unreached()
    for page, is_linked in zip(outside.tolist(), linked[outside].tolist(), strict=True):
        yield SiteFinding("unreachable" if is_linked else "orphan", "", (page,))


def _chains(moment: LinkSnapshot, site: str) -> Iterator[SiteFinding]:
    """Redirects over more than one step that start on the site and are linked to."""
    linked = np.zeros(len(moment.kind), bool)
    linked[moment.targets] = True
    for start in np.flatnonzero((moment.redirect >= 0) & moment.graph.of_site(site) & linked).tolist():
        steps = [start]
        while len(steps) <= MAX_REDIRECTS and moment.redirect[steps[-1]] >= 0:
            steps.append(int(moment.redirect[steps[-1]]))
        if moment.redirect[steps[-1]] >= 0:
            yield SiteFinding("loop", "leads to no page", steps[: len(dict.fromkeys(steps)) + 1])
        elif len(steps) > _MIN_CHAIN:
            yield SiteFinding("chain", f"{len(steps) - 1} redirects", steps)


def _duplicates(finding: str, pages: Int32, values: Sequence[Hashable]) -> Iterator[SiteFinding]:
    first: dict[Hashable, int] = {}
    groups: dict[Hashable, list[int]] = {}
    for page, value in zip(pages.tolist(), values, strict=True):
        before = first.setdefault(value, page)
        if before != page and value != "":
            groups.setdefault(value, [before]).append(page)
    for value, members in sorted(groups.items(), key=lambda group: group[1][0]):
        yield SiteFinding(finding, value if isinstance(value, str) else f"{len(members)} pages", members)
