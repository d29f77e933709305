"""Several writers of one archive in PostgreSQL and S3: nobody needs a lock file, nobody loses anything."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from services import ObjectServer

from letopis import Archive, Put
from letopis.archive import RecordedCapture, compaction
from letopis.archive.compaction import kept_versions
from letopis.archive.records import capture_of_put
from letopis.catalog import Cursor
from letopis.catalog.leases import UPKEEP, PackClaims
from letopis.config import Settings, StoreSettings
from letopis.errors import Busy, NotReady
from letopis.store.bucket import Bucket

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
URL = "http://example.org/page"


@contextmanager
def two(settings: Settings, folder: Path) -> Iterator[tuple[Archive, Archive]]:
    """The same archive as two machines see it."""
    with Archive(folder / "a", settings=settings) as one, Archive(folder / "b", settings=settings) as other:
        yield one, other


def kill_connections(settings: Settings) -> None:
    with psycopg.connect(settings.database.url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid != pg_backend_pid()"
        )


def test_writers_at_the_same_time_keep_everything(scaled_settings: Settings, tmp_path: Path) -> None:
    with two(scaled_settings, tmp_path) as both:

        def write(archive: Archive, name: str) -> None:
            for day in range(10):
                archive.put(f"http://{name}.example/", b"%d" % day, START + day * DAY)
                archive.put("http://both.example/", f"{name} {day}".encode())

        threads = [threading.Thread(target=write, args=pair) for pair in zip(both, ("one", "other"), strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [len(both[0].versions(f"http://{name}.example/")) for name in ("one", "other", "both")] == [10, 10, 20]
        assert list(both[1].verify()) == []


def test_what_one_has_written_is_read_by_the_other(scaled_settings: Settings, tmp_path: Path) -> None:
    with two(scaled_settings, tmp_path) as (one, other):
        for day in range(5):
            one.put(URL, b"body %d" % day, START + day * DAY)
            assert other.get(URL).body == b"body %d" % day


def test_nobody_lists_more_names_than_those_of_the_packs_that_are_read(
    scaled_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        with Archive(tmp_path / name, settings=scaled_settings) as archive:
            archive.put(f"http://{name}.example/", b"one " + name.encode(), START)
            archive.put(f"http://{name}.example/", b"two " + name.encode(), START + DAY)
    listed: list[str] = []

    def listing(bucket: Bucket, prefix: str = "", after: str = "", sizes: Any = Bucket.sizes) -> dict[str, int]:
        found: dict[str, int] = sizes(bucket, prefix, after)
        listed.extend(found)
        return found

    monkeypatch.setattr(Bucket, "sizes", listing)
    with Archive(tmp_path / "d", settings=scaled_settings) as archive:
        archive.put("http://d.example/", b"three", START)
        assert listed == []
        assert archive.get("http://b.example/").body == b"two b"
        assert {name.partition("/")[0] for name in listed} == {"00000002.log"}


def test_compaction_leaves_the_log_alone_that_another_writes(scaled_settings: Settings, tmp_path: Path) -> None:
    with two(scaled_settings, tmp_path) as (one, other):
        list(one.put_many(Put(URL, b"line\n" * 100 + b"%d" % day, START + day * DAY) for day in range(8)))
        assert other.compact().finished
        one.put(URL, b"next", START + 20 * DAY)
        assert [other.get(URL, version=number).body[-1:] for number in (0, 7, 8)] == [b"0", b"7", b"t"]
        assert list(other.verify()) == []


def test_a_version_that_is_recorded_while_retention_is_applied_is_kept(
    scaled_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(scaled_settings, store=replace(scaled_settings.store, keep_versions=2))
    with two(settings, tmp_path) as (one, other):
        for day in range(4):
            one.put(URL, b"body %d" % day, START + day * DAY)
        asked: list[int] = []

        def while_another_records(times: Sequence[int], rules: StoreSettings, now: int) -> list[bool]:
            asked.append(len(times))
            if len(asked) == 1:
                other.put(URL, b"meanwhile", START + 9 * DAY)
            return kept_versions(times, rules, now)

        monkeypatch.setattr(compaction, "kept_versions", while_another_records)
        assert one.compact().dropped_versions == 3
        assert [other.get(URL, version=number).body for number in (0, 1)] == [b"body 3", b"meanwhile"]
        assert list(other.verify()) == []


def test_a_writer_that_comes_back_after_its_claim_was_withdrawn_begins_a_new_log(
    scaled_settings: Settings, tmp_path: Path
) -> None:
    with two(scaled_settings, tmp_path) as (paused, other):
        list(paused.put_many(Put(URL, b"line\n" * 100 + b"%d" % day, START + day * DAY) for day in range(8)))
        with other.catalog.transaction() as cursor:
            cursor.run("UPDATE log_claim SET until = 0")
        report = other.compact()
        assert report.bytes_after < report.bytes_before
        paused.put(URL, b"after the pause", START + 20 * DAY)
        assert other.get(URL).body == b"after the pause"
        assert other.get(URL, version=3).body.endswith(b"\n3")
        assert list(other.verify()) == []


def test_a_transaction_that_was_cut_leaves_nothing(scaled_settings: Settings, tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=scaled_settings) as archive:
        archive.put(URL, b"one", START)

        def cut(cursor: Cursor, done: list[RecordedCapture]) -> None:
            kill_connections(scaled_settings)

        with pytest.raises(NotReady, match=r"database\.url"):
            archive.commit([capture_of_put(Put(URL, b"lost"), URL, START + DAY)], cut)
        assert len(archive.versions(URL)) == 1
        assert archive.put(URL, b"two", START + DAY).number == 1
        assert list(archive.verify()) == []


def test_an_object_store_that_is_away_is_one_sentence_and_nothing_is_recorded(
    scaled_settings: Settings, object_server: ObjectServer, tmp_path: Path
) -> None:
    with Archive(tmp_path / "a", settings=scaled_settings) as archive:
        archive.put(URL, b"one", START)
        object_server.stop()
        try:
            with pytest.raises(NotReady, match=r"store\.endpoint"):
                archive.put(URL, b"two", START + DAY)
        finally:
            object_server.start()
        assert len(archive.versions(URL)) == 1
        assert archive.put(URL, b"two", START + DAY).number == 1
        assert list(archive.verify()) == []


def test_upkeep_under_an_old_fence_changes_nothing(scaled_settings: Settings, tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=scaled_settings) as archive:
        claims = PackClaims(archive.catalog.database)
        paused = claims.take(UPKEEP, now=0, until=10)
        assert claims.take(UPKEEP, now=5, until=15) is None
        assert claims.take(UPKEEP, now=10, until=20) is not None
        with pytest.raises(Busy, match="went to another process"), archive.catalog.transaction() as cursor:
            claims.check(cursor, UPKEEP, paused or 0, 30)


def test_two_processes_may_make_the_same_archive_at_once(scaled_settings: Settings, tmp_path: Path) -> None:
    failed: list[BaseException] = []

    def make(name: str) -> None:
        try:
            Archive(tmp_path / name, settings=scaled_settings).close()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=make, args=(name,)) for name in ("a", "b", "c", "d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
