"""A real browser over a real archive. Without Chromium these tests are skipped, and say so."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from remembered_world import remember
from served_archive import WebClient, running

from letopis.archive import Archive
from letopis.demo import World

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FLAGS += ["--disable-sync", "--no-first-run"]


@pytest.fixture(scope="session")
def browsed_world() -> World:
    return World(seed=4, hosts=2, pages_per_host=10, span=timedelta(days=4))


@pytest.fixture(scope="session")
def browsed(tmp_path_factory: pytest.TempPathFactory, browsed_world: World) -> Iterator[WebClient]:
    end = browsed_world.start + timedelta(days=4)
    with Archive(tmp_path_factory.mktemp("browser") / "archive", clock=lambda: end) as archive:
        remember(archive, browsed_world, days=4)
        with running(archive) as client:
            yield client


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Ends with the module: while it lives its event loop runs, and no other asynchronous test could."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("NO CHROMIUM on this machine: browser tests did not run; 'make browser' installs it")
    playwright = pytest.importorskip("playwright.sync_api", reason="NO PLAYWRIGHT: browser tests did not run")
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()
