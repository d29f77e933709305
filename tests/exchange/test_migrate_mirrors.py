"""Mirrors that wget and HTTrack made come in with the addresses, headers and times that they kept."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import zipfile
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranged_folder import serving

from letopis.archive import Archive
from letopis.errors import LetopisError
from letopis.exchange.imports import import_sources, source_kind
from letopis.exchange.sources import SourceHints
from letopis_migrate.mirrors import split_saved_head

NOON = datetime(2024, 1, 31, 12, tzinfo=UTC).timestamp()
INDEX = b'<html><body><a href="b.html">b</a> <a href="sub/?q=1">q</a> <img src="i.png"></body></html>'


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """A small site on this machine."""
    folder = tmp_path / "site"
    (folder / "sub").mkdir(parents=True)
    for name, body in {
        "index.html": INDEX,
        "b.html": b"<p>b",
        "sub/index.html": b"<p>sub",
        "i.png": b"\x89PNG",
    }.items():
        (folder / name).write_bytes(body)
    with serving(folder) as served:
        yield served.address.rstrip("/") + "/"


def run(*words: str | Path, cwd: Path) -> None:
    if shutil.which(str(words[0])) is None:
        pytest.skip(f"{words[0]} is not installed")
    subprocess.run(words, cwd=cwd, capture_output=True, timeout=300)


def test_a_mirror_of_wget_comes_in_with_its_headers(site: str, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    run("wget", "-q", "-r", "--save-headers", site, cwd=mirror)
    assert source_kind(str(mirror)) == "wget"
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(mirror)], hints=SourceHints("http://"))
        assert dict(report.refused) == {}
        page = archive.get(site)
        assert (page.body, dict(page.headers)["Content-Type"]) == (INDEX, "text/html")
        assert abs(page.time.timestamp() - datetime.now(UTC).timestamp()) < 60
        assert archive.get(site + "sub/?q=1").body == b"<p>sub"
        assert archive.get(site + "i.png").body == b"\x89PNG"


def test_a_warc_of_wget_comes_in_and_spares_the_files_beside_it(site: str, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    run("wget", "-q", "-r", "--warc-file=all", "--warc-cdx", site, cwd=mirror)
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(mirror / "all.warc.gz")])
        assert set(report.refused) <= {"no web address (http or https)"}  # wget keeps its log in the WARC
        assert archive.get(site).body == INDEX
        checks = archive.stats().checks
        again = import_sources(archive, [str(mirror)])
        assert again.checks == 0
        assert archive.stats().checks == checks
        assert {row.url for row in archive.catalog.resources.all()} >= {site, site + "b.html", site + "sub/?q=1"}


def test_a_plain_tree_takes_its_times_from_the_files(tmp_path: Path) -> None:
    tree = tmp_path / "mirror"
    files = {
        "example.org/index.html": b"<p>converted", "example.org/index.html.orig": b"<p>as it came",
        "example.org/a/list?page=2": b"<p>2", "http/old.example+8080/x.css": b"a {}", "stray.txt": b"?",
    }  # fmt: skip
    for name, body in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(body)
        os.utime(tree / name, (NOON, NOON))
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(tree)])
        assert dict(report.refused) == {"it lies below no folder that is named like a host; give --url": 1}
        page = archive.get("https://example.org/")
        assert (page.body, page.time.timestamp()) == (b"<p>as it came", NOON)
        assert archive.get("https://example.org/a/list?page=2").body == b"<p>2"
        assert archive.get("http://old.example:8080/x.css").content_type == "text/css"


def test_a_tree_without_hosts_lies_below_the_address(tmp_path: Path) -> None:
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "b.html").write_bytes(b"<p>b")
    with Archive(tmp_path / "archive") as archive:
        import_sources(archive, [str(tmp_path / "mirror")], kind="wget", hints=SourceHints("https://example.org/sub/"))
        assert archive.get("https://example.org/sub/b.html").body == b"<p>b"


@given(st.binary(max_size=400))
@settings(max_examples=300)
def test_any_bytes_are_a_body_with_or_without_a_head(body: bytes) -> None:
    status, headers, rest = split_saved_head(body)
    assert body.endswith(rest)
    assert bool(headers) or (status, rest) == (200, body) or body.startswith(b"HTTP/")


def test_a_mirror_of_httrack_comes_in(site: str, tmp_path: Path) -> None:
    run("httrack", site, "-O", tmp_path / "mirror", "-q", "-s0", cwd=tmp_path)
    assert source_kind(str(tmp_path / "mirror")) == "httrack"
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(tmp_path / "mirror")])
        assert dict(report.refused) == {}
        page = archive.get(site)
        assert page.body == INDEX  # as it came, not as it was rewritten
        assert page.content_type == "text/html"
        assert abs(page.time.timestamp() - datetime.now(UTC).timestamp()) < 120
        assert archive.get(site + "i.png").body == b"\x89PNG"


def httrack_folder(folder: Path, *, cache: bool = True, lines: bool = True) -> Path:
    """The layout of HTTrack 3.49: headers lie in the local extra field of each member."""
    (folder / "hts-cache").mkdir(parents=True)
    (folder / "example.org").mkdir()
    (folder / "example.org" / "pic.png").write_bytes(b"\x89PNG")
    comment = (
        "<!-- Mirrored from example.org/ by HTTrack Website Copier/3.x [XR&CO'2014], Wed, 31 Jan 2024 12:00:07 GMT -->"
    )
    (folder / "example.org" / "index.html").write_text(f"<html>{comment}rewritten</html>")
    log = "HTTrack3.49-4 launched on Wed, 31 Jan 2024 23:59:00 at https://example.org/\n"
    (folder / "hts-log.txt").write_text(log)
    if cache:
        with (folder / "hts-cache" / "new.zip").open("wb") as out:
            out.write(member("https://example.org/", 200, b"<p>as it came", "example.org/index.html"))
            out.write(member("https://example.org/pic.png", 200, b"", "example.org/pic.png", in_cache=0))
            out.write(member("https://example.org/gone", 404, b"", ""))
        rebuild_directory(folder / "hts-cache" / "new.zip")
    if lines:
        head = "date\tsize\tflags\tstatuscode\tstatus\tMIME\tEtag|Date\tURL\tlocalfile\t(from URL)"
        place = "https://example.org/\t/home/me/mirror/example.org/index.html"
        row = f"00:00:30\t9/9\t---M--\t200\tadded ('OK')\ttext/html\tdate:x\t{place}\t(from )"
        (folder / "hts-cache" / "new.txt").write_text(f"{head}\n{row}\n")
    return folder


def member(name: str, status: int, body: bytes, saved: str, in_cache: int = 1) -> bytes:
    told = f"HTTP/1.1 {status} OK\r\nX-In-Cache: {in_cache}\r\nX-StatusCode: {status}\r\nX-Size: {len(body)}\r\n"
    extra = f"{told}Content-Type: text/html\r\nEtag: abc\r\nX-Save: {saved}\r\n".encode()
    crc = zlib.crc32(body)
    head = struct.pack(
        "<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 0x583F, crc, len(body), len(body), len(name), len(extra)
    )
    return head + name.encode() + extra + body


def rebuild_directory(file: Path) -> None:
    """The central directory, without the headers, as HTTrack leaves it."""
    data, directory, place = file.read_bytes(), b"", 0
    while place < len(data):
        fields = struct.unpack("<4s5H3L2H", data[place : place + 30])
        name = data[place + 30 : place + 30 + fields[9]]
        facts = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, *fields[1:9], fields[9], 0, 0, 0, 0, 0, place)
        directory += facts + name
        place += 30 + fields[9] + fields[10] + fields[7]
    count = directory.count(b"PK\x01\x02")
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(directory), len(data), 0)
    file.write_bytes(data + directory + end)


def test_the_cache_of_httrack_tells_headers_statuses_and_times(tmp_path: Path) -> None:
    folder = httrack_folder(tmp_path / "mirror")
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(folder)])
        assert (report.checks, dict(report.refused)) == (3, {})
        page = archive.get("https://example.org/")
        assert (page.body, page.headers) == (b"<p>as it came", (("Content-Type", "text/html"), ("Etag", "abc")))
        local = datetime(2024, 2, 1, 0, 0, 30).astimezone(UTC)  # past midnight, on the clock of the machine
        assert page.time == local
        assert archive.get("https://example.org/pic.png").body == b"\x89PNG"
        assert archive.history("https://example.org/gone")[0].status == 404


def test_without_the_cache_the_list_and_then_the_pages_tell(tmp_path: Path) -> None:
    listed = httrack_folder(tmp_path / "listed", cache=False)
    alone = httrack_folder(tmp_path / "alone", cache=False, lines=False)
    with Archive(tmp_path / "a") as archive:
        assert import_sources(archive, [str(listed)]).checks == 1
        assert b"rewritten" in archive.get("https://example.org/").body
    with Archive(tmp_path / "b") as archive:
        report = import_sources(archive, [str(alone)])
        assert dict(report.refused) == {"it does not say where it was mirrored from": 1}
        assert archive.get("https://example.org/").time == datetime(2024, 1, 31, 12, 0, 7, tzinfo=UTC)


def test_a_zip_bomb_in_the_cache_is_named_and_not_unpacked(tmp_path: Path) -> None:
    folder = httrack_folder(tmp_path / "mirror", lines=False)
    with zipfile.ZipFile(folder / "hts-cache" / "new.zip", "w", zipfile.ZIP_DEFLATED) as cache:
        with cache.open("https://example.org/bomb", "w") as out:
            for _ in range(300):
                out.write(bytes(1 << 20))
        cache.writestr("https://example.org/", b"<p>fine")
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(folder)])
        assert (report.checks, dict(report.refused)) == (1, {"larger than 256 MiB": 1})


@given(place=st.integers(0, 2000), value=st.integers(0, 255))
@settings(max_examples=80, deadline=None)
def test_a_damaged_cache_is_reported(tmp_path_factory: pytest.TempPathFactory, place: int, value: int) -> None:
    folder = httrack_folder(tmp_path_factory.mktemp("damaged") / "mirror")
    data = bytearray((folder / "hts-cache" / "new.zip").read_bytes())
    data[place % len(data)] = value
    (folder / "hts-cache" / "new.zip").write_bytes(data)
    with Archive(folder.parent / "archive") as archive:
        try:
            report = import_sources(archive, [str(folder)])
        except LetopisError as error:
            said = str(error)
        else:
            said = f"{report.checks} {report.refused}" if report.checks + report.refused.total() else ""
        assert said
