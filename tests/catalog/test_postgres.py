"""Statements as PostgreSQL gets them: many rows as one statement, long lists of values as one value."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from letopis.archive import Archive
from letopis.catalog import Database, Sqlite
from letopis.config import Settings

ODD = ["", "NULL", "null", 'a "quoted" word', "back\\slash", "{braces, commas}", "two\nlines", "\N{SNOWMAN}", " ", None]
ROWS = [
    (number, text, bytes([0, 92, 34, number]) if number % 2 else b"", None if number % 3 else -(2**63), number / 7)
    for number, text in enumerate(ODD)
]
TYPES = ("integer", "text", "bytea", "bigint", "float8")
MADE = "CREATE TABLE {0} (id INTEGER PRIMARY KEY, word TEXT, bytes {1}, big BIGINT, share {2})"


@pytest.fixture(params=["postgresql", "sqlite"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A table of each engine: rows of both become the same."""
    if request.param == "postgresql":
        settings: Settings = request.getfixturevalue("scaled_settings")
        with Archive(tmp_path / "a", settings=settings) as archive:
            yield archive.catalog.database
    else:
        alone = Database(Sqlite(tmp_path / "catalogue.sqlite"))
        yield alone
        alone.close()


@pytest.fixture
def filled(database: Database) -> Database:
    with database.transaction() as cursor:
        types = database.dialect.types
        cursor.run(MADE.format("sample", types["blob"], types["float"]))
        insert = "INSERT INTO sample (id, word, bytes, big, share) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        cursor.run_many(insert, ROWS, TYPES)
        cursor.run_many(insert, ROWS[:2], TYPES)
        assert cursor.run_many(insert, [], TYPES) == 0
    return database


def stored(database: Database) -> list[tuple[object, ...]]:
    rows = database.all("SELECT id, word, bytes, big, share FROM sample ORDER BY id")
    return [(number, word, bytes(data), big, share) for number, word, data, big, share in rows]


def test_rows_that_are_added_at_once_are_what_they_were(filled: Database) -> None:
    assert stored(filled) == ROWS


def test_rows_that_are_changed_at_once_change_where_they_are_meant(filled: Database) -> None:
    changes = [(None, text, number) for number, text in enumerate(reversed(ODD)) if number > 1]
    with filled.transaction() as cursor:
        done = cursor.run_many(
            "UPDATE sample SET big = ?, word = coalesce(?, word) WHERE id = ? AND bytes IS NOT NULL",
            changes,
            ("bigint", "text", "integer"),
        )
    assert done == len(changes)
    assert stored(filled)[0] == ROWS[0]
    assert [row[1] for row in stored(filled)[2:]] == [text for _, text, _ in changes]
    assert [row[3] for row in stored(filled)[2:]] == [None] * len(changes)


def test_long_lists_of_values_find_what_short_ones_find(filled: Database) -> None:
    words = [word for word in ODD if word is not None]
    marks = ", ".join("?" * len(words))
    found = filled.all(f"SELECT id FROM sample WHERE id > ? AND word IN ({marks}) AND share < ?", (2, *words, 0.9))
    assert sorted(row[0] for row in found) == [3, 4, 5, 6]
    data = [row[2] for row in ROWS]
    both = f"SELECT count(*) FROM sample WHERE bytes IN ({', '.join('?' * len(data))}) AND id IN (?, ?, ?, ?, ?)"
    assert filled.count(both, (*data, 1, 2, 3, 4, 99)) == 4
    assert filled.count("SELECT count(*) FROM sample WHERE id NOT IN (?, ?, ?, ?)", (0, 1, 2, 3)) == len(ROWS) - 4
