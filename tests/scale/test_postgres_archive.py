"""The same archive with its catalogue in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest
from scripted_site import ScriptedSite

from letopis import Archive, Monitor, Put
from letopis.config import DatabaseSettings, Settings
from letopis.errors import NotReady
from letopis.model import Outcome

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
URL = "http://example.org/page"


@pytest.fixture
def settings(new_database: Callable[[], str]) -> Settings:
    """A database of its own for each test; the packs are files."""
    return Settings(database=DatabaseSettings(url=new_database()))


def test_versions_are_stored_read_and_listed(settings: Settings, tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=settings) as archive:
        list(archive.put_many(Put(URL, b"body %d" % day, START + day * DAY) for day in range(20)))
        assert archive.get(URL).body == b"body 19"
        assert archive.get(URL, at=START + 3.5 * DAY).body == b"body 3"
        assert [version.number for version in archive.versions(URL)] == list(range(20))
        assert archive.stats().versions == 20


def test_long_answers_stay_with_the_server_until_they_are_read(settings: Settings, tmp_path: Path) -> None:
    """A cursor of the server sees itself in `pg_cursors`; one of the client, which takes all rows at once, does not."""
    ask, count = (f"SELECT {what} FROM pg_cursors WHERE name LIKE 'long%'" for what in ("is_holdable", "count(*)"))
    with Archive(tmp_path / "a", settings=settings) as archive:
        database = archive.catalog.database
        assert list(database.stream(f"{ask} AND statement <> ?", ("another",))) == [(True,)]
        with database.snapshot() as snapshot:
            assert list(snapshot.stream(ask)) == [(False,)]
            first, second = (snapshot.stream("SELECT generate_series(1, 5)", size=2) for _ in range(2))
            assert (next(first), next(second), next(first)) == ((1,), (1,), (2,))
            assert snapshot.all(count) == [(2,)]
            assert [*first, *second] == [(3,), (4,), (5,), (2,), (3,), (4,), (5,)]
            assert snapshot.all(count) == [(0,)]


def test_connections_of_threads_end_with_them(settings: Settings, tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=settings) as archive:
        archive.put(URL, b"A", START)
        before = list(archive.catalog.database._opened)
        for _ in range(5):
            asking = Thread(target=archive.get, args=(URL,))
            asking.start()
            asking.join()
        assert archive.catalog.database._opened == before


def test_late_version_takes_its_place(settings: Settings, tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=settings) as archive:
        archive.put(URL, b"A", START)
        archive.put(URL, b"C", START + 2 * DAY)
        assert archive.put(URL, b"B", START + DAY).number == 1
        assert [archive.get(URL, version=number).body for number in range(3)] == [b"A", b"B", b"C"]


def test_compaction_and_verification(settings: Settings, tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=settings) as archive:
        list(archive.put_many(Put(URL, b"line\n" * 200 + b"%d" % day, START + day * DAY) for day in range(12)))
        assert archive.compact().finished
        assert archive.get(URL, version=0).body.endswith(b"\n0")
        assert list(archive.verify()) == []


def test_checks_and_observers(settings: Settings, tmp_path: Path, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", b"<p>one")
    with Archive(tmp_path / "a", settings=settings) as archive, Monitor(archive, uid="me") as monitor:
        assert monitor.get(url).check().outcome is Outcome.NEW
        scripted_site.set("/page", b"<p>two")
        assert monitor.get(url).check(now=True).changed_for_you is True
        assert [check.outcome for check in archive.history(url)] == [Outcome.NEW, Outcome.CHANGED]


def test_database_that_does_not_answer_is_one_sentence(tmp_path: Path) -> None:
    absent = Settings(database=DatabaseSettings(url=f"postgresql://postgres@/x?host={tmp_path}"))
    with pytest.raises(NotReady, match=r"check database\.url"):
        Archive(tmp_path / "a", settings=absent)
