"""How much each user has asked for today. The table is made at the first count."""

from __future__ import annotations

from letopis.catalog.database import Database
from letopis.catalog.extras import ensure, present

_DAY = 86_400_000
TABLES = """
CREATE TABLE IF NOT EXISTS account_use (
    who TEXT NOT NULL, what TEXT NOT NULL, day BIGINT NOT NULL, count BIGINT NOT NULL, PRIMARY KEY (who, what)
) {clustered};
"""


class Usage:
    """Counts by user and kind of request, from midnight to midnight in UTC."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def spent(self, who: str, what: str, now: int) -> int:
        """What a user has asked for today."""
        if not present(self._database, "account_use"):
            return 0
        row = self._database.one("SELECT day, count FROM account_use WHERE who = ? AND what = ?", (who, what))
        return int(row[1]) if row and row[0] == now // _DAY else 0

    def take(self, who: str, what: str, most: int, now: int, amount: int = 1) -> bool:
        """Counts so many more; False, and nothing counted, when that makes more than `most` today."""
        ensure(self._database, "usage", TABLES)
        with self._database.transaction() as cursor:
            row = cursor.one("SELECT day, count FROM account_use WHERE who = ? AND what = ?", (who, what))
            had = int(row[1]) if row and row[0] == now // _DAY else 0
            if had + amount > most:
                return False
            cursor.run(
                "INSERT INTO account_use (who, what, day, count) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (who, what) DO UPDATE SET day = excluded.day, count = ?",
                (who, what, now // _DAY, had + amount, had + amount),
            )
        return True


def next_day(now: int) -> int:
    """Seconds until the counts begin anew."""
    return (_DAY - now % _DAY) // 1000 + 1
