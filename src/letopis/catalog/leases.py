"""Who may write to which pack log and fetch from which host, and when that may be: rows that all machines see.

Every decision is a row, read and written while the turn of the catalogue or the row is held (`Database.transaction`),
so neither the clock of a machine nor a paused process can undo a decision: each new owner increases the fence, and a
process that resumes finds that in its next transaction. All lock rows of hosts in the order of their ids. Times are
milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

from letopis.catalog.database import Cursor, Database
from letopis.catalog.queues import HAS_DUE, HAS_NEW, SET_META, Queues
from letopis.catalog.schema import ensure_tables
from letopis.errors import Busy, NotReady
from letopis.tuples import NamedTuple

_CLAIM_TABLES = """
CREATE TABLE IF NOT EXISTS pack_number (id INTEGER PRIMARY KEY, last BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS log_claim (token {id}, pack BIGINT NOT NULL, until BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS exclusive (name TEXT PRIMARY KEY, fence BIGINT NOT NULL, until BIGINT NOT NULL);
"""
_MARK_TABLES = "CREATE TABLE IF NOT EXISTS log_mark (pack BIGINT PRIMARY KEY, known BIGINT NOT NULL);"
_SET_MARK = (
    "INSERT INTO log_mark (pack, known) VALUES ({pack}, {end}) ON CONFLICT (pack) DO UPDATE SET known = excluded.known "
    "WHERE log_mark.known < excluded.known"
)
_NEXT_PACK_NUMBER = (
    "INSERT INTO pack_number (id, last) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET last = "
    "CASE WHEN pack_number.last >= excluded.last THEN pack_number.last + 1 ELSE excluded.last END RETURNING last"
)
_TAKE_LEASE = (
    "INSERT INTO exclusive (name, fence, until) VALUES (?, 1, ?) ON CONFLICT (name) DO UPDATE SET "
    "fence = exclusive.fence + 1, until = excluded.until WHERE exclusive.until <= ? RETURNING fence"
)
_KNOWN_UP_TO = "known_packs"
"""The row of `meta` with the number up to which the catalogue knew the packs when it was found to be older."""
UPKEEP = "upkeep"
"""The name of the lease under which packs are compacted and removed."""


class HeldLogs(NamedTuple):
    """Logs that writers hold now, and the last number that was given out."""

    held: frozenset[int]
    newest: int


class PackClaims:
    """Queries and changes about writers; each says whether it needs the caller's transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        ensure_tables(database, "claims", _CLAIM_TABLES)
        ensure_tables(database, "log marks", _MARK_TABLES)

    def number(self, last: int, cursor: Cursor | None = None) -> int:
        """A pack number above `last` that was never given out.

        A separate statement if the engine allows one during an open transaction: a number that was given out stays
        given out.
        """
        reader = self._database if cursor is None or self._database.dialect.beside else cursor
        given = reader.one("SELECT last FROM pack_number WHERE id = 1")
        if given is not None and last > int(given[0]):
            # This catalogue never gave out these numbers: it is an older copy that was restored.
            insert = "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING RETURNING name"
            reader.one(insert, (_KNOWN_UP_TO, str(given[0])))
        row = reader.one(_NEXT_PACK_NUMBER, (last + 1,))
        assert row is not None
        return int(row[0])

    def known_up_to(self) -> int | None:
        """The highest number of a pack that the catalogue certainly knows; None if none was given out."""
        row = self._database.one("SELECT value FROM meta WHERE name = ?", (_KNOWN_UP_TO,))
        row = row or self._database.one("SELECT last FROM pack_number WHERE id = 1")
        return int(row[0]) if row else None

    def mark(self, cursor: Cursor, pack: int, end: int) -> None:
        """With the commit: up to where the catalogue knows a log. An older copy knows less than the log contains."""
        cursor.last.append(_SET_MARK.format(pack=int(pack), end=int(end)))

    def marks(self, now: int) -> dict[int, int]:
        """Up to where the catalogue knows each log except those that writers hold now."""
        free = "SELECT pack, known FROM log_mark WHERE pack NOT IN (SELECT pack FROM log_claim WHERE until > ?)"
        return {int(pack): int(known) for pack, known in self._database.all(free, (now,))}

    def marked(self) -> set[int]:
        """The logs that the catalogue knows any part of."""
        return {int(pack) for (pack,) in self._database.all("SELECT pack FROM log_mark")}

    def outdated_marks(self, now: int) -> dict[int, int]:
        """Up to where the catalogue knows the logs whose writers neither renewed nor released their claims."""
        late = "SELECT pack, known FROM log_mark WHERE pack IN (SELECT pack FROM log_claim WHERE until <= ?)"
        return {int(pack): int(known) for pack, known in self._database.all(late, (now,))}

    def knows_all(self, cursor: Cursor, sizes: Mapping[int, int], marked: Collection[int]) -> None:
        """What was beyond the marks was read: logs get new marks, and numbers up to the highest are in use."""
        highest = max(sizes, default=0)
        cursor.run("DELETE FROM meta WHERE name = ?", (_KNOWN_UP_TO,))
        cursor.run("UPDATE pack_number SET last = ? WHERE id = 1 AND last < ?", (highest, highest))
        for pack in marked:
            if pack in sizes:
                self.mark(cursor, pack, sizes[pack])
            else:
                cursor.run("DELETE FROM log_mark WHERE pack = ?", (pack,))

    @staticmethod
    def renewal(token: int, until: int) -> str:
        """The statement that extends a claim; without a row, it was withdrawn and its log must not be used again."""
        return f"UPDATE log_claim SET until = {int(until)} WHERE token = {int(token)} RETURNING token"

    def claim(self, cursor: Cursor, token: int | None, pack: int, until: int) -> int:
        """Claims the log that a writer extends from now on; the token of the claim."""
        if token is not None:
            cursor.run("UPDATE log_claim SET pack = ?, until = ? WHERE token = ?", (pack, until, token))
            return token
        row = cursor.one("INSERT INTO log_claim (pack, until) VALUES (?, ?) RETURNING token", (pack, until))
        assert row is not None
        return int(row[0])

    def give_up(self, cursor: Cursor, token: int) -> None:
        """Ends a claim."""
        cursor.run("DELETE FROM log_claim WHERE token = ?", (token,))

    def standing(self, cursor: Cursor, now: int) -> HeldLogs:
        """Withdraws the expired claims and returns the others."""
        cursor.run("DELETE FROM log_claim WHERE until <= ?", (now,))
        held = frozenset(int(pack) for (pack,) in cursor.all("SELECT pack FROM log_claim"))
        return HeldLogs(held, cursor.count("SELECT last FROM pack_number WHERE id = 1"))

    def take(self, name: str, now: int, until: int) -> int | None:
        """The fence of an exclusive lease, None if another process has it."""
        with self._database.transaction() as cursor:
            row = cursor.one(_TAKE_LEASE, (name, until, now))
        return int(row[0]) if row else None

    def check(self, cursor: Cursor, name: str, fence: int, until: int) -> None:
        """Extends an exclusive lease; Busy if another process has it."""
        if not cursor.run("UPDATE exclusive SET until = ? WHERE name = ? AND fence = ?", (until, name, fence)):
            raise Busy(f"the lease for {name} went to another process meanwhile; nothing was changed, start again")

    def raised(self, name: str, fence: int, until: int) -> int:
        """The same lease under a new fence: work under the old one is refused from now on."""
        with self._database.transaction() as cursor:
            self.check(cursor, name, fence, until)
            cursor.run("UPDATE exclusive SET fence = fence + 1 WHERE name = ?", (name,))
        return fence + 1

    def drop(self, name: str, fence: int) -> None:
        """Releases an exclusive lease, with the work done under it; a lost one is ignored."""
        with self._database.transaction() as cursor:
            cursor.run("UPDATE exclusive SET fence = fence + 1, until = 0 WHERE name = ? AND fence = ?", (name, fence))


_AGENT_TABLES = """
CREATE TABLE IF NOT EXISTS agent (name TEXT PRIMARY KEY, until BIGINT NOT NULL);
CREATE INDEX IF NOT EXISTS host_owner ON host (owner);
"""
_HAS_WORK = f"(({HAS_NEW} AND h.fetched < ?) OR {HAS_DUE})"
# From host to host of those with never-seen URLs, by their index: hosts with nothing due cost nothing.
_BUSY = (
    "WITH RECURSIVE waiting (host) AS (SELECT host FROM "
    "(SELECT host FROM resource WHERE state = 1 ORDER BY host LIMIT 1) first UNION ALL "
    "SELECT (SELECT r.host FROM resource r WHERE r.state = 1 AND r.host > waiting.host ORDER BY r.host LIMIT 1) "
    "FROM waiting WHERE waiting.host IS NOT NULL), "
    "busy (host) AS (SELECT w.id FROM waiting JOIN host w ON w.id = waiting.host WHERE w.fetched < ? "
    "UNION ALL SELECT host FROM resource WHERE state = 2 AND due <= ?) "
)
# The next so many hosts with never-seen URLs after one, or the next of all hosts, each with whether it is free.
_IS_FREE = "CASE WHEN h.lease_until <= ? AND {0} THEN 1 ELSE 0 END"
_NEXT_WAITING = (
    "WITH RECURSIVE waiting (host) AS (SELECT host FROM "
    "(SELECT host FROM resource WHERE state = 1 AND host > ? ORDER BY host LIMIT 1) first UNION ALL "
    "SELECT (SELECT r.host FROM resource r WHERE r.state = 1 AND r.host > waiting.host ORDER BY r.host LIMIT 1) "
    "FROM waiting WHERE waiting.host IS NOT NULL) "
    f"SELECT next.host, (SELECT {_IS_FREE.format('h.fetched < ?')} FROM host h WHERE h.id = next.host) "
    "FROM (SELECT host FROM waiting WHERE host IS NOT NULL LIMIT ?) next"
)
_NEXT_OF_ALL = f"SELECT h.id, {_IS_FREE.format(_HAS_WORK)} FROM host h WHERE h.id > ? ORDER BY h.id LIMIT ?"
_FREE_WITH_VISITS = (
    "SELECT DISTINCT h.id FROM resource r JOIN host h ON h.id = r.host "
    "WHERE r.state = 2 AND r.due <= ? AND h.lease_until <= ? LIMIT ?"
)
_LOOKED_AT = 500
"""Hosts that a look for free ones goes through, unless it finds many."""
_MOST_LATE = 5000
"""Visited URLs that are due; with more of them, all hosts are searched."""
_COUNTED = "busy hosts"
"""The row of `meta` with how many hosts have something due, and until when nobody counts again."""
_COUNT_SHARE, _COUNT_MILLIS = 50, 10_000
"""All agents together count for a fiftieth of the time, and every ten seconds however long it takes."""
# The previous holder of an expired lease may have sent requests up to that moment.
_READY_AFTER_LEASE = (
    "lease_until + CASE WHEN crawl_delay * 1000 > {0} THEN CAST(crawl_delay * 1000 AS BIGINT) ELSE {0} END"
)
_MOST_COUNTED = 20_000
_MOST_TAKEN_IN = 10_000
_MAX_CLOCK_SKEW = 5.0
"""Seconds of clock difference between two machines that the spare time of a lease covers."""


def check_clock(database: Database, seconds: float) -> None:
    """NotReady when this machine's clock is far from the database's: leases are times that all must agree on."""
    if database.dialect.name != "postgresql":
        return
    row = database.one("SELECT extract(epoch FROM clock_timestamp())")
    apart = abs(float(row[0]) - seconds) if row else 0.0
    if apart > _MAX_CLOCK_SKEW:
        raise NotReady(f"this machine's clock is {apart:.0f} s off the database's; set it right, then start again")


def _leave_room(database: Database) -> None:
    """Lets rows of hosts stay on their pages when they change.

    An engine that rewrites a row at each change logs only what differs as long as the page is the same. The rows
    contain what the pages of a host have in common, and change with every lease that is extended.
    """
    if database.dialect.name != "postgresql":
        return
    if database.one("SELECT 1 FROM pg_class WHERE oid = to_regclass('host') AND reloptions IS NULL") is not None:
        with database.transaction() as cursor:
            cursor.run("ALTER TABLE host SET (fillfactor = 50)")


class HostLeases:
    """Queries and changes about the owners of hosts; `delay` is the pause of a host after its last owner died."""

    def __init__(self, database: Database, delay: int, cap: int) -> None:
        self._database = database
        self._queues = Queues(database)
        self._cap = cap or 2**62
        ensure_tables(database, "agents", _AGENT_TABLES)
        _leave_room(database)
        self._queues.ensure_inbox()
        later = _READY_AFTER_LEASE.format(int(delay))
        given = (
            "UPDATE host SET owner = ?, fence = fence + 1, lease_until = ?, "
            f"ready = CASE WHEN lease_until > 0 AND {later} > ready THEN {later} ELSE ready END WHERE id IN "
        )
        skip = database.dialect.skip_locked
        self._give = (
            f"{given} (SELECT id FROM host WHERE lease_until <= ? AND id IN ({{0}}) {skip}) RETURNING id, fence"
        )
        self._after: int | None = None

    def take(self, owner: str, now: int, until: int, limit: int) -> list[tuple[Any, ...]]:
        """Free hosts with something due, given to `owner`: rows (host, fence).

        One look may miss some: where all have owners, it costs the same however many there are, and the next goes on.
        """
        if self._after is None:  # agents that start together begin at different hosts
            self._after = crc32(owner.encode()) % (self._database.count("SELECT max(id) FROM host") + 1)
        hosts = self._free(now, limit)
        if not hosts:
            return []
        statement = self._give.format(", ".join("?" * len(hosts)))
        return self._database.all(statement, (owner, until, now, *hosts))

    def _free(self, now: int, limit: int) -> list[int]:
        """Hosts that may be taken: those with visits that are due, and those that one look finds."""
        late = self._is_late(now)
        visits = [] if late else self._database.all(_FREE_WITH_VISITS, (now, now, limit))
        found = {int(host): None for (host,) in visits}
        start, rounds = self._after or 0, 0
        while len(found) < limit and rounds < 2:
            rows = self._next(now, late)
            free = [int(host) for host, is_free in rows if is_free][: limit - len(found)]
            found.update(dict.fromkeys(free))
            if len(rows) < _LOOKED_AT and len(found) < limit:
                rounds, self._after = rounds + (1 if start else 2), 0
                continue
            self._after = free[-1] if len(found) >= limit else max(int(host) for host, _ in rows)
            if len(free) < len(rows) // 2 or (rounds and self._after >= start):
                break
        return list(found)

    def _next(self, now: int, late: bool) -> list[tuple[Any, ...]]:
        """Some hosts after the last that were looked at: rows (host, whether it is free)."""
        if late:
            return self._database.all(_NEXT_OF_ALL, (now, self._cap, now, self._after, _LOOKED_AT))
        return self._database.all(_NEXT_WAITING, (self._after, now, self._cap, _LOOKED_AT))

    def _is_late(self, now: int) -> bool:
        """Whether very many visits are due: reading the first of them does not find all hosts."""
        late = "SELECT count(*) FROM (SELECT 1 FROM resource WHERE state = 2 AND due <= ? LIMIT ?) late"
        return self._database.count(late, (now, _MOST_LATE + 1)) > _MOST_LATE

    def extend(self, owner: str, now: int, until: int) -> list[tuple[Any, ...]]:
        """What `owner` still holds, extended: rows (host, fence). Shows all others that it is alive."""
        with self._database.transaction(beside=True) as cursor:
            cursor.run(
                "INSERT INTO agent (name, until) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET until = excluded.until",
                (owner, until),
            )
            cursor.run(
                "DELETE FROM agent WHERE name IN "
                f"(SELECT name FROM agent WHERE until <= ? {self._database.dialect.skip_locked})",
                (now,),
            )
            self._lock(cursor, owner)
            return cursor.all(
                "UPDATE host SET lease_until = ? WHERE owner = ? AND lease_until > ? RETURNING id, fence",
                (until, owner, now),
            )

    def _lock(self, cursor: Cursor, owner: str) -> None:
        if locked := self._database.dialect.locked:
            cursor.all(f"SELECT id FROM host WHERE owner = ? ORDER BY id {locked}", (owner,))

    def give_back(self, owner: str, hosts: Collection[int]) -> None:
        """Frees some hosts of `owner`."""
        with self._database.transaction(beside=True) as cursor:
            cursor.run_many(
                "UPDATE host SET lease_until = 0, owner = '' WHERE id = ? AND owner = ?",
                [(host, owner) for host in sorted(hosts)],
            )

    def leave(self, owner: str) -> None:
        """Frees everything: the agent ends."""
        with self._database.transaction(beside=True) as cursor:
            self._lock(cursor, owner)
            cursor.run("UPDATE host SET lease_until = 0, owner = '' WHERE owner = ?", (owner,))
            cursor.run("DELETE FROM agent WHERE name = ?", (owner,))

    def lost(self, cursor: Cursor, owner: str, fences: Sequence[tuple[int, int]], until: int) -> set[int]:
        """Those of (host, fence) that are no longer valid; the others are extended and stay until the commit."""
        hosts = sorted({host for host, _ in fences})
        marks = ", ".join("?" * len(hosts))
        rows = cursor.all(
            f"UPDATE host SET lease_until = ? WHERE owner = ? AND id IN ({marks}) RETURNING id, fence",
            (until, owner, *hosts),
        )
        held = {(int(host), int(fence)) for host, fence in rows}
        return {host for host, fence in fences if (host, fence) not in held}

    def take_in(self, owner: str, held: Iterable[int], now: int) -> list[int]:
        """Adds what others found to the queues of the hosts of `owner`, and of hosts without one; `Queues.take_in`."""
        return self._queues.take_in(_MOST_TAKEN_IN, owner, held, now)

    def is_idle(self, now: int) -> bool:
        """Whether no host has anything due, and nothing waits that could become due."""
        return not self._queues.has_inbox() and not self.busy_hosts(now, most=1)

    def agents(self, now: int) -> int:
        """How many agents are alive."""
        return self._database.count("SELECT count(*) FROM agent WHERE until > ?", (now,))

    def counted_hosts(self, now: int) -> int:
        """How many hosts have something due, as the agent found that counted last."""
        row = self._database.one("SELECT value FROM meta WHERE name = ?", (_COUNTED,))
        count, until = map(int, str(row[0]).split()) if row else (0, 0)
        if now < until <= now + _COUNT_MILLIS:
            return count
        began = time.monotonic()
        count = self.busy_hosts(now)
        until = now + min(_COUNT_MILLIS, round(1000 * _COUNT_SHARE * (time.monotonic() - began)))
        self._database.one(f"{SET_META} RETURNING name", (_COUNTED, f"{count} {until}"))
        return count

    def busy_hosts(self, now: int, most: int = _MOST_COUNTED) -> int:
        """How many hosts have something due, counted up to so many."""
        every = f"SELECT h.id AS host FROM host h WHERE {_HAS_WORK}"
        found = every if self._is_late(now) else f"{_BUSY} SELECT host FROM busy"
        counted = f"SELECT count(DISTINCT host) FROM ({found} LIMIT ?) counted"
        return self._database.count(counted, (self._cap, now, most))

    def spent(self, owner: str, now: int, hosts: Sequence[int]) -> list[int]:
        """Those of the hosts that are `owner`'s and have nothing due."""
        found: list[int] = []
        for start in range(0, len(hosts), _LOOKED_AT):
            part = hosts[start : start + _LOOKED_AT]
            rows = self._database.all(
                f"SELECT h.id FROM host h WHERE h.owner = ? AND NOT {_HAS_WORK} "
                f"AND h.id IN ({', '.join('?' * len(part))})",
                (owner, self._cap, now, *part),
            )
            found += [int(row[0]) for row in rows]
        return found

    def held_due(self, owner: str, now: int, new: bool, limit: int, after: int) -> list[tuple[Any, ...]]:
        """Hosts of `owner` with an id above `after` that have something of a kind due."""
        work, value = (f"{HAS_NEW} AND h.fetched < ?", self._cap) if new else (HAS_DUE, now)
        return self._database.all(
            "SELECT h.id, h.name, h.ip, h.ready, h.ip_ready, h.crawl_delay, h.fetched, h.failures, h.fence "
            f"FROM host h WHERE h.owner = ? AND h.lease_until > ? AND h.id > ? AND {work} ORDER BY h.id LIMIT ?",
            (owner, now, after, value, limit),
        )


_PAUSE_TABLES = """
CREATE TABLE IF NOT EXISTS pause (name TEXT PRIMARY KEY, revision BIGINT NOT NULL, slot {blob} NOT NULL);
"""
_SWAP_PAUSES = (
    "WITH wanted (name, revision, slot) AS (VALUES {rows}) "
    "INSERT INTO pause (name, revision, slot) SELECT name, revision + 1, slot FROM wanted WHERE NOT EXISTS "
    "(SELECT 1 FROM wanted w LEFT JOIN pause p ON p.name = w.name WHERE coalesce(p.revision, 0) <> w.revision) "
    "ON CONFLICT (name) DO UPDATE SET revision = excluded.revision, slot = excluded.slot "
    "WHERE pause.revision = excluded.revision - 1 RETURNING name"
)


class PauseRow(NamedTuple):
    """The state of a host or an address under a name, and how often it was written; 0 if it never was."""

    revision: int
    slot: bytes


class PauseRows:
    """Small records by name with compare and swap; one statement each, never part of a longer transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        ensure_tables(database, "pauses", _PAUSE_TABLES)

    def read(self, names: Sequence[str]) -> dict[str, PauseRow]:
        """Those of the names that were ever written."""
        marks = ", ".join("?" * len(names))
        rows = self._database.all(f"SELECT name, revision, slot FROM pause WHERE name IN ({marks})", tuple(names))
        return {str(name): PauseRow(int(revision), bytes(slot)) for name, revision, slot in rows}

    def swap(self, rows: Mapping[str, PauseRow]) -> set[str]:
        """Writes records that were not written since their revisions were read; the names of those written.

        If one was written by another process, none is written, unless that happens at the same moment.
        """
        # All writers use the same order, so there are no deadlocks.
        values = [value for name in sorted(rows) for value in (name, rows[name].revision, rows[name].slot)]
        statement = _SWAP_PAUSES.format(rows=", ".join(["(?, ?, ?)"] * len(rows)))
        return {str(name) for (name,) in self._database.all(statement, values)}
