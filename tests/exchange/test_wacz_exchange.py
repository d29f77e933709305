"""WACZ out and in: valid beyond what validators ask, equal twice, whole again after a round trip."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from exchanged_archives import START, URL, looked, told
from fastwarc.warc import ArchiveIterator, WarcRecordType

from letopis.archive import Archive, CheckDetails
from letopis.errors import Damaged
from letopis.exchange.imports import import_sources
from letopis.exchange.selection import ExportSelection
from letopis.exchange.wacz_export import export_wacz
from letopis.model import Outcome


def sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def index_lines(package: zipfile.ZipFile) -> list[tuple[str, str, dict[str, Any]]]:
    text = gzip.decompress(package.read("indexes/index.cdx.gz")).decode()
    return [(key, stamp, json.loads(rest)) for key, stamp, rest in (line.split(" ", 2) for line in text.splitlines())]


def check_wacz(file: Path) -> None:
    """Everything the format asks for, and what readers rely on without saying so."""
    with zipfile.ZipFile(file) as package:
        assert package.testzip() is None
        names = package.namelist()
        facts = json.loads(package.read("datapackage.json"))
        assert (facts["profile"], facts["wacz_version"]) == ("data-package", "1.1.1")
        assert json.loads(package.read("datapackage-digest.json"))["hash"] == sha256(package.read("datapackage.json"))
        listed = {row["path"]: row for row in facts["resources"]}
        assert set(listed) | {"datapackage.json", "datapackage-digest.json"} == set(names)
        assert len({row["name"] for row in facts["resources"]}) == len(listed)
        for path, row in listed.items():
            data = package.read(path)
            assert (row["hash"], row["bytes"]) == (sha256(data), len(data))
        check_headers(file, package)
        check_index(package)
        check_pages(package)


def check_headers(file: Path, package: zipfile.ZipFile) -> None:
    """Readers that fetch ranges reckon that a member's own header is as long as the directory says."""
    data = file.read_bytes()
    for entry in package.infolist():
        extra = int.from_bytes(data[entry.header_offset + 28 : entry.header_offset + 30], "little")
        assert extra == len(entry.extra)
        if entry.filename.endswith(".gz"):
            assert entry.compress_type == zipfile.ZIP_STORED


def check_index(package: zipfile.ZipFile) -> None:
    raw = package.read("indexes/index.cdx.gz")
    lines = gzip.decompress(raw).splitlines()
    assert lines == sorted(lines)
    meta, *heads = package.read("indexes/index.idx").decode().splitlines()
    assert json.loads(meta.split(" ", 2)[2]) == {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}
    for head in heads:
        key, stamp, rest = head.split(" ", 2)
        place = json.loads(rest)
        block = raw[place["offset"] : place["offset"] + place["length"]]
        assert sha256(block) == place["digest"]
        assert gzip.decompress(block).decode().startswith(f"{key} {stamp} ")
    for _, _, fields in index_lines(package):
        start, length = int(fields["offset"]), int(fields["length"])
        member = package.read("archive/" + fields["filename"])[start : start + length]
        record = next(iter(ArchiveIterator(io.BytesIO(member))))
        assert record.headers["WARC-Target-URI"] == fields["url"]
        assert record.headers["WARC-Payload-Digest"] == fields["digest"]


def check_pages(package: zipfile.ZipFile) -> None:
    head, *pages = [json.loads(line) for line in package.read("pages/pages.jsonl").splitlines()]
    assert head["format"] == "json-pages-1.0"
    captured = {fields["url"] for _, _, fields in index_lines(package)}
    assert len({page["id"] for page in pages}) == len(pages)
    assert all(page["url"] in captured and page["ts"].endswith("Z") and page["title"] for page in pages)


def test_export_holds_every_rule_of_the_format(walked: Archive, tmp_path: Path) -> None:
    export_wacz(walked, tmp_path / "world.wacz", ExportSelection())
    check_wacz(tmp_path / "world.wacz")


def test_pages_have_titles_and_the_newest_of_each_its_text(walked: Archive, tmp_path: Path) -> None:
    export_wacz(walked, tmp_path / "world.wacz", ExportSelection())
    with zipfile.ZipFile(tmp_path / "world.wacz") as package:
        pages = [json.loads(line) for line in package.read("pages/pages.jsonl").splitlines()[1:]]
    texts = [page["url"] for page in pages if page.get("text")]
    assert len(texts) == len(set(texts)) == len({page["url"] for page in pages})
    assert pages[0]["title"] == "Univerzita v Letohradě nad Sítí"


