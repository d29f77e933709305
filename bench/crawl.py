"""Q8: CPU of a crawl end to end, ours against Scrapy, wget, wget2 and httrack, on the simulated web.

Ours fetches, reads, finds links, compares and archives durably; Scrapy
follows links and stores nothing; wget, wget2 and httrack, where installed,
store plain files. Two bounds: the libraries that ours uses with nothing
around them, and wrk, which only asks. CPU is user and system time of the
crawling processes alone; the web runs in its own. All of them take turns, and
of each the round counts that took least.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import which

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.measuring import measured, simulated_web  # noqa: E402

ENVIRONMENT = ROOT / ".bench" / "crawl"
SPIDER = """
import scrapy
from scrapy.linkextractors import LinkExtractor

class Walk(scrapy.Spider):
    name = "walk"
    custom_settings = {settings!r}

    async def start(self):
        yield scrapy.Request({seed!r})

    def parse(self, response):
        if not hasattr(response, "text"):
            return
        title = response.css("title::text").get()
        for link in LinkExtractor(allow=[{allow!r}], deny=["busy", "overload"]).extract_links(response):
            yield response.follow(link, self.parse)
        yield {{"url": response.url, "title": title}}
"""
DEFAULT = {"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False, "DOWNLOAD_DELAY": 0, "ROBOTSTXT_OBEY": True}
TUNED = DEFAULT | {
    "CONCURRENT_REQUESTS": 64,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
}


@dataclass(frozen=True, slots=True)
class Row:
    """One crawler: pages it fetched and CPU milliseconds a page."""

    name: str
    pages: int
    cpu_ms_a_page: float


def ours(seed: str, folder: Path, agents: int = 1) -> Row:
    words = [sys.executable, "-m", "letopis.cli", "crawl", seed, "--delay", "0", "--once", "--json", "-q"]
    words += ["--exclude", "busy|overload", "--archive", str(folder / "archive"), "--agents", str(agents)]
    spent, out, _ = measured(words, folder)
    pages = int(json.loads(out)["fetched"])
    return Row(f"Letopis, {agents} agent" + ("s" if agents > 1 else ""), pages, 1000 * spent / pages)


def scrapy(seed: str, folder: Path, name: str, settings: dict[str, object]) -> Row:
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        venv.create(ENVIRONMENT, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "scrapy"], check=True, stderr=subprocess.DEVNULL)
    (folder / "walk.py").write_text(SPIDER.format(settings=settings, seed=seed, allow=re.escape(seed)))
    spent, _, _ = measured([str(python), "-m", "scrapy", "runspider", "walk.py", "-o", "items.jsonl"], folder)
    pages = len((folder / "items.jsonl").read_text().splitlines())
    return Row(name, pages, 1000 * spent / pages)


def wget(seed: str, folder: Path, program: str = "wget") -> Row | None:
    """Plain files; wget2 takes the same options."""
    if which(program) is None:
        return None
    words = [program, "-q", "-r", "-l", "inf", "-P", str(folder / "files"), "--reject-regex", "busy|overload", seed]
    spent, _, _ = measured(words, folder)
    pages = sum(1 for path in (folder / "files").rglob("*") if path.is_file())
    return Row(f"{program} -r", pages, 1000 * spent / pages)


def httrack(seed: str, folder: Path) -> Row | None:
    """A mirror with rewritten links; its own limits of rate and connections are lifted."""
    if which("httrack") is None:
        return None
    words = ["httrack", seed, "-O", str(folder / "files"), "-q", "-c8", "-%c0", "-A0", "--disable-security-limits"]
    spent, _, _ = measured([*words, "-*busy*", "-*overload*", "-N0"], folder)
    pages = sum(1 for path in (folder / "files").rglob("*.html"))
    return Row("httrack", pages, 1000 * spent / pages)


def bare(seed: str, folder: Path) -> Row:
    """Fetching, parsing, joining, digesting, packing and keeping with our libraries and nothing around them."""
    words = [sys.executable, str(ROOT / "bench" / "crawling" / "bare.py"), seed, str(folder), "busy|overload"]
    spent, out, _ = measured(words, folder)
    return Row("bare libraries", int(out), 1000 * spent / int(out))


def bound(seed: str, folder: Path) -> Row | None:
    """What sending and receiving alone costs: wrk asks for the home page again and again, and reads nothing of it."""
    if which("wrk") is None:
        return None
    spent, out, _ = measured(["wrk", "-t1", "-c8", "-d3s", seed], folder)
    found = re.search(r"(\d+) requests in", out)
    pages = int(found[1]) if found else 1
    return Row("wrk, the bound", pages, 1000 * spent / pages)


CRAWLERS: tuple[Callable[[str, Path], Row | None], ...] = (
    ours,
    lambda seed, folder: scrapy(seed, folder, "Scrapy, default", DEFAULT),
    lambda seed, folder: scrapy(seed, folder, "Scrapy, tuned", TUNED),
    wget,
    lambda seed, folder: wget(seed, folder, "wget2"),
    httrack,
    bare,
    bound,
)


def run(pages: int, rounds: int = 1, crawlers: Sequence[Callable[[str, Path], Row | None]] = CRAWLERS) -> list[Row]:
    """All crawlers on the same web, one after the other, again and again; of each the round that took least."""
    best: dict[str, Row] = {}
    with simulated_web(1, pages) as seed:
        for _ in range(rounds):
            for crawler in crawlers:
                with tempfile.TemporaryDirectory() as folder:
                    row = crawler(seed, Path(folder))
                if row is not None and (row.name not in best or row.cpu_ms_a_page < best[row.name].cpu_ms_a_page):
                    best[row.name] = row
    return list(best.values())


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; goal: 20 x Scrapy default, and not slower than wget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--corpus", help="not needed here")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    rows = run(options.pages, options.rounds)
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
        return 0
    base = rows[0].cpu_ms_a_page
    print(f"{'crawler':20} {'pages':>6} {'CPU ms a page':>14} {'x ours':>7}")
    for row in rows:
        print(f"{row.name:20} {row.pages:6} {row.cpu_ms_a_page:14.2f} {row.cpu_ms_a_page / base:7.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
