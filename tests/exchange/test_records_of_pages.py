"""What a crawler made of a page, its text or its picture, has an address of its own and goes out as it came."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest
from served_archive import running
from warcio.archiveiterator import ArchiveIterator
from written_warc import export_warc

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.cli.main import main
from letopis.exchange.imports import import_sources
from letopis.exchange.selection import ExportSelection

PAGE = "http://example.org/page?a=1"
PICTURE = b"\x89PNG" + bytes(range(256)) * 8000


def record(number: int, kind: str, target: str, content_type: str, block: bytes, more: str = "") -> bytes:
    fields = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {target}\r\nWARC-Date: 2024-03-01T12:00:00Z\r\n"
        f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-0000000000{number:02}>\r\n{more}"
        f"Content-Type: {content_type}\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(fields.encode() + block + b"\r\n\r\n")


def written(file: Path, *, with_page: bool) -> list[tuple[str, str, bytes]]:
    """A file as crawlers write it; answers what stands in it."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>hello"
    refers = "WARC-Refers-To: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
    records = [
        record(1, "response", PAGE, "application/http; msgtype=response", answer),
        record(2, "resource", f"urn:view:{PAGE}", "image/png", PICTURE),
        record(3, "resource", f"urn:text:{PAGE}", "text/plain", b"hello"),
        record(4, "resource", f"screenshot:{PAGE}", "image/png", PICTURE[:100]),
        record(5, "conversion", PAGE, "text/plain", b"hello in plain words", refers),
    ]
    file.write_bytes(b"".join(records if with_page else records[1:]))
    return records_in(file.read_bytes())


def records_in(data: bytes) -> list[tuple[str, str, bytes]]:
    found = ArchiveIterator(io.BytesIO(data), no_record_parse=True)
    return sorted(
        (record.rec_type, record.rec_headers.get_header("WARC-Target-URI"), record.raw_stream.read())
        for record in found
        if record.rec_type != "warcinfo"
    )


@pytest.mark.parametrize("with_page", [True, False])
def test_pictures_and_texts_of_a_page_are_no_versions_of_it_and_go_out_as_they_came(
    tmp_path: Path, with_page: bool
) -> None:
    stood = written(tmp_path / "in.warc.gz", with_page=with_page)
    out = io.BytesIO()
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [tmp_path / "in.warc.gz"])
        assert (report.checks, dict(report.refused)) == (4 + with_page, {})
        assert not with_page or len(archive.history(PAGE)) == 1
        assert archive.get(f"{PAGE}&__wb_record=urn:view").body == PICTURE
        assert archive.get(f"{PAGE}&__wb_record=conversion").body == b"hello in plain words"
        with running(archive) as web:
            shown = web.get(f"/web/20240301120000id_/{PAGE}&__wb_record=screenshot")
            assert (shown.status, shown.headers["content-type"], shown.body) == (200, "image/png", PICTURE[:100])
        export_warc(archive, out, ExportSelection())
    assert records_in(out.getvalue()) == stood


def with_other_schemes(file: Path, count: int) -> list[tuple[str, str, bytes]]:
    """A page, and answers of no web beside it."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>hello"
    others = (("response", "ftp://example.org/a.txt"), ("resource", "javascript:void(0)"), ("response", "dns:a.test"))
    records = [record(1, "response", PAGE, "application/http; msgtype=response", answer)]
    records += [record(2 + i, *others[i % 3], "text/plain", b"%d of them" % i) for i in range(count)]
    file.write_bytes(b"".join(records))
    return records_in(file.read_bytes())


def test_records_without_a_web_address_are_told_by_every_door_and_go_out_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stood = with_other_schemes(tmp_path / "in.warc.gz", 3)
    assert main(["--archive", str(tmp_path / "a"), "import", str(tmp_path / "in.warc.gz")]) == 0
    assert "1 check, 0 already there, 3 without a web address kept with them, 0 faults" in capsys.readouterr().out
    with Archive(tmp_path / "a") as archive:
        out = io.BytesIO()
        export_warc(archive, out, ExportSelection())
        assert records_in(out.getvalue()) == stood
    with Archive(tmp_path / "b") as archive, running(archive) as web:
        token = accounts_of(archive).create_token("owner", None, "write", 0)
        data = (tmp_path / "in.warc.gz").read_bytes()
        sent = web.ask("POST", "/api/v1/import", data, Authorization=f"Bearer {token}")
        assert (sent.json()["beside"], sent.json()["refused"]) == (3, {})


def test_what_is_too_much_beside_one_capture_is_counted(tmp_path: Path) -> None:
    with_other_schemes(tmp_path / "in.warc.gz", 70)
    with Archive(tmp_path / "a") as archive:
        report = import_sources(archive, [tmp_path / "in.warc.gz"])
        assert (report.beside, dict(report.refused)) == (64, {"more than 64 records with one capture": 6})
