"""What imports brought beside checks: records as they stood in their files, payloads by the digests that others
gave them, and revisits that still wait for the capture they refer to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from letopis.catalog.database import Cursor, Database
from letopis.catalog.schema import ensure_tables, has_table
from letopis.tuples import NamedTuple

IMPORT_TABLES = """
CREATE TABLE IF NOT EXISTS source_record (
    resource BIGINT NOT NULL, time BIGINT NOT NULL, record BIGINT NOT NULL, data {blob} NOT NULL, content BIGINT,
    PRIMARY KEY (resource, time)
) {clustered};
CREATE TABLE IF NOT EXISTS payload (
    digest {blob} NOT NULL, identity BIGINT NOT NULL, sha1 {blob} NOT NULL, PRIMARY KEY (digest)
) {clustered};
CREATE TABLE IF NOT EXISTS waiting_revisit (
    url_key BIGINT NOT NULL, time BIGINT NOT NULL, digest {blob} NOT NULL, data {blob} NOT NULL,
    PRIMARY KEY (url_key, time, digest)
) {clustered};
"""
_ASKED_AT_ONCE = 250


class SourceRecordRow(NamedTuple):
    """A record as it stood in its file: of which check, all but its body, and the content that is its body as it came.

    `record` is a key of its id, 0 when it has none. Without a content the
    body is that of the check.
    """

    resource: int
    time: int
    record: int
    data: bytes
    content: int | None


class PayloadRow(NamedTuple):
    """The digest that somebody gave a payload, and both of our own for the same."""

    digest: bytes
    identity: int
    sha1: bytes


class WaitingRevisit(NamedTuple):
    """A revisit of which no body is known yet; `data` is the whole of it."""

    url_key: int
    time: int
    digest: bytes
    data: bytes


class ImportedRecords:
    """An archive into which nothing was imported has none of these tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ensure(self) -> None:
        """Makes the tables; must not be called inside a transaction."""
        ensure_tables(self._database, "imports", IMPORT_TABLES)

    def add(self, cursor: Cursor, rows: Sequence[SourceRecordRow]) -> None:
        """Keeps records; what is known already stays."""
        cursor.run_many(
            "INSERT INTO source_record (resource, time, record, data, content) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            rows,
        )

    def of(self, resource: int, since: int = -(2**62), until: int = 2**62) -> dict[int, SourceRecordRow]:
        """The records of a URL in a span of time, both ends included, by the times of their checks."""
        if not self._made():
            return {}
        rows = self._database.all(
            "SELECT resource, time, record, data, content FROM source_record "
            "WHERE resource = ? AND time >= ? AND time <= ?",
            (resource, since, until),
        )
        return {row[1]: SourceRecordRow(row[0], row[1], row[2], bytes(row[3]), row[4]) for row in rows}

    def bodies(self) -> Iterator[SourceRecordRow]:
        """Those with a body of their own, URL by URL, oldest first; without their data."""
        if self._made():
            rows = self._database.stream(
                "SELECT resource, time, content FROM source_record WHERE content IS NOT NULL ORDER BY resource, time"
            )
            yield from (SourceRecordRow(row[0], row[1], 0, b"", row[2]) for row in rows)

    def has_body(self, resource: int, time: int) -> bool:
        """Whether the record of a check has a body of its own."""
        question = "SELECT 1 FROM source_record WHERE resource = ? AND time = ? AND content IS NOT NULL"
        return self._made() and self._database.one(question, (resource, time)) is not None

    def add_payloads(self, cursor: Cursor, rows: Collection[PayloadRow]) -> None:
        """Notes which of our contents others mean by a digest; the first one counts."""
        cursor.run_many("INSERT INTO payload (digest, identity, sha1) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", rows)

    def payloads(self, digests: Collection[bytes]) -> dict[bytes, PayloadRow]:
        """The contents that digests of others mean, as far as they are known."""
        wanted, found = sorted(digests), dict[bytes, PayloadRow]()
        for start in range(0, len(wanted) if self._made() else 0, _ASKED_AT_ONCE):
            part = wanted[start : start + _ASKED_AT_ONCE]
            marks = ", ".join("?" * len(part))
            rows = self._database.all(f"SELECT digest, identity, sha1 FROM payload WHERE digest IN ({marks})", part)
            found.update((bytes(row[0]), PayloadRow(bytes(row[0]), row[1], bytes(row[2]))) for row in rows)
        return found

    def wait(self, cursor: Cursor, rows: Sequence[WaitingRevisit]) -> int:
        """Keeps revisits until their bodies come; answers how many did not wait already."""
        return cursor.run_many(
            "INSERT INTO waiting_revisit (url_key, time, digest, data) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", rows
        )

    def waiting(self, after: WaitingRevisit | None, limit: int) -> list[WaitingRevisit]:
        """Revisits that wait, in the order of their keys, those behind a known one."""
        if not self._made():
            return []
        place = (after.url_key, after.time, after.digest) if after else (-(2**63), -(2**62), b"")
        rows = self._database.all(
            "SELECT url_key, time, digest, data FROM waiting_revisit WHERE (url_key, time, digest) > (?, ?, ?) "
            "ORDER BY url_key, time, digest LIMIT ?",
            (*place, limit),
        )
        return [WaitingRevisit(row[0], row[1], bytes(row[2]), bytes(row[3])) for row in rows]

    def stop_waiting(self, cursor: Cursor, rows: Sequence[WaitingRevisit]) -> None:
        """Forgets revisits that were recorded."""
        cursor.run_many(
            "DELETE FROM waiting_revisit WHERE url_key = ? AND time = ? AND digest = ?", [row[:3] for row in rows]
        )

    def drop_orphans(self, cursor: Cursor) -> None:
        """Forgets records whose checks are gone."""
        if self._made():
            cursor.run(
                "DELETE FROM source_record WHERE NOT EXISTS (SELECT 1 FROM version v "
                "WHERE v.resource = source_record.resource AND v.time = source_record.time) "
                "AND NOT EXISTS (SELECT 1 FROM capture c "
                "WHERE c.resource = source_record.resource AND c.time = source_record.time)"
            )

    def drop_dangling(self, cursor: Cursor) -> None:
        """Forgets records whose URLs or bodies are gone: rows that come later may get their numbers."""
        if self._made():
            cursor.run(
                "DELETE FROM source_record WHERE resource NOT IN (SELECT id FROM resource) "
                "OR content IS NOT NULL AND content NOT IN (SELECT id FROM content)"
            )

    def lose(self, cursor: Cursor, content: int) -> None:
        """Forgets the records whose bodies are gone; their checks stay."""
        if self._made():
            cursor.run("DELETE FROM source_record WHERE content = ?", (content,))

    def _made(self) -> bool:
        return has_table(self._database, "source_record")
