"""The ranks of all pages, put where search finds them."""

from __future__ import annotations

from letopis.archive import Archive
from letopis.archive.weights import Weights
from letopis.graph.graph import Snapshot
from letopis.graph.ranking import Ranked


def keep_ranks(archive: Archive, moment: Snapshot, ranked: Ranked) -> None:
    """Saves ranks of all pages as of now; answers of search are ordered by them until they are worked out again."""
    ranks = {moment.url(page): float(rank) for page, rank in zip(ranked.pages, ranked.ranks, strict=True)}
    known = archive.catalog.database.stream("SELECT id, url FROM resource", size=10_000)
    Weights.of((number, ranks[url]) for number, url in known if url in ranks).save(archive.folder)
