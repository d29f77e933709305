"""What Letopis itself asked, and whom: kept with each capture, exported beside it, brought in again."""

from __future__ import annotations

import io
import json
import socketserver
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_damage import overwrite_page, page_of
from replica_world import Replica
from scripted_site import ScriptedSite
from static_site import static_site
from warcio.archiveiterator import ArchiveIterator
from written_warc import export_warc

from letopis import Archive, Monitor
from letopis.archive.requests import PageReference, RequestReference, address_code, address_text
from letopis.config import CrawlSettings, FetchSettings, MonitorSettings, Settings
from letopis.errors import Damaged
from letopis.exchange.crawl_warcs import recording_to_warc
from letopis.exchange.imports import import_sources
from letopis.exchange.selection import ExportSelection
from letopis.exchange.wacz_export import export_wacz
from letopis.model import Headers

SECRET = "do-not-keep-me"
SETTINGS = Settings(
    crawl=CrawlSettings(delay=0),
    monitor=MonitorSettings(min_interval=0),
    fetch=FetchSettings(headers=("X-Team: " + SECRET, "Accept-Language: cs")),
)


class RawSite:
    """A server that keeps each request as it came over the wire; `answers` are given out by path."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.answers = {"/robots.txt": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"}
        site = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                head = b""
                while not head.endswith(b"\r\n\r\n") and (line := self.rfile.readline()):
                    head += line
                if b"/robots.txt" not in head:
                    site.requests.append(head)
                self.wfile.write(site.answers[head.split()[1].decode()])

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def set(self, path: str, body: bytes, status: str = "200 OK", *fields: str) -> str:
        lines = [f"HTTP/1.1 {status}", "Content-Type: text/html", f"Content-Length: {len(body)}", "Connection: close"]
        self.answers[path] = "\r\n".join([*lines, *fields]).encode() + b"\r\n\r\n" + body
        return self.url(path)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def raw_site() -> Iterator[RawSite]:
    site = RawSite()
    yield site
    site.close()


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "a", settings=SETTINGS) as opened:
        yield opened


def check(archive: Archive, url: str, **options: Any) -> None:
    with Monitor(archive) as monitor:
        monitor.look([url], monitor.options._replace(now=True, **options))


class Judged(NamedTuple):
    """A record as warcio reads it."""

    kind: str
    fields: dict[str, str]
    line: str
    http: Headers
    body: bytes


def judged(data: bytes) -> list[Judged]:
    found = []
    for record in ArchiveIterator(io.BytesIO(data), check_digests="raise"):
        head = record.http_headers
        http = tuple(head.headers) if head else ()
        body = record.content_stream().read()
        found.append(
            Judged(record.rec_type, dict(record.rec_headers.headers), head.statusline if head else "", http, body)
        )
    return found


def exported(archive: Archive) -> bytes:
    out = io.BytesIO()
    export_warc(archive, out, ExportSelection())
    return out.getvalue()


def requests_in(data: bytes) -> list[Judged]:
    return [one for one in judged(data) if one.kind == "request"]


def as_sent(request: bytes, *without: str) -> tuple[str, Headers]:
    first, *lines = request.decode("latin-1").strip().split("\r\n")
    fields = tuple(line.partition(": ")[::2] for line in lines)
    return first, tuple(field for field in fields if field[0] not in without)


def test_the_request_is_exported_as_it_went_out_beside_its_answer(archive: Archive, raw_site: RawSite) -> None:
    url = raw_site.set("/a?b=%20c", b"one")
    check(archive, url)
    data = exported(archive)
    (request,) = requests_in(data)
    (answer,) = (one for one in judged(data) if one.kind == "response")
    # warcio gives the first line without its method.
    assert (f"GET {request.line}", request.http) == as_sent(raw_site.requests[0], "X-Team")
    assert request.fields["WARC-Concurrent-To"] == answer.fields["WARC-Record-ID"]
    assert request.fields["WARC-Target-URI"] == answer.fields["WARC-Target-URI"] == url
    assert request.fields["WARC-Date"] == answer.fields["WARC-Date"]
    assert request.fields["WARC-IP-Address"] == answer.fields["WARC-IP-Address"] == "127.0.0.1"
    assert ("Accept-Language", "cs") in request.http


def test_what_may_prove_who_asks_is_never_kept(archive: Archive, raw_site: RawSite, tmp_path: Path) -> None:
    url = raw_site.set("/", b"one", "200 OK", f"Set-Cookie: sid={SECRET}")
    headers = (("Authorization", SECRET), ("Cookie", SECRET), ("X-Anything", SECRET), ("Proxy-Authorization", SECRET))
    check(archive, url, headers=(*headers, ("Accept", "text/plain")))
    raw_site.set("/", b"two")
    check(archive, url, headers=(*headers, ("Accept", "text/plain")))
    assert all(SECRET.encode() in one for one in raw_site.requests)
    for request in requests_in(exported(archive)):
        assert {name for name, _ in request.http} == {
            "Host",
            "User-Agent",
            "Accept",
            "Accept-Language",
            "Accept-Encoding",
        }
    archive.catalog.database.close()
    stored = b"".join(file.read_bytes() for file in (tmp_path / "a").glob("catalogue*"))
    assert stored.count(SECRET.encode()) <= 1  # the cookie, in the headers of the answer that set it


def test_conditions_are_those_that_were_sent_whatever_the_answer_repeats(archive: Archive, raw_site: RawSite) -> None:
    dated = "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT"
    url = raw_site.set("/", b"one", "200 OK", 'ETag: "1"', dated)
    check(archive, url)
    raw_site.set("/", b"", "304 Not Modified", 'ETag: "1"')
    check(archive, url)
    raw_site.set("/", b"two", "200 OK", 'ETag: "2"', dated)
    check(archive, url)
    found = requests_in(exported(archive))
    assert [(f"GET {one.line}", one.http) for one in found] == [as_sent(one, "X-Team") for one in raw_site.requests]
    assert [len(dict(one.http).keys() & {"If-None-Match", "If-Modified-Since"}) for one in found] == [0, 2, 2]


def test_the_request_behind_a_redirect_is_that_for_the_last_address(archive: Archive, raw_site: RawSite) -> None:
    url = raw_site.set("/old", b"", "302 Found", "Location: /new?x=1")
    raw_site.set("/new?x=1", b"here")
    check(archive, url)
    (request,) = requests_in(exported(archive))
    assert request.line == "/new?x=1 HTTP/1.1"
    assert request.fields["WARC-Target-URI"] == url


def test_revisits_errors_and_heads_have_their_requests_too(archive: Archive, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/", b"one", ETag='"1"')
    check(archive, url)
    check(archive, url, head=True)
    scripted_site.set("/", b"gone", status=410)
    check(archive, url)
    records = judged(exported(archive))
    kinds = [one.kind for one in records if one.kind != "metadata"]
    assert kinds == ["warcinfo", "response", "request", "revisit", "request", "response", "request"]
    methods = [bytes(data).split(b" ", 1)[0] for data in _raw_requests(exported(archive))]
    assert methods == [b"GET", b"HEAD", b"GET"]


def _raw_requests(data: bytes) -> list[bytes]:
    return [
        one.raw_stream.read()
        for one in ArchiveIterator(io.BytesIO(data), no_record_parse=True)
        if one.rec_type == "request"
    ]


def test_an_import_of_an_export_keeps_requests_and_addresses(
    archive: Archive, raw_site: RawSite, tmp_path: Path
) -> None:
    url = raw_site.set("/", b"one", "200 OK", 'ETag: "1"')
    check(archive, url)
    raw_site.set("/", b"", "304 Not Modified")
    check(archive, url)
    check(archive, url, head=True)
    before = exported(archive)
    file = tmp_path / "export.warc.gz"
    file.write_bytes(before)
    with Archive(tmp_path / "b") as second:
        report = import_sources(second, [file])
        assert dict(report.refused) == {}
        assert [check.url for check in second.history(url)] == [url] * 3
        assert exported(second) == before


def test_revisits_that_wait_for_their_capture_keep_their_requests(
    archive: Archive, raw_site: RawSite, tmp_path: Path
) -> None:
    url = raw_site.set("/", b"one", "200 OK", 'ETag: "1"')
    check(archive, url)
    raw_site.set("/", b"", "304 Not Modified")
    check(archive, url)
    before = exported(archive)
    first, second, *rest = _members(before)
    with Archive(tmp_path / "b") as other:
        for name, members in (("late", rest[1:]), ("early", [second, rest[0]])):
            file = tmp_path / f"{name}.warc.gz"
            file.write_bytes(first + b"".join(members))
            import_sources(other, [file])
        assert exported(other) == before


def _members(data: bytes) -> list[bytes]:
    reader = ArchiveIterator(io.BytesIO(data))
    places = []
    for _ in reader:
        offset = reader.get_record_offset()
        reader.read_to_end()
        places.append((offset, reader.get_record_length()))
    return [data[offset : offset + length] for offset, length in places]


def test_clones_have_requests_and_pages_under_numbers_of_their_own(
    archive: Archive, scripted_site: ScriptedSite, tmp_path: Path
) -> None:
    url = _with_requisites(archive, scripted_site)
    with static_site(tmp_path / "published") as site:
        world = Replica(tmp_path, archive, site)
        world.publish()
        world.clone()
        scripted_site.set("/style.css", b"p { color: red }", Content_Type="text/css", ETag='"2"')
        check(archive, url, requisites=True)
        world.publish()
        world.pull()
    with Archive(tmp_path / "copy") as copy:
        wanted = {json.dumps([one.fields, one.http]) for one in requests_in(exported(archive))}
        assert {json.dumps([one.fields, one.http]) for one in requests_in(exported(copy))} == wanted
        assert len(wanted) == 6


def _with_requisites(archive: Archive, site: ScriptedSite) -> str:
    site.set("/style.css", b"p {}", Content_Type="text/css", ETag='"1"')
    site.set("/a.png", b"picture", Content_Type="image/png")
    url = site.set("/", b"<link rel=stylesheet href=/style.css><img src=/a.png>")
    check(archive, url, requisites=True)
    return url


def test_members_of_a_set_name_their_page_and_have_their_requests(
    archive: Archive, scripted_site: ScriptedSite, tmp_path: Path
) -> None:
    with recording_to_warc(archive, tmp_path / "warc"):
        url = _with_requisites(archive, scripted_site)
    (beside,) = (tmp_path / "warc").iterdir()
    export_wacz(archive, tmp_path / "all.wacz", ExportSelection())
    with zipfile.ZipFile(tmp_path / "all.wacz") as package:
        (name,) = (one for one in package.namelist() if one.endswith(".warc.gz"))
        packed = package.read(name)
        page = json.loads(package.read("pages/pages.jsonl").splitlines()[1])
    for data in (exported(archive), beside.read_bytes(), packed):
        records = [one for one in judged(data) if one.kind in ("response", "request")]
        assert len(records) == 6
        assert {one.fields["WARC-Page-ID"] for one in records} == {page["id"]}
        assert {one.fields["WARC-IP-Address"] for one in records} == {"127.0.0.1"}
    assert page["url"] == url
    file = tmp_path / "export.warc.gz"
    file.write_bytes(exported(archive))
    with Archive(tmp_path / "b") as second:
        import_sources(second, [file])
        again = judged(exported(second))
    assert _exchanges(again) == _exchanges(judged(file.read_bytes()))


def _exchanges(records: list[Judged]) -> set[str]:
    return {json.dumps(one[:4]) for one in records if one.kind in ("response", "request")}


def test_requests_survive_repair_of_a_damaged_catalogue(archive: Archive, raw_site: RawSite, tmp_path: Path) -> None:
    url = raw_site.set("/", b"one")
    check(archive, url)
    before = exported(archive)
    archive.close()
    overwrite_page(tmp_path / "a" / "catalogue.sqlite", page_of(tmp_path / "a" / "catalogue.sqlite", "resource_url"))
    Archive.repair(replace(SETTINGS, archive=replace(SETTINGS.archive, path=str(tmp_path / "a"))))
    with Archive(tmp_path / "a") as mended:
        assert list(mended.verify()) == []
        assert exported(mended) == before


def test_a_request_costs_some_twenty_bytes_of_the_catalogue(archive: Archive, raw_site: RawSite) -> None:
    for number in range(40):
        check(archive, raw_site.set(f"/{number}", b"page %d" % number))
    rows = archive.catalog.database.all("SELECT extra FROM version")
    assert len(rows) == 40
    assert all(len(extra) <= 22 for (extra,) in rows)
    assert archive.catalog.database.one("SELECT count(*) FROM head") == (3,)  # two lengths of answers, one request


def test_a_condition_quotes_the_version_before_instead_of_repeating_it(archive: Archive, raw_site: RawSite) -> None:
    tags = [f'ETag: "{number:064x}"' for number in range(3)]
    url = raw_site.url("/")
    for number, (tag, status) in enumerate(zip(tags, ("200 OK", "200 OK", "500 Oops"), strict=True)):
        raw_site.set("/", b"page %d" % number, status, tag)
        check(archive, url)
    found = requests_in(exported(archive))
    assert [as_sent(one, "X-Team") for one in raw_site.requests] == [(f"GET {one.line}", one.http) for one in found]
    assert [dict(one.http).get("If-None-Match") for one in found] == [None, tags[0][6:], tags[1][6:]]
    rows = archive.catalog.database.all("SELECT extra FROM version UNION ALL SELECT extra FROM capture")
    assert not any("0" * 30 in extra for (extra,) in rows)


def test_a_request_that_quotes_what_is_lost_is_not_told(archive: Archive, raw_site: RawSite) -> None:
    url = raw_site.set("/", b"one", "200 OK", 'ETag: "first of its kind"')
    check(archive, url)
    raw_site.set("/", b"two", "200 OK", 'ETag: "second"')
    check(archive, url)
    with archive.catalog.database.transaction() as cursor:
        cursor.run("DELETE FROM head WHERE id = (SELECT head FROM version WHERE number = 0)")
    found = [exchange.request(()) for exchange in archive.answers.exchanges(url).values()]
    assert [one.method for one in found if one is not None] == ["GET"]


_QUOTES = st.lists(st.text(max_size=9) | st.integers(1, 2**40), max_size=4).map(tuple)


@given(st.builds(RequestReference, st.integers(0, 2**40), st.integers(0, 2**32 - 1) | st.just("::1"), _QUOTES))
def test_a_request_is_read_as_it_was_stored(reference: RequestReference) -> None:
    assert RequestReference.of_stored(reference.stored()) == reference
    assert RequestReference.of_stored(reference.values()) == reference


@pytest.mark.parametrize("kept", ["", "f", "fwAA", "?", "fwAAAf8", [1], [1, 0, None], [1, 0, -1]])
def test_a_damaged_request_is_refused(kept: Any) -> None:
    with pytest.raises((ValueError, Damaged)):
        RequestReference.of_stored(kept)


@pytest.mark.parametrize("text", ["93.184.216.34", "2606:2800:220:1::1", "::1", ""])
def test_addresses_come_back_as_they_were(text: str) -> None:
    assert address_text(address_code(text)) == text


@pytest.mark.parametrize("values", [[], [1], [-1, 0], [1, 2**32], [1, "a b"], [1, 0, 5], ["1", 0], [True, 0]])
def test_a_request_that_somebody_else_wrote_wrongly_is_refused(values: list[Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        RequestReference.of_values(values)


@pytest.mark.parametrize("values", [[1], [1, "0"], [-1, 5], [1, 2**70]])
def test_a_page_that_somebody_else_named_wrongly_is_refused(values: list[Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        PageReference.of_values(values)
