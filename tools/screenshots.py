"""Pictures of every page of the web interface, over an archive of the simulated web.

python tools/screenshots.py OUT [--width 1280] [--dark] [--language cs] [--only NAME]
python tools/screenshots.py --docs     (the ones of README and guide, into docs/images)
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "site"))

from playwright.sync_api import sync_playwright  # noqa: E402
from remembered_world import answered_job, end_of, remember, small_world  # noqa: E402
from served_archive import running  # noqa: E402

from letopis.archive import Archive  # noqa: E402
from letopis.catalog.accounts import Accounts, Projects  # noqa: E402
from letopis.index.link_index import LinkIndex  # noqa: E402
from letopis.index.map_formats import MAP_FORMATS  # noqa: E402
from letopis.index.site_maps import site_map  # noqa: E402
from letopis.model import rfc3339, stamp14, to_millis  # noqa: E402
from letopis_demo import World  # noqa: E402

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FLAGS += ["--disable-sync", "--no-first-run"]
PASSWORD = "a long password"  # noqa: S105


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
        "welcome": "/welcome",
        "calendar": f"/web/*/{lively}",
        "missing": "/url/http://nowhere.example/",
        "job": f"/jobs/{answered_job(archive, world.hosts[0])}",
        "replay": f"/web/{stamp14(change.checked_at)}/{lively}",
    }


MAP = "map-page"
VIEWS = ("map", "picture", "links", "pages", "changes", "broken", "ranks", "report", "audit")
NAMES = ("overview", "url", *(f"compare-{name}" for name in ("words", "sides", "visual", "links", "raw")))
NAMES += tuple(f"site-{name}" for name in VIEWS)
NAMES += (
    "search",
    "search-empty",
    "watches",
    "watch",
    "pick",
    "crawl",
    "jobs",
    "duplicates",
    "duplicates-site",
    "storage",
    "settings",
)
NAMES += ("login", "accounts", "welcome", "calendar", "missing", "job", "replay")


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


DOCS = [Shot(name, Look(), name) for name in ("overview", "watches", "site-changes", "url", "search")]
DOCS += [Shot(name, Look(), name) for name in ("watch", "site-audit")]
DOCS += [Shot("site-picture", Look(dark=True), "picture-dark"), Shot("watches", Look(390, dark=True), "phone-dark")]
DOCS += [Shot("compare-words", Look(height=680), "compare-words")]  # many colours: kept below 200 kB
DOCS += [Shot(MAP, Look(width=900, height=830), "map-page")]
DOCS += [Shot("url", Look(language="cs"), "url-czech"), Shot("calendar", Look(), "calendar")]


def shoot(out: Path, shots: list[Shot]) -> None:
    """Fills an archive, serves it, and takes the pictures."""
    out.mkdir(parents=True, exist_ok=True)
    world = small_world()
    with tempfile.TemporaryDirectory() as folder, Archive(folder, clock=lambda: end_of(world)) as archive:
        remember(archive, world)
        people(archive)
        with running(archive) as web, sync_playwright() as play:
            browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            known = addresses(archive, world)
            for shot in shots:
                take(
                    browser, web.address, known[shot.page] if shot.page != MAP else map_page(archive, world), shot, out
                )
            browser.close()


def map_page(archive: Archive, world: World) -> str:
    """The address of the map of a university as `letopis map --format html` writes it."""
    graph = LinkIndex(archive).graph()
    made = MAP_FORMATS["html"].write(site_map(graph, world.hosts[0], to_millis(archive.clock())))
    file = archive.folder / "map.html"
    file.write_text("".join(made))
    return file.as_uri()


def people(archive: Archive) -> None:
    """Somebody to look through whose eyes, and what people leave behind."""
    accounts = Accounts(archive.catalog.database)
    made = to_millis(archive.clock())
    olga = accounts.add("olga", "owner", PASSWORD, made)
    accounts.add("karel", "user", PASSWORD, made)
    accounts.create_token("nightly-export", olga, "read", made)
    Projects(archive.catalog.database).add("university", "olga", ["http://university0.example/"], made)


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
    page.screenshot(path=out / f"{shot.name}.png", full_page=look.width < 600 and shot.name != "phone-dark")
    context.close()


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?", default=ROOT / "docs" / "images")
    parser.add_argument("--docs", action="store_true", help="the pictures of README and guide")
    parser.add_argument("--language", default="en")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--only", default="")
    given = parser.parse_args(argv)
    look = Look(given.width, given.dark, given.language)
    shots = DOCS if given.docs else [Shot(name, look, name) for name in NAMES]
    shoot(given.out, [shot for shot in shots if given.only in shot.name])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
