"""The index of links as operations use it: one per process, updated when it is queried.

The index of words is in `operations.words`, so that queries about links need not load it, and vice versa.
"""

from __future__ import annotations

from functools import partial

from letopis.archive import Archive
from letopis.archive.cluster import spread_over
from letopis.archive.index_facts import require_site
from letopis.index.link_graph import Graph
from letopis.index.link_index import LinkIndex, catch_up_on_cluster
from letopis.operations.context import Context


def link_index(archive: Archive) -> LinkIndex:
    """The index of links, which may be behind; one is shared by all who ask in this process."""
    return archive.attached(LinkIndex)


def current_graph(context: Context) -> Graph:
    """All links up to now, the pages read here or by a cluster that sees them."""
    index = link_index(context.archive)
    show = partial(context.counted_progress, of=index.behind(), what="versions")
    with context.reading_on(lambda: index.last), spread_over(context.archive.settings, where_shared=True) as runner:
        if runner is None:
            index.catch_up(show, context.progress.cancelled)
        else:
            catch_up_on_cluster(runner, context.archive, index, show)
    context.raise_if_cancelled()
    return index.graph()


def known_site(context: Context, where: str) -> tuple[str, Graph]:
    """The host that a SITE names, and the links; NotFound when no page of it was ever checked.

    Who needs no links asks `require_site` of the archive.
    """
    name = require_site(context.archive, where)
    return name, current_graph(context)
