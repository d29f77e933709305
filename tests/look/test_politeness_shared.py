"""One politeness for all that runs on an archive, in one process or in several: the server's log is the judge."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from logged_web import NOON, Asked, LoggedWeb, least_pause, logged_web, overlapping, wait_for_pages
from patience import until

from letopis.archive import Archive
from letopis.archive.watches import watches_of
from letopis.look.politeness import FetchResult, Politeness, open_book
from letopis.monitor.watch import WatchSpec
from letopis.monitor.watch_list import WatchList
from letopis.monitor.watcher import open_watcher
from letopis_demo import World

pytestmark = pytest.mark.files
DELAY = 0.3
CALM = ("--exclude", "busy")
"""A page of the demo web asks for a long pause; how soon a crawl meets it depends on the machine."""
NEARLY = 0.98
"""The server notes a request when its bytes arrive, which may be later for one than for the next."""


def started(folder: Path, *words: str, **settings: str) -> subprocess.Popen[bytes]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LETOPIS_")}
    given = {f"LETOPIS_{name.upper()}": value for name, value in settings.items()}
    return subprocess.Popen(
        [sys.executable, "-m", "letopis.cli", "--archive", str(folder), *words],
        env=kept | given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def finished(child: subprocess.Popen[bytes]) -> tuple[int, str]:
    """The status with which a process ended, and what it said on its way."""
    errors = child.communicate(timeout=300)[1].decode()
    return child.returncode, errors


@contextmanager
def running(folder: Path, *words: str, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is asked to end when the test is over."""
    child = started(folder, *words, **settings)
    try:
        yield child
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        try:
            child.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()


def world() -> World:
    return World(hosts=1, pages_per_host=60, noisy=0, crawl_delay=0)


def some_pages(web: LoggedWeb, count: int, host: int = 0) -> list[str]:
    """Addresses of pages that are there."""
    name = web.world.hosts[host]
    urls = sorted(web.world.urls(name))
    return [url for url in urls if web.world.answer(name, path_of(url), (), NOON).status == 200][:count]


def path_of(url: str) -> str:
    return "/" + url.partition("://")[2].partition("/")[2]


def assert_polite(asked: Sequence[Asked], delay: float = DELAY) -> None:
    assert overlapping(asked) == []
    assert least_pause(asked, "host") >= delay * NEARLY


def paths(urls: Sequence[str]) -> set[str]:
    return set(map(path_of, urls))


def wait_for_turns(
    web: LoggedWeb, child: subprocess.Popen[bytes], enough: Callable[[Sequence[Asked]], bool]
) -> Sequence[Asked]:
    """What was asked once that is enough; who asks must be there until then."""
    until(lambda: enough(web.asked()) or child.poll() is not None)
    assert child.poll() is None
    return web.asked()


def watched_again_and_again(folder: Path, urls: Sequence[str]) -> None:
    with Archive(folder) as archive:
        WatchList(archive).add(urls, WatchSpec(every=1.0))
        assert len(watches_of(archive).part()) == len(urls)


def test_watches_and_a_crawl_of_one_process_share_a_host(tmp_path: Path) -> None:
    with logged_web(world()) as web:
        urls = some_pages(web, 10)
        watched_again_and_again(tmp_path / "a", urls)
        assert finished(started(tmp_path / "a", "crawl", web.world.seeds()[0], "--limit", "1", "-q", *CALM)) == (0, "")
        time.sleep(DELAY)
        with running(tmp_path / "a", "run", "--port", "0", crawl_delay=str(DELAY), monitor_min_interval="0") as child:
            wait_for_pages(web, web.log.pages + 30, child)

            def all_had_their_turn(asked: Sequence[Asked]) -> bool:
                """The watches, and the crawl."""
                found = {each.path for each in asked}
                return found >= paths(urls) and len(found - paths(urls)) > 5

            wait_for_turns(web, child, all_had_their_turn)
        asked = web.asked()
    assert_polite(asked)


def test_checks_from_a_second_process_take_turns_with_a_crawl(tmp_path: Path) -> None:
    with logged_web(world()) as web:
        urls = [url for url in some_pages(web, 13) if path_of(url) != "/"]
        left = itertools.chain.from_iterable(("--exclude", path_of(url)) for url in urls)
        with running(tmp_path / "a", "crawl", *web.world.seeds(), "--delay", str(DELAY), "-q", *CALM, *left) as child:
            wait_for_pages(web, 3, child)
            checks = [started(tmp_path / "a", "check", "--now", *urls[number::3]) for number in range(3)]
            ended = [finished(check) for check in checks]
            assert [status for status, _ in ended] == [0, 0, 0], ended
        asked = web.asked()
    assert_polite(asked)
    for number in range(3):
        checked = [place for place, each in enumerate(asked) if each.path in paths(urls[number::3])]
        assert checked[-1] - checked[0] < 5 * len(urls), "a crawl does not keep checks out"


def test_watches_of_one_process_and_a_crawl_of_another_share_a_host(tmp_path: Path) -> None:
    with logged_web(world()) as web:
        urls = [url for url in some_pages(web, 7) if path_of(url) != "/"]
        watched_again_and_again(tmp_path / "a", urls)
        with (
            running(tmp_path / "a", "crawl", *web.world.seeds(), "--delay", str(DELAY), "-q", *CALM) as child,
            running(tmp_path / "a", "watch", "run", monitor_min_interval="0"),
        ):

            def since_the_crawl(asked: Sequence[Asked]) -> Sequence[Asked]:
                return list(itertools.dropwhile(lambda each: each.path != "/", asked))

            def all_had_their_turn(asked: Sequence[Asked]) -> bool:
                since = since_the_crawl(asked)
                return len(since) > 20 and {each.path for each in since} >= paths(urls)

            wait_for_turns(web, child, all_had_their_turn)
        asked = web.asked()
    assert_polite(since_the_crawl(asked))


