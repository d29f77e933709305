"""One small door to SQL for both engines: SQLite by default, PostgreSQL at scale.

Statements are plain SQL with `?` marks that both engines understand; what
differs (types, marks, error classes) is in `dialect.py`. Reads use a
connection of the calling thread and never block; there is one writer at a
time, and a transaction is durable when its `with` block has ended. Text that
no engine can keep is replaced on its way in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from letopis.catalog.dialect import DbConnection, Dialect

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def storable_text(text: str) -> str:
    """The text itself, or a copy with U+FFFD in place of what cannot be stored."""
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def storable_values(values: Sequence[Any]) -> Sequence[Any]:
    """The values of a row or of a question, all texts among them storable; the same object when they were."""
    for value in values:
        if value.__class__ is str and storable_text(value) is not value:
            return tuple(storable_text(each) if each.__class__ is str else each for each in values)
    return values


SqlRow = tuple[Any, ...]
T = TypeVar("T")


class Cursor:
    """Statements inside one transaction. Texts are made storable on their way in, see `storable_text`."""

    def __init__(self, connection: DbConnection, dialect: Dialect) -> None:
        self.connection = connection
        self._cursor = connection.cursor()
        self._dialect = dialect
        self._sql = dialect.sql

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Executes; answers how many rows it touched."""
        self._cursor.execute(self._sql(statement), storable_values(values))
        return int(self._cursor.rowcount)

    def run_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> int:
        """Executes once a row; answers how many rows it touched in all."""
        self._cursor.executemany(self._sql(statement), map(storable_values, rows))
        return max(0, int(self._cursor.rowcount))

    def bulk(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
        """Adds very many rows by the engine's fastest way; how many."""
        return self._dialect.bulk(self._cursor, table, columns, map(storable_values, rows))

    def numbers(self, table: str, count: int) -> Sequence[int]:
        """So many ids for rows that are about to be added, rising; nobody else is given them."""
        return self._dialect.numbers(self._cursor, table, count) if count else ()

    def one(self, statement: str, values: Sequence[Any] = ()) -> SqlRow | None:
        """The first row, or None."""
        self._cursor.execute(self._sql(statement), storable_values(values))
        row: SqlRow | None = self._cursor.fetchone()
        return row

    def all(self, statement: str, values: Sequence[Any] = ()) -> list[SqlRow]:
        """All rows."""
        self._cursor.execute(self._sql(statement), storable_values(values))
        rows: list[SqlRow] = self._cursor.fetchall()
        return rows


class DatabaseSnapshot:
    """Answers about one moment."""

    def __init__(self, connection: DbConnection, dialect: Dialect) -> None:
        self._connection = connection
        self._dialect = dialect

    def all(self, statement: str, values: Sequence[Any] = ()) -> list[SqlRow]:
        """All rows."""
        return Cursor(self._connection, self._dialect).all(statement, values)

    def stream(self, statement: str, size: int = 1000) -> Iterator[SqlRow]:
        """Rows of a long answer, read piece by piece; several may be read at once."""
        cursor = self._connection.cursor()
        cursor.execute(self._dialect.sql(statement))
        while rows := cursor.fetchmany(size):
            yield from rows


class Database:
    """Connections to one catalogue; safe to share between threads."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._local = threading.local()
        self._opened: list[DbConnection] = []
        self._opening = threading.Lock()
        self._writing = threading.RLock()
        self._writer: DbConnection | None = None

    def _connect(self) -> DbConnection:
        connection = self.dialect.connect()
        try:
            if not self._opened:
                self.dialect.prepare(connection)
        except BaseException:
            connection.close()
            raise
        with self._opening:
            self._opened.append(connection)
        return connection

    def _reader(self) -> Cursor:
        cursor: Cursor | None = getattr(self._local, "cursor", None)
        if cursor is not None and self.dialect.lost(cursor.connection):
            self._forget(cursor.connection)
            cursor = None
        if cursor is None:
            cursor = self._local.cursor = Cursor(self._connect(), self.dialect)
        return cursor

    def _ask(self, question: Callable[[Cursor, str, Sequence[Any]], T], statement: str, values: Sequence[Any]) -> T:
        """Asks again once when the connection turns out to have been cut: a question changes nothing."""
        # Every read of a version comes through here, so errors are looked at only once there is one.
        try:
            cursor = getattr(self._local, "cursor", None) or self._reader()
            try:
                return question(cursor, statement, values)
            except Exception:
                if not self.dialect.lost(cursor.connection):
                    raise
            return question(self._reader(), statement, values)
        except Exception:
            with self.dialect.errors():
                raise

    def one(self, statement: str, values: Sequence[Any] = ()) -> SqlRow | None:
        """The first row of a question outside any transaction."""
        return self._ask(Cursor.one, statement, values)

    def all(self, statement: str, values: Sequence[Any] = ()) -> list[SqlRow]:
        """All rows of a question outside any transaction."""
        return self._ask(Cursor.all, statement, values)

    def stream(self, statement: str, values: Sequence[Any] = (), size: int = 1000) -> Iterator[SqlRow]:
        """Rows of a long answer, read piece by piece on a cursor of their own."""
        connection = self._connect()
        try:
            cursor = connection.cursor()
            cursor.execute(self.dialect.sql(statement), storable_values(values))
            while rows := cursor.fetchmany(size):
                yield from rows
        finally:
            self._forget(connection)

    @contextmanager
    def snapshot(self) -> Iterator[DatabaseSnapshot]:
        """Questions that all see one moment, however long they take; writers go on meanwhile."""
        connection = self._connect()
        try:
            with self.dialect.errors():
                Cursor(connection, self.dialect).run(self.dialect.snapshot)
                yield DatabaseSnapshot(connection, self.dialect)
        finally:
            self._forget(connection)

    def _forget(self, connection: DbConnection) -> None:
        with self._opening:
            if connection in self._opened:
                self._opened.remove(connection)
        connection.close()

    @contextmanager
    def transaction(self) -> Iterator[Cursor]:
        """One atomic, durable change; rolled back whole when the block raises."""
        with self._writing, self.dialect.errors():
            cursor = self._begun()
            try:
                yield cursor
            except BaseException:
                if not self.dialect.lost(cursor.connection):
                    cursor.run("ROLLBACK")
                raise
            cursor.run("COMMIT")

    def _begun(self) -> Cursor:
        """A transaction that has the turn; a connection that was cut is replaced before anything is done."""
        for last in (False, True):
            if self._writer is None:
                self._writer = self._connect()
            try:
                cursor = Cursor(self._writer, self.dialect)
                cursor.run(self.dialect.begin)
            except Exception:
                if last or not self.dialect.lost(self._writer):
                    raise
                self._forget(self._writer)
                self._writer = None
            else:
                break
        return cursor

    def close(self) -> None:
        """Closes every connection; the database must not be used afterwards."""
        with self._opening:
            for connection in self._opened:
                connection.close()
            self._opened.clear()
        self._writer = None
        self._local = threading.local()
