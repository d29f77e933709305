"""Counts over the whole catalogue."""

from __future__ import annotations

from typing import NamedTuple

from letopis.catalog.database import Database


class Totals(NamedTuple):
    """What `stats` shows of the catalogue."""

    documents: int
    versions: int
    checks: int
    contents: int
    raw_bytes: int
    hosts: int


def totals(database: Database) -> Totals:
    """Counted afresh; seconds on very large catalogues."""
    versions = _count(database, "SELECT count(*) FROM version")
    return Totals(
        documents=_count(database, "SELECT count(*) FROM resource WHERE checked IS NOT NULL"),
        versions=versions,
        checks=versions + _count(database, "SELECT count(*) FROM capture"),
        contents=_count(database, "SELECT count(*) FROM content"),
        raw_bytes=_count(
            database,
            "SELECT coalesce(sum(content.raw_bytes), 0) FROM version JOIN content ON content.id = version.content",
        ),
        hosts=_count(database, "SELECT count(*) FROM host"),
    )


def _count(database: Database, question: str) -> int:
    row = database.one(question)
    return int(row[0]) if row else 0
