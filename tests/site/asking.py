"""What the tests of the language share: a web that stands still, an archive on its clock, and a way to ask."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lxml import etree

from letopis.archive import Archive, utc_now
from letopis.archive.jobs import COMMAND_LINE, Requester
from letopis.config import CrawlSettings, JobsSettings, Settings
from letopis.jobs import JobContext
from letopis.jobs.language.interpreter import run_query
from letopis.operations.job_files import parse_job_file
from letopis_demo import DemoServer, World, running

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)
QUICK = Settings(crawl=CrawlSettings(delay=0.0))


@dataclass
class Told:
    """The progress of a job, written down; `on_log` may look at the archive or cancel meanwhile."""

    steps: list[tuple[int, int, str]] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    on_log: Callable[[str], None] = lambda line: None
    stopped: bool = False

    def step(self, number: int, of: int, what: str) -> None:
        self.steps.append((number, of, what))

    def share(self, done: float, figures: str = "") -> None:
        self.shares.append(done)

    def log(self, line: str) -> None:
        self.lines.append(line)
        self.on_log(line)

    def cancelled(self) -> bool:
        return self.stopped


@dataclass
class Web:
    """The simulated web, standing still at a time that a test can move."""

    server: DemoServer
    now: datetime = NOON
    began: float = field(default_factory=time.monotonic)

    @property
    def world(self) -> World:
        return self.server.world

    def clock(self) -> datetime:
        """The web's day, with real time passing on it: politeness needs that."""
        return self.now + timedelta(seconds=time.monotonic() - self.began)


@contextmanager
def demo_web(hosts: int = 2, pages: int = 20) -> Iterator[Web]:
    made = Web(DemoServer(World(hosts=hosts, pages_per_host=pages, crawl_delay=0, noisy=0)))
    made.server._clock = lambda: made.now
    with running(made.server):
        yield made


TESTER = COMMAND_LINE._replace(name="tester")


def ask(
    archive: Archive, text: str, told: Told | None = None, *, private: bool = True, output: Path | None = None,
    requester: Requester = TESTER,
) -> etree._Element:  # fmt: skip
    """The result of a query as one element with one child a step."""
    query = parse_job_file(text.encode(), archive.settings)
    clock = getattr(archive, "clock", utc_now)
    context = JobContext(archive, archive.settings, told or Told(), requester, private, output, clock)
    return etree.fromstring(b"<result>" + run_query(query, context) + b"</result>")


def with_packages(folder: Path) -> Settings:
    return Settings(crawl=CrawlSettings(delay=0.0), jobs=JobsSettings(packages=str(folder)))
