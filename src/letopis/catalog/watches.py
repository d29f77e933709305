"""Watches, their alerts, and the outbox of notifications.

A page may have several watches: the column `url` holds the key of a watch, which is the address of its page, followed
by `#` and a name for all but the first. Addresses of pages have no fragment.

Three steps, each durable before the next: the check is recorded by the archive; `save_judged` writes the new state of
the watch, its alerts and one pending delivery per target in one transaction; a delivery is marked `sent` after its
target accepted it. A crash after the first step leaves the watch due, and the same checks are judged again; a crash
after the second loses nothing; a crash between sending and marking sends once more, with the same key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from letopis.catalog.database import Cursor
from letopis.catalog.schema import TopicTables
from letopis.errors import REPAIR, Damaged
from letopis.tuples import NamedTuple

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
FOUND = "found"
"""The kind of an alert of a saved search."""
TEST = "test"
"""The kind of rows that are among the alerts only because of their deliveries: a test of targets."""
NEVER = 253_370_764_800_000
"""When a paused watch is due: the year 9999."""
_WATCH_COLUMNS = "id, url, kind, tag, source, spec, state, due, added"


def saved_key(number: int) -> str:
    """The prefix for a saved search among the keys of watches."""
    return f"saved:{number}"


def watch_key(url: str, name: str = "") -> str:
    """What distinguishes the watches of an archive."""
    return f"{url}#{name}" if name else url


def stored_json(text: str) -> dict[str, Any]:
    """The JSON of a row; Damaged if it is invalid."""
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError:
        raise Damaged(f"a row of the catalogue is damaged ({text[:60]!r} is not JSON)", REPAIR) from None
    return found


class WatchRow(NamedTuple):
    """One watch; `spec` and `state` are JSON. `source` is the sitemap that named the URL, else empty."""

    id: int
    key: str
    kind: str
    tag: str
    source: str
    spec: str
    state: str
    due: int
    added: int

    @property
    def url(self) -> str:
        """The page."""
        return self.key.partition("#")[0]

    @property
    def name(self) -> str:
        """Which of the watches of its page; the first has none."""
        return self.key.partition("#")[2]


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


class UndeliveredAlerts(NamedTuple):
    """How many notifications of a watch are tried again, how many were given up, and why the latest was refused."""

    retried: int
    failed: int
    error: str


class JudgedWatch(NamedTuple):
    """What a judgement writes: the watch's new state, the time at which it was due, and when it is due next."""

    state: str
    was_due: int
    due: int
    id: int


class NewAlert(NamedTuple):
    """An alert to be recorded, and its targets: (target, guarded). `due` is when they are notified."""

    alert: AlertRow
    targets: Sequence[tuple[str, bool]]
    due: int | None = None


