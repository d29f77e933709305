"""Contents by digest and the places where their bytes lie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from letopis.catalog.database import Cursor, Database
from letopis.catalog.rows import ContentRow, Reader

ABSENT = "absent"
"""Method of a content that a clone knows of and has not fetched yet; its place is the origin's."""

_COLUMNS = "id, identity, sha1, raw_bytes, stored_bytes, method, pack, place, slot"


class Contents:
    """Where each content lies; a content is stored once for all URLs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, identity: int, sha1: bytes, reader: Reader | None = None) -> ContentRow | None:
        """The content with both digests, or None."""
        rows = (reader or self._database).all(f"SELECT {_COLUMNS} FROM content WHERE identity = ?", (identity,))
        return next((ContentRow(*row) for row in rows if row[2] == sha1), None)

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

    def move(self, cursor: Cursor, moves: Iterable[tuple[int, str, int, int, int, int]]) -> None:
        """New places after compaction: rows (stored_bytes, method, pack, place, slot, id)."""
        cursor.run_many(
            "UPDATE content SET stored_bytes = ?, method = ?, pack = ?, place = ?, slot = ? WHERE id = ?", moves
        )

    def packs(self, reader: Reader | None = None) -> set[int]:
        """Packs that some content lies in."""
        rows = (reader or self._database).all("SELECT DISTINCT pack FROM content WHERE method != ?", (ABSENT,))
        return {int(row[0]) for row in rows}

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
        """Forgets contents that no version and no capture refers to."""
        return cursor.run(
            "DELETE FROM content WHERE id NOT IN (SELECT content FROM version) "
            "AND id NOT IN (SELECT content FROM capture WHERE content IS NOT NULL)"
        )
