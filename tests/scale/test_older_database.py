"""An older copy of the database beside newer packs in the object store: nothing that only the packs know is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from letopis.archive import Archive
from letopis.config import ArchiveSettings, DatabaseSettings, Settings
from letopis.model import Put

START = datetime(2026, 1, 1, tzinfo=UTC)


def puts(first: int, count: int) -> list[Put]:
    numbers = range(first, first + count)
    return [Put(f"http://h.example/{n % 4}", b"<p>text %d" % n, START + n * timedelta(hours=1)) for n in numbers]


def copied(database: str, new_database: Callable[[], str]) -> str:
    """Another database with the same rows, as a backup of the server gives it back."""
    target = new_database()
    name, source = (url.partition("?")[0].rpartition("/")[2] for url in (target, database))
    with psycopg.connect(target.replace(f"/{name}?", "/postgres?"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name}")
        # A template may have no other sessions; writers connect again.
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (source,))
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {source}")
    return target


@pytest.mark.parametrize("first", ["compact", "put", "read"])
def test_an_older_database_takes_in_what_its_packs_know(
    scaled_settings: Settings, tmp_path: Path, new_database: Callable[[], str], first: str
) -> None:
    settings = replace(scaled_settings, archive=ArchiveSettings(path=str(tmp_path / "machine")))
    everything = puts(0, 10)
    with Archive.open(settings) as archive:
        list(archive.put_many(everything[:4]))
        older = copied(settings.database.url, new_database)
        # The same writer goes on in its log; another one begins a log of its own.
        list(archive.put_many(everything[4:6]))
    with Archive.open(settings) as archive:
        list(archive.put_many(everything[6:]))
        archive.compact()
    restored = replace(settings, database=DatabaseSettings(url=older))
    with psycopg.connect(older, autocommit=True) as connection:
        connection.execute("UPDATE log_claim SET until = 0")  # ten minutes later
    with Archive.open(restored) as archive:
        if first == "put":
            archive.put("http://h.example/new", b"new", START + timedelta(days=9))
        elif first == "compact":
            archive.compact()
    with Archive.open(restored) as archive:
        archive.compact()
        assert [archive.get(put.url, at=put.at).body for put in everything] == [put.body for put in everything]
        assert list(archive.verify()) == []


@pytest.mark.parametrize("first", ["compact", "put", "repair"])
def test_what_follows_in_a_log_that_an_older_database_knows_the_beginning_of_is_taken_in(
    scaled_settings: Settings, tmp_path: Path, new_database: Callable[[], str], first: str
) -> None:
    settings = replace(scaled_settings, archive=ArchiveSettings(path=str(tmp_path / "machine")))
    everything = puts(0, 8)
    with Archive.open(settings) as one, Archive.open(settings) as other:
        list(one.put_many(everything[:2]))
        list(other.put_many(everything[2:4]))
        older = copied(settings.database.url, new_database)
        list(one.put_many(everything[4:6]))  # each in the log that it has
        list(other.put_many(everything[6:]))
    restored = replace(settings, database=DatabaseSettings(url=older))
    with psycopg.connect(older, autocommit=True) as connection:
        connection.execute("UPDATE log_claim SET until = 0")
    if first == "repair":
        assert Archive.repair(restored).lost == ()
    with Archive.open(restored) as archive:
        if first == "put":
            archive.put("http://h.example/new", b"new", START + timedelta(days=9))
        archive.compact()
        assert [archive.get(put.url, at=put.at).body for put in everything] == [put.body for put in everything]
        assert list(archive.verify()) == []


def test_a_log_that_had_its_number_when_the_copy_was_made_and_nothing_else_is_taken_in(
    scaled_settings: Settings, tmp_path: Path, new_database: Callable[[], str]
) -> None:
    settings = replace(scaled_settings, archive=ArchiveSettings(path=str(tmp_path / "machine")))
    everything = puts(0, 6)
    with Archive.open(settings) as archive:
        list(archive.put_many(everything[:4]))
        older = copied(settings.database.url, new_database)
    with psycopg.connect(older, autocommit=True) as connection:
        connection.execute("UPDATE pack_number SET last = last + 1")  # given out for good before anything is written
        connection.execute("DELETE FROM log_claim")
    with Archive.open(settings) as archive:
        list(archive.put_many(everything[4:]))
    restored = replace(settings, database=DatabaseSettings(url=older))
    for _ in range(2):
        with Archive.open(restored) as archive:
            archive.compact()
            assert [archive.get(put.url, at=put.at).body for put in everything] == [put.body for put in everything]
            assert list(archive.verify()) == []


def test_versions_that_the_database_does_not_know_are_listed_and_merged(
    scaled_settings: Settings, tmp_path: Path, new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(scaled_settings, archive=ArchiveSettings(path=str(tmp_path / "machine")))
    with Archive.open(settings) as archive:
        list(archive.put_many(puts(0, 4)))
        older = copied(settings.database.url, new_database)
    with Archive.open(settings) as archive:
        list(archive.put_many(puts(4, 2)))
    restored = replace(settings, database=DatabaseSettings(url=older))
    with psycopg.connect(older, autocommit=True) as connection:
        connection.execute("UPDATE log_claim SET until = 0")
    with monkeypatch.context() as patch:
        patch.setattr("letopis.archive.shared_gate.SharedGate.catch_up", lambda gate, store, most=0: None)
        with Archive.open(restored) as archive:
            assert len([problem for problem in archive.verify() if "not in the catalogue" in str(problem)]) == 2
    report = Archive.repair(restored)
    assert (report.rebuilt, report.lost) == (False, ())
    with Archive.open(restored) as archive:
        assert archive.stats().versions == 6
        assert list(archive.verify()) == []
