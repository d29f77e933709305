"""R1 to R4: pages with their resources, replayed in Chromium by Letopis, pywb and ReplayWeb.page from one capture each.

The captures are WARC and WACZ files of other tools (a folder named by `--corpus`), pages of the simulated web and a
page that loads content in every way, captured by Letopis with a browser. What a page was is measured first: Chromium
opens it at its own address and gets what the file has. Then each player shows it:

- R1: of the requests that got an answer then, the share that is answered at replay
- R2: errors of scripts at replay that there were not then
- R3: share of pages whose picture differs by less than 1 % of pixels from that time's; pages that do not look the same
  twice by themselves are named and left out
- R4: requests that left for the live web, by the log of a proxy
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, sync_playwright

# As a script it starts in its own folder.
sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.replaying.pictures import side_by_side
from bench.replaying.players import Capture, Player, as_captured, letopis, pywb, replayweb
from bench.replaying.visits import HEIGHT, WIDTH, Visit
from bench.replaying.warc_files import KeptWeb, key_of
from letopis import Archive, Monitor
from letopis.config import FetchSettings, MonitorSettings, Settings
from letopis.exchange.imports import import_sources
from letopis.exchange.selection import ExportSelection
from letopis.exchange.wacz_export import export_wacz
from letopis.fetch.browser import find_browser
from letopis.fetch.page_pictures import COUNT_PIXELS
from letopis.fetch.page_steps import PageStep, parse_steps
from letopis_demo import DemoServer, World, running

sys.path.append(str(Path(__file__).parents[1] / "tests" / "site"))
from many_ways import SITE, WAYS_AT, remember_ways
from refusing_proxy import refusing_proxy
from single_page import SEARCH_STEPS, single_page

AT = datetime(2026, 1, 10, 12, tzinfo=UTC)
"""When pages of our own are captured."""

OTHERS = (
    "aut/example.warc.gz", "aut/example.pdf.warc.gz", "aut/issue-493.warc", "ipwb/froggie.warc.gz",
    "ipwb/frogTest.warc", "py-wacz/example-collection-with-lists.warc", "py-wacz/example-iana.warc",
    "pywb/iana.warc.gz", "pywb/dupes.warc.gz", "replayweb.page/embed-test.warc", "replayweb.page/example.wacz",
    "replayweb.page/netpreserve-twitter.warc", "warc2zim/bad-redirections.warc.gz",
    "warc2zim/content-resource-types.warc.gz", "warc2zim/http-return-codes.warc.gz",
    "warc2zim/kiwix-with-redirects.warc.gz", "warc2zim/qsl.net-encoding-alias.warc.gz",
    "warc2zim/single-page-test.warc", "warc2zim/solidaritenum.warc.gz",
    "webarchive-discovery/BL-20140325121225068-00000-32090~opera~8443.warc.gz",
    "webarchive-discovery/flashfrozen-jwat-recompressed.warc.gz", "webarchive-discovery/IAH-urls-wget.warc.gz",
)  # fmt: skip
"""Samples that hold pages with resources, and what made them differs."""
PAGES_OF_ONE = 3
"""Of one file; the largest hold a hundred of one site."""
ALIKE = 0.99
_FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run", "--autoplay-policy=no-user-gesture-required",
)  # fmt: skip


@dataclass
class Source:
    """A file of captures, the archive that has the same, and its pages."""

    file: Path
    archive: Path
    pages: list[Capture]


@dataclass
class Judged:
    """One page as it was, as each player shows it, and how like that is."""

    source: str
    page: Capture
    was: Visit
    steady: float
    shown: dict[str, Visit]
    likeness: dict[str, float]


def sources_of(folder: Path, corpus: Path, names: Iterable[str]) -> Iterator[Source]:
    """Captures of others, by the names of their files."""
    for name in names:
        target = folder / name.replace("/", "-")
        with Archive(target) as archive:
            import_sources(archive, [corpus / name])
        yield Source(corpus / name, target, [])


def captured_pages(folder: Path) -> Iterator[Source]:
    """Pages that Letopis captured with a browser: of the simulated web, of an application; and one of many ways."""
    with running(DemoServer(World(seed=4, hosts=2, pages_per_host=10, crawl_delay=0), lambda: AT)) as server:
        hosts = (list(server.world.urls(host)) for host in server.world.hosts)
        yield _captured(folder / "demo", [url for urls in hosts for url in urls[:4]])
    with single_page() as page:
        yield _captured(folder / "application", [page.url], parse_steps(SEARCH_STEPS))
    with Archive(folder / "ways", clock=lambda: WAYS_AT) as archive:
        remember_ways(archive)
        export_wacz(archive, folder / "ways.wacz", ExportSelection())
    yield Source(folder / "ways.wacz", folder / "ways", [Capture(f"{SITE}/", WAYS_AT)])


def _captured(folder: Path, urls: list[str], steps: tuple[PageStep, ...] = ()) -> Source:
    settings = Settings(monitor=MonitorSettings(min_interval=0), fetch=FetchSettings(private="always"))
    with Archive(folder, settings=settings, clock=lambda: AT) as archive, Monitor(archive) as monitor:
        monitor.look(urls, monitor.options._replace(now=True, browser=True, steps=steps))
        file = folder.with_suffix(".wacz")
        export_wacz(archive, file, ExportSelection())
        found = [archive.sets.of(url) for url in urls]
    return Source(file, folder, [Capture(one.url, one.time) for sets in found for one in sets])


class Bench:
    """Opens everything in one Chromium whose way to the web is a log."""

    def __init__(self, browser: Browser, left: list[str]) -> None:
        self._browser = browser
        self._left = left
        self.leaving: dict[str, list[str]] = {}
        self.scale = browser.new_context().new_page()

    @contextmanager
    def fresh(self, **options: Any) -> Iterator[BrowserContext]:
        """A profile of its own."""
        size = {"width": WIDTH, "height": HEIGHT}
        context = self._browser.new_context(viewport=size, reduced_motion="reduce", **options)  # type: ignore[arg-type]
        try:
            yield context
        finally:
            context.close()

    def likeness(self, one: bytes, other: bytes) -> float:
        """Share of pixels that look the same."""
        if not one or not other:
            return 0.0
        return float(self.scale.evaluate(COUNT_PIXELS, [b64encode(one).decode(), b64encode(other).decode()]))

    def was(self, web: KeptWeb, page: Capture) -> Visit:
        """The page as it was captured."""
        with self.fresh(service_workers="block") as context:
            return as_captured(context, web, page)

    def shown(self, player: Player, page: Capture) -> Visit:
        """The page as a player shows it."""
        before = len(self._left)
        with self.fresh() as context:
            visit = player.visit(context, page)
        self.leaving.setdefault(player.name, []).extend(self._left[before:])
        return visit


@contextmanager
def in_chromium() -> Iterator[Bench]:
    """One Chromium, and the log of what leaves it for the web."""
    # The browser itself asks its maker.
    with refusing_proxy("google") as (port, left), sync_playwright() as play:
        proxy = {"server": f"http://127.0.0.1:{port}", "bypass": "127.0.0.1,*.localhost"}
        browser = play.chromium.launch(executable_path=find_browser(), args=list(_FLAGS), proxy=proxy)  # type: ignore[arg-type]
        yield Bench(browser, left)
        browser.close()


def judged(bench: Bench, source: Source, players: list[Player], most: int) -> Iterator[Judged]:
    """The pages of a file that use resources, by all players."""
    web = KeptWeb(source.file)
    pages = source.pages or [Capture(page.url, page.time) for page in web.pages()]
    for page in pages:
        if most <= 0:
            return
        was = bench.was(web, page)
        if len(was.found - {key_of(page.url)}) < 1 or not was.picture:
            continue
        most -= 1
        shown = {player.name: bench.shown(player, page) for player in players}
        like = {name: bench.likeness(was.picture, visit.picture) for name, visit in shown.items()}
        steady = 1.0
        if min(like.values()) < ALIKE:
            again = bench.was(web, page)
            was.found &= again.found
            steady = bench.likeness(was.picture, again.picture)
        yield Judged(source.file.name, page, was, steady, shown, like)


def figures(rows: list[dict[str, Any]], left: dict[str, list[str]]) -> dict[str, dict[str, float]]:
    """R1 to R4 of each player."""
    steady = [row for row in rows if row["looks the same twice"] >= ALIKE]
    asked = sum(row["requests"] for row in rows)
    return {
        name: {
            "R1": round(sum(row["players"][name]["found"] for row in rows) / asked, 4),
            "R2": sum(sum(row["players"][name]["errors"].values()) for row in rows),
            "R3": round(sum(row["players"][name]["likeness"] > ALIKE for row in steady) / len(steady), 4),
            "R4": len(left.get(name, [])),
        }
        for name in (rows[0]["players"] if rows else ())
    }


def together(rows: list[dict[str, Any]], left: dict[str, list[str]]) -> dict[str, Any]:
    """All that is kept of a run."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "pages": len(rows),
        "requests": sum(row["requests"] for row in rows),
        "not steady": [row["page"] for row in rows if row["looks the same twice"] < ALIKE],
        "figures": figures(rows, left),
        "left": left,
        "rows": rows,
    }


