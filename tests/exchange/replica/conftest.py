"""A small archive with captures of every kind, published and served."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from remembered_world import remember
from replica_world import NOW, Replica, ticking
from served_archive import fill
from static_site import static_site

from letopis.archive import Archive
from letopis_demo import World


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Versions, revisits, errors with bodies, redirects, failures; small pages and some larger ones."""
    folder = tmp_path_factory.mktemp("origin") / "archive"
    with Archive(folder, clock=lambda: NOW) as archive:
        fill(archive)
        world = World(seed=4, hosts=2, pages_per_host=10, span=timedelta(days=4))
        remember(archive, world, days=2)
        archive.put("http://big.example/", bytes(range(256)) * 20_000 + b"end")
        archive.catalog.tidy()
    return folder


@pytest.fixture
def replica(tmp_path: Path, filled: Path) -> Iterator[Replica]:
    """A published origin and its server."""
    shutil.copytree(filled, tmp_path / "origin")
    with Archive(tmp_path / "origin", clock=ticking()) as archive, static_site(tmp_path / "published") as site:
        ready = Replica(tmp_path, archive, site)
        ready.publish()
        yield ready
