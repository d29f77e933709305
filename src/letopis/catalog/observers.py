"""Who looked at what, and which version they saw: "new to me" for each uid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from letopis.catalog.database import Cursor, Database
from letopis.catalog.rows import Reader

_SET = (
    "INSERT INTO observer (uid, resource, version, looked) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (uid, resource) DO UPDATE SET version = excluded.version, looked = excluded.looked"
)
_AT_ONCE = 250


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
        cursor.run(_SET, (uid, resource, *look))

    def looks(self, uid: str, resources: Sequence[int]) -> dict[int, Look]:
        """The last looks at many URLs, by their ids; only those that were looked at."""
        found: dict[int, Look] = {}
        for start in range(0, len(resources), _AT_ONCE):
            part = resources[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(part))
            rows = self._database.all(
                f"SELECT resource, version, looked FROM observer WHERE uid = ? AND resource IN ({marks})", (uid, *part)
            )
            found.update((int(row[0]), Look(row[1], row[2])) for row in rows)
        return found

    def set_many(self, cursor: Cursor, uid: str, looks: Iterable[tuple[int, Look]]) -> None:
        """Moves the cursors of many URLs on."""
        cursor.run_many(_SET, [(uid, resource, *look) for resource, look in looks])

    def known(self, uid: str) -> bool:
        """Whether the uid has ever been used."""
        return self._database.one("SELECT 1 FROM observer WHERE uid = ? LIMIT 1", (uid,)) is not None
