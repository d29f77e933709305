"""One page with what it loaded, as MHTML, HAR and SingleFile: read by others, and brought in again."""

from __future__ import annotations

import base64
import email
import json
import re
from datetime import UTC, datetime
from email import policy
from pathlib import Path

import pytest
from scripted_site import ScriptedSite

from letopis import Archive, Monitor
from letopis.cli.main import main
from letopis.config import CrawlSettings, MonitorSettings, Settings
from letopis.errors import UsageError
from letopis.exchange.imports import import_sources
from letopis.exchange.page_export import page_parts
from letopis.exchange.single_file import single_file

SETTINGS = Settings(crawl=CrawlSettings(delay=0), monitor=MonitorSettings(min_interval=0))
PAGE = "<title>Příklad</title><link rel=stylesheet href=/style.css><img src=/a.png>".encode()
PICTURE = bytes(range(256)) * 3


@pytest.fixture
def site(scripted_site: ScriptedSite) -> ScriptedSite:
    scripted_site.set("/style.css", b"p {}", Content_Type="text/css")
    scripted_site.set("/a.png", PICTURE, Content_Type="image/png")
    scripted_site.set("/", PAGE, Content_Type="text/html; charset=utf-8")
    scripted_site.set("/other", b"another page")
    return scripted_site


@pytest.fixture
def folder(tmp_path: Path, site: ScriptedSite) -> Path:
    with Archive(tmp_path / "a", settings=SETTINGS) as archive, Monitor(archive) as monitor:
        monitor.look([site.url("/"), site.url("/other")], monitor.options._replace(now=True, requisites=True))
    return tmp_path / "a"


def export(folder: Path, kind: str, url: str, target: Path, *more: str) -> Path:
    assert main(["--archive", str(folder), "export", kind, url, "-o", str(target), *more]) == 0
    return target


def contents(folder: Path, urls: list[str]) -> dict[str, tuple[bytes, str]]:
    with Archive(folder) as archive:
        found = {url: archive.get(url) for url in urls}
        return {url: (one.body, one.content_type) for url, one in found.items()}


def members(site: ScriptedSite) -> list[str]:
    return [site.url(path) for path in ("/", "/style.css", "/a.png")]


def test_an_mhtml_is_a_mail_whose_parts_are_the_page_and_its_resources(
    folder: Path, site: ScriptedSite, tmp_path: Path
) -> None:
    file = export(folder, "mhtml", site.url("/"), tmp_path / "page.mhtml")
    whole = email.message_from_bytes(file.read_bytes(), policy=policy.default)
    parts = {
        part["Content-Location"]: part.get_payload(decode=True) for part in whole.walk() if not part.is_multipart()
    }
    assert parts == {site.url("/"): PAGE, site.url("/style.css"): b"p {}", site.url("/a.png"): PICTURE}
    assert whole["Snapshot-Content-Location"] == site.url("/")
    assert not [defect for part in whole.walk() for defect in part.defects]
    again = export(folder, "mhtml", site.url("/"), tmp_path / "again.mhtml")
    assert again.read_bytes() == file.read_bytes()


def test_an_exported_mhtml_brings_the_same_members_again(folder: Path, site: ScriptedSite, tmp_path: Path) -> None:
    file = export(folder, "mhtml", site.url("/"), tmp_path / "page.mhtml")
    with Archive(tmp_path / "b") as second:
        assert dict(import_sources(second, [file]).refused) == {}
    assert contents(tmp_path / "b", members(site)) == contents(folder, members(site))


def test_a_har_of_one_page_has_its_requests_and_brings_the_same_members_again(
    folder: Path, site: ScriptedSite, tmp_path: Path
) -> None:
    file = export(folder, "har", site.url("/"), tmp_path / "page.har")
    entries = json.loads(file.read_text("utf-8"))["log"]["entries"]
    assert {one["request"]["url"] for one in entries} == set(members(site))
    assert all(one["serverIPAddress"] == "127.0.0.1" and one["request"]["headers"] for one in entries)
    with Archive(tmp_path / "b") as second:
        assert dict(import_sources(second, [file]).refused) == {}
    assert contents(tmp_path / "b", members(site)) == contents(folder, members(site))


def test_a_look_is_chosen_by_its_time(folder: Path, site: ScriptedSite, tmp_path: Path) -> None:
    site.set("/style.css", b"p { color: red }", Content_Type="text/css")
    with Archive(folder, settings=SETTINGS) as archive, Monitor(archive) as monitor:
        first = archive.history(site.url("/"))[0].checked_at
        monitor.look([site.url("/")], monitor.options._replace(now=True, requisites=True))
    before = export(folder, "mhtml", site.url("/"), tmp_path / "1.mhtml", "--at", first.isoformat()).read_bytes()
    after = export(folder, "mhtml", site.url("/"), tmp_path / "2.mhtml").read_bytes()
    assert b"cCB7fQ==" in before
    assert b"cCB7fQ==" not in after


