"""docs/notebooks, run cell by cell over a Parquet export as a notebook would, in one process and in their order."""

from __future__ import annotations

import ast
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from letopis.archive import Archive
from letopis.cli import main

NOTEBOOKS = sorted((Path(__file__).parent.parent / "docs" / "notebooks").glob("*.ipynb"))
SITE = "https://example.org"


def cells(notebook: Path) -> list[dict[str, Any]]:
    return list(json.loads(notebook.read_text())["cells"])


def run_cells(notebook: Path) -> dict[str, Any]:
    """The names that its cells leave; a last expression is evaluated too, as a notebook shows it."""
    names: dict[str, Any] = {}
    for cell in cells(notebook):
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            exec(compile(tree, f"{notebook.name} {cell['id']}", "exec"), names)
            last = tree.body[-1]
            if isinstance(last, ast.Expr):
                names["shown"] = eval(compile(ast.Expression(last.value), cell["id"], "eval"), names)
    return names


@pytest.mark.files
def test_the_tables_of_an_archive_are_asked_in_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Archive(tmp_path / "archive") as archive:
        for month, words in enumerate((b"one", b"two", b"three"), 1):
            page = b"<title>Prices</title><p>%s euros <a href=/never>rules</a>" % words
            archive.put(f"{SITE}/prices", page, datetime(2026, month, 1, tzinfo=UTC))
        archive.put(f"{SITE}/rules", b"<p>The rules <a href=/never>of old</a>", datetime(2026, 1, 1, tzinfo=UTC))
    monkeypatch.chdir(tmp_path)
    assert main(["--archive", "archive", "export", "parquet", "-o", "tables"]) == 0
    (notebook,) = NOTEBOOKS
    names = run_cells(notebook)
    assert [row[:2] for row in names["busiest"]] == [(f"{SITE}/prices", 3), (f"{SITE}/rules", 1)]
    assert names["lasting"] == [("example.org", 29.5)]
    assert names["unseen"] == [(f"{SITE}/never", 2)]
    assert names["raw"] > 200
    assert names["shown"].endswith(" bytes")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_kept_without_what_a_run_of_it_left(notebook: Path) -> None:
    left = [cell for cell in cells(notebook) if cell.get("outputs") or cell.get("execution_count")]
    assert left == []
    assert len({cell["id"] for cell in cells(notebook)}) == len(cells(notebook))
