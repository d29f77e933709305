"""PageRank: PR(p) = (1 - d) + d * sum of PR(q) / out(q) over pages q that link to p.

Worked out here or on a Dask cluster: there links are cut into parts by their sources, a part goes to one worker once,
and each step sends the shares of its sources and brings back what its targets get. A worker that dies takes its parts
with it: the step is done again with all parts sent to those that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from itertools import pairwise
from typing import Any, TypeAlias

from letopis.archive import Archive
from letopis.archive.index_facts import all_page_ids
from letopis.index.link_graph import LinkSnapshot, Mask
from letopis.index.link_storage import Int32
from letopis.index.search_ranking import PageWeights
from letopis.index.site_maps import document_pages, edges_between
from letopis.lazy import np, npt
from letopis.tuples import NamedTuple

Ranks: TypeAlias = "npt.NDArray[np.float64]"

DAMPING = 0.85
TOLERANCE = 1e-8
"""Mean change of a rank in one step at which it counts as settled."""
MAX_STEPS = 200
_MIXED_STEPS = 2
"""Steps that the acceleration remembers."""


class PageRanks(NamedTuple):
    """Ranks of the pages with these numbers, in the same order."""

    pages: Int32
    ranks: Ranks


RankFlow = Callable[[Ranks], Ranks]
"""From what each page gives to every page it links to, to what each page gets."""
RankFlowFactory = Callable[[Int32, Int32, int], RankFlow]


def local_flow(sources: Int32, targets: Int32, count: int) -> RankFlow:
    """The flow along links in this process."""
    giver, into, given = sources.astype(np.intp), targets.astype(np.intp), np.empty(len(sources))

    def flow(shares: Ranks) -> Ranks:
        np.take(shares, giver, out=given, mode="clip")
        return np.bincount(into, weights=given, minlength=count).astype(np.float64, copy=False)

    return flow


def pagerank(
    sources: Int32,
    targets: Int32,
    count: int,
    *,
    damping: float = DAMPING,
    tolerance: float = TOLERANCE,
    start: Ranks | None = None,
    make_flow: RankFlowFactory = local_flow,
) -> Ranks:
    """Ranks of `count` pages from distinct links without self links, in ascending order of sources.

    Pages without links pass nothing on. A `start` near the answer saves
    steps. Raises ValueError when the links are not in order.
    """
    if (sources[1:] < sources[:-1]).any():
        raise ValueError("links must come in the order of their sources")
    out = np.bincount(sources, minlength=count)
    share = np.divide(damping, out, out=np.zeros(count), where=out > 0)
    flow = make_flow(sources, targets, count)
    ranks = np.ones(count) if start is None else start.astype(np.float64)
    memory = _AndersonMixing()
    for _ in range(MAX_STEPS):
        following = flow(ranks * share)
        following += 1 - damping
        step = following - ranks
        if float(np.abs(step).sum()) <= tolerance * count:
            break
        ranks = memory.improved(following, step)
    return following


class _AndersonMixing:
    """Anderson's acceleration: the mixture of the last steps that would have left the least to do.

    The slow part of PageRank is a few directions in which each step closes only 15 % of what is missing; a mixture of
    steps closes those at once. A million pages need a third of the steps of plain iteration.
    """

    def __init__(self) -> None:
        self._before: tuple[Ranks, Ranks] | None = None
        self._changes: list[tuple[Ranks, Ranks]] = []

    def improved(self, value: Ranks, step: Ranks) -> Ranks:
        """The next point to try, from a new value and the step that led to it."""
        if self._before is not None:
            change = value - self._before[0], step - self._before[1]
            self._changes = [*self._changes[1 - _MIXED_STEPS :], change]
        self._before = value, step
        if not self._changes:
            return value
        steps = [change for _, change in self._changes]
        products = np.array([[_product(one, other) for other in steps] for one in steps])
        mixture = np.linalg.lstsq(products, np.array([_product(one, step) for one in steps]), rcond=1e-12)[0]
        mixed = value.copy()
        for part, (moved, _) in zip(mixture, self._changes, strict=True):
            mixed -= part * moved
        return mixed


def _product(one: Ranks, other: Ranks) -> float:
    """Without the linear algebra library, whose threads cost more than they save here."""
    return float(np.einsum("i,i->", one, other))


def rank_site(
    moment: LinkSnapshot,
    site: str | None,
    *,
    external: bool = False,
    start: PageRanks | None = None,
    damping: float = DAMPING,
    make_flow: RankFlowFactory = local_flow,
) -> PageRanks:
    """Ranks of the live pages of a site (None: of all), with `external` also of the addresses they link to.

    Pictures, styles and lists for programs count only where a page links to them.
    """
    inside = moment.live if site is None else moment.live & moment.graph.of_site(site)
    wanted = inside | _outside(moment, inside, site) if external else inside
    sources, targets = edges_between(moment, wanted)
    useful = inside[sources]
    sources, targets = sources[useful], targets[useful]
    ranked = np.zeros(len(moment.kind), bool)
    ranked[document_pages(moment, inside)] = ranked[targets] = True
    nodes = np.flatnonzero(ranked).astype(np.int32)
    place = np.cumsum(ranked) - 1
    links = _distinct(place[sources], place[targets], len(nodes))
    carried = _starting_ranks(start, nodes)
    return PageRanks(nodes, pagerank(*links, len(nodes), damping=damping, start=carried, make_flow=make_flow))


def _outside(moment: LinkSnapshot, inside: Mask, site: str | None) -> Mask:
    """Addresses that count as external: on other hosts, or, with all hosts inside, not archived."""
    return ~inside if site is None else ~moment.graph.of_site(site)


def _distinct(sources: npt.NDArray[np.int64], targets: npt.NDArray[np.int64], count: int) -> tuple[Int32, Int32]:
    """Each link once, self links not at all."""
    pairs = np.sort((sources * count + targets)[sources != targets])
    # By hand: numpy finds unique numbers by a hash table that is ten times slower on numbers in a row.
    pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])] if len(pairs) else pairs
    return (pairs // max(1, count)).astype(np.int32), (pairs % max(1, count)).astype(np.int32)


def _starting_ranks(start: PageRanks | None, nodes: Int32) -> Ranks | None:
    """Ranks known for some of the pages as a start for all of them."""
    if start is None:
        return None
    ranks = np.ones(len(nodes))
    _, here, there = np.intersect1d(nodes, start.pages, assume_unique=True, return_indices=True)
    ranks[here] = start.ranks[there]
    return ranks


_MIN_PARTITION_LINKS = 100_000
"""Fewer are not worth a separate part."""
_MAX_LOST_WORKERS = 8
"""Steps in a row that may lose a worker."""


class LinkPartition:
    """The links of a range of sources."""

    def __init__(self, first: int, sources: Int32, targets: Int32) -> None:
        self.first = first
        self.last = int(sources[-1]) + 1 if len(sources) else first
        self._sources = (sources - first).astype(np.int32)
        self._into, self._places = np.unique(targets, return_inverse=True)

    def flow(self, shares: Ranks) -> tuple[Int32, Ranks]:
        """Targets and what they get; `shares` are those of the part's own sources."""
        given = np.bincount(self._places, weights=shares[self._sources], minlength=len(self._into))
        return self._into, given.astype(np.float64, copy=False)


