"""The verb that counts: stats."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from letopis.archive import Archive
from letopis.cli.context import Given, verb
from letopis.graph import LinkIndex
from letopis.search import WordIndex


@verb("stats", "letopis stats", "letopis stats --json")
def stats_verb(given: Given) -> None:
    """Show totals of the archive: documents, versions, checks, bytes, links, and how far the indexes are behind."""
    with given.open(create=False) as archive:
        row = _totals(archive)
    given.output.row(row, "\n".join(f"{name.replace('_', ' '):26} {value}" for name, value in row.items()))


def _totals(archive: Archive) -> dict[str, Any]:
    """Counts and rates; `links_lag` and `search_lag` are versions that the indexes will take in when asked next.

    `names_lag` are those whose links do not help to find pages yet; they do when there are some more.
    """
    words = WordIndex(archive)
    links, behind = LinkIndex(archive).known()
    totals = replace(archive.stats(), links=links)
    return asdict(totals) | {
        "ratio": round(totals.pack_bytes / totals.raw_bytes, 4) if totals.raw_bytes else None,
        "catalog_bytes_per_version": round(totals.catalog_bytes / totals.versions, 1) if totals.versions else None,
        "links_lag": behind,
        "search_lag": words.lag(),
        "names_lag": words.names_lag(),
    }
