"""What urlwatch and changedetection.io kept comes in, and what they watched is watched."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranged_folder import serving

from letopis.archive import Archive
from letopis.cli import main
from letopis.errors import LetopisError, UsageError
from letopis.exchange.imports import import_sources, source_kind, watches_of_source
from letopis.exchange.sources import SourceHints
from letopis.urls import parse_user_url
from letopis_migrate.urlwatch import yaml_documents

PAGE = "https://example.org/news"
NOON = 1706702400
JOBS = f"""\
name: News
url: {PAGE}
filter:
  - css: main
  - element-by-id: price
  - html2text
  - keep_lines_containing: a.b
  - grepi:
      re: "ad[0-9]"
  - shellpipe: cat
---
command: date
---
navigate: https://example.org/app
enabled: false
"""
BENCH = Path(__file__).parents[2] / ".bench" / "monitor"


def guid(location: str) -> str:
    return hashlib.sha1(location.encode()).hexdigest()


def told(archive: Archive, source: Path, kind: str | None = None) -> str:
    """What an import says: checks and reasons, or the sentence of its error."""
    try:
        report = import_sources(archive, [str(source)], kind=kind)
    except LetopisError as error:
        return str(error)
    return "" if not report.checks + report.refused.total() else f"{report.checks} {dict(report.refused)}"


def urlwatch_folder(folder: Path, jobs: str = JOBS) -> Path:
    """The database as minidb makes it, beside its list of jobs."""
    folder.mkdir()
    (folder / "urls.yaml").write_text(jobs)
    rows = [
        (guid(PAGE), NOON, "first text", 0, "tag-1"),
        (guid(PAGE), NOON + 60, "<html><p>second</html>", 0, None),
        (guid(PAGE), NOON + 120, "<html><p>second</html>", 1, None),
        (guid("date"), NOON, "Wed Jan 31", 0, None),
        (guid("https://example.org/forgotten"), NOON, "x", 0, None),
    ]
    with closing(sqlite3.connect(folder / "cache.db")) as database, database:
        database.execute(
            "CREATE TABLE CacheEntry (id INTEGER PRIMARY KEY, guid TEXT, timestamp INTEGER, data TEXT, "
            "tries INTEGER, etag TEXT)"
        )
        database.executemany("INSERT INTO CacheEntry (guid, timestamp, data, tries, etag) VALUES (?, ?, ?, ?, ?)", rows)
    return folder


def test_a_database_of_urlwatch_comes_in(tmp_path: Path) -> None:
    folder = urlwatch_folder(tmp_path / "urlwatch")
    assert source_kind(str(folder)) == source_kind(str(folder / "cache.db")) == "urlwatch"
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(folder / "cache.db")])
        assert (report.checks, report.versions) == (3, 2)
        assert report.refused == {
            "its job has no web address": 1, "no job of urls.yaml made it; name the list with --urls": 1,
        }  # fmt: skip
        first, second = archive.versions(PAGE)
        assert (first.content_type, second.content_type) == ("text/plain; charset=utf-8", "text/html; charset=utf-8")
        assert dict(first.headers)["ETag"] == "tag-1"
        failed = archive.history(PAGE)[-1]
        assert (failed.available, failed.error) == (False, "urlwatch could not fetch it (1 tries)")
        assert import_sources(archive, [str(folder)]).same == 3


def test_other_tables_with_the_same_columns_come_in(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "cache.db")) as database, database:
        database.execute("CREATE TABLE snapshots (guid TEXT, timestamp REAL, data TEXT)")
        database.execute("INSERT INTO snapshots VALUES (?, ?, ?)", (guid(PAGE), NOON + 0.5, "text"))
    with Archive(tmp_path / "archive") as archive:
        import_sources(archive, [str(tmp_path / "cache.db")], hints=SourceHints(PAGE))
        assert archive.versions(PAGE)[0].time.timestamp() == NOON + 0.5


def test_jobs_of_urlwatch_become_watches(tmp_path: Path) -> None:
    news, command, app = watches_of_source(str(urlwatch_folder(tmp_path / "urlwatch")), "urlwatch", SourceHints())
    chosen = (("css", 'main [id="price"]'), ("include", "a\\.b"), ("exclude", "ad[0-9]"))
    assert (news.url, news.filters, news.left_out) == (PAGE, chosen, ("shellpipe",))
    assert (app.url, app.paused, app.left_out) == ("https://example.org/app", True, ("browser",))
    with pytest.raises(LetopisError, match="cannot be fetched"):
        parse_user_url(command.url)


@pytest.mark.parametrize(
    ("job", "filters", "left_out"),
    [
        ("filter: [{css: {selector: p, skip: 1, exclude: b}}]", (("remove", "b"), ("css", "p")), ("skip of its css",)),
        ("filter: [{css: 'a, b'}, {css: i}]", (("css", "a, b"),), ("second css",)),
        ("filter: [{xpath: {path: //p, exclude: //b}}]", (("xpath", "//p"),), ("exclude of its xpath",)),
        ("filter: [{grep: a}, {grep: b}]", (("include", "^(?=.*(?:a))(?=.*(?:b))"),), ()),
        ("filter: [{grepi: a}, {grepi: b}]", (("exclude", "a"), ("exclude", "b")), ()),
        ("data: {a: b}\nheaders: {X: y}\nadditions_only: true", (), ("data", "headers", "additions_only")),
    ],
)  # fmt: skip
def test_what_a_job_of_urlwatch_says_is_taken_over_or_named(
    tmp_path: Path, job: str, filters: tuple[tuple[str, str], ...], left_out: tuple[str, ...]
) -> None:
    (tmp_path / "urls.yaml").write_text(f"url: {PAGE}\n{job}\n")
    (watch,) = watches_of_source(str(tmp_path / "urls.yaml"), "urlwatch", SourceHints())
    assert (watch.filters, watch.left_out) == (filters, left_out)


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x]\n<<: *a",
        "a: &a {k: v}\nb: &b {<<: [*a, *a, *a]}\nc: {<<: [*b, *b]}",
        "!!python/object/apply:os.system [touch sprung]",
        "[" * 5000,
        "a: 2024-99-99",
        "\x00",
    ],
)
def test_traps_in_yaml_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "urls.yaml").write_text(text)
    with pytest.raises(UsageError):
        yaml_documents(tmp_path / "urls.yaml")


def test_a_view_that_runs_for_ever_is_no_table(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "cache.db")) as database, database:
        database.execute(
            "CREATE VIEW CacheEntry AS WITH RECURSIVE n(guid) AS (SELECT 1 UNION ALL SELECT guid + 1 FROM n) "
            "SELECT guid, 0 AS timestamp, '' AS data FROM n"
        )
    assert source_kind(str(tmp_path / "cache.db")) == "warc"


@given(place=st.integers(0, 8191), value=st.integers(0, 255))
@settings(max_examples=60, deadline=None)
def test_a_damaged_database_is_reported(tmp_path_factory: pytest.TempPathFactory, place: int, value: int) -> None:
    folder = urlwatch_folder(tmp_path_factory.mktemp("damaged") / "urlwatch")
    data = bytearray((folder / "cache.db").read_bytes())
    data[place % len(data)] = value
    (folder / "cache.db").write_bytes(data)
    with Archive(folder / "archive") as archive:
        assert told(archive, folder / "cache.db", "urlwatch")


def changedetection_folder(folder: Path, *, new: bool) -> Path:
    """The layout of older and newer releases: one list, or a file a watch."""
    watch = {
        "url": PAGE, "tags": ["t1"], "paused": True, "include_filters": ["main", "//h1", "json:$.a", "jq:.b", "bad[["],
        "subtractive_selectors": ["nav"], "ignore_text": ["/clock \\d+/", "a.b"], "trigger_text": ["sold out"],
        "time_between_check": {"weeks": None, "days": None, "hours": 2, "minutes": 30, "seconds": None},
    }  # fmt: skip
    settings = {"application": {"tags": {"t1": {"title": "shops"}}}}
    own = folder / "0c3ea9d4-uuid"
    own.mkdir(parents=True)
    if new:
        (folder / "changedetection.json").write_text(json.dumps({"settings": settings}))
        (own / "watch.json").write_text(json.dumps(watch))
    else:
        (folder / "url-watches.json").write_text(json.dumps({"watching": {own.name: watch}, "settings": settings}))
    (own / "aa.txt").write_text("first")
    (own / "bb.txt.br").write_bytes(brotli.compress(b"second " * 500))
    (own / "cc.txt").write_text("third")
    (own / f"{NOON + 120}.html.br").write_bytes(brotli.compress(b"<html><p>third</html>"))
    lines = [f"{NOON},aa.txt", f"{NOON + 60},/datastore/{own.name}/bb.txt.br", f"{NOON + 120},cc.txt"]
    (own / "history.txt").write_text("\n".join([*lines, f"{NOON + 180},../../../etc/passwd", "broken"]))
    return folder


@pytest.mark.parametrize("new", [False, True])
def test_a_folder_of_changedetection_comes_in(tmp_path: Path, new: bool) -> None:
    folder = changedetection_folder(tmp_path / "data", new=new)
    assert source_kind(str(folder)) == "changedetection"
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(folder)])
        assert (report.checks, dict(report.refused)) == (3, {"its snapshot is not there or cannot be read": 1})
        bodies = [archive.get(PAGE, version=number).body for number in range(3)]
        assert bodies == [b"first", b"second " * 500, b"<html><p>third</html>"]
        assert [v.time.timestamp() for v in archive.versions(PAGE)] == [NOON, NOON + 60, NOON + 120]


def test_watches_of_changedetection_are_watched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = changedetection_folder(tmp_path / "data", new=True)
    archive = ("--archive", str(tmp_path / "archive"), "--json")
    assert main(["import", str(folder), "--watches", *archive]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["watches"] == 1
    named = " ".join(done["refused"])
    assert all(word in named for word in ("trigger_text", "jq:.b", "bad[["))
    assert main(["watch", "list", *archive]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["url"], row["every"], row["tag"]) == (PAGE, 9000.0, "shops")
    told = [(one["kind"], one["expression"]) for one in row["filters"]]
    assert told == [("remove", "nav"), ("css", "main"), ("exclude", "clock \\d+"), ("exclude", "(?i)a\\.b")]


@pytest.mark.parametrize(
    ("watch", "every", "filters", "named"),
    [
        ({"time_between_check_use_default": True, "time_between_check": {"days": 1}}, 10800.0, (), ""),
        ({"include_filters": ["h1", ".price"]}, 10800.0, (("css", "h1"), ("css", ".price")), ""),
        ({"include_filters": ["h1", "xpath://p"]}, 10800.0, (("css", "h1"),), "filter xpath://p"),
        ({"tags": ["t"], "ignore_text": ["/a/i"]}, 10800.0, (("css", ".tagged"), ("exclude", "(?i)a")), ""),
        ({"processor": "restock_diff"}, 10800.0, (("price", "html"), ("stock", "html")), ""),
        ({"fetch_backend": "html_webdriver"}, 10800.0, (), "fetch_backend 'html_webdriver'"),
        ({"fetch_backend": "system", "method": "GET", "processor": "text_json_diff"}, 10800.0, (), ""),
        ({"headers": {"A": "b"}, "method": "POST", "body": "x"}, 10800.0, (), "headers body method 'POST'"),
        ({"filter_text_removed": False}, 10800.0, (), "choice of added, replaced or removed lines"),
        ({"time_schedule_limit": {"enabled": True}}, 10800.0, (), "time_schedule_limit"),
        ({"url": "source:http://example.org/{{ x }}"}, 10800.0, (),
         "template in the address comparison of the source instead of the text"),
    ],
)  # fmt: skip
def test_what_changedetection_was_told_is_taken_over_or_named(
    tmp_path: Path, watch: dict[str, object], every: float, filters: tuple[tuple[str, str], ...], named: str
) -> None:
    common = {"global_subtractive_selectors": ["footer"], "global_ignore_text": ["Visitors"]}
    tags = {"t": {"title": "shops", "include_filters": [".tagged"]}}
    settings = {"requests": {"time_between_check": {"hours": 3}}, "application": {"tags": tags, **common}}
    stored = {"watching": {"1": {"url": PAGE, **watch}}, "settings": settings}
    (tmp_path / "url-watches.json").write_text(json.dumps(stored))
    (found,) = watches_of_source(str(tmp_path), "changedetection", SourceHints())
    assert (found.every, " ".join(found.left_out)) == (every, named)
    assert found.filters == (("remove", "footer"), *filters, ("exclude", "(?i)Visitors"))


def test_a_brotli_bomb_is_named_and_not_unpacked(tmp_path: Path) -> None:
    folder = changedetection_folder(tmp_path / "data", new=False)
    bomb = brotli.Compressor(quality=1)
    packed = b"".join(bomb.process(bytes(1 << 20)) for _ in range(300)) + bomb.finish()
    (folder / "0c3ea9d4-uuid" / "bb.txt.br").write_bytes(packed)
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(folder)])
        assert report.checks == 2
        assert report.refused["cannot be unpacked (it unpacks to more than 256 MiB)"] == 1


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"watching": [1]}', "{", '{"watching": {"../x": {"url": "http://a/"}}}']
)
def test_traps_in_json_are_reported(tmp_path: Path, text: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "url-watches.json").write_text(text)
    with Archive(tmp_path / "archive") as archive:
        assert "there are no captures in it" in (said := told(archive, tmp_path / "data")) or "correct it" in said


def test_what_urlwatch_itself_wrote_comes_in(tmp_path: Path) -> None:
    urlwatch = BENCH / "bin" / "urlwatch"
    if not urlwatch.exists():
        if not os.environ.get("LETOPIS_LONG"):
            pytest.skip("urlwatch is not here; LETOPIS_LONG=1 installs it under .bench")
        subprocess.run(["python3", "-m", "venv", BENCH], check=True)
        subprocess.run([BENCH / "bin" / "pip", "install", "-q", "urlwatch"], check=True, timeout=600)
    site = tmp_path / "site"
    site.mkdir()
    with serving(site) as served:
        url = served.address.rstrip("/") + "/page.html"
        (tmp_path / "urls.yaml").write_text(f"url: {url}\n")
        (tmp_path / "config.yaml").write_text("report: {}\n")
        words = [urlwatch, "--urls", tmp_path / "urls.yaml", "--config", tmp_path / "config.yaml"]
        for text in ("<p>one", "<p>two"):
            (site / "page.html").write_text(text)
            subprocess.run([*words, "--cache", tmp_path / "cache.db", "--hooks", tmp_path / "none.py"],
                           capture_output=True, timeout=300)  # fmt: skip
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(tmp_path / "cache.db")])
        assert dict(report.refused) == {}
        assert [archive.get(url, version=number).body for number in (0, 1)] == [b"<p>one", b"<p>two"]
