"""Who is signed in, and on which devices they were before: hashes of long random texts that browsers keep.

Whoever gets a copy of the catalogue can make no text of it that lets anybody in. Rows go with their user.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from letopis.catalog.database import Cursor, Database
from letopis.catalog.schema import TopicTables, has_table
from letopis.lazy import lazy

if TYPE_CHECKING:
    import secrets
else:
    secrets = lazy("secrets")  # every command comes by here, few let somebody in

SESSION_TABLES = """
CREATE TABLE IF NOT EXISTS account_session (
    hash {blob} PRIMARY KEY, owner BIGINT NOT NULL, kind TEXT NOT NULL, until BIGINT NOT NULL
);
"""
LIFETIME_TABLES = """
CREATE TABLE IF NOT EXISTS account_token_time (hash {blob} PRIMARY KEY, used BIGINT, expires BIGINT) {clustered};
"""
SessionKind = Literal["session", "device", "entry", "replay", "password"]
"""`session`: somebody is signed in. `device`: a browser in which somebody has signed in before. `entry`: somebody is on
their way to the replay origin, once. `replay`: somebody may read there. `password`: somebody has given theirs, and is
not signed in before a code of theirs comes as well."""

_TABLE = "account_session"
_MOST: dict[SessionKind, int] = {"session": 100, "device": 20, "entry": 20, "replay": 100, "password": 20}
"""Of one user; the oldest ones end before others begin."""


def hash_token(token: str) -> bytes:
    """A fast hash suffices: nobody can guess 256 bits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


class TokenTimes(TopicTables):
    """When tokens of programs were last used, and when they expire, by their hashes; milliseconds."""

    topic, table, ddl = "token times", "account_token_time", LIFETIME_TABLES

    def set(self, column: Literal["used", "expires"], times: Mapping[bytes, int]) -> None:
        """One of the two times of some tokens; times of tokens that are gone are forgotten."""
        self.ensure()
        with self._database.transaction() as cursor:
            cursor.run_many(
                f"INSERT INTO account_token_time (hash, {column}) VALUES (?, ?) "
                f"ON CONFLICT (hash) DO UPDATE SET {column} = excluded.{column}",
                list(times.items()),
            )
            cursor.run("DELETE FROM account_token_time WHERE hash NOT IN (SELECT hash FROM account_token)")

    def find(self, hashed: bytes) -> tuple[int | None, int | None]:
        """The last use and the end of a token, as far as they are known."""
        found = self._one("SELECT used, expires FROM account_token_time WHERE hash = ?", (hashed,))
        return (found[0], found[1]) if found else (None, None)


class SessionRows(TopicTables):
    """Begins, finds and ends sessions; times are seconds. Writes are durable when they return."""

    topic, table, ddl = "sessions", _TABLE, SESSION_TABLES

    def begin(self, owner: int, kind: SessionKind, now: int, lifetime: int) -> str:
        """A new text of 256 random bits, told this once."""
        token = secrets.token_urlsafe(32)
        self.ensure()
        with self._database.transaction() as cursor:
            cursor.run("DELETE FROM account_session WHERE until <= ?", (now,))
            rows = cursor.all(
                "SELECT hash FROM account_session WHERE owner = ? AND kind = ? ORDER BY until DESC", (owner, kind)
            )
            cursor.run_many("DELETE FROM account_session WHERE hash = ?", rows[_MOST[kind] - 1 :])
            cursor.run(
                "INSERT INTO account_session (hash, owner, kind, until) VALUES (?, ?, ?, ?)",
                (hash_token(token), owner, kind, now + lifetime),
            )
        return token

    def owner(self, token: str, kind: SessionKind, now: int) -> int | None:
        """The id of the user whose text it is; None when it is nobody's, or its time is over."""
        row = self._one(
            "SELECT owner FROM account_session WHERE hash = ? AND kind = ? AND until > ?",
            (hash_token(token), kind, now),
        )
        return int(row[0]) if row else None

    def take(self, token: str, kind: SessionKind, now: int) -> int | None:
        """`owner`, once: the text is nobody's from now on."""
        owner = self.owner(token, kind, now)
        if owner is None:
            return None
        with self._database.transaction() as cursor:
            rows = cursor.all("DELETE FROM account_session WHERE hash = ? RETURNING owner", (hash_token(token),))
        return owner if rows else None


def end_sessions(database: Database, cursor: Cursor, owner: int, *, devices: bool = False) -> None:
    """Every session of a user is over, as part of a transaction; with `devices` they are forgotten too."""
    if has_table(database, _TABLE):
        kinds = ("session", "entry", "replay", "password", *(("device",) if devices else ()))
        cursor.run_many("DELETE FROM account_session WHERE owner = ? AND kind = ?", [(owner, kind) for kind in kinds])
