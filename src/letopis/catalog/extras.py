"""Tables that only some archives need, made at their first write.

Every table costs pages in every small archive, so those of accounts, jobs and
the like are not part of the schema proper. A topic that was never written to
has no tables, and reading it answers empty.
"""

from __future__ import annotations

import re
import weakref

from letopis.catalog.database import Database

_MADE: weakref.WeakKeyDictionary[Database, set[str]] = weakref.WeakKeyDictionary()
_EXISTS = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE name = ?",
    "postgresql": "SELECT 1 FROM information_schema.tables WHERE table_name = ?",
}


def ensure(database: Database, topic: str, ddl: str) -> None:
    """Makes the tables of a topic (`CREATE TABLE IF NOT EXISTS ...;`); costs nothing once they are there.

    Types are written as in `schema.py`: `{id}`, `{blob}`, `{float}`, `{clustered}`.
    Must not be called inside a transaction of the same database.
    """
    made = _MADE.setdefault(database, set())
    if topic in made:
        return
    text = re.sub(r"\{(\w+)\}", lambda match: database.dialect.types[match[1]], ddl)
    with database.transaction() as cursor:
        for statement in filter(None, map(str.strip, text.split(";"))):
            cursor.run(statement)
    made.add(topic)


def present(database: Database, table: str) -> bool:
    """Whether a table has been made; asked again as long as it has not."""
    made = _MADE.setdefault(database, set())
    mark = "table " + table
    if mark not in made and database.one(_EXISTS[database.dialect.name], (table,)) is not None:
        made.add(mark)
    return mark in made
