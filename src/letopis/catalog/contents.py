"""Contents by digest with the places of their bytes, and response headers, each stored once.

Also what servers sent for versions that a browser rendered.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from json.encoder import encode_basestring

import xxhash

from letopis.catalog.database import Cursor, Database
from letopis.catalog.schema import ContentRow, RowReader, TopicTables, has_table
from letopis.model import Headers
from letopis.tuples import NamedTuple
from letopis.zstandard import zstd

ABSENT = "absent"
"""Method of a content that a clone has not fetched yet; its place is that in the origin."""

DIGESTS_AT_ONCE = 250
"""Digests that one statement may contain."""
_CONTENT_COLUMNS = "id, identity, sha1, raw_bytes, stored_bytes, method, pack, place, slot"


class Contents:
    """Where each content is; a content is stored once for all URLs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, identity: int, sha1: bytes, reader: RowReader | None = None) -> ContentRow | None:
        """The content with both digests, or None."""
        rows = (reader or self._database).all(f"SELECT {_CONTENT_COLUMNS} FROM content WHERE identity = ?", (identity,))
        return next((ContentRow(*row) for row in rows if row[2] == sha1), None)

    def find_many(self, wanted: Collection[tuple[int, bytes]], reader: RowReader) -> dict[tuple[int, bytes], int]:
        """Ids of those of many contents that are stored, by both digests."""
        keys = sorted({identity for identity, _ in wanted})
        found: dict[tuple[int, bytes], int] = {}
        for start in range(0, len(keys), DIGESTS_AT_ONCE):
            part = keys[start : start + DIGESTS_AT_ONCE]
            marks = ", ".join("?" * len(part))
            rows = reader.all(f"SELECT identity, sha1, id FROM content WHERE identity IN ({marks}) ORDER BY id", part)
            for identity, sha1, number in rows:
                found.setdefault((int(identity), bytes(sha1)), int(number))
        return found

    def by_id(self, number: int, reader: RowReader | None = None) -> ContentRow | None:
        """The row of a known id."""
        row = (reader or self._database).one(f"SELECT {_CONTENT_COLUMNS} FROM content WHERE id = ?", (number,))
        return ContentRow(*row) if row else None

    def is_here(self, number: int, most: int) -> bool:
        """Whether a content has at most so many bytes, and is in a pack of this archive."""
        sql = f"SELECT 1 FROM content WHERE id = ? AND raw_bytes <= ? AND method != '{ABSENT}'"
        return self._database.one(sql, (number, most)) is not None

    def add(self, cursor: Cursor, row: ContentRow) -> int:
        """Registers a content (its id is given out here)."""
        made = cursor.one(
            "INSERT INTO content (identity, sha1, raw_bytes, stored_bytes, method, pack, place, slot) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            row[1:],
        )
        assert made is not None
        return int(made[0])

    def add_many(self, cursor: Cursor, rows: Sequence[ContentRow]) -> Sequence[int]:
        """Registers many contents; their ids in the same order."""
        numbers = cursor.numbers("content", len(rows))
        filled = [(number, *row[1:]) for number, row in zip(numbers, rows, strict=True)]
        if filled:
            cursor.bulk("content", _CONTENT_COLUMNS.split(", "), filled)
        return numbers

    def move(self, cursor: Cursor, moves: Iterable[tuple[int, str, int, int, int, int]]) -> None:
        """New places after compaction: rows (stored_bytes, method, pack, place, slot, id)."""
        cursor.run_many(
            "UPDATE content SET stored_bytes = ?, method = ?, pack = ?, place = ?, slot = ? WHERE id = ?", moves
        )

    def correct(self, cursor: Cursor, row: ContentRow) -> None:
        """Corrects a row that damage has changed."""
        cursor.run(
            "UPDATE content SET identity = ?, sha1 = ?, raw_bytes = ?, stored_bytes = ?, method = ?, pack = ?, "
            "place = ?, slot = ? WHERE id = ?",
            (*row[1:], row.id),
        )

    def packs(self, reader: RowReader | None = None) -> set[int]:
        """Packs that contain some content."""
        rows = (reader or self._database).all("SELECT DISTINCT pack FROM content WHERE method != ?", (ABSENT,))
        return {int(row[0]) for row in rows}

    def last(self) -> tuple[int, int, int] | None:
        """Pack, place and slot of the content that was added last; None if there is none, or it has no bytes."""
        row = self._database.one("SELECT pack, place, slot, method FROM content ORDER BY id DESC LIMIT 1")
        return None if row is None or row[3] == ABSENT else (int(row[0]), int(row[1]), int(row[2]))

    def highest(self) -> int:
        """The highest number of a pack with some content; 0 without any."""
        return self._database.count("SELECT max(pack) FROM content WHERE method != ?", (ABSENT,))

    def mark(self) -> tuple[int, int, int] | None:
        """Up to where the catalogue knows the packs: highest number, a log, bytes of it; None if it has no mark."""
        row = self._database.one("SELECT value FROM meta WHERE name = 'packs'")
        parts = str(row[0]).split() if row else []
        if len(parts) != 3 or not all(part.isdecimal() for part in parts):
            return None
        highest, log, end = map(int, parts)
        return highest, log, end

    def set_mark(self, cursor: Cursor, mark: tuple[int, int, int]) -> None:
        """Everything up to there is in this catalogue, or was dropped from it, when the transaction has committed."""
        cursor.run(
            "INSERT INTO meta (name, value) VALUES ('packs', ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE meta.value != excluded.value",
            (" ".join(map(str, mark)),),
        )

    def lost_packs(self) -> frozenset[int]:
        """The packs of which a repair gave contents up; one that comes back holds what is not in the catalogue."""
        row = self._database.one("SELECT value FROM meta WHERE name = 'lost_packs'")
        return frozenset(int(part) for part in str(row[0]).split() if part.isdecimal()) if row else frozenset()

    def set_lost_packs(self, cursor: Cursor, packs: Collection[int]) -> None:
        """Those from now on."""
        cursor.run(
            "INSERT INTO meta (name, value) VALUES ('lost_packs', ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (" ".join(map(str, sorted(packs))),),
        )

    def used(self) -> dict[int, int]:
        """Stored bytes of all contents, by pack."""
        rows = self._database.all("SELECT pack, sum(stored_bytes) FROM content GROUP BY pack")
        return {int(pack): int(used) for pack, used in rows}

    def absent(self) -> int:
        """How many contents a clone has not fetched yet."""
        return self._database.count("SELECT count(*) FROM content WHERE method = ?", (ABSENT,))

    def count_checked(self) -> int:
        """How many contents are those of checks; contents beside checks are not counted."""
        return self._database.count(
            "SELECT count(*) FROM content WHERE id IN (SELECT content FROM version) "
            "OR id IN (SELECT content FROM capture WHERE content IS NOT NULL)"
        )

    def all(self) -> Iterator[ContentRow]:
        """Every content in the order of recording."""
        return (
            ContentRow(*row) for row in self._database.stream(f"SELECT {_CONTENT_COLUMNS} FROM content ORDER BY id")
        )

    def drop_unused(self, cursor: Cursor) -> int:
        """Removes contents that no version, no capture, no rendering, no imported record and no set refers to."""
        others = [table for table in ("rendering", "source_record", "capture_set") if has_table(self._database, table)]
        unused = "id NOT IN (SELECT content FROM version)"
        for table in ("capture", *others):
            unused += f" AND id NOT IN (SELECT content FROM {table} WHERE content IS NOT NULL)"
        return cursor.run(f"DELETE FROM content WHERE {unused}")


