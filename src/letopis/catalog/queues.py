"""What waits to be fetched, by host: rows of `resource` in the states NEW (1) and AGAIN (2).

A URL under way keeps its stored state; only the record of the finished look
moves it, inside the same transaction. All times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from letopis.catalog.database import Cursor, Database
from letopis.catalog.schema import ensure_tables, has_table

KNOWN, NEW, AGAIN, HELD, GONE = range(5)

_HOST_COLUMNS = "h.id, h.name, h.ip, h.ready, h.ip_ready, h.crawl_delay, h.fetched, h.failures, h.fence"
_URL = "id, url, depth, priority, coalesce(due, 0), schedule, newest IS NOT NULL"
_REVISITS = "revisits"
REVISIT_TABLE = "CREATE TABLE IF NOT EXISTS revisit (host BIGINT PRIMARY KEY, fetches BIGINT NOT NULL) {clustered};"
"""Fetches of pages that had been visited before, by host; `host.fetched` counts first visits."""
HAS_NEW = "SELECT 1 FROM resource r WHERE r.host = h.id AND r.state = 1"
HAS_DUE = "SELECT 1 FROM resource r WHERE r.host = h.id AND r.state = 2 AND r.due <= ?"


class Shard(NamedTuple):
    """The hosts of one agent: those whose id leaves this rest."""

    rest: int = 0
    agents: int = 1


class QueueCounts(NamedTuple):
    """How many URLs wait, by kind."""

    new: int
    again: int


class Queues:
    """Questions and changes of the frontier; writes happen inside the caller's transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def hosts_due(self, now: int, new: bool, limit: int, after: int, cap: int, shard: Shard) -> list[tuple[Any, ...]]:
        """Hosts of the shard with an id above `after` that have something due, by id."""
        mine = f"SELECT {_HOST_COLUMNS} FROM host h WHERE h.id > ? AND h.id % ? = ?"
        values = (after, shard.agents, shard.rest)
        if new:
            return self._database.all(
                f"{mine} AND EXISTS ({HAS_NEW}) AND h.fetched < ? ORDER BY h.id LIMIT ?",
                (*values, cap or 2**62, limit),
            )
        return self._database.all(f"{mine} AND EXISTS ({HAS_DUE}) ORDER BY h.id LIMIT ?", (*values, now, limit))

    def next_due(self, now: int, shard: Shard) -> int | None:
        """When the next URL gets due after `now`."""
        row = self._database.one(
            "SELECT min(due) FROM resource WHERE state = 2 AND due > ? AND host % ? = ?",
            (now, shard.agents, shard.rest),
        )
        return int(row[0]) if row and row[0] is not None else None

    def load(self, host: int, now: int, new: bool, limit: int) -> list[tuple[Any, ...]]:
        """Due URLs of a host, best first."""
        if new:
            return self._database.all(
                f"SELECT {_URL} FROM resource WHERE host = ? AND state = 1 ORDER BY priority DESC, depth, id LIMIT ?",
                (host, limit),
            )
        return self._database.all(
            f"SELECT {_URL} FROM resource WHERE host = ? AND state = 2 AND due <= ? ORDER BY due LIMIT ?",
            (host, now, limit),
        )

    def add(self, cursor: Cursor, rows: Sequence[Sequence[Any]]) -> None:
        """Stores URLs as NEW: rows (key, url, host id, depth, priority); those ever planned are passed over."""
        added = cursor.run_many(
            "INSERT INTO resource (url_key, url, host, state, depth, priority) SELECT ?, ?, ?, 1, ?, ? "
            "WHERE NOT EXISTS (SELECT 1 FROM resource WHERE url_key = ? AND url = ?)",
            ((*row, row[0], row[1]) for row in rows),
        )
        if added < len(rows):
            # Some were here before: what a check, an import or a put brought was never planned by anybody.
            cursor.run_many(
                "UPDATE resource SET state = 1, depth = ?, priority = ?, due = NULL "
                "WHERE url_key = ? AND url = ? AND state = 0",
                ((depth, priority, key, url) for key, url, _, depth, priority in rows),
            )

    def raise_priority(self, cursor: Cursor, rows: Iterable[tuple[float, int, str]]) -> None:
        """Adds to the priority of URLs that wait for their first visit: rows (how much, key, url)."""
        cursor.run_many("UPDATE resource SET priority = priority + ? WHERE url_key = ? AND url = ? AND state = 1", rows)

    def plan(self, cursor: Cursor, resource: int, depth: int) -> int:
        """Makes a URL that is only known wait for its first visit; 0 when it was planned before."""
        return cursor.run(
            "UPDATE resource SET state = 1, depth = ?, due = NULL WHERE id = ? AND state IN (0, 3, 4)",
            (depth, resource),
        )

    def finish(self, cursor: Cursor, rows: Iterable[tuple[int, int | None, bytes, int]]) -> None:
        """What follows from a look: rows (state, due, schedule, id)."""
        cursor.run_many("UPDATE resource SET state = ?, due = ?, schedule = ? WHERE id = ?", rows)

    def set_hosts(self, cursor: Cursor, rows: Iterable[tuple[str, int, int, float, int, int, int]]) -> None:
        """Politeness after a fetch: rows (ip, ready, ip_ready, crawl_delay, fetched, failures, id)."""
        cursor.run_many(
            "UPDATE host SET ip = ?, ready = ?, ip_ready = ?, crawl_delay = ?, fetched = ?, failures = ? WHERE id = ?",
            rows,
        )

    def ensure_revisits(self) -> None:
        """Makes the table of revisits; to be called before a transaction that writes to it."""
        ensure_tables(self._database, _REVISITS, REVISIT_TABLE)

    def add_revisits(self, cursor: Cursor, rows: Iterable[tuple[int, int]]) -> None:
        """Counts fetches of pages that had been visited before: rows (host id, how many more)."""
        cursor.run_many(
            "INSERT INTO revisit (host, fetches) VALUES (?, ?) "
            "ON CONFLICT (host) DO UPDATE SET fetches = revisit.fetches + excluded.fetches",
            list(rows),
        )

    def all_keys(self, size: int = 100_000) -> Iterator[list[int]]:
        """The keys of all URLs ever planned, in parts."""
        part: list[int] = []
        for (key,) in self._database.stream("SELECT url_key FROM resource WHERE state <> 0", size=10_000):
            part.append(key)
            if len(part) >= size:
                yield part
                part = []
        if part:
            yield part

    def hasten(self, cursor: Cursor, resource: int, soon: int) -> None:
        """A URL that waits for its next visit is visited at that time at the latest."""
        cursor.run("UPDATE resource SET due = ? WHERE id = ? AND state = 2 AND due > ?", (soon, resource, soon))

    def make_due(self, cursor: Cursor, host: str, now: int) -> int:
        """Makes every visited URL of a host due at once."""
        return cursor.run(
            "UPDATE resource SET due = ? WHERE state = 2 AND due > ? AND host = (SELECT id FROM host WHERE name = ?)",
            (now, now, host),
        )

    def bring_back(self, cursor: Cursor, now: int, latest: int) -> int:
        """Makes visited URLs due that are planned later than `latest`; how many."""
        return cursor.run("UPDATE resource SET due = ? WHERE state = 2 AND due > ?", (now, latest))

    def end_pauses(self, cursor: Cursor, latest: int) -> int:
        """Ends pauses of hosts and addresses that would last longer than `latest`; of how many hosts."""
        return cursor.run(
            "UPDATE host SET ready = CASE WHEN ready > ? THEN 0 ELSE ready END, "
            "ip_ready = CASE WHEN ip_ready > ? THEN 0 ELSE ip_ready END WHERE ready > ? OR ip_ready > ?",
            (latest,) * 4,
        )

    def drop(self, cursor: Cursor, host: str) -> int:
        """Plans no visit of a host any more, whoever links there; what is under way still ends as it would."""
        return cursor.run(
            "UPDATE resource SET state = 3, due = NULL "
            "WHERE state IN (1, 2) AND host = (SELECT id FROM host WHERE name = ?)",
            (host,),
        )

    def waiting(self) -> QueueCounts:
        """How many URLs are planned."""
        # One question a state: each has a small index of its own.
        new = self._database.one("SELECT count(*) FROM resource WHERE state = 1")
        again = self._database.one("SELECT count(*) FROM resource WHERE state = 2")
        return QueueCounts(int(new[0]) if new else 0, int(again[0]) if again else 0)

    def due_again(self, now: int) -> int:
        """How many visited URLs are due."""
        row = self._database.one("SELECT count(*) FROM resource WHERE state = 2 AND due <= ?", (now,))
        return int(row[0]) if row else 0

    def ready_hosts(self, now: int) -> int:
        """How many hosts could be asked at once: no pause holds them, and a URL of theirs waits or is due."""
        row = self._database.one(
            "SELECT count(*) FROM host h WHERE h.ready <= ? AND h.ip_ready <= ? AND ("
            "EXISTS (SELECT 1 FROM resource r WHERE r.host = h.id AND r.state = 1) OR "
            "EXISTS (SELECT 1 FROM resource r WHERE r.host = h.id AND r.state = 2 AND r.due <= ?))",
            (now, now, now),
        )
        return int(row[0]) if row else 0

    def plan_of(self, resource: int) -> tuple[int, int | None, bytes, int, float]:
        """State, due time, visit record, depth and priority of a URL."""
        row = self._database.one("SELECT state, due, schedule, depth, priority FROM resource WHERE id = ?", (resource,))
        assert row is not None
        return row[0], row[1], bytes(row[2] or b""), row[3], row[4]

    def knows_host(self, name: str) -> bool:
        """Whether there is any URL of a host."""
        return self._database.one("SELECT 1 FROM host WHERE name = ?", (name,)) is not None

    def visited_hosts(self, most: int) -> list[str]:
        """Names of hosts that crawls have asked."""
        rows = self._database.all("SELECT name FROM host WHERE fetched > 0 ORDER BY id LIMIT ?", (most,))
        return [str(row[0]) for row in rows]

    def plans(self) -> str:
        """The crawls that were asked for, as whoever asked keeps them; empty at the start."""
        row = self._database.one("SELECT value FROM meta WHERE name = 'crawls'")
        return str(row[0]) if row else ""

    def set_plans(self, cursor: Cursor, text: str) -> None:
        """Replaces them, in the transaction that plans the seeds."""
        cursor.run(
            "INSERT INTO meta (name, value) VALUES ('crawls', ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (text,),
        )

    def mark_foreign(self, cursor: Cursor) -> None:
        """Notes for good that somebody other than the owner has planned a crawl."""
        cursor.run("INSERT INTO meta (name, value) VALUES ('foreign crawls', '1') ON CONFLICT (name) DO NOTHING")

    def has_foreign(self) -> bool:
        """Whether somebody other than the owner ever planned a crawl."""
        return self._database.one("SELECT 1 FROM meta WHERE name = 'foreign crawls'") is not None

    def has_accounts(self) -> bool:
        """Whether anybody could ask through HTTP for a crawl: there is a user or a token."""
        return any(
            has_table(self._database, table) and self._database.one(f"SELECT 1 FROM {table} LIMIT 1") is not None
            for table in ("account_user", "account_token")
        )

    def memory(self) -> bytes:
        """What the revisit policy remembers of all pages; empty at the start."""
        row = self._database.one("SELECT value FROM meta WHERE name = 'schedule'")
        return bytes.fromhex(row[0]) if row else b""

    def set_memory(self, cursor: Cursor, data: bytes) -> None:
        """Replaces it, in the transaction of the visits that taught it."""
        cursor.run(
            "INSERT INTO meta (name, value) VALUES ('schedule', ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (data.hex(),),
        )


def visit_records(database: Database, most: int) -> list[bytes]:
    """The visit records of pages that are visited again: of all, or of about `most`, evenly chosen."""
    row = database.one("SELECT count(*) FROM resource WHERE state = ?", (AGAIN,))
    step = max(1, -(-int(row[0] if row else 0) // most))
    rows = database.all("SELECT schedule FROM resource WHERE state = ? AND id % ? = 0", (AGAIN, step))
    return [bytes(record) for (record,) in rows if record]
