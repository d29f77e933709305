"""A demo web, and agents that crawl it together on PostgreSQL and S3; what one agent alone finds."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from patience import until
from services import variables

from letopis.archive import Archive
from letopis.archive.activity import changes_since
from letopis.archive.reader import RecordReader
from letopis.catalog import Catalog, Sqlite
from letopis.config import Settings, StoreSettings
from letopis.model import Outcome
from letopis.store import LocalBackend, Store
from letopis_demo import DemoServer, World, running

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)
DELAY = 0.05
LEASE = 3
UNHURRIED_LEASE = 300
"""Seconds that no busy machine holds an agent up for: whoever is held up longer, loses its pages to others."""
UNHURRIED_WEB = dict.fromkeys(
    ("LETOPIS_FETCH_CONNECT", "LETOPIS_FETCH_FIRST_BYTE", "LETOPIS_FETCH_TOTAL", "LETOPIS_FETCH_SLOW"), "300"
)
"""A web that has no core for ten seconds has not failed: each failure in a row doubles the pause of its host."""
STOPPED = 60 if os.environ.get("LETOPIS_LONG") else 2 * LEASE
"""Seconds for which an agent is stopped: always beyond its leases."""


class Web:
    """The simulated web, standing still, with the log of who asked what."""

    def __init__(self) -> None:
        self.log = StringIO()
        world = World(hosts=8, pages_per_host=14, crawl_delay=0, noisy=0)
        self.server = DemoServer(world, log=self.log)
        self.server._clock = lambda: NOON

    def requests(self) -> list[tuple[str, str, float, float]]:
        """Host, path, begin and end of every request but those for robots.txt, in the order of their begin."""
        lines = [line.split("\t") for line in self.log.getvalue().splitlines()]
        rows = [(host, path, float(b), float(e)) for b, e, _, _, _, host, path, _ in lines if path != "/robots.txt"]
        return sorted(rows, key=lambda row: row[2])

    def asked(self) -> int:
        self.server._log.flush()
        return len(self.log.getvalue().splitlines())


@pytest.fixture
def web() -> Iterator[Web]:
    made = Web()
    with running(made.server):
        yield made


def outside() -> dict[str, str]:
    """The environment without anything that a command would take for a setting."""
    return {name: value for name, value in os.environ.items() if not name.startswith("LETOPIS_")}


class Fleet:
    """Agents that share nothing but settings; somebody follows the log of versions while they work."""

    def __init__(self, web: Web, settings: Settings, folder: Path) -> None:
        self._web = web
        self._settings = settings
        self._folder = folder
        self._reader = Archive(folder / "follower", settings=settings)
        self._followed: list[int] = []
        self.lease = LEASE
        self.agents: list[subprocess.Popen[str]] = []

    def start(self, *, within: Sequence[str] = (), given: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """An agent, by a command that puts it elsewhere, with other ways to the services."""
        number = len(self.agents)
        ways = given or variables(self._settings.database.url, self._settings.store)
        settings = {
            "LETOPIS_CRAWL_LEASE": str(self.lease),
            "LETOPIS_CRAWL_COMMIT_EVERY": "0.3",
            "LETOPIS_SCHEDULE_POLICY": "uniform",
            **UNHURRIED_WEB,
        }
        words = ["crawl", *self._web.server.world.seeds(), "--once", "--delay", f"{DELAY}s", "--json", "-q"]
        agent = subprocess.Popen(
            [*within, sys.executable, "-X", "faulthandler", "-m", "letopis.cli", *words, "--exclude", "busy|overload",
             "--archive", str(self._folder / f"agent{number}")],
            env={**outside(), **ways, **settings}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.agents.append(agent)
        return agent

    def wait(self, *killed: subprocess.Popen[str]) -> None:
        """Until all have ended; whoever followed them has met every version, each once and in order."""
        self._follow_until(lambda: all(agent.poll() is not None for agent in self.agents))
        for agent in self.agents:
            _, errors = agent.communicate()
            assert agent in killed or agent.returncode == 0, errors
        while self._follow():
            pass
        slowly = self._reader.catalog.database.all("SELECT id FROM version ORDER BY id")
        assert [(version,) for version in self._followed] == slowly

    def _follow(self) -> bool:
        """A portion of what came; whether there was any."""
        found = changes_since(self._reader, self._followed[-1] if self._followed else 0, 7)
        self._followed += [change.id for change in found]
        return bool(found)

    def when(self, requests: int) -> None:
        """Until the web was asked so often."""
        self._follow_until(lambda: self._web.asked() >= requests)

    def when_living(self, agents: int) -> None:
        """Until no more than so many agents hold leases that are not over."""
        self._follow_until(lambda: self._living() <= agents)

    def when_working(self) -> None:
        """Until all that were started take part; the first of them makes the table of agents."""
        self.when(1)
        self._follow_until(lambda: self._living() >= len(self.agents))

    def _living(self) -> int:
        living = "SELECT count(*) FROM agent WHERE until > extract(epoch FROM clock_timestamp()) * 1000"
        return int(self._reader.catalog.database.all(living)[0][0])

    def _follow_until(self, holds: Callable[[], bool]) -> None:
        def held() -> bool:
            self._follow()
            return holds()

        try:
            until(held)
        except AssertionError as error:
            raise AssertionError(f"{error}; {self._state()}") from None

    def _state(self) -> str:
        """What every agent that still runs is doing, and what the database waits for; it ends them."""
        activity = self._reader.catalog.database.all(
            "SELECT pid, state, wait_event_type, wait_event, now() - xact_start, left(query, 200) FROM pg_stat_activity"
        )
        hosts = self._reader.catalog.database.all(
            "SELECT h.id, h.owner, h.fence, h.lease_until - (extract(epoch FROM now()) * 1000)::bigint, "
            "h.ready - (extract(epoch FROM now()) * 1000)::bigint, h.failures, "
            "(SELECT count(*) FROM resource r WHERE r.host = h.id AND r.state = 1), "
            "(SELECT count(*) FROM resource r WHERE r.host = h.id AND r.state = 2 "
            "AND r.due <= extract(epoch FROM now()) * 1000) FROM host h ORDER BY h.id"
        )
        told = [f"web: asked {self._web.asked()} times"]
        told += [f"host, owner, fence, lease left, pause left, failures, new, due: {row}" for row in hosts]
        told += [f"database: {row}" for row in activity]
        for number, agent in enumerate(self.agents):
            if agent.poll() is None:
                agent.send_signal(signal.SIGABRT)  # faulthandler writes all stacks
                told.append(f"agent {number}: {agent.communicate()[1]}")
        return "\n".join(told)

    def end(self) -> None:
        """Whoever still runs is killed."""
        self._reader.close()
        for agent in self.agents:
            if agent.poll() is None:
                agent.kill()
                agent.communicate()


@pytest.fixture
def fleet(web: Web, scaled_settings: Settings, tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(web, scaled_settings, tmp_path)
    yield made
    made.end()


def told(archive: Archive) -> dict[str, tuple[int, Outcome]]:
    """Status and outcome of the last check of every URL."""
    rows = list(archive.catalog.resources.all())
    return {row.url: (check.status, check.outcome) for row in rows for check in archive.history(row.url)[-1:]}


_found_alone: dict[tuple[str, ...], dict[str, tuple[int, Outcome]]] = {}


def by_one(web: Web, folder: Path) -> dict[str, tuple[int, Outcome]]:
    """What one embedded crawl of the same web finds; a web that stands still is crawled once for all tests."""
    seeds = tuple(web.server.world.seeds())
    if seeds not in _found_alone:
        _found_alone[seeds] = _crawled_alone(web, folder)
    return _found_alone[seeds]


def _crawled_alone(web: Web, folder: Path) -> dict[str, tuple[int, Outcome]]:
    words = ["crawl", *web.server.world.seeds(), "--once", "--delay", "0", "--exclude", "busy|overload", "-q"]
    subprocess.run(
        [sys.executable, "-m", "letopis.cli", *words, "--archive", str(folder)],
        check=True, capture_output=True, timeout=300, env=outside() | UNHURRIED_WEB,
    )  # fmt: skip
    catalog = Catalog(Sqlite(folder / "catalogue.sqlite"))
    answers = RecordReader(catalog, Store.open(LocalBackend(folder / "packs"), StoreSettings(), write=False))
    rows = list(catalog.resources.all())
    found = {row.url: (check.status, check.outcome) for row in rows for check in answers.history(row.url)[-1:]}
    catalog.close()
    return found


def assert_polite(web: Web) -> None:
    """One request at a time to a host, with its pauses, whoever asked."""
    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for host, _, began, ended in web.requests():
        spans[host].append((began, ended))
    for host, times in spans.items():
        for earlier, later in itertools.pairwise(times):
            assert later[0] >= earlier[1], f"{host} was asked twice at once"
            assert later[0] - earlier[0] >= DELAY * 0.9, f"{host} was asked again too soon"


def assert_complete(web: Web, settings: Settings, folder: Path) -> None:
    with Archive(folder / "reader", settings=settings) as archive:
        found = told(archive)
        problems = list(archive.verify())
        assert problems == [], problems[:3]
    alone = by_one(web, folder / "alone")
    assert {url: status for url, (status, _) in found.items()} == {url: status for url, (status, _) in alone.items()}