def test_a_job_that_downloads_shares_a_host_with_a_crawl(tmp_path: Path) -> None:
    with logged_web(world()) as web:
        seed = web.world.seeds()[0]
        job = tmp_path / "job.xml"
        job.write_text(f'<query><download maxlevel="1" limit="6"><url>{seed}</url></download></query>')
        with running(tmp_path / "a", "crawl", seed, "--delay", str(DELAY), "-q", *CALM) as child:
            wait_for_pages(web, 3, child)
            asking = started(tmp_path / "a", "jobs", "submit", "--wait", str(job), crawl_delay=str(DELAY))
            status, errors = finished(asking)
            assert status == 0, errors
        asked = web.asked()
    assert_polite(asked)


def test_the_delay_that_a_site_asks_for_holds_for_checks_while_a_crawl_is_there(tmp_path: Path) -> None:
    slow = World(hosts=3, pages_per_host=20, noisy=0, crawl_delay=0.6)
    with logged_web(slow) as web:
        host = web.world.hosts[2]
        urls = some_pages(web, 4, 2)
        seed = next(seed for seed in web.world.seeds() if host in seed)
        with running(tmp_path / "a", "crawl", seed, "--delay", "0.05", "-q", *CALM) as child:
            wait_for_pages(web, 3, child)
            assert finished(started(tmp_path / "a", "check", "--now", *urls))[0] == 0
        asked = [each for each in web.asked() if each.host == host]
    assert_polite(asked, 0.6)


def test_redirects_and_headers_of_a_check_take_turns_too(tmp_path: Path) -> None:
    with logged_web(World(hosts=1, pages_per_host=40, noisy=0, crawl_delay=0)) as web:
        seed = web.world.seeds()[0]
        with running(tmp_path / "a", "crawl", seed, "--delay", str(DELAY), "-q", *CALM, "--exclude", "/r/") as child:
            wait_for_pages(web, 8, child)
            for words in ((f"{seed}r/0/3",), ("--head", seed)):
                status, errors = finished(started(tmp_path / "a", "check", "--now", *words))
                assert status == 0, errors
        asked = web.asked()
    assert len([each for each in asked if each.path.startswith("/r/")]) == 4
    assert_polite(asked)


def test_a_check_whose_turn_comes_much_later_says_so_at_once(tmp_path: Path) -> None:
    """A crawl at a host that wants five minutes between two requests leaves no room for somebody in a hurry."""
    slow = World(hosts=3, pages_per_host=20, noisy=0, crawl_delay=300)
    with logged_web(slow) as web:
        host = web.world.hosts[2]
        seed = next(seed for seed in web.world.seeds() if host in seed)
        with running(tmp_path / "a", "crawl", seed, "--delay", "0.05", "-q", *CALM) as child:
            wait_for_pages(web, 1, child)
            time.sleep(1)
            status, errors = finished(started(tmp_path / "a", "check", "--now", seed))
        asked = [each for each in web.asked() if each.host == host]
    assert status == 7
    assert "is left alone until" in errors
    assert len(asked) == 1


def test_a_check_says_that_it_waits(tmp_path: Path) -> None:
    with logged_web(world()) as web:
        with running(tmp_path / "a", "crawl", *web.world.seeds(), "--delay", "3", "-q", *CALM) as child:
            wait_for_pages(web, 1, child)
            time.sleep(0.3)
            status, errors = finished(started(tmp_path / "a", "check", "--now", *some_pages(web, 1)))
        asked = web.asked()
    assert (status, errors.count("waiting for our turn, 30 s at most")) == (0, 1), errors
    assert_polite(asked, 3.0)


@pytest.mark.parametrize("kill", [False, True])
def test_a_check_after_a_crawl_owes_one_pause_and_no_more(tmp_path: Path, kill: bool) -> None:
    pause = 3.0
    with logged_web(world()) as web:
        urls = some_pages(web, 8)
        child = started(tmp_path / "a", "crawl", *web.world.seeds(), "--delay", str(pause), "-q", *CALM)
        wait_for_pages(web, 2, child)
        os.killpg(child.pid, signal.SIGKILL if kill else signal.SIGTERM)
        child.communicate(timeout=300)
        before = len(web.asked())
        assert finished(started(tmp_path / "a", "check", "--now", *urls))[0] == 0
        asked = web.asked()
    assert asked[before].began - asked[before - 1].began >= pause * NEARLY
    assert asked[-1].began - asked[before].began < pause, "nobody crawls any more"


async def test_watches_at_a_host_that_is_taken_hold_no_others_up(tmp_path: Path) -> None:
    """A crawl wants minutes between two requests to one host; the watch of another is not kept waiting for it."""
    with (
        logged_web(World(hosts=2, pages_per_host=5, noisy=0, crawl_delay=0)) as web,
        Archive(tmp_path / "a") as archive,
    ):
        taken, free = some_pages(web, 1)[0], some_pages(web, 1, 1)[0]
        WatchList(archive).add([taken, free], WatchSpec(every=3600.0))
        crawl = open_book(archive, Politeness(delay=300.0, ip_delay=0.0), crawls=True)
        now = round(time.time() * 1000)
        crawl.begin(web.world.hosts[0], "", 0.0, now)
        crawl.end(web.world.hosts[0], FetchResult(now))
        seen = []
        async with open_watcher(archive, lambda result: seen.append(result.watch.url)) as watcher:
            assert await watcher.run_due(0.5) == 2
            ended = round(time.time() * 1000)
        assert seen == [free]
        later = watches_of(archive).find(taken)
        assert later is not None
        assert now + 9_000 < later.due < ended + 60_000, "it is tried again soon"
        crawl.close()
