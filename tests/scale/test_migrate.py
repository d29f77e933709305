"""An archive goes from files to PostgreSQL and S3 and back, and is the same."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from letopis import Archive, Put
from letopis.archive import migration
from letopis.archive.migration import move_archive
from letopis.catalog import table_copy
from letopis.catalog.accounts import Accounts
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
        monkeypatch.setattr(migration, "copy_table", dies)
        with pytest.raises(Killed):
            move_archive(files, scaled)
        monkeypatch.undo()
        assert move_archive(files, scaled).resumed
        assert told(scaled) == told(files)
        with pytest.raises(UsageError, match="already holds"):
            move_archive(files, scaled)


def test_every_lazily_made_table_of_the_archive_is_known() -> None:
    """A unit that adds tables must say whether they move."""
    machines = {"claims.py", "leases.py", "addresses.py", "extras.py"}
    folder = Path(table_copy.__file__).parent
    makers = {path.name for path in folder.glob("*.py") if "CREATE TABLE IF NOT EXISTS" in path.read_text()} - machines
    listed = {table.name for ddl in table_copy.TOPICS.values() for table in table_copy.tables_in(ddl)}
    made = {
        table.name
        for name in makers
        for table in table_copy.tables_in((folder / name).read_text().replace('"\n    "', ""))
        if name not in ("copying.py", "dialect.py")
    }
    assert made <= listed


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
