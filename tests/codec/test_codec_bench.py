"""The tables of the benchmark of codecs."""

from __future__ import annotations

import runpy
from pathlib import Path

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
