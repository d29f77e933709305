"""The tables of the benchmark of codecs."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "codecs.py"


def test_size_classes_add_up_to_all_and_gains_are_over_the_origin() -> None:
    bench = runpy.run_path(str(BENCH))
    pages = [b"<p class=a>word number %d</p>\n" % number * (number * 150) for number in range(1, 6)]
    result = bench["run"](pages, 0, ("stored", "gzip", "bzip2", "zstd"))
    *classes, everything = bench["totals"](result, ("gzip", "zstd"))
    assert everything["kB"] == "all"
    assert everything["pages"] == sum(row["pages"] for row in classes) == len(pages)
    assert everything["raw"] == sum(map(len, pages))
    for name in ("gzip", "zstd"):
        assert everything[name]["bytes"] == sum(row[name]["bytes"] for row in classes)
    assert everything["gzip"]["gain"] == 0.0
    ratio = everything["zstd"]["bytes"] / everything["gzip"]["bytes"]
    assert abs(everything["zstd"]["gain"] - 100 * (1 - ratio)) < 1e-9


def test_slow_and_fast_archives_are_told_by_document_with_reads_of_every_mixture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("news", "shop"):
        folder = tmp_path / "site" / name
        folder.mkdir(parents=True)
        for number in range(6):
            text = f"<p>edition {number} of the {name}</p>" + "<p>the same sentence on every day</p>" * 40
            (folder / f"{number:04}.html").write_text(text)
    bench = runpy.run_path(str(BENCH.with_name("store.py")))
    assert bench["main"](["--corpus", str(tmp_path), "--variants", "--reads", "6", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["document"], row["versions"]) for row in rows] == [("site/news", 6), ("site/shop", 6)]
    for row in rows:
        assert 0 < row["slow"] <= row["fast"] < row["raw"]
        assert row["gzip_9"] <= row["gzip_1"] < row["raw"]
        assert [mix["newest_for_each_old"] for mix in row["reads"]] == [1, 5, 10]
    assert bench["main"](["--corpus", str(tmp_path), "--variants", "--reads", "1"]) == 0
    assert "10:1 (var.)" in capsys.readouterr().out