def joined(files: list[Path]) -> dict[str, Any]:
    """Runs over parts of the captures as one; a page that was measured again counts as it was found last."""
    parts = [json.loads(file.read_text()) for file in files]
    rows = {(row["source"], row["page"]): row for part in parts for row in part["rows"]}
    left: dict[str, list[str]] = {}
    for name, lines in (found for part in parts for found in part["left"].items()):
        left.setdefault(name, []).extend(lines)
    return together(list(rows.values()), left)


def row_of(one: Judged) -> dict[str, Any]:
    """What is kept of a page: no more than figures, and what is missing."""
    asked = one.was.found
    return {
        "source": one.source,
        "page": one.page.url,
        "requests": len(asked),
        "looks the same twice": round(one.steady, 4),
        "players": {
            name: {
                "found": len(asked & visit.found),
                "missing": sorted(asked - visit.found)[:20],
                "errors": dict((visit.errors - one.was.errors).most_common(10)),
                "likeness": round(one.likeness[name], 4),
                "note": visit.note,
            }
            for name, visit in one.shown.items()
        },
    }


def measured(folder: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """Everything; what is found is written after each page."""
    keep = asked.keep
    sources = [] if asked.only else list(captured_pages(folder))
    if asked.corpus is not None:
        sources += sources_of(folder, asked.corpus, (name for name in OTHERS if asked.only in name))
    files = [one.file for one in sources]
    with ExitStack() as stack:
        bench = stack.enter_context(in_chromium())
        others = zip(
            stack.enter_context(pywb(folder / "pywb", files)), stack.enter_context(replayweb(files)), strict=True
        )
        rows: list[Judged] = []
        for source, peers in zip(sources, others, strict=True):
            with letopis(source.archive) as ours:
                for row in judged(
                    bench, source, [ours, *peers], PAGES_OF_ONE if not source.pages else len(source.pages)
                ):
                    rows.append(row)
                    found = together([row_of(row) for row in rows], bench.leaving)
                    print(json.dumps(found["rows"][-1]), file=sys.stderr, flush=True)
                    if asked.json is not None:
                        asked.json.write_text(json.dumps(found, indent=1) + "\n")
                    if keep is not None:
                        _keep(keep / f"{len(rows):02}", row, bench)
    return together([row_of(row) for row in rows], bench.leaving)


def _keep(folder: Path, row: Judged, bench: Bench) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {"as captured": row.was.picture} | {name: visit.picture for name, visit in row.shown.items()}
    for name, picture in pictures.items():
        (folder / f"{name}.png").write_bytes(picture)
    (folder / "side-by-side.webp").write_bytes(side_by_side(bench.scale, pictures))


def main() -> None:
    """Prints the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="folder with sample archives of others")
    parser.add_argument("--only", default="", help="files of others whose name has this")
    parser.add_argument("--keep", type=Path, help="folder for the pictures")
    parser.add_argument("--json", type=Path, nargs="?", help="file for all that was found")
    parser.add_argument("--join", type=Path, nargs="*", help="such files of earlier runs over parts, taken as one")
    asked = parser.parse_args()
    if asked.join:
        found = joined(asked.join)
    else:
        with tempfile.TemporaryDirectory() as folder:
            found = measured(Path(folder), asked)
    if asked.json is not None and asked.join:
        asked.json.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps({name: found[name] for name in ("date", "pages", "requests", "figures")}, indent=2))


if __name__ == "__main__":
    main()
