"""Whole pages in WARC and WACZ: what the server sent, what a browser made of it, picture, text and resources."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator
from written_warc import export_warc

from letopis.archive import Archive
from letopis.exchange.crawl_warcs import recording_to_warc
from letopis.exchange.imports import import_sources
from letopis.exchange.selection import ExportSelection
from letopis.exchange.wacz_export import export_wacz
from letopis.exchange.warc_records import page_id
from letopis.model import Observation, Outcome, Response, WholePage, rfc3339

PAGE, STYLE = "http://example.org/", "http://example.org/style.css"
POSTED = "http://example.org/search?__wb_method=POST&q=brno"
START = datetime(2026, 1, 1, tzinfo=UTC)
SENT = b"<!doctype html><title>Shell</title><div id=app></div>"
SHOWN = b"<!doctype html><title>Shell</title><div id=app>The price is 10 crowns.</div>"
PICTURE = b"RIFF....WEBPpicture"


def whole_page(day: int) -> Observation:
    at = START + timedelta(days=day)
    sent = Response(PAGE, PAGE, 200, (("Content-Type", "text/html"), ("X-Sent", "yes")), SENT, at)
    style = Response(STYLE, STYLE, 200, (("Content-Type", "text/css"),), b"p {}", at + timedelta(milliseconds=30))
    found = style._replace(url=POSTED, headers=(("Content-Type", "application/json"),), body=b'{"count": 3}')
    resources = tuple(Observation(one, Outcome.CHANGED) for one in (style, found))
    shown = sent._replace(headers=(("Content-Type", "text/html; charset=utf-8"),), body=SHOWN, as_sent=sent)
    return Observation(shown, Outcome.CHANGED, whole=WholePage(resources, (), PICTURE, "The price is 10 crowns."))


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "a") as opened:
        opened.record([whole_page(0)])
        opened.record([whole_page(1)])
        yield opened


def records_in(data: bytes) -> list[tuple[str, str, str, bytes, dict[str, str]]]:
    found = []
    for record in ArchiveIterator(io.BytesIO(data)):
        field = record.rec_headers.get_header
        http = dict(record.http_headers.headers) if record.http_headers else {}
        body = record.content_stream().read()
        found.append((record.rec_type, field("WARC-Target-URI") or "", field("WARC-Page-ID") or "", body, http))
    return found


def exported(archive: Archive) -> bytes:
    out = io.BytesIO()
    export_warc(archive, out, ExportSelection())
    return out.getvalue()


def test_the_response_is_what_the_server_sent_and_the_page_as_shown_its_conversion(archive: Archive) -> None:
    found = records_in(exported(archive))
    own = [(kind, body, http) for kind, url, _, body, http in found if url == PAGE]
    assert own[0][:2] == ("response", SENT)
    assert own[0][2]["X-Sent"] == "yes"
    assert own[1][:2] == ("conversion", SHOWN)
    assert own[2][0] == "revisit"


def test_a_set_is_told_under_the_addresses_that_other_tools_use(archive: Archive) -> None:
    found = records_in(exported(archive))
    mark = page_id(PAGE, rfc3339(START))
    of_set = {url: body for kind, url, page, body, _ in found if kind == "resource" and page == mark}
    assert of_set[f"urn:view:{PAGE}"] == PICTURE
    assert of_set[f"urn:text:{PAGE}"] == b"The price is 10 crowns."
    info = json.loads(of_set[f"urn:pageinfo:{PAGE}"])
    assert set(info["urls"]) == {PAGE, STYLE, POSTED}
    assert info["pageid"] == mark
    assert [page for kind, url, page, _, _ in found if (kind, url) == ("response", PAGE)] == [mark]
    assert {url for kind, url, *_ in found if kind == "response"} == {PAGE, STYLE, POSTED}


def test_two_exports_are_equal(archive: Archive) -> None:
    assert exported(archive) == exported(archive)


def test_a_wacz_lists_the_page_with_its_text_and_indexes_its_picture(archive: Archive, tmp_path: Path) -> None:
    target = tmp_path / "out.wacz"
    export_wacz(archive, target, ExportSelection())
    with zipfile.ZipFile(target) as package:
        pages = [json.loads(line) for line in package.read("pages/pages.jsonl").splitlines()[1:]]
        index = gzip.decompress(package.read("indexes/index.cdx.gz")).decode()
        data = package.read("archive/data-00000.warc.gz")
    assert [(page["url"], page["id"], page.get("text")) for page in pages] == [
        (PAGE, page_id(PAGE, rfc3339(START)), "The price is 10 crowns.")
    ]
    views = [line for line in index.splitlines() if line.startswith(f"urn:view:{PAGE} ")]
    assert len(views) == 2
    place = json.loads(views[0].split(" ", 2)[2])
    start, length = int(place["offset"]), int(place["length"])
    assert PICTURE in gzip.decompress(data[start : start + length])


def test_files_written_beside_a_crawl_have_the_sets_as_well(tmp_path: Path) -> None:
    with Archive(tmp_path / "b") as archive, recording_to_warc(archive, tmp_path / "warc"):
        archive.record([whole_page(0)])
    (file,) = (tmp_path / "warc").glob("*.warc.gz")
    kinds = [(kind, url) for kind, url, *_ in records_in(file.read_bytes())]
    assert ("resource", f"urn:view:{PAGE}") in kinds
    assert ("conversion", PAGE) in kinds
    assert ("response", POSTED) in kinds


def test_a_browsers_version_comes_back_with_what_the_server_sent(archive: Archive, tmp_path: Path) -> None:
    target = tmp_path / "out.warc.gz"
    target.write_bytes(exported(archive))
    with Archive(tmp_path / "c") as other:
        import_sources(other, [target])
        assert other.get(PAGE).body == SHOWN
        assert other.as_sent(other.get(PAGE)).body == SENT
        assert other.get(STYLE).body == b"p {}"
