"""Tables that PostgreSQL keeps in partitions, by the hash of the one key that they are asked by.

Statements stay as they are: the engine finds the partition. It is the
owner's choice (`database.partitions`), and engines that know no partitions
do without; docs/decisions/0009-partitions.md tells which tables and why.
"""

from __future__ import annotations

from letopis.catalog.database import Cursor, Database
from letopis.catalog.extras import present
from letopis.catalog.rows import Reader
from letopis.errors import UsageError

KEYS = {"capture": "resource", "likeness": "band"}
"""Tables that can be partitioned, and the key of each."""
_MOST = 1024
_COUNT = "SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass(?)"


def partitions_of(reader: Reader, table: str) -> int:
    """In how many partitions a table lies; 0 for one that lies in one piece."""
    row = reader.one(_COUNT, (table,))
    return int(row[0]) if row else 0


def partition(database: Database, wanted: int) -> list[str]:
    """Spreads the tables that are there over so many partitions, 1 for none; answers which tables were written anew.

    One transaction a table, in which everybody else waits; nothing is done
    where the number is right already.
    """
    if database.dialect.name != "postgresql":
        raise UsageError("partitions need PostgreSQL; set database.url, or leave database.partitions alone")
    if not 1 <= wanted <= _MOST:
        raise UsageError(f"{wanted} partitions are not possible; set database.partitions to 1 .. {_MOST}")
    differing = [name for name in KEYS if present(database, name) and _differs(database, name, wanted)]
    for name in differing:
        with database.transaction() as cursor:
            # Another process may have done it while we waited for our turn.
            if _differs(cursor, name, wanted):
                _spread(cursor, name, wanted)
    return differing


def _differs(reader: Reader, table: str, wanted: int) -> bool:
    return partitions_of(reader, table) != (wanted if wanted > 1 else 0)


def _spread(cursor: Cursor, table: str, wanted: int) -> None:
    """The table under its name in another form, with the same columns, keys and rows."""
    cursor.run(f"ALTER TABLE {table} RENAME TO {table}_before")
    how = f" PARTITION BY HASH ({KEYS[table]})" if wanted > 1 else ""
    cursor.run(f"CREATE TABLE {table} (LIKE {table}_before INCLUDING ALL){how}")
    for rest in range(wanted) if wanted > 1 else ():
        cursor.run(
            f"CREATE TABLE {table}_{wanted}_{rest} PARTITION OF {table} "
            f"FOR VALUES WITH (MODULUS {wanted}, REMAINDER {rest})"
        )
    cursor.run(f"INSERT INTO {table} SELECT * FROM {table}_before")
    cursor.run(f"DROP TABLE {table}_before")
