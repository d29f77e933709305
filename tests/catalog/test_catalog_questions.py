"""Questions outside any transaction: whose words their errors are in, and what a cut connection does to them."""

import gc
import os
import sqlite3
from pathlib import Path
from threading import Barrier, Thread

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


def test_the_connections_of_threads_end_with_them(tmp_path):
    database = Database(Sqlite(tmp_path / "catalogue.sqlite"))
    counts = []
    for _ in range(12):
        _ask_at_once(database, threads=4)
        counts.append(_open_below(tmp_path))
        assert database._opened == []
    assert len(set(counts)) == 1, counts
    database.close()
    assert _open_below(tmp_path) == 0


def test_a_thread_goes_on_asking_when_another_has_ended(tmp_path):
    database = Database(Sqlite(tmp_path / "catalogue.sqlite"))
    assert database.one("SELECT 1") == (1,)
    _ask_at_once(database, threads=2)
    assert database.one("SELECT 2") == (2,)
    assert len(database._opened) == 1
    database.close()


def test_a_database_that_nobody_has_any_more_leaves_nothing_open(tmp_path):
    for _ in range(3):
        assert Database(Sqlite(tmp_path / "catalogue.sqlite")).one("SELECT 1") == (1,)
        gc.collect()
        assert _open_below(tmp_path) == 0


def _ask_at_once(database, threads):
    together = Barrier(threads)

    def ask():
        database.one("SELECT count(*) FROM sqlite_master")
        together.wait()

    asking = [Thread(target=ask) for _ in range(threads)]
    for one in asking:
        one.start()
    for one in asking:
        one.join()


def _open_below(folder):
    names = (os.readlink(descriptor) for descriptor in Path("/proc/self/fd").iterdir() if descriptor.is_symlink())
    return sum(name.startswith(str(folder)) for name in names)
