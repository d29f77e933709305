"""Whatever an archive went through: it can be published, and every clone of it is whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from random_histories import RandomHistory
from replica_world import assert_equal

from letopis.archive import Archive
from letopis.config import Settings, StoreSettings
from letopis.exchange.replica import CloneSelection, PullOptions, clone, detach, fetch_on_demand, publish, pull


def follow(history: RandomHistory, folder: Path, parts: int) -> None:
    """After each part of a history: a new clone and every older one, pulled, equal the origin."""
    for part in range(parts):
        history.steps(3)
        with history.open() as origin:
            publish(origin, folder / "published", grace=0.0)
            clone(str(folder / "published"), folder / f"clone-{part}", CloneSelection(), Settings())
            for older in range(part):
                repack = history.chance.random() < 0.3
                pull(folder / f"clone-{older}", PullOptions(repack=repack), Settings())
            for number in range(part + 1):
                assert_equal(origin, folder / f"clone-{number}")


@pytest.mark.parametrize("seed", [1, 3, 4, 6])
def test_every_clone_of_a_sound_archive_is_whole(tmp_path: Path, seed: int) -> None:
    follow(RandomHistory(tmp_path / "origin", seed), tmp_path, 4)


@pytest.mark.parametrize("seed", [3, 8])
def test_a_lazy_clone_reads_pages_that_lean_on_the_text_of_another_pack(tmp_path: Path, seed: int) -> None:
    history = RandomHistory(tmp_path / "origin", seed)
    history.steps(8)
    with history.open() as origin:
        publish(origin, tmp_path / "published")
        clone(str(tmp_path / "published"), tmp_path / "copy", CloneSelection(lazy=True), Settings())
        with fetch_on_demand(Archive(tmp_path / "copy")) as copy:
            for row in origin.catalog.resources.all():
                for version in origin.versions(row.url):
                    body = origin.get(row.url, version=version.number).body
                    assert copy.get(row.url, version=version.number).body == body


def test_contents_of_any_method_can_be_cloned(tmp_path: Path) -> None:
    settings = Settings(store=StoreSettings(methods=("stored", "gzip", "bzip2")))
    with Archive(tmp_path / "origin", settings=settings) as origin:
        origin.put("http://a.example/", b"<p>the same line</p>\n" * 400)
        publish(origin, tmp_path / "published")
        clone(str(tmp_path / "published"), tmp_path / "copy", CloneSelection(), Settings())
        assert_equal(origin, tmp_path / "copy")


def test_a_detached_clone_can_be_published_and_cloned_in_turn(tmp_path: Path) -> None:
    history = RandomHistory(tmp_path / "origin", 5)
    history.steps(3)
    with history.open() as origin:
        publish(origin, tmp_path / "first")
    clone(str(tmp_path / "first"), tmp_path / "second", CloneSelection(), Settings())
    detach(tmp_path / "second", Settings())
    with Archive(tmp_path / "second") as second:
        second.put("http://own.example/", b"of its own")
        publish(second, tmp_path / "published")
        clone(str(tmp_path / "published"), tmp_path / "third", CloneSelection(), Settings())
        assert_equal(second, tmp_path / "third")
        second.compact()
        publish(second, tmp_path / "published")
        pull(tmp_path / "third", PullOptions(), Settings())
        assert_equal(second, tmp_path / "third")
