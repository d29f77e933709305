"""PageRank by the document's formula: PR(p) = (1 - d) + d * sum of PR(q) / out(q) over pages q that link to p."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from letopis.graph.graph import Mask, Snapshot
from letopis.graph.hierarchy import documents, edges_between
from letopis.graph.segment import Int32

Ranks = npt.NDArray[np.float64]

DAMPING = 0.85
TOLERANCE = 1e-8
"""Mean change of a rank in one step at which it counts as settled."""
MOST_STEPS = 200
_WINDOW = 2
"""Steps that the acceleration remembers."""


class Ranked(NamedTuple):
    """Ranks of the pages with these numbers, in the same order."""

    pages: Int32
    ranks: Ranks


Flow = Callable[[Ranks], Ranks]
"""From what each page gives to every page it links to, to what each page gets."""
MakeFlow = Callable[[Int32, Int32, int], Flow]


def flow_here(sources: Int32, targets: Int32, count: int) -> Flow:
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
    make_flow: MakeFlow = flow_here,
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
    memory = _Memory()
    for _ in range(MOST_STEPS):
        following = flow(ranks * share)
        following += 1 - damping
        step = following - ranks
        if float(np.abs(step).sum()) <= tolerance * count:
            break
        ranks = memory.improved(following, step)
    return following


class _Memory:
    """Anderson's acceleration: the mixture of the last steps that would have left the least to do.

    The slow part of PageRank is a few directions in which each step closes
    only 15 % of what is missing; a mixture of steps closes those at once. A
    million pages need a third of the steps of plain iteration.
    """

    def __init__(self) -> None:
        self._before: tuple[Ranks, Ranks] | None = None
        self._changes: list[tuple[Ranks, Ranks]] = []

    def improved(self, value: Ranks, step: Ranks) -> Ranks:
        """The next point to try, from a new value and the step that led to it."""
        if self._before is not None:
            change = value - self._before[0], step - self._before[1]
            self._changes = [*self._changes[1 - _WINDOW :], change]
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
    moment: Snapshot,
    site: str | None,
    *,
    external: bool = False,
    start: Ranked | None = None,
    damping: float = DAMPING,
    make_flow: MakeFlow = flow_here,
) -> Ranked:
    """Ranks of the live pages of a site (None: of all), with `external` also of the addresses they link to.

    Pictures, styles and lists for programs count only where a page links to them.
    """
    inside = moment.live if site is None else moment.live & moment.graph.of_site(site)
    wanted = inside | _outside(moment, inside, site) if external else inside
    sources, targets = edges_between(moment, wanted)
    useful = inside[sources]
    sources, targets = sources[useful], targets[useful]
    ranked = np.zeros(len(moment.kind), bool)
    ranked[documents(moment, inside)] = ranked[targets] = True
    nodes = np.flatnonzero(ranked).astype(np.int32)
    place = np.cumsum(ranked) - 1
    links = _distinct(place[sources], place[targets], len(nodes))
    carried = _carried(start, nodes)
    return Ranked(nodes, pagerank(*links, len(nodes), damping=damping, start=carried, make_flow=make_flow))


def _outside(moment: Snapshot, inside: Mask, site: str | None) -> Mask:
    """Addresses that count as external: on other hosts, or, with all hosts inside, not archived."""
    return ~inside if site is None else ~moment.graph.of_site(site)


def _distinct(sources: npt.NDArray[np.int64], targets: npt.NDArray[np.int64], count: int) -> tuple[Int32, Int32]:
    """Each link once, self links not at all."""
    pairs = np.sort((sources * count + targets)[sources != targets])
    # By hand: numpy finds unique numbers by a hash table that is ten times slower on numbers in a row.
    pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])] if len(pairs) else pairs
    return (pairs // max(1, count)).astype(np.int32), (pairs % max(1, count)).astype(np.int32)


def _carried(start: Ranked | None, nodes: Int32) -> Ranks | None:
    """Ranks known for some of the pages as a start for all of them."""
    if start is None:
        return None
    ranks = np.ones(len(nodes))
    _, here, there = np.intersect1d(nodes, start.pages, assume_unique=True, return_indices=True)
    ranks[here] = start.ranks[there]
    return ranks
