"""Backups of archives in PostgreSQL and an object store, backups that lie in one, and what is restored from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from services import ObjectServer, variables

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.archive.backups import back_up, restore
from letopis.catalog import table_copy
from letopis.cli.main import main
from letopis.config import ArchiveSettings, DatabaseSettings, Settings
from letopis.errors import Damaged, NotFound
from letopis.model import Put

START = datetime(2026, 1, 1, tzinfo=UTC)


def puts(first: int, count: int) -> list[Put]:
    numbers = range(first, first + count)
    return [Put(f"http://h.example/{n % 3}", b"<p>page %d" % n * 30, START + n * timedelta(hours=1)) for n in numbers]


def assert_whole(settings: Settings, expected: list[Put]) -> None:
    with Archive.open(settings) as archive:
        assert [archive.get(put.url, at=put.at).body for put in expected] == [put.body for put in expected]
        assert accounts_of(archive).sign_in("ada", "a long password") is not None
        archive.put("http://h.example/0", b"goes on", START + timedelta(days=9))
        archive.compact()
        assert list(archive.verify()) == []
        assert archive.get("http://h.example/0").body == b"goes on"


@pytest.fixture
def shared(scaled_settings: Settings, tmp_path: Path) -> Settings:
    """An archive in a database and a bucket, with an account."""
    settings = replace(scaled_settings, archive=ArchiveSettings(path=str(tmp_path / "machine")))
    with Archive.open(settings) as archive:
        list(archive.put_many(puts(0, 6)))
        archive.compact()
        accounts_of(archive).add("ada", "owner", "a long password", 1)
    return settings


@pytest.mark.parametrize("where", ["folder", "bucket"])
def test_an_archive_of_many_machines_is_backed_up_and_restored_anywhere(
    shared: Settings, tmp_path: Path, new_database: Callable[[], str], object_server: ObjectServer, where: str
) -> None:
    place = str(tmp_path / "backup") if where == "folder" else object_server.settings().url
    with Archive.open(shared) as archive, Archive.open(shared) as other:
        assert back_up(archive, place).versions == 6
        list(other.put_many(puts(6, 3)))
        second = back_up(archive, place)
        assert (second.serial, second.versions, second.packs_added) == (2, 9, 1)
        other.put("http://h.example/later", b"not in it", START + timedelta(days=5))
    files = replace(shared, archive=ArchiveSettings(path=str(tmp_path / "files")), database=DatabaseSettings())
    files = replace(files, store=replace(shared.store, url=""))
    machines = replace(
        shared,
        archive=ArchiveSettings(path=str(tmp_path / "another")),
        database=DatabaseSettings(url=new_database()),
        store=object_server.settings(),
    )
    for target in (files, machines):
        assert restore(place, target).versions == 9
        assert_whole(target, puts(0, 9))


def test_agents_write_while_a_backup_copies_the_catalogue_of_one_moment(
    shared: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = table_copy.copy_table
    later = puts(6, 9)
    with Archive.open(shared) as archive, Archive.open(shared) as agent:

        def beside(*given: Any) -> int:
            if later:
                agent.put(later[0].url, later[0].body, later.pop(0).at)  # waits for whoever has the turn
            return copy(*given)

        monkeypatch.setattr(table_copy, "copy_table", beside)
        assert back_up(archive, tmp_path / "backup").versions == 6
        assert later == []
        assert back_up(archive, tmp_path / "backup").versions == 15
    files = replace(shared, archive=ArchiveSettings(path=str(tmp_path / "files")), database=DatabaseSettings())
    files = replace(files, store=replace(shared.store, url=""))
    assert restore(tmp_path / "backup", files).versions == 15
    assert_whole(files, puts(0, 15))


def test_a_backup_keeps_its_right_while_one_step_takes_long(
    shared: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = table_copy.copy_table

    def until(archive: Archive) -> int:
        [row] = archive.catalog.database.all("SELECT until FROM exclusive WHERE name = 'upkeep'")
        return int(row[0])

    with Archive.open(shared) as archive, Archive.open(shared) as agent:

        def slowly(*given: Any) -> int:
            begun = until(agent)
            while until(agent) == begun:  # as long as nobody renews it
                pass
            return copy(*given)

        monkeypatch.setattr(table_copy, "copy_table", slowly)
        monkeypatch.setattr("letopis.archive.backups._RENEWAL", 0.01)
        assert back_up(archive, tmp_path / "backup").versions == 6
        agent.compact()


def test_files_are_backed_up_to_a_bucket_by_the_command_line(
    tmp_path: Path, object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = object_server.settings()
    for name, value in variables("", keys).items():
        if "KEY" in name or "ENDPOINT" in name:
            monkeypatch.setenv(name, value)
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many(puts(0, 4)))
        accounts_of(archive).add("ada", "owner", "a long password", 1)
    for _ in range(2):
        assert main(["--archive", str(tmp_path / "a"), "backup", keys.url]) == 0
    assert main(["--archive", str(tmp_path / "b"), "restore", keys.url]) == 0
    assert_whole(Settings(archive=ArchiveSettings(path=str(tmp_path / "b"))), puts(0, 4))


def test_a_bucket_without_a_backup_or_with_a_damaged_one_is_refused(
    shared: Settings, tmp_path: Path, object_server: ObjectServer
) -> None:
    place = object_server.settings().url
    files = replace(shared, archive=ArchiveSettings(path=str(tmp_path / "files")), database=DatabaseSettings())
    files = replace(files, store=replace(shared.store, url=""))
    with pytest.raises(NotFound, match="back_up"):
        restore(place, files)
    with Archive.open(shared) as archive:
        back_up(archive, tmp_path / "backup")
    (tmp_path / "backup" / "packs" / next((tmp_path / "backup" / "packs").glob("0*")).name).unlink()
    with pytest.raises(Damaged, match="missing or too short"):
        restore(tmp_path / "backup", files)


def test_a_restore_into_a_database_that_was_cut_off_goes_on(
    shared: Settings,
    tmp_path: Path,
    new_database: Callable[[], str],
    object_server: ObjectServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Killed(BaseException):
        pass

    def dies(*_: object) -> None:
        raise Killed

    with Archive.open(shared) as archive:
        back_up(archive, tmp_path / "backup")
    target = replace(
        shared,
        archive=ArchiveSettings(path=str(tmp_path / "another")),
        database=DatabaseSettings(url=new_database()),
        store=object_server.settings(),
    )
    with monkeypatch.context() as patch:
        patch.setattr("letopis.archive.backups.end_copy", dies)
        with pytest.raises(Killed):
            restore(tmp_path / "backup", target)
    assert restore(tmp_path / "backup", target).versions == 6
    assert_whole(target, puts(0, 6))