class Watches(TopicTables):
    """Reads return nothing until the first watch is created; every change is one transaction."""

    topic, table, ddl = "watches", "watch", WATCH_TABLES

    # Watches

    def save(self, keys: Iterable[str], make: Callable[[str, WatchRow | None], WatchRow]) -> None:
        """Creates or changes watches, all or none: `make` turns a key and the row it has into its new row.

        A sitemap that becomes a plain page no longer watches the pages that it named.
        """
        self.ensure()
        with self._database.transaction() as cursor:
            for key in keys:
                found = cursor.one(f"SELECT {_WATCH_COLUMNS} FROM watch WHERE url = ?", (key,))
                old = WatchRow(*found) if found else None
                new = make(key, old)
                if old is not None and old.kind == "sitemap" and new.kind != "sitemap":
                    cursor.remove("watch", "source = ?", (key,))
                _upsert(cursor, new)

    def rename(self, row: WatchRow, key: str) -> bool:
        """Gives a watch another key; False when another watch has it."""
        with self._database.transaction() as cursor:
            if cursor.one("SELECT 1 FROM watch WHERE url = ? AND id <> ?", (key, row.id)) is not None:
                return False
            cursor.run("UPDATE watch SET url = ? WHERE id = ?", (key, row.id))
        return True

    def follow_sitemap(self, source: str, rows: Sequence[WatchRow]) -> None:
        """Watches the pages that a sitemap names, and no longer those that it dropped; known ones stay as they are."""
        with self._database.transaction() as cursor:
            numbered = zip(cursor.numbers("watch", len(rows)), rows, strict=True)
            cursor.run_many(f"{_INSERT} ON CONFLICT (url) DO NOTHING", [(number, *row[1:]) for number, row in numbered])
            known = {str(row[0]) for row in cursor.all("SELECT url FROM watch WHERE source = ?", (source,))}
            gone = known.difference(row.key for row in rows)
            for url in gone:
                cursor.remove("watch", "url = ?", (url,))

    def remove(self, rows: Iterable[WatchRow]) -> list[int]:
        """Removes watches, and those that a sitemap among them named; returns how many for each."""
        with self._database.transaction() as cursor:
            return [cursor.remove("watch", "id = ? OR source = ?", (row.id, _source_of(row))) for row in rows]

    def find(self, key: str) -> WatchRow | None:
        """The watch with a key."""
        rows = self._all(f"SELECT {_WATCH_COLUMNS} FROM watch WHERE url = ?", (key,))
        return WatchRow(*rows[0]) if rows else None

    def by_id(self, number: int) -> WatchRow | None:
        """The watch with a number."""
        rows = self._all(f"SELECT {_WATCH_COLUMNS} FROM watch WHERE id = ?", (number,))
        return WatchRow(*rows[0]) if rows else None

    def of_page(self, url: str) -> list[WatchRow]:
        """All watches of a page, oldest first."""
        start = watch_key(url, "x")[:-1]
        question = f"SELECT {_WATCH_COLUMNS} FROM watch WHERE url = ? OR substr(url, 1, ?) = ? ORDER BY id"
        return [WatchRow(*row) for row in self._all(question, (url, len(start), start))]

    def part(self, tag: str | None = None, limit: int | None = None, offset: int = 0) -> list[WatchRow]:
        """The watches with a tag, or all for None, oldest first; so many of them, or all."""
        where, values = ("", ()) if tag is None else ("WHERE tag = ? ", (tag,))
        question = f"SELECT {_WATCH_COLUMNS} FROM watch {where}ORDER BY id LIMIT ? OFFSET ?"
        rows = self._all(question, (*values, 2**62 if limit is None else limit, offset))
        return [WatchRow(*row) for row in rows]

    def tag_counts(self) -> dict[str, int]:
        """How many watches have each tag; those without one are under the empty name."""
        rows = self._all("SELECT tag, count(*) FROM watch GROUP BY tag ORDER BY tag")
        return {str(name): int(count) for name, count in rows}

    def set_due(self, rows: Iterable[WatchRow], due: int) -> None:
        """Gives watches another time; `NEVER` pauses them."""
        with self._database.transaction() as cursor:
            cursor.run_many("UPDATE watch SET due = ? WHERE id = ?", [(due, row.id) for row in rows])

    def resume(self, rows: Iterable[WatchRow], due: int) -> None:
        """Gives paused watches a time; the others keep theirs."""
        with self._database.transaction() as cursor:
            values = [(due, row.id, NEVER) for row in rows]
            cursor.run_many("UPDATE watch SET due = ? WHERE id = ? AND due >= ?", values)

    def retag(self, rows: Iterable[WatchRow], tag: str) -> None:
        """Gives watches another tag."""
        with self._database.transaction() as cursor:
            cursor.run_many("UPDATE watch SET tag = ? WHERE id = ?", [(tag, row.id) for row in rows])

    def claim_due(self, now: int, limit: int, until: int) -> list[WatchRow]:
        """Claims watches that are due, the longest waiting first: no other process gets them before `until`.

        They become due again then, if the process that claimed them dies; the rows have their earlier due times.
        """
        question = f"SELECT {_WATCH_COLUMNS} FROM watch WHERE due <= ? ORDER BY due, id LIMIT ?"
        if not self._all(question, (now, 1)):
            return []
        with self._database.transaction() as cursor:  # no other process writes during it, so what is read stays valid
            rows = [WatchRow(*row) for row in cursor.all(question, (now, limit))]
            cursor.run_many("UPDATE watch SET due = ? WHERE id = ?", [(until, row.id) for row in rows])
            return rows

    def count_due(self, now: int) -> int:
        """How many watches are due."""
        return self._count("SELECT count(*) FROM watch WHERE due <= ?", (now,))

    def due_after(self, due: int) -> list[WatchRow]:
        """Watches that are due later than that, without paused ones."""
        question = f"SELECT {_WATCH_COLUMNS} FROM watch WHERE due > ? AND due < ?"
        return [WatchRow(*row) for row in self._all(question, (due, NEVER))]

    def bring_back(self, rows: Iterable[WatchRow], due: int) -> None:
        """Gives watches another time, unless they got another since they were read."""
        with self._database.transaction() as cursor:
            values = [(due, row.id, row.due) for row in rows]
            cursor.run_many("UPDATE watch SET due = ? WHERE id = ? AND due = ?", values)

    def bring_back_deliveries(self, due: int, latest: int, held: int) -> None:
        """Makes deliveries due that are to be tried again later than `latest`, or are held back beyond `held`."""
        late = "state = 'pending' AND due > ? AND (attempts > 0 OR due > ?)"
        if self._all(f"SELECT 1 FROM delivery WHERE {late} LIMIT 1", (latest, held)):
            with self._database.transaction() as cursor:
                cursor.run(f"UPDATE delivery SET due = ? WHERE {late}", (due, latest, held))

    def next_due(self) -> int | None:
        """When the next watch or delivery is due; None when nothing waits."""
        watch = self._all("SELECT min(due) FROM watch")
        sending = self._all("SELECT min(due) FROM delivery WHERE state = 'pending'")
        times = [int(row[0]) for row in (*watch, *sending) if row[0] is not None]
        return min(times, default=None)

    def save_judged(self, judged: Iterable[JudgedWatch], alerts: Iterable[NewAlert]) -> None:
        """New states and times of watches with their alerts and deliveries, all or nothing.

        A watch that was paused or made due while its page was checked keeps that time.
        """
        with self._database.transaction() as cursor:
            cursor.run_many(
                "UPDATE watch SET state = ?, due = CASE WHEN due = ? THEN ? ELSE due END WHERE id = ?", judged
            )
            for one in alerts:
                add_alert(cursor, one)

    # Tags

    def save_tag(self, name: str, make: Callable[[str | None], str]) -> None:
        """Sets the defaults of all watches with a tag: `make` turns those it has into the new ones."""
        self.ensure()
        with self._database.transaction() as cursor:
            old = cursor.one("SELECT spec FROM watch_tag WHERE name = ?", (name,))
            cursor.run(
                "INSERT INTO watch_tag (name, spec) VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET spec = excluded.spec",
                (name, make(str(old[0]) if old else None)),
            )

    def remove_tag(self, name: str) -> bool:
        """Forgets the defaults of a tag; False when it has none."""
        if not self._all("SELECT 1 FROM watch_tag WHERE name = ?", (name,)):
            return False
        with self._database.transaction() as cursor:
            return cursor.run("DELETE FROM watch_tag WHERE name = ?", (name,)) > 0

    def tags(self) -> dict[str, str]:
        """The defaults of every tag that has some."""
        question = "SELECT name, spec FROM watch_tag ORDER BY name"
        return {str(row[0]): str(row[1]) for row in self._all(question)}

    # Alerts and their delivery

    def alerts(self, url: str | None = None, limit: int = 100, before: int | None = None) -> list[AlertRow]:
        """The latest alerts, newest first, tests aside; those of a URL, or those older than the one with an id."""
        conditions = {"kind <> ?": TEST, "url = ?": url, "id < ?": before}
        kept = {text: value for text, value in conditions.items() if value is not None}
        where = f"WHERE {' AND '.join(kept)} "
        rows = self._all(
            f"SELECT id, url, kind, time, message, facts FROM alert {where}ORDER BY id DESC LIMIT ?",
            (*kept.values(), limit),
        )
        return [AlertRow(*row) for row in rows]

    def record_test(self, alert: AlertRow, target: str, error: str) -> None:
        """That a test was sent to a target just now, and why it was not taken; no alert, but among the deliveries."""
        self.ensure()
        with self._database.transaction() as cursor:
            made = add_alert(cursor, NewAlert(alert, [(target, False)]))
            cursor.run(
                "UPDATE delivery SET state = ?, attempts = 1, error = ? WHERE alert = ?",
                ("failed" if error else "sent", error, made),
            )

    def waiting(self, now: int, limit: int = 100) -> list[tuple[DeliveryRow, AlertRow]]:
        """Deliveries whose time has come, with their alerts."""
        rows = self._all(
            f"{_DELIVERIES} WHERE d.state = 'pending' AND d.due <= ? ORDER BY d.due, d.alert LIMIT ?", (now, limit)
        )
        return [(DeliveryRow(*row[:7]), AlertRow(*row[7:])) for row in rows]

    def hold_back(self, dues: Mapping[int, int]) -> None:
        """Gives the alerts of watches that no target was tried with yet other times, by the numbers of the watches."""
        question = (
            "SELECT d.alert, a.facts FROM delivery d JOIN alert a ON a.id = d.alert "
            "WHERE d.state = 'pending' AND d.attempts = 0"
        )
        if not self._all(f"{question} LIMIT 1"):
            return
        with self._database.transaction() as cursor:
            watches = {int(alert): json.loads(facts).get("watch") for alert, facts in cursor.all(question)}
            moved = [(dues[watch], alert) for alert, watch in watches.items() if watch in dues]
            cursor.run_many("UPDATE delivery SET due = ? WHERE alert = ? AND state = 'pending' AND attempts = 0", moved)

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

    def undelivered(self) -> dict[str, UndeliveredAlerts]:
        """Alerts that their targets have not taken, by the keys of their watches and saved searches; those given up
        before the last that was taken are past.
        """
        rows = self._all(
            "SELECT a.url, a.kind, a.facts, d.state, d.error FROM delivery d "
            f"JOIN alert a ON a.id = d.alert WHERE a.kind <> '{TEST}' AND "
            "d.state <> 'sent' AND d.attempts > 0 AND (d.state = 'pending' OR "
            "d.alert > coalesce((SELECT max(s.alert) FROM delivery s JOIN alert b ON b.id = s.alert "
            "WHERE b.url = a.url AND s.target = d.target AND s.state = 'sent'), 0)) ORDER BY d.alert"
        )
        found: dict[str, UndeliveredAlerts] = {}
        for url, kind, text, state, error in rows:
            facts = stored_json(text)
            key = saved_key(facts["saved"]) if kind == FOUND else watch_key(str(url), facts.get("name", ""))
            known = found.get(key, UndeliveredAlerts(0, 0, ""))
            gave_up = state == "failed"
            found[key] = UndeliveredAlerts(known.retried + (not gave_up), known.failed + gave_up, error or known.error)
        return found

    def deliveries_of(self, url: str | None, limit: int) -> list[tuple[DeliveryRow, AlertRow]]:
        """Where the latest alerts went, of a page or of all, newest first."""
        where, values = ("WHERE a.url = ? ", (url,)) if url is not None else ("", ())
        rows = self._all(f"{_DELIVERIES} {where}ORDER BY d.alert DESC, d.target LIMIT ?", (*values, limit)
        )  # fmt: skip
        return [(DeliveryRow(*row[:7]), AlertRow(*row[7:])) for row in rows]

    def deliveries(self, alert: int) -> list[DeliveryRow]:
        """Where an alert went."""
        rows = self._all(
            "SELECT alert, target, guarded, state, attempts, due, error FROM delivery WHERE alert = ? ORDER BY target",
            (alert,),
        )
        return [DeliveryRow(*row) for row in rows]


