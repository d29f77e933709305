"""Who did what, how much of the daily quota each user has used, and how much the archive is used.

Separate from other tables of accounts: every command counts and writes here, and must start fast.
"""

from __future__ import annotations

from collections.abc import Mapping

from letopis.catalog.database import Cursor
from letopis.catalog.schema import TopicTables
from letopis.tuples import NamedTuple

DAY = 86_400_000
"""Milliseconds."""

AUDIT_TABLES = """
CREATE TABLE IF NOT EXISTS account_audit (
    id {id}, time BIGINT NOT NULL, who TEXT NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL, address TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS account_audit_who ON account_audit (who, action, time);
"""


class AuditRow(NamedTuple):
    """One line of the log."""

    time: int
    who: str
    action: str
    subject: str
    address: str


class AuditLog(TopicTables):
    """The log of one archive."""

    topic, table, ddl = "audit", "account_audit", AUDIT_TABLES

    def append(self, row: AuditRow) -> None:
        """Appends a line."""
        self.ensure()
        with self._database.transaction() as cursor:
            cursor.run(
                "INSERT INTO account_audit (time, who, action, subject, address) VALUES (?, ?, ?, ?, ?)",
                (row.time, row.who[:200], row.action, row.subject[:500], row.address[:100]),
            )

    def latest(self, limit: int) -> list[AuditRow]:
        """The last lines, newest first."""
        question = "SELECT time, who, action, subject, address FROM account_audit ORDER BY id DESC LIMIT ?"
        rows = self._all(question, (limit,))
        return [AuditRow(*row) for row in rows]

    def last(self, who: str, action: str, since: int) -> int | None:
        """When an account last did something, not before a time."""
        asked = "SELECT max(time) FROM account_audit WHERE who = ? AND action = ? AND time >= ?"
        row = self._one(asked, (who, action, since))
        return row[0] if row else None


USAGE_TABLES = """
CREATE TABLE IF NOT EXISTS account_use (
    who TEXT NOT NULL, what TEXT NOT NULL, day BIGINT NOT NULL, count BIGINT NOT NULL, PRIMARY KEY (who, what)
) {clustered};
"""


class DailyUsage(TopicTables):
    """Counts by user and kind of request, from midnight to midnight in UTC."""

    topic, table, ddl = "usage", "account_use", USAGE_TABLES

    def spent(self, who: str, what: str, now: int) -> int:
        """What a user has used today."""
        row = self._one("SELECT day, count FROM account_use WHERE who = ? AND what = ?", (who, what))
        return int(row[1]) if row and row[0] == now // DAY else 0

    def take(self, who: str, what: str, most: int, now: int, amount: int = 1) -> bool:
        """Counts so many more; False, and nothing is counted, if that exceeds `most` today."""
        self.ensure()
        with self._database.transaction() as cursor:
            row = cursor.one("SELECT day, count FROM account_use WHERE who = ? AND what = ?", (who, what))
            had = int(row[1]) if row and row[0] == now // DAY else 0
            if had + amount > most:
                return False
            cursor.run(
                "INSERT INTO account_use (who, what, day, count) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (who, what) DO UPDATE SET day = excluded.day, count = ?",
                (who, what, now // DAY, had + amount, had + amount),
            )
        return True


STATISTICS_TABLES = """
CREATE TABLE IF NOT EXISTS use_count (
    day BIGINT NOT NULL, what TEXT NOT NULL, count BIGINT NOT NULL, PRIMARY KEY (day, what)
) {clustered};
"""
DAYS_KEPT = 400
"""Days whose counts are kept: a year and a month."""


class UseCounts(TopicTables):
    """How often things were done on each day, and nothing else: not by whom, not with which values."""

    topic, table, ddl = "statistics", "use_count", STATISTICS_TABLES

    def add(self, cursor: Cursor, day: int, counts: Mapping[str, int]) -> None:
        """Adds to the count of a day; removes what is older than `DAYS_KEPT`."""
        cursor.run_many(
            "INSERT INTO use_count (day, what, count) VALUES (?, ?, ?) "
            "ON CONFLICT (day, what) DO UPDATE SET count = use_count.count + excluded.count",
            [(day, what, count) for what, count in counts.items()],
        )
        cursor.run("DELETE FROM use_count WHERE day <= ?", (day - DAYS_KEPT,))

    def since(self, day: int) -> list[tuple[int, str, int]]:
        """Days, what was done, and how often, newest day first."""
        rows = self._all("SELECT day, what, count FROM use_count WHERE day >= ? ORDER BY day DESC, what", (day,))
        return [(int(row[0]), str(row[1]), int(row[2])) for row in rows]


def seconds_to_next_day(now: int) -> int:
    """Seconds until the counts restart."""
    return (DAY - now % DAY) // 1000 + 1
