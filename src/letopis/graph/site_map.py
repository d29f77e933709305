"""A map ready to be shown: the tree of a site at a date with what is known of each page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from letopis.graph.graph import Graph, Snapshot
from letopis.graph.hierarchy import Node, Tree, images, root_of, tree, walk, wanted_of
from letopis.model import from_millis
from letopis.urls import host as host_of
from letopis.urls import site as site_of

_SAMPLE = 1000
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


class Sums(NamedTuple):
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
    moment: Snapshot
    tree: Tree

    def pages(self) -> Iterator[tuple[Node, MapPage]]:
        """All pages, each before those below it."""
        pictures = images(self.moment)
        for node in walk(self.tree):
            yield node, map_page(self.moment, node.page, int(pictures[node.page]))

    def sums(self) -> Sums:
        """What the pages of the map are together."""
        live = self.tree.pages[self.moment.live[self.tree.pages]]
        versions, pictures = self.moment.version[live], images(self.moment)
        segment = self.moment.graph.segment
        return Sums(
            pages=len(live),
            errors=len(self.tree.pages) - len(live),
            levels=int(self.tree.depths[-1]),
            bytes=int(segment.sizes[versions].sum()),
            images=int(pictures[live].sum()),
            types=Counter(segment.types[int(version)] for version in versions),
            languages=Counter(segment.languages[int(version)] for version in versions),
            titles=[segment.titles[int(version)] for version in versions[:_SAMPLE]],
        )


def site_map(graph: Graph, site: str, at: int, *, depth: int | None = None, errors: bool = False) -> SiteMap:
    """The map of a SITE at a time in milliseconds; NotFound when none of its pages was known then.

    A home page that redirects to another host gives the map of that host.
    """
    name = site_of(site)
    moment = graph.as_of(at, name)
    root = root_of(moment, site)
    if host_of(moment.url(root)) != name:
        name = host_of(moment.url(root))
        moment = graph.as_of(at, name)
    found = tree(moment, root, wanted_of(moment, name, errors=errors), depth)
    return SiteMap(name, from_millis(at), moment, found)


def map_page(moment: Snapshot, page: int, pictures: int) -> MapPage:
    """What a map shows of the page with a number."""
    segment = moment.graph.segment
    url, status, version = moment.url(page), int(moment.status[page]), int(moment.version[page])
    if not moment.live[page]:
        return MapPage(url, "", status, "", 0, "", 0, None)
    return MapPage(
        url=url,
        title=segment.titles[version],
        status=status,
        lang=segment.languages[version],
        bytes=int(segment.sizes[version]),
        type=segment.types[version],
        images=pictures,
        time=from_millis(int(segment.times[version])),
    )
