"""What servers sent for versions that a browser rendered: a content and a header record beside the version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from letopis.catalog.database import Cursor, Database
from letopis.catalog.extras import ensure, present

TABLES = """
CREATE TABLE IF NOT EXISTS rendering (
    version BIGINT NOT NULL, content BIGINT NOT NULL, head BIGINT NOT NULL, PRIMARY KEY (version)
) {clustered};
"""


class Sent(NamedTuple):
    """The answer of a server, by the ids of its content and its header record."""

    content: int
    head: int


class SentRow(NamedTuple):
    """The same with the version that was made of it."""

    resource: int
    time: int
    status: int
    content: int
    head: int


class Renderings:
    """Answers beside versions; an archive in which no browser ever rendered a page has none."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ensure(self) -> None:
        """Makes the table; must not be called inside a transaction."""
        ensure(self._database, "renderings", TABLES)

    def add(self, cursor: Cursor, version: int, sent: Sent) -> None:
        """Keeps what a version was made of; what is known already stays."""
        cursor.run(
            "INSERT INTO rendering (version, content, head) VALUES (?, ?, ?) ON CONFLICT (version) DO NOTHING",
            (version, *sent),
        )

    def of(self, version: int) -> Sent | None:
        """What a version was made of; None when it is what the server sent."""
        if not self._made():
            return None
        row = self._database.one("SELECT content, head FROM rendering WHERE version = ?", (version,))
        return Sent(*row) if row else None

    def has(self, resource: int, time: int) -> bool:
        """Whether a version of exactly this time was rendered."""
        question = (
            "SELECT 1 FROM rendering r JOIN version v ON v.id = r.version WHERE v.resource = ? AND v.time = ? LIMIT 1"
        )
        return self._made() and self._database.one(question, (resource, time)) is not None

    def all(self) -> Iterator[SentRow]:
        """Everything that is kept, URL by URL, oldest first."""
        if self._made():
            rows = self._database.stream(
                "SELECT v.resource, v.time, v.status, r.content, r.head FROM rendering r "
                "JOIN version v ON v.id = r.version ORDER BY v.resource, v.number"
            )
            yield from (SentRow(*row) for row in rows)

    def drop_orphans(self, cursor: Cursor) -> None:
        """Forgets what belongs to versions that are gone."""
        if self._made():
            cursor.run("DELETE FROM rendering WHERE version NOT IN (SELECT id FROM version)")

    def lose(self, cursor: Cursor, content: int) -> None:
        """Forgets a content whose bytes are gone; the versions made of it stay."""
        if self._made():
            cursor.run("DELETE FROM rendering WHERE content = ?", (content,))

    def _made(self) -> bool:
        return present(self._database, "rendering")
