"""The packs are the truth: whatever catalogue lies beside them, nothing that they alone know is lost."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from random_histories import RandomHistory

from letopis.archive import Archive
from letopis.archive.records import capture_of_put
from letopis.cli.main import main
from letopis.config import ArchiveSettings, Settings
from letopis.errors import LetopisError
from letopis.model import Put

pytestmark = pytest.mark.files
START = datetime(2026, 1, 1, tzinfo=UTC)


def puts(first: int, count: int) -> list[Put]:
    return [
        Put(f"http://h.example/{n % 4}", b"<p>text %d" % n, START + n * timedelta(hours=1))
        for n in range(first, first + count)
    ]


def copied(folder: Path, target: Path) -> Path:
    """The catalogue as a backup has it."""
    with Archive(folder) as archive:
        archive.catalog.tidy()
    shutil.copy(folder / "catalogue.sqlite", target)
    return target


def put_back(folder: Path, copy: Path) -> None:
    for file in folder.glob("catalogue.sqlite*"):
        file.unlink()
    shutil.copy(copy, folder / "catalogue.sqlite")


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("verb", ["compact", "verify", "stats"])
def test_an_older_catalogue_takes_in_what_its_packs_know(tmp_path: Path, verb: str, compacted: bool) -> None:
    folder, all_puts = tmp_path / "a", puts(0, 10)
    with Archive(folder) as archive:
        list(archive.put_many(all_puts[:4]))
    copy = copied(folder, tmp_path / "backup")
    with Archive(folder) as archive:
        list(archive.put_many(all_puts[4:]))
        if compacted:
            archive.compact()
    put_back(folder, copy)
    assert main(["--archive", str(folder), verb]) == 0
    with Archive(folder) as archive:
        assert [archive.get(put.url, at=put.at).body for put in all_puts] == [put.body for put in all_puts]
        assert archive.compact().finished
        assert [archive.get(put.url, at=put.at).body for put in all_puts] == [put.body for put in all_puts]
        assert list(archive.verify()) == []


def test_a_copy_of_a_catalogue_that_was_built_anew_takes_in_what_its_packs_know(tmp_path: Path) -> None:
    folder, all_puts = tmp_path / "a", puts(0, 6)
    with Archive(folder) as archive:
        list(archive.put_many(all_puts[:4]))
    (folder / "catalogue.sqlite").unlink()
    Archive.repair(Settings(archive=ArchiveSettings(path=str(folder))))
    copy = copied(folder, tmp_path / "backup")
    with Archive(folder) as archive:
        list(archive.put_many(all_puts[4:]))
    put_back(folder, copy)
    with Archive(folder) as archive:
        assert [archive.get(put.url, at=put.at).body for put in all_puts] == [put.body for put in all_puts]


def test_versions_that_the_catalogue_does_not_know_are_listed_and_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, all_puts = tmp_path / "a", puts(0, 10)
    with Archive(folder) as archive:
        list(archive.put_many(all_puts[:8]))
    copy = copied(folder, tmp_path / "backup")
    with Archive(folder) as archive:
        list(archive.put_many(all_puts[8:]))
    put_back(folder, copy)
    monkeypatch.setattr("letopis.archive.write_gates.LocalGate.catch_up", lambda gate, store, most=0: None)
    with Archive(folder) as archive:
        found = [str(problem) for problem in archive.verify()]
    assert len(found) == 2
    assert found[0].startswith("http://h.example/0 at 2026-01-01T08:00:00Z: it is in a pack")
    monkeypatch.undo()
    report = Archive.repair(Settings(archive=ArchiveSettings(path=str(folder))))
    assert (report.rebuilt, report.versions, report.lost) == (False, 10, ())


def test_what_retention_dropped_stays_dropped(tmp_path: Path) -> None:
    history = RandomHistory(tmp_path / "a", 2)
    for _ in range(4):
        history.put()
    history.retain()
    with history.open() as archive:
        count = archive.stats().versions
    history.put()
    with history.open() as archive:
        assert archive.stats().versions - count <= 8
    history.check()


def test_a_write_that_was_never_committed_is_no_problem(tmp_path: Path) -> None:
    """Its bytes are there; whether the version is, nobody was promised."""

    def fail(*_: object) -> None:
        raise LetopisError("cut off")

    folder = tmp_path / "a"
    with Archive(folder) as archive:
        archive.put("http://h.example/", b"one", START)
    second = Put("http://h.example/", b"two", START + timedelta(days=1))
    with Archive(folder) as archive, pytest.raises(LetopisError):
        archive.commit([capture_of_put(second, second.url, START)], fail)
    with Archive(folder) as archive:
        assert list(archive.verify()) == []
        archive.put("http://h.example/", b"three", START + timedelta(days=2))
        archive.compact()
        assert archive.get("http://h.example/", at=START).body == b"one"
        assert list(archive.verify()) == []


@pytest.mark.parametrize("seed", range(8))
def test_nothing_acknowledged_is_lost_whatever_catalogue_is_put_back(tmp_path: Path, seed: int) -> None:
    history = RandomHistory(tmp_path / "a", seed)
    copies = []
    for part in range(4):
        history.steps(3)
        copies.append(copied(history.folder, tmp_path / f"backup-{part}"))
        if part and history.chance.random() < 0.8:
            history.told.append("put back")
            put_back(history.folder, history.chance.choice(copies[:-1]))
        if history.chance.random() < 0.5:
            # Versions that retention had dropped since may stand in the older catalogue without their bytes.
            Archive.repair(history.settings)
        history.compact()
        history.check_acknowledged()
    Archive.repair(history.settings)
    history.check()
