"""Verbs that look after the archive: stats, verify, compact."""

from __future__ import annotations

from dataclasses import asdict

from letopis.cli.context import Given, verb


@verb("stats", "letopis stats", "letopis stats --json")
def stats_verb(given: Given) -> None:
    """Show totals of the archive: documents, versions, checks, bytes."""
    with given.open(create=False) as archive:
        totals = archive.stats()
    rates = {
        "ratio": round(totals.pack_bytes / totals.raw_bytes, 4) if totals.raw_bytes else None,
        "catalog_bytes_per_version": round(totals.catalog_bytes / totals.versions, 1) if totals.versions else None,
    }
    row = asdict(totals) | rates
    given.output.row(row, "\n".join(f"{name.replace('_', ' '):26} {value}" for name, value in row.items()))
