"""Questions outside any transaction: whose words their errors are in, and what a cut connection does to them."""

import sqlite3

import pytest

from letopis.catalog import Database, Sqlite
from letopis.errors import Damaged


class Unsteady(Sqlite):
    """SQLite whose connections can be cut, as those to a server are."""

    def lost(self, connection):
        try:
            connection.cursor()
        except sqlite3.ProgrammingError:
            return True
        return False


def test_errors_of_the_engine_are_told_in_our_words(tmp_path):
    database = Database(Sqlite(tmp_path / "catalogue.sqlite"))
    for ask in (database.one, database.all):
        with pytest.raises(Damaged, match=r"Archive\.repair") as told:
            ask("SELECT id FROM nowhere")
        assert isinstance(told.value.__cause__, sqlite3.OperationalError)
    assert database.one("SELECT 1") == (1,)
    database.close()


def test_a_question_is_asked_again_when_its_connection_was_cut(tmp_path):
    database = Database(Unsteady(tmp_path / "catalogue.sqlite"))
    assert database.one("SELECT ?", (7,)) == (7,)
    for connection in list(database._opened):
        connection.close()
    assert database.one("SELECT ?", (8,)) == (8,)
    assert database.all("SELECT 1 UNION SELECT 2 ORDER BY 1") == [(1,), (2,)]
    assert len(database._opened) == 1
    database.close()
