"""An archive that remembers a little web, and the pages over it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from remembered_world import remember
from served_archive import WebClient, running

from letopis.archive import Archive
from letopis.index.word_index import WordIndex
from letopis_demo import World


@pytest.fixture(scope="session")
def little_world() -> World:
    return World(seed=4, hosts=2, pages_per_host=10, span=timedelta(days=6))


@pytest.fixture(scope="session")
def remembered(tmp_path_factory: pytest.TempPathFactory, little_world: World) -> Iterator[Archive]:
    end = little_world.start + timedelta(days=6)
    with Archive(tmp_path_factory.mktemp("pages") / "archive", clock=lambda: end) as archive:
        remember(archive, little_world, days=6)
        WordIndex(archive).catch_up()
        yield archive


@pytest.fixture(scope="session")
def pages(remembered: Archive) -> Iterator[WebClient]:
    with running(remembered) as client:
        yield client
