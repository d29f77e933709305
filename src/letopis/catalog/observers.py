"""Who looked at what, and which version they saw: "new to me" for each uid."""

from __future__ import annotations

from typing import NamedTuple

from letopis.catalog.database import Cursor, Database
from letopis.catalog.rows import Reader


class Look(NamedTuple):
    """An observer's last look at a URL; `version` is the id seen, None when there was none."""

    version: int | None
    looked: int


class Observers:
    """One cursor a uid and URL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def look(self, uid: str, resource: int, reader: Reader | None = None) -> Look | None:
        """The last look, or None for the first time."""
        row = (reader or self._database).one(
            "SELECT version, looked FROM observer WHERE uid = ? AND resource = ?", (uid, resource)
        )
        return Look(*row) if row else None

    def set(self, cursor: Cursor, uid: str, resource: int, look: Look) -> None:
        """Moves the cursor on."""
        cursor.run(
            "INSERT INTO observer (uid, resource, version, looked) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (uid, resource) DO UPDATE SET version = excluded.version, looked = excluded.looked",
            (uid, resource, *look),
        )

    def known(self, uid: str) -> bool:
        """Whether the uid has ever been used."""
        return self._database.one("SELECT 1 FROM observer WHERE uid = ? LIMIT 1", (uid,)) is not None