def test_a_page_that_was_not_captured_whole_is_exported_alone(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        archive.put("http://example.org/", b"alone")
    file = export(tmp_path / "a", "mhtml", "http://example.org/", tmp_path / "page.mhtml")
    assert file.read_bytes().count(b"Content-Location") == 2


def test_a_relative_base_is_absolute_in_an_mhtml_and_nothing_else_is_changed(tmp_path: Path) -> None:
    page = "<meta charset=windows-1250><base target=_top href='/deep/ě/'><p>žluť “<img src=a.png>".encode("cp1250")
    with Archive(tmp_path / "a") as archive:
        archive.put("http://example.org/", page, content_type="text/html")
    export(tmp_path / "a", "mhtml", "http://example.org/", tmp_path / "page.mhtml")
    with Archive(tmp_path / "b") as second:
        import_sources(second, [tmp_path / "page.mhtml"])
        shown = second.get("http://example.org/").body
    base = "href='/deep/ě/'".encode("cp1250")
    assert shown == page.replace(base, b'href="http://example.org/deep/%C4%9B/"')


def test_a_single_file_has_everything_inside_and_comes_in_again(
    folder: Path, site: ScriptedSite, tmp_path: Path
) -> None:
    page = (
        "<!DOCTYPE html><html lang=cs><head><meta charset=windows-1250><meta http-equiv=refresh content='9; url=/x'>"
        "<title>Příklad</title><link rel=stylesheet href=/style.css integrity=sha256-x><script src=/s.js></script>"
        "<body onload=go()><img src=/a.png><img src=/gone.png><a href=/other>other</a>"
    )
    site.set("/whole", page.encode("cp1250"), Content_Type="text/html")
    site.set("/style.css", b"@import 'style.css'; p { background: url(a.png) }", Content_Type="text/css")
    with Archive(folder, settings=SETTINGS) as archive, Monitor(archive) as monitor:
        monitor.look([site.url("/whole")], monitor.options._replace(now=True, requisites=True))
        time = archive.history(site.url("/whole"))[-1].checked_at
    file = export(folder, "singlefile", site.url("/whole"), tmp_path / "page.html")
    text = file.read_text("utf-8")
    picture = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"
    style = re.search(r"data:text/css;charset=utf-8;base64,([\w+/=]+)", text)
    assert style is not None
    assert f"url({picture})" in base64.b64decode(style[1]).decode()
    assert f'<img src="{picture}">' in text
    assert f'<a href="{site.url("/other")}">' in text
    assert "integrity" not in text
    assert text.index('<meta charset="utf-8">') < text.index("default-src 'none'") < text.index("data-kept-http-equiv")
    assert "Příklad" in text
    with Archive(tmp_path / "b") as second:
        assert dict(import_sources(second, [file]).refused) == {}
        found = second.get(site.url("/whole"))
        assert (found.body, found.time) == (file.read_bytes(), time)
    again = export(tmp_path / "b", "singlefile", site.url("/whole"), tmp_path / "again.html")
    assert again.read_bytes() == file.read_bytes()


def test_a_page_that_repeats_itself_for_ever_is_no_single_file(tmp_path: Path) -> None:
    """Pictures without number, sheets that import one another in a ring and a long chain, hostile types."""
    at = datetime(2024, 5, 6, tzinfo=UTC)
    site = "http://example.org"
    with Archive(tmp_path / "a", clock=lambda: at) as archive:
        sheets = {f"{site}/{n}.css": f"@import '{n + 1}.css'; @import '0.css'; p {{}}".encode() for n in range(40)}
        pages = {f"{site}/": b"<link rel=stylesheet href=0.css><img src=a><p style='background: url(a)'>"}
        for url, body in (pages | sheets).items():
            kind = "text/css" if url.endswith("css") else "text/html"
            archive.put(url, body, at=at, content_type=kind)
        archive.put(f"{site}/a", b"x" * 1000, at=at, content_type='image/"><script>);}')
        parts = [page_parts(archive, url, at)[0] for url in (f"{site}/", f"{site}/a", *sheets)]
        whole = single_file(parts).decode()
        assert whole.count("data:application/octet-stream;base64,eHh4") == 2
        many = b"<img src=a>" * 200
        archive.put(f"{site}/many", many, at=at, content_type="text/html")
        with pytest.raises(UsageError, match="export it as mhtml"):
            single_file([page_parts(archive, f"{site}/many", at)[0], parts[1]], most=100_000)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mhtml"], "name its address"),
        (["singlefile"], "name its address"),
        (["singlefile", "http://example.org/text"], "not an HTML page"),
        (["warc", "http://example.org/"], "as har, mhtml, singlefile are; name a host with 'site'"),
        (["har", "--at", "2024-01-01"], "or use 'from' and 'to'"),
        (["mhtml", "http://nowhere.example/"], "never checked"),
    ],
)
def test_what_cannot_be_exported_so_is_said(
    tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Archive(tmp_path / "a") as archive:
        archive.put("http://example.org/", b"alone")
        archive.put("http://example.org/text", b"{}", content_type="application/json")
    assert main(["--archive", str(tmp_path / "a"), "export", *words, "-o", str(tmp_path / "x")]) != 0
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
