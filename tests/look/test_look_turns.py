"""Requests of one look that follow its first: after redirects, headers and failures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_site import ScriptedSite

from letopis import Archive, Monitor
from letopis.archive import write_gates
from letopis.archive.queues import HostState
from letopis.config import CrawlSettings, FetchSettings, Settings
from letopis.crawl import CrawlLimits, CrawlOptions, crawl
from letopis.errors import Busy
from letopis.look.politeness import FetchResult, Politeness, PolitenessBook, open_book
from letopis.look.visitor import turn_to_record
from letopis.model import Outcome
from letopis.urls import host as host_of


@pytest.fixture
def monitor(tmp_path: Path) -> Iterator[Monitor]:
    with Archive(tmp_path / "a") as archive, Monitor(archive) as made:
        yield made


@pytest.fixture
def other_site() -> Iterator[ScriptedSite]:
    site = ScriptedSite()
    yield site
    site.close()


def crawled(archive: Archive, url: str, delay: float) -> PolitenessBook:
    """A crawl that has just asked the host of a URL."""
    book, now = open_book(archive, Politeness(delay=delay, ip_delay=0.0), crawls=True), round(time.time() * 1000)
    assert book.begin(host_of(url), "", 0.0, now) == 0
    book.end(host_of(url), FetchResult(now))
    return book


def test_a_redirect_to_a_host_that_must_wait_is_not_followed(
    monitor: Monitor, scripted_site: ScriptedSite, other_site: ScriptedSite
) -> None:
    target = other_site.set("/", b"<p>there")
    url = scripted_site.redirect("/", target)
    crawl_of_other = crawled(monitor.archive, target, 300.0)
    check = monitor.check_multi([url], now=True)[0]
    assert check.outcome is Outcome.UNAVAILABLE
    assert f"the redirect leads to {target}, whose host gets no requests for now" in check.error
    assert other_site.log == []
    crawl_of_other.close()


def test_a_redirect_waits_for_the_turn_of_its_host_and_its_limits_do_not_count_that(
    tmp_path: Path, scripted_site: ScriptedSite, other_site: ScriptedSite
) -> None:
    target = other_site.set("/", b"<p>there")
    url = scripted_site.redirect("/", target)
    settings = Settings(fetch=FetchSettings(total=4.0))
    with Archive(tmp_path / "a", settings=settings) as archive, Monitor(archive) as monitor:
        began = time.monotonic()
        crawl_of_other = crawled(archive, target, 5.0)
        assert monitor.check_multi([url], now=True)[0].outcome is Outcome.NEW
        assert time.monotonic() - began > 4.9
        crawl_of_other.close()


def test_a_page_whose_header_changed_waits_for_its_next_turn(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/", b"<p>one", ETag='"1"')
    assert monitor.check_multi([url])[0].outcome is Outcome.NEW
    scripted_site.set("/", b"<p>two", ETag='"2"')
    crawl_there = open_book(monitor.archive, Politeness(delay=0.8, ip_delay=0.0), crawls=True)
    crawl_there.arrive(HostState(1, host_of(url)), round(time.time() * 1000))
    check = monitor.look([url], monitor.options._replace(now=True, head=True))[0]
    assert check.outcome is Outcome.CHANGED
    assert [method for method, _, _ in scripted_site.log] == ["GET", "HEAD", "GET"]
    assert scripted_site.times[2] - scripted_site.times[1] >= 0.78
    crawl_there.close()


def test_a_crawl_that_would_wait_long_does_not_try_a_broken_connection_again(
    tmp_path: Path, scripted_site: ScriptedSite
) -> None:
    """What went wrong is recorded as it was; the page is visited again at its time."""
    settings = Settings(crawl=CrawlSettings(delay=600.0, robots=False, sitemaps=False))
    with Archive(tmp_path / "a", settings=settings) as archive:
        options = CrawlOptions(("http://127.0.0.1:9/",), limits=CrawlLimits(pages=1))
        began = time.monotonic()
        figures = asyncio.run(crawl(archive, options))
        assert time.monotonic() - began < 300
        assert dict(figures.errors) == {"connect": 1}


def test_whoever_serves_others_waits_for_its_turn_without_standing_still(tmp_path: Path) -> None:
    async def turn(archive: Archive) -> None:
        async with turn_to_record(archive):
            archive.put("http://a.test/", b"recorded")

    async def run() -> int:
        steps = 0
        with Archive(tmp_path / "a") as archive, Archive(tmp_path / "a") as other:
            await turn(archive)
            with other.hold_writer():
                waiting = asyncio.ensure_future(turn(archive))
                while steps < 5:
                    await asyncio.sleep(0)
                    steps += 1
                assert not waiting.done()
            await waiting
            with archive.hold_writer():
                await turn(archive)
        return steps

    assert asyncio.run(run()) == 5


def test_nobody_comes_between_the_turn_to_write_and_the_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_gates, "WAIT_SECONDS", 0.0)

    async def run() -> None:
        with Archive(tmp_path / "a") as archive, Archive(tmp_path / "a") as other:
            async with turn_to_record(archive):
                with pytest.raises(Busy, match="waits to write"):
                    other.put("http://a.test/", b"another")
                archive.put("http://a.test/", b"first")
            other.put("http://a.test/", b"another")
            assert [archive.get("http://a.test/", version=number).body for number in (0, 1)] == [b"first", b"another"]

    asyncio.run(run())
