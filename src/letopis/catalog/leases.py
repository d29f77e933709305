"""Which agent may ask which host: rows that all agents of a fleet see.

A lease is taken without waiting for anybody (rows that others are changing
are passed over) and is extended, given back and checked inside the turn of a
transaction. Each new owner raises the fence. Times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from letopis.catalog.database import Cursor, Database
from letopis.catalog.extras import ensure
from letopis.catalog.queues import HAS_DUE, HAS_NEW
from letopis.errors import NotReady

_DDL = "CREATE TABLE IF NOT EXISTS agent (name TEXT PRIMARY KEY, until BIGINT NOT NULL);"
_WORK = f"((EXISTS ({HAS_NEW}) AND h.fetched < ?) OR EXISTS ({HAS_DUE}))"
# Whoever held the host until its time was over may have asked it up to that moment.
_LATER = "lease_until + CASE WHEN crawl_delay * 1000 > {0} THEN CAST(crawl_delay * 1000 AS BIGINT) ELSE {0} END"
_MOST_COUNTED = 20_000
_MOST_APART = 5.0
"""Seconds between two machines that the spare time of a lease covers."""


def check_clock(database: Database, seconds: float) -> None:
    """NotReady when this machine's clock is far from the database's: leases are times that all must agree on."""
    if database.dialect.name != "postgresql":
        return
    row = database.one("SELECT extract(epoch FROM clock_timestamp())")
    apart = abs(float(row[0]) - seconds) if row else 0.0
    if apart > _MOST_APART:
        raise NotReady(f"this machine's clock is {apart:.0f} s off the database's; set it right, then start again")


class HostLeases:
    """Questions and changes about the owners of hosts; `delay` is owed to a host after its last owner vanished."""

    def __init__(self, database: Database, delay: int, cap: int) -> None:
        self._database = database
        self._cap = cap or 2**62
        ensure(database, "agents", _DDL)
        later = _LATER.format(int(delay))
        self._take = (
            "UPDATE host SET owner = ?, fence = fence + 1, lease_until = ?, "
            f"ready = CASE WHEN lease_until > 0 AND {later} > ready THEN {later} ELSE ready END WHERE id IN "
            f"(SELECT h.id FROM host h WHERE h.lease_until <= ? AND {_WORK} ORDER BY h.id LIMIT ? "
            f"{database.dialect.skip_locked}) RETURNING id, fence"
        )

    def take(self, owner: str, now: int, until: int, limit: int) -> list[tuple[Any, ...]]:
        """Free hosts with something due, given to `owner`: rows (host, fence)."""
        return self._database.all(self._take, (owner, until, now, self._cap, now, limit))

    def extend(self, owner: str, now: int, until: int) -> list[tuple[Any, ...]]:
        """What `owner` still holds, extended: rows (host, fence). Tells all others that it lives."""
        with self._database.transaction() as cursor:
            cursor.run(
                "INSERT INTO agent (name, until) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET until = excluded.until",
                (owner, until),
            )
            cursor.run("DELETE FROM agent WHERE until <= ?", (now,))
            return cursor.all(
                "UPDATE host SET lease_until = ? WHERE owner = ? AND lease_until > ? RETURNING id, fence",
                (until, owner, now),
            )

    def give_back(self, owner: str, hosts: Collection[int]) -> None:
        """Frees some hosts of `owner`."""
        with self._database.transaction() as cursor:
            cursor.run_many(
                "UPDATE host SET lease_until = 0, owner = '' WHERE id = ? AND owner = ?",
                [(host, owner) for host in sorted(hosts)],
            )

    def leave(self, owner: str) -> None:
        """Frees everything: the agent ends."""
        with self._database.transaction() as cursor:
            cursor.run("UPDATE host SET lease_until = 0, owner = '' WHERE owner = ?", (owner,))
            cursor.run("DELETE FROM agent WHERE name = ?", (owner,))

    def lost(self, cursor: Cursor, owner: str, fences: Sequence[tuple[int, int]], until: int) -> set[int]:
        """Those of (host, fence) that are no longer so; the others are extended and stay ours until the commit."""
        hosts = sorted({host for host, _ in fences})
        marks = ", ".join("?" * len(hosts))
        rows = cursor.all(
            f"UPDATE host SET lease_until = ? WHERE owner = ? AND id IN ({marks}) RETURNING id, fence",
            (until, owner, *hosts),
        )
        held = {(int(host), int(fence)) for host, fence in rows}
        return {host for host, fence in fences if (host, fence) not in held}

    def agents(self, now: int) -> int:
        """How many agents live."""
        row = self._database.one("SELECT count(*) FROM agent WHERE until > ?", (now,))
        return int(row[0]) if row else 0

    def busy_hosts(self, now: int) -> int:
        """How many hosts have something due, counted up to some ten thousand."""
        row = self._database.one(
            f"SELECT count(*) FROM (SELECT 1 FROM host h WHERE {_WORK} LIMIT {_MOST_COUNTED}) counted",
            (self._cap, now),
        )
        return int(row[0]) if row else 0

    def spent(self, owner: str, now: int) -> list[int]:
        """Hosts of `owner` that have nothing due."""
        rows = self._database.all(f"SELECT h.id FROM host h WHERE h.owner = ? AND NOT {_WORK}", (owner, self._cap, now))
        return [int(row[0]) for row in rows]

    def held_due(self, owner: str, now: int, new: bool, limit: int, after: int) -> list[tuple[Any, ...]]:
        """Hosts of `owner` with an id above `after` that have something of a kind due."""
        work, value = (f"EXISTS ({HAS_NEW}) AND h.fetched < ?", self._cap) if new else (f"EXISTS ({HAS_DUE})", now)
        return self._database.all(
            "SELECT h.id, h.name, h.ip, h.ready, h.ip_ready, h.crawl_delay, h.fetched, h.failures, h.fence "
            f"FROM host h WHERE h.owner = ? AND h.lease_until > ? AND h.id > ? AND {work} ORDER BY h.id LIMIT ?",
            (owner, now, after, value, limit),
        )
