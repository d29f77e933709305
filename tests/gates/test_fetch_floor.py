"""A fetch must not grow costly: its CPU time against libcurl alone, measured in the same run."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from pacing import lowest

FLOOR = 6.0
"""Measured when it was written: 2.4 to 3.0."""


@pytest.mark.timed
def test_a_fetch_costs_little_more_than_libcurl_alone() -> None:
    path = Path(__file__).parents[2] / "bench" / "fetch.py"
    spec = importlib.util.spec_from_file_location("bench_fetch", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert lowest(lambda: module.run(count=960, rounds=4)["ratio"], FLOOR) <= FLOOR
