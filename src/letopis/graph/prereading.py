"""Pages read on a cluster for the index of links, handed over as a crawl hands over what it has read.

The index then takes in what lies there; what is missing it reads itself, with
the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from letopis.archive import Archive
from letopis.archive.handover import Handover
from letopis.archive.leads import Handed, pack_leads
from letopis.archive.spreading import Spread, pieces_of
from letopis.catalog.log import Logged, logged_since
from letopis.graph.follower import LinkIndex
from letopis.graph.rereading import page_of

PIECE = 250
"""Versions that a worker reads at once."""
_STRETCH = 20_000
"""Versions that lie handed over before they are taken in: far fewer than are kept."""


class Reach(NamedTuple):
    """Versions of the log with an id above `after`, up to `last`."""

    after: int
    last: int


def catch_up_with(
    spread: Spread, archive: Archive, index: LinkIndex, progress: Callable[[int], None] = lambda done: None
) -> int:
    """As `LinkIndex.catch_up`, with the pages read elsewhere; answers how many versions it took in.

    Less than a piece is read here: that takes less time than to ask others.
    """
    handover, done = Handover(archive.folder), 0
    while index.known()[1] >= PIECE:
        reaches = _reaches(archive, index.last)
        for versions, payload in spread.each(packed, reaches):
            handover.put(versions, payload)
        done += index.catch_up(partial(_further, progress, done), partial(_reached, index, reaches[-1].last))
    return done + index.catch_up(partial(_further, progress, done))


def _reaches(archive: Archive, after: int) -> list[Reach]:
    """The next stretch of the log, cut by what is there: numbers of versions have gaps."""
    rows = logged_since(archive.catalog.database, after, _STRETCH)
    ends = [piece[-1].id for piece in pieces_of(rows, PIECE)]
    return [Reach(*pair) for pair in pairwise([after, *ends])]


def _reached(index: LinkIndex, last: int) -> bool:
    return index.last >= last


def _further(progress: Callable[[int], None], before: int, count: int) -> None:
    progress(before + count)


def packed(archive: Archive, reach: Reach) -> tuple[list[int], bytes]:
    """What some versions say about links, as it is handed over."""
    rows = logged_since(archive.catalog.database, reach.after, PIECE)
    found = (_read(archive, row) for row in rows if row.id <= reach.last)
    return pack_leads(handed for handed in found if handed is not None)


def _read(archive: Archive, row: Logged) -> Handed | None:
    page = page_of(archive, row.id, archive.answers.final_url(row.extra) if row.extra else "")
    return None if page is None else Handed(row.id, row.time, row.sha1, page)