def test_twice_exported_is_byte_identical(walked: Archive, tmp_path: Path) -> None:
    for name in ("a.wacz", "b.wacz"):
        export_wacz(walked, tmp_path / name, ExportSelection())
    assert (tmp_path / "a.wacz").read_bytes() == (tmp_path / "b.wacz").read_bytes()


def test_round_trip_gives_the_same_archive(every_kind: Archive, tmp_path: Path) -> None:
    export_wacz(every_kind, tmp_path / "all.wacz", ExportSelection())
    with Archive(tmp_path / "again") as second:
        report = import_sources(second, [str(tmp_path / "all.wacz")])
        assert dict(report.refused) == {}
        assert told(second) == told(every_kind)


def test_a_check_that_was_too_large_stays_one(every_kind: Archive, tmp_path: Path) -> None:
    every_kind.commit([looked(9, 200, None, Outcome.TOO_LARGE, versioned=False, details=CheckDetails(length=10**9))])
    export_wacz(every_kind, tmp_path / "all.wacz", ExportSelection())
    check_wacz(tmp_path / "all.wacz")
    with Archive(tmp_path / "again") as second:
        import_sources(second, [str(tmp_path / "all.wacz")])
        assert told(second) == told(every_kind)
        assert second.history(URL)[-1].length == 10**9


def test_large_exports_are_parted_into_several_warc_files(walked: Archive, tmp_path: Path) -> None:
    export_wacz(walked, tmp_path / "parts.wacz", ExportSelection(), warc_bytes=20_000)
    check_wacz(tmp_path / "parts.wacz")
    with zipfile.ZipFile(tmp_path / "parts.wacz") as package:
        warcs = [name for name in package.namelist() if name.startswith("archive/")]
    assert warcs[:2] == ["archive/data-00000.warc.gz", "archive/data-00001.warc.gz"]
    with Archive(tmp_path / "again") as second:
        import_sources(second, [str(tmp_path / "parts.wacz")])
        assert told(second) == told(walked)


def test_an_empty_selection_is_a_valid_file(every_kind: Archive, tmp_path: Path) -> None:
    export_wacz(every_kind, tmp_path / "none.wacz", ExportSelection(until=START - timedelta(days=1)))
    check_wacz(tmp_path / "none.wacz")


def test_a_span_brings_the_version_along_that_its_checks_found_again(every_kind: Archive, tmp_path: Path) -> None:
    span = ExportSelection(since=START + timedelta(minutes=30), until=START + timedelta(hours=2))
    export_wacz(every_kind, tmp_path / "span.wacz", span)
    with zipfile.ZipFile(tmp_path / "span.wacz") as package:
        data = io.BytesIO(package.read("archive/data-00000.warc.gz"))
    kinds = [record.record_type for record in ArchiveIterator(data)]
    assert kinds == [
        WarcRecordType.warcinfo, WarcRecordType.response, WarcRecordType.revisit, WarcRecordType.revisit,
    ]  # fmt: skip


def test_a_stopped_export_leaves_nothing_behind(walked: Archive, tmp_path: Path) -> None:
    def stop(done: int) -> None:
        if done > 10:
            raise KeyboardInterrupt

    target = tmp_path / "out" / "world.wacz"
    target.parent.mkdir()
    target.write_bytes(b"the one before")
    with pytest.raises(KeyboardInterrupt):
        export_wacz(walked, target, ExportSelection(), stop)
    assert [file.name for file in target.parent.iterdir()] == ["world.wacz"]
    assert target.read_bytes() == b"the one before"


def changed(source: Path, target: Path, name: str, change: Any) -> Path:
    """A copy with one member changed, dropped (None) or left out of the ZIP's own checksums."""
    with zipfile.ZipFile(source) as package, zipfile.ZipFile(target, "w") as copy:
        for entry in package.infolist():
            data = package.read(entry)
            data = change(data) if entry.filename == name else data
            if data is not None:
                copy.writestr(entry.filename, data)
    return target


@pytest.fixture
def exported(every_kind: Archive, tmp_path: Path) -> Path:
    export_wacz(every_kind, tmp_path / "sound.wacz", ExportSelection())
    return tmp_path / "sound.wacz"


