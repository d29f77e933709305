"""Versions and the other checks of a URL, written together and read apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from letopis.catalog.database import Cursor, Database
from letopis.catalog.rows import CaptureRow, Reader, VersionRow

_VERSION = "id, resource, number, time, content, head, status, meaningful, extra"
_CAPTURE = "resource, time, status, outcome, number, head, content, extra"
VERSION_COLUMNS = tuple(_VERSION.split(", "))
CAPTURE_COLUMNS = tuple(_CAPTURE.split(", "))


class Versions:
    """The log of observations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, cursor: Cursor, row: VersionRow) -> int:
        """Appends a version (its id is given out here)."""
        made = cursor.one(
            "INSERT INTO version (resource, number, time, content, head, status, meaningful, extra) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            row[1:],
        )
        assert made is not None
        return int(made[0])

    def add_capture(self, cursor: Cursor, row: CaptureRow) -> None:
        """Appends a check that found nothing new."""
        cursor.run(f"INSERT INTO capture ({_CAPTURE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def by_id(self, number: int, reader: Reader | None = None) -> VersionRow | None:
        """The row of a known id."""
        row = (reader or self._database).one(f"SELECT {_VERSION} FROM version WHERE id = ?", (number,))
        return VersionRow(*row) if row else None

    def number(self, resource: int, number: int, reader: Reader | None = None) -> VersionRow | None:
        """Version `number` of a URL."""
        row = (reader or self._database).one(
            f"SELECT {_VERSION} FROM version WHERE resource = ? AND number = ?", (resource, number)
        )
        return VersionRow(*row) if row else None

    def at(self, resource: int, count: int, time: int, reader: Reader | None = None) -> VersionRow | None:
        """The newest of `count` versions with a time <= `time`, found by halving."""
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            row = self.number(resource, middle, reader)
            if row is not None and row.time <= time:
                low = middle + 1
            else:
                high = middle
        return self.number(resource, low - 1, reader) if low else None

    def of(self, resource: int, reader: Reader | None = None) -> list[VersionRow]:
        """All versions of a URL, oldest first."""
        rows = (reader or self._database).all(
            f"SELECT {_VERSION} FROM version WHERE resource = ? ORDER BY number", (resource,)
        )
        return [VersionRow(*row) for row in rows]

    def captures(self, resource: int, reader: Reader | None = None) -> list[CaptureRow]:
        """All checks of a URL that found no new version, oldest first."""
        rows = (reader or self._database).all(
            f"SELECT {_CAPTURE} FROM capture WHERE resource = ? ORDER BY time", (resource,)
        )
        return [CaptureRow(*row) for row in rows]

    def capture_at(self, resource: int, time: int) -> CaptureRow | None:
        """The check at exactly this time, where it brought no version."""
        row = self._database.one(f"SELECT {_CAPTURE} FROM capture WHERE resource = ? AND time = ?", (resource, time))
        return CaptureRow(*row) if row else None

    def last_capture(self, resource: int, reader: Reader | None = None) -> CaptureRow | None:
        """The latest check that found no new version."""
        row = (reader or self._database).one(
            f"SELECT {_CAPTURE} FROM capture WHERE resource = ? ORDER BY time DESC LIMIT 1", (resource,)
        )
        return CaptureRow(*row) if row else None

    def since(self, after: int, limit: int = 1000) -> list[VersionRow]:
        """Versions recorded after a known id, in the order of recording."""
        rows = self._database.all(f"SELECT {_VERSION} FROM version WHERE id > ? ORDER BY id LIMIT ?", (after, limit))
        return [VersionRow(*row) for row in rows]

    def make_room(self, cursor: Cursor, resource: int, number: int) -> None:
        """Raises the numbers from `number` on by one, for a version that comes in late."""
        cursor.run("UPDATE version SET number = number + 1 WHERE resource = ? AND number >= ?", (resource, number))
        cursor.run("UPDATE capture SET number = number + 1 WHERE resource = ? AND number >= ?", (resource, number))

    def begin_earlier(self, cursor: Cursor, version: int, time: int) -> None:
        """A late arrival equals this version: it began earlier than we knew."""
        cursor.run("UPDATE version SET time = ? WHERE id = ?", (time, version))

    def taken(self, cursor: Cursor, resource: int, time: int) -> bool:
        """Whether some check of the URL already has this very millisecond."""
        capture = cursor.one("SELECT 1 FROM capture WHERE resource = ? AND time = ?", (resource, time))
        version = cursor.one("SELECT 1 FROM version WHERE resource = ? AND time = ?", (resource, time))
        return capture is not None or version is not None

    def has_check(self, resource: int, count: int, time: int) -> bool:
        """Whether the URL has a version or another check at exactly this time."""
        version = self.at(resource, count, time)
        if version is not None and version.time == time:
            return True
        return self._database.one("SELECT 1 FROM capture WHERE resource = ? AND time = ?", (resource, time)) is not None

    def drop(self, cursor: Cursor, resource: int, keep: Iterable[int]) -> int:
        """Forgets versions that are not in `keep` (ids) and renumbers the rest."""
        kept = set(keep)
        rows = self.of(resource, cursor)
        for row in rows:
            if row.id not in kept:
                cursor.run("DELETE FROM version WHERE id = ?", (row.id,))
        renumbered = {row.number: new for new, row in enumerate(row for row in rows if row.id in kept)}
        self._renumber(cursor, resource, renumbered)
        return len(rows) - len(renumbered)

    def named(self, content: int) -> list[str]:
        """The versions of a content, as people call them."""
        rows = self._database.all(
            "SELECT version.number, resource.url FROM version "
            "JOIN resource ON resource.id = version.resource WHERE version.content = ?",
            (content,),
        )
        return [f"version {number} of {url}" for number, url in rows]

    def lose(self, cursor: Cursor, content: int) -> None:
        """Forgets a content whose bytes are gone with all its versions; later ones move up."""
        rows = cursor.all("SELECT id, resource FROM version WHERE content = ?", (content,))
        for resource in {row[1] for row in rows}:
            gone = {row[0] for row in rows if row[1] == resource}
            kept = [row for row in self.of(resource, cursor) if row.id not in gone]
            self.drop(cursor, resource, [row.id for row in kept])
            newest = kept[-1].id if kept else None
            cursor.run("UPDATE resource SET versions = ?, newest = ? WHERE id = ?", (len(kept), newest, resource))
        cursor.run("UPDATE capture SET content = NULL WHERE content = ?", (content,))
        cursor.run("DELETE FROM content WHERE id = ?", (content,))

    def _renumber(self, cursor: Cursor, resource: int, numbers: dict[int, int]) -> None:
        for old, new in sorted(numbers.items()):
            cursor.run("UPDATE version SET number = ? WHERE resource = ? AND number = ?", (new, resource, old))
        for capture in self.captures(resource, cursor):
            if capture.number is not None:
                moved = numbers.get(capture.number)
                cursor.run(
                    "UPDATE capture SET number = ? WHERE resource = ? AND time = ?", (moved, resource, capture.time)
                )

    def all(self) -> Iterator[VersionRow]:
        """Every version in the order of recording."""
        return (VersionRow(*row) for row in self._database.stream(f"SELECT {_VERSION} FROM version ORDER BY id"))
