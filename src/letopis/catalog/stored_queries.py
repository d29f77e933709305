"""Questions that people keep under a name, and when they are asked again without anybody asking."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from letopis.catalog.database import Cursor, Database
from letopis.catalog.extras import ensure, present

TABLES = """
CREATE TABLE IF NOT EXISTS job_query (
    id {id}, owner TEXT NOT NULL, name TEXT NOT NULL, package TEXT NOT NULL, origin TEXT NOT NULL,
    system SMALLINT NOT NULL, priority INTEGER NOT NULL, permission INTEGER NOT NULL, refresh TEXT NOT NULL,
    created BIGINT NOT NULL, every BIGINT NOT NULL, due BIGINT, answer BIGINT, uses BIGINT NOT NULL,
    weight {float} NOT NULL, used BIGINT NOT NULL, xml {blob} NOT NULL, UNIQUE (owner, name)
);
CREATE INDEX IF NOT EXISTS job_query_due ON job_query (due);
"""
_QUERY = (
    "id, owner, name, package, origin, system, priority, permission, refresh, created, every, due, answer, uses, "
    "weight, used"
)


class NewQuery(NamedTuple):
    """A question to keep. `every` is the interval of its refresh in milliseconds, 0 for none."""

    owner: str
    name: str
    package: str
    origin: str
    system: int
    priority: int
    permission: int
    refresh: str
    created: int
    every: int
    xml: bytes


class QueryRow(NamedTuple):
    """A kept question. `answer` is the job with its last good result, `weight` how much it was used of late."""

    id: int
    owner: str
    name: str
    package: str
    origin: str
    system: int
    priority: int
    permission: int
    refresh: str
    created: int
    every: int
    due: int | None
    answer: int | None
    uses: int
    weight: float
    used: int


class StoredQueries:
    """Reads answer empty until the first question is kept; writes happen inside the caller's transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ensure(self) -> None:
        """Makes the table; must not be called inside a transaction."""
        ensure(self._database, "job queries", TABLES)

    def _rows(self, question: str, values: Sequence[Any] = ()) -> list[QueryRow]:
        if not present(self._database, "job_query"):
            return []
        return [QueryRow(*row) for row in self._database.all(f"SELECT {_QUERY} FROM job_query {question}", values)]

    def keep(self, cursor: Cursor, query: NewQuery) -> int:
        """Keeps a question; one of the same owner and name gets the new text. Answers its id."""
        made = cursor.one(
            "INSERT INTO job_query (owner, name, package, origin, system, priority, permission, refresh, created, "
            "every, xml, uses, weight, used) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0) "
            "ON CONFLICT (owner, name) DO UPDATE SET package = excluded.package, origin = excluded.origin, "
            "system = excluded.system, priority = excluded.priority, permission = excluded.permission, "
            "refresh = excluded.refresh, every = excluded.every, due = NULL, xml = excluded.xml RETURNING id",
            (*query[:-1], zlib.compress(query.xml)),
        )
        assert made is not None
        return int(made[0])

    def forget(self, cursor: Cursor, number: int) -> None:
        """The question is kept no longer; its answers stay until the cleaner comes."""
        cursor.run("DELETE FROM job_query WHERE id = ?", (number,))
        cursor.run("UPDATE job SET stored = NULL WHERE stored = ?", (number,))

    def answered(self, cursor: Cursor, number: int, answer: int | None, now: int) -> None:
        """A job of the question ended: the next one is due an interval later. A failure keeps the last answer."""
        cursor.run(
            "UPDATE job_query SET answer = coalesce(?, answer), due = CASE WHEN every > 0 THEN every + ? END "
            "WHERE id = ?",
            (answer, now, number),
        )

    def used(self, cursor: Cursor, row: QueryRow) -> None:
        """Somebody looked at the answer: new weight, interval and time."""
        cursor.run(
            "UPDATE job_query SET uses = ?, weight = ?, used = ?, every = ?, due = ? WHERE id = ?",
            (row.uses, row.weight, row.used, row.every, row.due, row.id),
        )

    def begun(self, cursor: Cursor, number: int) -> None:
        """A job of the question is in the queue; nothing is due until it ends."""
        cursor.run("UPDATE job_query SET due = NULL WHERE id = ?", (number,))

    def claim_due(self, cursor: Cursor, number: int, now: int) -> bool:
        """Takes a question that is due, so that nobody else queues it too; False when somebody already did."""
        return cursor.run("UPDATE job_query SET due = NULL WHERE id = ? AND due <= ?", (number, now)) == 1

    def find(self, number: int) -> QueryRow | None:
        """One kept question."""
        rows = self._rows("WHERE id = ?", (number,))
        return rows[0] if rows else None

    def named(self, name: str, mask: int, viewer: str) -> list[QueryRow]:
        """Questions of a name that somebody may see, the viewer's own first."""
        return self._rows(
            "WHERE name = ? AND ((permission & ?) = permission OR owner = ?) "
            "ORDER BY CASE WHEN owner = ? THEN 0 ELSE 1 END, id",
            (name, mask, viewer, viewer),
        )

    def listed(self, mask: int, viewer: str) -> list[QueryRow]:
        """All kept questions that somebody may see, by name."""
        return self._rows("WHERE ((permission & ?) = permission OR owner = ?) ORDER BY name, owner", (mask, viewer))

    def due(self, now: int, limit: int) -> list[QueryRow]:
        """Questions whose time has come, the longest waiting first."""
        return self._rows("WHERE due <= ? ORDER BY due, id LIMIT ?", (now, limit))

    def answers(self) -> list[int]:
        """Jobs that hold the last good answer of a kept question."""
        return [row.answer for row in self._rows("WHERE answer IS NOT NULL") if row.answer is not None]

    def xml(self, number: int) -> bytes:
        """The text of a question."""
        row = self._database.one("SELECT xml FROM job_query WHERE id = ?", (number,))
        return zlib.decompress(bytes(row[0])) if row else b""
