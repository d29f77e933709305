"""The hierarchical map: a page hangs under the first page, breadth first, that links to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from letopis.archive.leads import TYPE_CODES
from letopis.errors import NotFound
from letopis.graph.columns import Ints
from letopis.graph.graph import NAVIGATION, Mask, Snapshot
from letopis.graph.segment import DOCUMENT, Bytes, Int32
from letopis.graph.states import ERROR
from letopis.model import LinkType
from letopis.urls import parse_user
from letopis.urls import site as site_of


@dataclass(frozen=True, slots=True)
class Tree:
    """Pages in breadth-first order. `parents` and `depths` go along with them; the first page is its own parent."""

    pages: Int32
    parents: Int32
    depths: Int32


class Node(NamedTuple):
    """A page in the order in which a reader goes through the map; `closes` counts pages that end with it."""

    page: int
    depth: int
    children: int
    closes: int


def edges_between(moment: Snapshot, wanted: Mask) -> tuple[Int32, Int32]:
    """Links that a reader can follow to wanted addresses: source and end (redirects resolved), in document order."""
    ends = moment.ends[moment.targets]
    readable = np.repeat(_roles(moment, moment.pages) == DOCUMENT, np.diff(moment.bounds))
    useful = moment.of_types(NAVIGATION) & wanted[ends] & readable
    return moment.sources[useful], ends[useful]


def documents(moment: Snapshot, wanted: Mask) -> Int32:
    """Those of the wanted live addresses that are pages for people, not lists for programs nor parts of pages."""
    pages = np.flatnonzero(wanted & moment.live).astype(np.int32)
    found: Int32 = pages[_roles(moment, pages) == DOCUMENT]
    return found


def _roles(moment: Snapshot, pages: Int32) -> Bytes:
    return moment.graph.segment.roles[moment.version[pages]]


def tree(moment: Snapshot, root: int, wanted: Mask, depth: int | None = None) -> Tree:
    """The map from a root over the wanted addresses, at most `depth` levels below it.

    Level by level, so that a million pages take seconds: of all links of a
    level, in the order of its pages and then of the document, the first one
    to a page not yet placed makes it a child.
    """
    sources, targets = edges_between(moment, wanted)
    bounds = np.searchsorted(sources, np.arange(len(wanted) + 1)).astype(np.int64)
    placed = np.zeros(len(wanted), bool)
    placed[root] = True
    first = np.full(len(wanted), len(targets), np.int64)
    levels, parents = [np.array([root], np.int32)], [np.array([root], np.int32)]
    while len(levels[-1]) and (depth is None or len(levels) <= depth):
        places = _gather(bounds, levels[-1])
        places = places[~placed[targets[places]]]
        order = np.arange(len(places))
        # A page is met on one level only, so what an earlier level noted never stands in the way.
        np.minimum.at(first, targets[places], order)
        places = places[first[targets[places]] == order]
        levels.append(targets[places])
        parents.append(sources[places])
        placed[targets[places]] = True
    depths = np.repeat(np.arange(len(levels), dtype=np.int32), [len(level) for level in levels])
    return Tree(np.concatenate(levels), np.concatenate(parents), depths)


def _gather(bounds: Ints, pages: Int32) -> Ints:
    """Places of all links of some pages, in their order."""
    starts, counts = bounds[pages], bounds[pages + 1] - bounds[pages]
    ends = np.cumsum(counts)
    found: Ints = np.repeat(starts - (ends - counts), counts) + np.arange(int(ends[-1]) if len(ends) else 0)
    return found


def walk(found: Tree) -> Iterator[Node]:
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
        yield Node(int(found.pages[at]), depth, len(below[at]), closes)


def wanted_of(moment: Snapshot, site: str, *, errors: bool) -> Mask:
    """Addresses of a site that belong on its map; with `errors` also those that answer with one."""
    here = moment.graph.of_site(site)
    return here & (moment.live | (moment.kind == ERROR)) if errors else here & moment.live


def root_of(moment: Snapshot, site: str) -> int:
    """Where the map of a SITE starts: the address given, the home page, or else the shortest known address."""
    name = site_of(site)
    given = parse_user(site)
    for url in dict.fromkeys((given, f"https://{name}/", f"http://{name}/")):
        number = moment.graph.addresses.find(url)
        if number >= 0:
            end = int(moment.ends[number])
            if moment.live[end]:
                return end
    pages = np.flatnonzero(moment.graph.of_site(name) & moment.live)
    if not len(pages):
        raise NotFound(f"no page of {name} was known then; try 'letopis crawl {given}', or another --at")
    return int(min(pages, key=lambda page: (len(moment.url(page)), moment.url(page))))


def images(moment: Snapshot) -> Ints:
    """How many pictures each address shows."""
    pictures = moment.types == TYPE_CODES[LinkType.IMG]
    return np.bincount(moment.sources[pictures], minlength=len(moment.kind))
