"""Rescues rows from a damaged SQLite catalogue: every one that can still be read is copied to a new file.

The damaged file is only read, and copied first. If only indexes are damaged they are rebuilt and no row is lost.
Otherwise tables are read row by row, skipping unreadable pages, and the values of a row are checked against the types
of its columns: a page may be readable and wrong.

Such a catalogue is then made consistent again. Inconsistent rows are removed: a version without its content or its URL,
a URL that is not found by its name. Numbers of versions follow their times, and the list of sorted keys is rebuilt. The
rest is restored from the packs.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from letopis.binary import fsync_folder, make_private_file, write_errors
from letopis.catalog.catalog import Catalog
from letopis.catalog.database import Cursor
from letopis.catalog.dialect import Sqlite
from letopis.catalog.schema import (
    CATALOG_TABLES,
    SCHEMA_VERSION,
    TYPED_TABLES,
    damaged_json,
    misfits,
    schema_statements,
)
from letopis.catalog.table_copy import TOPICS, known_tables
from letopis.model.printing import counted
from letopis.urls import host as host_of
from letopis.urls import surt, url_key

_NOT_COPIED = ("surt", "sqlite_sequence", "sqlite_stat1")
"""Rebuilt from other rows."""
_KEPT_OUT_OF_META = ("schema", "packs")
_ROWS_AT_ONCE = 200
_LAST_ROW = 1 << 62
_FORGIVING = "PRAGMA writable_schema = ON"
"""A definition that cannot be read hides no other table."""
_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What reading a damaged file raises: messages of SQLite name what is damaged, which may be no valid text."""
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "INTEGER": (int,), "BIGINT": (int,), "SMALLINT": (int,), "TEXT": (str,), "BLOB": (bytes,), "REAL": (float, int),
}  # fmt: skip


def salvage_rows(damaged: Path, draft: Path) -> tuple[bool, tuple[str, ...]]:
    """Fills a draft with what a damaged catalogue still contains: whether that is all of it, and what is missing.

    The draft is an empty catalogue, or missing: then it becomes a copy of the damaged file with sound indexes, if that
    is possible.
    """
    copy = draft.with_name(draft.name + ".copy")
    with write_errors(draft):
        _copy_with_log(damaged, copy)
    try:
        if not draft.exists():
            if _is_sound_again(copy):
                copy.rename(draft)
                return True, ()
            return False, ()
        _mend_definitions(copy)
        return False, tuple(_copy_tables(copy, draft))
    finally:
        _remove_with_log(copy)