_DELIVERIES = (
    "SELECT d.alert, d.target, d.guarded, d.state, d.attempts, d.due, d.error, "
    "a.id, a.url, a.kind, a.time, a.message, a.facts FROM delivery d JOIN alert a ON a.id = d.alert"
)
_INSERT = f"INSERT INTO watch ({_WATCH_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


def _source_of(row: WatchRow) -> str:
    """What the watches that it made name as their source; nothing has a key of one space."""
    return row.key if row.kind == "sitemap" else " "


def _upsert(cursor: Cursor, row: WatchRow) -> None:
    """Makes a watch, or gives the one with the key what is new; its state and its age stay."""
    cursor.run(
        f"{_INSERT} ON CONFLICT (url) DO UPDATE SET kind = excluded.kind, tag = excluded.tag, "
        "source = excluded.source, spec = excluded.spec, due = excluded.due",
        (*cursor.numbers("watch", 1), *row[1:]),
    )


def add_alert(cursor: Cursor, new: NewAlert) -> int:
    """An alert, and one pending delivery a target, within a transaction; its number."""
    made = cursor.one(
        "INSERT INTO alert (url, kind, time, message, facts) VALUES (?, ?, ?, ?, ?) RETURNING id", new.alert[1:]
    )
    assert made is not None
    due = new.alert.time if new.due is None else new.due
    cursor.run_many(
        "INSERT INTO delivery (alert, target, guarded, state, attempts, due, error) "
        "VALUES (?, ?, ?, 'pending', 0, ?, '') ON CONFLICT DO NOTHING",
        [(int(made[0]), target, int(guarded), due) for target, guarded in new.targets],
    )
    return int(made[0])