VOLATILE_HEADERS = frozenset(
    {"date", "age", "expires", "set-cookie", "x-request-id", "x-runtime", "x-timer", "cf-ray", "via"}
)
"""Fields that change with each answer and do not make a new record."""

_COMMON_HEADERS = (
    '[["Server","nginx"],["Server","Apache"],["Date","Mon, 01 Jan 2024 00:00:00 GMT"],["Content-Type",'
    '"text/html; charset=utf-8"],["Content-Length","0"],["Connection","keep-alive"],["Cache-Control","no-cache"],'
    '["Content-Encoding","gzip"],["Vary","Accept-Encoding"],["ETag","\\"W/"],["Accept-Ranges","bytes"],'
    '["Last-Modified","Sun, 01 Feb 2026 12:00:00 GMT"],["Set-Cookie",""],["Expires",""],["Location","https://www."],'
    '["Transfer-Encoding","chunked"],["Strict-Transport-Security","max-age=31536000"],["Content-Type","text/html"]]'
)
_CONTENT_TYPE = re.compile(rb'\["content-type","\s*([^"\\;,\s]+)', re.IGNORECASE)
_VOLATILE_NAME = re.compile(rb'\["(?:%b)"' % b"|".join(map(str.encode, sorted(VOLATILE_HEADERS))), re.IGNORECASE)
_HEADER_DICTIONARY = _COMMON_HEADERS.encode()
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
"""How records of the first archives begin; a deflate stream cannot begin with this."""
_WINDOW_BITS = -12
_HEADER_PACKER = zlib.compressobj(9, zlib.DEFLATED, _WINDOW_BITS, 5, zdict=_HEADER_DICTIONARY)
"""Has read only the dictionary: copied for each record."""
_HEADER_UNPACKER = zlib.decompressobj(_WINDOW_BITS, zdict=_HEADER_DICTIONARY)
_read_json = json.JSONDecoder().raw_decode
_CACHED_RECORDS = 10_000
_RECORDS_AT_ONCE = 250


