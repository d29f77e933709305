"""Pictures of every page of the web interface, over an archive of the simulated web.

python tools/screenshots.py [OUT] [--only NAME] [--language cs]

Each is taken wide and narrow, light and dark, into a folder of each look below docs/images (`make screenshots`).
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import sys
import tempfile
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "site"))

from playwright.sync_api import sync_playwright  # noqa: E402
from remembered_world import answered_job, end_of, remember, saved_search, small_world  # noqa: E402
from served_archive import running  # noqa: E402

from letopis.archive import Archive  # noqa: E402
from letopis.archive.accounts import invitations_of  # noqa: E402
from letopis.catalog.accounts import Accounts  # noqa: E402
from letopis.catalog.sessions import TokenTimes, hash_token  # noqa: E402
from letopis.catalog.watches import AlertRow, NewAlert, Watches  # noqa: E402
from letopis.fetch.browser import find_browser  # noqa: E402
from letopis.index.link_index import LinkIndex  # noqa: E402
from letopis.index.map_formats import MAP_FORMATS  # noqa: E402
from letopis.index.site_maps import site_map  # noqa: E402
from letopis.model import rfc3339, stamp14, to_millis  # noqa: E402
from letopis.monitor.watch_list import WatchList  # noqa: E402
from letopis.operations import Context  # noqa: E402
from letopis.operations.projects import AddToProjectCommand, add_to_project  # noqa: E402
from letopis_demo import World  # noqa: E402

CHROMIUM = find_browser()
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FLAGS += ["--disable-sync", "--no-first-run"]
PASSWORD = "a long password"  # noqa: S105
_DAY = 86_400_000


def addresses(archive: Archive, world: World) -> dict[str, str]:
    """Every page that is worth a picture, by name."""
    lively = max((world.url(0, page) for page in range(8)), key=lambda url: len(_versions(archive, url)))
    change = next(c for c in archive.history(lively)[::-1] if c.meaningful)
    view = f"/compare/{lively}?to={rfc3339(change.checked_at)}&view="
    site = f"/site/{world.hosts[0]}"
    views = {f"site-{name}": f"{site}?view={name}" for name in VIEWS}
    return {
        "overview": "/",
        "url": f"/url/{lively}",
        **{f"compare-{name}": view + name for name in ("words", "sides", "visual", "links", "raw")},
        **views,
        "search": "/search?q=garden",
        "search-empty": "/search",
        "saved-searches": "/saved",
        "saved-search": "/saved/1",
        "save-table": "/saved/new?question=broken&with=site%3D" + world.hosts[0],
        "alerts": "/alerts",
        "sites": "/sites",
        "watches": "/watches",
        "watch": "/watches/1",
        "pick": "/watches/1/pick",
        "crawl": "/crawl",
        "jobs": "/jobs",
        "duplicates": "/duplicates",
        "duplicates-site": f"/duplicates?site={world.hosts[1]}",
        "storage": "/storage",
        "settings": "/settings",
        "login": "/login",
        "accounts": "/accounts",
        "audit-log": "/audit",
        "help": "/help",
        "join": f"/join?invitation={_invitation(archive)}",
        "save": f"/save?url={lively}",
        "reference": "/docs",
        "reference-page": "/docs/search",
        "welcome": "/welcome",
        "calendar": f"/web/*/{lively}",
        "missing": "/url/http://nowhere.example/",
        "job": f"/jobs/{answered_job(archive, world.hosts[0])}",
        "replay": f"/web/{stamp14(change.checked_at)}/{lively}",
        "not-captured": f"/web/{stamp14(change.checked_at)}/http://nowhere.example/page",
        "projects": "/projects",
        "project": "/projects/university",
        "statistics": "/statistics",
    }


def _invitation(archive: Archive) -> str:
    return invitations_of(archive).add("user", "", "olga", to_millis(archive.clock()), 86_400_000)[1]


MAP = "map-page"
FRAMED = ("replay", "pick", "compare-visual")
"""Pages that show another document inside, which is painted a moment later."""
VIEWS = ("map", "picture", "links", "pages", "changes", "broken", "ranks", "report", "audit")


def _versions(archive: Archive, url: str) -> list[object]:
    return list(archive.versions(url)) if archive.catalog.resources.find(url) else []


@dataclass(frozen=True, slots=True)
class Look:
    """How a reader sees a page."""

    width: int = 1280
    dark: bool = False
    language: str = "en"
    height: int = 850


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture: of which page, seen how, kept under which name."""

    page: str
    look: Look
    name: str


LOOKS = {
    f"{size}-{scheme}": Look(width, dark=scheme == "dark")
    for size, width in (("wide", 1280), ("narrow", 390))
    for scheme in ("light", "dark")
}
"""How people see the pages."""
BESIDE = [Shot(MAP, Look(width=900, height=830), MAP), Shot("url", Look(language="cs"), "url-czech")]
"""What the guide shows otherwise."""


