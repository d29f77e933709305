"""Who writes where, for archives that many machines share: numbers, claimed logs, and one lease.

Everything that decides is a row, read and written while the catalogue's turn
is held (`Database.transaction`), so no machine's clock and no paused process
can undo a decision: a claim that was withdrawn stays withdrawn, and whoever
comes back finds that out in its next transaction. Times are milliseconds.
"""

from __future__ import annotations

from typing import NamedTuple

from letopis.catalog.database import Cursor, Database
from letopis.catalog.extras import ensure
from letopis.errors import Busy

_DDL = """
CREATE TABLE IF NOT EXISTS pack_number (id INTEGER PRIMARY KEY, last BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS log_claim (token {id}, pack BIGINT NOT NULL, until BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS exclusive (name TEXT PRIMARY KEY, fence BIGINT NOT NULL, until BIGINT NOT NULL);
"""
_NEXT = (
    "INSERT INTO pack_number (id, last) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET last = "
    "CASE WHEN pack_number.last >= excluded.last THEN pack_number.last + 1 ELSE excluded.last END RETURNING last"
)
_TAKE = (
    "INSERT INTO exclusive (name, fence, until) VALUES (?, 1, ?) ON CONFLICT (name) DO UPDATE SET "
    "fence = exclusive.fence + 1, until = excluded.until WHERE exclusive.until <= ? RETURNING fence"
)
UPKEEP = "upkeep"
"""The name of the lease under which packs are compacted and removed."""


class Standing(NamedTuple):
    """Logs that writers hold now, and the last number that was given out."""

    held: frozenset[int]
    newest: int


class Claims:
    """Questions and changes about writers; each says whether it needs the caller's transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        ensure(database, "claims", _DDL)

    def number(self, last: int, cursor: Cursor | None = None) -> int:
        """A pack number above `last` that nobody was given before.

        A statement of its own where the engine lets one run beside an open
        transaction: a number that was given out stays given out.
        """
        reader = self._database if cursor is None or self._database.dialect.beside else cursor
        row = reader.one(_NEXT, (last + 1,))
        assert row is not None
        return int(row[0])

    def renew(self, cursor: Cursor, token: int, until: int) -> bool:
        """Extends a claim; False when it was withdrawn and its log must not be touched again."""
        return cursor.run("UPDATE log_claim SET until = ? WHERE token = ?", (until, token)) == 1

    def claim(self, cursor: Cursor, token: int | None, pack: int, until: int) -> int:
        """Says which log a writer extends from now on; the token of the claim."""
        if token is not None:
            cursor.run("UPDATE log_claim SET pack = ?, until = ? WHERE token = ?", (pack, until, token))
            return token
        row = cursor.one("INSERT INTO log_claim (pack, until) VALUES (?, ?) RETURNING token", (pack, until))
        assert row is not None
        return int(row[0])

    def give_up(self, cursor: Cursor, token: int) -> None:
        """Ends a claim."""
        cursor.run("DELETE FROM log_claim WHERE token = ?", (token,))

    def standing(self, cursor: Cursor, now: int) -> Standing:
        """Withdraws the claims whose time is over, then tells what is left."""
        cursor.run("DELETE FROM log_claim WHERE until <= ?", (now,))
        held = frozenset(int(pack) for (pack,) in cursor.all("SELECT pack FROM log_claim"))
        row = cursor.one("SELECT last FROM pack_number WHERE id = 1")
        return Standing(held, int(row[0]) if row else 0)

    def take(self, name: str, now: int, until: int) -> int | None:
        """The fence of an exclusive lease, None when somebody has it."""
        with self._database.transaction() as cursor:
            row = cursor.one(_TAKE, (name, until, now))
        return int(row[0]) if row else None

    def check(self, cursor: Cursor, name: str, fence: int, until: int) -> None:
        """Extends an exclusive lease; Busy when it went to somebody else."""
        if not cursor.run("UPDATE exclusive SET until = ? WHERE name = ? AND fence = ?", (until, name, fence)):
            raise Busy(f"the lease for {name} went to another process meanwhile; nothing was changed, start again")

    def raised(self, name: str, fence: int, until: int) -> int:
        """The same lease under a new fence: whoever still works under the old one is refused from now on."""
        with self._database.transaction() as cursor:
            self.check(cursor, name, fence, until)
            cursor.run("UPDATE exclusive SET fence = fence + 1 WHERE name = ?", (name,))
        return fence + 1

    def drop(self, name: str, fence: int) -> None:
        """Gives an exclusive lease back, with whatever was done under it; one that was lost is passed over."""
        with self._database.transaction() as cursor:
            cursor.run("UPDATE exclusive SET fence = fence + 1, until = 0 WHERE name = ? AND fence = ?", (name, fence))
