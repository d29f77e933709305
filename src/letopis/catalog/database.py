"""A small interface to SQL for both engines: SQLite by default, PostgreSQL at scale.

Statements are plain SQL with `?` marks that both engines understand; what differs (types, marks, error classes) is in
`dialect.py` and `postgres.py`. Reads use a connection of the calling thread and never block. There is one writer at a
time, or several that lock what they write to; a transaction is durable when its `with` block has ended. Text that no
engine can store is replaced on writing.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import islice
from typing import Any, TypeVar, cast

from letopis.catalog.dialect import DbConnection, Dialect
from letopis.errors import UsageError

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
    """The values of a row or of a query, with all texts storable; the same object if they were."""
    for value in values:
        if value.__class__ is str and storable_text(value) is not value:
            return tuple(storable_text(each) if each.__class__ is str else each for each in values)
    return values


def storable_rows(rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Rows with `storable_values`, a thousand tested as one text: there is hardly ever anything to replace."""
    waiting = iter(rows)
    while part := list(islice(waiting, _ROWS_AT_ONCE)):
        texts = "".join([value for row in part for value in row if value.__class__ is str])
        yield from part if storable_text(texts) is texts else map(storable_values, part)


_ROWS_AT_ONCE = 1000
SqlRow = tuple[Any, ...]
T = TypeVar("T")


