"""What waits to be fetched, by host: rows of `resource` in the states NEW (1) and AGAIN (2).

A URL that is being fetched keeps its stored state; only the record of the finished check changes it, in the same
transaction. All times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from letopis.catalog.database import Cursor, Database, storable_text
from letopis.catalog.schema import ensure_tables, has_table
from letopis.tuples import NamedTuple

KNOWN, NEW, AGAIN, HELD, GONE = range(5)

_HOST_COLUMNS = "h.id, h.name, h.ip, h.ready, h.ip_ready, h.crawl_delay, h.fetched, h.failures, h.fence"
_HAS_FOREIGN = "(SELECT count(*) FROM meta WHERE name = 'foreign crawls')"
_URL = f"id, url, depth, priority, coalesce(due, 0), schedule, newest IS NOT NULL, {_HAS_FOREIGN}"
_REVISITS = "revisits"
_INBOX = "inbox"
_URLS_AT_ONCE = 1000
REVISIT_TABLE = "CREATE TABLE IF NOT EXISTS revisit (host BIGINT PRIMARY KEY, fetches BIGINT NOT NULL) {clustered};"
"""Fetches of pages that had been visited before, by host; `host.fetched` counts first visits."""
# One index lookup per host. For EXISTS an engine may build a table of all that waits, at each query; without the order
# of the index it may read the whole table for each host, if it believes that there are few hosts.
_FIRST = "(SELECT 1 FROM resource r WHERE r.host = h.id AND r.state = {0} LIMIT 1) IS NOT NULL"
HAS_NEW = _FIRST.format("1 ORDER BY r.priority DESC")
HAS_DUE = _FIRST.format("2 AND r.due <= ? ORDER BY r.due")


INBOX_TABLE = """
CREATE TABLE IF NOT EXISTS inbox (
    id {id}, url_key BIGINT NOT NULL, url TEXT NOT NULL, host BIGINT NOT NULL, depth INTEGER NOT NULL,
    priority {float} NOT NULL
);
CREATE INDEX IF NOT EXISTS inbox_host ON inbox (host);
"""
"""URLs that were found by agents which must not add to the URLs of their hosts; see `Queues.take_in`."""
_RECEIVERS = (
    "SELECT id FROM host WHERE (owner = ? OR lease_until <= ?) AND id IN "
    "({0}SELECT host FROM (SELECT host FROM inbox ORDER BY id LIMIT 1000) oldest) ORDER BY id "
)
"""Hosts of one owner for which URLs wait there, and hosts without an owner among those of the oldest of these URLs."""
_HELD = "SELECT host FROM inbox WHERE host = ANY(?::bigint[]) UNION ALL "
_PLANNED = ("smallint", "bigint", "bytea", "bigint")
_PAUSED = ("text", "bigint", "bigint", "float8", "bigint", "integer", "bigint")
_URL_COLUMNS = ("url_key", "url", "host", "depth", "priority")
_ADD_ALL = (
    "INSERT INTO resource (url_key, url, host, state, depth, priority) SELECT key, url, host, 1, depth, priority FROM "
    "unnest(?::bigint[], ?::text[], ?::bigint[], ?::integer[], ?::float8[]) AS new (key, url, host, depth, priority) "
    "ON CONFLICT DO NOTHING"
)
_PLAN_KNOWN = "UPDATE resource SET state = 1, depth = ?, priority = ?, due = NULL WHERE state = 0 AND url_key = ? AND "
_AS_INDEXED = "md5(url)::uuid = md5(?)::uuid"
"""By a key alone the server expects many rows until it has analysed the table."""
_ADD_ONE = (
    "INSERT INTO resource (url_key, url, host, state, depth, priority) SELECT ?, ?, ?, 1, ?, ? "
    "WHERE NOT EXISTS (SELECT 1 FROM resource WHERE url_key = ? AND url = ?)"
)


SET_META = "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


class Shard(NamedTuple):
    """The hosts of one agent: those whose id has this remainder."""

    rest: int = 0
    agents: int = 1


class QueueCounts(NamedTuple):
    """How many URLs wait, by kind."""

    new: int
    again: int


class NewestKeys(NamedTuple):
    """Keys of URLs, and whether there are no others."""

    keys: list[int]
    whole: bool


class Queues:
    """Queries and changes of the frontier; writes happen inside the caller's transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def hosts_due(self, now: int, new: bool, limit: int, after: int, cap: int, shard: Shard) -> list[tuple[Any, ...]]:
        """Hosts of the shard with an id above `after` that have something due, by id."""
        mine = f"SELECT {_HOST_COLUMNS} FROM host h WHERE h.id > ? AND h.id % ? = ?"
        values = (after, shard.agents, shard.rest)
        if new:
            return self._database.all(
                f"{mine} AND {HAS_NEW} AND h.fetched < ? ORDER BY h.id LIMIT ?", (*values, cap or 2**62, limit)
            )
        return self._database.all(f"{mine} AND {HAS_DUE} ORDER BY h.id LIMIT ?", (*values, now, limit))

    def next_due(self, now: int, shard: Shard) -> int | None:
        """When the next URL becomes due after `now`."""
        row = self._database.one(
            "SELECT min(due) FROM resource WHERE state = 2 AND due > ? AND host % ? = ?",
            (now, shard.agents, shard.rest),
        )
        return int(row[0]) if row and row[0] is not None else None

    def load(self, host: int, now: int, new: bool, limit: int) -> list[tuple[Any, ...]]:
        """Due URLs of a host, best first; at the end of each row, whether there `has_foreign` at that moment."""
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
        """Stores URLs as NEW: rows (key, url, host id, depth, priority); those ever planned are skipped."""
        if not rows:
            return
        if cursor.dialect.name == "postgresql":
            rows = [(key, storable_text(url), *rest) for key, url, *rest in rows]
            added, same = cursor.run(_ADD_ALL, [list(column) for column in zip(*rows, strict=True)]), _AS_INDEXED
        else:
            added, same = cursor.run_many(_ADD_ONE, ((*row, row[0], row[1]) for row in rows)), "url = ?"
        if added < len(rows):
            # Some were here before: URLs of a check, an import or a put were never planned.
            cursor.run_many(
                _PLAN_KNOWN + same,
                ((depth, priority, key, url) for key, url, _, depth, priority in rows),
                ("integer", "float8", "bigint", "text"),
            )

    def ensure_inbox(self) -> None:
        """Creates the table of the inbox; call it before a transaction that writes to it."""
        ensure_tables(self._database, _INBOX, INBOX_TABLE)

    def send(self, cursor: Cursor, rows: Sequence[Sequence[Any]]) -> None:
        """Leaves URLs for agents that may add to their hosts: rows as for `add`. No process waits for another."""
        if rows:
            cursor.bulk("inbox", _URL_COLUMNS, rows)

    def has_inbox(self) -> bool:
        """Whether URLs wait there for their hosts."""
        return has_table(self._database, _INBOX) and self._database.one("SELECT 1 FROM inbox LIMIT 1") is not None

    def take_in(self, most: int, owner: str = "", held: Iterable[int] = (), now: int = 2**62) -> list[int]:
        """Adds URLs that wait there for hosts which no transaction writes to now; the hosts that may have got any.

        With an `owner` only those of the hosts that it has `held`, and of hosts that nobody owns `now`: commits of
        other agents never wait. A transaction that adds to a host or takes out for it has locked it, so a URL is added
        once however often it was sent, and is always in one of the two places.
        """
        if not self.has_inbox():
            return []
        dialect = self._database.dialect
        with self._database.transaction(beside=True, first=dialect.by_keys) as cursor:
            own = (f"{{{','.join(map(str, held))}}}",) if owner and dialect.beside else ()
            receivers = _RECEIVERS.format(_HELD if own else "") + dialect.skip_locked
            found = cursor.all(receivers, (owner, now, *own))
            hosts = [int(row[0]) for row in found]
            rows = cursor.all(
                "SELECT id, url_key, url, host, depth, priority FROM inbox "
                f"WHERE host IN ({', '.join('?' * len(hosts)) or 'NULL'}) ORDER BY id LIMIT ?",
                (*hosts, most),
            )
            self.add(cursor, [row[1:] for row in rows])
            # By their ids: more may have arrived meanwhile.
            for start in range(0, len(rows), _URLS_AT_ONCE):
                part = [row[0] for row in rows[start : start + _URLS_AT_ONCE]]
                cursor.run(f"DELETE FROM inbox WHERE id IN ({', '.join('?' * len(part))})", part)
        return sorted({int(row[3]) for row in rows})

    def raise_priority(self, cursor: Cursor, rows: Iterable[tuple[float, int, str]]) -> None:
        """Adds to the priority of URLs that wait for their first visit: rows (how much, key, url)."""
        cursor.run_many("UPDATE resource SET priority = priority + ? WHERE url_key = ? AND url = ? AND state = 1", rows)

    def plan(self, cursor: Cursor, resource: int, depth: int) -> int:
        """Makes a known URL wait for its first visit; 0 if it was planned before."""
        return cursor.run(
            "UPDATE resource SET state = 1, depth = ?, due = NULL WHERE id = ? AND state IN (0, 3, 4)",
            (depth, resource),
        )

    def finish(self, cursor: Cursor, rows: Iterable[tuple[int, int | None, bytes, int]]) -> None:
        """The plan after a check: rows (state, due, schedule, id)."""
        cursor.run_many("UPDATE resource SET state = ?, due = ?, schedule = ? WHERE id = ?", rows, _PLANNED)

    def set_hosts(self, cursor: Cursor, rows: Iterable[tuple[str, int, int, float, int, int, int]]) -> None:
        """Politeness after a fetch: rows (ip, ready, ip_ready, crawl_delay, fetched, failures, id)."""
        cursor.run_many(
            "UPDATE host SET ip = ?, ready = ?, ip_ready = ?, crawl_delay = ?, fetched = ?, failures = ? WHERE id = ?",
            rows,
            _PAUSED,
        )

    def ensure_revisits(self) -> None:
        """Creates the table of revisits; call it before a transaction that writes to it."""
        ensure_tables(self._database, _REVISITS, REVISIT_TABLE)

    def add_revisits(self, cursor: Cursor, rows: Iterable[tuple[int, int]]) -> None:
        """Counts fetches of pages that had been visited before: rows (host id, how many more)."""
        cursor.run_many(
            "INSERT INTO revisit (host, fetches) VALUES (?, ?) "
            "ON CONFLICT (host) DO UPDATE SET fetches = revisit.fetches + excluded.fetches",
            rows,
            ("bigint", "bigint"),
        )

    def newest_keys(self, most: int) -> NewestKeys:
        """The keys of those of the last `most` URLs that were ever planned."""
        row = self._database.one("SELECT coalesce(max(id), 0) FROM resource")
        last = int(row[0]) if row else 0
        rows = self._database.all("SELECT url_key FROM resource WHERE id > ? AND state <> 0", (last - most,))
        return NewestKeys([key for (key,) in rows], last <= most)

    def planned(self, keys: Sequence[int]) -> set[int]:
        """Those of the keys under which a URL was ever planned."""
        found: set[int] = set()
        for start in range(0, len(keys), _URLS_AT_ONCE):
            part = keys[start : start + _URLS_AT_ONCE]
            marks = ", ".join("?" * len(part))
            rows = self._database.all(f"SELECT url_key FROM resource WHERE url_key IN ({marks}) AND state <> 0", part)
            found.update(key for (key,) in rows)
        return found

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
        """Makes visited URLs due that are planned later than `latest`; returns how many."""
        return cursor.run("UPDATE resource SET due = ? WHERE state = 2 AND due > ?", (now, latest))

    def end_pauses(self, cursor: Cursor, latest: int) -> int:
        """Ends pauses of hosts and addresses that would last longer than `latest`; returns how many hosts."""
        return cursor.run(
            "UPDATE host SET ready = CASE WHEN ready > ? THEN 0 ELSE ready END, "
            "ip_ready = CASE WHEN ip_ready > ? THEN 0 ELSE ip_ready END WHERE ready > ? OR ip_ready > ?",
            (latest,) * 4,
        )

    def drop(self, cursor: Cursor, host: str) -> int:
        """Drops all planned visits of a host, even if others link to it; running fetches still end normally."""
        return cursor.run(
            "UPDATE resource SET state = 3, due = NULL "
            "WHERE state IN (1, 2) AND host = (SELECT id FROM host WHERE name = ?)",
            (host,),
        )

    def is_empty(self) -> bool:
        """Whether no URL is planned."""
        planned = any(
            self._database.one(f"SELECT 1 FROM resource WHERE state = {kind} LIMIT 1") for kind in (NEW, AGAIN)
        )
        return not planned and not self.has_inbox()

    def waiting(self) -> QueueCounts:
        """How many URLs are planned."""
        # One query per state: each has a separate small index.
        counted = ["resource WHERE state = 1", "resource WHERE state = 2"]
        if has_table(self._database, _INBOX):
            counted.append("inbox")
        rows = [self._database.one(f"SELECT count(*) FROM {what}") for what in counted]
        new, again, *sent = [int(row[0]) if row else 0 for row in rows]
        return QueueCounts(new + sum(sent), again)

    def due_again(self, now: int) -> int:
        """How many visited URLs are due."""
        row = self._database.one("SELECT count(*) FROM resource WHERE state = 2 AND due <= ?", (now,))
        return int(row[0]) if row else 0

    def ready_hosts(self, now: int) -> int:
        """How many hosts could get requests now: they have no pause, and one of their URLs waits or is due."""
        row = self._database.one(
            "SELECT count(*) FROM host h WHERE h.ready <= ? AND h.ip_ready <= ? AND ("
            "EXISTS (SELECT 1 FROM resource r WHERE r.host = h.id AND r.state = 1) OR "
            "EXISTS (SELECT 1 FROM resource r WHERE r.host = h.id AND r.state = 2 AND r.due <= ?))",
            (now, now, now),
        )
        return int(row[0]) if row else 0

    def next_visits(self, limit: int) -> list[tuple[str, int]]:
        """The URLs that are revisited next, and when each is due."""
        return self._database.all("SELECT url, due FROM resource WHERE state = 2 ORDER BY due LIMIT ?", (limit,))

    def plan_of(self, resource: int) -> tuple[int, int | None, bytes, int, float]:
        """State, due time, visit record, depth and priority of a URL."""
        row = self._database.one("SELECT state, due, schedule, depth, priority FROM resource WHERE id = ?", (resource,))
        assert row is not None
        return row[0], row[1], bytes(row[2] or b""), row[3], row[4]

    def knows_host(self, name: str) -> bool:
        """Whether there is any URL of a host."""
        return self._database.one("SELECT 1 FROM host WHERE name = ?", (name,)) is not None

    def visited_hosts(self, most: int) -> list[str]:
        """Names of hosts that crawls have requested."""
        rows = self._database.all("SELECT name FROM host WHERE fetched > 0 ORDER BY id LIMIT ?", (most,))
        return [str(row[0]) for row in rows]

    def plans(self) -> str:
        """The planned crawls, in the form of the caller; empty at the start."""
        row = self._database.one("SELECT value FROM meta WHERE name = 'crawls'")
        return str(row[0]) if row else ""

    def set_plans(self, cursor: Cursor, text: str) -> None:
        """Replaces them, in the transaction that plans the seeds."""
        cursor.run(SET_META, ("crawls", text))

    def mark_foreign(self, cursor: Cursor) -> None:
        """Records permanently that an account other than the owner has planned a crawl."""
        cursor.run("INSERT INTO meta (name, value) VALUES ('foreign crawls', '1') ON CONFLICT (name) DO NOTHING")

    def has_foreign(self) -> bool:
        """Whether an account other than the owner ever planned a crawl."""
        return self._database.count(f"SELECT {_HAS_FOREIGN}") > 0

    def has_accounts(self) -> bool:
        """Whether a crawl could be started through HTTP: there is a user or a token."""
        return any(
            has_table(self._database, table) and self._database.one(f"SELECT 1 FROM {table} LIMIT 1") is not None
            for table in ("account_user", "account_token")
        )

    def memory(self) -> bytes:
        """What the revisit policy remembers of all pages; empty at the start."""
        row = self._database.one("SELECT value FROM meta WHERE name = 'schedule'")
        return bytes.fromhex(row[0]) if row else b""

    def set_memory(self, cursor: Cursor, data: bytes) -> None:
        """Replaces it, in the transaction of the visits from which it was learned."""
        cursor.run(SET_META, ("schedule", data.hex()))

    def set_figures(self, cursor: Cursor, agent: int, text: str) -> None:
        """What an agent of a fleet has done, in the transaction of what it counts."""
        cursor.run(SET_META, (f"figures of agent {agent}", text))

    def take_figures(self, agent: int) -> str:
        """Takes what an agent has left of that; it is removed."""
        with self._database.transaction() as cursor:
            row = cursor.one("DELETE FROM meta WHERE name = ? RETURNING value", (f"figures of agent {agent}",))
        return str(row[0]) if row else ""


def visit_records(database: Database, most: int) -> list[bytes]:
    """The visit records of pages that are revisited: of all, or of about `most`, evenly chosen."""
    row = database.one("SELECT count(*) FROM resource WHERE state = ?", (AGAIN,))
    step = max(1, -(-int(row[0] if row else 0) // most))
    rows = database.all("SELECT schedule FROM resource WHERE state = ? AND id % ? = 0", (AGAIN, step))
    return [bytes(record) for (record,) in rows if record]
