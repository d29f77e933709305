"""How fresh an archive is, as far as its own visits can tell."""

from __future__ import annotations

from letopis.archive import Archive
from letopis.catalog.queues import visit_records
from letopis.schedule import VisitState, estimated_freshness

_MOST = 20_000
"""Pages asked at most: the error of so large a sample is a third of a point."""


def freshness(archive: Archive) -> float | None:
    """The estimated share of copies that equal the live pages now; None before anything is visited again."""
    states = (VisitState.from_bytes(record) for record in visit_records(archive.catalog.database, _MOST))
    return estimated_freshness(states, archive.clock().timestamp())