def _partition_flow(part: LinkPartition, shares: Ranks) -> tuple[Int32, Ranks]:
    return part.flow(shares)


def _summed_flow(answers: Iterable[tuple[Int32, Ranks]], count: int) -> Ranks:
    total = np.zeros(count)
    for into, given in answers:
        total[into] += given
    return total


def partition_links(sources: Int32, targets: Int32, count: int) -> list[LinkPartition]:
    """About equally many links each; all links of a source stay together."""
    if not len(sources):
        return []
    cuts = np.linspace(0, len(sources), count + 1).astype(np.int64)[:-1]
    bounds = [*np.unique(np.searchsorted(sources, sources[cuts], side="left")).tolist(), len(sources)]
    return [LinkPartition(int(sources[low]), sources[low:high], targets[low:high]) for low, high in pairwise(bounds)]


def cluster_flow(client: Any, workers: int) -> RankFlowFactory:
    """The flow along links on a cluster; `client` is a `distributed.Client`."""

    def make(sources: Int32, targets: Int32, count: int) -> RankFlow:
        wanted = max(1, min(2 * workers, len(sources) // _MIN_PARTITION_LINKS))
        parts = partition_links(sources, targets, wanted)
        held = client.scatter(parts, hash=False)

        def gathered(shares: Ranks) -> list[tuple[Int32, Ranks]]:
            tasks = [
                client.submit(_partition_flow, each, shares[part.first : part.last], pure=False)
                for each, part in zip(held, parts, strict=True)
            ]
            answers: list[tuple[Int32, Ranks]] = client.gather(tasks)
            return answers

        def flow(shares: Ranks) -> Ranks:
            nonlocal held
            for _ in range(_MAX_LOST_WORKERS):
                try:
                    return _summed_flow(gathered(shares), count)
                except CancelledError:
                    held = client.scatter(parts, hash=False)
            return _summed_flow(gathered(shares), count)

        return flow

    return make


def save_ranks(archive: Archive, moment: LinkSnapshot, ranked: PageRanks) -> None:
    """Saves ranks of all pages as of now; search results are ordered by them until they are computed again."""
    ranks = {moment.url(page): float(rank) for page, rank in zip(ranked.pages, ranked.ranks, strict=True)}
    pages = all_page_ids(archive)
    PageWeights.of((page, ranks[url]) for page, url in pages if url in ranks).save(archive.folder)


class SiteDiagram(NamedTuple):
    """Pages by rank, highest first, and the links between them as pairs of places in that order.

    `total` counts all pages of the site, sketched or not.
    """

    urls: list[str]
    ranks: list[float]
    links: list[tuple[int, int]]
    total: int


def site_diagram(moment: LinkSnapshot, site: str, most: int, ranked: PageRanks | None = None) -> SiteDiagram:
    """At most `most` pages of a site with their links, each pair once in each direction; equal ranks by number.

    `ranked` are the ranks of the site, where they are known already.
    """
    ranked = ranked or rank_site(moment, site)
    order = np.lexsort((ranked.pages, -ranked.ranks))[:most]
    pages = ranked.pages[order]
    urls = [moment.url(page) for page in pages]
    return SiteDiagram(
        urls, [float(rank) for rank in ranked.ranks[order]], _diagram_links(moment, pages), len(ranked.pages)
    )


def _diagram_links(moment: LinkSnapshot, pages: npt.NDArray[np.int32]) -> list[tuple[int, int]]:
    place = np.full(len(moment.kind), -1, np.int64)
    place[pages] = np.arange(len(pages))
    sources, ends = edges_between(moment, place >= 0)
    pairs = np.stack([place[sources], place[ends]], axis=1)
    useful = pairs[(pairs[:, 0] >= 0) & (pairs[:, 0] != pairs[:, 1])]
    return [(int(source), int(target)) for source, target in np.unique(useful, axis=0)]
