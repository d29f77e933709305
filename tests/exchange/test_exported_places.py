"""CDX answers name the file that was written and the place of a capture in it; warcio says what stands there."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from ranged_folder import serving
from served_archive import fill, running
from warcio.archiveiterator import ArchiveIterator

from letopis.archive import Archive
from letopis.cli.main import main
from letopis.exchange.crawl_warcs import CrawlWarcWriter, recording_to_warc
from letopis.exchange.exported_places import FOLDER, ExportedPlaces, ExportIndexWriter
from letopis.exchange.selection import ExportSelection
from letopis.exchange.wacz_export import export_wacz

FIELDS = ("timestamp", "original", "statuscode", "length", "offset", "filename")


def table(web: Any, **parameters: str) -> list[dict[str, str]]:
    asked = {"url": "*.example.org", "fl": ",".join(FIELDS), "output": "json"} | parameters
    names, *rows = web.get(f"/cdx/search/cdx?{urlencode(asked)}").json()
    return [dict(zip(names, row, strict=True)) for row in rows]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Archive(tmp_path / "archive") as archive:
        fill(archive)
    return tmp_path / "archive"


def export(folder: Path, target: Path, *more: str) -> None:
    assert main(["--archive", str(folder), "export", "warc", "-o", str(target), *more]) == 0


def record_in(data: bytes, row: dict[str, str]) -> Any:
    """What warcio finds in exactly these bytes."""
    data = data[int(row["offset"]) : int(row["offset"]) + int(row["length"])]
    (record,) = ArchiveIterator(io.BytesIO(data), check_digests="raise")
    return record


def record_at(file: Path, row: dict[str, str]) -> Any:
    return record_in(file.read_bytes(), row)


def is_that_capture(record: Any, row: dict[str, str]) -> bool:
    field = record.rec_headers.get_header
    stamp = "".join(sign for sign in field("WARC-Date")[:19] if sign.isdigit())
    status = record.http_headers.get_statuscode()
    kinds = ("response", "revisit")
    told = (record.rec_type in kinds, field("WARC-Target-URI"), stamp, row["statuscode"] in (status, "-"))
    return told == (True, row["original"], row["timestamp"], True)


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_at_the_place_that_a_cdx_answer_names_stands_that_capture(
    folder: Path, tmp_path: Path, compression: str
) -> None:
    file = tmp_path / "all.warc.gz"
    export(folder, file, "--compression", compression)
    with Archive(folder) as archive, running(archive) as web:
        found = table(web)
        lines = web.get("/web/cdx?url=example.org/page&fl=url,timestamp,filename,offset,length&output=json").text
        text = web.get("/web/cdx?url=example.org/page&fl=filename,offset,length&output=text").text.split("\n")[0]
    in_file = [row for row in found if row["filename"] != "-"]
    assert len(in_file) >= 6
    assert all(is_that_capture(record_at(file, row), row) for row in in_file)
    first = json.loads(lines.splitlines()[0])
    assert record_at(file, first).rec_headers.get_header("WARC-Target-URI") == first["url"]
    assert text == f"{first['filename']} {first['offset']} {first['length']}"
    assert {row["filename"] for row in in_file} == {"all.warc.gz"}


def test_a_file_that_is_gone_or_another_is_not_named(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.warc.gz"
    export(folder, file)
    with Archive(folder) as archive:
        (row, *_) = archive.history("http://example.org/page")
        time = int(row.checked_at.timestamp() * 1000)
        assert ExportedPlaces(archive).find(row.url, time) is not None
        assert ExportedPlaces(archive).find(row.url, time + 1) is None
        assert ExportedPlaces(archive).find("http://example.org/nowhere", time) is None
        file.write_bytes(file.read_bytes() + b"\0")
        assert ExportedPlaces(archive).find(row.url, time) is None
        export(folder, tmp_path / "second.warc.gz")
        assert len(list((folder / FOLDER).iterdir())) == 1
        place = ExportedPlaces(archive).find(row.url, time)
        assert place is not None
        assert place.filename == "second.warc.gz"
        (tmp_path / "second.warc.gz").unlink()
        assert ExportedPlaces(archive).find(row.url, time) is None


def test_an_index_that_is_damaged_names_nothing(folder: Path, tmp_path: Path) -> None:
    export(folder, tmp_path / "all.warc.gz")
    (index,) = (folder / FOLDER).iterdir()
    for data in (b"", b"{}\n", b"[1]\n" + bytes(32), index.read_bytes()[:-20]):
        index.write_bytes(data)
        with Archive(folder) as archive:
            ExportedPlaces(archive).find("http://example.org/page", 0)


def test_an_export_to_a_stream_leaves_no_index(folder: Path, capfdbinary: Any) -> None:
    assert main(["--archive", str(folder), "export", "warc"]) == 0
    assert not (folder / FOLDER).exists()


@pytest.mark.parametrize("warc_bytes", [700, 1 << 30], ids=["many WARC files inside", "one"])
def test_in_a_wacz_file_the_warc_file_inside_is_named(folder: Path, tmp_path: Path, warc_bytes: int) -> None:
    file = tmp_path / "all.wacz"
    with Archive(folder) as archive, closing(ExportIndexWriter()) as index:
        export_wacz(archive, file, ExportSelection(), warc_bytes=warc_bytes, places=index)
        index.keep(archive, file)
        with running(archive) as web:
            rows = [row for row in table(web) if row["filename"] != "-"]
    with zipfile.ZipFile(file) as package:
        insides = {name: package.read(f"archive/{name}") for name in {row["filename"] for row in rows}}
        listed = gzip.decompress(package.read("indexes/index.cdx.gz")).decode()
    assert len(rows) >= 6
    assert (len(insides) > 1) == (warc_bytes == 700)
    assert all(is_that_capture(record_in(insides[row["filename"]], row), row) for row in rows)
    places = {(line["filename"], line["offset"]) for line in map(json.loads, re.findall(r"{.*}", listed))}
    assert {(row["filename"], row["offset"]) for row in rows} <= places


def test_an_exported_wacz_file_is_named_whoever_asked_for_it(folder: Path, tmp_path: Path) -> None:
    assert main(["--archive", str(folder), "export", "wacz", "-o", str(tmp_path / "all.wacz")]) == 0
    with Archive(folder) as archive, running(archive) as web:
        found = {row["filename"] for row in table(web)}
        (tmp_path / "all.wacz").unlink()
        assert web.get("/api/v1/export?kind=wacz").body.startswith(b"PK")
        later = {row["filename"] for row in table(web)}
    assert found == {"data-00000.warc.gz", "-"}
    assert later == {"-"}


def test_files_that_a_crawl_wrote_are_named_when_they_have_their_names(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        with recording_to_warc(archive, tmp_path / "warc", most=1):
            fill(archive)
            with running(archive) as web:
                assert len({row["filename"] for row in table(web)}) > 2
        with running(archive) as web:
            rows = [row for row in table(web) if row["filename"] != "-"]
    assert len(rows) >= 6
    assert {row["filename"] for row in rows} <= {file.name for file in (tmp_path / "warc").iterdir()}
    assert all(is_that_capture(record_at(tmp_path / "warc" / row["filename"], row), row) for row in rows)


def test_a_file_that_a_crash_left_is_named_once_it_is_whole_again(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        with recording_to_warc(archive, tmp_path / "warc"):
            fill(archive)
        with running(archive) as web:
            before = table(web)
        (file,) = (tmp_path / "warc").iterdir()
        shutil.rmtree(archive.folder / FOLDER)
        left = file.with_name(file.name + ".open")
        file.rename(left)
        left.write_bytes(left.read_bytes() + b"\x1f\x8b\x08 half a record")
        CrawlWarcWriter(archive, tmp_path / "warc").close()
        with running(archive) as web:
            assert table(web) == before
    assert {row["filename"] for row in before} == {file.name, "-"}


def test_a_crawl_at_the_command_line_leaves_files_that_cdx_answers_name(tmp_path: Path) -> None:
    (tmp_path / "www").mkdir()
    (tmp_path / "www" / "index.html").write_text("<title>One</title><a href=two.html>two</a>")
    (tmp_path / "www" / "two.html").write_text("<title>Two</title>")
    with serving(tmp_path / "www") as server:
        words = ["crawl", f"{server.address}/index.html", "--once", "--delay", "0s", "--warc", str(tmp_path / "warc")]
        assert main(["--archive", str(tmp_path / "archive"), "-q", *words]) == 0
    with Archive(tmp_path / "archive") as archive, running(archive) as web:
        rows = table(web, url=f"{server.address}/*")
    assert [row["original"].rpartition("/")[2] for row in rows] == ["index.html", "two.html"]
    assert all(is_that_capture(record_at(tmp_path / "warc" / row["filename"], row), row) for row in rows)
