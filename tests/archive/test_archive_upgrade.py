"""Archives that earlier releases wrote stay whole: they are read, searched, watched and written on as they are."""

from __future__ import annotations

import json
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from letopis import Archive
from letopis.cli.main import main

SAMPLES = Path(__file__).parent.parent / "formats"
PAGE = "http://example.org/a"
pytestmark = pytest.mark.files


@pytest.fixture(params=sorted(SAMPLES.glob("archive-*.tar.xz")), ids=lambda path: path.name.partition(".")[0])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A small archive, made by the commit that its name says: four pages, their versions compacted, a watch."""
    with tarfile.open(request.param) as packed:
        # Early releases of Python 3.11 know no filter.
        packed.extraction_filter = getattr(tarfile, "data_filter", None)
        packed.extractall(tmp_path)
    return tmp_path / "archive"


def asked(old: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main(["--archive", str(old), "--json", *words]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_every_byte_of_an_old_archive_is_sound(old: Path) -> None:
    assert main(["--archive", str(old), "verify"]) == 0


def test_versions_of_an_old_archive_are_read_as_of_their_days(old: Path) -> None:
    with Archive(old) as archive:
        assert [version.number for version in archive.versions("http://example.org/")] == [0, 1, 2, 3, 4, 5]
        assert b"State 1 of page a" in archive.get(PAGE, at=datetime(2024, 3, 15, tzinfo=UTC)).body
        assert archive.get("http://example.org/data.bin").body == bytes(range(256)) * 20


def test_an_old_archive_is_searched_mapped_and_watched(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert PAGE in {row["url"] for row in asked(old, capsys, "search", "water")}
    assert any("/gone" in str(row) for row in asked(old, capsys, "links", "example.org"))
    assert [(row["url"], row["tag"]) for row in asked(old, capsys, "watch", "list")] == [(PAGE, "old")]


def test_an_old_archive_is_written_on_and_made_small_again(old: Path) -> None:
    with Archive(old) as archive:
        archive.put(PAGE, b"<p>State 9 of page a", datetime(2024, 9, 1, tzinfo=UTC))
    assert main(["--archive", str(old), "compact"]) == 0
    assert main(["--archive", str(old), "verify"]) == 0
    with Archive(old) as archive:
        assert archive.get(PAGE).body == b"<p>State 9 of page a"
        assert b"State 0 of page a" in archive.get(PAGE, version=0).body