def put_in_place(draft: Path, file: Path) -> None:
    """The draft becomes the catalogue in one step; the damaged one keeps its bytes under another name."""
    number = 1
    while (aside := file.with_name(f"{file.name}.damaged-{number}")).exists():
        number += 1
    for suffix in ("", "-wal"):
        part = file.with_name(file.name + suffix)
        if part.exists():
            os.link(part, aside.with_name(aside.name + suffix))
    # A log of the damaged file must never be applied to the new one.
    for suffix in ("-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)
    draft.replace(file)
    fsync_folder(file.parent)


def remove_draft(draft: Path) -> None:
    """Removes the remains of an interrupted repair."""
    _remove_with_log(draft)
    _remove_with_log(draft.with_name(draft.name + ".copy"))


def _copy_with_log(source: Path, target: Path) -> None:
    for suffix in ("", "-wal"):
        part = source.with_name(source.name + suffix)
        if part.exists():
            copied = target.with_name(target.name + suffix)
            make_private_file(copied)
            shutil.copyfile(part, copied)


def _remove_with_log(file: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def _is_sound_again(copy: Path) -> bool:
    """Rebuilds all indexes; whether the file is sound then."""
    try:
        with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            connection.execute("REINDEX")
            # The result of an interrupted repair, or of damage; a later schema was refused before.
            connection.execute("UPDATE meta SET value = ? WHERE name = 'schema'", (str(SCHEMA_VERSION),))
            answers = connection.execute("PRAGMA integrity_check(1)").fetchall()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            made = {row[0] for row in connection.execute("SELECT sql FROM sqlite_master")}
        # Damage may have changed the definition of a table while all of its pages are sound.
        return answers == [("ok",)] and made.issuperset(schema_statements(Sqlite.types))
    except _UNREADABLE:
        return False


def _mend_definitions(copy: Path) -> None:
    """A table whose definition or name is damaged gets the one of this release: its rows may be sound."""
    with (
        suppress(*_UNREADABLE),
        closing(sqlite3.connect(copy, isolation_level=None)) as source,
        closing(sqlite3.connect(":memory:")) as known,
    ):
        for ddl in (CATALOG_TABLES, *TOPICS.values()):
            for statement in schema_statements(Sqlite.types, ddl):
                known.execute(statement)
        source.text_factory = _text
        source.execute(_FORGIVING)
        source.execute("UPDATE sqlite_master SET name = tbl_name WHERE type = 'table' AND name <> tbl_name")
        for name, sql in known.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall():
            try:
                source.execute(f"SELECT 1 FROM {name} LIMIT 0")
            except _UNREADABLE:
                source.execute("UPDATE sqlite_master SET sql = ? WHERE type = 'table' AND name = ?", (sql, name))


def _copy_tables(copy: Path, draft: Path) -> Iterator[str]:
    """Copies table by table; a sentence for each table of which something is missing."""
    with (
        closing(sqlite3.connect(copy, isolation_level=None)) as source,
        closing(sqlite3.connect(draft, isolation_level=None)) as target,
    ):
        source.text_factory = _text
        try:
            source.execute(_FORGIVING)
            source.execute("PRAGMA cell_size_check = ON")
            listed = source.execute("SELECT name, sql, type FROM sqlite_master ORDER BY type DESC").fetchall()
        except _UNREADABLE as error:
            yield f"nothing of the old catalogue except what the packs contain ({error})"
            return
        for name, sql, kind in listed:
            if kind == "index" and sql:
                with suppress(*_UNREADABLE):
                    target.execute(sql)
            elif kind == "table" and isinstance(name, str) and name not in _NOT_COPIED:
                yield from _copy_table(source, target, name, str(sql))


def _copy_table(source: sqlite3.Connection, target: sqlite3.Connection, name: str, sql: str) -> Iterator[str]:
    if target.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is None:
        try:
            target.execute(sql)
        except _UNREADABLE:
            yield f"{name}: the table cannot be read"
            return
    described = target.execute(f"PRAGMA table_info({name})").fetchall()
    columns = [(column, kind) for _, column, kind, *_ in described]
    numbers = [at for at, _, kind, _, _, key in described if key and kind == "INTEGER"]
    kinds = [_PYTHON_TYPES.get(kind.upper().split("(")[0], (object,)) for _, kind in columns]
    marks, names = ", ".join("?" * len(columns)), ", ".join(column for column, _ in columns)
    missing = _Missing()
    rows = _TableRows(source, name, names, missing)
    target.execute("BEGIN")
    for number, row in rows.clustered() if "WITHOUT ROWID" in sql.upper() else rows.numbered():
        if numbers == [0] and row[0] is None:
            row = (number, *row[1:])
        fits = all(value is None or isinstance(value, kind) for value, kind in zip(row, kinds, strict=True))
        if fits and not (name == "meta" and row[0] in _KEPT_OUT_OF_META):
            target.execute(f"INSERT OR IGNORE INTO {name} ({names}) VALUES ({marks})", row)
        elif not fits:
            missing.count += 1
    target.execute("COMMIT")
    if missing.count or missing.unknown:
        amount = f"up to {missing.count} rows" if not missing.unknown else "some rows"
        yield f"{name}: {amount} of the catalogue cannot be read"


class _Missing:
    """How many rows of a table are missing."""

    def __init__(self) -> None:
        self.count = 0
        self.unknown = False


class _TableRows:
    """The readable rows of one table."""

    def __init__(self, source: sqlite3.Connection, table: str, names: str, missing: _Missing) -> None:
        self._source = source
        self._table = table
        self._names = names
        self._missing = missing

    def numbered(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Rows with their numbers; at a damaged page reading continues at the first number after it."""
        after = -_LAST_ROW
        while True:
            rows = self._from(after + 1, _ROWS_AT_ONCE)
            if rows is None:
                rows = self._from(after + 1, 1)
            if rows is None:
                behind = self._behind(after + 1)
                if behind is None:
                    self._missing.unknown = True
                    return
                self._missing.count += max(1, behind - max(after, 0) - 1)
                after = behind - 1
                continue
            if not rows:
                return
            yield from ((row[0], row[1:]) for row in rows)
            after = rows[-1][0]

    def _from(self, first: int, most: int) -> list[tuple[Any, ...]] | None:
        if first > _LAST_ROW:
            return []
        question = f"SELECT rowid, {self._names} FROM {self._table} NOT INDEXED WHERE rowid >= ? ORDER BY rowid LIMIT ?"
        try:
            rows = self._source.execute(question, (first, most)).fetchall()
        except _UNREADABLE:
            return None
        numbers = [first - 1, *(row[0] for row in rows)]
        # A damaged number may be out of order: continuing after it would read the same rows forever.
        return rows if all(one < other for one, other in pairwise(numbers)) else None

    def _behind(self, first: int) -> int | None:
        """The first number from which on rows can be read again; None when there is none."""
        low, step = max(first, 0), 1
        while not self._from(low + step, 1):
            step *= 2
            if low + step > _LAST_ROW:
                return None
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._from(middle, 1) else (middle, high)
        return int(self._from(high, 1)[0][0])  # type: ignore[index]

    def clustered(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Rows in the order of their key from both ends; a damaged page in the middle hides what is between."""
        found: dict[tuple[Any, ...], None] = {}
        for order in ("", self._reversed()):
            try:
                for row in self._source.execute(f"SELECT {self._names} FROM {self._table}{order}"):
                    if row in found and order:
                        break
                    found[row] = None
            except _UNREADABLE:
                self._missing.unknown = True
                continue
            if not order:
                break
        yield from ((0, row) for row in found)

    def _reversed(self) -> str:
        keys = [row[1] for row in self._source.execute(f"PRAGMA table_info({self._table})") if row[5]]
        return f" ORDER BY {', '.join(f'{key} DESC' for key in keys)}" if keys else ""


def _text(data: bytes) -> str | bytes:
    """What is no text any more stays bytes, and does not fit its column."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


_WITHOUT_OWNER = (
    "DELETE FROM version WHERE content NOT IN (SELECT id FROM content) OR resource NOT IN (SELECT id FROM resource)",
    "DELETE FROM capture WHERE resource NOT IN (SELECT id FROM resource)",
    "UPDATE capture SET content = NULL WHERE content NOT IN (SELECT id FROM content)",
    "DELETE FROM surt",
)
_COUNTED = (
    "UPDATE resource SET versions = coalesce((SELECT count(*) FROM version v WHERE v.resource = resource.id), 0), "
    "newest = (SELECT v.id FROM version v WHERE v.resource = resource.id ORDER BY v.number DESC LIMIT 1)"
)
_LAST_CHECKED = (
    "UPDATE resource SET checked = (SELECT max(t) FROM (SELECT max(time) AS t FROM version v WHERE v.resource = "
    "resource.id UNION ALL SELECT max(time) FROM capture c WHERE c.resource = resource.id))"
)


def straighten(catalog: Catalog) -> tuple[str, ...]:
    """Makes the rows of a catalogue consistent, in one transaction; returns what only it contained and is lost."""
    gone = []
    known_tables(catalog.database, catalog.database)  # damage may have left only some tables of a topic
    with catalog.transaction() as cursor:
        for table in TYPED_TABLES if catalog.database.dialect.name == "sqlite" else ():
            cursor.run(f"DELETE FROM {table} WHERE {misfits(cursor, table)}")
        for one in damaged_json(cursor) if catalog.database.dialect.name == "sqlite" else ():
            mend = f"UPDATE {one.table} SET {one.column} = {one.instead}" if one.instead else f"DELETE FROM {one.table}"
            cursor.run(f"{mend} WHERE {one.test}")
            gone.append(f"{one.table}: {one.column} of {counted(one.rows, 'row')} cannot be read")
        _drop_misnamed(catalog, cursor)
        for statement in _WITHOUT_OWNER:
            cursor.run(statement)
        catalog.imported.drop_dangling(cursor)
        catalog.sets.drop_dangling(cursor)
        _renumber(cursor)
        cursor.run(_COUNTED)
        cursor.run(_LAST_CHECKED)
        names = cursor.all("SELECT url, id FROM resource WHERE checked IS NOT NULL")
        cursor.run_many(
            "INSERT INTO surt (name, resource) VALUES (?, ?) ON CONFLICT DO NOTHING",
            ((surt(url), number) for url, number in names),
        )
    return tuple(gone)


def _drop_misnamed(catalog: Catalog, cursor: Cursor) -> None:
    """URLs that no query finds, and of several rows of one URL all but the first; missing hosts are restored."""
    hosts = {row[0] for row in cursor.all("SELECT id FROM host")}
    seen: set[str] = set()
    for number, url, key, host in cursor.all("SELECT id, url, url_key, host FROM resource ORDER BY id"):
        if url_key(url) != key or url in seen:
            cursor.run("DELETE FROM resource WHERE id = ?", (number,))
        elif host not in hosts:
            found = catalog.resources.ensure_host(cursor, host_of(url))
            cursor.run("UPDATE resource SET host = ? WHERE id = ?", (found, number))
        seen.add(url)


def _renumber(cursor: Cursor) -> None:
    """Versions of each URL in the order of their times, from 0; of two at one time the later row is removed."""
    last: tuple[int, int] | None = None
    expected = 0
    for number, resource, found, time in cursor.all("SELECT id, resource, number, time FROM version ORDER BY 2, 4, 1"):
        if last == (resource, time):
            cursor.run("DELETE FROM version WHERE id = ?", (number,))
            continue
        expected = expected + 1 if last is not None and last[0] == resource else 0
        last = (resource, time)
        if found != expected:
            cursor.run("UPDATE version SET number = ? WHERE id = ?", (expected, number))
