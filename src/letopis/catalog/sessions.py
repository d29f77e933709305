"""Who is signed in, on which devices they were before, and the second factor. Rows are removed with their user.

Browsers keep long random texts, the catalogue their hashes: a copy of the catalogue is not enough to sign in. The
second factor are codes of an authenticator app (RFC 6238), and recovery codes for a lost phone. A code is valid for
half a minute and works once. Recovery codes are kept as hashes and removed when they are used. Tries are counted in the
catalogue, so that several workers and a restart allow no more of them than one process does.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, urlencode

from letopis.catalog.database import Cursor, Database
from letopis.catalog.schema import TopicTables, has_table
from letopis.errors import QuotaUsedUp, UsageError
from letopis.lazy import lazy
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    import secrets
else:
    secrets = lazy("secrets")  # every command loads this, few sign in

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
"""Sessions of one user; the oldest ones end before others begin."""


def hash_token(token: str) -> bytes:
    """A fast hash suffices: 256 bits cannot be guessed."""
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
        """A new text of 256 random bits, returned only once."""
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
        """The id of the user of a text; None if it is unknown or has expired."""
        row = self._one(
            "SELECT owner FROM account_session WHERE hash = ? AND kind = ? AND until > ?",
            (hash_token(token), kind, now),
        )
        return int(row[0]) if row else None

    def take(self, token: str, kind: SessionKind, now: int) -> int | None:
        """As `owner`, once: the text is invalid from now on."""
        owner = self.owner(token, kind, now)
        if owner is None:
            return None
        with self._database.transaction() as cursor:
            rows = cursor.all("DELETE FROM account_session WHERE hash = ? RETURNING owner", (hash_token(token),))
        return owner if rows else None


def end_sessions(database: Database, cursor: Cursor, owner: int, *, devices: bool = False) -> None:
    """Ends every session of a user, as part of a transaction; with `devices` these are removed too."""
    if has_table(database, _TABLE):
        kinds = ("session", "entry", "replay", "password", *(("device",) if devices else ()))
        cursor.run_many("DELETE FROM account_session WHERE owner = ? AND kind = ?", [(owner, kind) for kind in kinds])


STEP = 30
"""Seconds for which a code is shown."""
DIGITS = 6
TRIES = 5
TRY_WINDOW = 300
"""The time in seconds for a limited number of tries."""
RECOVERY_CODES = 10
_DRIFT = 1
_SECRET_BYTES = 20
_RECOVERY_BYTES = 10

TWO_FACTOR_TABLES = """
CREATE TABLE IF NOT EXISTS account_second_factor (
    owner BIGINT PRIMARY KEY, secret {blob} NOT NULL, confirmed SMALLINT NOT NULL, last_step BIGINT NOT NULL,
    tries BIGINT NOT NULL, tried BIGINT NOT NULL
);
CREATE TABLE IF NOT EXISTS account_recovery (
    owner BIGINT NOT NULL, hash {blob} NOT NULL, PRIMARY KEY (owner, hash)
) {clustered};
"""
_FACTORS = "account_second_factor"


def code_at(secret: bytes, step: int) -> str:
    """The code of a step: HOTP (RFC 4226) over the number of the step."""
    digest = hmac.digest(secret, step.to_bytes(8, "big"), "sha1")
    place = digest[-1] & 15
    number = int.from_bytes(digest[place : place + 4], "big") & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}d}"


def step_of(secret: bytes, code: str, now: int, after: int) -> int | None:
    """The step whose code this is, among those around now and later than `after`; None when it is none of them."""
    middle = now // STEP
    steps = [step for step in range(middle - _DRIFT, middle + _DRIFT + 1) if step > after]
    fits = [step for step in steps if hmac.compare_digest(code_at(secret, step).encode(), code.encode())]
    return fits[0] if fits else None


def secret_text(secret: bytes) -> str:
    """A secret in the form of authenticator apps: base32 without padding."""
    return base64.b32encode(secret).decode().rstrip("=")


def authenticator_uri(secret: bytes, name: str, issuer: str) -> str:
    """The URL that passes a secret to an authenticator app."""
    query = urlencode({"secret": secret_text(secret), "issuer": issuer}, quote_via=quote)
    return f"otpauth://totp/{quote(issuer)}:{quote(name)}?{query}"


def _recovery_code() -> str:
    text = secret_text(secrets.token_bytes(_RECOVERY_BYTES)).lower()
    return "-".join(text[place : place + 4] for place in range(0, len(text), 4))


def _plain(code: str) -> str:
    """A code without the blanks and hyphens with which people write it."""
    return "".join(sign for sign in code[:64] if sign.isalnum()).lower()


class _Tried(NamedTuple):
    """A counted try: the values to compare with, and how many tries there were."""

    secret: bytes
    last_step: int
    tries: int
    since: int


class SecondFactors(TopicTables):
    """Switches the second factor of users on and off and checks their codes; times are seconds."""

    topic, table, ddl = "two factor", _FACTORS, TWO_FACTOR_TABLES

    def is_on(self, owner: int) -> bool:
        """Whether a user signs in with a code."""
        return self._row(owner, confirmed=1) is not None

    def _row(self, owner: int, confirmed: int) -> bytes | None:
        row = self._one(f"SELECT secret FROM {_FACTORS} WHERE owner = ? AND confirmed = ?", (owner, confirmed))
        return bytes(row[0]) if row else None

    def pending(self, owner: int) -> bytes | None:
        """The secret that waits for its first code."""
        return self._row(owner, confirmed=0)

    def begin(self, owner: int) -> bytes:
        """A new secret for an authenticator app, replacing an earlier one; it takes effect after its first code."""
        if self.is_on(owner):
            raise UsageError("the second factor is on already; switch it off first")
        self.ensure()
        secret = secrets.token_bytes(_SECRET_BYTES)
        with self._database.transaction() as cursor:
            cursor.run(
                f"INSERT INTO {_FACTORS} (owner, secret, confirmed, last_step, tries, tried) VALUES (?, ?, 0, 0, 0, 0) "
                f"ON CONFLICT (owner) DO UPDATE SET secret = excluded.secret WHERE {_FACTORS}.confirmed = 0",
                (owner, secret),
            )
        return secret

    def confirm(self, owner: int, code: str, now: int) -> list[str]:
        """Switches it on with a first code; returns the recovery codes, only once."""
        secret = self.pending(owner)
        if secret is None:
            raise UsageError("no second factor is being set up; start again")
        step = step_of(secret, _plain(code), now, 0)
        if step is None:
            raise UsageError("the code is wrong; type the one that the app shows now, and compare the clocks")
        codes = [_recovery_code() for _ in range(RECOVERY_CODES)]
        with self._database.transaction() as cursor:
            cursor.run(
                f"UPDATE {_FACTORS} SET confirmed = 1, last_step = ?, tries = 0 WHERE owner = ? AND secret = ?",
                (step, owner, secret),
            )
            cursor.run("DELETE FROM account_recovery WHERE owner = ?", (owner,))
            cursor.run_many(
                "INSERT INTO account_recovery (owner, hash) VALUES (?, ?)",
                [(owner, hash_token(_plain(one))) for one in codes],
            )
        return codes

    def check(self, owner: int, code: str, now: int) -> Literal["code", "recovery code"]:
        """Which kind of code this is, used up by it; UsageError for a wrong one, QuotaUsedUp after too many tries."""
        with self._database.transaction() as cursor:
            tried = self._count_try(cursor, owner, now)
            found = self._use(cursor, owner, tried, _plain(code), now) if tried.tries <= TRIES else None
        if tried.tries > TRIES:
            wait = tried.since + TRY_WINDOW - now
            raise QuotaUsedUp(f"too many codes were tried; wait {wait} seconds before the next one", wait)
        if found is None:
            raise UsageError("the code is wrong, or was used already; type the one that the app shows now")
        return found

    @staticmethod
    def _count_try(cursor: Cursor, owner: int, now: int) -> _Tried:
        # Counted before it is compared, under the lock of the row: tries at once count each.
        row = cursor.one(
            f"UPDATE {_FACTORS} SET tries = CASE WHEN tried <= ? THEN 1 ELSE tries + 1 END, "
            "tried = CASE WHEN tried <= ? THEN ? ELSE tried END "
            "WHERE owner = ? AND confirmed = 1 RETURNING secret, last_step, tries, tried",
            (now - TRY_WINDOW, now - TRY_WINDOW, now, owner),
        )
        if row is None:
            raise UsageError("this account has no second factor")
        return _Tried(bytes(row[0]), *row[1:])

    @staticmethod
    def _use(cursor: Cursor, owner: int, tried: _Tried, code: str, now: int) -> Literal["code", "recovery code"] | None:
        step = step_of(tried.secret, code, now, tried.last_step) if len(code) == DIGITS else None
        if step is not None:
            cursor.run(f"UPDATE {_FACTORS} SET last_step = ?, tries = 0 WHERE owner = ?", (step, owner))
            return "code"
        gone = cursor.all(
            "DELETE FROM account_recovery WHERE owner = ? AND hash = ? RETURNING owner", (owner, hash_token(code))
        )
        if not gone:
            return None
        cursor.run(f"UPDATE {_FACTORS} SET tries = 0 WHERE owner = ?", (owner,))
        return "recovery code"

    def left(self, owner: int) -> int:
        """How many recovery codes a user has."""
        return self._count("SELECT COUNT(*) FROM account_recovery WHERE owner = ?", (owner,))

    def off(self, owner: int) -> bool:
        """Removes the secret and the recovery codes; whether there were any."""
        if not self._made():
            return False
        was_on = self.is_on(owner)
        with self._database.transaction() as cursor:
            forget_second_factor(self._database, cursor, owner)
        return was_on


def forget_second_factor(database: Database, cursor: Cursor, owner: int) -> None:
    """The same as part of a transaction."""
    if has_table(database, _FACTORS):
        cursor.run(f"DELETE FROM {_FACTORS} WHERE owner = ?", (owner,))
        cursor.run("DELETE FROM account_recovery WHERE owner = ?", (owner,))
