"""When the pages of a site changed, from the index alone: as quick for a hundred thousand pages as for ten."""

from __future__ import annotations

from typing import NamedTuple

from letopis.graph.columns import Ints
from letopis.graph.graph import Graph
from letopis.graph.segment import Int32


class Changes(NamedTuple):
    """One entry a change: the number of its page and its time."""

    pages: Int32
    times: Ints


def changes_of(graph: Graph, site: str, since: int, until: int) -> Changes:
    """Changes on the pages of a site between two times, first versions and noise aside; by page, then by time."""
    history = graph.history
    kept = (history.times >= since) & (history.times <= until) & graph.of_site(site)[history.pages]
    kept[:1] = False
    kept[1:] &= history.pages[1:] == history.pages[:-1]
    kept &= graph.segment.judged[history.order] != 0
    return Changes(history.pages[kept], history.times[kept])
