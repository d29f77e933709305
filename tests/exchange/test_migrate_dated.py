"""Folders of dated files come in; what is hostile in them stays out and is named."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.archive import Archive
from letopis.errors import UsageError
from letopis.exchange.imports import import_sources, source_kind
from letopis.exchange.sources import SourceHints
from letopis_migrate.folders import date_in_path, file_url, sniffed_type

NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("path", "moment", "rest"),
    [
        ("2024-01-31T1200.html", NOON, ""),
        ("20240131120000-page.html", NOON, "page.html"),
        ("page/20240131.html", datetime(2024, 1, 31, tzinfo=UTC), "page"),
        ("page-2024-01-31_12-00-00.html", NOON, "page.html"),
        ("2024-01-31T12:00:00+0100 x.html", datetime(2024, 1, 31, 11, tzinfo=UTC), "x.html"),
        ("2024/01/31/a/b.html", datetime(2024, 1, 31, tzinfo=UTC), "a/b.html"),
        ("2024-01-31/a/b.html", datetime(2024, 1, 31, tzinfo=UTC), "a/b.html"),
    ],
)
def test_names_tell_a_moment_and_a_page(path: str, moment: datetime, rest: str) -> None:
    found = date_in_path(path)
    assert found is not None
    assert (datetime.fromisoformat(found[0]), found[1]) == (moment, rest)


@pytest.mark.parametrize("path", ["page.html", "20241331.html", "2024.html", "12345678901234567890.html", ""])
def test_names_without_a_date_tell_nothing(path: str) -> None:
    assert date_in_path(path) is None


@given(st.datetimes(datetime(1991, 1, 1), datetime(2099, 1, 1)), st.sampled_from(["", "-page", "_a b"]))
@settings(max_examples=200)
def test_every_second_comes_back_from_its_name(moment: datetime, rest: str) -> None:
    found = date_in_path(f"{moment:%Y%m%d%H%M%S}{rest}.html")
    assert found is not None
    assert datetime.fromisoformat(found[0]) == moment.replace(microsecond=0, tzinfo=UTC)
    assert found[1] == (f"{rest[1:]}.html" if rest else "")


@given(st.text(max_size=60))
@settings(max_examples=300)
def test_any_name_is_read_without_an_error(path: str) -> None:
    found = date_in_path(path)
    if found is not None:
        assert datetime.fromisoformat(found[0]).tzinfo is not None
    assert file_url("https://example.org/", path).startswith("https://example.org/")


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, body in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)
    return folder


def test_a_folder_becomes_the_history_of_its_pages(tmp_path: Path) -> None:
    source = write(
        tmp_path / "saved",
        {"20240131.html": b"<p>1", "20240201.html": b"<p>2", "b/20240131.html": b"<p>b", "b/notes.txt": b"x"},
    )
    assert source_kind(str(source)) == "dated"
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(source)], hints=SourceHints("https://example.org/news/"))
        assert (report.checks, dict(report.refused)) == (3, {"no date in its name": 1})
        assert [v.time.day for v in archive.versions("https://example.org/news/")] == [31, 1]
        assert archive.get("https://example.org/news/b").body == b"<p>b"
        assert archive.get("https://example.org/news/b").content_type == "text/html"


def test_one_address_is_that_of_all_files(tmp_path: Path) -> None:
    source = write(tmp_path / "saved", {"20240131-a.html": b"<p>1", "20240201-b.html": b"<p>2"})
    with Archive(tmp_path / "archive") as archive:
        import_sources(archive, [str(source)], hints=SourceHints("https://example.org/page"))
        assert len(archive.versions("https://example.org/page")) == 2


def test_a_list_gives_the_addresses(tmp_path: Path) -> None:
    listed = b"# saved by hand\na\thttps://example.org/a\nc.html\thttps://example.org/c?x=1\n"
    source = write(
        tmp_path / "saved",
        {"urls.tsv": listed, "a/20240131.html": b"<p>1", "20240131-c.html": b"<p>c", "20240131-d.html": b"<p>d"},
    )
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(source)])
        assert archive.get("https://example.org/a").body == b"<p>1"
        assert archive.get("https://example.org/c?x=1").body == b"<p>c"
        assert dict(report.refused) == {"no line of urls.tsv has it": 1}


def test_a_folder_without_addresses_says_what_to_do(tmp_path: Path) -> None:
    source = write(tmp_path / "saved", {"20240131.html": b"<p>1"})
    with Archive(tmp_path / "archive") as archive, pytest.raises(UsageError, match="--url"):
        import_sources(archive, [str(source)])


def test_an_address_that_is_none_says_what_to_do() -> None:
    with pytest.raises(UsageError, match="https://"):
        SourceHints("example.org/")


def test_an_unknown_folder_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with Archive(tmp_path / "archive") as archive, pytest.raises(UsageError, match="kind"):
        import_sources(archive, [str(tmp_path / "empty")])


def test_links_that_lead_out_and_pipes_are_named_and_not_read(tmp_path: Path) -> None:
    source = write(tmp_path / "saved", {"20240131.html": b"<p>in"})
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "20240101.html").write_bytes(b"secret")
    (source / "20240102.html").symlink_to(tmp_path / "secret" / "20240101.html")
    (source / "20240103.html").symlink_to(source / "20240131.html")
    (source / "out").symlink_to(tmp_path / "secret")
    os.mkfifo(source / "20240104.html")
    (source / "20240105.html").symlink_to(source / "20240105.html")
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(source)], hints=SourceHints("https://example.org/"))
        assert report.refused["a link that leads out of the folder"] == 1
        assert report.refused["neither a file nor a folder"] == 1
        assert report.refused.total() == 4
        found = archive.versions("https://example.org/")
        bodies = {archive.get("https://example.org/", version=one.number).body for one in found}
        assert bodies == {b"<p>in"}


def test_a_huge_file_is_named_and_not_read(tmp_path: Path) -> None:
    source = write(tmp_path / "saved", {"20240131.html": b""})
    with (source / "20240201.html").open("wb") as file:
        file.truncate(300 * 1024 * 1024)
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(source)], hints=SourceHints("https://example.org/"))
        assert dict(report.refused) == {"larger than 256 MiB": 1}


def test_comments_before_a_page_do_not_hold_up_the_look_at_its_first_bytes() -> None:
    assert sniffed_type(b" <!-- a --> <!-- b --><!DOCTYPE html>") == "text/html"
    assert sniffed_type(b"<!-- -->" * 500) == "text/plain"
