"""One small door to SQL for both engines: SQLite by default, PostgreSQL at scale.

Statements are plain SQL with `?` marks that both engines understand; what
differs (types, marks, error classes) is in `dialect.py`. Reads use a
connection of the calling thread and never block; there is one writer at a
time, and a transaction is durable when its `with` block has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from letopis.catalog.dialect import Connection, Dialect

Row = tuple[Any, ...]


class Cursor:
    """Statements inside one transaction."""

    def __init__(self, connection: Connection, dialect: Dialect) -> None:
        self._cursor = connection.cursor()
        self._sql = dialect.sql

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Executes; answers how many rows it touched."""
        self._cursor.execute(self._sql(statement), values)
        return int(self._cursor.rowcount)

    def run_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Executes once a row."""
        self._cursor.executemany(self._sql(statement), rows)

    def one(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        """The first row, or None."""
        self._cursor.execute(self._sql(statement), values)
        row: Row | None = self._cursor.fetchone()
        return row

    def all(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows."""
        self._cursor.execute(self._sql(statement), values)
        rows: list[Row] = self._cursor.fetchall()
        return rows


class Database:
    """Connections to one catalogue; safe to share between threads."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._local = threading.local()
        self._opened: list[Connection] = []
        self._opening = threading.Lock()
        self._writing = threading.RLock()
        self._writer: Connection | None = None

    def _connect(self) -> Connection:
        connection = self.dialect.connect()
        with self._opening:
            self._opened.append(connection)
        return connection

    def _reader(self) -> Cursor:
        cursor: Cursor | None = getattr(self._local, "cursor", None)
        if cursor is None:
            cursor = self._local.cursor = Cursor(self._connect(), self.dialect)
        return cursor

    def one(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        """The first row of a question outside any transaction."""
        with self.dialect.errors():
            return self._reader().one(statement, values)

    def all(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows of a question outside any transaction."""
        with self.dialect.errors():
            return self._reader().all(statement, values)

    def stream(self, statement: str, values: Sequence[Any] = (), size: int = 1000) -> Iterator[Row]:
        """Rows of a long answer, read piece by piece on a cursor of their own."""
        connection = self._connect()
        try:
            cursor = connection.cursor()
            cursor.execute(self.dialect.sql(statement), values)
            while rows := cursor.fetchmany(size):
                yield from rows
        finally:
            self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        with self._opening:
            if connection in self._opened:
                self._opened.remove(connection)
        connection.close()

    @contextmanager
    def transaction(self) -> Iterator[Cursor]:
        """One atomic, durable change; rolled back whole when the block raises."""
        with self._writing, self.dialect.errors():
            if self._writer is None:
                self._writer = self._connect()
            cursor = Cursor(self._writer, self.dialect)
            cursor.run(self.dialect.begin)
            try:
                yield cursor
            except BaseException:
                cursor.run("ROLLBACK")
                raise
            cursor.run("COMMIT")

    def close(self) -> None:
        """Closes every connection; the database must not be used afterwards."""
        with self._opening:
            for connection in self._opened:
                connection.close()
            self._opened.clear()
        self._writer = None
        self._local = threading.local()
