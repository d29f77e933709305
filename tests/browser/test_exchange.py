"""What we export, looked at with a real browser: the static copy from its files, the WACZ in ReplayWeb.page."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ranged_folder import serving
from walked_world import walk_twice, walked_world

from letopis.archive import Archive
from letopis.exchange.selection import ExportSelection
from letopis.exchange.static_copy import export_static
from letopis.exchange.wacz_export import export_wacz

pytestmark = pytest.mark.browser
CACHE = Path(__file__).parents[2] / ".bench" / "replayweb"
TITLE = "Univerzita v Letohradě nad Sítí"


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    with Archive(tmp_path_factory.mktemp("walked") / "archive") as archive:
        walk_twice(archive, walked_world())
        yield archive


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of ReplayWeb.page, from npm, kept between runs."""
    package = CACHE / "package"
    if not package.is_dir():
        if not os.environ.get("LETOPIS_LONG") or shutil.which("npm") is None:
            pytest.skip("ReplayWeb.page is not here; LETOPIS_LONG=1 fetches it with npm")
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", "replaywebpage"], cwd=CACHE, check=True, capture_output=True, timeout=120)
        with tarfile.open(next(CACHE.glob("replaywebpage-*.tgz"))) as packed:
            packed.extractall(CACHE, filter="data")
    folder = tmp_path_factory.mktemp("player")
    for name in ("index.html", "ui.js", "sw.js"):
        shutil.copy(package / name, folder / name)
    return folder


def test_static_copy_is_browsed_from_its_files(chromium: Any, walked: Archive, tmp_path: Path) -> None:
    export_static(walked, tmp_path / "copy", ExportSelection())
    page = chromium.new_page()
    try:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "copy" / "index.html").as_uri())
        page.get_by_role("link", name=TITLE).click()
        assert page.title() == TITLE
        page.get_by_role("link", name="Lidé").first.click()
        page.wait_for_load_state()
        assert page.url.endswith("/lide/index.html")
        styled = "Array.from(document.styleSheets).some(sheet => sheet.href.endsWith('static/style.css'))"
        assert page.evaluate(styled)
        assert all(url.startswith("file://") for url in asked)
        assert any(url.endswith("/static/style.css") for url in asked)
    finally:
        page.close()


def test_redirects_of_the_copy_lead_on(chromium: Any, walked: Archive, tmp_path: Path) -> None:
    export_static(walked, tmp_path / "copy", ExportSelection())
    redirect = next((tmp_path / "copy" / "news1.example~http" / "r" / "5").glob("2~*.html"))
    page = chromium.new_page()
    try:
        page.goto(redirect.as_uri())
        page.wait_for_url(lambda url: "/r/5/" in url and redirect.name not in url, timeout=10_000)
    finally:
        page.close()


def test_wacz_replays_in_replayweb_page(chromium: Any, walked: Archive, player: Path) -> None:
    world = walked_world()
    export_wacz(walked, player / "world.wacz", ExportSelection())
    context = chromium.new_context()
    try:
        with serving(player) as folder:
            page = context.new_page()
            page.goto(f"{folder.address}/?source={folder.address}/world.wacz#view=replay&url={world.url(0, 0)}")
            frame = page.frame_locator("iframe").first
            frame.get_by_role("heading", name=TITLE).wait_for(timeout=60_000)
            frame.get_by_role("link", name="Lidé").first.click()
            frame.get_by_role("heading", name="Lidé").first.wait_for(timeout=30_000)
    finally:
        context.close()
