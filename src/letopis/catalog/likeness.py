"""Hashes that pages with nearly the same text share: what the hash service of a crawler's fleet is for.

A row says that a page had, in one of its newest versions, a band of shingles
with this hash. Rows are only added: a page that was found by a hash it has no
longer is a candidate like any other, and candidates are compared anyway. All
machines read and write the same table; where it is partitioned, by the hash.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from letopis.catalog.database import Database
from letopis.catalog.extras import ensure, present
from letopis.catalog.partitions import partition, partitions_of

_TOPIC = "likeness"
TABLES = """
CREATE TABLE IF NOT EXISTS likeness (
    band BIGINT NOT NULL, resource BIGINT NOT NULL, PRIMARY KEY (band, resource)
) {clustered};
CREATE TABLE IF NOT EXISTS likeness_mark (id INTEGER PRIMARY KEY, last BIGINT NOT NULL);
"""
_SIFT = "CREATE TEMPORARY TABLE IF NOT EXISTS likeness_new (band BIGINT NOT NULL, resource BIGINT NOT NULL)"
_KEEP = "INSERT INTO likeness SELECT DISTINCT band, resource FROM likeness_new WHERE true ON CONFLICT DO NOTHING"
_MARK = (
    "INSERT INTO likeness_mark (id, last) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET last = excluded.last "
    "WHERE likeness_mark.last < excluded.last"
)


class Likeness:
    """The hashes of one archive; they follow the log of versions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def last(self) -> int:
        """The id of the last version whose hashes are known."""
        if not present(self._database, "likeness_mark"):
            return 0
        row = self._database.one("SELECT last FROM likeness_mark WHERE id = 1")
        return int(row[0]) if row else 0

    def learn(self, rows: Iterable[tuple[int, int]], last: int) -> None:
        """Adds (hash, page) for versions up to `last`; those that are known stay as they are."""
        self._ensure()
        with self._database.transaction() as cursor:
            cursor.run(_SIFT)
            cursor.bulk("likeness_new", ("band", "resource"), rows)
            cursor.run(_KEEP)
            cursor.run("DELETE FROM likeness_new")
            cursor.run(_MARK, (last,))

    def sharing(self, bands: Collection[int]) -> list[int]:
        """The pages that have one of the hashes."""
        if not bands or not present(self._database, "likeness"):
            return []
        marks = ", ".join("?" * len(bands))
        rows = self._database.all(f"SELECT DISTINCT resource FROM likeness WHERE band IN ({marks})", tuple(bands))
        return sorted(int(row[0]) for row in rows)

    def _ensure(self) -> None:
        """The table lies in as many partitions as the others do."""
        made = present(self._database, "likeness")
        ensure(self._database, _TOPIC, TABLES)
        if not made and self._database.dialect.name == "postgresql":
            partition(self._database, max(1, partitions_of(self._database, "capture")))
