"""When an address may be asked again, for all agents of a fleet: one row an address."""

from __future__ import annotations

from letopis.catalog.database import Database
from letopis.catalog.extras import ensure

_DDL = "CREATE TABLE IF NOT EXISTS address (ip TEXT PRIMARY KEY, ready BIGINT NOT NULL);"
_FAR = 100
_RESERVE = (
    "INSERT INTO address (ip, ready) VALUES (?, ?) ON CONFLICT (ip) DO UPDATE SET ready = "
    "CASE WHEN address.ready > ? AND address.ready <= ? THEN address.ready + ? ELSE excluded.ready END RETURNING ready"
)


class Addresses:
    """Turns at addresses; a statement each, never part of a longer transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        ensure(database, "addresses", _DDL)

    def reserve(self, address: str, now: int, delay: int) -> int:
        """Milliseconds to wait before the address may be asked; the turn after that is ours."""
        # A clock that was set back must not silence a host for long.
        latest = now + _FAR * max(delay, 1000)
        row = self._database.one(_RESERVE, (address, now + delay, now, latest, delay))
        assert row is not None
        return max(0, int(row[0]) - delay - now)

    def close(self) -> None:
        """Nothing is held."""
