"""The hierarchical map of a site at a date: a page hangs under the first page, breadth first, that links to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from letopis.archive.link_cache import TYPE_CODES
from letopis.errors import NotFound, crawl_remedy
from letopis.index.link_graph import NAVIGATION_TYPES, Graph, LinkSnapshot, Mask
from letopis.index.link_storage import ROLE_DOCUMENT, Bytes, Int32, Ints
from letopis.index.url_table import ERROR
from letopis.lazy import np
from letopis.model import LinkType, from_millis
from letopis.tuples import NamedTuple
from letopis.urls import host as host_of
from letopis.urls import parse_user_url
from letopis.urls import site as site_of


@dataclass(frozen=True, slots=True)
class PageTree:
    """Pages in breadth-first order. `parents` and `depths` go along with them; the first page is its own parent."""

    pages: Int32
    parents: Int32
    depths: Int32


class PageNode(NamedTuple):
    """A page in the order in which a reader goes through the map; `closes` counts pages that end with it."""

    page: int
    depth: int
    children: int
    closes: int


def edges_between(moment: LinkSnapshot, wanted: Mask) -> tuple[Int32, Int32]:
    """Links that a reader can follow to wanted addresses: source and end (redirects resolved), in document order."""
    ends = moment.ends[moment.targets]
    readable = np.repeat(_roles(moment, moment.pages) == ROLE_DOCUMENT, np.diff(moment.bounds))
    useful = moment.of_types(NAVIGATION_TYPES) & wanted[ends] & readable
    return moment.sources[useful], ends[useful]


def document_pages(moment: LinkSnapshot, wanted: Mask) -> Int32:
    """Those of the wanted live addresses that are pages for people, not lists for programs nor parts of pages."""
    pages = np.flatnonzero(wanted & moment.live).astype(np.int32)
    found: Int32 = pages[_roles(moment, pages) == ROLE_DOCUMENT]
    return found


def _roles(moment: LinkSnapshot, pages: Int32) -> Bytes:
    return moment.graph.segment.roles[moment.version[pages]]


def page_tree(moment: LinkSnapshot, root: int, wanted: Mask, depth: int | None = None) -> PageTree:
    """The map from a root over the wanted addresses, at most `depth` levels below it.

    Level by level, so that a million pages take seconds: of all links of a level, in the order of its pages and then of
    the document, the first one to a page not yet placed makes it a child.
    """
    sources, targets = edges_between(moment, wanted)
    bounds = np.searchsorted(sources, np.arange(len(wanted) + 1)).astype(np.int64)
    placed = np.zeros(len(wanted), bool)
    placed[root] = True
    first = np.full(len(wanted), len(targets), np.int64)
    levels, parents = [np.array([root], np.int32)], [np.array([root], np.int32)]
    while len(levels[-1]) and (depth is None or len(levels) <= depth):
        places = _gather_places(bounds, levels[-1])
        places = places[~placed[targets[places]]]
        order = np.arange(len(places))
        # A page is met on one level only, so what an earlier level noted never stands in the way.
        np.minimum.at(first, targets[places], order)
        places = places[first[targets[places]] == order]
        levels.append(targets[places])
        parents.append(sources[places])
        placed[targets[places]] = True
    depths = np.repeat(np.arange(len(levels), dtype=np.int32), [len(level) for level in levels])
    return PageTree(np.concatenate(levels), np.concatenate(parents), depths)


def _gather_places(bounds: Ints, pages: Int32) -> Ints:
    """Places of all links of some pages, in their order."""
    starts, counts = bounds[pages], bounds[pages + 1] - bounds[pages]
    ends = np.cumsum(counts)
    found: Ints = np.repeat(starts - (ends - counts), counts) + np.arange(int(ends[-1]) if len(ends) else 0)
    return found


def walk_tree(found: PageTree) -> Iterator[PageNode]:
    """The pages of a tree, each before its children, children in their order; needs no recursion."""
    place = {int(page): at for at, page in enumerate(found.pages)}
    below: list[list[int]] = [[] for _ in found.pages]
    for at in range(1, len(found.pages)):
        below[place[int(found.parents[at])]].append(at)
    stack = [0]
    while stack:
        at = stack.pop()
        stack.extend(reversed(below[at]))
        depth = int(found.depths[at])
        following = int(found.depths[stack[-1]]) if stack else 0
        closes = 0 if below[at] else depth - following + 1
        yield PageNode(int(found.pages[at]), depth, len(below[at]), closes)


def urls_on_map(moment: LinkSnapshot, site: str, *, errors: bool) -> Mask:
    """Addresses of a site that belong on its map; with `errors` also those that answer with one."""
    here = moment.graph.of_site(site)
    return here & (moment.live | (moment.kind == ERROR)) if errors else here & moment.live


def map_root(moment: LinkSnapshot, site: str) -> int:
    """Where the map of a SITE starts: the address given, the home page, a seed of a crawl, or else the page that
    links to the most others of the site.
    """
    name = site_of(site)
    given = parse_user_url(site)
    seeds = (seed for seed in moment.graph.seeds if host_of(seed) == name)
    for url in dict.fromkeys((given, f"https://{name}/", f"http://{name}/", *seeds)):
        number = moment.graph.addresses.find(url)
        if number >= 0:
            end = int(moment.ends[number])
            if moment.live[end]:
                return end
    pages = np.flatnonzero(moment.graph.of_site(name) & moment.live)
    if not len(pages):
        raise NotFound(f"no page of {name} was known then", crawl_remedy(given)._replace(tail=", or another time"))
    sources, targets = edges_between(moment, moment.graph.of_site(name) & moment.live)
    pairs = np.unique(sources.astype(np.int64) * len(moment.kind) + targets) // len(moment.kind)
    linked = np.bincount(pairs, minlength=len(moment.kind))
    return int(min(pages, key=lambda page: (-int(linked[page]), len(moment.url(page)), moment.url(page))))


def image_counts(moment: LinkSnapshot) -> Ints:
    """How many pictures each address shows."""
    pictures = moment.types == TYPE_CODES[LinkType.IMG]
    return np.bincount(moment.sources[pictures], minlength=len(moment.kind))


_MAX_SAMPLE_TITLES = 1000
"""Titles by which it is seen what the titles of a site share."""


class MapPage(NamedTuple):
    """What a map shows of a page; `time` is when its version was first seen."""

    url: str
    title: str
    status: int
    lang: str
    bytes: int
    type: str
    images: int
    time: datetime | None


class MapTotals(NamedTuple):
    """A map in a few numbers, with some of its titles; `levels` are those below its first page."""

    pages: int
    errors: int
    levels: int
    bytes: int
    images: int
    types: Counter[str]
    languages: Counter[str]
    titles: list[str]


@dataclass(frozen=True, slots=True)
class SiteMap:
    """The hierarchical map of a site at a date."""

    site: str
    at: datetime
    moment: LinkSnapshot
    tree: PageTree

    def pages(self) -> Iterator[tuple[PageNode, MapPage]]:
        """All pages, each before those below it."""
        pictures = image_counts(self.moment)
        for node in walk_tree(self.tree):
            yield node, map_page(self.moment, node.page, int(pictures[node.page]))

    def named_pages(self) -> Iterator[tuple[PageNode, MapPage]]:
        """The same for readers: what has no title, such as a file, is called what the link to it says."""
        names = link_names(self.moment, self.tree)
        for node, page in self.pages():
            yield node, page if page.title else page._replace(title=names.get(node.page, ""))

    def unreached(self) -> Int32:
        """Pages for people that the site has and the map does not show: nothing on it leads to them."""
        pages = document_pages(self.moment, self.moment.graph.of_site(self.site))
        on_map = np.zeros(len(self.moment.kind), bool)
        on_map[self.tree.pages] = True
        found: Int32 = pages[~on_map[pages]]
        return found

    def sums(self) -> MapTotals:
        """What the pages of the map are together."""
        live = self.tree.pages[self.moment.live[self.tree.pages]]
        versions, pictures = self.moment.version[live], image_counts(self.moment)
        segment = self.moment.graph.segment
        return MapTotals(
            pages=len(live), errors=len(self.tree.pages) - len(live), levels=int(self.tree.depths[-1]),
            bytes=int(segment.sizes[versions].sum()), images=int(pictures[live].sum()),
            types=Counter(segment.types[int(version)] for version in versions),
            languages=Counter(segment.languages[int(version)] for version in versions),
            titles=[segment.titles[int(version)] for version in versions[:_MAX_SAMPLE_TITLES]],
        )  # fmt: skip


def site_map(graph: Graph, site: str, at: int, *, depth: int | None = None, errors: bool = False) -> SiteMap:
    """The map of a SITE at a time in milliseconds; NotFound when none of its pages was known then.

    A home page that redirects to another host gives the map of that host.
    """
    name = site_of(site)
    moment = graph.as_of(at, name)
    root = map_root(moment, site)
    if host_of(moment.url(root)) != name:
        name = host_of(moment.url(root))
        moment = graph.as_of(at, name)
    found = page_tree(moment, root, urls_on_map(moment, name, errors=errors), depth)
    return SiteMap(name, from_millis(at), moment, found)


_LONGEST_NAME = 200
"""Characters of a link text that name a page."""


def link_names(moment: LinkSnapshot, tree: PageTree) -> dict[int, str]:
    """What the first link with a text says, from the page above, of each page of a tree that has no title."""
    titles, versions = moment.graph.segment.titles, moment.version
    bare = [page for page in tree.pages.tolist() if not (moment.live[page] and titles[int(versions[page])])]
    above = np.full(len(moment.kind), -1, np.int32)
    above[tree.pages] = tree.parents
    wanted = np.zeros(len(moment.kind), bool)
    wanted[bare] = True
    ends = moment.ends[moment.targets]
    links = np.flatnonzero(wanted[ends] & (above[ends] == moment.sources) & moment.of_types(NAVIGATION_TYPES))
    names: dict[int, str] = {}
    for page, line in zip(ends[links].tolist(), moment.graph.lines(moment.places(links)), strict=True):
        if text := " ".join(line.partition("\t")[0].split())[:_LONGEST_NAME]:
            names.setdefault(page, text)
    return names


def map_page(moment: LinkSnapshot, page: int, pictures: int) -> MapPage:
    """What a map shows of the page with a number."""
    segment = moment.graph.segment
    url, status, version = moment.url(page), int(moment.status[page]), int(moment.version[page])
    if not moment.live[page]:
        return MapPage(url, "", status, "", 0, "", 0, None)
    return MapPage(
        url=url, title=segment.titles[version], status=status, lang=segment.languages[version],
        bytes=int(segment.sizes[version]), type=segment.types[version], images=pictures,
        time=from_millis(int(segment.times[version])),
    )  # fmt: skip


class OutlineRow(NamedTuple):
    """A page of an outline. `below` counts all pages below it and `weight` is their size, shown or not.

    The weight of a page that has others below it is that of those which the outline leaves out; of one that has none,
    its own: so all weights together are the size of all pages that nothing is below.
    """

    number: int
    page: MapPage
    depth: int
    below: int
    weight: int


class MapOutline(NamedTuple):
    """Pages in the order in which a reader goes through the map, how many the whole map has, how many of those are
    other files, and how many pages for people are missing from it.
    """

    rows: list[OutlineRow]
    total: int
    files: int
    unreached: int


def map_outline(found: SiteMap, most: int) -> MapOutline:
    """The first pages of a map, breadth before depth where it is too large; only they are read."""
    tree, moment = found.tree, found.moment
    below, weights = _totals_below(found, most)
    upper = PageTree(tree.pages[:most], tree.parents[:most], tree.depths[:most])
    place = {page: at for at, page in enumerate(upper.pages.tolist())}
    rows = []
    for node, page in SiteMap(found.site, found.at, moment, upper).named_pages():
        at = place[node.page]
        rows.append(OutlineRow(node.page, page, node.depth, int(below[at]), int(weights[at])))
    known, unreached = document_pages(moment, moment.graph.of_site(found.site)), len(found.unreached())
    return MapOutline(rows, len(tree.pages), len(tree.pages) - (len(known) - unreached), unreached)


def _totals_below(found: SiteMap, most: int) -> tuple[Ints, Ints]:
    """How many pages lie below each place of the tree, and its weight; level by level from the lowest."""
    tree = found.tree
    above, bounds = _parent_places(tree), np.searchsorted(tree.depths, np.arange(int(tree.depths[-1]) + 2))
    below, weights = np.zeros(len(above), np.int64), _leaf_sizes(found, above)
    for first, last in reversed(list(pairwise(bounds[1:]))):
        np.add.at(below, above[first:last], below[first:last] + 1)
        hidden = slice(max(int(first), most), last)
        np.add.at(weights, above[hidden], weights[hidden])
    return below, weights


def _parent_places(tree: PageTree) -> Ints:
    """The place in the tree of what each page hangs under."""
    place = np.zeros(int(tree.pages.max()) + 1, np.int64)
    place[tree.pages] = np.arange(len(tree.pages))
    found: Ints = place[tree.parents]
    return found


def _leaf_sizes(found: SiteMap, above: Ints) -> Ints:
    """Bytes of the pages that nothing is below, at least one each; 0 of the others."""
    pages, moment = found.tree.pages, found.moment
    sizes = np.where(moment.live[pages], moment.graph.segment.sizes[moment.version[pages]], 0)
    leaf = np.ones(len(pages), bool)
    leaf[above[1:]] = False
    weights: Ints = np.where(leaf, np.maximum(sizes, 1), 0).astype(np.int64)
    return weights
