"""What the pages of a site say as Markdown: a folder of files, or one stream."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from letopis import Archive
from letopis.cli.main import main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Archive(tmp_path / "archive") as archive:
        for day in (1, 2):
            body = f"<title>Prices</title><main><h1>Prices</h1><p>The tea costs {day} crowns today.</p></main>"
            archive.put("https://example.org/prices", body.encode(), datetime(2026, 1, day, tzinfo=UTC))
        archive.put(
            "https://example.org/", b"<title>Home</title><p>Welcome to the shop.", datetime(2026, 1, 1, tzinfo=UTC)
        )
        archive.put("https://example.org/a.css", b"p { color: red }", content_type="text/css")
        archive.put("https://other.example/", b"<p>Another site.")
    return tmp_path / "archive"


def run(folder: Path, *words: str) -> int:
    return main(["--archive", str(folder), "export", "markdown", *words])


def test_each_page_of_a_site_is_a_file_of_its_own(folder: Path, tmp_path: Path) -> None:
    assert run(folder, "--site", "example.org", "-o", str(tmp_path / "texts")) == 0
    files = sorted((tmp_path / "texts" / "example.org").iterdir())
    assert [file.name.partition("~")[0].removesuffix(".md") for file in files] == ["index", "prices"]
    text = files[1].read_text()
    assert text.startswith('---\nurl: "https://example.org/prices"\ntime: "2026-01-02T00:00:00Z"\ntitle: "Prices"\n')
    assert "The tea costs 2 crowns today." in text


def test_pages_are_as_they_were_at_the_end_of_the_span(folder: Path, tmp_path: Path) -> None:
    assert run(folder, "--site", "example.org", "--to", "2026-01-01", "-o", str(tmp_path / "all.md")) == 0
    text = (tmp_path / "all.md").read_text()
    assert text.count("\nurl: ") == 2
    assert "costs 1 crowns" in text


def test_a_second_run_writes_only_what_changed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--site", "example.org", "-o", str(tmp_path / "texts"), "--json")
    run(folder, *words)
    with Archive(folder) as archive:
        archive.put("https://example.org/", b"<title>Home</title><p>Closed for good.", datetime(2026, 1, 3, tzinfo=UTC))
    capsys.readouterr()
    run(folder, *words)
    assert '"written": 1' in capsys.readouterr().out
