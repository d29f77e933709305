"""CDXJ out as the archive's own index tells it; in from places on a disk and over HTTP."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from exchanged_archives import URL, told
from hypothesis import given, settings
from hypothesis import strategies as st
from ranged_folder import serving
from scripted_site import ScriptedSite
from served_archive import running

from letopis.archive import Archive
from letopis.archive.captures import checked_urls
from letopis.exchange import cdx_import
from letopis.exchange.cdx import RecordLocation, SortedLines, cdxj_lines, record_line
from letopis.exchange.imports import import_sources
from letopis.exchange.selection import ExportSelection
from letopis.exchange.warc_export import exported_records
from letopis.exchange.warc_records import WarcWriter
from letopis.model import parse_time, stamp14


def lines_of(archive: Archive, **selection: object) -> list[str]:
    found = cdxj_lines(archive, ExportSelection(**selection))  # type: ignore[arg-type]
    return b"".join(found).decode().splitlines()


def indexed(archive: Archive, folder: Path, skip: int = 0) -> tuple[Path, int]:
    """A WARC file with an index of it, and how long the file is."""
    folder.mkdir(exist_ok=True)
    lines = []
    with (folder / "all.warc.gz").open("wb") as out:
        writer = WarcWriter(out)
        for exported in exported_records(archive, ExportSelection()):
            place = writer.write(exported.record)
            if exported.record.kind != "metadata":
                lines.append(record_line(exported.check, exported.check.digest, RecordLocation("all.warc.gz", *place)))
    (folder / "all.cdxj").write_text("".join(f"{line}\n" for line in lines[skip:]))
    return folder / "all.cdxj", writer.size


def test_lines_are_those_of_the_archives_own_index(walked: Archive) -> None:
    with running(walked) as client:
        served = client.get("/web/timemap/cdxj/http://news1.example/").text.splitlines()
    ours = [line for line in lines_of(walked) if line.startswith("example,news1)/ ")]
    assert ours == [line for line in served if not line.startswith("!")]


def test_captures_before_1970_stand_in_every_list_of_captures(tmp_path: Path) -> None:
    stamps = ["16000101000000", "19691231235959", "19700101000000", "20240101000000"]
    with Archive(tmp_path / "archive") as archive:
        for stamp in stamps:
            archive.put("http://old.example/", stamp.encode(), at=parse_time(stamp, archive.clock()))
        assert [line.split()[1] for line in lines_of(archive)] == stamps
        assert ExportSelection().count_checks(archive) == len(stamps)
        with running(archive) as client:
            for place in ("/cdx/search/cdx?url=", "/web/cdx?url=", "/web/timemap/cdxj/"):
                found = client.get(f"{place}http://old.example/").text.splitlines()
                assert [line.split()[1] for line in found if not line.startswith("!")] == stamps
            linked = client.get("/web/timemap/link/http://old.example/").text
            assert re.findall(r'/web/(\d{14})/[^>]*>; rel="([a-z ]*memento)"', linked) == [
                (stamp, rel)
                for stamp, rel in zip(stamps, ("first memento", "memento", "memento", "last memento"), strict=True)
            ]
            bounded = client.get("/cdx/search/cdx?url=http://old.example/&from=1600&to=1969").text.splitlines()
            assert [line.split()[1] for line in bounded] == stamps[:2]


def test_every_kind_of_check_is_told_as_the_served_index_tells_it(every_kind: Archive) -> None:
    with running(every_kind) as client:
        served = client.get(f"/web/timemap/cdxj/{URL}").text.splitlines()
    ours = [line for line in lines_of(every_kind) if line.startswith("org,example)/page ")]
    assert ours == [line for line in served if not line.startswith("!")]


def test_lines_are_sorted_as_bytes_and_equal_twice(walked: Archive) -> None:
    lines = lines_of(walked)
    assert lines == sorted(lines)
    assert lines == lines_of(walked)
    assert len(lines) == walked.stats().checks


def test_selection_holds(walked: Archive) -> None:
    assert all(line.startswith("example,news1)") for line in lines_of(walked, site="news1.example"))
    latest = lines_of(walked, latest=True)
    assert len(latest) == len({json.loads(line.split(" ", 2)[2])["url"] for line in latest})


def test_a_span_selects_captures_and_the_latest_is_the_last_with_new_bytes(every_kind: Archive) -> None:
    everything = [line for line in lines_of(every_kind) if line.startswith("org,example)/page ")]
    stamps = [line.split(" ")[1] for line in everything]
    middle = parse_time(stamps[2], every_kind.clock())
    assert [line for line in lines_of(every_kind, since=middle) if line in everything] == everything[2:]
    assert [line for line in lines_of(every_kind, until=middle) if line in everything] == everything[:3]
    [latest] = [line for line in lines_of(every_kind, latest=True) if line.startswith("org,example)/page ")]
    newest = every_kind.versions(URL)[-1]
    assert json.loads(latest.split(" ", 2)[2])["digest"] == newest.digest
    assert latest.split(" ")[1] == stamp14(newest.time)


def test_an_index_beside_its_files_brings_them_in(walked: Archive, tmp_path: Path) -> None:
    index, _ = indexed(walked, tmp_path / "warcs")
    with Archive(tmp_path / "again") as second:
        report = import_sources(second, [str(index)])
        assert dict(report.refused) == {}
        assert told(second) == told(walked)


def test_only_the_places_named_are_fetched(walked: Archive, tmp_path: Path) -> None:
    index, size = indexed(walked, tmp_path / "warcs")
    wanted = [line for line in index.read_text().splitlines() if "/lide/" in line]
    (tmp_path / "few.cdxj").write_text("\n".join(wanted) + "\n")
    with serving(tmp_path / "warcs") as server, Archive(tmp_path / "again") as second:
        import_sources(second, [str(tmp_path / "few.cdxj")], base=server.address)
        assert [row.url for row in checked_urls(second)] == ["http://university0.example/lide/"]
        assert {path for path, _ in server.asked} == {"/all.warc.gz"}
        ranges = [tuple(map(int, asked.removeprefix("bytes=").split("-"))) for _, asked in server.asked]
    fetched = sum(end - start + 1 for start, end in ranges)
    assert fetched == sum(int(json.loads(line.split(" ", 2)[2])["length"]) for line in wanted) < size / 10


def test_an_index_on_a_server_leads_to_the_files_beside_it(walked: Archive, tmp_path: Path) -> None:
    indexed(walked, tmp_path / "warcs")
    with serving(tmp_path / "warcs") as server, Archive(tmp_path / "again") as second:
        report = import_sources(second, [f"{server.address}/all.cdxj"])
        assert dict(report.refused) == {}
        assert told(second) == told(walked)


def test_a_large_index_on_a_server_is_read_in_pieces(
    walked: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexed(walked, tmp_path / "warcs")
    monkeypatch.setattr(cdx_import, "READ_BYTES", 1000)
    with serving(tmp_path / "warcs") as server, Archive(tmp_path / "again") as second:
        import_sources(second, [f"{server.address}/all.cdxj"])
        assert sum(path == "/all.cdxj" for path, _ in server.asked) > 5
        assert told(second) == told(walked)


def test_a_server_without_ranges_is_told_of(walked: Archive, tmp_path: Path, scripted_site: ScriptedSite) -> None:
    index, _ = indexed(walked, tmp_path / "warcs", skip=5)
    data = (tmp_path / "warcs" / "all.warc.gz").read_bytes()
    scripted_site.set("/all.warc.gz", data)
    with Archive(tmp_path / "again") as second:
        report = import_sources(second, [str(index)], base=scripted_site.url("/"))
        assert any("does not support ranges" in reason for reason in report.refused)


def test_lines_and_files_that_cannot_be_used_are_named(walked: Archive, tmp_path: Path) -> None:
    index, _ = indexed(walked, tmp_path / "warcs")
    good = index.read_text().splitlines()[0]
    (tmp_path / "secret.warc.gz").write_bytes(b"not to be read")
    place = {"filename": "all.warc.gz", "offset": "0", "length": "10"}
    bad = [
        "!meta passed over",
        "org,example)/ 20260101000000 {broken",
        "org,example)/ 20260101000000 " + json.dumps(place | {"length": "-5"}),
        "org,example)/ 20260101000000 " + json.dumps(place | {"offset": "3"}),
        "org,example)/ 20260101000000 " + json.dumps(place | {"filename": "missing.warc.gz"}),
        "org,example)/ 20260101000000 " + json.dumps(place | {"filename": "../secret.warc.gz"}),
    ]
    index.write_text("\n".join([good, *bad]) + "\n")
    with Archive(tmp_path / "again") as second:
        report = import_sources(second, [str(index)])
        assert report.versions == 1
        assert sum(report.refused.values()) >= 4
        assert any("outside the folder" in reason for reason in report.refused)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))), st.integers(1, 5))
def test_lines_come_back_sorted_however_few_fit_in_memory(lines: list[str], held: int) -> None:
    kept = SortedLines(held)
    for line in lines:
        kept.add(line)
    assert list(kept) == sorted(line.encode() + b"\n" for line in lines)
    kept.close()


def test_very_many_runs_are_merged(tmp_path: Path) -> None:
    kept = SortedLines(1)
    for number in range(200):
        kept.add(f"{number * 7919 % 1000:04}")
    assert list(kept) == sorted(f"{number * 7919 % 1000:04}\n".encode() for number in range(200))
    kept.close()


def test_an_index_of_eleven_or_nine_fields_compressed_or_not_brings_the_same(walked: Archive, tmp_path: Path) -> None:
    index, _ = indexed(walked, tmp_path / "warcs")
    rows = [(*line.split(" ", 2)[:2], json.loads(line.split(" ", 2)[2])) for line in index.read_text().splitlines()]
    common = [f"{key} {stamp} {row['url']} text/html 200 {row['digest']} -" for key, stamp, row in rows]
    places = [row for _, _, row in rows]
    forms = {
        "eleven.cdx": [" CDX N b a m s k r M S V g"]
        + [f"{c} - {p['length']} {p['offset']} all.warc.gz" for c, p in zip(common, places, strict=True)],
        "bare.cdx": [f"{c} - {p['length']} {p['offset']} all.warc.gz" for c, p in zip(common, places, strict=True)],
        "nine.cdx": [" CDX N b a m s k r V g"]
        + [f"{c} {p['offset']} all.warc.gz" for c, p in zip(common, places, strict=True)],
    }
    for name, lines in forms.items():
        text = ("\n".join(lines) + "\n").encode()
        (index.parent / name).write_bytes(text)
        half = len(text) // 2
        (index.parent / f"{name}.gz").write_bytes(gzip.compress(text[:half]) + gzip.compress(text[half:]))
    (index.parent / "all.cdxj.gz").write_bytes(gzip.compress(index.read_bytes()))
    for file in sorted(index.parent.glob("*.cdx*")):
        with Archive(tmp_path / f"from-{file.name}") as second:
            report = import_sources(second, [str(file)])
            assert dict(report.refused) == {}, file.name
            bare = file.name.startswith("nine")  # facts beside a record are not in its place
            assert bare or told(second) == told(walked), file.name
            assert second.stats().versions == walked.stats().versions, file.name
    with serving(tmp_path / "warcs") as server, Archive(tmp_path / "remote") as second:
        import_sources(second, [f"{server.address}/eleven.cdx.gz"])
        assert second.stats().versions == walked.stats().versions


def test_an_index_leads_into_no_private_network_that_nobody_named(walked: Archive, tmp_path: Path) -> None:
    index, _ = indexed(walked, tmp_path / "warcs")
    with serving(tmp_path / "warcs") as server:
        text = index.read_text().replace("all.warc.gz", f"{server.address}/all.warc.gz")
        (tmp_path / "foreign.cdxj").write_text(text)
        with Archive(tmp_path / "b") as second:
            report = import_sources(second, [str(tmp_path / "foreign.cdxj")])
            assert (report.taken, server.asked) == (0, [])
            assert "private" in next(iter(report.refused))
        with Archive(tmp_path / "c") as second:
            import_sources(second, [str(tmp_path / "foreign.cdxj")], base=f"{server.address}/")
            assert second.stats().versions == walked.stats().versions


def test_an_index_tells_the_method_of_an_answer(tmp_path: Path) -> None:
    body = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    places, data = [], b""
    for number, text in enumerate((b"the page", b"an answer to a form", b"")):
        block = body + text
        record = (
            b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.org/form\r\n"
            b"WARC-Date: 2024-03-01T12:00:0%dZ\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-00000000000%d>\r\n"
            b"Content-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n"
        ) % (number, number, len(block), block)
        places.append((len(data), len(record)))
        data += record
    (tmp_path / "a.warc").write_bytes(data)
    asked: list[dict[str, str]] = [{}, {"method": "POST", "requestBody": "a=1&b=x"}, {"method": "HEAD"}]
    lines = [
        json.dumps({"filename": "a.warc", "offset": str(offset), "length": str(length), **more})
        for (offset, length), more in zip(places, asked, strict=True)
    ]
    (tmp_path / "a.cdxj").write_text("".join(f"org,example)/form 20240301120000 {line}\n" for line in lines))
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(tmp_path / "a.cdxj")])
        assert (report.versions, dict(report.refused)) == (3, {})
        assert [archive.get(url).body for url in sorted(row.url for row in checked_urls(archive))] == [
            b"the page", b"", b"an answer to a form",
        ]  # fmt: skip
        assert len(archive.history("http://example.org/form")) == 1
        assert archive.get("http://example.org/form?__wb_method=POST&a=1&b=x").body == b"an answer to a form"
