"""WARC files beside the archive, written as it records."""

from __future__ import annotations

from pathlib import Path

import pytest
from exchanged_archives import told
from ranged_folder import serving
from walked_world import walk_twice, walked_world
from written_warc import export_warc

from letopis.archive import Archive
from letopis.cli.main import main
from letopis.errors import NotReady
from letopis.exchange.crawl_warcs import CrawlWarcWriter, recording_to_warc
from letopis.exchange.imports import import_sources
from letopis.exchange.selection import ExportSelection
from letopis.model import Put


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_what_is_recorded_is_in_the_files(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        with recording_to_warc(archive, tmp_path / "warc"):
            walk_twice(archive, walked_world())
        assert [name.endswith("-00000.warc.gz") for name in names(tmp_path / "warc")] == [True]
        with Archive(tmp_path / "b") as second:
            report = import_sources(second, sorted((tmp_path / "warc").iterdir()))
            assert dict(report.refused) == {}
            assert told(second) == told(archive)


def test_records_are_those_of_an_export(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        with recording_to_warc(archive, tmp_path / "warc"):
            list(archive.put_many([Put("http://a.example/", b"one")]))
        with (tmp_path / "export.warc.gz").open("wb") as out:
            export_warc(archive, out, ExportSelection())
    assert next((tmp_path / "warc").iterdir()).read_bytes() == (tmp_path / "export.warc.gz").read_bytes()


def test_nothing_is_written_after_its_end_nor_without_records(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        with recording_to_warc(archive, tmp_path / "warc"):
            pass
        archive.put("http://a.example/", b"one")
        assert archive.followers == []
    assert names(tmp_path / "warc") == []


def test_files_are_changed_at_a_size(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        with recording_to_warc(archive, tmp_path / "warc", most=20_000):
            walk_twice(archive, walked_world())
        files = sorted((tmp_path / "warc").iterdir())
        assert len(files) > 2
        with Archive(tmp_path / "b") as second:
            import_sources(second, files)
            assert told(second) == told(archive)


def test_a_batch_is_on_disk_before_it_is_acknowledged(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive, recording_to_warc(archive, tmp_path / "warc"):
        archive.put("http://a.example/", b"one")
        (name,) = names(tmp_path / "warc")
        assert name.endswith(".warc.gz.open")
        copy = tmp_path / "copy.warc.gz"
        copy.write_bytes((tmp_path / "warc" / name).read_bytes())
        with Archive(tmp_path / "b") as second:
            assert import_sources(second, [copy]).versions == 1


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_a_half_written_record_is_cut_off_at_the_next_start(tmp_path: Path, cut: int) -> None:
    with Archive(tmp_path / "a") as archive:
        with recording_to_warc(archive, tmp_path / "warc"):
            archive.put("http://a.example/", b"one")
            archive.put("http://a.example/", b"two" * 500)
        whole = next((tmp_path / "warc").iterdir())
        data = whole.read_bytes()
        whole.with_name(whole.name + ".open").write_bytes(data[:-cut])
        whole.unlink()
        CrawlWarcWriter(archive, tmp_path / "warc").close()
    assert names(tmp_path / "warc") == [whole.name]
    left = whole.read_bytes()
    assert data.startswith(left)
    with Archive(tmp_path / "b") as second:
        report = import_sources(second, [whole])
        assert (report.versions, dict(report.refused)) == (1, {})


def test_files_that_another_process_writes_are_left_alone(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive, recording_to_warc(archive, tmp_path / "warc"):
        archive.put("http://a.example/", b"one")
        with recording_to_warc(archive, tmp_path / "warc"):
            archive.put("http://a.example/", b"two")
            assert all(name.endswith(".open") for name in names(tmp_path / "warc"))
            assert len(names(tmp_path / "warc")) == 2
    assert len(names(tmp_path / "warc")) == 2


def test_a_folder_that_cannot_be_made_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with Archive(tmp_path / "a") as archive, pytest.raises(NotReady, match="name another folder"):
        CrawlWarcWriter(archive, tmp_path / "file" / "warc")


def test_a_crawl_writes_them_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "www").mkdir()
    for number in range(3):
        (tmp_path / "www" / f"{number}.html").write_text(
            f"<title>{number}</title><a href={(number + 1) % 3}.html>next</a>"
        )
    with serving(tmp_path / "www") as server:
        words = ["crawl", f"{server.address}/0.html", "--once", "--delay", "0s", "--warc", str(tmp_path / "warc")]
        assert main(["--archive", str(tmp_path / "a"), "-q", *words]) == 0
    with Archive(tmp_path / "a") as archive, Archive(tmp_path / "b") as second:
        import_sources(second, sorted((tmp_path / "warc").iterdir()))
        assert archive.stats().versions == 3
        assert told(second) == told(archive)
