"""Projects: named sets of pages with an owner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from letopis.catalog.accounts import checked_name
from letopis.catalog.database import Database
from letopis.catalog.extras import ensure, present
from letopis.errors import NotFound, UsageError

TABLES = """
CREATE TABLE IF NOT EXISTS account_project (
    id {id}, name TEXT NOT NULL UNIQUE, owner TEXT NOT NULL DEFAULT '', created BIGINT NOT NULL
);
CREATE TABLE IF NOT EXISTS account_project_url (
    project BIGINT NOT NULL, url TEXT NOT NULL, PRIMARY KEY (project, url)
) {clustered};
"""


class Project(NamedTuple):
    """A named set of addresses."""

    name: str
    owner: str
    created: int
    urls: tuple[str, ...]


class Projects:
    """Makes, lists and removes projects."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, name: str, owner: str, urls: Iterable[str], now: int) -> Project:
        """A new project, or more addresses for one that is there."""
        checked_name(name)
        ensure(self._database, "projects", TABLES)
        with self._database.transaction() as cursor:
            row = cursor.one("SELECT id, owner FROM account_project WHERE name = ?", (name,))
            if row is not None and row[1] != owner and owner:
                raise UsageError(f"project '{name}' belongs to somebody else; choose another name")
            row = row or cursor.one(
                "INSERT INTO account_project (name, owner, created) VALUES (?, ?, ?) RETURNING id", (name, owner, now)
            )
            assert row is not None
            number = row[0]
            cursor.run_many(
                "INSERT INTO account_project_url (project, url) VALUES (?, ?) ON CONFLICT DO NOTHING",
                [(number, url) for url in urls],
            )
        return self.show(name)

    def list(self) -> list[Project]:
        """All projects by name."""
        if not present(self._database, "account_project"):
            return []
        rows = self._database.all("SELECT name FROM account_project ORDER BY name")
        return [self.show(str(row[0])) for row in rows]

    def show(self, name: str) -> Project:
        """One project with its addresses; NotFound when there is none."""
        row = None
        if present(self._database, "account_project"):
            row = self._database.one("SELECT id, owner, created FROM account_project WHERE name = ?", (name,))
        if row is None:
            raise NotFound(f"there is no project '{name[:70]}'; 'letopis projects list' shows all")
        urls = self._database.all("SELECT url FROM account_project_url WHERE project = ? ORDER BY url", (row[0],))
        return Project(name, row[1], row[2], tuple(str(url[0]) for url in urls))

    def remove(self, name: str) -> None:
        """Forgets a project; its pages stay in the archive."""
        self.show(name)
        with self._database.transaction() as cursor:
            cursor.run(
                "DELETE FROM account_project_url WHERE project IN (SELECT id FROM account_project WHERE name = ?)",
                (name,),
            )
            cursor.run("DELETE FROM account_project WHERE name = ?", (name,))