def shoot(out: Path, only: str, language: str) -> None:
    """Fills an archive, serves it, and takes the pictures."""
    world = small_world()
    # From inside of the folder, so that no page shows where this machine keeps it.
    out = out.absolute()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        Archive("letopis-archive", clock=lambda: end_of(world) + timedelta(minutes=10)) as archive,
    ):
        remember(archive, world)
        people(archive)
        with running(archive) as web, sync_playwright() as play:
            browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            known = addresses(archive, world) | {MAP: map_page(archive, world)}
            looks = {name: replace(look, language=language) for name, look in LOOKS.items()}
            every = [
                Shot(page, look, f"{name}/{page}") for name, look in looks.items() for page in known if page != MAP
            ]
            for shot in [*every, *BESIDE]:
                if any(part in shot.name for part in only.split(",")):
                    take(browser, web.address, known[shot.page], shot, out)
            browser.close()


def map_page(archive: Archive, world: World) -> str:
    """The address of the map of a university as `letopis map --format html` writes it."""
    graph = LinkIndex(archive).graph()
    made = MAP_FORMATS["html"].write(site_map(graph, world.hosts[0], to_millis(archive.clock())))
    file = archive.folder / "map.html"
    file.write_text("".join(made))
    return file.absolute().as_uri()


def people(archive: Archive) -> None:
    """Somebody to look through whose eyes, and what people leave behind."""
    accounts = Accounts(archive.catalog.database)
    made = to_millis(archive.clock())
    olga = accounts.add("olga", "owner", PASSWORD, made)
    accounts.add("karel", "user", PASSWORD, made)
    used = accounts.create_token("nightly-export", olga, "read", made - 40 * _DAY, made + 50 * _DAY)
    accounts.create_token("release-check", olga, "write", made)
    TokenTimes(archive.catalog.database).set("used", {hash_token(used): made - _DAY // 4})
    alerts(archive)
    saved_search(archive, "olga", archive.clock())
    chairs = archive.get("http://shop2.example/offers/garden-chairs.html").body
    for place in ("offers/garden-chairs.html?from=mail", "copies/for-print/garden-chairs.html"):
        archive.put(f"http://shop2.example/{place}", chairs, archive.clock())
    asking = Context(archive, user="olga", rights=7)
    pages = tuple(entry.watch.url for entry in WatchList(archive).entries())
    add_to_project(asking, AddToProjectCommand(name="university", urls=pages, sites=("university0.example",)))


def alerts(archive: Archive) -> None:
    """What watches would have noticed, the oldest first."""
    found = [
        (change, entry)
        for entry in WatchList(archive).entries()
        for change in [one for one in archive.history(entry.watch.url) if one.verdict == "changed"][-3:]
    ]
    for change, entry in sorted(found, key=lambda pair: pair[0].checked_at):
        url, moment = entry.watch.url, to_millis(change.checked_at)
        facts = {"tag": "demo", "watch": entry.id, "version": change.version, "score": change.score}
        row = AlertRow(0, url, "changed", moment, f"{url} changed: {change.reason}", json.dumps(facts))
        Watches(archive.catalog.database).save_judged([], [NewAlert(row, ())])


def take(browser: Any, base: str, address: str, shot: Shot, out: Path) -> None:
    """One picture, of a signed-in reader but for the page that signs in."""
    look = shot.look
    context = browser.new_context(
        base_url=base, viewport={"width": look.width, "height": look.height},
        color_scheme="dark" if look.dark else "light", locale=look.language,
    )  # fmt: skip
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.on("console", lambda said: print("console:", shot.page, said.text, file=sys.stderr))
    if shot.page != "login":
        context.request.post("/login", form={"name": "olga", "password": PASSWORD}, max_redirects=0)
    page.goto(address, wait_until="networkidle")
    page.wait_for_timeout(1500 if shot.page in FRAMED else 0)
    file = out / f"{shot.name}.webp"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(_webp(page, whole=look.width < 600))
    if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
        print("wider than the window:", file, file=sys.stderr)
    context.close()


def _webp(page: Any, *, whole: bool) -> bytes:
    """The picture in a form that takes a third of PNG; of long pages not more than a reader scrolls.

    Beyond its window a page is painted anew, and a document of another origin inside it stays blank as often as not:
    what fits into the window is taken as it stands there.
    """
    size = page.viewport_size
    height = min(page.evaluate("document.documentElement.scrollHeight"), 1700) if whole else size["height"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1}
    asked = {"format": "webp", "quality": 45, "captureBeyondViewport": height > size["height"], "clip": clip}
    return base64.b64decode(page.context.new_cdp_session(page).send("Page.captureScreenshot", asked)["data"])


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?", default=ROOT / "docs" / "images")
    parser.add_argument("--language", default="en")
    parser.add_argument("--only", default="", help="those with one of these in their name: wide-dark/search,accounts")
    given = parser.parse_args(argv)
    shoot(given.out, given.only, given.language)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
