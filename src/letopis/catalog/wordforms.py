"""What people have settled about words: base forms found by endings, and words locked against that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from letopis.catalog.database import Database
from letopis.catalog.extras import ensure, present

_TABLE = "wordform"
TABLES = """
CREATE TABLE IF NOT EXISTS wordform (
    form TEXT PRIMARY KEY, base TEXT NOT NULL, locked SMALLINT NOT NULL DEFAULT 0
) {clustered};
"""


class WordRow(NamedTuple):
    """A word with its base form. A locked word is its own base, whatever rules and dictionaries say."""

    form: str
    base: str
    locked: bool


def word_rows(database: Database) -> list[WordRow]:
    """All settled words, in their order."""
    if not present(database, _TABLE):
        return []
    rows = database.all("SELECT form, base, locked FROM wordform ORDER BY form")
    return [WordRow(str(row[0]), str(row[1]), bool(row[2])) for row in rows]


def settle_bases(database: Database, pairs: Iterable[tuple[str, str]]) -> None:
    """Gives words their base forms; those that are locked or settled keep what they have."""
    ensure(database, _TABLE, TABLES)
    with database.transaction() as cursor:
        cursor.run_many("INSERT INTO wordform (form, base) VALUES (?, ?) ON CONFLICT DO NOTHING", pairs)


def lock_word(database: Database, form: str) -> None:
    """From now on the word is its own base."""
    ensure(database, _TABLE, TABLES)
    with database.transaction() as cursor:
        cursor.run(
            "INSERT INTO wordform (form, base, locked) VALUES (?, ?, 1) "
            "ON CONFLICT (form) DO UPDATE SET base = excluded.base, locked = 1",
            (form, form),
        )


def release_word(database: Database, form: str) -> None:
    """Forgets what was settled about a word."""
    if present(database, _TABLE):
        with database.transaction() as cursor:
            cursor.run("DELETE FROM wordform WHERE form = ?", (form,))
