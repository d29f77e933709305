"""The whole crawler through days of the simulated web: no page starves, and it knows how fresh it is."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from statistics import mean

import pytest

from letopis.archive import Archive
from letopis.cli.main import main
from letopis.config import CrawlSettings, ScheduleSettings, Settings
from letopis_demo import World
from letopis_demo.simulation import SimulatedDay, crawl_demo_world, crawl_world


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_unseen_pages_keep_their_share_while_revisits_alone_would_fill_every_minute(
    tmp_path: Path, share: float
) -> None:
    # 2 hosts at 72 fetches a day each, whose 60 pages want 24 visits a day.
    world = World(hosts=2, pages_per_host=60, noisy=0, crawl_delay=0, article_every=timedelta(hours=6))
    settings = Settings(
        crawl=CrawlSettings(delay=1200.0, commit_every=0.0, new_share=share),
        schedule=ScheduleSettings(policy="uniform", interval=3600.0, min=60.0),
    )
    rows = crawl_world(tmp_path / "a", world, settings, 3)
    starved = [row for row in rows if row.new_share is not None and row.new_share < share - 0.05]
    assert starved == []
    assert all(row.visits > 130 for row in rows), "every minute was used"
    assert rows[0].new_share == pytest.approx(share, abs=0.05), "while both were ready, both got their part"
    assert rows[-1].waiting <= rows[0].waiting
    with Archive(tmp_path / "a") as archive:
        assert list(archive.verify()) == []


def test_the_crawler_knows_how_fresh_its_copies_are(tmp_path: Path) -> None:
    rows = crawl_demo_world(tmp_path / "a", "uniform", pages=100, interval=36_000.0, days=6, seed=3)
    learned = rows[1:]
    assert _off(learned) < 0.03, rows
    assert 0.5 < mean(row.freshness for row in learned) < 0.95, "the world leaves something to be believed"


def _off(rows: list[SimulatedDay]) -> float:
    return abs(mean(row.estimate for row in rows) - mean(row.freshness for row in rows))


def test_the_verb_prints_a_row_a_day(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--pages", "12", "--interval", "12h", "--hours", "48", "--policy", "optimal", "--json"]
    assert main(["simulate", "--whole", *words]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["policy"], row["day"]) for row in rows] == [("optimal", 1), ("optimal", 2)]
    assert all(0 <= row["estimate"] <= 1 for row in rows)


@pytest.mark.parametrize("words", [["--policy", "oracle"], ["--hours", "3"]])
def test_what_cannot_be_crawled_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--whole", *words]) == 2
    assert "--whole needs" in capsys.readouterr().err
