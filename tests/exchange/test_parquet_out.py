"""Tables for other tools: read back by pyarrow and asked by DuckDB."""

from __future__ import annotations

import sys
from datetime import UTC, timedelta
from pathlib import Path

import duckdb
import pyarrow
import pyarrow.parquet
import pytest
from exchanged_archives import START, URL

from letopis.archive import Archive
from letopis.errors import MissingExtra
from letopis.exchange import parquet_export
from letopis.exchange.parquet_export import TABLES, export_parquet
from letopis.exchange.selection import ExportSelection
from letopis.extract import read_page


def ask(folder: Path, question: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name in TABLES:
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{folder}/{name}.parquet')")
        return connection.execute(question).fetchall()


def test_every_check_and_version_is_a_row(every_kind: Archive, tmp_path: Path) -> None:
    rows = export_parquet(every_kind, tmp_path, ExportSelection())
    assert (rows["checks"], rows["versions"]) == (9, 4)
    kept = ask(tmp_path, f"SELECT outcome, status, version, error FROM checks WHERE url = '{URL}' ORDER BY time")
    history = [(str(c.outcome), c.status, c.version, c.error) for c in every_kind.history(URL)]
    assert kept == history


def test_times_are_utc_and_columns_typed(every_kind: Archive, tmp_path: Path) -> None:
    export_parquet(every_kind, tmp_path, ExportSelection())
    schema = pyarrow.parquet.read_schema(tmp_path / "checks.parquet")
    assert schema.field("time").type == pyarrow.timestamp("ms", "UTC")
    assert schema.field("status").type == pyarrow.int16()
    table = pyarrow.parquet.read_table(tmp_path / "versions.parquet")
    times = [moment.astimezone(UTC) for moment in table.column("time").to_pylist()]
    assert times[0] == START
    assert table.column("valid_until").to_pylist()[0] == START + timedelta(hours=6)
    assert table.column("title").to_pylist()[0] == "One"


def test_links_are_those_of_each_version_in_document_order(walked: Archive, tmp_path: Path) -> None:
    export_parquet(walked, tmp_path, ExportSelection(site="news1.example"))
    url = "http://news1.example/"
    version = walked.get(url, version=0)
    wanted = [(link.target, str(link.type), link.text) for link in read_page(version.body, url, version.headers).links]
    found = ask(tmp_path, f"SELECT target, type, text FROM links WHERE source = '{url}' AND version = 0")
    assert found == wanted


def test_selection_holds(walked: Archive, tmp_path: Path) -> None:
    export_parquet(walked, tmp_path, ExportSelection(site="news1.example", latest=True))
    assert ask(tmp_path, "SELECT DISTINCT host FROM checks") == [("news1.example",)]
    assert ask(tmp_path, "SELECT max(n) FROM (SELECT count(*) AS n FROM versions GROUP BY url)") == [(1,)]


def test_rows_are_written_in_groups_and_twice_the_same(
    walked: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_export, "ROW_GROUP", 10)
    for name in ("a", "b"):
        export_parquet(walked, tmp_path / name, ExportSelection())
    assert pyarrow.parquet.ParquetFile(tmp_path / "a" / "checks.parquet").num_row_groups == 8
    for name in TABLES:
        file = f"{name}.parquet"
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_stopped_export_leaves_nothing_half(walked: Archive, tmp_path: Path) -> None:
    def stop(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_parquet(walked, tmp_path / "out", ExportSelection(), stop)
    assert list((tmp_path / "out").iterdir()) == []


def test_without_pyarrow_the_extra_is_named(
    every_kind: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"letopis\[parquet\]"):
        export_parquet(every_kind, tmp_path, ExportSelection())
