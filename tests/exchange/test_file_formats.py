"""Sessions of browsers, saved pages and lists of addresses come in, and go out where that makes sense."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from growth import grows_with_the_square
from lxml import etree
from served_archive import Answer, running
from warcio.archiveiterator import ArchiveIterator
from written_warc import export_warc

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.cli.main import main
from letopis.config import ServeSettings, Settings
from letopis.errors import UsageError
from letopis.exchange import sources
from letopis.exchange.address_lists import LIST_READERS
from letopis.exchange.imports import import_sources, source_kind, watches_of_source
from letopis.exchange.saved_pages import PAGE_READERS
from letopis.exchange.selection import ExportSelection
from letopis.exchange.sources import ImportedWatch, ImportReport, SourceHints
from letopis.model import to_millis
from letopis.monitor.watch_list import WatchList
from letopis_migrate.readers import DISTILL, URLWATCH, VISUALPING

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
HAR = CORPUS / "har" / "session.har"
MHTML = CORPUS / "mhtml" / "page.mhtml"
SINGLE = CORPUS / "mhtml" / "single-file.html"


def imported(folder: Path, *files: Path) -> Archive:
    archive = Archive(folder / "archive")
    report = import_sources(archive, files)
    assert report.empty == []
    return archive


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        (HAR, "har"),
        (MHTML, "mhtml"),
        (SINGLE, "singlefile"),
        (CORPUS / "lists" / "feeds.opml", "opml"),
        (CORPUS / "lists" / "bookmarks.html", "bookmarks"),
        (CORPUS / "lists" / "list.txt", "urls"),
        (CORPUS / "lists" / "sitemap.xml", "sitemap"),
        (CORPUS / "lists" / "sitemaps.xml", "sitemap"),
        (CORPUS / "watch-lists" / "urls.yaml", "urlwatch"),
        (CORPUS / "cdxj" / "eleven.cdx", "cdxj"),
    ],
)
def test_a_format_is_seen_whatever_the_file_is_called(file: Path, kind: str, tmp_path: Path) -> None:
    assert source_kind(str(file)) == kind
    other = tmp_path / ("other.yaml" if kind == "urlwatch" else "other")
    other.write_bytes(b"\xef\xbb\xbf" + file.read_bytes() if kind not in ("mhtml", "cdxj") else file.read_bytes())
    assert source_kind(str(other)) == kind
    other.write_bytes(gzip.compress(file.read_bytes()))
    assert source_kind(str(other)) == kind


def test_a_har_brings_answers_with_their_requests_and_tells_what_it_lacks(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [HAR])
        page = archive.get("https://example.org/")
        assert page.body == "<title>Привет</title>".encode("windows-1251")
        [check] = archive.history("https://example.org/")
        assert check.checked_at.isoformat() == "2024-03-01T12:00:00.250000+00:00"
        assert [value for name, value in check.headers if name == "set-cookie"] == ["a=1", "b=2"]
        posted = archive.get("https://example.org/search?__wb_method=POST&q=x")
        assert json.loads(posted.body) == {"found": 1}
        [failed] = archive.history("https://gone.example/")
        assert (failed.status, failed.error) == (0, "net::ERR_NAME_NOT_RESOLVED")
        assert dict(report.refused) == {
            "its body is not in the file; save the file with contents": 1,
            "no web address (http or https)": 1,
        }


def test_what_a_har_brought_goes_out_as_warc_with_request_and_address(tmp_path: Path) -> None:
    out = io.BytesIO()
    with imported(tmp_path, HAR) as archive:
        export_warc(archive, out, ExportSelection())
    records = [
        (one.rec_type, one.rec_headers.get_header("WARC-Target-URI"), one.rec_headers.get_header("WARC-IP-Address"),
         one.content_stream().read())
        for one in ArchiveIterator(io.BytesIO(out.getvalue()), check_digests="raise")
    ]  # fmt: skip
    assert ("response", "https://example.org/", "192.0.2.7", "<title>Привет</title>".encode("windows-1251")) in records
    assert ("request", "https://example.org/search", None, b"q=x") in records
    (tmp_path / "again.warc.gz").write_bytes(out.getvalue())
    with Archive(tmp_path / "again") as again:
        import_sources(again, [tmp_path / "again.warc.gz"])
        twice = io.BytesIO()
        export_warc(again, twice, ExportSelection())
        [check] = again.history("https://example.org/")
        assert ("content-encoding", "gzip") in check.headers
    assert sorted(_payloads(twice)) == sorted(_payloads(out))


def _payloads(file: io.BytesIO) -> list[tuple[str, str, bytes]]:
    file.seek(0)
    return [
        (one.rec_type, one.rec_headers.get_header("WARC-Record-ID"), one.raw_stream.read())
        for one in ArchiveIterator(file, no_record_parse=True)
    ]


def test_half_a_character_in_json_comes_in_as_the_sign_for_what_cannot_be_read(tmp_path: Path) -> None:
    har = json.loads(HAR.read_bytes())
    entry = har["log"]["entries"][0]
    entry["request"]["url"] = "https://half.example/\ud800"
    entry["response"]["headers"] = [{"name": "x-half", "value": "a\udfffb \U0001f4a9 \\ud800"}]
    (tmp_path / "half.har").write_text(json.dumps(har))
    with Archive(tmp_path / "archive") as archive:
        import_sources(archive, [tmp_path / "half.har"])
        [check] = archive.history("https://half.example/\ufffd")
        assert dict(check.headers)["x-half"] == "a\ufffdb \U0001f4a9 \\ud800"
        export_warc(archive, io.BytesIO(), ExportSelection())


def test_a_har_that_went_out_comes_in_again_as_it_was(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with imported(tmp_path, HAR):
        pass
    assert main(["--archive", str(tmp_path / "archive"), "export", "har"]) == 0
    har = json.loads(capfdbinary.readouterr().out)
    assert [entry["request"]["method"] for entry in har["log"]["entries"]] == ["GET", "POST"]
    assert har["log"]["entries"][1]["request"]["postData"]["text"] == "q=x"
    (tmp_path / "out.har").write_text(json.dumps(har))
    with Archive(tmp_path / "again") as again, Archive(tmp_path / "archive") as first:
        import_sources(again, [tmp_path / "out.har"])
        for url in ("https://example.org/", "https://example.org/search?__wb_method=POST&q=x"):
            assert again.get(url).body == first.get(url).body
            assert [check.headers for check in again.history(url)] == [check.headers for check in first.history(url)]
            assert [check.checked_at for check in again.history(url)] == [
                check.checked_at for check in first.history(url)
            ]


def test_an_mhtml_brings_every_part_that_has_an_address(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [MHTML])
        assert "café" in archive.get("https://example.org/story").body.decode()
        assert archive.get("https://example.org/dot.gif").body.startswith(b"GIF89a")
        assert {check.checked_at.isoformat() for check in archive.history("https://example.org/story")} == {
            "2024-03-01T12:00:00+00:00"
        }
        assert dict(report.refused) == {"a part without a web address": 1}
        (found,) = archive.sets.of("https://example.org/story")
        assert [member.url for member in archive.sets.members(found)] == ["https://example.org/dot.gif"]


def test_a_file_of_singlefile_is_the_page_at_the_time_it_was_saved(tmp_path: Path) -> None:
    with imported(tmp_path, SINGLE) as archive:
        [check] = archive.history("https://example.org/kept?a=1")
        assert check.checked_at.isoformat() == "2024-03-01T12:00:00+00:00"
        assert archive.get("https://example.org/kept?a=1").body == SINGLE.read_bytes()


LISTS: dict[str, list[ImportedWatch]] = {
    "feeds.opml": [
        ImportedWatch("https://example.org/feed?a=1&b=2", tag="Press"),
        ImportedWatch("https://example.org/deep.xml", tag="Deep"),
        ImportedWatch("https://example.net/page"),
    ],
    "bookmarks.html": [
        ImportedWatch("https://example.org/?a=1&b=2", tag="Toolbar"),
        ImportedWatch("http://example.net/law", tag="Law & order"),
        ImportedWatch("https://example.com/last"),
    ],
    "list.txt": [
        ImportedWatch("https://example.org/one"),
        ImportedWatch("https://example.org/two"),
        ImportedWatch("http://example.net/three"),
    ],
    "sitemap.xml": [ImportedWatch("https://example.org/one"), ImportedWatch("https://example.org/two?a=1&b=2")],
    "sitemaps.xml": [ImportedWatch("https://example.org/sitemap-1.xml", is_sitemap=True)],
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_name_pages_with_their_folders_as_tags(name: str) -> None:
    assert list(watches_of_source(str(CORPUS / "lists" / name), None, SourceHints())) == LISTS[name]


def test_lists_of_other_watchers_keep_intervals_selectors_and_pauses() -> None:
    folder = CORPUS / "watch-lists"
    assert DISTILL.recognises(folder / "distill.json")
    assert list(DISTILL.watches(folder / "distill.json", SourceHints())) == [
        ImportedWatch(
            "https://example.org/shop", 21600.0, (("css", "#price"), ("xpath", "//h1"), ("remove", ".ad")), "shop",
            left_out=("exclusion by xpath",),
        ),
        ImportedWatch("https://example.org/feed"),
    ]  # fmt: skip
    tenders = ImportedWatch("https://example.org/tender", 3600.0, (("xpath", "//main"),))
    assert VISUALPING.recognises(folder / "visualping.json")
    assert list(VISUALPING.watches(folder / "visualping.json", SourceHints())) == [
        ImportedWatch(tenders.url, tenders.every, tenders.filters, left_out=("crop",)),
        ImportedWatch("https://example.net/", 86400.0, (("css", "#news"),), paused=True),
    ]
    assert VISUALPING.recognises(folder / "visualping.csv")
    assert list(VISUALPING.watches(folder / "visualping.csv", SourceHints())) == [
        tenders,
        ImportedWatch("https://example.net/", 86400.0, paused=True),
    ]
    assert URLWATCH.lists_only(folder / "urls.yaml")
    assert list(URLWATCH.watches(folder / "urls.yaml", SourceHints())) == [
        ImportedWatch("https://example.org/news", None, (("css", "main"),)),
        ImportedWatch("command://date"),
        ImportedWatch("https://example.org/app", paused=True, left_out=("browser",)),
    ]


def test_a_list_is_watched_or_crawled_and_says_so_otherwise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--archive", str(tmp_path / "a"), "--json", "import", str(CORPUS / "lists" / "bookmarks.html")]
    assert main(words) == 2
    assert "list of addresses; add --watches" in capsys.readouterr().err
    assert main([*words, "--watches"]) == 0
    assert json.loads(capsys.readouterr().out)["watches"] == 3
    with Archive(tmp_path / "a") as archive:
        watched = {entry.watch.url: entry.watch.tag for entry in WatchList(archive).entries()}
    assert watched == {
        "https://example.org/?a=1&b=2": "Toolbar", "http://example.net/law": "Law & order",
        "https://example.com/last": "",
    }  # fmt: skip
    assert main([*words, "--seeds", "page"]) == 0
    assert json.loads(capsys.readouterr().out)["queued"] == 3


@pytest.mark.parametrize("charset", ["utf-16", "utf-16-le", "utf-8-sig"])
def test_a_list_may_be_in_any_charset_that_editors_write(charset: str, tmp_path: Path) -> None:
    text = "# my pages\r\nhttps://example.org/one\r\nhttps://example.org/žluť\r\n"
    mark = codecs.BOM_UTF16_LE if charset == "utf-16-le" else b""
    (tmp_path / "pages").write_bytes(mark + text.encode(charset))
    found = [one.url for one in watches_of_source(str(tmp_path / "pages"), None, SourceHints())]
    assert found == ["https://example.org/one", "https://example.org/žluť"]


def test_what_is_no_list_is_told_how_to_become_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pages.txt").write_text("example.org\nwww.example.net/page\n")
    words = ["--archive", str(tmp_path / "a"), "import", str(tmp_path / "pages.txt"), "--watches"]
    assert main(words) == 2
    assert "write one https:// address a line" in capsys.readouterr().err
    assert main([*words, "--kind", "urls"]) == 0


def test_a_sentence_in_a_list_is_a_fault_and_no_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pages.txt").write_text("https://example.org/one the first\nnot a url\nintranet\n")
    assert main(["--archive", str(tmp_path / "a"), "import", str(tmp_path / "pages.txt"), "--watches"]) == 0
    assert "1 fault, 2 watches" in capsys.readouterr().out
    with Archive(tmp_path / "a") as archive:
        found = {entry.watch.url for entry in WatchList(archive).entries()}
    assert found == {"https://example.org/one", "http://intranet/"}


def test_lists_that_went_out_come_in_again(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    urls = ["http://example.org/?a=1&b=%22%3C", "http://example.net/page"]
    with Archive(tmp_path / "a") as archive:
        for url in urls:
            archive.put(url, b"<p>one</p>")
    for kind in ("urls", "opml", "bookmarks"):
        assert main(["--archive", str(tmp_path / "a"), "export", kind]) == 0
        (tmp_path / kind).write_bytes(capfdbinary.readouterr().out)
        assert source_kind(str(tmp_path / kind)) == kind
        assert [one.url for one in watches_of_source(str(tmp_path / kind), None, SourceHints())] == urls
    assert etree.parse(tmp_path / "opml").getroot().get("version") == "2.0"


BROKEN: dict[str, bytes] = {
    "no-entries.har": b'{"log": {"entries": 3}}',
    "cut.har": b'{"log": {"entries": [{"request": ',
    "date-beyond-all-numbers.mhtml": (
        b"Date: Mon, 1 Jan 99999999999999999999 00:00:00 GMT\r\n"
        b"Content-Type: multipart/related; boundary=x\r\n\r\n--x\r\n\r\nbody\r\n--x--\r\n"
    ),
    "no-date.mhtml": b"Content-Type: multipart/related; boundary=x\r\n\r\n--x\r\n\r\nbody\r\n--x--\r\n",
    "no-url.html": b"<!--\n Page saved with SingleFile \n saved date: never\n-->",
    "no-time.html": b"<!--\n Page saved with SingleFile \n url: https://example.org/ \n saved date: never\n-->",
    "empty.opml": b"<opml version='2.0'>",
    "empty.txt": b"# http nothing\nhttps://\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_an_error_that_says_what_to_do(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(BROKEN[name])
    words = ["--watches"] if name.startswith("empty") else []
    assert main(["--archive", str(tmp_path / "a"), "import", str(tmp_path / name), *words]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert ";" in said.splitlines()[-1], said


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_READ", 1000)
    (tmp_path / "bomb.har").write_bytes(gzip.compress(b'{"log": {"entries": [' + b" " * 5000))
    with pytest.raises(UsageError, match="larger than"):
        sources.read_whole(tmp_path / "bomb.har", 1000)


_PARTS = b"Date: Fri, 1 Mar 2024 12:00:00 GMT\nContent-Type: multipart/related; %sboundary=x\n\n"
_SINGLE_FILE = b"<!-- Page saved with SingleFile\nurl: https://example.org/\nsaved date: "
HOSTILE: dict[str, Callable[[int], bytes]] = {
    "empty lines.html": lambda n: _SINGLE_FILE + b"never\n.\n" + b"\n" * n + b"-->",
    "blanks.html": lambda n: _SINGLE_FILE + b"never" + b" " * n + b"again\n-->",
    "semicolons.mhtml": lambda n: _PARTS % (b'a="' + b";" * n + b'"; ') + b"--x\n\nbody\n--x--\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_time_to_read_a_hostile_saved_page_grows_with_its_size(name: str, tmp_path: Path) -> None:
    file = tmp_path / name

    def read(data: bytes) -> None:
        file.write_bytes(data)
        for reader in PAGE_READERS:
            try:
                list(reader.captures(file, SourceHints(), ImportReport(), lambda url: False))
            except UsageError:
                continue

    assert not grows_with_the_square(read, HOSTILE[name], 4_000)


def test_comments_before_the_root_of_a_list_cost_what_they_are_long(tmp_path: Path) -> None:
    file = tmp_path / "page.html"

    def seen(data: bytes) -> None:
        file.write_bytes(data)
        assert not any(reader.recognises(file) for reader in LIST_READERS)

    assert not grows_with_the_square(seen, lambda n: b"<!-- -->" * n + b"<html>", 5)


def test_parts_of_an_mhtml_inside_others_are_taken_in_and_a_line_like_a_mark_is_text(tmp_path: Path) -> None:
    inner = b"--y\r\nContent-Location: http://a.test/1\r\n\r\none\r\n--yes\r\ntwo\r\n--y--\r\n"
    outer = b"--x\r\nContent-Type: multipart/alternative;\r\n boundary=y\r\n\r\n" + inner
    last = b"\r\n--x\r\nContent-Location: http://a.test/2\r\n\r\n--x--\r\n"
    file = tmp_path / "page.mhtml"
    file.write_bytes(_PARTS % b"" + outer + last + b"--x\r\nContent-Location: http://a.test/3\r\n\r\nafter the end")
    found = PAGE_READERS[0].captures(file, SourceHints(), ImportReport(), lambda url: False)
    assert [(one.url, one.body) for one in found] == [
        ("http://a.test/1", b"one\r\n--yes\r\ntwo"), ("http://a.test/2", b""),
    ]  # fmt: skip


def test_an_import_reads_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(HAR.read_bytes())))
    assert main(["--archive", str(tmp_path / "a"), "--json", "import", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["versions"] == 2


@pytest.fixture
def owner_token() -> Callable[[Archive], str]:
    return lambda archive: accounts_of(archive).create_token("owner", None, "write", to_millis(archive.clock()))


def test_a_file_is_imported_through_http_by_an_owner_alone(
    tmp_path: Path, owner_token: Callable[[Archive], str]
) -> None:
    settings = Settings(serve=ServeSettings(max_upload=20_000))
    with Archive(tmp_path / "a", settings=settings) as archive, running(archive) as web:
        token = f"Bearer {owner_token(archive)}"

        def sent(path: str, body: bytes) -> Answer:
            return web.ask("POST", path, body, Authorization=token)

        har, listed = HAR.read_bytes(), (CORPUS / "lists" / "list.txt").read_bytes()
        assert web.ask("POST", "/api/v1/import", har).status == 401
        answer = sent("/api/v1/import?name=session.har", har)
        assert (answer.status, answer.json()["versions"]) == (200, 2)
        assert archive.get("https://example.org/").body
        assert sent("/api/v1/import", listed).status == 422
        told = sent("/api/v1/import?name=junk.warc", b"junk").json()["detail"]
        assert told.startswith("nothing was imported from junk.warc; "), (
            "where the server keeps it is nobody's business"
        )
        for name, junk in {"a.har": b'{"log": {}}', "b.mhtml": b"MIME-Version: 1.0\r\nContent-Type: x\r\n\r\n"}.items():
            kind = name.partition(".")[2]
            told = sent(f"/api/v1/import?name={name}&kind={kind}", junk).json()["detail"]
            assert f"{name} " in told
            assert "/" not in told
            told = sent(f"/api/v1/import?kind={kind}", junk).json()["detail"]
            assert "the file " in told
            assert "/" not in told
        assert sent("/api/v1/import?watches=true", listed).json()["watches"] == 3
        assert sent("/api/v1/import", (CORPUS / "cdxj" / "eleven.cdx").read_bytes()).status == 422
        named = sent("/api/v1/import?file=/etc/passwd&name=../../x.har", har)
        assert (named.status, named.json()["same"]) == (200, 3)
        large = sent("/api/v1/import", b"x" * 20_001)
        assert (large.status, "20000 bytes" in large.json()["detail"]) == (413, True)
