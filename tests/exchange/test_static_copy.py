"""The browsable copy: links between its files, everything else as it was."""

from __future__ import annotations

import re
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from exchanged_archives import START
from growth import grows_with_the_square

from letopis.archive import Archive, NewCapture
from letopis.archive.accounts import projects_of
from letopis.errors import NotFound, UsageError
from letopis.exchange.selection import ExportSelection
from letopis.exchange.static_copy import COPY_LIST, FileRewriter, export_static
from letopis.model import Outcome, Put, to_millis

STYLE = b"@import 'more.css'; a { b: url( \"bg.png\" ) }"
PAGE = "https://a.example/docs/page.html"


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name in ("href", "src") and value]


@pytest.fixture
def small(tmp_path: Path) -> Archive:
    archive = Archive(tmp_path / "small")
    page = (
        b'<!doctype html><html><head><base href="/docs/"><meta http-equiv="Content-Security-Policy" content="x">'
        b'<link rel="stylesheet" href="style.css?v=2" integrity="sha256-x"></head>'
        b'<body style="background: url(bg.png)"><a href="other?id=1#part">other</a> <a href="https://out.example/x">out</a>'
        b'<img src="https://cdn.example/i.png" srcset="small.png 1x, https://cdn.example/i.png 2x">'
        b"<a href=old>old</a> <a href='mailto:x@y'>mail</a><script>var a = '<a href=\"other?id=1\">'</script></body>"
    )
    puts = [
        Put(PAGE, page, START, "text/html"),
        Put("https://a.example/docs/other?id=1", "<p>šťáva".encode("cp1250"), START, "text/html; charset=windows-1250"),
        Put(
            "https://a.example/docs/style.css?v=2", b"@import 'more.css'; a { b: url( \"bg.png\" ) }", START, "text/css"
        ),
        Put("https://a.example/docs/bg.png", b"\x89PNG", START, "image/png"),
        Put("https://cdn.example/i.png", b"\x89PNG2", START, "image/png"),
    ]
    list(archive.put_many(puts))
    moved = (("Location", "page.html"), ("Content-Type", "text/html"))
    archive.commit(
        [
            NewCapture(
                "https://a.example/docs/old", to_millis(START), 301, moved, b"", Outcome.UNCHANGED, versioned=False
            )
        ]
    )
    return archive


def test_links_lead_to_files_and_those_outside_stay_absolute(small: Archive, tmp_path: Path) -> None:
    export_static(small, tmp_path / "copy", ExportSelection())
    text = (tmp_path / "copy" / "a.example/docs/page.html").read_text()
    assert re.search(r'<a href="other~[0-9a-f]{12}\.html#part">', text)
    assert re.search(r'<link rel="stylesheet" href="style~[0-9a-f]{12}\.css" *>', text)
    assert 'style="background: url(bg.png)"' in text
    assert (
        '<img src="../../cdn.example/i.png" srcset="https://a.example/docs/small.png 1x, ../../cdn.example/i.png 2x">'
        in text
    )
    assert '<a href="https://out.example/x">' in text
    assert "<a href='mailto:x@y'>" in text
    assert "var a = '<a href=\"other?id=1\">'" in text
    assert '<base data-kept-href="/docs/">' in text
    assert 'data-kept-http-equiv="Content-Security-Policy"' in text


def test_style_sheets_are_rewritten_too(small: Archive, tmp_path: Path) -> None:
    export_static(small, tmp_path / "copy", ExportSelection())
    style = next((tmp_path / "copy" / "a.example/docs").glob("style~*.css")).read_text()
    assert style == "@import 'https://a.example/docs/more.css'; a { b: url( \"bg.png\" ) }"


def test_pages_keep_their_charset_and_say_it(small: Archive, tmp_path: Path) -> None:
    export_static(small, tmp_path / "copy", ExportSelection())
    page = next((tmp_path / "copy" / "a.example/docs").glob("other~*.html")).read_bytes()
    assert page == '<meta charset="windows-1250"><p>šťáva'.encode("cp1250")


def test_redirects_are_small_pages(small: Archive, tmp_path: Path) -> None:
    export_static(small, tmp_path / "copy", ExportSelection())
    page = next((tmp_path / "copy" / "a.example/docs").glob("old~*.html")).read_text()
    assert 'http-equiv="refresh" content="0; url=page.html"' in page


def test_a_site_brings_what_its_pages_need_from_elsewhere(small: Archive, tmp_path: Path) -> None:
    list(small.put_many([Put("https://cdn.example/page.html", b"not needed", START)]))
    export_static(small, tmp_path / "copy", ExportSelection(site="a.example"))
    made = files(tmp_path / "copy")
    assert "cdn.example/i.png" in made
    assert "cdn.example/page.html" not in made


