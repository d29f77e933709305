"""What imports store beside checks: records as they were in their files, payloads by the digests that others gave them,
and revisits that still wait for the capture they refer to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate

from letopis.binary import ByteReader, decode_varint, encode_varint, length_prefixed, sha1_digest
from letopis.catalog.database import Cursor
from letopis.catalog.schema import RowReader, TopicTables, has_no_check, has_table
from letopis.errors import Damaged
from letopis.tuples import NamedTuple
from letopis.zstandard import ZstdError, compress, decompress

IMPORT_TABLES = """
CREATE TABLE IF NOT EXISTS source_record (
    resource BIGINT NOT NULL, time BIGINT NOT NULL, record BIGINT NOT NULL, data {blob} NOT NULL, content BIGINT,
    PRIMARY KEY (resource, time)
) {clustered};
CREATE TABLE IF NOT EXISTS source_frame (
    name {blob} NOT NULL, records INTEGER NOT NULL, data {blob} NOT NULL, PRIMARY KEY (name)
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
_FRAME_RECORDS = 64
_FRAME_BYTES = 256 * 1024
"""Records are compressed together, since they are similar: so many, or so many bytes, at once."""
_FRAME_LEVEL = 3
_IN_FRAME = b"\x07"
"""The prefix of the place of a record in a frame, before the name of the frame; no other data begins with it."""
_NAME_BYTES = 12
_FRAME_OF = f"substr(data, 2, {_NAME_BYTES})"


class SourceRecordRow(NamedTuple):
    """A record as it was in its file: its check, everything but its body, and the content with its original body.

    `record` is a key of its id, 0 if it has none. Without a content the body is that of the check. `data` may be a
    place in a frame.
    """

    resource: int
    time: int
    record: int
    data: bytes
    content: int | None


class PayloadRow(NamedTuple):
    """The digest that another archive gave a payload, and both digests of Letopis for the same."""

    digest: bytes
    identity: int
    sha1: bytes


class WaitingRevisit(NamedTuple):
    """A revisit whose body is not known yet; `data` is the whole revisit."""

    url_key: int
    time: int
    digest: bytes
    data: bytes


class ImportedRecords(TopicTables):
    """An archive into which nothing was imported has none of these tables."""

    topic, table, ddl = "imports", "source_record", IMPORT_TABLES

    def add(self, cursor: Cursor, rows: Sequence[SourceRecordRow]) -> None:
        """Stores records; known ones stay."""
        cursor.run_many(
            "INSERT INTO source_record (resource, time, record, data, content) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            _framed(cursor, rows),
        )

    def of(self, resource: int, since: int = -(2**62), until: int = 2**62) -> dict[int, SourceRecordRow]:
        """The records of a URL in a span of time, both ends included, by the times of their checks."""
        rows = self._all(
            "SELECT resource, time, record, data, content FROM source_record "
            "WHERE resource = ? AND time >= ? AND time <= ?",
            (resource, since, until),
        )
        return {row[1]: SourceRecordRow(row[0], row[1], row[2], bytes(row[3]), row[4]) for row in rows}

    def unframed(self, rows: Collection[SourceRecordRow]) -> list[SourceRecordRow]:
        """Records with their data loaded; Damaged if it cannot be read."""
        return _unframed(self._database, rows)

    def bodies(self) -> Iterator[SourceRecordRow]:
        """Those with a separate body, URL by URL, oldest first; without their data."""
        if self._made():
            rows = self._database.stream(
                "SELECT resource, time, content FROM source_record WHERE content IS NOT NULL ORDER BY resource, time"
            )
            yield from (SourceRecordRow(row[0], row[1], 0, b"", row[2]) for row in rows)

    def has_body(self, resource: int, time: int) -> bool:
        """Whether the record of a check has a separate body."""
        question = "SELECT 1 FROM source_record WHERE resource = ? AND time = ? AND content IS NOT NULL"
        return self._one(question, (resource, time)) is not None

    def add_payloads(self, cursor: Cursor, rows: Collection[PayloadRow]) -> None:
        """Stores which content other archives mean by a digest; the first one counts."""
        cursor.run_many("INSERT INTO payload (digest, identity, sha1) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", rows)

    def payloads(self, digests: Collection[bytes]) -> dict[bytes, PayloadRow]:
        """The contents that digests of other archives mean, as far as they are known."""
        wanted, found = sorted(digests), dict[bytes, PayloadRow]()
        for start in range(0, len(wanted) if self._made() else 0, _ASKED_AT_ONCE):
            part = wanted[start : start + _ASKED_AT_ONCE]
            marks = ", ".join("?" * len(part))
            rows = self._database.all(f"SELECT digest, identity, sha1 FROM payload WHERE digest IN ({marks})", part)
            found.update((bytes(row[0]), PayloadRow(bytes(row[0]), row[1], bytes(row[2]))) for row in rows)
        return found

    def wait(self, cursor: Cursor, rows: Sequence[WaitingRevisit]) -> int:
        """Stores revisits until their bodies arrive; returns how many are new."""
        return cursor.run_many(
            "INSERT INTO waiting_revisit (url_key, time, digest, data) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", rows
        )

    def waiting(self, after: WaitingRevisit | None, limit: int) -> list[WaitingRevisit]:
        """Revisits that wait, in the order of their keys, those after a known one."""
        place = (after.url_key, after.time, after.digest) if after else (-(2**63), -(2**62), b"")
        rows = self._all(
            "SELECT url_key, time, digest, data FROM waiting_revisit WHERE (url_key, time, digest) > (?, ?, ?) "
            "ORDER BY url_key, time, digest LIMIT ?",
            (*place, limit),
        )
        return [WaitingRevisit(row[0], row[1], bytes(row[2]), bytes(row[3])) for row in rows]

    def stop_waiting(self, cursor: Cursor, rows: Sequence[WaitingRevisit]) -> None:
        """Removes revisits that were recorded."""
        cursor.run_many(
            "DELETE FROM waiting_revisit WHERE url_key = ? AND time = ? AND digest = ?", [row[:3] for row in rows]
        )

    def drop_orphans(self, cursor: Cursor) -> None:
        """Removes records whose checks are gone."""
        if self._made():
            cursor.run(f"DELETE FROM source_record WHERE {has_no_check(self.table)}")
        if self._has_frames():
            _drop_unused(cursor)

    def drop_dangling(self, cursor: Cursor) -> None:
        """Removes records whose URLs, bodies or frames are gone: later rows may get their numbers."""
        if self._made():
            cursor.run(
                "DELETE FROM source_record WHERE resource NOT IN (SELECT id FROM resource) "
                "OR content IS NOT NULL AND content NOT IN (SELECT id FROM content)"
            )
        if self._has_frames():
            cursor.run(
                f"DELETE FROM source_record WHERE substr(data, 1, 1) = ? AND {_FRAME_OF} NOT IN "
                "(SELECT name FROM source_frame)",
                (_IN_FRAME,),
            )

    def lose(self, cursor: Cursor, content: int) -> None:
        """Removes the records whose bodies are gone; their checks stay."""
        if self._made():
            cursor.run("DELETE FROM source_record WHERE content = ?", (content,))

    def _has_frames(self) -> bool:
        return self._made() and has_table(self._database, "source_frame")


# Frames


def _framed(cursor: Cursor, rows: Sequence[SourceRecordRow]) -> list[SourceRecordRow]:
    """Records that point into frames, which are written here."""
    frames, placed = [], []
    for part in _portions(rows):
        texts = [length_prefixed(row.data) for row in part]
        data = compress(b"".join(texts), _FRAME_LEVEL)
        name = sha1_digest(data)[:_NAME_BYTES]
        frames.append((name, len(part), data))
        starts = accumulate(map(len, texts), initial=0)
        placed += [
            SourceRecordRow(row[0], row[1], row[2], _IN_FRAME + name + encode_varint(at), row[4])
            for row, at in zip(part, starts, strict=False)
        ]
    cursor.run_many("INSERT INTO source_frame (name, records, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", frames)
    return placed


def _portions(rows: Sequence[SourceRecordRow]) -> Iterator[list[SourceRecordRow]]:
    part: list[SourceRecordRow] = []
    size = 0
    for row in rows:
        if part and (len(part) >= _FRAME_RECORDS or size + len(row.data) > _FRAME_BYTES):
            yield part
            part, size = [], 0
        part.append(row)
        size += len(row.data)
    if part:
        yield part


def _unframed(reader: RowReader, rows: Iterable[SourceRecordRow]) -> list[SourceRecordRow]:
    texts: dict[bytes, bytes] = {}
    return [
        row._replace(data=_data_in_frame(reader, row.data, texts)) if row.data.startswith(_IN_FRAME) else row
        for row in rows
    ]


def _data_in_frame(reader: RowReader, place: bytes, texts: dict[bytes, bytes]) -> bytes:
    """The data at a place; `texts` caches open frames."""
    name, at = place[1 : 1 + _NAME_BYTES], decode_varint(place, 1 + _NAME_BYTES)[0]
    if name not in texts:
        found = reader.one("SELECT data FROM source_frame WHERE name = ?", (name,))
        try:
            texts[name] = decompress(bytes(found[0])) if found else b""
        except ZstdError as error:
            raise Damaged(f"imported records cannot be read ({error}); import their file again") from None
    return ByteReader(texts[name], at, what="imported record").text()


def _drop_unused(cursor: Cursor) -> None:
    """Removes frames that are not referred to; those with removed records are rewritten with the others."""
    used = f"SELECT {_FRAME_OF} AS name, count(*) AS used FROM source_record WHERE substr(data, 1, 1) = ? GROUP BY 1"
    thin = cursor.all(
        f"SELECT f.name, u.used FROM source_frame f LEFT JOIN ({used}) u ON u.name = f.name "
        "WHERE coalesce(u.used, 0) < f.records",
        (_IN_FRAME,),
    )
    for start in range(0, len(thin), _ASKED_AT_ONCE):
        names = [bytes(row[0]) for row in thin[start : start + _ASKED_AT_ONCE]]
        marks = ", ".join("?" * len(names))
        found = cursor.all(
            "SELECT resource, time, record, data, content FROM source_record "
            f"WHERE substr(data, 1, 1) = ? AND {_FRAME_OF} IN ({marks}) ORDER BY data",
            (_IN_FRAME, *names),
        )
        rows = _unframed(cursor, [SourceRecordRow(row[0], row[1], row[2], bytes(row[3]), row[4]) for row in found])
        cursor.run_many(
            "UPDATE source_record SET data = ? WHERE resource = ? AND time = ?",
            [(row.data, row.resource, row.time) for row in _framed(cursor, rows)],
        )
        cursor.run(f"DELETE FROM source_frame WHERE name IN ({marks})", names)
