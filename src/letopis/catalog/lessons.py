"""What hosts and pages have taught us about noise, as opaque bytes."""

from __future__ import annotations

from letopis.catalog.database import Cursor, Database


class Lessons:
    """One profile a host, one memory of habits a page."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def profile(self, host: str) -> bytes:
        """The host's profile, empty when there is none."""
        row = self._database.one("SELECT profile FROM host WHERE name = ?", (host,))
        return bytes(row[0]) if row and row[0] else b""

    def set_profile(self, cursor: Cursor, host: str, data: bytes) -> None:
        """Replaces the profile of a known host."""
        cursor.run("UPDATE host SET profile = ? WHERE name = ?", (data, host))

    def distrusted(self, host: str) -> frozenset[str]:
        """Digest fields (lower case) that the host once sent wrongly."""
        row = self._database.one("SELECT distrusted FROM host WHERE name = ?", (host,))
        return frozenset(row[0].split()) if row and row[0] else frozenset()

    def distrust(self, cursor: Cursor, host: str, fields: frozenset[str]) -> None:
        """These fields of the host are not used again to skip a download."""
        cursor.run("UPDATE host SET distrusted = ? WHERE name = ?", (" ".join(sorted(fields)), host))

    def habits(self, resource: int) -> bytes:
        """The page's habits, empty when there are none."""
        row = self._database.one("SELECT habits FROM resource WHERE id = ?", (resource,))
        return bytes(row[0]) if row and row[0] else b""

    def set_habits(self, cursor: Cursor, resource: int, data: bytes) -> None:
        """Replaces the habits of a page."""
        cursor.run("UPDATE resource SET habits = ? WHERE id = ?", (data, resource))

    def quiet_visits(self, resource: int, number: int) -> int:
        """Checks that found version `number` unchanged."""
        row = self._database.one(
            "SELECT count(*) FROM capture WHERE resource = ? AND number = ? AND outcome = 2", (resource, number)
        )
        return int(row[0]) if row else 0
