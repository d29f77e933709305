"""What the server's own log says of the crawler's manners, with one agent and with several."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from logged_web import LoggedWeb, least_pause, logged_web, overlapping, spans
from patience import until
from scripted_site import ScriptedSite

from letopis.archive.queues import HostState
from letopis.look.politeness import Politeness, PolitenessBook
from letopis.look.slots import MappedSlots
from letopis_demo import World

DELAY = 0.2
NEARLY = 0.98
"""The server notes a request when its bytes arrive, which may be later for one than for the next."""


def crawling(folder: Path, seeds: list[str], *more: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "letopis.cli", "crawl", *seeds, "--archive", str(folder), "--once", "-q", *more]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LETOPIS_")}
    return subprocess.Popen(words, env=kept, stdout=subprocess.DEVNULL, start_new_session=True)


def crawled(web: LoggedWeb, folder: Path, agents: int) -> None:
    seeds = web.world.seeds()
    assert crawling(folder, seeds, "--delay", str(DELAY), "--agents", str(agents), "--exclude", "busy").wait(300) == 0


@pytest.mark.parametrize("agents", [1, 2, 4])
def test_a_host_sees_one_request_at_a_time_and_its_pauses(tmp_path: Path, agents: int) -> None:
    with logged_web(World(hosts=7, pages_per_host=5, noisy=0, crawl_delay=0.5)) as web:
        crawled(web, tmp_path / "a", agents)
        asked = web.asked()
        shop = web.world.hosts[2]
    assert len(spans(asked, "host")) == 7
    assert len(asked) == len({(each.host, each.path) for each in asked}) > 40
    assert overlapping(asked) == []
    assert least_pause(asked, "host") >= DELAY * NEARLY
    assert least_pause((each for each in asked if each.host == shop), "host") >= 0.5 * NEARLY
    assert not [each for each in asked if each.path.startswith("/private/")]


@pytest.mark.parametrize("agents", [1, 2, 4])
def test_hosts_behind_one_address_share_its_pauses(tmp_path: Path, agents: int) -> None:
    with logged_web(World(hosts=5, pages_per_host=3, noisy=0, crawl_delay=0), "ports") as web:
        began = time.monotonic()
        crawled(web, tmp_path / "a", agents)
        took = time.monotonic() - began
        asked = web.asked()
    assert len(spans(asked, "host")) == 5
    assert set(spans(asked, "address")) == {"127.0.0.1"}
    # When requests leave is what is promised. A site that is stopped for a moment reads several at once, so what it
    # saw says little; five hosts that were asked side by side would be done in a fifth of the time.
    assert took >= (len(asked) - 1) * DELAY * NEARLY


def noted(folder: Path, host: str) -> int:
    """Milliseconds for which the book says a host is to be left alone."""
    if not (folder / "politeness").exists():
        return 0
    now = round(time.time() * 1000)
    book = PolitenessBook(MappedSlots(folder / "politeness"), Politeness(delay=0, ip_delay=0), crawls=True)
    try:
        return book.arrive(HostState(1, host), now).ready - now
    finally:
        book.close()


def test_retry_after_is_kept_and_outlives_a_kill(scripted_site: ScriptedSite, tmp_path: Path) -> None:
    seed = scripted_site.set("/", b'<a href="/busy">busy</a>')
    scripted_site.set("/busy", b"later", 503, Retry_After="4")
    host = seed.removeprefix("http://").rstrip("/")
    child = crawling(tmp_path / "a", [seed], "--delay", "0.05")
    until(lambda: noted(tmp_path / "a", host) > 500)  # the pause of the crawl itself is far shorter
    os.killpg(child.pid, 9)
    child.wait()
    refused = scripted_site.times[[path for _, path, _ in scripted_site.log].index("/busy")]
    scripted_site.set("/busy", b"now")
    # Whether the kill came before the record or after it, now both pages are due.
    assert crawling(tmp_path / "a", [seed], "--delay", "0.05", "--revisit-now").wait(300) == 0
    pages = [(at, path) for at, (_, path, _) in zip(scripted_site.times, scripted_site.log, strict=True)]
    later = [at for at, path in pages if path != "/robots.txt" and at > refused]
    assert [path for _, path in pages].count("/busy") == 2
    assert min(later) - refused >= 4 * NEARLY
