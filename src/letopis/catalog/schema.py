"""The tables of the catalogue, their meaning, and the version they carry.

Times are whole milliseconds since 1970. A row of `version` is at the same
time the check that found it; `capture` holds all other checks. Numbers of
versions follow their times without gaps, from 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from letopis.catalog.database import Cursor, Database
from letopis.catalog.rows import Reader
from letopis.errors import Damaged, NewerFormat

SCHEMA_VERSION = 1

TABLES = """
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
CREATE INDEX resource_url ON resource (url_key);
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
MIGRATIONS: dict[int, Migration] = {}
"""Steps from version n to n + 1, by n. An archive is backed up before the first one runs."""


def statements(types: dict[str, str]) -> list[str]:
    """The DDL in an engine's own types."""
    text = re.sub(r"\{(\w+)\}", lambda match: types[match[1]], TABLES)
    return [part.strip() for part in text.split(";") if part.strip()]


def prepare(
    database: Database, backup: Callable[[], None] = lambda: None, begins: Callable[[], None] = lambda: None
) -> None:
    """Creates the tables, or brings older ones up to date.

    A catalogue of a later release raises NewerFormat and is left alone, one
    that is only half rebuilt raises Damaged. `begins` is called before the
    tables of a new one are made, and may refuse that.
    """
    found = _version(database, database.dialect.name)
    if found < 0:
        raise Damaged("building this catalogue anew was interrupted; run 'letopis verify --repair' again")
    if found == SCHEMA_VERSION:
        return
    if found > SCHEMA_VERSION:
        raise NewerFormat(
            f"this archive has catalogue version {found}, this release knows {SCHEMA_VERSION}; update Letopis"
        )
    if found:
        backup()
    with database.transaction() as cursor:
        # Another process may have done it while we waited for our turn.
        _upgrade(cursor, database, _version(cursor, database.dialect.name), begins)


def _upgrade(cursor: Cursor, database: Database, found: int, begins: Callable[[], None]) -> None:
    if found == SCHEMA_VERSION:
        return
    if not found:
        begins()
        for statement in statements(database.dialect.types):
            cursor.run(statement)
    else:
        for step in range(found, SCHEMA_VERSION):
            MIGRATIONS[step](cursor)
    mark(cursor, whole=True)


def mark(cursor: Cursor, *, whole: bool) -> None:
    """Says which schema the catalogue has; one that is being filled from packs opens for nobody until it is whole."""
    cursor.run(
        "INSERT INTO meta (name, value) VALUES ('schema', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (str(SCHEMA_VERSION if whole else -SCHEMA_VERSION),),
    )


def _version(reader: Reader, engine: str) -> int:
    """0 for an empty database, negative for a catalogue that is only half rebuilt."""
    exists = {
        "sqlite": "SELECT 1 FROM sqlite_master WHERE name = 'meta'",
        "postgresql": "SELECT 1 FROM information_schema.tables WHERE table_name = 'meta'",
    }
    if reader.one(exists[engine]) is None:
        return 0
    row = reader.one("SELECT value FROM meta WHERE name = 'schema'")
    return int(row[0]) if row else 0
