"""A crawl of millions of pages, in runs that go on where the last one ended: what a page costs as it grows.

    python bench/million.py --folder DIR [--pages 10000000] [--hosts 100000] [--seconds 3600] [--json]
    python bench/million.py --folder DIR --services --agents 2 --pages 100000 --hosts 1000

Pages of 3 KB come from `bench/crawling/vast_web.py`, which costs the machine
next to nothing; hosts have addresses of their own and ask for no pause. The
crawl is embedded, or lies where LETOPIS_DATABASE_URL and LETOPIS_STORE_URL
say; `--services` starts PostgreSQL and moto's S3, which keeps its objects in
memory, so such a crawl has one run. Agents are watched from outside. The
journal in the folder has a sample a minute and sums up all runs; costs are
told of the second half of each power of ten. When nothing waits any more, the
time to open the archive, to read newest versions and for CDX is told.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.crawling.long_crawl import Cost, Journal, Sample, Watched  # noqa: E402
from bench.crawling.vast_web import VastWeb  # noqa: E402
from bench.curves import CurvePoint, plot  # noqa: E402
from bench.measuring import environment  # noqa: E402
from bench.scaling.services import services  # noqa: E402
from letopis.archive import Archive  # noqa: E402
from letopis.archive.captures import KeyRange  # noqa: E402
from letopis.config import load_settings  # noqa: E402
from letopis.errors import UnknownUrl  # noqa: E402
from letopis.replay.cdx_query import CdxFinder, CdxQuery  # noqa: E402
from letopis.urls import surt  # noqa: E402

GOAL_MB = 1000.0
GOAL_GROWTH = 1.3
_FIRST_COMPARED = 100_000
_SAMPLE_SECONDS, _GLANCE_SECONDS = 60.0, 5.0
_PORT = 18080
_READS = 200
_SETTINGS = ("LETOPIS_DATABASE_URL", "LETOPIS_STORE_")


@contextmanager
def vast_web(hosts: int, pages: int, port: int) -> Iterator[str]:
    """The web in a process of its own; the home page that leads to all others."""
    words = ["--hosts", str(hosts), "--pages", str(pages), "--port", str(port)]
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.crawling.vast_web", *words], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def run(watched: Watched, journal: Journal, seed: str, agents: int, seconds: float, tell: Callable[[], None]) -> None:
    """One run of a crawl, to its end or for some time; everything fetched is recorded then."""
    words = [sys.executable, "-m", "letopis.cli", "crawl", seed, "--delay", "0", "--scope", "any", "--once", "-q"]
    given = {**environment(), **watched.ways, "PYTHONPATH": f"{ROOT}/src"}
    running = [
        subprocess.Popen([*words, "--archive", str(watched.archive) + (f"-{number}" if number else "")], env=given)
        for number in range(agents)
    ]
    began = time.monotonic()
    try:
        last = _watch(watched, journal, running, began, seconds, tell)
        if any(process.wait() for process in running):
            raise SystemExit("an agent failed")
    finally:
        for process in running:
            process.kill()
    if last is not None:
        pages, known = watched.recorded()
        share = (pages - journal.before.pages) / max(1, last.pages - journal.before.pages)
        # What was spent between the last look and the end is not seen from outside: it is taken as the pages are.
        cpu = journal.before.cpu + share * (last.cpu - journal.before.cpu)
        disk = watched.disk_bytes()
        journal.add(replace(last, pages=pages, waiting=known - pages, cpu=cpu, disk_bytes=disk))
        tell()


def _watch(
    watched: Watched, journal: Journal, running: list[subprocess.Popen[bytes]], began: float, seconds: float,
    tell: Callable[[], None],
) -> Sample | None:  # fmt: skip
    last, kept = None, began
    while all(process.poll() is None for process in running):
        now = time.monotonic()
        with suppress(KeyError, OSError):  # one has just ended
            last = watched.sample(journal.before, [process.pid for process in running], now - began)
        if last is not None and now - kept >= _SAMPLE_SECONDS:
            journal.add(replace(last, disk_bytes=watched.disk_bytes()))
            tell()
            kept = now
        if now - began > seconds:
            for process in running:
                process.send_signal(signal.SIGTERM)
            seconds = float("inf")
        time.sleep(_GLANCE_SECONDS)
    return last


def _recorded_pages(archive: Archive, web: VastWeb, chance: random.Random) -> Iterator[str]:
    """Pages anywhere in the archive; on a busy machine some were not answered in time."""
    while True:
        url = web.home(chance.randrange(web.hosts)) + str(chance.randrange(1, web.pages))
        with suppress(UnknownUrl):
            archive.versions(url)
            yield url


def reads(watched: Watched, web: VastWeb) -> dict[str, float]:
    """Milliseconds of CPU: to open the archive, to read a newest version anywhere in it, and CDX of a host's pages."""
    settings = load_settings(None, {**watched.ways, "LETOPIS_ARCHIVE": str(watched.archive)}, {})
    began = time.process_time()
    with Archive.open(settings) as archive:
        opened = time.process_time() - began
        urls = list(islice(_recorded_pages(archive, web, random.Random(1)), _READS))
        began = time.process_time()
        for url in urls:
            archive.get(url)
        read = time.process_time() - began
        finder = CdxFinder(archive)
        next(finder.find(CdxQuery(KeyRange.exactly(surt(urls[0])))))  # loads what the others find loaded
        began = time.process_time()
        rows = sum(len(part) for url in urls for part in finder.find(CdxQuery(KeyRange.exactly(surt(url)))))
        found = time.process_time() - began
    assert rows == len(urls)
    return {"open ms": 1000 * opened, "newest ms": 1000 * read / _READS, "CDX ms": 1000 * found / _READS}


