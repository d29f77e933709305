"""An origin whose catalogue is in PostgreSQL and whose packs are in an object store publishes like any other."""

from __future__ import annotations

from pathlib import Path

from replica_world import assert_equal, body

from letopis.archive import Archive
from letopis.config import Settings
from letopis.exchange.replica import CloneSelection, PullOptions, clone, publish, pull


def test_a_scaled_out_archive_is_published_and_cloned(scaled_settings: Settings, tmp_path: Path) -> None:
    with Archive(tmp_path / "origin", settings=scaled_settings) as origin:
        for number in range(4):
            origin.put(f"http://scaled.example/{number % 2}", body(number))
        publish(origin, tmp_path / "out")
        clone(str(tmp_path / "out"), tmp_path / "copy", CloneSelection(), scaled_settings)
        assert_equal(origin, tmp_path / "copy")
        origin.compact(effort="quick")
        origin.put("http://scaled.example/0", body(9))
        publish(origin, tmp_path / "out")
        pull(tmp_path / "copy", PullOptions(), scaled_settings)
        assert_equal(origin, tmp_path / "copy")
