"""The tables of the catalogue, their rows as values, and the version they carry.

Times are whole milliseconds since 1970. A row of `version` is at the same time the check that found it; `capture` holds
all other checks. Numbers of versions follow their times without gaps, from 0. Tables that only some archives need are
made at their first write; PostgreSQL may keep some of them in partitions (docs/decisions/0009-partitions.md).
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from letopis.catalog.database import Cursor, Database
from letopis.errors import REPAIR, Damaged, NewerFormat, UsageError
from letopis.model import Outcome
from letopis.tuples import NamedTuple

SCHEMA_VERSION = 1
"""Of a file. A database is one ahead: its URLs are unique by a key, and no older release may write to it."""

CATALOG_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE host (
    id {id}, name TEXT NOT NULL UNIQUE,
    ip TEXT NOT NULL DEFAULT '', ready BIGINT NOT NULL DEFAULT 0, ip_ready BIGINT NOT NULL DEFAULT 0,
    crawl_delay {float} NOT NULL DEFAULT 0, fetched BIGINT NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0,
    profile {blob}, distrusted TEXT,
    owner TEXT NOT NULL DEFAULT '', fence BIGINT NOT NULL DEFAULT 0, lease_until BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE resource (
    id {id}, url_key BIGINT NOT NULL, url TEXT NOT NULL, host BIGINT NOT NULL,
    state SMALLINT NOT NULL DEFAULT 0, due BIGINT, depth INTEGER NOT NULL DEFAULT 0,
    priority {float} NOT NULL DEFAULT 0, schedule {blob},
    versions INTEGER NOT NULL DEFAULT 0, newest BIGINT, checked BIGINT, title TEXT, habits {blob}
);
{url_index};
CREATE INDEX resource_new ON resource (host, priority DESC, depth, id) WHERE state = 1;
CREATE INDEX resource_again ON resource (host, due) WHERE state = 2;
CREATE INDEX resource_next ON resource (due) WHERE state = 2;

CREATE TABLE surt (name TEXT NOT NULL, resource BIGINT NOT NULL, PRIMARY KEY (name, resource)) {clustered};

CREATE TABLE content (
    id {id}, identity BIGINT NOT NULL, sha1 {blob} NOT NULL,
    raw_bytes BIGINT NOT NULL, stored_bytes BIGINT NOT NULL, method TEXT NOT NULL,
    pack INTEGER NOT NULL, place BIGINT NOT NULL, slot INTEGER NOT NULL
);
CREATE INDEX content_identity ON content (identity);

CREATE TABLE head (id {id}, fingerprint BIGINT NOT NULL, data {blob} NOT NULL);
CREATE INDEX head_fingerprint ON head (fingerprint);

CREATE TABLE version (
    id {id}, resource BIGINT NOT NULL, number INTEGER NOT NULL, time BIGINT NOT NULL,
    content BIGINT NOT NULL, head BIGINT NOT NULL, status SMALLINT NOT NULL, meaningful SMALLINT, extra TEXT
);
CREATE INDEX version_number ON version (resource, number);

CREATE TABLE capture (
    resource BIGINT NOT NULL, time BIGINT NOT NULL, status SMALLINT NOT NULL, outcome SMALLINT NOT NULL,
    number INTEGER, head BIGINT, content BIGINT, extra TEXT, PRIMARY KEY (resource, time)
) {clustered};

CREATE TABLE observer (
    uid TEXT NOT NULL, resource BIGINT NOT NULL, version BIGINT, looked BIGINT NOT NULL, PRIMARY KEY (uid, resource)
) {clustered};
"""

Migration = Callable[[Cursor], None]


def _give_up_the_row_of_the_turn(cursor: Cursor) -> None:
    """URLs get a key that the database enforces; writers of older releases, which lock a row of `turn`, fail."""
    cursor.run("DROP TABLE IF EXISTS turn")  # waits for those that have it locked
    cursor.run("DROP INDEX IF EXISTS resource_url")
    cursor.run(cursor.dialect.types["url_index"])


