"""What we export, looked at with a real browser: the static copy from its files, the WACZ in ReplayWeb.page,
one page as a file of its own."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from many_ways import picture
from patience import until
from playwright.sync_api import expect
from ranged_folder import serving
from scripted_site import ScriptedSite
from walked_world import walk_twice, walked_world

from letopis import Monitor
from letopis.archive import Archive
from letopis.cli.main import main
from letopis.config import FetchSettings, Settings
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
        subprocess.run(["npm", "pack", "replaywebpage"], cwd=CACHE, check=True, capture_output=True, timeout=300)
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
        expect(page).to_have_title(TITLE)
        page.get_by_role("link", name="Lidé").first.click()
        page.wait_for_url("**/lide/index.html")
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
        page.wait_for_url(lambda url: "/r/5/" in url and redirect.name not in url)
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
            frame.get_by_role("heading", name=TITLE).wait_for()
            frame.get_by_role("link", name="Lidé").first.click()
            frame.get_by_role("heading", name="Lidé").first.wait_for()
    finally:
        context.close()


PAGE = """<!doctype html><html><head><title>Příliš žluťoučký</title>
<base href="/deep/"><meta http-equiv=Content-Security-Policy content="default-src *; style-src * 'unsafe-inline'">
<link rel=stylesheet href=style.css><style>h1 { background: url('h.png') }</style></head>
<body background=/body.png><h1>Příliš žluťoučký kůň</h1>
<img src=../a.png width=40 height=40 alt=a><img srcset="b.png 1x" width=40 height=40 alt=b>
<p style="background-image: url(p.png)">text <a href=other?q=1#end>link</a></p>
<iframe src=/frame width=200 height=90></iframe></body></html>"""
PICTURES = ("/a.png", "/body.png", "/deep/b.png", "/deep/h.png", "/deep/p.png", "/deep/li.png", "/more/d.png")

COLORS = {f"{30 * number} {255 - 30 * number} 90" for number in range(len(PICTURES))}


@pytest.fixture
def pictured(scripted_site: ScriptedSite) -> ScriptedSite:
    scripted_site.set("/", PAGE.encode("cp1250"), Content_Type="text/html; charset=windows-1250")
    frame = b"<body style='background: url(/deep/li.png)'><img src=/a.png width=60 height=60 alt=a>"
    scripted_site.set("/frame", frame)
    style = b"@import '/more/d.css'; p { border: 3px solid green }"
    scripted_site.set("/deep/style.css", style, Content_Type="text/css")
    imported = b"h1 { padding: 9px } img { border: 5px solid; border-image: url(d.png) 1 }"
    scripted_site.set("/more/d.css", imported, Content_Type="text/css")
    for number, path in enumerate(PICTURES):
        scripted_site.set(path, picture(bytes((30 * number, 255 - 30 * number, 90))), Content_Type="image/png")
    return scripted_site


@pytest.mark.parametrize("name", ["page.html", "page.mhtml"])
def test_a_page_in_one_file_looks_the_same_with_its_server_off(
    name: str, logged_browser: tuple[Any, list[str]], pictured: ScriptedSite, tmp_path: Path
) -> None:
    browser, left = logged_browser
    url, kind = pictured.url("/"), "singlefile" if name == "page.html" else "mhtml"
    live = looked_at(browser, url)
    settings = Settings(fetch=FetchSettings(private="always"))
    with Archive(tmp_path / "a", settings=settings) as archive, Monitor(archive) as monitor:
        monitor.look([url], monitor.options._replace(now=True, requisites=True))
    pictured.pages.clear()
    del pictured.log[:]
    assert main(["--archive", str(tmp_path / "a"), "export", kind, url, "-o", str(tmp_path / name)]) == 0
    del left[:]
    assert looked_at(browser, (tmp_path / name).as_uri()) == live
    assert pictured.log == []
    assert [line for line in left if "google" not in line] == [], "the browser itself asks its maker"


def looked_at(browser: Any, address: str) -> tuple[str, list[str], bytes]:
    """Title, links and the picture of a page, when all of its pictures are painted."""
    tab = browser.new_page(viewport={"width": 500, "height": 400})
    eyes = browser.new_page()
    try:
        tab.goto(address, wait_until="load")
        for frame in tab.frames:
            frame.evaluate("Promise.all(Array.from(document.images, image => image.decode()))")
        until(lambda: set(eyes.evaluate(COLORS_OF, base64.b64encode(tab.screenshot()).decode())) >= COLORS)
        links = tab.evaluate("Array.from(document.links, link => link.href)")
        return tab.title(), links, tab.screenshot()
    finally:
        eyes.close()
        tab.close()


COLORS_OF = """async data => {
    const picture = await createImageBitmap(await (await fetch('data:image/png;base64,' + data)).blob());
    const drawn = new OffscreenCanvas(picture.width, picture.height).getContext('2d');
    drawn.drawImage(picture, 0, 0);
    const bytes = drawn.getImageData(0, 0, picture.width, picture.height).data;
    const found = new Set();
    for (let at = 0; at < bytes.length; at += 4) found.add(bytes.slice(at, at + 3).join(' '));
    return [...found];
}"""
