"""Memory of a long crawl: one process fetches a million pages of the simulated web.

    python bench/million.py [--pages 1000000] [--hosts 1000] [--seconds 5400] [--folder DIR] [--json]

The web has as many pages as are asked for, spread over hosts with addresses
of their own, and no delay. The crawling process is watched from outside: its
resident set out of /proc, the pages it has recorded out of its catalogue. A
line is printed whenever the crawl has grown by half, so that a run that is
ended early has told its curve; `--seconds` ends it cleanly after that time.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.measuring import environment, simulated_web  # noqa: E402

GOAL_MB = 500.0
STEP = 1.5
"""A sample is kept when the crawl has grown by this factor since the last one."""
_GLANCE_SECONDS = 2.0
_NOT_PAGES = "busy|overload|/missing/|/r/|/ad/|/feed|/static|sitemap"
_FIELD = re.compile(r"^(VmRSS|VmHWM|RssAnon):\s+(\d+) kB", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sample:
    """The crawling process after so many pages: megabytes now and at most, and what is on disk."""

    pages: int
    planned: int
    seconds: float
    cpu_ms_a_page: float
    rss_mb: float
    own_mb: float
    peak_mb: float
    disk_mb: float


@contextmanager
def web(hosts: int, pages: int) -> Iterator[list[str]]:
    """The simulated web in a process of its own; its home pages."""
    with simulated_web(hosts, pages, "--noisy", "0", "--bulk", "0.1") as first:
        port = first.rstrip("/").rpartition(":")[2]
        yield [f"http://127.0.{host // 200}.{2 + host % 200}:{port}/" for host in range(hosts)]


def memory(process: int) -> dict[str, float]:
    """Megabytes of a running process: resident, at most so far, and what no file backs."""
    found = _FIELD.findall(Path(f"/proc/{process}/status").read_text())
    return {name: int(value) / 1024 for name, value in found}


def cpu(process: int) -> float:
    """User and system seconds of a running process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def recorded(archive: Path) -> tuple[int, int]:
    """Pages durably recorded, and URLs known."""
    file = archive / "catalogue.sqlite"
    if not file.exists():
        return 0, 0
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30)) as reader:
        try:
            pages = reader.execute("SELECT coalesce(sum(fetched), 0) FROM host").fetchone()[0]
            known = reader.execute("SELECT coalesce(max(id), 0) FROM resource").fetchone()[0]
        except sqlite3.OperationalError:  # its tables are being made
            return 0, 0
    return int(pages), int(known)


def sample(process: int, archive: Path, began: float) -> Sample:
    """How the crawl stands now."""
    pages, known = recorded(archive)
    held = memory(process)
    disk = sum(path.stat().st_size for path in archive.rglob("*") if path.is_file()) / 2**20
    spent = 1000 * cpu(process) / max(pages, 1)
    return Sample(
        pages, known - pages, time.monotonic() - began, spent, held["VmRSS"], held["RssAnon"], held["VmHWM"], disk
    )


def watched(process: subprocess.Popen[str], archive: Path, seconds: float, tell: Callable[[Sample], None]) -> Sample:
    """Tells samples until the process ends, or is asked to after some time; answers the last."""
    began, next_pages, last = time.monotonic(), 1000.0, None
    while process.poll() is None:
        try:
            last = sample(process.pid, archive, began)
        except (KeyError, OSError):
            break  # it has just ended
        if last.pages >= next_pages:
            tell(last)
            next_pages = max(next_pages, last.pages) * STEP
        if time.monotonic() - began > seconds:
            process.send_signal(signal.SIGTERM)
            seconds = float("inf")
        time.sleep(_GLANCE_SECONDS)
    assert last is not None
    return last


def run(pages: int, hosts: int, seconds: float, folder: Path, tell: Callable[[Sample], None]) -> list[Sample]:
    """The samples of one crawl, the last one at its end."""
    samples: list[Sample] = []

    def keep(found: Sample) -> None:
        samples.append(found)
        tell(found)

    with web(hosts, -(-pages // hosts)) as seeds:
        words = [sys.executable, "-m", "letopis.cli", "crawl", *seeds, "--delay", "0", "--scope", "any", "--once"]
        words += ["--exclude", _NOT_PAGES, "--archive", str(folder / "archive"), "--json", "-q"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment())
        try:
            last = watched(process, folder / "archive", seconds, keep)
            out, _ = process.communicate()
        finally:
            process.kill()
    if process.returncode:
        raise SystemExit(f"the crawl ended with status {process.returncode}")
    if not last.pages:
        raise SystemExit("the crawl ended before its memory was looked at; take more --pages")
    keep(_ended(last, json.loads(out), recorded(folder / "archive")))
    return samples


def _ended(last: Sample, told: dict[str, object], found: tuple[int, int]) -> Sample:
    """The last sample, with what the crawl itself said at its end."""
    fetched = int(str(told["fetched"]))
    spent = last.cpu_ms_a_page * last.pages / fetched
    return Sample(
        fetched, found[1] - fetched, last.seconds, spent, last.rss_mb, last.own_mb, last.peak_mb, last.disk_mb
    )


def _line(found: Sample) -> str:
    return (
        f"{found.pages:9,} {found.planned:9,} {found.seconds:8.0f} {found.cpu_ms_a_page:13.2f} "
        f"{found.rss_mb:8.0f} {found.own_mb:8.0f} {found.peak_mb:8.0f} {found.disk_mb:8.0f}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the curve; goal: at most 500 MB at any time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", help="not needed: the web is simulated")
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end cleanly after this time")
    parser.add_argument("--folder", type=Path, help="where the archive lies meanwhile; some gigabytes")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)

    def tell(found: Sample) -> None:
        print(json.dumps(asdict(found)) if options.json else _line(found), flush=True)

    if not options.json:
        print(f"{'pages':>9} {'waiting':>9} {'seconds':>8} {'CPU ms a page':>13} {'RSS MB':>8} {'own MB':>8}", end="")
        print(f" {'peak MB':>8} {'disk MB':>8}", flush=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        samples = run(options.pages, options.hosts, options.seconds, Path(folder), tell)
    held = max(each.peak_mb for each in samples) <= GOAL_MB
    if not options.json:
        most = max(each.peak_mb for each in samples)
        print(f"most memory {most:.0f} MB, goal {GOAL_MB:.0f}: {'held' if held else 'NO'}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
