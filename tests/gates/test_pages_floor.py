"""Pages stay quick over a catalogue far larger than what they show; `bench/pages.py` measures a million URLs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.pages import run
from bench.serving.many_pages import Scale

FLOOR = 250.0
"""CPU milliseconds; a page that looks at every URL or check of this catalogue takes longer than its neighbours do."""


@pytest.mark.files
def test_every_page_over_twenty_thousand_urls_stays_below_its_bound(tmp_path: Path) -> None:
    rows = run(tmp_path, Scale(urls=20_000, hosts=100, watches=2_000), lambda text: None, days=2)
    assert len(rows) > 20
    assert {row.name: row.page for row in rows if row.page > FLOOR} == {}
