"""Copies a catalogue from one engine to another: table by table, each in one transaction, compared afterwards."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from xxhash import xxh3_64

from letopis.catalog import (
    accounts,
    audit,
    contents,
    edited_settings,
    imported,
    index_state,
    jobs,
    queues,
    resources,
    saved_searches,
    sessions,
    sets,
    version_log,
    watches,
)
from letopis.catalog.database import Database, DatabaseSnapshot, SqlRow
from letopis.catalog.schema import CATALOG_TABLES, ensure_tables, has_table
from letopis.errors import Damaged, UsageError
from letopis.tuples import NamedTuple

TOPICS = {
    "accounts": accounts.ACCOUNT_TABLES,
    "audit": audit.AUDIT_TABLES,
    "choices": index_state.CHOICE_TABLES,
    "clients": version_log.CLIENT_TABLES,
    "edited settings": edited_settings.EDITED_TABLES,
    "inbox": queues.INBOX_TABLE,
    "titleonly": index_state.INDEXING_TABLES,
    "imports": imported.IMPORT_TABLES,
    "invitations": accounts.INVITATION_TABLES,
    "jobs": jobs.JOB_TABLES,
    "likeness": index_state.LIKENESS_TABLES,
    "mutes": resources.MUTE_TABLES,
    "project parts": accounts.PROJECT_PART_TABLES,
    "projects": accounts.PROJECT_TABLES,
    "renderings": contents.RENDERING_TABLES,
    "job journals": jobs.JOURNAL_TABLES,
    "job queries": jobs.QUERY_TABLES,
    "revisits": queues.REVISIT_TABLE,
    "saved searches": saved_searches.SAVED_TABLES,
    "sessions": sessions.SESSION_TABLES,
    "sets": sets.SET_TABLES,
    "set qualities": sets.QUALITY_TABLES,
    "statistics": audit.STATISTICS_TABLES,
    "token times": sessions.LIFETIME_TABLES,
    "two factor": sessions.TWO_FACTOR_TABLES,
    "usage": audit.USAGE_TABLES,
    "watches": watches.WATCH_TABLES,
    "wordforms": index_state.WORDFORM_TABLES,
}
"""Tables that only some archives have, and that belong to the archive rather than to the machines that share it."""

_COPY_MARK = "migrating"
_KEPT_META = ("packs", "schema", _COPY_MARK)
_TABLE = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+) \((.*?)\)(?: \{clustered\})?;", re.DOTALL)
_COLUMN = re.compile(r"^(\w+) (?:\{\w+\}|[A-Z]+)")
_COMMA = re.compile(r",\s*(?![^()]*\))")
_BATCH = 5000


class TableSpec(NamedTuple):
    """A table according to its definition: columns in order, its sort key, and its column of automatic numbers."""

    name: str
    columns: tuple[str, ...]
    order: tuple[str, ...]
    numbered: str | None


def tables_in(ddl: str) -> list[TableSpec]:
    """The tables of a definition."""
    return [_table_spec(match[1], match[2]) for match in _TABLE.finditer(ddl)]


def _table_spec(name: str, body: str) -> TableSpec:
    parts = [part.strip() for part in _COMMA.split(body)]
    key = next((part for part in parts if part.startswith("PRIMARY KEY")), "")
    columns = tuple(match[1] for part in parts if (match := _COLUMN.match(part)) and not part.startswith("PRIMARY"))
    numbered = next((part.split()[0] for part in parts if "{id}" in part), None)
    single = next((part.split()[0] for part in parts if " PRIMARY KEY" in part), None)
    found = re.search(r"\(([^)]*)\)", key)
    order = tuple(word.strip() for word in found[1].split(",")) if found else (numbered or single or columns[0],)
    return TableSpec(name, columns, order, numbered)


def known_tables(source: Database, target: Database) -> list[TableSpec]:
    """All tables of the source; those of topics are created in the target."""
    found = tables_in(CATALOG_TABLES)
    for topic, ddl in TOPICS.items():
        part = tables_in(ddl)
        if any(has_table(source, table.name) for table in part):
            ensure_tables(source, topic, ddl)
            ensure_tables(target, topic, ddl)
            found += part
    return found


def begin_copy(target: Database) -> set[str]:
    """The tables that an interrupted copy has finished; UsageError if the target already has another archive."""
    row = target.one("SELECT value FROM meta WHERE name = ?", (_COPY_MARK,))
    if row is not None:
        return set(filter(None, str(row[0]).split(",")))
    if target.one("SELECT 1 FROM resource LIMIT 1") is not None:
        raise UsageError("the target already holds an archive; name an empty database")
    with target.transaction() as cursor:
        cursor.run("INSERT INTO meta (name, value) VALUES (?, '')", (_COPY_MARK,))
    return set()


def end_copy(target: Database) -> None:
    """Marks the copy as complete: the target is now a normal archive."""
    with target.transaction() as cursor:
        cursor.run("DELETE FROM meta WHERE name = ?", (_COPY_MARK,))


def copy_catalogue(
    source: Database, target: Database, finished: set[str], progress: Callable[[str], None] = lambda what: None
) -> int:
    """Copies all tables but the finished ones as they are at one moment, and compares all; how many rows there are.

    At one moment: hosts are added and leased by statements that wait for no turn.
    """
    found = known_tables(source, target)
    with source.snapshot() as moment:
        return copy_tables(moment, target, found, finished, progress)


def copy_tables(
    source: DatabaseSnapshot,
    target: Database,
    tables: Sequence[TableSpec],
    finished: set[str],
    progress: Callable[[str], None] = lambda what: None,
) -> int:
    """Copies tables but the finished ones, and compares all; how many rows there are.

    `progress` is called with the name of each table when it is copied, and again when it is compared.
    """
    for table in tables:
        if table.name not in finished:
            copy_table(source, target, table, finished)
            finished.add(table.name)
            progress(table.name)
    rows = 0
    for table in tables:
        rows += compare_table(source, target, table)
        progress(table.name)
    return rows


def copy_table(source: DatabaseSnapshot, target: Database, table: TableSpec, finished: Iterable[str]) -> int:
    """Copies one table whole; how many rows."""
    with target.transaction() as cursor:
        if table.name == "meta":
            marks = ", ".join("?" * len(_KEPT_META))
            cursor.run(f"DELETE FROM meta WHERE name NOT IN ({marks})", _KEPT_META)
        count = cursor.bulk(table.name, table.columns, _rows(source, table))
        if table.numbered and count:
            _set_sequence(target, cursor.run, table)
        done = ",".join(sorted({*finished, table.name}))
        cursor.run("UPDATE meta SET value = ? WHERE name = ?", (done, _COPY_MARK))
    return count


def _set_sequence(target: Database, run: Callable[[str], int], table: TableSpec) -> None:
    """The next row gets a number above those that were copied."""
    if target.dialect.name == "postgresql":
        run(
            f"SELECT setval(pg_get_serial_sequence('{table.name}', '{table.numbered}'), "
            f"(SELECT max({table.numbered}) FROM {table.name}))"
        )


def _rows(database: Database | DatabaseSnapshot, table: TableSpec) -> Iterator[SqlRow]:
    order = ", ".join(table.order)
    rows = database.stream(f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {order}", size=_BATCH)
    return (row for row in rows if table.name != "meta" or row[0] not in _KEPT_META)


def compare_table(source: DatabaseSnapshot, target: Database, table: TableSpec) -> int:
    """Damaged when the two tables differ in any value; how many rows they have."""
    ours, theirs = _digest_rows(_rows(source, table)), _digest_rows(_rows(target, table))
    if ours != theirs:
        raise Damaged(
            f"{table.name} has {theirs[0]} rows in the new place and {ours[0]} in the old one, or other values; "
            "stop all writers and migrate to an empty place again"
        )
    return ours[0]


def _digest_rows(rows: Iterable[SqlRow]) -> tuple[int, int]:
    """Count and a sum of the rows' hashes: engines sort text in different orders."""
    count = total = 0
    for row in rows:
        plain = tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)
        total = (total + xxh3_64(repr(plain).encode("utf-8", "surrogatepass")).intdigest()) % 2**64
        count += 1
    return count, total
