"""What an archive knows is for whoever owns its folder, not for everybody with an account on the machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from random_damage import overwrite_page, page_of
from scripted_site import ScriptedSite

from letopis.archive import Archive
from letopis.archive.backups import back_up, restore
from letopis.cli.main import main
from letopis.config import ArchiveSettings, Settings
from letopis.operations.upkeep import exposure_warning


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A place that everybody on the machine may enter, as homes often are."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        yield Path(place)


def open_to_others(archive: Path) -> list[str]:
    """What others can get at: a folder that is closed hides all that is in it."""
    found = []
    for path in sorted(archive.iterdir()):
        if path.stat().st_mode & 0o077:
            found.append(path.name)
    return found


@pytest.mark.parametrize("made", [False, True], ids=["by us", "by its owner"])
def test_nothing_of_an_archive_can_be_read_by_others(folder: Path, scripted_site: ScriptedSite, made: bool) -> None:
    seed = scripted_site.set("/", b"<title>t</title><p>some words", Set_Cookie="pass=secret; Max-Age=9999")
    archive = folder / "archive"
    if made:
        archive.mkdir(0o755)
    words = ["--archive", str(archive), "-q"]
    assert main([*words, "check", seed]) == 0
    assert main([*words, "crawl", seed, "--once", "--delay", "0"]) == 0
    assert main([*words, "tokens", "create", "ci"]) == 0
    assert main([*words, "search", "words"]) == 0
    assert main([*words, "broken", seed]) == 0
    assert (archive / "cookies.txt").read_text().count("secret") == 1
    assert open_to_others(archive) == []
    assert (archive.stat().st_mode & 0o777) == (0o755 if made else 0o700)
    assert exposure_warning(archive) == ""


@pytest.mark.files
@pytest.mark.parametrize("made", [False, True], ids=["by us", "by its owner"])
def test_what_is_restored_or_repaired_can_be_read_by_nobody_else(folder: Path, made: bool) -> None:
    with Archive(folder / "archive") as archive:
        archive.put("http://example.org/", b"x")
        back_up(archive, folder / "backup")
    restored = folder / "restored"
    if made:
        restored.mkdir(0o755)
    settings = Settings(archive=ArchiveSettings(path=str(restored)))
    restore(folder / "backup", settings)
    assert open_to_others(restored) == []
    assert (restored.stat().st_mode & 0o777) == (0o755 if made else 0o700)
    restored.chmod(0o755)
    overwrite_page(restored / "catalogue.sqlite", page_of(restored / "catalogue.sqlite", "resource"))
    Archive.repair(settings)
    assert open_to_others(restored) == []


@pytest.mark.files
def test_an_open_catalogue_of_an_earlier_release_is_told_by_doctor_with_what_to_do(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Archive(folder / "archive") as archive:
        archive.put("http://example.org/", b"x")
    (folder / "archive").chmod(0o755)
    (folder / "archive" / "catalogue.sqlite").chmod(0o644)
    assert main(["--archive", str(folder / "archive"), "doctor"]) != 0
    assert f"can read catalogue.sqlite; run 'chmod -R go= {folder / 'archive'}'" in capsys.readouterr().out
    (folder / "archive").chmod(0o700)
    assert exposure_warning(folder / "archive") == "", "nobody gets past its folder"
