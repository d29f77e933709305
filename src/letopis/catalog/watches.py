"""Standing checks, their alerts, and the outbox of notifications.

Three steps, each durable before the next: the check is recorded by the
archive; `judged` writes the watch's new state, its alerts and one pending
delivery a target in one transaction; a delivery is marked `sent` after its
target took it. A crash after the first step leaves the watch due, and the
same checks are judged again; a crash after the second loses nothing; a crash
between sending and marking sends once more, with the same key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from letopis.catalog.database import Cursor, Database
from letopis.catalog.schema import ensure_tables, has_table

WATCH_TABLES = """
CREATE TABLE IF NOT EXISTS watch (
    id {id}, url TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, tag TEXT NOT NULL, source TEXT NOT NULL, spec TEXT NOT NULL,
    state TEXT NOT NULL, due BIGINT NOT NULL, added BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS watch_due ON watch (due);
CREATE TABLE IF NOT EXISTS watch_tag (name TEXT PRIMARY KEY, spec TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS alert (
    id {id}, url TEXT NOT NULL, kind TEXT NOT NULL, time BIGINT NOT NULL, message TEXT NOT NULL, facts TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS alert_url ON alert (url, id);
CREATE TABLE IF NOT EXISTS delivery (
    alert BIGINT NOT NULL, target TEXT NOT NULL, guarded SMALLINT NOT NULL, state TEXT NOT NULL,
    attempts INTEGER NOT NULL, due BIGINT NOT NULL, error TEXT NOT NULL, PRIMARY KEY (alert, target)
) {clustered};
CREATE INDEX IF NOT EXISTS delivery_due ON delivery (due) WHERE state = 'pending';
"""
NEVER = 253_370_764_800_000
"""When a watch that rests is due: the year 9999."""
_WATCH_COLUMNS = "id, url, kind, tag, source, spec, state, due, added"


class WatchRow(NamedTuple):
    """One watch; `spec` and `state` are JSON. `source` is the sitemap that named the URL, else empty."""

    id: int
    url: str
    kind: str
    tag: str
    source: str
    spec: str
    state: str
    due: int
    added: int


class AlertRow(NamedTuple):
    """Something a watch has noticed; `facts` is JSON."""

    id: int
    url: str
    kind: str
    time: int
    message: str
    facts: str


class DeliveryRow(NamedTuple):
    """One alert on its way to one target; `guarded` ones may not reach private addresses."""

    alert: int
    target: str
    guarded: int
    state: str
    attempts: int
    due: int
    error: str


class Watches:
    """Reads answer empty until the first watch is made."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _rows(self, table: str, question: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._database.all(question, values) if has_table(self._database, table) else []

    def ensure(self) -> None:
        """Makes the tables; must not be called inside a transaction."""
        ensure_tables(self._database, "watches", WATCH_TABLES)

    # Watches

    def add(self, cursor: Cursor, row: WatchRow) -> None:
        """Makes a watch, or gives an existing one of the URL a new specification and time; its state stays."""
        cursor.run(
            f"INSERT INTO watch ({_WATCH_COLUMNS[4:]}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (url) DO UPDATE SET "
            "kind = excluded.kind, tag = excluded.tag, source = excluded.source, spec = excluded.spec, "
            "due = excluded.due",
            row[1:],
        )

    def add_new(self, cursor: Cursor, rows: Iterable[WatchRow]) -> None:
        """Makes watches; those that exist are left as they are."""
        cursor.run_many(
            f"INSERT INTO watch ({_WATCH_COLUMNS[4:]}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (url) DO NOTHING",
            [row[1:] for row in rows],
        )

    def remove(self, cursor: Cursor, url: str) -> int:
        """Ends a watch, and those that a sitemap of this URL named; answers how many."""
        return cursor.run("DELETE FROM watch WHERE url = ? OR source = ?", (url, url))

    def remove_gone(self, cursor: Cursor, source: str, kept: Iterable[str]) -> int:
        """Ends the watches of a sitemap whose URLs it no longer names."""
        known = {str(row[0]) for row in cursor.all("SELECT url FROM watch WHERE source = ?", (source,))}
        gone = known.difference(kept)
        cursor.run_many("DELETE FROM watch WHERE url = ?", [(url,) for url in gone])
        return len(gone)

    def find(self, url: str) -> WatchRow | None:
        """The watch of a URL."""
        rows = self._rows("watch", f"SELECT {_WATCH_COLUMNS} FROM watch WHERE url = ?", (url,))
        return WatchRow(*rows[0]) if rows else None

    def all(self) -> list[WatchRow]:
        """Every watch, oldest first."""
        return [WatchRow(*row) for row in self._rows("watch", f"SELECT {_WATCH_COLUMNS} FROM watch ORDER BY id")]

    def part(self, tag: str, limit: int, offset: int) -> list[WatchRow]:
        """Some of the watches with a tag, or of all for an empty one, oldest first."""
        rows = self._rows(
            "watch", f"SELECT {_WATCH_COLUMNS} FROM watch WHERE ? = '' OR tag = ? ORDER BY id LIMIT ? OFFSET ?",
            (tag, tag, limit, offset),
        )  # fmt: skip
        return [WatchRow(*row) for row in rows]

    def tag_counts(self) -> dict[str, int]:
        """How many watches have each tag; those without one stand under the empty name."""
        return {str(name): int(count) for name, count in self._rows(
            "watch", "SELECT tag, count(*) FROM watch GROUP BY tag ORDER BY tag")}  # fmt: skip

    def set_due(self, cursor: Cursor, urls: Iterable[str], due: int) -> None:
        """Gives watches another time; `NEVER` lets them rest."""
        cursor.run_many("UPDATE watch SET due = ? WHERE url = ?", [(due, url) for url in urls])

    def retag(self, cursor: Cursor, urls: Iterable[str], tag: str) -> None:
        """Gives watches another tag."""
        cursor.run_many("UPDATE watch SET tag = ? WHERE url = ?", [(tag, url) for url in urls])

    def due(self, now: int, limit: int) -> list[WatchRow]:
        """Watches whose time has come, the longest waiting first."""
        rows = self._rows(
            "watch", f"SELECT {_WATCH_COLUMNS} FROM watch WHERE due <= ? ORDER BY due, id LIMIT ?", (now, limit)
        )
        return [WatchRow(*row) for row in rows]

    def next_due(self) -> int | None:
        """When the next watch or delivery is due; None when nothing waits."""
        watch = self._rows("watch", "SELECT min(due) FROM watch")
        sending = self._rows("delivery", "SELECT min(due) FROM delivery WHERE state = 'pending'")
        times = [int(row[0]) for row in (*watch, *sending) if row[0] is not None]
        return min(times, default=None)

    def judged(self, cursor: Cursor, rows: Iterable[tuple[str, int, int]]) -> None:
        """New states and times: rows (state, due, id)."""
        cursor.run_many("UPDATE watch SET state = ?, due = ? WHERE id = ?", rows)

    # Tags

    def set_tag(self, cursor: Cursor, name: str, spec: str) -> None:
        """Defaults of all watches with a tag."""
        cursor.run(
            "INSERT INTO watch_tag (name, spec) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET spec = excluded.spec",
            (name, spec),
        )

    def tags(self) -> dict[str, str]:
        """The defaults of every tag that has some."""
        return {str(row[0]): str(row[1]) for row in self._rows("watch_tag", "SELECT name, spec FROM watch_tag")}

    # Alerts and their delivery

    def alert(self, cursor: Cursor, row: AlertRow, targets: Iterable[tuple[str, bool]]) -> int:
        """Records an alert and one pending delivery a target (target, guarded); answers its id."""
        made = cursor.one(
            "INSERT INTO alert (url, kind, time, message, facts) VALUES (?, ?, ?, ?, ?) RETURNING id", row[1:]
        )
        assert made is not None
        number = int(made[0])
        cursor.run_many(
            "INSERT INTO delivery (alert, target, guarded, state, attempts, due, error) "
            "VALUES (?, ?, ?, 'pending', 0, ?, '') ON CONFLICT DO NOTHING",
            [(number, target, int(guarded), row.time) for target, guarded in targets],
        )
        return number

    def alerts(self, url: str | None = None, limit: int = 100) -> list[AlertRow]:
        """The latest alerts, newest first."""
        where, values = ("WHERE url = ? ", (url,)) if url is not None else ("", ())
        rows = self._rows(
            "alert",
            f"SELECT id, url, kind, time, message, facts FROM alert {where}ORDER BY id DESC LIMIT ?",
            (*values, limit),
        )
        return [AlertRow(*row) for row in rows]

    def waiting(self, now: int, limit: int = 100) -> list[tuple[DeliveryRow, AlertRow]]:
        """Deliveries whose time has come, with their alerts."""
        rows = self._rows(
            "delivery",
            "SELECT d.alert, d.target, d.guarded, d.state, d.attempts, d.due, d.error, "
            "a.id, a.url, a.kind, a.time, a.message, a.facts FROM delivery d JOIN alert a ON a.id = d.alert "
            "WHERE d.state = 'pending' AND d.due <= ? ORDER BY d.due, d.alert LIMIT ?",
            (now, limit),
        )
        return [(DeliveryRow(*row[:7]), AlertRow(*row[7:])) for row in rows]

    def claim(self, row: DeliveryRow, until: int) -> bool:
        """Takes a delivery for a while; False when another process has it."""
        with self._database.transaction() as cursor:
            touched = cursor.run(
                "UPDATE delivery SET due = ?, attempts = attempts + 1 "
                "WHERE alert = ? AND target = ? AND state = 'pending' AND due = ?",
                (until, row.alert, row.target, row.due),
            )
        return touched == 1

    def settle(self, row: DeliveryRow, state: str, due: int, error: str) -> None:
        """What became of a claimed delivery: sent, failed for good, or pending until `due`."""
        with self._database.transaction() as cursor:
            cursor.run(
                "UPDATE delivery SET state = ?, due = ?, error = ? WHERE alert = ? AND target = ?",
                (state, due, error, row.alert, row.target),
            )

    def deliveries(self, alert: int) -> list[DeliveryRow]:
        """Where an alert went."""
        rows = self._rows(
            "delivery",
            "SELECT alert, target, guarded, state, attempts, due, error FROM delivery WHERE alert = ? ORDER BY target",
            (alert,),
        )
        return [DeliveryRow(*row) for row in rows]
