"""Tables in partitions: the same rows and answers, and questions that look into one of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from services import variables

from letopis.archive import Archive
from letopis.archive.backups import move_archive
from letopis.catalog.index_state import NearDuplicateHashes
from letopis.catalog.schema import count_partitions, partition_tables
from letopis.cli.main import main
from letopis.config import ArchiveSettings, Settings
from letopis.errors import UsageError
from letopis.index.near_duplicates import duplicates_of_page
from letopis.model import Check, Put

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
URLS = [f"http://h{number % 3}.example/{number}" for number in range(12)]
WORDS = " ".join(f"word{place} of many" for place in range(80))


@pytest.fixture
def settings(scaled_settings: Settings, tmp_path: Path) -> Settings:
    return replace(scaled_settings, archive=ArchiveSettings(path=str(tmp_path / "machine")))


def fill(archive: Archive, first: int, last: int) -> None:
    """A look a day at every page, which changes every third day."""
    moments = [NOON + timedelta(days=day) for day in range(first, last)]
    pages = (Put(url, f"<p>{url} {moment.day // 3}".encode(), moment) for moment in moments for url in URLS)
    list(archive.put_many(pages))


def histories(archive: Archive) -> dict[str, list[Check]]:
    return {url: archive.history(url) for url in URLS}


def partitions(archive: Archive, table: str = "capture") -> int:
    return count_partitions(archive.catalog.database, table)


def test_checks_are_the_same_whatever_their_tables_lie_in(settings: Settings) -> None:
    with Archive.open(settings) as archive:
        fill(archive, 0, 8)
        before = histories(archive)
        assert sum(map(len, before.values())) == 96
        for wanted in (4, 8, 1):
            assert partition_tables(archive.catalog.database, wanted) == ["capture"]
            assert partition_tables(archive.catalog.database, wanted) == [], "the number is right already"
            assert partitions(archive) == (wanted if wanted > 1 else 0)
            assert histories(archive) == before


def test_an_archive_works_on_with_partitions(settings: Settings, tmp_path: Path) -> None:
    with Archive.open(settings) as archive, Archive(tmp_path / "plain") as plain:
        fill(archive, 0, 4)
        partition_tables(archive.catalog.database, 4)
        fill(archive, 4, 9)
        archive.compact()
        fill(plain, 0, 9)
        assert histories(archive) == histories(plain)
        assert list(archive.verify()) == []
        with pytest.raises(Exception, match="duplicate key"), archive.catalog.transaction() as cursor:
            cursor.run("INSERT INTO capture SELECT * FROM capture LIMIT 1")


def test_the_checks_of_a_page_are_looked_for_in_one_partition(settings: Settings) -> None:
    with Archive.open(settings) as archive:
        fill(archive, 0, 8)
        partition_tables(archive.catalog.database, 8)
        database = archive.catalog.database
        plan = [row[0] for row in database.all("EXPLAIN SELECT * FROM capture WHERE resource = 3 ORDER BY time")]
        assert len({word for line in plan for word in line.split() if word.startswith("capture_8_")}) <= 2
        assert sum("capture_8_" in line for line in plan) >= 1
        filled = [database.one(f"SELECT count(*) FROM capture_8_{rest}") for rest in range(8)]
        assert sum(bool(row and row[0]) for row in filled) > 3, "pages are spread"


def test_init_makes_the_partitions_that_the_settings_name(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name, value in variables(settings.database.url, settings.store).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LETOPIS_DATABASE_PARTITIONS", "4")
    assert main(["init", "--archive", str(tmp_path / "machine")]) == 0
    assert "capture repartitioned" in capsys.readouterr().out
    with Archive.open(settings) as archive:
        assert partitions(archive) == 4
    monkeypatch.setenv("LETOPIS_DATABASE_PARTITIONS", "0")
    assert main(["init", "--archive", str(tmp_path / "machine")]) == 2
    assert "1 .. 1024" in capsys.readouterr().err


def test_partitions_need_postgresql(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive, pytest.raises(UsageError, match=r"database\.url"):
        partition_tables(archive.catalog.database, 4)


def test_an_archive_with_partitions_moves_like_any_other(settings: Settings, tmp_path: Path) -> None:
    with Archive.open(settings) as archive, Archive(tmp_path / "files") as files:
        partition_tables(archive.catalog.database, 4)
        fill(archive, 0, 6)
        move_archive(archive, files)
        assert histories(files) == histories(archive)


def page(number: int) -> bytes:
    own = f"<p>The end of number {number}" if number % 2 else ""
    return f"<title>{number // 4}</title><p>{WORDS} and {number // 4} {'more' * (number // 4)} {own}".encode()


def test_hashes_of_pages_find_what_reading_all_of_them_finds(settings: Settings, tmp_path: Path) -> None:
    with Archive.open(settings) as archive, Archive(tmp_path / "plain") as plain:
        partition_tables(archive.catalog.database, 4)
        for one in (archive, plain):
            list(one.put_many(Put(url, page(number), NOON) for number, url in enumerate(URLS)))
        found = duplicates_of_page(archive, URLS[4], 0.8)
        assert len(found) >= 3
        assert found == duplicates_of_page(plain, URLS[4], 0.8)
        assert partitions(archive, "likeness") == 4, "as many as the others have"


def test_hashes_follow_the_log_of_versions(settings: Settings) -> None:
    with Archive.open(settings) as archive:
        list(archive.put_many(Put(url, page(4 * number), NOON) for number, url in enumerate(URLS[:4])))
        likeness = NearDuplicateHashes(archive.catalog.database)
        assert likeness.last() == 0
        assert duplicates_of_page(archive, URLS[0], 0.99) == []
        last = likeness.last()
        assert last > 0
        archive.put(URLS[3], page(0), NOON + timedelta(days=1))
        assert [(pair.other, pair.exact) for pair in duplicates_of_page(archive, URLS[0], 0.99)] == [(URLS[3], True)]
        assert likeness.last() > last
        archive.put(URLS[3], b"<p>nothing alike any more, and not much of it", NOON + timedelta(days=2))
        assert duplicates_of_page(archive, URLS[0], 0.99) == [], "a hash that it had once makes it no duplicate"
