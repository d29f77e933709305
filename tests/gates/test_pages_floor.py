"""Pages stay quick over a catalogue far larger than what they show; `bench/pages.py` measures a million URLs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.pages import MOST_KB, VIEWS, run, run_large
from bench.serving.many_pages import Scale

FLOOR = 250.0
"""CPU milliseconds; a page that looks at every URL or check of this catalogue takes longer than its neighbours do."""
SITE_FLOOR = 150.0
"""CPU milliseconds; a view that is worked out anew for each reader, or builds a row a page, takes longer."""


@pytest.fixture(autouse=True)
def nothing_of_others() -> Iterator[None]:
    """What tests before have left in memory is not gone through while pages are measured."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.files
@pytest.mark.timed
def test_every_page_over_twenty_thousand_urls_stays_below_its_bound(tmp_path: Path) -> None:
    rows = run(tmp_path, Scale(urls=20_000, hosts=100, watches=2_000), lambda text: None, days=2)
    assert len(rows) > 20
    assert {row.name: row.page for row in rows if row.page > FLOOR} == {}
    assert {row.name: row.bytes for row in rows if row.bytes > 1000 * MOST_KB} == {}


@pytest.mark.files
@pytest.mark.timed
def test_every_view_of_ten_thousand_indexed_pages_stays_below_its_bound(tmp_path: Path) -> None:
    rows = run_large(tmp_path, 10_000, lambda text: None, only=(*VIEWS, "changes, further", "map, earlier"))
    assert len(rows) == len(VIEWS) + 3
    assert {row.name: row.page for row in rows if row.page > SITE_FLOOR} == {}
    assert {row.name: row.bytes for row in rows if row.bytes > 1000 * MOST_KB} == {}
