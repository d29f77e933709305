"""A crawl that is killed again and again ends where an undisturbed one does, and stays polite on the way.

`LETOPIS_LONG=1` kills 200 times on a larger web.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from logged_web import LoggedWeb, least_pause, logged_web, overlapping, wait_for_pages

from letopis.archive import Archive
from letopis.config import CrawlSettings, ScheduleSettings, Settings
from letopis.crawl import CrawlLimits, CrawlOptions, crawl
from letopis.model import Outcome
from letopis_demo import World

LONG = bool(os.environ.get("LETOPIS_LONG"))
ROUNDS = 200 if LONG else 6
DELAY = 1.5 if LONG else 0.8
WORLD = (
    World(hosts=48, pages_per_host=60, noisy=0, crawl_delay=0) if LONG else World(hosts=7, pages_per_host=6, noisy=0)
)
MOST = 32 if LONG else 14
"""Pages in a round at most, so that all rounds find work."""
QUIET = "busy|overload"
COMMIT = 0.1
SETTINGS = Settings(
    crawl=CrawlSettings(delay=0.0, commit_every=COMMIT), schedule=ScheduleSettings(policy="uniform", interval=86400.0)
)


def started(web: LoggedWeb, folder: Path, agents: int) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "letopis.cli", "crawl", *web.world.seeds(), "--archive", str(folder), "--once", "-q"]
    words += ["--delay", str(DELAY), "--exclude", QUIET, "--revisit", "uniform", "--agents", str(agents)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LETOPIS_")}
    settings = {"LETOPIS_CRAWL_COMMIT_EVERY": str(COMMIT), "LETOPIS_SCHEDULE_INTERVAL": "86400"}
    return subprocess.Popen(
        words, env=kept | settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def killed_often(web: LoggedWeb, folder: Path, agents: int, rounds: int) -> int:
    """Kills with all their processes, each after a random number of requests; how many were still at work."""
    chance = random.Random(7)
    killed = 0
    for _ in range(rounds):
        child = started(web, folder, agents)
        wait_for_pages(web, web.log.pages + chance.randrange(1, MOST), child)
        killed += child.poll() is None
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return killed


def finished(web: LoggedWeb, folder: Path, agents: int) -> None:
    assert started(web, folder, agents).wait(timeout=600) == 0


Told = dict[str, tuple[int, str, bytes]]


def told(archive: Archive) -> Told:
    """Status and outcome of the first check of every URL, and its newest content."""
    return {
        row.url: (
            *next((check.status, check.outcome) for check in archive.history(row.url)),
            archive.get(row.url).body if row.versions else b"",
        )
        for row in archive.catalog.resources.all()
    }


def checked_again(archive: Archive) -> dict[str, int]:
    """How often each URL was checked after its first check, which found the same every time.

    A page that was in its pack when a process was killed, and not in the catalogue yet, is taken in by the next one.
    Its links were not followed, so it is asked for again.
    """
    found = {}
    for row in archive.catalog.resources.all():
        _, *later = archive.history(row.url)
        assert {check.outcome for check in later} <= {Outcome.UNCHANGED}, row.url
        if later:
            found[row.url] = len(later)
    return found


def undisturbed(web: LoggedWeb, folder: Path) -> tuple[Told, tuple[int, ...]]:
    with Archive(folder, settings=SETTINGS) as archive:
        options = CrawlOptions(tuple(web.world.seeds()), exclude=(QUIET,), limits=CrawlLimits(once=True))
        asyncio.run(crawl(archive, options))
        return told(archive), counted(archive)


def counted(archive: Archive) -> tuple[int, ...]:
    stats = archive.stats()
    return stats.documents, stats.versions, stats.raw_bytes, stats.hosts


@pytest.mark.slow
@pytest.mark.parametrize("agents", [1] if LONG else [1, 2])
def test_a_crawl_killed_again_and_again_loses_nothing_and_keeps_its_pauses(tmp_path: Path, agents: int) -> None:
    with logged_web(WORLD) as web:
        killed = killed_often(web, tmp_path / "killed", agents, ROUNDS)
        finished(web, tmp_path / "killed", agents)
        asked = web.asked()
        again = Counter((each.host, each.path) for each in asked)
        one, totals = undisturbed(web, tmp_path / "one")
    with Archive(tmp_path / "killed") as archive:
        assert list(archive.verify()) == []
        assert told(archive) == one
        assert counted(archive) == totals
        twice_checked = checked_again(archive)
    for url, times in twice_checked.items():
        parts = urlsplit(url)
        assert again[parts.netloc, parts.path] > times, "no check without a request"
    twice = sum(count - 1 for count in again.values())
    least = least_pause(asked, "host")
    figures = (
        f"{killed} of {ROUNDS} killed; {len(one)} URLs, {len(asked)} requests, {twice} again; pauses {least:.3f} s\n"
    )
    sys.stdout.write(figures)
    assert killed >= ROUNDS * 0.9
    assert overlapping(asked) == []
    assert least >= DELAY * 0.98
    assert twice <= killed * len(web.world.hosts)
