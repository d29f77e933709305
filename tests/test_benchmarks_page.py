"""docs/benchmarks.md is made of the results that are kept, and every row can be measured."""

from __future__ import annotations

import json
from pathlib import Path

import benchmarks
import pytest
from benchmark_rows import ROWS, TRIED, BenchmarkRow
from benchmarks import PAGE, PICTURE, ROOT, BenchmarkResult, kept_results, page, picture, with_measured


def test_the_page_and_its_picture_show_the_results_that_are_kept() -> None:
    results = kept_results()
    stale = "docs/benchmarks.md is out of date: run `python tools/benchmarks.py page`"
    assert PAGE.read_text("utf-8") == page(results), stale
    assert PICTURE.read_text("utf-8") == picture(results), stale


def test_every_result_belongs_to_a_row() -> None:
    assert [result for result in kept_results() if not any(result.is_of(row) for row in ROWS)] == []


def test_a_row_that_misses_its_goal_says_what_was_tried() -> None:
    newest = {(result.row, result.what): result for result in kept_results()}
    missed = [row for row in ROWS if (found := newest.get((row.name, row.what))) and not row.reached(found.ratio)]
    assert {f"{row.name} {row.what}" for row in missed} <= set(TRIED) <= {f"{row.name} {row.what}" for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name} {row.what}")
def test_a_row_has_a_script_and_a_page(row: BenchmarkRow) -> None:
    assert (ROOT / "bench" / f"{row.run.script}.py").exists()
    assert Path(ROOT / "docs" / "benchmarks" / f"{row.page}.md").exists()
    assert row.reached(row.goal)
    assert not row.reached(row.goal - 1 if row.more else row.goal + 1)


def test_a_row_whose_peers_are_missing_keeps_its_older_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"rows": [{"what": "size grouped", "ours": 9, "theirs": 10, "ratio": 0.9, "goal": 1.12}]}
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "zrec.py").write_text(f"print({json.dumps(json.dumps(found))})")
    monkeypatch.setattr(benchmarks, "ROOT", tmp_path)
    run = next(row.run for row in ROWS if row.name == "Q13")
    assert [result.what for result in benchmarks.measure(run, tmp_path, "aaaaaaa")] == ["zrec file, grouped"]
    assert "left out: Q13, bytes on the wire, much changed: no peer was found" in capsys.readouterr().err


def test_a_row_that_is_measured_again_at_a_commit_has_one_result_there() -> None:
    older, other, newer = (
        BenchmarkResult("Q1", "packs", ours, 10.0, ours / 10, "2026-11-17", commit)
        for ours, commit in ((9.0, "aaaaaaa"), (8.0, "bbbbbbb"), (7.0, "aaaaaaa"))
    )
    assert with_measured([older, other], [newer]) == [other, newer]
