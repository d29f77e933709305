"""What differs between the two SQL engines, in one place."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

from letopis.binary import make_private_file
from letopis.errors import REPAIR, Busy, Damaged, MissingExtra, NotReady


class DbConnection(Protocol):
    """The part of a DB-API connection that is used."""

    def cursor(self) -> Any:
        """A new cursor."""

    def close(self) -> None:
        """Ends the connection."""


class Dialect(Protocol):
    """One engine: how to connect, begin, spell types and translate errors.

    `begin` starts a transaction that is the only writer. `beside` tells
    whether a statement of another connection may write meanwhile;
    `skip_locked` ends a question that passes over rows which somebody else
    is changing.
    """

    name: str
    begin: str
    snapshot: str
    beside: bool
    skip_locked: str
    types: dict[str, str]

    def connect(self) -> DbConnection:
        """A connection in autocommit mode."""

    def prepare(self, connection: DbConnection) -> None:
        """What the turn needs, made once on the first connection."""

    def sql(self, statement: str) -> str:
        """The statement with this engine's parameter marks."""

    def errors(self) -> AbstractContextManager[None]:
        """Turns the driver's errors into ours."""

    def bulk(self, cursor: Any, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
        """Adds very many rows inside a transaction; how many."""

    def numbers(self, cursor: Any, table: str, count: int) -> Sequence[int]:
        """Ids for rows of a table that the transaction is about to add, rising."""

    def lost(self, connection: DbConnection) -> bool:
        """Whether a connection was cut and a new one is needed."""

    def size(self, one: Any) -> int:
        """Bytes that the catalogue takes; `one` asks a question."""


class Sqlite:
    """SQLite in WAL mode with full synchronisation: a commit is on disk."""

    name = "sqlite"
    begin = "BEGIN IMMEDIATE"
    snapshot = "BEGIN"
    beside = False
    skip_locked = ""
    types: dict[str, str] = {  # noqa: RUF012 - part of the protocol
        "id": "INTEGER PRIMARY KEY",
        "blob": "BLOB",
        "clustered": "WITHOUT ROWID",
        "float": "REAL",
    }

    def __init__(self, file: Path, *, readonly: bool = False) -> None:
        self.file = file
        self._readonly = readonly

    @staticmethod
    def file_in(folder: Path) -> Path:
        """Where an archive's folder has its catalogue."""
        return folder / "catalogue.sqlite"

    def connect(self) -> DbConnection:
        """Waits up to 60 s for another process's writer. Where nothing can be written, reading goes on."""
        with self.errors():
            if self._readonly:
                return self._connect("mode=ro")
            with suppress(OSError):  # SQLite says it better
                make_private_file(self.file)
            try:
                return self._connect("mode=rwc", writing=True)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _NO_ROOM or not self.file.exists():
                    raise
            return self._connect_unwritable()

    def _connect_unwritable(self) -> DbConnection:
        """A file whose folder is read-only or full; without a log of changes it is read as it stands."""
        try:
            return self._connect("mode=ro")
        except sqlite3.OperationalError:
            wal = self.file.with_name(self.file.name + "-wal")
            if wal.exists() and wal.stat().st_size:
                raise
            return self._connect("mode=ro&immutable=1")

    def _connect(self, how: str, *, writing: bool = False) -> DbConnection:
        connection = sqlite3.connect(
            f"{self.file.absolute().as_uri()}?{how}",
            uri=True,
            timeout=60,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        try:
            if writing:
                connection.execute("PRAGMA page_size = 1024")
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("PRAGMA cache_size = -32768")
            connection.execute(f"PRAGMA mmap_size = {_MMAP_BYTES}")
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1")
        except BaseException:
            connection.close()
            raise
        return connection

    def sql(self, statement: str) -> str:
        """SQLite takes our marks as they are."""
        return statement

    @contextmanager
    def errors(self) -> Iterator[None]:
        """One sentence instead of the driver's words."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise _explain_sqlite(self.file, error) from error

    def prepare(self, connection: DbConnection) -> None:
        """SQLite's own lock suffices."""

    def bulk(self, cursor: Any, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
        """One prepared statement."""
        marks = ", ".join("?" * len(columns))
        cursor.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)
        return max(0, int(cursor.rowcount))

    def numbers(self, cursor: Any, table: str, count: int) -> Sequence[int]:
        """What SQLite itself would give out next: there is no other writer."""
        first = int(cursor.execute(f"SELECT coalesce(max(id), 0) + 1 FROM {table}").fetchone()[0])
        return range(first, first + count)

    def lost(self, connection: DbConnection) -> bool:
        """A file does not go away."""
        return False

    def size(self, one: Any) -> int:
        """The file and what still waits in its write-ahead log."""
        wal = self.file.with_name(self.file.name + "-wal")
        return sum(path.stat().st_size for path in (self.file, wal) if path.exists())


_FULL = {sqlite3.SQLITE_FULL}
_NOT_WRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_NO_ROOM = _FULL | _NOT_WRITABLE | {sqlite3.SQLITE_IOERR}
_LOST_TABLE = ("no such table", "no such column", "malformed")


def _explain_sqlite(file: Path, error: sqlite3.DatabaseError) -> Exception:
    """By the code of the error. Damage is only what SQLite calls so: advice to repair would harm a full disk."""
    text, code = str(error), getattr(error, "sqlite_errorcode", 0) & 0xFF
    if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
        return error
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Busy(f"another process is writing to {file}; wait for it or stop it")
    if code in _FULL:
        return NotReady(f"no space left for {file}; free some and try again")
    if code in _NOT_WRITABLE:
        return NotReady(f"cannot write {file}; check that the folder exists and its permissions")
    if code in _DAMAGE or any(words in text for words in _LOST_TABLE):
        return Damaged(f"{file} is damaged ({text})", REPAIR)
    if code == sqlite3.SQLITE_IOERR:
        return NotReady(f"the disk under {file} fails or is full ({text}); look at the disk, then try again")
    return NotReady(f"{file} cannot be used now ({text}); try again, and look at disk and memory if it stays so")


_MMAP_BYTES = 128 << 20
"""Bytes of a file that are read where they lie; they count as memory of each process that reads them."""
_PREPARE_TRIES = 5
_COPY_FROM_ROWS = 8
"""Rows from which on COPY is worth its two round trips."""
_CONNECTION_TIMEOUTS = {
    "connect_timeout": 10, "tcp_user_timeout": 30_000, "keepalives_idle": 10, "keepalives_interval": 5,
    "keepalives_count": 4,
}  # fmt: skip
"""A link that was cut without a word is noticed within half a minute, unless `database.url` says otherwise."""
_IDLE_SECONDS = 30
"""A transaction that does nothing for so long is ended by the server: its process was paused or is cut off."""


class Postgres:
    """PostgreSQL, or what speaks its protocol, through psycopg 3.

    One writer at a time, as with SQLite: a transaction first locks the one
    row of `turn`. The server ends transactions of processes that were
    stopped, so nobody waits for long, and whoever comes back cannot commit.
    """

    name = "postgresql"
    # Two statements in one message: a commit waits for its answers, not for its work.
    begin = "BEGIN; SELECT id FROM turn WHERE id = 1 FOR UPDATE"
    snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    beside = True
    skip_locked = "FOR UPDATE SKIP LOCKED"
    types: dict[str, str] = {  # noqa: RUF012 - part of the protocol
        "id": "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
        "blob": "BYTEA",
        "clustered": "",
        "float": "DOUBLE PRECISION",
    }

    def __init__(self, url: str) -> None:
        self._url = url
        try:
            import psycopg  # noqa: PLC0415 - optional dependency
        except ImportError:
            raise MissingExtra("PostgreSQL needs 'pip install letopis[postgres]'") from None
        self._driver = psycopg

    def connect(self) -> DbConnection:
        """An autocommit connection."""
        with self.errors():
            connection: DbConnection = self._driver.connect(self._patient_url(), autocommit=True)
            connection.cursor().execute(f"SET idle_in_transaction_session_timeout = '{_IDLE_SECONDS}s'")
        return connection

    def _patient_url(self) -> str:
        given = self._driver.conninfo.conninfo_to_dict(self._url)
        return self._driver.conninfo.make_conninfo(
            self._url, **{name: value for name, value in _CONNECTION_TIMEOUTS.items() if name not in given}
        )

    def prepare(self, connection: DbConnection) -> None:
        """Makes the row that writers lock; several processes may try it at once."""
        cursor, errors = connection.cursor(), self._driver.errors
        for tries_left in reversed(range(_PREPARE_TRIES)):
            try:
                cursor.execute("CREATE TABLE IF NOT EXISTS turn (id INTEGER PRIMARY KEY)")
                cursor.execute("INSERT INTO turn (id) VALUES (1) ON CONFLICT DO NOTHING")
                return
            # Another one is making it in this moment: which of these comes depends on how far it is.
            except (errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateObject):
                if not tries_left:
                    raise

    def bulk(self, cursor: Any, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
        """COPY; a few rows by a statement that is prepared already."""
        count, pending = 0, iter(rows)
        few = list(islice(pending, _COPY_FROM_ROWS))
        if len(few) < _COPY_FROM_ROWS:
            marks = ", ".join(["%s"] * len(columns))
            cursor.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", few)
            return len(few)
        with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
            for row in chain(few, pending):
                copy.write_row(row)
                count += 1
        return count

    def numbers(self, cursor: Any, table: str, count: int) -> Sequence[int]:
        """The table's own sequence, so that no number is ever given out twice."""
        cursor.execute(f"SELECT nextval(pg_get_serial_sequence('{table}', 'id')) FROM generate_series(1, %s)", (count,))
        return [int(row[0]) for row in cursor.fetchall()]

    def lost(self, connection: DbConnection) -> bool:
        """Psycopg notices a cut at the first use after it."""
        return bool(getattr(connection, "closed", False))

    def sql(self, statement: str) -> str:
        """`?` becomes `%s`; our statements hold no other use of either."""
        return _percent_marks(statement)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """One sentence instead of the driver's words."""
        try:
            yield
        except self._driver.OperationalError as error:
            raise NotReady(f"the database does not answer ({str(error).strip()}); check database.url") from error

    def size(self, one: Any) -> int:
        """What the server says of this database."""
        row: Sequence[Any] = one("SELECT pg_database_size(current_database())")
        return int(row[0])


@lru_cache(maxsize=1024)
def _percent_marks(statement: str) -> str:
    return statement.replace("%", "%%").replace("?", "%s")


def dialect_for(url: str, folder: Path) -> Dialect:
    """The engine that the settings name; SQLite inside the archive by default."""
    if url.startswith(("postgresql://", "postgres://")):
        return Postgres(url)
    return Sqlite(Sqlite.file_in(folder))