def test_selection_by_project_and_by_time(small: Archive, tmp_path: Path) -> None:
    projects_of(small).add("one", "", ["https://a.example/docs/bg.png"], 0)
    list(small.put_many([Put("https://a.example/docs/bg.png", b"newer", START + timedelta(days=1), "image/png")]))
    export_static(small, tmp_path / "copy", ExportSelection(project="one", until=START + timedelta(hours=1)))
    made = files(tmp_path / "copy")
    assert made.pop("a.example/docs/bg.png") == b"\x89PNG"
    assert set(made) == {"index.html", COPY_LIST}


@pytest.mark.parametrize("selection", [{"site": "never.example"}, {"project": "nothing"}])
def test_an_unknown_part_is_an_error(small: Archive, tmp_path: Path, selection: dict[str, str]) -> None:
    with pytest.raises(NotFound):
        export_static(small, tmp_path / "copy", ExportSelection(**selection))  # type: ignore[arg-type]
    assert not (tmp_path / "copy").exists()


def test_every_relative_link_of_a_copy_leads_to_a_file(walked: Archive, tmp_path: Path) -> None:
    export_static(walked, tmp_path / "copy", ExportSelection())
    made = files(tmp_path / "copy")
    checked = 0
    for name, data in made.items():
        if not name.endswith(".html"):
            continue
        links = Links()
        links.feed(data.decode())
        for link in links.found:
            parts = urlsplit(link)
            if not parts.scheme and parts.path:
                checked += 1
                assert (tmp_path / "copy" / name).parent.joinpath(unquote(parts.path)).resolve().is_file(), (name, link)
    assert checked > 200


def test_a_second_run_writes_only_what_changed(small: Archive, tmp_path: Path) -> None:
    first = export_static(small, tmp_path / "copy", ExportSelection())
    before = files(tmp_path / "copy")
    assert (first.written, first.removed) == (first.files, 0)
    again = export_static(small, tmp_path / "copy", ExportSelection())
    assert (again.files, again.written, again.removed) == (first.files, 0, 0)
    assert files(tmp_path / "copy") == before
    list(small.put_many([Put("https://a.example/docs/bg.png", b"newer", START + timedelta(days=1), "image/png")]))
    assert export_static(small, tmp_path / "copy", ExportSelection()).written == 1


def test_what_is_no_longer_selected_is_removed(small: Archive, tmp_path: Path) -> None:
    export_static(small, tmp_path / "copy", ExportSelection())
    report = export_static(small, tmp_path / "copy", ExportSelection(site="cdn.example"))
    assert report.removed > 0
    assert not (tmp_path / "copy" / "a.example").exists()


def test_a_stopped_run_is_resumed(walked: Archive, tmp_path: Path) -> None:
    def stop(done: int) -> None:
        if done == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_static(walked, tmp_path / "copy", ExportSelection(), stop)
    resumed = export_static(walked, tmp_path / "copy", ExportSelection())
    assert resumed.written == resumed.files - 10
    export_static(walked, tmp_path / "whole", ExportSelection())
    assert files(tmp_path / "copy") == files(tmp_path / "whole")


def test_a_folder_with_other_files_is_not_touched(small: Archive, tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "letter.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds other files"):
        export_static(small, folder, ExportSelection())
    assert files(folder) == {"letter.txt": b"mine"}


def test_a_forged_list_of_files_removes_nothing_outside(small: Archive, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / COPY_LIST).write_text(f"../letter.txt\n{tmp_path}/letter.txt\na/../../letter.txt\n")
    export_static(small, tmp_path / "copy", ExportSelection())
    assert (tmp_path / "letter.txt").read_text() == "mine"


@pytest.mark.parametrize("before", ["<!-- -->", "<!-- --> ", "<!--", " ", "<!doctype ", "<html "])
def test_the_time_to_find_the_head_of_a_page_grows_with_what_stands_before_it(before: str) -> None:
    def copied(text: str) -> str:
        return FileRewriter("http://a.test/", lambda target, needed: None).page(text, "utf-8")

    assert not grows_with_the_square(copied, lambda n: before * n)
    assert copied("<!-- a --> <!-- b --><!doctype html><html><head><p>") == (
        '<!-- a --> <!-- b --><!doctype html><html><head><meta charset="utf-8"><p>'
    )


def test_a_charset_that_stands_for_none_does_not_stop_the_copy(tmp_path: Path) -> None:
    body = "<meta charset=undefined><p>šťáva".encode("cp1250")
    with Archive(tmp_path / "archive") as archive:
        archive.put("http://odd.example/", body, START, "text/html; charset=undefined")
        archive.put(
            "http://odd.example/style.css", "/* šťáva */".encode("cp1250"), START, "text/css; charset=undefined"
        )
        export_static(archive, tmp_path / "copy", ExportSelection(site="odd.example"))
    assert sum(b"va" in data for data in files(tmp_path / "copy").values()) >= 2
