"""The upper part of a map, however large the whole is: what a page shows of it, with what lies below in numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from letopis.graph.columns import Ints
from letopis.graph.hierarchy import Tree, images, walk
from letopis.graph.site_map import MapPage, SiteMap, map_page


class OutlineRow(NamedTuple):
    """A page of an outline. `below` counts all pages below it and `weight` is their size, shown or not.

    The weight of a page that has others below it is that of those which the
    outline leaves out; of one that has none, its own: so all weights together
    are the size of all pages that nothing is below.
    """

    number: int
    page: MapPage
    depth: int
    below: int
    weight: int


class Outline(NamedTuple):
    """Pages in the order in which a reader goes through the map, and how many the whole map has."""

    rows: list[OutlineRow]
    total: int


def outline(found: SiteMap, most: int) -> Outline:
    """The first pages of a map, breadth before depth where it is too large; only they are read."""
    tree, moment = found.tree, found.moment
    below, weights = _sums(found, most)
    upper = Tree(tree.pages[:most], tree.parents[:most], tree.depths[:most])
    place = {page: at for at, page in enumerate(upper.pages.tolist())}
    pictures = images(moment)
    rows = []
    for node in walk(upper):
        at, page = place[node.page], map_page(moment, node.page, int(pictures[node.page]))
        rows.append(OutlineRow(node.page, page, node.depth, int(below[at]), int(weights[at])))
    return Outline(rows, len(tree.pages))


def _sums(found: SiteMap, most: int) -> tuple[Ints, Ints]:
    """How many pages lie below each place of the tree, and its weight; level by level from the lowest."""
    tree = found.tree
    above, bounds = _above(tree), np.searchsorted(tree.depths, np.arange(int(tree.depths[-1]) + 2))
    below, weights = np.zeros(len(above), np.int64), _leaf_sizes(found, above)
    for first, last in reversed(list(pairwise(bounds[1:]))):
        np.add.at(below, above[first:last], below[first:last] + 1)
        hidden = slice(max(int(first), most), last)
        np.add.at(weights, above[hidden], weights[hidden])
    return below, weights


def _above(tree: Tree) -> Ints:
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
