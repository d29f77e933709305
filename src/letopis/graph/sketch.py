"""A site in a few strokes: the pages that matter most, and the links between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from letopis.graph.graph import Snapshot
from letopis.graph.hierarchy import edges_between
from letopis.graph.ranking import Ranked, rank_site


class Sketch(NamedTuple):
    """Pages by rank, highest first, and the links between them as pairs of places in that order.

    `total` counts all pages of the site, sketched or not.
    """

    urls: list[str]
    ranks: list[float]
    links: list[tuple[int, int]]
    total: int


def sketch(moment: Snapshot, site: str, most: int, ranked: Ranked | None = None) -> Sketch:
    """At most `most` pages of a site with their links, each pair once in each direction; equal ranks by number.

    `ranked` are the ranks of the site, where they are known already.
    """
    ranked = ranked or rank_site(moment, site)
    order = np.lexsort((ranked.pages, -ranked.ranks))[:most]
    pages = ranked.pages[order]
    urls = [moment.url(page) for page in pages]
    return Sketch(urls, [float(rank) for rank in ranked.ranks[order]], _links(moment, pages), len(ranked.pages))


def _links(moment: Snapshot, pages: npt.NDArray[np.int32]) -> list[tuple[int, int]]:
    place = np.full(len(moment.kind), -1, np.int64)
    place[pages] = np.arange(len(pages))
    sources, ends = edges_between(moment, place >= 0)
    pairs = np.stack([place[sources], place[ends]], axis=1)
    useful = pairs[(pairs[:, 0] >= 0) & (pairs[:, 0] != pairs[:, 1])]
    return [(int(source), int(target)) for source, target in np.unique(useful, axis=0)]
