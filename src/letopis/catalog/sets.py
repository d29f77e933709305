"""Capture sets: what one check of a whole page recorded besides the check of the page.

A part of a set is a content, stored once for all sets, and a few bytes that belong to this check.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from letopis.catalog.database import Cursor, SqlRow
from letopis.catalog.schema import TopicTables, ensure_tables, has_no_check, has_table
from letopis.tuples import NamedTuple

SET_TABLES = """
CREATE TABLE IF NOT EXISTS capture_set (
    resource BIGINT NOT NULL, time BIGINT NOT NULL, part SMALLINT NOT NULL, content BIGINT NOT NULL,
    data {blob} NOT NULL, PRIMARY KEY (resource, time, part)
) {clustered};
"""
QUALITY_TABLES = """
CREATE TABLE IF NOT EXISTS set_quality (
    resource BIGINT NOT NULL, time BIGINT NOT NULL, data {blob} NOT NULL, PRIMARY KEY (resource, time)
) {clustered};
"""
_COLUMNS = "resource, time, part, content, data"
_NO_SET = (
    "NOT EXISTS (SELECT 1 FROM capture_set s WHERE s.resource = set_quality.resource AND s.time = set_quality.time)"
)


class SetPartRow(NamedTuple):
    """One part of the set of a page's check; the archive defines what `part` means."""

    resource: int
    time: int
    part: int
    content: int
    data: bytes


class SetParts(TopicTables):
    """An archive that never captured a whole page has no such table."""

    topic, table, ddl = "sets", "capture_set", SET_TABLES

    def add(self, cursor: Cursor, rows: Sequence[SetPartRow]) -> None:
        """Stores parts; known ones stay."""
        cursor.run_many(f"INSERT INTO capture_set ({_COLUMNS}) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", rows)

    def replace(self, cursor: Cursor, resource: int, rows: Sequence[SetPartRow]) -> None:
        """Makes the sets of a page these."""
        if self._made() and sorted(rows) != self.of(resource):
            cursor.run("DELETE FROM capture_set WHERE resource = ?", (resource,))
            self.add(cursor, rows)

    def of(self, resource: int, since: int = -(2**62), until: int = 2**62) -> list[SetPartRow]:
        """The parts of a page's sets in a span of time, both ends included, oldest set first."""
        where = "WHERE resource = ? AND time >= ? AND time <= ? ORDER BY resource, time, part"
        rows = self._all(f"SELECT {_COLUMNS} FROM capture_set {where}", (resource, since, until))
        return list(map(_part_row, rows))

    def beside(self, resource: int, time: int, part: int) -> list[int]:
        """The times of the last set up to a time and of the first after it that have a part; none to two."""
        found = []
        for condition in ("time <= ? ORDER BY time DESC", "time > ? ORDER BY time"):
            question = f"SELECT time FROM capture_set WHERE resource = ? AND part = ? AND {condition} LIMIT 1"
            row = self._one(question, (resource, part, time))
            found += [int(row[0])] if row else []
        return found

    def of_part(self, part: int) -> Iterator[SetPartRow]:
        """One part of all sets, page by page, oldest first."""
        if self._made():
            rows = self._database.stream(
                f"SELECT {_COLUMNS} FROM capture_set WHERE part = {part:d} ORDER BY resource, time"
            )
            yield from map(_part_row, rows)

    def has(self, resource: int, time: int, part: int) -> bool:
        """Whether a set of exactly this time has a part."""
        question = "SELECT 1 FROM capture_set WHERE resource = ? AND time = ? AND part = ?"
        return self._one(question, (resource, time, part)) is not None

    def drop_orphans(self, cursor: Cursor) -> None:
        """Removes the sets of checks that are gone."""
        if self._made():
            cursor.run(f"DELETE FROM capture_set WHERE {has_no_check(self.table)}")
            self._drop_qualities(cursor)

    def drop_dangling(self, cursor: Cursor) -> None:
        """Removes parts whose pages or contents are gone: later rows may get their numbers."""
        if self._made():
            cursor.run(
                "DELETE FROM capture_set WHERE resource NOT IN (SELECT id FROM resource) "
                "OR content NOT IN (SELECT id FROM content)"
            )
            self._drop_qualities(cursor)

    def keep_quality(self, resource: int, time: int, data: bytes) -> None:
        """Stores what was measured about a set, replacing earlier values."""
        ensure_tables(self._database, "set qualities", QUALITY_TABLES)
        with self._database.transaction() as cursor:
            cursor.run(
                "INSERT INTO set_quality (resource, time, data) VALUES (?, ?, ?) "
                "ON CONFLICT (resource, time) DO UPDATE SET data = excluded.data",
                (resource, time, data),
            )

    def quality(self, resource: int, time: int) -> bytes | None:
        """What was measured about a set; None if it was not measured."""
        if not has_table(self._database, "set_quality"):
            return None
        row = self._database.one("SELECT data FROM set_quality WHERE resource = ? AND time = ?", (resource, time))
        return bytes(row[0]) if row else None

    def _drop_qualities(self, cursor: Cursor) -> None:
        if has_table(self._database, "set_quality"):
            cursor.run(f"DELETE FROM set_quality WHERE {_NO_SET}")

    def lose(self, cursor: Cursor, content: int) -> None:
        """Removes the parts whose bytes are gone; the checks of page and members stay."""
        if self._made():
            cursor.run("DELETE FROM capture_set WHERE content = ?", (content,))


def _part_row(row: SqlRow) -> SetPartRow:
    resource, time, part, content, data = row
    return SetPartRow(resource, time, part, content, bytes(data))
