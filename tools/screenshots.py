"""Pictures of every page of the web interface, over an archive of the simulated web.

python tools/screenshots.py OUT [--width 1280] [--dark] [--only NAME]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "site"))

from playwright.sync_api import sync_playwright  # noqa: E402
from remembered_world import end_of, remember, small_world  # noqa: E402
from served_archive import running  # noqa: E402

from letopis.archive import Archive  # noqa: E402
from letopis.demo import World  # noqa: E402
from letopis.model import rfc3339  # noqa: E402

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FLAGS += ["--disable-sync", "--no-first-run"]


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
        "crawl": "/crawl",
        "jobs": "/jobs",
        "duplicates": "/duplicates",
        "duplicates-site": f"/duplicates?site={world.hosts[1]}",
        "storage": "/storage",
        "settings": "/settings",
        "login": "/login",
        "calendar": f"/web/*/{lively}",
        "missing": "/url/http://nowhere.example/",
    }


VIEWS = ("map", "picture", "pages", "changes", "broken", "ranks", "report")


def _versions(archive: Archive, url: str) -> list[object]:
    return list(archive.versions(url)) if archive.catalog.resources.find(url) else []


def shoot(out: Path, width: int, dark: bool, only: str) -> None:
    """Fills an archive, serves it, and takes the pictures."""
    out.mkdir(parents=True, exist_ok=True)
    world = small_world()
    with tempfile.TemporaryDirectory() as folder, Archive(folder, clock=lambda: end_of(world)) as archive:
        remember(archive, world)
        with running(archive) as web, sync_playwright() as play:
            browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            page = browser.new_page(viewport={"width": width, "height": 850}, color_scheme="dark" if dark else "light")
            page.on("console", lambda said: print("console:", said.text, file=sys.stderr))  # noqa: T201
            for name, address in addresses(archive, world).items():
                if only in name:
                    page.goto(web.address + address, wait_until="networkidle")
                    page.screenshot(path=out / f"{name}.png", full_page=width < 600)
            browser.close()


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--only", default="")
    given = parser.parse_args(argv)
    shoot(given.out, given.width, given.dark, given.only)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