class Cursor:
    """Statements inside one transaction. Texts are made storable on writing, see `storable_text`."""

    def __init__(self, connection: DbConnection, dialect: Dialect) -> None:
        self.connection = connection
        self._cursor = connection.cursor()
        self.dialect = dialect
        self._execute = dialect.execute
        self.begun: list[list[SqlRow]] = []
        """The rows of each statement with which the transaction began."""
        self.last: list[str] = []
        """Statements without values that the commit sends along; nobody waits for their rows."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Executes; returns how many rows it changed."""
        self._execute(self._cursor, statement, storable_values(values))
        return int(self._cursor.rowcount)

    def together(self, statements: Sequence[str]) -> list[list[SqlRow]]:
        """Executes statements without values, which costs one round trip; the rows of each."""
        return self.dialect.together(self._cursor, statements)

    def run_many(self, statement: str, rows: Iterable[Sequence[Any]], types: Sequence[str] = ()) -> int:
        """Executes once per row; returns how many rows it changed in total.

        With the types of its values, a simple `INSERT` or `UPDATE ... WHERE` may change all rows at once; no two rows
        then name the same one.
        """
        return self.dialect.many(self._cursor, self.dialect.sql(statement), storable_rows(rows), types)

    def bulk(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
        """Adds very many rows in the engine's fastest way; returns how many."""
        return self.dialect.bulk(self._cursor, table, columns, storable_rows(rows))

    def numbers(self, table: str, count: int) -> Sequence[int]:
        """So many increasing ids for rows that are about to be added; no other transaction gets them."""
        return self.dialect.numbers(self._cursor, table, count) if count else ()

    def remove(self, table: str, where: str, values: Sequence[Any]) -> int:
        """Deletes rows, and tells how many; those that get `numbers` later get others: alerts and logs name these."""
        if self.dialect.keep_last_id:
            self.run(self.dialect.keep_last_id.format(table))
        return self.run(f"DELETE FROM {table} WHERE {where}", values)

    def one(self, statement: str, values: Sequence[Any] = ()) -> SqlRow | None:
        """The first row, or None."""
        self._execute(self._cursor, statement, storable_values(values))
        row: SqlRow | None = self._cursor.fetchone()
        return row

    def count(self, statement: str, values: Sequence[Any] = ()) -> int:
        """The one number that a query returns, 0 for none."""
        row = self.one(statement, values)
        return int(row[0] or 0) if row else 0

    def all(self, statement: str, values: Sequence[Any] = ()) -> list[SqlRow]:
        """All rows."""
        self._execute(self._cursor, statement, storable_values(values))
        rows: list[SqlRow] = self._cursor.fetchall()
        return rows


def _in_pieces(cursor: Any, statement: str, values: Sequence[Any], size: int) -> Iterator[SqlRow]:
    cursor.execute(statement, values)
    while rows := cursor.fetchmany(size):
        yield from rows


def _end(connection: DbConnection, opened: list[DbConnection], opening: AbstractContextManager[object]) -> None:
    with opening:
        if connection in opened:
            opened.remove(connection)
    connection.close()


class DatabaseSnapshot:
    """Answers as of one moment."""

    def __init__(self, connection: DbConnection, dialect: Dialect) -> None:
        self._connection = connection
        self._dialect = dialect

    def all(self, statement: str, values: Sequence[Any] = ()) -> list[SqlRow]:
        """All rows."""
        return Cursor(self._connection, self._dialect).all(statement, values)

    def stream(self, statement: str, size: int = 1000) -> Iterator[SqlRow]:
        """Rows of a long answer, read in pieces; several may be read at once."""
        with self._dialect.long_answer(self._connection, held=False) as cursor:
            yield from _in_pieces(cursor, self._dialect.sql(statement), (), size)


class Database:
    """Connections to one catalogue; safe to share between threads."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._local = threading.local()
        self._opened: list[DbConnection] = []
        self._opening = threading.RLock()  # A thread may end, and its connection with it, while another is opened.
        self._writing = threading.RLock()
        self._writer: DbConnection | None = None
        self._closed = False

    def _connect(self) -> DbConnection:
        if self._closed:
            raise UsageError("the archive is closed; open it again")
        connection = self.dialect.connect()
        with self._opening:
            self._opened.append(connection)
        return connection

    def _reader(self) -> Cursor:
        """One per thread. Its connection ends with the thread: pools end idle threads, and start others."""
        cursor: Cursor | None = getattr(self._local, "cursor", None)
        if cursor is not None and self.dialect.lost(cursor.connection):
            self._forget(cursor.connection)
            cursor = None
        if cursor is None:
            cursor = self._local.cursor = Cursor(self._connect(), self.dialect)
            # Without `self`: a database that is no longer referred to is collected with all its connections.
            weakref.finalize(cursor, _end, cursor.connection, self._opened, self._opening).atexit = False
        return cursor

    def _ask(self, question: Callable[[Cursor, str, Sequence[Any]], T], statement: str, values: Sequence[Any]) -> T:
        """Repeats a query once if the connection was cut: it changes nothing."""
        # Every read of a version comes through here, so errors are examined only after one has occurred.
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
        """The first row of a query outside any transaction."""
        return self._ask(Cursor.one, statement, values)

    def count(self, statement: str, values: Sequence[Any] = ()) -> int:
        """The one number that a query outside any transaction returns, 0 for none."""
        return self._ask(Cursor.count, statement, values)

    def all(self, statement: str, values: Sequence[Any] = ()) -> list[SqlRow]:
        """All rows of a query outside any transaction."""
        return self._ask(Cursor.all, statement, values)

    def stream(self, statement: str, values: Sequence[Any] = (), size: int = 1000) -> Iterator[SqlRow]:
        """Rows of a long answer, read in pieces on a separate cursor."""
        connection = self._connect()
        try:
            with self.dialect.errors(), self.dialect.long_answer(connection, held=True) as cursor:
                yield from _in_pieces(cursor, self.dialect.sql(statement), storable_values(values), size)
        finally:
            self._forget(connection)

    @contextmanager
    def snapshot(self) -> Iterator[DatabaseSnapshot]:
        """Queries that all see one moment, however long they take; writers are not blocked."""
        connection = self._connect()
        try:
            with self.dialect.errors():
                Cursor(connection, self.dialect).run(self.dialect.snapshot)
                yield DatabaseSnapshot(connection, self.dialect)
        finally:
            self._forget(connection)

    def _forget(self, connection: DbConnection) -> None:
        _end(connection, self._opened, self._opening)

    def settled(self) -> int:
        """Up to which id the log of versions is complete for the next query; see `Dialect.settled`."""
        return self.dialect.settled(self.one)

    @contextmanager
    def transaction(self, *, beside: bool = False, first: Sequence[str] = ()) -> Iterator[Cursor]:
        """One atomic, durable change; rolled back as a whole if the block raises.

        `beside`: in parallel with others of its kind if the engine supports that; the block then changes only rows that
        it has locked, or that no other transaction uses. `first` are statements without values with which it begins.
        """
        with self._writing, self.dialect.errors():
            cursor = self._begun([self.dialect.begin_beside if beside else self.dialect.begin, *first])
            cursor.begun = cursor.begun[len(cursor.begun) - len(first) :]
            try:
                yield cursor
            except BaseException:
                self._roll_back(cursor)
                raise
            try:
                cursor.together([*cursor.last, "COMMIT"])
            except Exception:
                self._end_failed()
                raise

    def _roll_back(self, cursor: Cursor) -> None:
        """A server that has ended the connection has rolled back already: the error of the block is raised."""
        try:
            if not self.dialect.lost(cursor.connection):
                cursor.run("ROLLBACK")
        except Exception:
            if not self.dialect.lost(cursor.connection):
                raise

    def _end_failed(self) -> None:
        """A message of several statements that fails leaves the transaction open."""
        with suppress(Exception):
            Cursor(cast("DbConnection", self._writer), self.dialect).run("ROLLBACK")

    def _begun(self, first: Sequence[str]) -> Cursor:
        """A transaction that has the turn; a cut connection is replaced before anything is done."""
        for last in (False, True):
            if self._writer is None:
                self._writer = self._connect()
            self.dialect.require_same()
            try:
                cursor = Cursor(self._writer, self.dialect)
                cursor.begun = cursor.together(first)
            except Exception:
                if last or not self.dialect.lost(self._writer):
                    self._end_failed()
                    raise
                self._forget(self._writer)
                self._writer = None
            else:
                break
        return cursor

    def close(self) -> None:
        """Closes every connection; what is asked of the database afterwards is refused."""
        self._closed = True
        with self._opening:
            opened = self._opened[:]
            self._opened.clear()
        for connection in opened:
            connection.close()
        self._writer = None
        self._local = threading.local()
