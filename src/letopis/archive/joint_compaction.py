"""Compaction that many machines do together, each a stretch of the documents, under one lease.

Whoever leads takes the lease for upkeep, hands its fence out with the
stretches, and removes empty packs when all are done. Before that it raises
the fence: a worker that was given up and comes back could otherwise move
contents into a pack that was just found to be empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from letopis.archive.archive import Archive
from letopis.archive.compaction import Compaction, CompactReport, Done, Stretch, listed, site_of
from letopis.archive.spreading import Spread
from letopis.catalog import Catalog
from letopis.model import to_millis

DOCUMENTS = 500
"""Of a stretch at least, unless it is the last."""
_MOST = 8 * DOCUMENTS
"""A site stays in one stretch unless it has more documents than this."""


class Order(NamedTuple):
    """A stretch, and how it is to be worked through."""

    stretch: Stretch
    sparse: frozenset[int]
    effort: Literal["quick", "full"]
    now: int
    fence: int


def compact_jointly(
    archive: Archive,
    spread: Spread,
    effort: Literal["quick", "full"] = "full",
    progress: Callable[[int], None] = lambda done: None,
    stop: Callable[[], bool] = lambda: False,
) -> CompactReport:
    """As `Archive.compact`, the stretches worked through by whoever `spread` finds; Busy when others compact."""
    archive.require_writable()
    now, gate = to_millis(archive.clock()), archive.lent_gate()
    try:
        run = Compaction(archive.catalog, gate, archive.settings.store, now)
        before, sparse = run.survey()
        orders = (Order(one, sparse, effort, now, gate.number) for one in stretches(archive.catalog))
        total = Done(0, 0, 0)
        for done in spread.each(compact_stretch, _until(stop, orders)):
            total = Done(*(a + b for a, b in zip(total, done, strict=True)))
            progress(total.documents)
        gate.shut_out()
        return run.end(before, total, not stop())
    finally:
        gate.give_back()


def _until(stop: Callable[[], bool], orders: Iterator[Order]) -> Iterator[Order]:
    for order in orders:
        if stop():
            return
        yield order


def compact_stretch(archive: Archive, order: Order) -> Done:
    """One stretch, under the lease of whoever leads; Busy when that is over."""
    gate = archive.lent_gate(order.fence)
    run = Compaction(archive.catalog, gate, archive.settings.store, order.now)
    run.work(order.stretch, order.sparse, order.effort)
    return run.done


def stretches(catalog: Catalog) -> Iterator[Stretch]:
    """All documents, cut where a site ends."""
    start = last = ("", 0)
    count, site = 0, b""
    for name, row in listed(catalog):
        if count >= _MOST or (count >= DOCUMENTS and site_of(name) != site):
            yield Stretch(start, last)
            start, count = last, 0
        last, site = (name, row.id), site_of(name)
        count += 1
    yield Stretch(start, None)
