"""What other tools say of looks at whole pages makes capture sets; what is wrong is named, and nothing is lost."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from foreign_warc import answer_block
from foreign_warc import record as written
from written_warc import export_warc

from letopis.archive import Archive
from letopis.exchange import page_looks
from letopis.exchange.imports import import_sources
from letopis.exchange.selection import ExportSelection
from letopis.exchange.sources import ImportReport
from letopis.exchange.warc_records import set_records

PAGE, STYLE, SHARED = "http://a.test/", "http://a.test/a.css", "http://a.test/shared.js"
PNG, JPEG = b"\x89PNG picture", b"\xff\xd8\xff thumbnail"


def at(second: int) -> str:
    return f"2024-03-01T12:{second // 60:02}:{second % 60:02}.000Z"


def answer(url: str, second: int, page: str = "", body: bytes = b"x") -> bytes:
    fields = (("WARC-Page-ID", page),) if page else ()
    return written("response", url, at(second), answer_block(body), *fields)


def made(scheme: str, second: int, body: bytes, url: str = PAGE) -> bytes:
    found = written("resource", f"urn:{scheme}:{url}", at(second), body)
    return found.replace(b"Content-Type: application/http; msgtype=response", b"Content-Type: application/x-test")


def info(page: str, urls: Any, second: int = 9, **more: Any) -> bytes:
    said = {"pageid": page, "url": PAGE, "ts": at(1), "urls": urls} | more
    return made("pageinfo", second, json.dumps(said).encode())


def brought(archive: Archive, folder: Path, *records: bytes, name: str = "x.warc") -> ImportReport:
    (folder / name).write_bytes(b"".join(records))
    return import_sources(archive, [folder / name])


def members_of(archive: Archive, url: str = PAGE) -> list[list[tuple[str, str]]]:
    return [[(one.url, f"{one.time:%M:%S}") for one in archive.sets.members(found)] for found in archive.sets.of(url)]


LISTED = {PAGE: {"status": 200}, STYLE: {"status": 200}, SHARED: {"status": 200}, "http://a.test/no": {"status": 0}}
BROWSERTRIX = (
    answer(SHARED, 0, "earlier"),
    answer(PAGE, 1, "p1"),
    answer(STYLE, 2, "p1"),
    made("text", 3, b"at first"),
    made("textFinal", 4, b"as shown"),
    made("thumbnail", 5, JPEG),
    made("view", 6, PNG),
    info("p1", LISTED),
)


CRAWLED, DRAWN = BROWSERTRIX[:3] + BROWSERTRIX[7:], BROWSERTRIX[3:7]


@pytest.mark.parametrize(
    "files", [(BROWSERTRIX,), (BROWSERTRIX[::-1],), (CRAWLED, DRAWN), (DRAWN, CRAWLED)],
    ids=["one file", "backwards", "pictures later", "pictures earlier"],
)  # fmt: skip
def test_a_crawl_of_browsertrix_brings_its_looks_in_whatever_order_and_files(
    tmp_path: Path, files: tuple[tuple[bytes, ...], ...]
) -> None:
    with Archive(tmp_path / "a") as archive:
        for number, records in enumerate(files):
            brought(archive, tmp_path, *records, name=f"{number}.warc")
        (found,) = archive.sets.of(PAGE)
        assert members_of(archive) == [[(STYLE, "00:02"), (SHARED, "00:00")]]
        assert (archive.sets.screenshot(found), archive.sets.text(found)) == (PNG, "as shown")
        assert archive.get(f"{PAGE}?__wb_record=urn:view").body == PNG
        again = brought(archive, tmp_path, *BROWSERTRIX)
        assert (again.checks, again.sets, len(archive.sets.of(SHARED))) == (0, 0, 0)


def test_what_came_in_goes_out_alone_and_makes_the_same_sets(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive, Archive(tmp_path / "b") as other:
        brought(archive, tmp_path, *BROWSERTRIX)
        out = io.BytesIO()
        export_warc(archive, out, ExportSelection(), "none")
        assert out.getvalue().count(b"WARC-Type: resource") == sum(b"Type: resource" in one for one in BROWSERTRIX)
        brought(other, tmp_path, out.getvalue())
        theirs, ours = (list(set_records(one, one.sets.of(PAGE)[0])) for one in (archive, other))
        assert (len(theirs), ours) == (3, theirs)


def test_ids_and_a_list_of_pages_are_enough(tmp_path: Path) -> None:
    line = {"id": "p1", "url": PAGE, "ts": at(1), "title": "A", "text": "as listed"}
    strange = [b"no json", b"[]", b'{"id": 5}', json.dumps({"id": "nobody", "url": STYLE}).encode()]
    with zipfile.ZipFile(tmp_path / "x.wacz", "w") as package:
        package.writestr(
            "archive/x.warc.gz", gzip.compress(answer(STYLE, 2, "p1")) + gzip.compress(answer(PAGE, 1, "p1"))
        )
        package.writestr("pages/pages.jsonl", b"\n".join([*strange, json.dumps(line).encode()]))
    with Archive(tmp_path / "a") as archive:
        assert import_sources(archive, [tmp_path / "x.wacz"]).sets == 1
        assert members_of(archive) == [[(STYLE, "00:02")]]
        assert archive.sets.text(archive.sets.of(PAGE)[0]) == "as listed"
        assert import_sources(archive, [tmp_path / "x.wacz"]).sets == 0


def test_texts_of_a_list_of_pages_are_held_in_bounds_and_damage_of_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_looks, "MOST_BYTES", 5)
    lines = [json.dumps({"id": url, "url": url, "ts": at(1), "text": "four"}).encode() for url in (PAGE, STYLE)]
    records = (answer(url, second, page) for page in (PAGE, STYLE) for url, second in ((page, 1), (SHARED, 2)))
    with zipfile.ZipFile(tmp_path / "x.wacz", "w") as package:
        package.writestr("archive/x.warc", b"".join(records))
        package.writestr("pages/pages.jsonl", b"\n".join(lines))
        package.writestr("pages/more.jsonl", b"damaged here")
    damaged = (tmp_path / "x.wacz").read_bytes().replace(b"damaged here", b"damaged HERE", 1)
    (tmp_path / "x.wacz").write_bytes(damaged)
    with Archive(tmp_path / "a") as archive:
        report = import_sources(archive, [tmp_path / "x.wacz"])
        assert report.refused["more texts of pages than an import holds"] == 1
        assert any("it is damaged" in reason for reason in report.refused)
        assert [archive.sets.of(url)[0].has_text for url in (PAGE, STYLE)] == [True, False]


def test_without_a_list_the_first_record_of_an_id_is_the_page(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        brought(archive, tmp_path, answer(STYLE, 2, "p1"), answer(PAGE, 1, "p1"))
        assert members_of(archive) == [[(STYLE, "00:02")]]


def entry(url: str, second: int, page: str) -> dict[str, Any]:
    content = {"text": "x", "size": 1, "mimeType": "text/html"}
    said = {"status": 200, "headers": [], "content": content}
    return {"pageref": page, "startedDateTime": at(second), "request": {"method": "GET", "url": url}, "response": said}


@pytest.mark.parametrize(("title", "page"), [(PAGE, PAGE), ("Welcome", SHARED)])
def test_the_pages_of_a_har_are_looks(tmp_path: Path, title: str, page: str) -> None:
    """Named by its address, as Chromium does, or by its title: then it is what was asked for first."""
    entries = [entry(STYLE, 2, "page_1"), entry(PAGE, 1, "page_1"), entry(SHARED, 0, "page_1"), entry(PAGE, 5, "gone")]
    pages = [{"id": "page_1", "title": title}, {"id": "page_1", "title": STYLE}, "no page", {"id": "empty"}]
    (tmp_path / "x.har").write_text(json.dumps({"log": {"pages": pages, "entries": entries}}))
    with Archive(tmp_path / "a") as archive:
        assert import_sources(archive, [tmp_path / "x.har"]).sets == 1
        (found,) = members_of(archive, page)
        assert sorted(url for url, _ in found) == sorted({STYLE, PAGE, SHARED} - {page})


WRONG = {
    "no JSON": (made("pageinfo", 9, b"{"), "an unreadable list of the resources of a page"),
    "deep JSON": (made("pageinfo", 9, b"[" * 100_000), "an unreadable list of the resources of a page"),
    "no object": (made("pageinfo", 9, b'{"urls": [1]}'), "an unreadable list of the resources of a page"),
    "a page that is not here": (info("p9", {STYLE: 200, "http://b.test/": 200}, url="http://b.test/"), "capture"),
    "no picture": (made("view", 6, b"<script>"), "a page picture that is not an image"),
    "an id that is used twice": (info("p1", LISTED, 8, ts=at(4)), "an id of a page that is used twice"),
    "times and values of no kind": (info("p1", {PAGE: [], STYLE: None, "data:x": 1, "": 0}, 8, ts=[1]), "twice"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_what_is_said_wrongly_is_named_and_kept_and_the_rest_comes_in(tmp_path: Path, fault: str) -> None:
    wrong, reason = WRONG[fault]
    sound = (answer(PAGE, 1, "p1"), answer(STYLE, 2, "p1"), info("p1", LISTED, 7))
    with Archive(tmp_path / "a") as archive:
        report = brought(archive, tmp_path, *sound, wrong)
        assert any(reason in one for one in report.refused), dict(report.refused)
        assert members_of(archive)[0] == [(STYLE, "00:02")]
        out = io.BytesIO()
        export_warc(archive, out, ExportSelection(), "none")
        assert all(one in out.getvalue() for one in (*sound, wrong))
        assert list(archive.verify()) == []


def test_a_time_that_contradicts_the_records_gives_way_to_theirs(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        brought(archive, tmp_path, answer(PAGE, 1, "p1"), info("p1", {PAGE: 200}, ts="1970-01-01T00:00:00Z"))
        brought(archive, tmp_path, answer(PAGE, 30), info("p2", {PAGE: 200}, 40, ts="9999-12-31T23:59:59Z"))
        assert [f"{one.time:%M:%S}" for one in archive.sets.of(PAGE)] == ["00:01", "00:30"]


def test_a_picture_belongs_to_the_look_before_it(tmp_path: Path) -> None:
    looks = [(answer(PAGE, n, f"p{n}"), info(f"p{n}", {PAGE: 200}, n + 1, ts=at(n))) for n in (10, 20)]
    with Archive(tmp_path / "a") as archive:
        brought(archive, tmp_path, made("view", 22, PNG), *looks[0], *looks[1])
        assert [one.has_screenshot for one in archive.sets.of(PAGE)] == [False, True]


def test_a_million_members_are_bounded_and_named(tmp_path: Path) -> None:
    urls = {f"http://a.test/{n}": {"ts": at(1)} for n in range(100_000)}
    with Archive(tmp_path / "a") as archive:
        report = brought(archive, tmp_path, answer(PAGE, 1, "p1"), info("p1", urls))
        assert report.refused["more than 10000 resources of one page"] == 1
        assert archive.sets.of(PAGE)[0].members == page_looks.MOST_MEMBERS


def test_as_many_looks_as_a_file_may_name_are_held_in_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_looks, "MOST_LOOKS", 4)
    monkeypatch.setattr(page_looks, "MOST_HELD", 20)
    monkeypatch.setattr("letopis.exchange.captures.BATCH_CAPTURES", 8)
    pages = [f"http://a.test/page-{n}" for n in range(40)]
    records = [one for n, url in enumerate(pages) for one in (answer(url, n, url), answer(STYLE, n, url))]
    pictures = [made("view", n, PNG, url) for n, url in enumerate(pages)]
    with Archive(tmp_path / "a") as archive:
        report = brought(archive, tmp_path, *records, *pictures)
        assert (report.sets, len(report.looks.open), len(report.looks.made)) == (40, 0, 0)
        assert all(archive.sets.of(url)[0].has_screenshot for url in pages)
