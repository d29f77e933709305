"""Recorded histories replayed: the advice follows how the pages really changed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from letopis.archive import Archive
from letopis.cli.main import main
from letopis.errors import UsageError
from letopis.model import Put
from letopis.schedule.simulation import recorded_world, revisit_advice

DAY = 86_400.0


def daily(period: int, days: int = 60) -> list[tuple[float, bool]]:
    """Visits every day to a page that changes every so many days."""
    return [(day * DAY, day > 0 and day % period == 0) for day in range(days)]


def test_a_world_has_the_changes_that_were_found() -> None:
    world = recorded_world([daily(2), daily(10), daily(1)[:2]])
    assert [len(times) for times in world.changes] == [29, 5]
    assert world.changes[1][0] == 9.5 * DAY
    assert world.seconds == 59 * DAY


def test_nothing_to_learn_from_is_told() -> None:
    with pytest.raises(UsageError, match="crawl or check for a while first"):
        recorded_world([[(0.0, True)], [(day * DAY, False) for day in range(9)]])


def test_pages_that_change_often_are_advised_a_larger_budget() -> None:
    quick, _ = revisit_advice(recorded_world([daily(2) for _ in range(8)]))
    slow, _ = revisit_advice(recorded_world([daily(15) for _ in range(8)]))
    assert quick.budget > slow.budget
    assert quick.interval < slow.interval
    assert (quick.pages, quick.changes) == (8, 8 * 29)
    assert 0.0 < quick.freshness <= 1.0


def test_the_archive_is_replayed_by_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    with Archive(tmp_path / "a") as archive:
        puts = [
            Put(f"http://example.org/{page}", b"<p>words of day %d" % (day // (page + 1)), begin + timedelta(days=day))
            for day in range(40)
            for page in range(3)
        ]
        list(archive.put_many(puts))
    words = ["--archive", str(tmp_path / "a"), "simulate", "--from-archive"]
    assert main(words) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[0].startswith("policy")
    assert "advice: schedule.policy" in told.err
    assert main([*words, "--json", "--site", "example.org"]) == 0
    assert json.loads(capsys.readouterr().out)["pages"] == 3
    assert main([*words, "--site", "nosuch.example"]) == 3
