"""One table for all lists: what is chosen stands in the address, and what is seen can be taken along."""

from __future__ import annotations

import csv
import io
import json
import re
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from served_archive import WebClient, look, running

from letopis.archive import Archive
from letopis.web.tables import TableAddress, TableColumn, make_table, table_download
from letopis.web.watches import WATCH_COLUMNS
from letopis_demo import World


def test_a_table_is_sorted_both_ways_filtered_and_keeps_what_else_was_asked(
    pages: WebClient, little_world: World
) -> None:
    site = f"/site/{little_world.hosts[0]}"
    shown = pages.get(f"{site}?view=ranks&sort=rank").text
    ranks = [float(text) for text in re.findall(r'data-label="Rank">([0-9.]+)<', shown)]
    assert ranks == sorted(ranks)
    assert 'aria-sort="ascending"' in shown
    assert "sort=-rank" in shown
    turned = pages.get(f"{site}?view=ranks&sort=-rank").text
    assert [float(text) for text in re.findall(r'data-label="Rank">([0-9.]+)<', turned)] == ranks[::-1]
    few = pages.get(f"{site}?view=ranks&filter=no-such-page").text
    assert "No matches." in few
    assert '<input type="hidden" name="view" value="ranks">' in few


def test_texts_with_numbers_are_sorted_by_them_lists_by_their_length_and_columns_by_what_they_mean() -> None:
    columns = [TableColumn("run", "Run"), TableColumn("urls", "Pages"), TableColumn("often", "How often", by="every")]
    given = (("10 crawl", ("a", "b"), "1 h", 3600), ("9 crawl", ("x",), "10 min", 600), ("9 audit", (), "2 d", 172800))
    rows = [SimpleNamespace(run=run, urls=urls, often=often, every=every) for run, urls, often, every in given]

    def order(sort: str) -> list[str]:
        return [row.run for row in make_table(TableAddress("/", {"sort": sort}), columns, rows).found]

    assert order("run") == ["9 audit", "9 crawl", "10 crawl"]
    assert order("urls") == ["9 crawl", "10 crawl", "9 audit"]
    assert order("-often") == ["9 audit", "10 crawl", "9 crawl"]
    assert [column.by for column in WATCH_COLUMNS if column.name == "rhythm"] == ["every"]


def test_an_error_has_no_size_and_an_empty_page_has_one() -> None:
    size = TableColumn("bytes", "Size", "size")
    rows = [SimpleNamespace(status=404, bytes=0), SimpleNamespace(status=200, bytes=0), SimpleNamespace(bytes=0)]
    table = make_table(TableAddress("/", {}), [size], rows)
    assert [table.cell(row, size) for row in rows] == [None, 0, 0]


def test_no_text_and_no_list_becomes_a_formula_of_whoever_opens_the_file() -> None:
    starts = "=+-@\t\r\n"
    values = [f"{start}1+1" for start in starts]
    rows = [SimpleNamespace(said=value) for value in [*values, *((value, "x") for value in values), -1, -0.5, "a=1"]]
    table = make_table(TableAddress("/", {"as": "csv"}), [TableColumn("said", "Said")], rows)
    answer = table_download(table, "said")
    assert answer is not None
    cells = [row[0] for row in csv.reader(io.StringIO(bytes(answer.body).decode(), newline=""))][1:]
    assert cells[-3:] == ["-1", "-0.5", "a=1"]
    assert len(cells) == 2 * len(starts) + 3
    assert all(cell.startswith("'") for cell in cells[:-3])


def test_what_is_seen_is_taken_along_as_csv_and_json(pages: WebClient, little_world: World) -> None:
    site = f"/site/{little_world.hosts[0]}"
    answer = pages.get(f"{site}?view=ranks&sort=rank&as=csv")
    assert answer.headers["content-type"].startswith("text/csv")
    assert "attachment" in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) > 2
    assert [float(row["rank"]) for row in rows] == sorted(float(row["rank"]) for row in rows)
    found = json.loads(pages.get(f"{site}?view=ranks&sort=rank&as=json").text)
    assert [row["url"] for row in found] == [row["url"] for row in rows]
    alone = json.loads(pages.get(f"{site}?view=ranks&hide=rank,title,place,rise,links_in,clicks&as=json").text)
    assert set(alone[0]) == {"url"}


