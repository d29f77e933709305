"""What differs between the two SQL engines, and SQLite; `postgres.py` has the other one."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from letopis.binary import make_private_file
from letopis.errors import REPAIR, Busy, Damaged, NotReady, SettingError
from letopis.lazy import lazy

if TYPE_CHECKING:
    from letopis.catalog import postgres
else:
    postgres = lazy("letopis.catalog.postgres")  # files need no server

# For values of these two types the library looks for an adapter, raises and drops two errors, and takes the value as
# it is. Found at once, half of the time of writing a row is saved.
sqlite3.register_adapter(bytes, bytes)
sqlite3.register_adapter(type(None), cast("Callable[[None], None]", {}.get))


class DbConnection(Protocol):
    """The part of a DB-API connection that is used."""

    def cursor(self) -> Any:
        """A new cursor."""

    def close(self) -> None:
        """Ends the connection."""


class Dialect(Protocol):
    """One engine: how to connect, begin, spell types and translate errors.

    `begin` starts a transaction that is the only writer, `begin_beside` one that may run in parallel with others of its
    kind if the engine supports that. `beside` says whether a statement of another connection may write meanwhile;
    `by_keys` are statements after which a transaction finds all rows by indexes, whatever is known of its tables;
    `locked` ends a query whose rows no other transaction may change until this one ends, `skip_locked` skips rows that
    another transaction is changing. `keep_last_id` is executed before rows are removed, if `numbers` would give out
    their ids again.
    """

    name: str
    schema: int
    begin: str
    begin_beside: str
    snapshot: str
    beside: bool
    by_keys: Sequence[str]
    locked: str
    skip_locked: str
    keep_last_id: str
    types: dict[str, str]

    def connect(self) -> DbConnection:
        """A connection in autocommit mode."""

    def sql(self, statement: str) -> str:
        """The statement with this engine's parameter marks."""

    def errors(self) -> AbstractContextManager[None]:
        """Turns errors of the driver into those of Letopis."""

    def long_answer(self, connection: Any, *, held: bool) -> AbstractContextManager[Any]:
        """A cursor whose rows stay with the engine until they are fetched; `held` if no transaction is open."""

    def execute(self, cursor: Any, statement: str, values: Sequence[Any]) -> object:
        """Executes a statement with `?` marks."""

    def together(self, cursor: Any, statements: Sequence[str]) -> list[list[tuple[Any, ...]]]:
        """Executes statements without values, in one message if the engine is elsewhere; the rows of each."""

    def many(self, cursor: Any, statement: str, rows: Iterable[Sequence[Any]], types: Sequence[str] = ()) -> int:
        """Executes once per row inside a transaction; how many rows it changed in total. See `Cursor.run_many`."""

    def bulk(self, cursor: Any, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
        """Adds very many rows inside a transaction; how many."""

    def numbers(self, cursor: Any, table: str, count: int) -> Sequence[int]:
        """Increasing ids for rows of a table that the transaction is about to add.

        Those of versions hold `settled` back until the transaction ends.
        """

    def settled(self, one: Any) -> int:
        """Up to which id versions are final: no open transaction can add one at or below it."""

    def lost(self, connection: DbConnection) -> bool:
        """Whether a connection was cut and a new one is needed."""

    def require_same(self) -> None:
        """NotReady if the catalogue that was opened has been replaced."""

    def size(self, one: Any) -> int:
        """Bytes that the catalogue takes; `one` runs a query."""


class Sqlite:
    """SQLite in WAL mode with full synchronisation: a commit is on disk."""

    name = "sqlite"
    schema = 1
    begin = begin_beside = "BEGIN IMMEDIATE"
    snapshot = "BEGIN"
    beside = False
    by_keys: Sequence[str] = ()
    locked = skip_locked = ""
    keep_last_id = (
        "INSERT INTO meta (name, value) SELECT 'last {0}', coalesce(max(id), 0) FROM {0} WHERE true ON CONFLICT (name) "
        "DO UPDATE SET value = excluded.value WHERE CAST(meta.value AS INTEGER) < CAST(excluded.value AS INTEGER)"
    )
    types: dict[str, str] = {  # noqa: RUF012 - part of the protocol
        "id": "INTEGER PRIMARY KEY",
        "blob": "BLOB",
        "clustered": "WITHOUT ROWID",
        "float": "REAL",
        "url_index": "CREATE INDEX resource_url ON resource (url_key)",
    }

    def __init__(self, file: Path) -> None:
        self.file = file
        self._opened: tuple[int, int] | None = None

    @staticmethod
    def file_in(folder: Path) -> Path:
        """The path of the catalogue in the folder of an archive."""
        return folder / "catalogue.sqlite"

    def connect(self) -> DbConnection:
        """Waits up to 60 s for the writer of another process. If nothing can be written, reading still works."""
        with self.errors():
            with suppress(OSError):  # the message of SQLite is better
                make_private_file(self.file)
            try:
                return self._connect("mode=rwc", writing=True)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _NO_ROOM or not self.file.exists():
                    raise
            return self._connect_unwritable()

    def _connect_unwritable(self) -> DbConnection:
        """A file whose folder is read-only or full; without a log of changes it is read as it is."""
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
            self._opened = self._opened or self._place()
            self.require_same()
        except BaseException:
            connection.close()
            raise
        return connection

    def _place(self) -> tuple[int, int] | None:
        with suppress(OSError):
            found = self.file.stat()
            return found.st_dev, found.st_ino
        return None

    def require_same(self) -> None:
        """A repair replaces the file: what is written to the old one would be lost with it."""
        if self._place() != self._opened:
            raise NotReady(
                f"{self.file} was replaced while this process had it open; nothing was written, start the process again"
            )

    def sql(self, statement: str) -> str:
        """SQLite understands `?` marks."""
        return statement

    @contextmanager
    def errors(self) -> Iterator[None]:
        """One sentence instead of the driver's words."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise _explain_sqlite(self.file, error) from error
        except UnicodeDecodeError as error:
            if not error.object.startswith(_DAMAGED_NAME):
                raise
            raise Damaged(f"{self.file} is damaged (a name in it is no text)", REPAIR) from error

    def long_answer(self, connection: Any, *, held: bool) -> AbstractContextManager[Any]:
        """Every cursor works out its rows as they are fetched."""
        return nullcontext(connection.cursor())

    execute = staticmethod(sqlite3.Cursor.execute)

    def together(self, cursor: Any, statements: Sequence[str]) -> list[list[tuple[Any, ...]]]:
        """One after the other."""
        return [cursor.execute(statement).fetchall() for statement in statements]

    def many(self, cursor: Any, statement: str, rows: Iterable[Sequence[Any]], types: Sequence[str] = ()) -> int:
        """One prepared statement."""
        cursor.executemany(statement, rows)
        return max(0, int(cursor.rowcount))

    def bulk(self, cursor: Any, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
        """One prepared statement."""
        return self.many(cursor, insert_row(table, columns, "?"), rows)

    def numbers(self, cursor: Any, table: str, count: int) -> Sequence[int]:
        """The ids above all that were given out: there is no other writer."""
        row = cursor.execute(_LAST_ID.format(table)).fetchone()
        return range(row[0] + 1, row[0] + 1 + count)

    def settled(self, one: Any) -> int:
        """Versions become visible in the order of their ids: there is one writer."""
        return NO_BOUND

    def lost(self, connection: DbConnection) -> bool:
        """A file is never disconnected."""
        return False

    def size(self, one: Any) -> int:
        """The file and what still waits in its write-ahead log."""
        wal = self.file.with_name(self.file.name + "-wal")
        return sum(path.stat().st_size for path in (self.file, wal) if path.exists())


_LAST_ID = (
    "SELECT max(coalesce(max(id), 0), coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'last {0}'), 0)) "
    "FROM {0}"
)
_FULL = {sqlite3.SQLITE_FULL}
_NOT_WRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_NO_ROOM = _FULL | _NOT_WRITABLE | {sqlite3.SQLITE_IOERR}
_LEAST_ROOM = 64 << 10
_DAMAGED_NAME = (b"malformed", b"no such")
"""How messages of SQLite begin that name what is damaged, and so may be no valid text."""
_LOST_TABLE = ("no such table", "no such column", "malformed", "Could not decode to UTF-8")


def _is_full(folder: Path) -> bool:
    """Whether a disk has no room for what SQLite writes beside a catalogue, which it then calls read-only."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _LEAST_ROOM


def _explain_sqlite(file: Path, error: sqlite3.DatabaseError) -> Exception:
    """By the code of the error. Only what SQLite calls damage counts: advice to repair would harm a full disk."""
    text, code = str(error), getattr(error, "sqlite_errorcode", 0) & 0xFF
    if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
        return error
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Busy(f"another process is writing to {file}; wait for it or stop it")
    if code in _FULL or (code in _NO_ROOM and _is_full(file.parent)):
        return NotReady(f"no space left for {file}; free some and try again")
    if code in _NOT_WRITABLE:
        return NotReady(f"cannot write {file}; check that the folder exists and its permissions")
    if code in _DAMAGE or any(words in text for words in _LOST_TABLE):
        return Damaged(f"{file} is damaged ({text})", REPAIR)
    if code == sqlite3.SQLITE_IOERR:
        return NotReady(f"the disk under {file} fails or is full ({text}); check the disk, then try again")
    return NotReady(f"{file} cannot be used now ({text}); try again, and check disk and memory if this persists")


NO_BOUND = 2**62
_MMAP_BYTES = 128 << 20
"""Bytes of a file that are mapped into memory; they count as memory of each process that reads them."""


def insert_row(table: str, columns: Sequence[str], mark: str) -> str:
    """The statement that adds a row, with a mark for each value."""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join([mark] * len(columns))})"


def dialect_for(url: str, folder: Path) -> Dialect:
    """The engine that the settings name; SQLite inside the archive if they name none."""
    if url.startswith(("postgresql://", "postgres://")):
        return postgres.Postgres(url)
    if url:
        # Without the URL, which may contain a password. SQLite instead would split the archive in two.
        raise SettingError("database.url does not fit: write it as postgresql://user@host/database")
    return Sqlite(Sqlite.file_in(folder))