MIGRATIONS: dict[int, Migration] = {1: _give_up_the_row_of_the_turn}
"""Steps from version n to n + 1, by n. An archive is backed up before the first one runs."""


def schema_statements(types: dict[str, str], ddl: str = CATALOG_TABLES) -> list[str]:
    """The DDL with the types of an engine."""
    text = re.sub(r"\{(\w+)\}", lambda match: types[match[1]], ddl)
    return [part.strip() for part in text.split(";") if part.strip()]


def prepare_schema(
    database: Database, backup: Callable[[], None] = lambda: None, begins: Callable[[], None] = lambda: None
) -> None:
    """Creates the tables, or brings older ones up to date.

    A catalogue of a later release raises NewerFormat and is not changed, one that is only half rebuilt raises Damaged.
    `begins` is called before the tables of a new one are created, and may refuse that.
    """
    found, known = _schema_version(database, database.dialect.name), database.dialect.schema
    if found < 0:
        raise Damaged("rebuilding this catalogue was interrupted", REPAIR._replace(tail=" again"))
    if found == known:
        return
    if found > known:
        raise NewerFormat(f"this archive has catalogue version {found}, this release knows {known}; update Letopis")
    if found:
        backup()
    with database.transaction() as cursor:
        # Another process may have done it while we waited for our turn.
        _upgrade_schema(cursor, database, _schema_version(cursor, database.dialect.name), begins)


def _upgrade_schema(cursor: Cursor, database: Database, found: int, begins: Callable[[], None]) -> None:
    if found == database.dialect.schema:
        return
    if not found:
        begins()
        for statement in schema_statements(database.dialect.types):
            cursor.run(statement)
    else:
        for step in range(found, database.dialect.schema):
            MIGRATIONS[step](cursor)
    mark_schema(cursor, whole=True)


def mark_schema(cursor: Cursor, *, whole: bool) -> None:
    """Stores the schema of the catalogue; one that is being filled from packs cannot be opened until it is complete."""
    version = cursor.dialect.schema
    cursor.run(
        "INSERT INTO meta (name, value) VALUES ('schema', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (str(version if whole else -version),),
    )


def _schema_version(reader: RowReader, engine: str) -> int:
    """0 for an empty database, negative for a catalogue that is only half rebuilt."""
    exists = {
        "sqlite": "SELECT 1 FROM sqlite_master WHERE name = 'meta'",
        "postgresql": "SELECT 1 FROM information_schema.tables WHERE table_name = 'meta'",
    }
    if reader.one(exists[engine]) is None:
        return 0
    row = reader.one("SELECT value FROM meta WHERE name = 'schema'")
    try:
        return int(row[0]) if row else 0
    except ValueError:
        raise Damaged(
            f"the catalogue says that its schema is {row[0] if row else ''!r}, which is not a number", REPAIR
        ) from None


TYPED_TABLES = ("resource", "content", "version", "capture")
"""Tables whose values every read relies on."""
_KINDS = {"INT": "integer", "TEXT": "text", "BLOB": "blob"}


def misfits(reader: RowReader, table: str) -> str:
    """The condition that finds the rows of a SQLite table that have a value of another type than its column."""
    tests = []
    for _, column, declared, *_ in reader.all(f"PRAGMA table_info({table})"):
        kinds = [kind for word, kind in _KINDS.items() if word in str(declared)]
        tests += [f"typeof({column}) NOT IN ('{kind}', 'null')" for kind in kinds]
    return " OR ".join(tests)


_JSON = {
    ("watch", "state"): "'{\"changed\": ' || added || '}'",
    ("alert", "facts"): "'{}'",
    ("watch", "spec"): "",
    ("watch_tag", "spec"): "",
    ("saved_search", "spec"): "",
}
"""Columns whose JSON whole lists rely on, and what may stand there instead; nothing may where it says what to do."""


class DamagedJson(NamedTuple):
    """Rows of a table in which a column is no longer JSON: how many, what finds them, what may replace it."""

    table: str
    column: str
    rows: int
    test: str
    instead: str


