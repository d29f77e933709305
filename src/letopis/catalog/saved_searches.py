"""Saved searches: queries that run again when versions arrive, and the results that they have had so far.

The query is in `spec` as JSON; a result is identified by a digest of the fields that distinguish rows. The order of a
run: it is claimed by giving it a later time; the query runs; then one transaction writes the new results, their alert
with one pending delivery per target, how far the record was read, and the next time. Killed before that, nothing was
found yet and the run is repeated when its claim expires; killed after it, the deliveries wait in the outbox, which
sends each with the same key until it is accepted. So there is one alert per result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from letopis.catalog.database import Cursor, Database
from letopis.catalog.schema import TopicTables, has_table
from letopis.catalog.watches import NewAlert, Watches, add_alert
from letopis.errors import NotFound, UsageError
from letopis.tuples import NamedTuple

SAVED_TABLES = """
CREATE TABLE IF NOT EXISTS saved_search (
    id {id}, name TEXT NOT NULL, owner TEXT NOT NULL, spec TEXT NOT NULL, position BIGINT NOT NULL,
    looked BIGINT NOT NULL, due BIGINT NOT NULL, error TEXT NOT NULL, added BIGINT NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS saved_search_name ON saved_search (owner, name);
CREATE TABLE IF NOT EXISTS saved_result (
    search BIGINT NOT NULL, digest TEXT NOT NULL, time BIGINT NOT NULL, url TEXT NOT NULL, title TEXT NOT NULL,
    PRIMARY KEY (search, digest)
) {clustered};
CREATE INDEX IF NOT EXISTS saved_result_time ON saved_result (search, time);
"""
MOST_OF_ONE = 200
"""Saved searches of one person."""
MOST_SAVED = 2000
MOST_RESULTS = 10_000
"""Results that are stored of one search; beyond that the oldest that it no longer has are removed."""
CLAIM_MILLIS = 300_000
LONGEST_MILLIS = 3_600_000
"""A search runs again after this at the latest: links break, and runs end, without a new version."""
_COLUMNS = "id, name, owner, spec, position, looked, due, error, added"


class SavedSearchRow(NamedTuple):
    """One saved search: `position` is the newest version that it knows, `looked` when it ran last.

    It does not run again before `due`; `error` is why the last run failed.
    """

    id: int
    name: str
    owner: str
    spec: str
    position: int
    looked: int
    due: int
    error: str
    added: int


class FoundResult(NamedTuple):
    """A row of the answer: its digest, when it was first found, its page and its title."""

    digest: str
    time: int
    url: str
    title: str


class SavedLook(NamedTuple):
    """What a run writes besides its results."""

    position: int
    looked: int
    due: int
    error: str = ""


class SavedSearches(TopicTables):
    """Reads return nothing until the first one is created; every change is one transaction."""

    topic, table, ddl = "saved searches", "saved_search", SAVED_TABLES

    def add(self, row: SavedSearchRow, found: Sequence[FoundResult]) -> SavedSearchRow:
        """A new one with its present results, which raise no alerts."""
        Watches(self._database).ensure()
        self.ensure()
        with self._database.transaction() as cursor:
            self._refuse_name(cursor, row)
            own = cursor.count("SELECT count(*) FROM saved_search WHERE owner = ?", (row.owner,))
            if own >= MOST_OF_ONE or cursor.count("SELECT count(*) FROM saved_search") >= MOST_SAVED:
                raise UsageError(f"{own} searches are saved already; remove some first")
            (number,) = cursor.numbers("saved_search", 1)
            cursor.run(f"INSERT INTO saved_search ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (number, *row[1:]))
            _insert(cursor, number, found)
        return row._replace(id=number)

    def change(self, row: SavedSearchRow, found: Sequence[FoundResult] | None) -> None:
        """Replaces the row with its number, and for another query also its results so far."""
        with self._database.transaction() as cursor:
            self._refuse_name(cursor, row)
            changed = cursor.run(
                "UPDATE saved_search SET name = ?, spec = ?, position = ?, looked = ?, due = ?, error = ? WHERE id = ?",
                (row.name, row.spec, row.position, row.looked, row.due, row.error, row.id),
            )
            if changed and found is not None:
                cursor.run("DELETE FROM saved_result WHERE search = ?", (row.id,))
                _insert(cursor, row.id, found)
        if not changed:
            raise _no_search(row.id)

    @staticmethod
    def _refuse_name(cursor: Cursor, row: SavedSearchRow) -> None:
        values = (row.owner, row.name, row.id)
        if cursor.one("SELECT 1 FROM saved_search WHERE owner = ? AND name = ? AND id <> ?", values) is not None:
            raise UsageError(f"a search is saved as '{row.name}' already; choose another name, or change that one")

    def remove(self, number: int) -> None:
        """Removes one, with its results; its alerts stay."""
        with self._database.transaction() as cursor:
            cursor.run("DELETE FROM saved_result WHERE search = ?", (number,))
            cursor.remove("saved_search", "id = ?", (number,))

    def all(self) -> list[SavedSearchRow]:
        """All of them, oldest first."""
        return [SavedSearchRow(*row) for row in self._all(f"SELECT {_COLUMNS} FROM saved_search ORDER BY id")]

    def are_any(self) -> bool:
        """Whether there is one."""
        return self._one("SELECT 1 FROM saved_search LIMIT 1") is not None

    def by_id(self, number: int) -> SavedSearchRow:
        """The one with a number; NotFound when there is none."""
        found = self._one(f"SELECT {_COLUMNS} FROM saved_search WHERE id = ?", (number,))
        if found is None:
            raise _no_search(number)
        return SavedSearchRow(*found)

    def results(self, number: int, limit: int) -> list[FoundResult]:
        """What one has found so far, newest first."""
        rows = self._database.all(
            "SELECT digest, time, url, title FROM saved_result WHERE search = ? ORDER BY time DESC, digest LIMIT ?",
            (number, limit),
        )
        return [FoundResult(*row) for row in rows]

    def counts(self) -> dict[int, int]:
        """How many results each has had."""
        rows = self._all("SELECT search, count(*) FROM saved_result GROUP BY search")
        return {int(search): int(count) for search, count in rows}

    def due(self, now: int, newest: int) -> list[SavedSearchRow]:
        """Those to be run now: versions arrived since, or the last run was long ago; the longest waiting first.

        A time that only a wrong clock can have set counts as past.
        """
        far = now + CLAIM_MILLIS + LONGEST_MILLIS
        rows = self._all(
            f"SELECT {_COLUMNS} FROM saved_search WHERE (due <= ? OR due > ?) "
            "AND (position < ? OR looked <= ? OR looked > ?) ORDER BY looked, id",
            (now, far, newest, now - LONGEST_MILLIS, far),
        )
        return [SavedSearchRow(*row) for row in rows]

    def claim(self, row: SavedSearchRow, until: int) -> SavedSearchRow | None:
        """Claims one for a run: no other process gets it before `until`; None if another process has it."""
        with self._database.transaction() as cursor:
            taken = cursor.run("UPDATE saved_search SET due = ? WHERE id = ? AND due = ?", (until, row.id, row.due))
        return row._replace(due=until) if taken else None

    def record_look(
        self,
        claimed: SavedSearchRow,
        look: SavedLook,
        found: Sequence[FoundResult],
        alert_of: Callable[[Sequence[FoundResult]], NewAlert],
    ) -> list[FoundResult]:
        """The results that are new, with the alert of them, all or nothing.

        Nothing is written for one that was changed, removed or claimed again since: it runs again.
        """
        with self._database.transaction() as cursor:
            kept = cursor.run(
                "UPDATE saved_search SET position = ?, looked = ?, due = ?, error = ? WHERE id = ? AND due = ?",
                (*look, claimed.id, claimed.due),
            )
            if not kept:
                return []
            rows = cursor.all("SELECT digest FROM saved_result WHERE search = ?", (claimed.id,))
            known = {str(row[0]) for row in rows}
            new = [one for one in found if one.digest not in known]
            _insert(cursor, claimed.id, new)
            if new:
                add_alert(cursor, alert_of(new))
            if len(known) + len(new) > MOST_RESULTS:
                _forget(cursor, claimed.id, len(known) + len(new) - MOST_RESULTS, {one.digest for one in found})
        return new


def _insert(cursor: Cursor, number: int, found: Sequence[FoundResult]) -> None:
    cursor.run_many(
        "INSERT INTO saved_result (search, digest, time, url, title) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [(number, *one) for one in found],
    )


def _forget(cursor: Cursor, number: int, count: int, current: set[str]) -> None:
    """The oldest results that a search no longer has."""
    rows = cursor.all("SELECT digest FROM saved_result WHERE search = ? ORDER BY time, digest", (number,))
    gone = [str(row[0]) for row in rows if str(row[0]) not in current][:count]
    cursor.run_many("DELETE FROM saved_result WHERE search = ? AND digest = ?", [(number, one) for one in gone])


def _no_search(number: int) -> NotFound:
    return NotFound(f"there is no saved search {number}; the list of saved searches shows all")


def end_searches_of(database: Database, cursor: Cursor, owner: str) -> None:
    """Removes the searches of a removed account, so that a later account of the same name does not get them."""
    if has_table(database, "saved_search"):
        cursor.run("DELETE FROM saved_result WHERE search IN (SELECT id FROM saved_search WHERE owner = ?)", (owner,))
        cursor.remove("saved_search", "owner = ?", (owner,))
