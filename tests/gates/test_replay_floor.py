"""Replay keeps what it reached: captured pages are answered whole, look as they did, and cost little over time."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from patience import UNHURRIED

from letopis import Monitor
from letopis.archive import WRITE, Archive
from letopis.config import FetchSettings, MonitorSettings, Settings
from letopis.operations.context import Context
from letopis.operations.replay_quality import QualityQuery, qa
from letopis_demo import DemoServer, World, running

sys.path.insert(0, str(Path(__file__).parents[2]))
pytest.importorskip("playwright.async_api", reason="NO PLAYWRIGHT: replays were not judged")

from bench.capture import bytes_of_ten

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)


def test_captured_pages_are_answered_whole_and_look_as_they_did(tmp_path: Path) -> None:
    fetch = FetchSettings(private="always")
    settings = Settings(monitor=MonitorSettings(min_interval=0), fetch=fetch, capture=UNHURRIED)
    with Archive(tmp_path / "a", settings=settings, clock=lambda: NOON) as archive:
        world = World(seed=4, hosts=1, pages_per_host=4, crawl_delay=0)
        with running(DemoServer(world, lambda: NOON)) as server, Monitor(archive) as monitor:
            (host,) = server.world.hosts
            urls = list(server.world.urls(host))[:3]
            monitor.look(urls, monitor.options._replace(now=True, browser=True))
        rows = list(qa(Context(archive, rights=WRITE), QualityQuery(place=host, at=None, limit=10)))
    assert sorted(row.url for row in rows) == sorted(urls)
    assert [row.missing for row in rows] == [[]] * 3
    assert min(row.likeness or 0.0 for row in rows) > 0.99


def test_ten_captures_of_a_page_cost_a_fifth_of_as_many_wacz_files() -> None:
    assert bytes_of_ten(browser=False)["ratio"] <= 0.2