def damaged_json(reader: RowReader) -> Iterator[DamagedJson]:
    """Damaged JSON in a SQLite file."""
    for (table, column), instead in _JSON.items():
        test = f"NOT json_valid({column})"
        if reader.one(_TABLE_EXISTS["sqlite"], (table,)) is None:
            continue
        if rows := reader.count(f"SELECT count(*) FROM {table} WHERE {test}"):
            yield DamagedJson(table, column, rows, test, instead)


class RowReader(Protocol):
    """A Database, or a Cursor inside a transaction."""

    def one(self, statement: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row, or None."""

    def count(self, statement: str, values: Sequence[Any] = ()) -> int:
        """The one number that a query returns, 0 for none."""

    def all(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows."""


class ResourceRow(NamedTuple):
    """A known URL. `newest` is the id of its newest version, `checked` its last check."""

    id: int
    url: str
    host: int
    versions: int
    newest: int | None
    checked: int | None


class ContentRow(NamedTuple):
    """Bytes by digest, and where they are."""

    id: int
    identity: int
    sha1: bytes
    raw_bytes: int
    stored_bytes: int
    method: str
    pack: int
    place: int
    slot: int


class VersionRow(NamedTuple):
    """A version, which is also the check that found it."""

    id: int
    resource: int
    number: int
    time: int
    content: int
    head: int
    status: int
    meaningful: int | None
    extra: str | None


class CaptureRow(NamedTuple):
    """A check that found no new version. `number` is the version current after it."""

    resource: int
    time: int
    status: int
    outcome: int
    number: int | None
    head: int | None
    content: int | None
    extra: str | None


OUTCOMES = (Outcome.NEW, Outcome.CHANGED, Outcome.UNCHANGED, Outcome.UNAVAILABLE, Outcome.TOO_LARGE, Outcome.REFUSED)
"""Outcomes by the number that is stored; only ever appended to."""

OUTCOME_CODES = {outcome: code for code, outcome in enumerate(OUTCOMES)}

_KNOWN_TABLES: weakref.WeakKeyDictionary[Database, set[str]] = weakref.WeakKeyDictionary()
_TABLE_EXISTS = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE name = ?",
    "postgresql": "SELECT 1 FROM information_schema.tables WHERE table_name = ?",
}
_COLUMN_EXISTS = {
    "sqlite": "SELECT 1 FROM pragma_table_info(?) WHERE name = ?",
    "postgresql": "SELECT 1 FROM information_schema.columns WHERE table_name = ? AND column_name = ?",
}
ADDED_COLUMNS = {
    "job": {"rights": "INTEGER NOT NULL DEFAULT 3", "error": "TEXT NOT NULL DEFAULT ''"},
    "job_query": {"rights": "INTEGER NOT NULL DEFAULT 3"},
}
"""Columns that tables of topics did not have in earlier releases."""


def ensure_tables(database: Database, topic: str, ddl: str) -> None:
    """Creates the tables of a topic (`CREATE TABLE IF NOT EXISTS ...;`); costs nothing once they exist.

    Types are written as in `schema.py`: `{id}`, `{blob}`, `{float}`, `{clustered}`.
    Must not be called inside a transaction of the same database.
    """
    made = _KNOWN_TABLES.setdefault(database, set())
    if topic in made:
        return
    with database.transaction() as cursor:
        for statement in schema_statements(database.dialect.types, ddl):
            cursor.run(statement)
        for table in ADDED_COLUMNS:
            if f" {table} (" in ddl:
                _add_columns(cursor, database.dialect.name, table)
    made.add(topic)


def has_table(database: Database, table: str) -> bool:
    """Whether a table exists, tested again until it does; one of an earlier release gets new columns."""
    made = _KNOWN_TABLES.setdefault(database, set())
    mark = "table " + table
    if mark not in made and database.one(_TABLE_EXISTS[database.dialect.name], (table,)) is not None:
        if _missing_columns(database, database.dialect.name, table):
            with database.transaction() as cursor:
                _add_columns(cursor, database.dialect.name, table)
        made.add(mark)
    return mark in made


