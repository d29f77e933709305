"""Agents in processes of their own, started anywhere with the same settings: the web's log is the judge."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
from crawl_fleet import STOPPED, UNHURRIED_LEASE, Fleet, Web, assert_complete, assert_polite, outside
from services import ObjectServer, variables

from letopis.config import Settings


def test_four_agents_find_what_one_finds(web: Web, fleet: Fleet, scaled_settings: Settings, tmp_path: Path) -> None:
    fleet.lease = UNHURRIED_LEASE
    for _ in range(4):
        fleet.start()
    fleet.wait()
    assert_polite(web)
    asked = [(host, path) for host, path, _, _ in web.requests()]
    assert len(asked) == len(set(asked)), "a page was fetched twice"
    assert_complete(web, scaled_settings, tmp_path)


def test_an_agent_waits_for_the_first_crawl_that_somebody_plans(
    web: Web, fleet: Fleet, scaled_settings: Settings, tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "letopis.cli", "--archive", str(tmp_path / "early"), "crawl", "--delay", "0.05"]
    ways = variables(scaled_settings.database.url, scaled_settings.store)
    waiting = subprocess.Popen(words, env={**outside(), **ways}, stderr=subprocess.PIPE, text=True)
    assert waiting.stderr is not None
    assert "nothing is planned; waiting for pages that others plan" in waiting.stderr.readline()
    planning = [*words[:4], str(tmp_path / "other"), "crawls", "add", web.server.world.seeds()[0]]
    subprocess.run(planning, env={**outside(), **ways}, check=True, timeout=300)
    fleet.when(3)
    waiting.send_signal(signal.SIGTERM)
    _, told = waiting.communicate(timeout=300)
    assert waiting.returncode == 0, told


def test_agents_come_and_go(web: Web, fleet: Fleet, scaled_settings: Settings, tmp_path: Path) -> None:
    first = fleet.start()
    fleet.when(20)
    fleet.start()
    fleet.when(40)
    first.send_signal(signal.SIGTERM)
    fleet.wait()
    assert_polite(web)
    assert_complete(web, scaled_settings, tmp_path)


def test_what_a_killed_agent_held_is_taken_over(
    web: Web, fleet: Fleet, scaled_settings: Settings, tmp_path: Path
) -> None:
    doomed = fleet.start()
    fleet.start()
    fleet.when(40)
    doomed.kill()
    fleet.wait(doomed)
    assert_polite(web)
    assert_complete(web, scaled_settings, tmp_path)


def test_an_agent_that_was_stopped_beyond_its_leases_does_no_harm(
    web: Web, fleet: Fleet, scaled_settings: Settings, tmp_path: Path
) -> None:
    paused = fleet.start()
    fleet.start()
    fleet.when(30)
    paused.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED)
    paused.send_signal(signal.SIGCONT)
    fleet.wait()
    assert_polite(web)
    assert_complete(web, scaled_settings, tmp_path)


def test_agents_that_are_cut_from_the_database_go_on(
    web: Web, fleet: Fleet, scaled_settings: Settings, tmp_path: Path
) -> None:
    fleet.start()
    fleet.start()
    for requests in (25, 50, 75):
        fleet.when(requests)
        with psycopg.connect(scaled_settings.database.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid != pg_backend_pid()"
            )
    fleet.wait()
    assert_polite(web)
    assert_complete(web, scaled_settings, tmp_path)


def test_agents_go_on_after_the_database_has_crashed_in_the_middle(
    web: Web, fleet: Fleet, scaled_settings: Settings, crash_database: Callable[[], None], tmp_path: Path
) -> None:
    stopped = fleet.start()
    fleet.start()
    fleet.when_working()  # one that cannot even begin says so and ends
    fleet.when(25)
    stopped.send_signal(signal.SIGSTOP)
    crash_database()
    stopped.send_signal(signal.SIGCONT)
    fleet.when(50)
    crash_database()
    fleet.wait()
    assert_polite(web)
    assert_complete(web, scaled_settings, tmp_path)


def test_agents_that_are_cut_from_the_object_store_keep_what_they_have(
    web: Web, fleet: Fleet, scaled_settings: Settings, object_server: ObjectServer, tmp_path: Path
) -> None:
    fleet.lease = UNHURRIED_LEASE
    fleet.start()
    fleet.start()
    fleet.when(25)
    object_server.stop()
    time.sleep(2)
    object_server.start()
    fleet.wait()
    assert_polite(web)
    asked = [(host, path) for host, path, _, _ in web.requests()]
    assert len(asked) == len(set(asked)), "a page was fetched twice"
    assert_complete(web, scaled_settings, tmp_path)


def test_checks_from_elsewhere_take_turns_with_a_fleet(
    web: Web, fleet: Fleet, scaled_settings: Settings, tmp_path: Path
) -> None:
    fleet.start()
    fleet.start()
    fleet.when(20)
    host = web.requests()[0][0]
    urls = [f"http://{host}{path}" for name, path, _, _ in web.requests() if name == host]
    words = [sys.executable, "-m", "letopis.cli", "--archive", str(tmp_path / "other"), "check", "--now", *urls]
    ways = variables(scaled_settings.database.url, scaled_settings.store)
    checked = subprocess.run(words, env={**outside(), **ways}, capture_output=True, text=True, timeout=300)
    assert checked.returncode in (0, 4), checked.stderr
    fleet.wait()
    assert_polite(web)
    asked = [path for name, path, _, _ in web.requests() if name == host]
    assert len(asked) > len(set(asked)), "the check asked what the fleet had asked"
