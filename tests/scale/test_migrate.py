"""An archive goes from files to PostgreSQL and S3 and back, and is the same."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path

import pytest

from letopis import Archive, Put
from letopis.archive.backups import move_archive
from letopis.catalog import table_copy
from letopis.catalog.accounts import Accounts
from letopis.catalog.schema import CATALOG_TABLES
from letopis.catalog.table_copy import tables_in
from letopis.catalog.version_log import ChangeClients
from letopis.cli.main import main
from letopis.config import ArchiveSettings, Settings
from letopis.errors import UsageError

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def filled(folder: Path) -> Archive:
    archive = Archive(folder, settings=Settings(archive=ArchiveSettings(path=str(folder))))
    urls = [f"http://h{number}.example/{number}" for number in range(6)]
    list(archive.put_many(Put(url, f"<p>{url} {day}".encode(), START + day * DAY) for url in urls for day in range(7)))
    return archive


def told(archive: Archive) -> dict[str, list[tuple[object, ...]]]:
    found = {row.url: archive.versions(row.url) for row in archive.catalog.resources.all()}
    return {
        url: [(v.number, v.time, v.digest, archive.get(url, version=v.number).body) for v in versions]
        for url, versions in found.items()
    }


def test_there_and_back_again(scaled_settings: Settings, tmp_path: Path) -> None:
    with filled(tmp_path / "a") as files, Archive(tmp_path / "b", settings=scaled_settings) as scaled:
        files.compact()
        files.put("http://h1.example/1", b"later", START + 20 * DAY)
        move_archive(files, scaled)
        assert told(scaled) == told(files)
        scaled.put("http://h1.example/1", b"scaled", START + 30 * DAY)
        with Archive(tmp_path / "c") as back:
            move_archive(scaled, back)
            assert told(back) == told(scaled)
            assert back.put("http://new.example/", b"x", START).number == 0
            assert list(back.verify()) == []


def test_a_move_that_was_interrupted_goes_on(
    scaled_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    copied: list[str] = []
    copy = table_copy.copy_table

    def dies(*given: object) -> int:
        if len(copied) == 3:
            raise Killed
        copied.append(str(given[2]))
        return copy(*given)  # type: ignore[arg-type]

    with filled(tmp_path / "a") as files, Archive(tmp_path / "b", settings=scaled_settings) as scaled:
        monkeypatch.setattr(table_copy, "copy_table", dies)
        with pytest.raises(Killed):
            move_archive(files, scaled)
        monkeypatch.undo()
        assert move_archive(files, scaled).resumed
        assert told(scaled) == told(files)
        with pytest.raises(UsageError, match="already holds"):
            move_archive(files, scaled)


def test_every_table_of_the_archive_moves_but_those_of_single_machines() -> None:
    """Whoever adds tables must say whether they move."""
    listed = {table.name for ddl in (*table_copy.TOPICS.values(), CATALOG_TABLES) for table in tables_in(ddl)}
    made: set[str] = set()
    for path in Path(table_copy.__file__).parent.glob("*.py"):
        for value in vars(import_module(f"letopis.catalog.{path.stem}")).values():
            if isinstance(value, str) and value.lstrip().startswith("CREATE TABLE"):
                assert len(tables_in(value)) == value.count("CREATE TABLE"), "each ends with a semicolon"
                made |= {table.name for table in tables_in(value)}
    assert made - listed == {"pack_number", "log_claim", "log_mark", "exclusive", "agent", "pause"}


def test_what_clients_have_seen_moves_too(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as old, Archive(tmp_path / "b") as new:
        old.put("http://example.org/", b"<p>one</p>")
        ChangeClients(old.catalog.database).acknowledge("reader", 1, 0)
        move_archive(old, new)
        assert new.catalog.database.all("SELECT name, version FROM change_client") == [("reader", 1)]


def test_the_command_moves_and_compares(
    scaled_settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(tmp_path / "a").close()
    store = scaled_settings.store
    target = tmp_path / "scaled.toml"
    target.write_text(
        f'[archive]\npath = "{tmp_path / "machine"}"\n[database]\nurl = "{scaled_settings.database.url}"\n[store]\n'
        f'url = "{store.url}"\nendpoint = "{store.endpoint}"\naccess_key = "key"\nsecret_key = "secret"\n'
    )
    assert main(["migrate", str(target), "--archive", str(tmp_path / "a"), "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["packs"] == 1
    assert main(["--config", str(target), "versions", "http://h1.example/1", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 7
    assert main(["--config", str(target), "migrate", str(target)]) == 2


def test_accounts_move_too(scaled_settings: Settings, tmp_path: Path) -> None:
    with filled(tmp_path / "a") as files, Archive(tmp_path / "b", settings=scaled_settings) as scaled:
        Accounts(files.catalog.database).add("eva", "owner", "a long password", 0)
        move_archive(files, scaled)
        assert [user.name for user in Accounts(scaled.catalog.database).users()] == ["eva"]
