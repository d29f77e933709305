"""Programs that follow the changes, and how far each has come."""

from __future__ import annotations

from typing import NamedTuple

from letopis.catalog.database import Database
from letopis.catalog.extras import ensure, present

TABLES = (
    "CREATE TABLE IF NOT EXISTS change_client (name TEXT PRIMARY KEY, version BIGINT NOT NULL, seen BIGINT NOT NULL)"
)


class NewVersion(NamedTuple):
    """A version as followers are told of it; `id` rises in the order of recording."""

    id: int
    url: str
    title: str | None
    number: int
    time: int
    meaningful: int | None
    sha1: bytes


class Clients:
    """One cursor a client, moved by acknowledgement alone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def cursor(self, name: str) -> int:
        """The id of the last version that a client has acknowledged; 0 for a new one."""
        if not present(self._database, "change_client"):
            return 0
        row = self._database.one("SELECT version FROM change_client WHERE name = ?", (name,))
        return int(row[0]) if row else 0

    def acknowledge(self, name: str, version: int, now: int) -> int:
        """Moves a cursor on, never back; answers where it stands."""
        ensure(self._database, "clients", TABLES)
        with self._database.transaction() as cursor:
            cursor.run(
                "INSERT INTO change_client (name, version, seen) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE "
                "SET version = CASE WHEN excluded.version > change_client.version THEN excluded.version "
                "ELSE change_client.version END, seen = excluded.seen",
                (name, version, now),
            )
        return self.cursor(name)

    def since(self, after: int, limit: int) -> list[NewVersion]:
        """The versions recorded after an id, in the order of recording."""
        rows = self._database.all(
            "SELECT v.id, r.url, r.title, v.number, v.time, v.meaningful, c.sha1 FROM version v "
            "JOIN resource r ON r.id = v.resource JOIN content c ON c.id = v.content "
            "WHERE v.id > ? ORDER BY v.id LIMIT ?",
            (after, limit),
        )
        return [NewVersion(*row) for row in rows]

    def newest(self) -> int:
        """The id of the version recorded last; 0 in an empty archive."""
        row = self._database.one("SELECT max(id) FROM version")
        return int(row[0] or 0) if row else 0
