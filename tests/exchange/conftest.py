"""Archives to exchange: one with every kind of check, one of a walked world."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from exchanged_archives import check_every_way
from walked_world import walk_twice, walked_world

from letopis.archive import Archive


@pytest.fixture
def every_kind(tmp_path: Path) -> Iterator[Archive]:
    """Every kind of check that there is."""
    with Archive(tmp_path / "every-kind") as archive:
        check_every_way(archive)
        yield archive


@pytest.fixture(scope="session")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Read-only: all tests share it."""
    with Archive(tmp_path_factory.mktemp("walked") / "archive") as archive:
        walk_twice(archive, walked_world())
        yield archive
