from __future__ import annotations

import io
import os
from datetime import timedelta
from pathlib import Path

import pytest
from exchanged_archives import START, URL, check_every_way, told
from fastwarc.warc import ArchiveIterator, WarcRecordType
from warcio.checker import Checker
from written_warc import export_warc

from letopis.archive import Archive
from letopis.errors import NotFound
from letopis.exchange.imports import import_sources
from letopis.exchange.selection import ExportSelection

HOUR = timedelta(hours=1)
SAMPLES = Path(os.environ.get("LETOPIS_CORPUS_WARC", Path(__file__).parents[3] / "shared" / "corpus" / "warc"))


def filled(folder: Path) -> Archive:
    archive = Archive(folder)
    check_every_way(archive)
    return archive


def exported(archive: Archive, **selection: object) -> bytes:
    out = io.BytesIO()
    export_warc(archive, out, ExportSelection(**selection))  # type: ignore[arg-type]
    return out.getvalue()


def test_export_and_import_give_the_same_archive(tmp_path: Path) -> None:
    with filled(tmp_path / "a") as first:
        (tmp_path / "all.warc.gz").write_bytes(exported(first))
        with Archive(tmp_path / "b") as second:
            report = import_sources(second, [tmp_path / "all.warc.gz"])
            assert dict(report.refused) == {}
            assert told(second) == told(first)


def test_the_same_part_is_exported_to_the_same_bytes(tmp_path: Path) -> None:
    with filled(tmp_path / "a") as archive:
        assert exported(archive) == exported(archive)


@pytest.mark.parametrize("selection", [{"site": "nowhere.example"}, {"project": "nothing"}])
def test_what_is_not_known_is_said_before_anything_is_written(tmp_path: Path, selection: dict[str, str]) -> None:
    out = io.BytesIO()
    with filled(tmp_path / "a") as archive, pytest.raises(NotFound):
        export_warc(archive, out, ExportSelection(**selection))  # type: ignore[arg-type]
    assert out.getvalue() == b""


@pytest.mark.parametrize("compression", ["gzip", "zstd", "none"])
def test_other_readers_find_nothing_wrong(tmp_path: Path, compression: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / {"gzip": "a.warc.gz", "zstd": "a.warc.zst", "none": "a.warc"}[compression]
    with filled(tmp_path / "a") as archive, file.open("wb") as out:
        export_warc(archive, out, ExportSelection(), compression)  # type: ignore[arg-type]
    kinds = [record.record_type for record in ArchiveIterator(str(file), parse_http=True)]
    assert (kinds.count(WarcRecordType.response), kinds.count(WarcRecordType.revisit)) == (6, 2)
    if compression != "zstd":
        checker = Checker(type("Wanted", (), {"verbose": False, "inputs": [str(file)]})())
        checker.process_all()
        assert checker.exit_value == 0


def test_selection_by_time_site_and_latest(tmp_path: Path) -> None:
    with filled(tmp_path / "a") as archive, Archive(tmp_path / "b") as part:
        file = tmp_path / "part.warc.gz"
        file.write_bytes(exported(archive, site="example.org", since=START + 5 * HOUR, latest=True))
        import_sources(part, [file])
        assert [row.url for row in part.catalog.resources.all()] == [URL]
        assert [version.time for version in part.versions(URL)] == [START + 7 * HOUR]


def test_importing_twice_adds_no_version(tmp_path: Path) -> None:
    with filled(tmp_path / "a") as first, Archive(tmp_path / "b") as second:
        file = tmp_path / "all.warc.gz"
        file.write_bytes(exported(first))
        import_sources(second, [file])
        before = second.stats().versions
        assert import_sources(second, [file]).versions == 0
        assert second.stats().versions == before


def test_broken_file_is_reported_and_its_sound_part_kept(tmp_path: Path) -> None:
    with filled(tmp_path / "a") as first, Archive(tmp_path / "b") as second:
        data = exported(first)
        file = tmp_path / "cut.warc.gz"
        file.write_bytes(data[: len(data) // 2] + b"\x00" * 50)
        report = import_sources(second, [file])
        assert report.versions >= 1


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="sample archives of others are not here")
def test_samples_of_others_come_in_or_are_reported(tmp_path: Path) -> None:
    files = [
        file for file in sorted(SAMPLES.rglob("*")) if file.name.endswith((".warc", ".warc.gz", ".arc", ".arc.gz"))
    ]
    with Archive(tmp_path / "a") as archive:
        for file in files:
            report = import_sources(archive, [file])
            assert report.records or report.refused or file.name == "example-digest.warc", file.name
        assert archive.stats().versions >= 40
        assert list(archive.verify()) == []