def test_wrong_choices_are_left_out(pages: WebClient, little_world: World) -> None:
    site = f"/site/{little_world.hosts[0]}"
    for query in ("sort=nothing", "hide=url,rank", "page=999999", "sort=-", "as=exe"):
        assert pages.get(f"{site}?view=ranks&{query}").status == 200, query


LISTS = ("/sites", "/alerts", "/watches", "/jobs")


def test_every_list_of_the_interface_is_the_same_table(pages: WebClient, little_world: World) -> None:
    host, url = little_world.hosts[0], little_world.url(0, 1)
    views = [
        f"/site/{host}?view={view}" for view in ("links", "pages", "changes", "broken", "ranks", "report", "audit")
    ]
    for address in (*LISTS, *views, f"/url/{url}", f"/search?q={host.split('.')[0]}"):
        answer = settled(pages, address)
        assert answer.status == 200, address
        if 'class="table-tools"' in answer.text:
            assert "data-rows" in answer.text or "Nothing" in answer.text, address
            assert "as=csv" in answer.text, address
            assert "as=json" in answer.text, address
    for address in (views[1], views[4], "/sites"):
        assert 'class="table-tools"' in settled(pages, address).text, address


def settled(pages: WebClient, address: str) -> Any:
    """The page once what it works out in the background is there."""
    until = time.monotonic() + 300
    while "data-again" in (answer := pages.get(address)).text:
        assert time.monotonic() < until, address
    return answer


def test_two_tables_of_a_page_are_chosen_apart_and_keep_each_others_choices(
    pages: WebClient, little_world: World
) -> None:
    url = little_world.url(0, 1)
    shown = pages.get(f"/url/{url}?v.sort=-number&c.filter=200").text
    versions, checks = shown.partition('id="checks"')[::2]
    assert 'name="c.filter" value="200"' in versions
    assert 'name="v.sort" value="-number"' in checks
    rows = list(csv.DictReader(io.StringIO(pages.get(f"/url/{url}?v.as=csv&v.sort=number").text)))
    assert [row["number"] for row in rows] == sorted((row["number"] for row in rows), key=int)
    assert rows[0]["verdict"] == "new"
    found = json.loads(pages.get(f"/url/{url}?c.as=json").text)
    assert {"checked_at", "verdict", "status", "version", "remarks"} == set(found[0])


def test_what_is_seen_is_taken_along_as_parquet(pages: WebClient, little_world: World) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    url = f"{pages.address}/site/{little_world.hosts[0]}?view=ranks&sort=-rank&as=parquet"
    with urllib.request.urlopen(url, timeout=300) as answer:
        table = parquet.read_table(io.BytesIO(answer.read()))
    assert table.column_names == ["place", "url", "rank", "rise", "links_in", "clicks"]
    ranks = table.column("rank").to_pylist()
    assert ranks == sorted(ranks, reverse=True)
    assert isinstance(ranks[0], float)


def test_a_broken_link_comes_with_its_line_and_an_archived_replacement(tmp_path: Path) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    page = b"<html><title>Home</title>\n<p>Read\n<a href='/gone'>the old page</a></p></html>"
    with Archive(tmp_path / "archive", clock=lambda: start + timedelta(days=9)) as archive:
        archive.put("http://a.example/", page, start)
        archive.put("http://a.example/gone", b"<title>Old</title>", start)
        archive.record([look("http://a.example/gone", start + timedelta(days=1), status=404)])
        with running(archive) as web:
            shown = settled(web, "/site/a.example?view=broken").text
            assert "line 3" in shown
            assert "&lt;a href=&#39;/gone&#39;&gt;the old page&lt;/a&gt;" in shown
            copy = f"{web.address}/web/20260101000000/http://a.example/gone"
            assert f'href="{copy}"' in shown
            (row,) = csv.DictReader(io.StringIO(web.get("/site/a.example?view=broken&hide=none&as=csv").text))
            assert (row["line"], row["status"]) == ("3", "404")
            assert row["markup"] == "<a href='/gone'>the old page</a></p></html>"
            assert row["replacement"] == copy