WARC = "archive/data-00000.warc.gz"


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        (WARC, lambda data: data[:-200] + b"\0" * 200, "its digest differs"),
        (WARC, lambda data: None, "listed in datapackage.json but missing"),
        ("datapackage.json", lambda data: data + b" ", "datapackage.json does not match its digest"),
        ("datapackage.json", lambda data: None, "no datapackage.json"),
        ("datapackage.json", lambda data: data.replace(b"archive/data", b"archive/date"), "is not listed"),
    ],
)
def test_a_damaged_member_is_named(exported: Path, tmp_path: Path, name: str, change: Any, reason: str) -> None:
    file = changed(exported, tmp_path / "bad.wacz", name, change)
    with Archive(tmp_path / "again") as archive:
        report = import_sources(archive, [str(file)])
        assert any(reason in sentence for sentence in report.refused)
        assert list(archive.verify()) == []


def test_flipped_bytes_in_the_zip_are_named_and_the_rest_comes_in(exported: Path, tmp_path: Path) -> None:
    data = bytearray(exported.read_bytes())
    data[1500] ^= 0xFF
    (tmp_path / "flipped.wacz").write_bytes(data)
    with Archive(tmp_path / "again") as archive:
        report = import_sources(archive, [str(tmp_path / "flipped.wacz")])
        assert any("it is damaged" in sentence for sentence in report.refused)


def test_a_zip_without_its_end_is_no_wacz(exported: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.wacz").write_bytes(exported.read_bytes()[:-100])
    with Archive(tmp_path / "again") as archive:
        report = import_sources(archive, [str(tmp_path / "cut.wacz")])
        assert report.versions == 0
        assert report.refused


def test_a_zip_whose_directory_is_broken_is_damaged(exported: Path, tmp_path: Path) -> None:
    data = exported.read_bytes()
    at = data.rindex(b"PK\x01\x02")
    (tmp_path / "broken.wacz").write_bytes(data[:at] + b"XXXX" + data[at + 4 :])
    with Archive(tmp_path / "again") as archive, pytest.raises(Damaged):
        import_sources(archive, [str(tmp_path / "broken.wacz")])


def test_import_is_told_by_contents_not_by_name(exported: Path, tmp_path: Path) -> None:
    other = exported.rename(tmp_path / "collection.zip")
    with Archive(tmp_path / "again") as archive:
        assert import_sources(archive, [str(other)]).versions == 4
        assert archive.get(URL).body == b"<title>One</title><p>first"


def test_packages_of_packages_come_in_as_a_zip_and_as_a_list(every_kind: Archive, tmp_path: Path) -> None:
    export_wacz(every_kind, tmp_path / "one.wacz", ExportSelection())
    data = (tmp_path / "one.wacz").read_bytes()
    resources = [{"name": "one.wacz", "path": "one.wacz", "hash": sha256(data), "bytes": len(data)}]
    listed = json.dumps({"profile": "multi-wacz-package", "resources": resources})
    with zipfile.ZipFile(tmp_path / "several.wacz", "w") as package:
        package.writestr("one.wacz", data)
        package.writestr("datapackage.json", listed)
    (tmp_path / "several.json").write_text(listed)
    for name in ("several.wacz", "several.json"):
        with Archive(tmp_path / f"from-{name}") as second:
            report = import_sources(second, [str(tmp_path / name)])
            assert dict(report.refused) == {}
            assert told(second) == told(every_kind)


def test_packages_inside_one_another_end_somewhere(every_kind: Archive, tmp_path: Path) -> None:
    export_wacz(every_kind, tmp_path / "0.wacz", ExportSelection())
    for depth in range(1, 8):
        with zipfile.ZipFile(tmp_path / f"{depth}.wacz", "w") as package:
            package.write(tmp_path / f"{depth - 1}.wacz", "inner.wacz")
    with Archive(tmp_path / "second") as second:
        report = import_sources(second, [str(tmp_path / "7.wacz")])
        assert report.refused["not a valid WACZ file, or nested too deeply"] == 1
        assert report.empty == [str(tmp_path / "7.wacz")]


def test_a_list_of_packages_never_leads_out_of_its_folder(every_kind: Archive, tmp_path: Path) -> None:
    export_wacz(every_kind, tmp_path / "out.wacz", ExportSelection())
    (tmp_path / "in").mkdir()
    resources = [{"path": path} for path in ("../out.wacz", str(tmp_path / "out.wacz"), "https://example.org/x.wacz")]
    (tmp_path / "in" / "list.json").write_text(json.dumps({"profile": "multi-wacz-package", "resources": resources}))
    with Archive(tmp_path / "second") as second:
        report = import_sources(second, [str(tmp_path / "in" / "list.json")])
        assert (report.checks, report.refused["it is no WACZ file beside the list; fetch it there"]) == (0, 3)
