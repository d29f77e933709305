"""Contents by digest and the places where their bytes lie."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from letopis.catalog.database import Cursor, Database
from letopis.catalog.extras import present
from letopis.catalog.rows import ContentRow, Reader

ABSENT = "absent"
"""Method of a content that a clone knows of and has not fetched yet; its place is the origin's."""

AT_ONCE = 250
"""Digests that one statement may ask for."""
_COLUMNS = "id, identity, sha1, raw_bytes, stored_bytes, method, pack, place, slot"


class Contents:
    """Where each content lies; a content is stored once for all URLs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, identity: int, sha1: bytes, reader: Reader | None = None) -> ContentRow | None:
        """The content with both digests, or None."""
        rows = (reader or self._database).all(f"SELECT {_COLUMNS} FROM content WHERE identity = ?", (identity,))
        return next((ContentRow(*row) for row in rows if row[2] == sha1), None)

    def find_many(self, wanted: Collection[tuple[int, bytes]], reader: Reader) -> dict[tuple[int, bytes], int]:
        """Ids of those of many contents that are stored, by both digests."""
        keys = sorted({identity for identity, _ in wanted})
        found: dict[tuple[int, bytes], int] = {}
        for start in range(0, len(keys), AT_ONCE):
            part = keys[start : start + AT_ONCE]
            marks = ", ".join("?" * len(part))
            rows = reader.all(f"SELECT identity, sha1, id FROM content WHERE identity IN ({marks}) ORDER BY id", part)
            for identity, sha1, number in rows:
                found.setdefault((int(identity), bytes(sha1)), int(number))
        return found

    def by_id(self, number: int, reader: Reader | None = None) -> ContentRow | None:
        """The row of a known id."""
        row = (reader or self._database).one(f"SELECT {_COLUMNS} FROM content WHERE id = ?", (number,))
        return ContentRow(*row) if row else None

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
            cursor.bulk("content", _COLUMNS.split(", "), filled)
        return numbers

    def move(self, cursor: Cursor, moves: Iterable[tuple[int, str, int, int, int, int]]) -> None:
        """New places after compaction: rows (stored_bytes, method, pack, place, slot, id)."""
        cursor.run_many(
            "UPDATE content SET stored_bytes = ?, method = ?, pack = ?, place = ?, slot = ? WHERE id = ?", moves
        )

    def packs(self, reader: Reader | None = None) -> set[int]:
        """Packs that some content lies in."""
        rows = (reader or self._database).all("SELECT DISTINCT pack FROM content WHERE method != ?", (ABSENT,))
        return {int(row[0]) for row in rows}

    def last(self) -> tuple[int, int, int] | None:
        """Pack, place and slot of the content that came last; None when there is none, or no bytes of it."""
        row = self._database.one("SELECT pack, place, slot, method FROM content ORDER BY id DESC LIMIT 1")
        return None if row is None or row[3] == ABSENT else (int(row[0]), int(row[1]), int(row[2]))

    def highest(self) -> int:
        """The highest number of a pack that some content lies in; 0 without any."""
        row = self._database.one("SELECT max(pack) FROM content WHERE method != ?", (ABSENT,))
        return int(row[0] or 0) if row else 0

    def used(self) -> dict[int, int]:
        """Stored bytes of all contents, by the pack they lie in."""
        rows = self._database.all("SELECT pack, sum(stored_bytes) FROM content GROUP BY pack")
        return {int(pack): int(used) for pack, used in rows}

    def absent(self) -> int:
        """How many contents a clone has not fetched yet."""
        row = self._database.one("SELECT count(*) FROM content WHERE method = ?", (ABSENT,))
        return int(row[0]) if row else 0

    def all(self) -> Iterator[ContentRow]:
        """Every content in the order of its arrival."""
        return (ContentRow(*row) for row in self._database.stream(f"SELECT {_COLUMNS} FROM content ORDER BY id"))

    def drop_unused(self, cursor: Cursor) -> int:
        """Forgets contents that no version, no capture and no rendering refers to."""
        rendered = " AND id NOT IN (SELECT content FROM rendering)" if present(self._database, "rendering") else ""
        return cursor.run(
            "DELETE FROM content WHERE id NOT IN (SELECT content FROM version) "
            "AND id NOT IN (SELECT content FROM capture WHERE content IS NOT NULL)" + rendered
        )
