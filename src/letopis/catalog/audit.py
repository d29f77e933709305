"""Who did what to accounts, and when: a log that is only ever appended to."""

from __future__ import annotations

from typing import NamedTuple

from letopis.catalog.database import Database
from letopis.catalog.extras import ensure, present

TABLES = """
CREATE TABLE IF NOT EXISTS account_audit (
    id {id}, time BIGINT NOT NULL, who TEXT NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL, address TEXT NOT NULL
);
"""


class Deed(NamedTuple):
    """One line of the log."""

    time: int
    who: str
    action: str
    subject: str
    address: str


class Audit:
    """The log of one archive."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, deed: Deed) -> None:
        """Appends a line."""
        ensure(self._database, "audit", TABLES)
        with self._database.transaction() as cursor:
            cursor.run(
                "INSERT INTO account_audit (time, who, action, subject, address) VALUES (?, ?, ?, ?, ?)",
                (deed.time, deed.who[:200], deed.action, deed.subject[:500], deed.address[:100]),
            )

    def latest(self, limit: int) -> list[Deed]:
        """The last lines, newest first."""
        if not present(self._database, "account_audit"):
            return []
        rows = self._database.all(
            "SELECT time, who, action, subject, address FROM account_audit ORDER BY id DESC LIMIT ?", (limit,)
        )
        return [Deed(*row) for row in rows]
