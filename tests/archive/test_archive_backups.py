"""Backups: consistent, grown by what is new, restored by one command."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.archive.backups import back_up, restore
from letopis.cli.main import main
from letopis.config import ArchiveSettings, Settings
from letopis.errors import Damaged, NotFound, NotReady, UsageError
from letopis.model import Put

pytestmark = pytest.mark.files
START = datetime(2026, 1, 1, tzinfo=UTC)


def puts(first: int, count: int) -> list[Put]:
    numbers = range(first, first + count)
    return [Put(f"http://h.example/{n % 3}", b"<p>page %d" % n * 30, START + n * timedelta(hours=1)) for n in numbers]


def placed(folder: Path) -> Settings:
    return Settings(archive=ArchiveSettings(path=str(folder)))


def test_a_backup_is_restored_by_one_command(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many(puts(0, 6)))
        archive.compact()
        list(archive.put_many(puts(6, 3)))
        accounts_of(archive).add("ada", "owner", "a long password", 1)
    assert main(["--archive", str(tmp_path / "a"), "backup", str(tmp_path / "b")]) == 0
    assert main(["--archive", str(tmp_path / "c"), "restore", str(tmp_path / "b")]) == 0
    with Archive(tmp_path / "c") as restored:
        assert [restored.get(put.url, at=put.at).body for put in puts(0, 9)] == [put.body for put in puts(0, 9)]
        assert accounts_of(restored).sign_in("ada", "a long password") is not None
        restored.put("http://h.example/0", b"goes on", START + timedelta(days=9))
        restored.compact()
        assert list(restored.verify()) == []


def test_a_backup_grows_by_what_is_new_and_forgets_what_is_gone(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many(puts(0, 3)))
        archive.compact()
        assert back_up(archive, tmp_path / "b").packs_added == 1
        list(archive.put_many(puts(3, 3)))
        assert back_up(archive, tmp_path / "b").packs_added == 1
        list(archive.put_many(puts(6, 1)))
        archive.compact()
        third = back_up(archive, tmp_path / "b")
        packs = sorted(path.name for path in (tmp_path / "a" / "packs").glob("0*"))
    assert (third.serial, third.versions) == (3, 7)
    assert sorted(path.name for path in (tmp_path / "b" / "packs").glob("0*")) == packs
    assert len(list((tmp_path / "b").glob("catalogue-*"))) == 1
    assert restore(tmp_path / "b", placed(tmp_path / "c")).versions == 7


def test_a_backup_that_is_broken_off_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many(puts(0, 3)))
        back_up(archive, tmp_path / "b")
        list(archive.put_many(puts(3, 3)))

        def fail(*_: object) -> None:
            raise OSError("unplugged")

        monkeypatch.setattr("letopis.archive.backups.file_sha256", fail)
        with pytest.raises(NotReady, match="unplugged"):
            back_up(archive, tmp_path / "b")
        monkeypatch.undo()
    assert restore(tmp_path / "b", placed(tmp_path / "c")).versions == 3
    with Archive(tmp_path / "a") as archive:
        assert back_up(archive, tmp_path / "b").versions == 6
    assert restore(tmp_path / "b", placed(tmp_path / "d")).versions == 6


def test_another_archive_is_not_backed_up_over_a_backup_even_if_its_packs_have_the_same_sizes(tmp_path: Path) -> None:
    for name in ("a", "other"):
        with Archive(tmp_path / name) as archive:
            made = [Put(f"http://h.example/{n}", f"<p>{name:>5} {n}".encode(), START) for n in range(3)]
            list(archive.put_many(made))
    sizes = {name: (tmp_path / name / "packs" / "00000001.log").stat().st_size for name in ("a", "other")}
    assert len(set(sizes.values())) == 1
    with Archive(tmp_path / "a") as archive:
        back_up(archive, tmp_path / "b")
    with Archive(tmp_path / "other") as archive, pytest.raises(Damaged, match="reads differently"):
        back_up(archive, tmp_path / "b")
    restore(tmp_path / "b", placed(tmp_path / "c"))
    with Archive(tmp_path / "c") as restored:
        assert restored.get("http://h.example/1").body == b"<p>    a 1"


def test_a_restore_whose_check_was_interrupted_takes_nothing_back_that_came_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many(puts(0, 3)))
        back_up(archive, tmp_path / "b")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Archive, "verify", interrupted)
    with pytest.raises(KeyboardInterrupt):
        restore(tmp_path / "b", placed(tmp_path / "c"))
    monkeypatch.undo()
    with Archive(tmp_path / "c") as restored:
        accounts_of(restored).add("ada", "owner", "a long password", 1)
        restored.put("http://h.example/0", b"goes on", START + timedelta(days=9))
    assert restore(tmp_path / "b", placed(tmp_path / "c")).versions == 4
    with Archive(tmp_path / "c") as restored:
        assert [user.name for user in accounts_of(restored).users()] == ["ada"]
        assert restored.get("http://h.example/0").body == b"goes on"
    assert not (tmp_path / "c" / "restoring").exists()


def test_what_is_no_backup_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="back_up"):
        restore(tmp_path / "none", placed(tmp_path / "c"))
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many(puts(0, 3)))
        back_up(archive, tmp_path / "b")
    with pytest.raises(UsageError, match="not empty"):
        restore(tmp_path / "b", placed(tmp_path / "a"))
    name = json.loads((tmp_path / "b" / "backup.json").read_text())["catalogue"]
    damaged = bytearray((tmp_path / "b" / name).read_bytes())
    damaged[3000] ^= 1
    (tmp_path / "b" / name).write_bytes(damaged)
    with pytest.raises(Damaged, match="another digest than it was backed up with"):
        restore(tmp_path / "b", placed(tmp_path / "c"))
