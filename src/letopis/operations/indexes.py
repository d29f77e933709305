"""The indexes of an archive as operations use them: one of each for a process, brought up to date when asked."""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from letopis.archive import Archive
from letopis.archive.cluster import spread_over
from letopis.errors import NotFound
from letopis.index.link_graph import Graph
from letopis.index.link_index import LinkIndex, catch_up_on_cluster
from letopis.operations.context import Context
from letopis.urls import site

_links: WeakKeyDictionary[Archive, LinkIndex] = WeakKeyDictionary()
_opening = threading.Lock()


def link_index(archive: Archive) -> LinkIndex:
    """The index of links, which may be behind; one is shared by all who ask in this process."""
    with _opening:
        return _links.setdefault(archive, LinkIndex(archive))


def current_graph(context: Context) -> Graph:
    """All links up to now, the pages read here or by a cluster that sees them."""
    index = link_index(context.archive)
    with spread_over(context.archive.settings, where_shared=True) as runner:
        if runner is None:
            index.catch_up(lambda done: context.progress.show(done, "versions"), context.progress.cancelled)
        else:
            catch_up_on_cluster(runner, context.archive, index, lambda done: context.progress.show(done, "versions"))
    context.raise_if_cancelled()
    return index.graph()


def known_site(context: Context, where: str) -> tuple[str, Graph]:
    """The host that a SITE names, and the links; NotFound when no page of it is known."""
    name, graph = site(where), current_graph(context)
    if not graph.of_site(name).any():
        raise NotFound(f"no page of {name} is known here; try 'letopis crawl {name}'")
    return name, graph