VolatileFields = tuple[tuple[int, str, str], ...]
"""Position, name and value of the fields that change at each answer."""


class HeaderPlace(NamedTuple):
    """The record for some headers, and their volatile fields if the record has others."""

    id: int
    own: VolatileFields | None


class _KnownRecord(NamedTuple):
    id: int
    volatile: VolatileFields


class HeaderRecords:
    """Stores header lists; equal ones (volatile fields aside) share one record."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._recent: dict[int, _KnownRecord] = {}
        self._placed: dict[Headers, HeaderPlace] = {}
        """Records of the batch that was prepared last."""

    def add(self, cursor: Cursor, headers: Headers) -> int:
        """The id of the record for these headers."""
        return self.place(cursor, headers).id

    def place(self, cursor: Cursor, headers: Headers) -> HeaderPlace:
        """The same with the fields in which these headers differ from it."""
        place = self._placed.get(headers)
        if place is None:
            fingerprint = _headers_fingerprint(headers)
            place = _place_of(headers, self._recent.get(fingerprint) or self._found(cursor, fingerprint, headers))
        return place

    def _found(self, cursor: Cursor, fingerprint: int, headers: Headers) -> _KnownRecord:
        row = cursor.one("SELECT id, data FROM head WHERE fingerprint = ?", (fingerprint,))
        row = row or cursor.one(
            "INSERT INTO head (fingerprint, data) VALUES (?, ?) RETURNING id, data",
            (fingerprint, _pack_headers(headers)),
        )
        assert row is not None
        known = _KnownRecord(int(row[0]), _volatile_in_record(bytes(row[1])))
        self._remember(fingerprint, known)
        return known

    def learn(self, cursor: Cursor, many: Iterable[Headers]) -> None:
        """Prepares the records of many headers in a few statements for later calls of `add`."""
        if len(self._recent) > _CACHED_RECORDS // 2:
            self._recent.clear()
        marks = {headers: _headers_fingerprint(headers) for headers in dict.fromkeys(many)}
        fresh = {mark: headers for headers, mark in marks.items() if mark not in self._recent}
        for fingerprint, number, data in self._stored(cursor, list(fresh)):
            self._recent[fingerprint] = _KnownRecord(number, _volatile_in_record(bytes(data)))
            fresh.pop(fingerprint, None)
        numbers = cursor.numbers("head", len(fresh))
        rows = [(number, mark, _pack_headers(fresh[mark])) for number, mark in zip(numbers, fresh, strict=True)]
        if rows:
            cursor.bulk("head", ("id", "fingerprint", "data"), rows)
        self._recent.update((mark, _KnownRecord(number, volatile_fields(fresh[mark]))) for number, mark, _ in rows)
        self._placed = {headers: _place_of(headers, self._recent[mark]) for headers, mark in marks.items()}

    @staticmethod
    def _stored(cursor: Cursor, marks: Sequence[int]) -> Iterator[tuple[int, int, bytes]]:
        for start in range(0, len(marks), _RECORDS_AT_ONCE):
            part = marks[start : start + _RECORDS_AT_ONCE]
            places = ", ".join("?" * len(part))
            yield from cursor.all(f"SELECT fingerprint, id, data FROM head WHERE fingerprint IN ({places})", part)

    def _remember(self, fingerprint: int, known: _KnownRecord) -> None:
        if len(self._recent) >= _CACHED_RECORDS:
            self._recent.clear()
        self._recent[fingerprint] = known

    def forget(self) -> None:
        """After a rolled back transaction, ids handed out inside it mean nothing."""
        self._recent.clear()
        self._placed.clear()

    def get(self, number: int, reader: RowReader | None = None) -> Headers:
        """The headers of a record."""
        row = (reader or self._database).one("SELECT data FROM head WHERE id = ?", (number,))
        return unpack_headers(bytes(row[0])) if row else ()

    @staticmethod
    def read(data: bytes) -> Headers:
        """The headers of a record that another query returned."""
        return unpack_headers(data)

    def types(self, numbers: Collection[int]) -> dict[int, str]:
        """The media types of many records at once, lower-case, without parameters; empty if none is given."""
        wanted = sorted(numbers)
        found: dict[int, str] = {}
        for start in range(0, len(wanted), 500):
            part = wanted[start : start + 500]
            marks = ", ".join("?" * len(part))
            rows = self._database.all(f"SELECT id, data FROM head WHERE id IN ({marks})", part)
            found.update((int(row[0]), _media_type(bytes(row[1]))) for row in rows)
        return found


def _place_of(headers: Headers, known: _KnownRecord) -> HeaderPlace:
    own = volatile_fields(headers)
    return HeaderPlace(known.id, None if own == known.volatile else own)


def _volatile_in_record(data: bytes) -> VolatileFields:
    """The volatile fields of a record, which is read only if it may have some: each batch needs hundreds."""
    text = _inflate_record(data)
    return volatile_fields(_headers_of_json(text)) if _VOLATILE_NAME.search(text) is not None else ()


def _headers_of_json(text: bytes) -> Headers:
    fields, _ = _read_json(text.decode("utf-8", "surrogatepass"))
    return tuple([(name, value) for name, value in fields])


@lru_cache(maxsize=1024)
def volatile_fields(headers: Headers) -> VolatileFields:
    """The fields that alone do not make a new record."""
    return tuple(
        [(place, name, value) for place, (name, value) in enumerate(headers) if name.lower() in VOLATILE_HEADERS]
    )


def with_volatile_fields(headers: Headers, own: VolatileFields) -> Headers:
    """Headers of a shared record with the volatile fields of one answer in their places."""
    lasting = [(name, value) for name, value in headers if name.lower() not in VOLATILE_HEADERS]
    for place, name, value in own:
        lasting.insert(place, (name, value))
    return tuple(lasting)


def _headers_fingerprint(headers: Headers) -> int:
    lasting = "\n".join([f"{low}:{value}" for name, value in headers if (low := name.lower()) not in VOLATILE_HEADERS])
    return xxhash.xxh3_64_intdigest(lasting.encode("utf-8", "surrogatepass")) - 2**63


def _pack_headers(headers: Headers) -> bytes:
    """Deflate, not zstd: as small on such short texts, and its states are created 15 times as fast."""
    packer = _HEADER_PACKER.copy()
    return packer.compress(headers_json(headers)) + packer.flush()


@lru_cache(maxsize=1024)
def headers_json(headers: Headers) -> bytes:
    """Header fields as compact JSON. Cached: a pack has them with the content, the catalogue as a record."""
    # Piece by piece, in half the time of an encoder: each new page has headers of its own.
    fields = ",".join([f"[{encode_basestring(name)},{encode_basestring(value)}]" for name, value in headers])
    return f"[{fields}]".encode("utf-8", "surrogatepass")


def _inflate_record(data: bytes) -> bytes:
    if data.startswith(_ZSTD_MAGIC):
        return zstd.decompress(data, zstd_dict=_zstd_dictionary())
    return _HEADER_UNPACKER.copy().decompress(data)


@lru_cache(maxsize=1)
def _zstd_dictionary() -> zstd.ZstdDict:
    return zstd.ZstdDict(_HEADER_DICTIONARY, is_raw=True)


def _media_type(data: bytes) -> str:
    """Found by searching, without parsing the whole record: lists of captures need thousands."""
    match = _CONTENT_TYPE.search(_inflate_record(data))
    return match[1].decode("ascii", "replace").strip().lower() if match else ""


@lru_cache(maxsize=1024)
def unpack_headers(data: bytes) -> Headers:
    """The header fields that a record holds."""
    return _headers_of_json(_inflate_record(data))


RENDERING_TABLES = """
CREATE TABLE IF NOT EXISTS rendering (
    version BIGINT NOT NULL, content BIGINT NOT NULL, head BIGINT NOT NULL, PRIMARY KEY (version)
) {clustered};
"""


class RenderingSource(NamedTuple):
    """The answer of a server, by the ids of its content and its header record."""

    content: int
    head: int


class RenderingSourceRow(NamedTuple):
    """The same with the version that was rendered from it."""

    resource: int
    time: int
    status: int
    content: int
    head: int


class Renderings(TopicTables):
    """Answers of rendered versions; an archive in which no browser ever rendered a page has none."""

    topic, table, ddl = "renderings", "rendering", RENDERING_TABLES

    def add(self, cursor: Cursor, version: int, sent: RenderingSource) -> None:
        """Stores what a version was rendered from; known rows stay."""
        cursor.run(
            "INSERT INTO rendering (version, content, head) VALUES (?, ?, ?) ON CONFLICT (version) DO NOTHING",
            (version, *sent),
        )

    def of(self, version: int) -> RenderingSource | None:
        """What a version was rendered from; None if it is what the server sent."""
        row = self._one("SELECT content, head FROM rendering WHERE version = ?", (version,))
        return RenderingSource(*row) if row else None

    def are_any(self) -> bool:
        """Whether a browser ever rendered a page here."""
        return self._made()

    def has(self, resource: int, time: int) -> bool:
        """Whether a version of exactly this time was rendered."""
        question = (
            "SELECT 1 FROM rendering r JOIN version v ON v.id = r.version WHERE v.resource = ? AND v.time = ? LIMIT 1"
        )
        return self._one(question, (resource, time)) is not None

    def all(self) -> Iterator[RenderingSourceRow]:
        """Everything that is stored, URL by URL, oldest first."""
        if self._made():
            rows = self._database.stream(
                "SELECT v.resource, v.time, v.status, r.content, r.head FROM rendering r "
                "JOIN version v ON v.id = r.version ORDER BY v.resource, v.number"
            )
            yield from (RenderingSourceRow(*row) for row in rows)

    def drop_orphans(self, cursor: Cursor) -> None:
        """Removes rows of versions that are gone."""
        if self._made():
            cursor.run("DELETE FROM rendering WHERE version NOT IN (SELECT id FROM version)")

    def lose(self, cursor: Cursor, content: int) -> None:
        """Removes a content whose bytes are gone; the versions rendered from it stay."""
        if self._made():
            cursor.run("DELETE FROM rendering WHERE content = ?", (content,))