def show(costs: Sequence[Cost]) -> None:
    """The table."""
    print(f"{'pages':>11} {'a second':>9} {'CPU ms a page':>14} {'database ms':>12} {'peak MB':>8} {'disk a page':>12}")
    for one in costs:
        print(
            f"{one.pages:11,} {one.a_second:9.0f} {one.cpu_ms:14.3f} {one.database_ms:12.3f} {one.peak_mb:8.0f} "
            f"{one.bytes_a_page:12,.0f}"
        )


def picture(journal: Journal) -> str:
    """How CPU, memory and disk grow with the pages, each as a multiple of what it was first."""
    points: list[CurvePoint] = []
    for one in journal.costs([4**power * 10_000 for power in range(9)]):
        points.append(CurvePoint("CPU a page", one.pages, one.cpu_ms + one.database_ms, "ms"))
        points.append(CurvePoint("most memory of an agent", one.pages, one.peak_mb, "MB"))
        points.append(CurvePoint("disk a page", one.pages, one.bytes_a_page, "bytes"))
    return plot(sorted(points, key=lambda point: point.what))


def verdict(costs: Sequence[Cost]) -> tuple[float, float]:
    """How much the dearest page from 10^5 on costs against the cheapest, and the most memory."""
    compared = [one.cpu_ms + one.database_ms for one in costs if one.pages >= _FIRST_COMPARED] or [1.0]
    return max(compared) / min(compared), max((one.peak_mb for one in costs), default=0.0)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the costs; goals: within 1.3 of each other from 10^5 pages on, at most 1 GB an agent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", help="not needed: the web is made up")
    parser.add_argument("--folder", type=Path, required=True, help="archive and journal; what is here goes on")
    parser.add_argument("--pages", type=int, default=10_000_000)
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--agents", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end cleanly after this time")
    parser.add_argument("--port", type=int, default=_PORT, help="of the web; the same in all runs")
    parser.add_argument("--services", action="store_true", help="on PostgreSQL and S3 that are started for it")
    parser.add_argument("--plot", type=Path, help="write a picture of the whole crawl to this file")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    options.folder.mkdir(parents=True, exist_ok=True)
    journal = Journal(options.folder / "journal.jsonl")
    each = -(-options.pages // options.hosts)
    ways = {name: value for name, value in os.environ.items() if name.startswith(_SETTINGS)}
    told: dict[str, float] = {}

    def tell() -> None:
        if not options.json:
            show(list(journal.costs())[-1:])

    with (
        services() if options.services else nullcontext() as scaled,
        vast_web(options.hosts, each, options.port) as seed,
    ):
        watched = Watched(options.folder / "archive", scaled.place() if scaled else ways, scaled)
        run(watched, journal, seed, options.agents, options.seconds, tell)
        if not journal.samples[-1].waiting:
            told = reads(watched, VastWeb(options.hosts, each, 0, options.port))
    if options.plot:
        options.plot.write_text(picture(journal))
    costs = list(journal.costs())
    growth, most = verdict(costs)
    if options.json:
        print(json.dumps({"costs": [asdict(one) for one in costs], "growth": growth, "reads": told}))
    else:
        show(costs)
        print(f"from 10^5 pages on within {growth:.2f} of each other (goal {GOAL_GROWTH}), memory {most:.0f} MB")
        print(*(f"{name} {value:.2f}" for name, value in told.items()), sep=", ")
    return 0 if growth <= GOAL_GROWTH and most <= GOAL_MB else 1


if __name__ == "__main__":
    sys.exit(main())
