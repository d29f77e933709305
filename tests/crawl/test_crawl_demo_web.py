"""The whole crawler against the simulated web, judged by the web's own log and history."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
from patience import until

from letopis.archive import Archive
from letopis.config import CrawlSettings, ScheduleSettings, Settings
from letopis.crawl import CrawlLimits, CrawlOptions, CrawlStats, crawl
from letopis_demo import DemoServer, World, running

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)
DAY = timedelta(days=1)
QUIET = ("busy", "overload")
DELAY = 0.02


@dataclass
class Web:
    """The simulated web, standing still at a time that the test can move."""

    server: DemoServer
    log: StringIO
    now: datetime
    began: float = field(default_factory=time.monotonic)

    @property
    def world(self) -> World:
        return self.server.world

    def clock(self) -> datetime:
        """The web's day, with real time passing on it: politeness needs that."""
        return self.now + timedelta(seconds=time.monotonic() - self.began)

    def requests(self) -> list[dict[str, str]]:
        names = ("began", "ended", "wall_began", "wall_ended", "connection", "host", "path", "status")
        return [dict(zip(names, line.split("\t"), strict=True)) for line in self.log.getvalue().splitlines()]


@pytest.fixture
def web() -> Iterator[Web]:
    log = StringIO()
    made = Web(DemoServer(World(hosts=4, pages_per_host=14, crawl_delay=0, noisy=0), log=log), log, NOON)
    made.server._clock = lambda: made.now
    with running(made.server):
        yield made


def settings(**crawling: object) -> Settings:
    schedule = ScheduleSettings(policy="uniform", interval=86400.0)
    return Settings(crawl=CrawlSettings(delay=DELAY, commit_every=0.2, **crawling), schedule=schedule)  # type: ignore[arg-type]


def run(archive: Archive, web: Web, **options: object) -> CrawlStats:
    wanted = CrawlOptions(tuple(web.world.seeds()), exclude=QUIET, limits=CrawlLimits(once=True), **options)  # type: ignore[arg-type]
    return asyncio.run(crawl(archive, wanted))


def told(archive: Archive) -> dict[str, list[tuple[int, str]]]:
    """Status and outcome of every check of every URL."""
    return {
        row.url: [(c.status, c.outcome) for c in archive.history(row.url)] for row in archive.catalog.resources.all()
    }


def test_every_stored_page_is_what_the_web_said(web: Web, tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=settings()) as archive:
        figures = run(archive, web)
        stored = [row.url for row in archive.catalog.resources.all() if row.versions]
        assert figures.new == len(stored) > 40
        assert all(archive.get(url).body == web.world.body(url, web.now) for url in stored)
        assert list(archive.verify()) == []


def test_a_host_sees_one_request_at_a_time_and_its_pauses(web: Web, tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=settings()) as archive:
        run(archive, web)
    by_host: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in web.requests():
        if row["path"] != "/robots.txt":
            by_host[row["host"]].append((float(row["began"]), float(row["ended"])))
    assert len(by_host) == 4
    for spans in by_host.values():
        spans.sort()
        pauses = [later[0] - earlier[0] for earlier, later in itertools.pairwise(spans)]
        assert min(pauses) >= DELAY * 0.98
        assert all(later[0] >= earlier[1] for earlier, later in itertools.pairwise(spans))


def test_robots_txt_is_obeyed_and_told(web: Web, tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=settings()) as archive:
        run(archive, web)
        refused = [url for url, checks in told(archive).items() if any(outcome == "refused" for _, outcome in checks)]
    assert refused
    assert not [row for row in web.requests() if row["path"].startswith("/private/")]


def test_a_page_is_fetched_once_however_many_link_to_it(web: Web, tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=settings()) as archive:
        run(archive, web)
    asked = [(row["host"], row["path"]) for row in web.requests()]
    assert len(asked) == len(set(asked))


def test_pages_that_are_due_are_visited_again_and_changes_found(web: Web, tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=settings(), clock=web.clock) as archive:
        run(archive, web)
        web.now += 3 * DAY
        again = run(archive, web)
        stored = [row.url for row in archive.catalog.resources.all() if row.versions]
        truth = {url for url in stored if web.world.body(url, web.now - 3 * DAY) != web.world.body(url, web.now)}
        alive = {url for url in truth if archive.history(url)[-1].status == 200}
        assert again.unchanged > 0
        assert {url for url in stored if len(archive.versions(url)) > 1} == alive != set()


def test_limit_and_depth_are_kept(web: Web, tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=settings()) as archive:
        options = CrawlOptions(tuple(web.world.seeds()), exclude=QUIET, depth=0, limits=CrawlLimits(once=True))
        assert asyncio.run(crawl(archive, options)).fetched == 4
    with Archive(tmp_path / "b", settings=settings()) as archive:
        options = CrawlOptions(tuple(web.world.seeds()), exclude=QUIET, limits=CrawlLimits(pages=7, once=True))
        assert asyncio.run(crawl(archive, options)).fetched == 7


def test_filters_decide_at_their_points(web: Web, tmp_path: Path) -> None:
    made = settings(follow_if='lang == "cs"', store_if="bytes < 1kb", schedule_if="depth < 2")
    with Archive(tmp_path / "a", settings=made) as archive:
        run(archive, web)
        hosts = {row.host for row in archive.catalog.resources.all()}
        assert len(hosts) == 4
        assert all(
            version.raw_bytes < 1000 for row in archive.catalog.resources.all() for version in archive.versions(row.url)
        )
        assert max(archive.catalog.queues.plan_of(row.id)[3] for row in archive.catalog.resources.all()) < 2


def command(web: Web, folder: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "letopis.cli", "crawl", *web.world.seeds(), "--archive", str(folder), "--delay", "20ms",
        "--exclude", "busy|overload", "--once", "--json", "-q", *more,
    ]  # fmt: skip


def test_two_agents_find_what_one_finds(web: Web, tmp_path: Path) -> None:
    done = subprocess.run(command(web, tmp_path / "two", "--agents", "2"), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    with Archive(tmp_path / "one", settings=settings()) as one, Archive(tmp_path / "two") as two:
        figures = run(one, web)
        assert json.loads(done.stdout)["fetched"] == figures.fetched
        assert told(two) == told(one)


def has_asked_or_ended(web: Web, wanted: int, child: subprocess.Popen[bytes]) -> bool:
    return child.poll() is not None or len(web.requests()) >= wanted


def test_killed_crawls_end_where_an_undisturbed_one_does(web: Web, tmp_path: Path) -> None:
    chance = random.Random(7)
    for _ in range(4):
        seen = len(web.requests())
        child = subprocess.Popen(
            command(web, tmp_path / "killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wanted = seen + chance.randrange(3, 30)
        until(partial(has_asked_or_ended, web, wanted, child))
        child.kill()
        child.wait()
    assert subprocess.run(command(web, tmp_path / "killed"), capture_output=True, timeout=300).returncode == 0
    with Archive(tmp_path / "one", settings=settings()) as one, Archive(tmp_path / "killed") as killed:
        run(one, web)
        assert list(killed.verify()) == []
        found = told(killed)
        assert {url: checks[:1] for url, checks in found.items()} == told(one)
        # A kill inside of a commit leaves contents whose visit was not recorded: those pages are looked at again.
        assert {outcome for checks in found.values() for _, outcome in checks[1:]} <= {"unchanged"}