def _missing_columns(reader: RowReader, engine: str, table: str) -> list[str]:
    wanted = ADDED_COLUMNS.get(table, {})
    return [name for name in wanted if reader.one(_COLUMN_EXISTS[engine], (table, name)) is None]


def _add_columns(cursor: Cursor, engine: str, table: str) -> None:
    for name in _missing_columns(cursor, engine, table):
        cursor.run(f"ALTER TABLE {table} ADD COLUMN {name} {ADDED_COLUMNS[table][name]}")


def has_no_check(table: str) -> str:
    """The condition that the check of a row is gone, for tables whose rows name a page and a time."""
    return " AND ".join(
        f"NOT EXISTS (SELECT 1 FROM {name} WHERE {name}.resource = {table}.resource AND {name}.time = {table}.time)"
        for name in ("version", "capture")
    )


class TopicTables:
    """Tables that only some archives have: created at their first write; until then all reads return nothing.

    `table` is the one that shows whether they exist; `ddl` creates them all.
    """

    topic = table = ddl = ""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ensure(self) -> None:
        """Creates the tables; must not be called inside a transaction."""
        ensure_tables(self._database, self.topic, self.ddl)

    def _made(self) -> bool:
        return has_table(self._database, self.table)

    def _all(self, question: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._database.all(question, values) if self._made() else []

    def _one(self, question: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        return self._database.one(question, values) if self._made() else None

    def _count(self, question: str, values: Sequence[Any] = ()) -> int:
        return self._database.count(question, values) if self._made() else 0


PARTITION_KEYS = {"capture": "resource", "likeness": "band"}
"""Tables that can be partitioned, and the key of each."""
_MAX_PARTITIONS = 1024
_COUNT_PARTITIONS = "SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass(?)"


def count_partitions(reader: RowReader, table: str) -> int:
    """How many partitions a table has; 0 for one that is not partitioned."""
    return reader.count(_COUNT_PARTITIONS, (table,))


def partition_tables(database: Database, wanted: int) -> list[str]:
    """Splits the existing tables into so many partitions, 1 for none; returns which tables were rewritten.

    One transaction per table, in which all others wait; nothing is done if the number is already right.
    """
    if database.dialect.name != "postgresql":
        raise UsageError("partitions need PostgreSQL; set database.url, or remove database.partitions")
    if not 1 <= wanted <= _MAX_PARTITIONS:
        raise UsageError(f"{wanted} partitions are not possible; set database.partitions to 1 .. {_MAX_PARTITIONS}")
    differing = [
        name for name in PARTITION_KEYS if has_table(database, name) and _has_other_partitions(database, name, wanted)
    ]
    for name in differing:
        with database.transaction() as cursor:
            # Another process may have done it while we waited for our turn.
            if _has_other_partitions(cursor, name, wanted):
                _repartition(cursor, name, wanted)
    return differing


def _has_other_partitions(reader: RowReader, table: str, wanted: int) -> bool:
    return count_partitions(reader, table) != (wanted if wanted > 1 else 0)


def _repartition(cursor: Cursor, table: str, wanted: int) -> None:
    """Rewrites a table in another form, with the same name, columns, keys and rows."""
    cursor.run(f"ALTER TABLE {table} RENAME TO {table}_before")
    how = f" PARTITION BY HASH ({PARTITION_KEYS[table]})" if wanted > 1 else ""
    cursor.run(f"CREATE TABLE {table} (LIKE {table}_before INCLUDING ALL){how}")
    for rest in range(wanted) if wanted > 1 else ():
        cursor.run(
            f"CREATE TABLE {table}_{wanted}_{rest} PARTITION OF {table} "
            f"FOR VALUES WITH (MODULUS {wanted}, REMAINDER {rest})"
        )
    cursor.run(f"INSERT INTO {table} SELECT * FROM {table}_before")
    cursor.run(f"DROP TABLE {table}_before")
