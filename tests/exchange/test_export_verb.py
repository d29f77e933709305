"""Export and import on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from walked_world import walk_twice, walked_world

from letopis.archive import Archive
from letopis.catalog.accounts import Projects
from letopis.cli.main import main


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("verb") / "archive"
    with Archive(folder) as archive:
        walk_twice(archive, walked_world())
        Projects(archive.catalog.database).add("two", "", ["http://news1.example/", "http://news1.example/sport/"], 0)
    return str(folder)


def run(*words: str) -> int:
    try:
        return main(list(words)) or 0
    except SystemExit as end:
        return int(end.code or 0)


def test_cdxj_goes_to_standard_output(where: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run("--archive", where, "-q", "export", "cdxj", "--project", "two") == 0
    lines = capfdbinary.readouterr().out.decode().splitlines()
    assert {json.loads(line.split(" ", 2)[2])["url"] for line in lines} == {
        "http://news1.example/", "http://news1.example/sport/",
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["warc", "wacz", "cdxj", "static", "parquet"])
def test_every_kind_is_written_where_it_is_told(where: str, tmp_path: Path, kind: str) -> None:
    assert run("--archive", where, "-q", "export", kind, "-o", str(tmp_path / "out")) == 0
    assert [file.name for file in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").is_dir() == (kind in ("static", "parquet"))


@pytest.mark.parametrize("kind", ["static", "parquet"])
def test_kinds_that_are_no_stream_need_a_place(where: str, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    assert run("--archive", where, "export", kind) == 2
    assert "-o" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "status"),
    [(["--site", "never.example"], 3), (["--project", "never"], 3), (["--from", "someday"], 2), (["--to", "1999"], 3),
     (["--from", "2199-01-01", "--latest"], 3), (["--project", "two", "--site", "news2.example"], 3)],
)  # fmt: skip
def test_a_part_that_is_not_there_has_its_exit_status(
    where: str, tmp_path: Path, words: list[str], status: int
) -> None:
    assert run("--archive", where, "export", "warc", "-o", str(tmp_path / "out"), *words) == status
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_said_so(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--archive", where, "export", "warc", "-o", "/proc/nothing/here.warc.gz") == 1
    assert "choose another place" in capsys.readouterr().err


def test_json_tells_what_was_written(where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("--archive", where, "--json", "export", "static", "-o", str(tmp_path / "copy"))
    told = json.loads(capsys.readouterr().out)
    assert told["files"] == told["written"] > 20
    assert told["removed"] == 0


def test_a_folder_is_no_file_and_a_device_is_written_as_it_is(where: str, tmp_path: Path) -> None:
    assert run("--archive", where, "export", "warc", "-o", str(tmp_path)) == 2
    assert run("--archive", where, "-q", "export", "warc", "-o", "/dev/null") == 0
    assert list(tmp_path.iterdir()) == []


def test_wacz_comes_in_again(where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("--archive", where, "-q", "export", "wacz", "-o", str(tmp_path / "all.wacz"))
    capsys.readouterr()
    assert run("--archive", str(tmp_path / "again"), "--json", "import", str(tmp_path / "all.wacz")) == 0
    with Archive(where) as archive:
        wanted = archive.stats()
    assert json.loads(capsys.readouterr().out) == {
        "records": wanted.checks, "taken": wanted.checks, "checks": wanted.checks, "versions": wanted.versions,
        "same": 0, "beside": 0, "refused": {}, "examples": [], "watches": None, "future": 0, "queued": None,
        "sets": 0, "sites": ["news1.example", "university0.example"],
    }  # fmt: skip
