"""What a clock of another century has put off is done when the clock is right; versions of the future need a word."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest
from scripted_site import ScriptedSite
from served_archive import WebClient, running
from written_warc import response

from letopis.archive import Archive, utc_now
from letopis.archive.accounts import accounts_of
from letopis.archive.crawl_status import bring_back_visits
from letopis.archive.watches import NEVER, watches_of
from letopis.cli import main
from letopis.config import CrawlSettings, MonitorSettings, ScheduleSettings, Settings
from letopis.crawl import CrawlLimits, CrawlOptions, crawl
from letopis.model import to_millis
from letopis.monitor.watch import WatchSpec
from letopis.monitor.watch_list import WatchList
from letopis.monitor.watcher import open_watcher

AHEAD = timedelta(days=73 * 365)
URL = "http://example.org/"
PAGES = {"/", "/a"}


def wrong_clock() -> datetime:
    """Runs as it should, but two generations ahead."""
    return utc_now() + AHEAD


def settings(policy: Literal["uniform", "adaptive", "optimal"] = "adaptive") -> Settings:
    return Settings(
        crawl=CrawlSettings(delay=0.0), schedule=ScheduleSettings(policy=policy), monitor=MonitorSettings(delay=0.0)
    )


@pytest.fixture
def seed(scripted_site: ScriptedSite) -> str:
    scripted_site.set("/a", b"<p>A page with one sentence.</p>")
    return scripted_site.set("/", b"<a href='/a'>a</a>")


def asked(site: ScriptedSite) -> set[str]:
    """The pages that were fetched since this was last asked."""
    found = {path for _, path, _ in site.log if path in PAGES}
    site.log.clear()
    return found


async def crawled_under_a_wrong_clock(folder: Path, seed: str, site: ScriptedSite, made: Settings) -> None:
    with Archive(folder, settings=made, clock=wrong_clock) as archive:
        await crawl(archive, CrawlOptions((seed,), limits=CrawlLimits(once=True)))
    assert asked(site) == PAGES


# Visits


@pytest.mark.parametrize("policy", ["uniform", "adaptive", "optimal"])
async def test_pages_crawled_under_a_wrong_clock_are_visited_when_it_is_right(
    tmp_path: Path, scripted_site: ScriptedSite, seed: str, policy: Literal["uniform", "adaptive", "optimal"]
) -> None:
    await crawled_under_a_wrong_clock(tmp_path / "a", seed, scripted_site, settings(policy))
    with Archive(tmp_path / "a", settings=settings(policy)) as archive:
        await crawl(archive, CrawlOptions(limits=CrawlLimits(once=True)))
        assert asked(scripted_site) == PAGES
        await crawl(archive, CrawlOptions(limits=CrawlLimits(once=True)))
        assert asked(scripted_site) == set()  # and then at its interval
        assert bring_back_visits(archive) == 0


def test_the_command_line_goes_on_with_a_crawl_of_a_wrong_clock(
    tmp_path: Path, scripted_site: ScriptedSite, seed: str
) -> None:
    asyncio.run(crawled_under_a_wrong_clock(tmp_path / "a", seed, scripted_site, settings()))
    assert main(["--archive", str(tmp_path / "a"), "-q", "crawl", "--once", "--delay", "0"]) == 0
    assert asked(scripted_site) == PAGES


# Watches


def watch_due(archive: Archive, url: str) -> int:
    row = watches_of(archive).find(url)
    assert row is not None
    return row.due


async def watched_under_a_wrong_clock(folder: Path, url: str, spec: WatchSpec) -> None:
    with Archive(folder, settings=settings(), clock=wrong_clock) as archive:
        WatchList(archive).add([url], spec)
        async with open_watcher(archive) as watcher:
            assert await watcher.run_due() == 1


@pytest.mark.parametrize(
    "spec", [WatchSpec(every=600.0), WatchSpec(cron="0 4 29 2 *"), WatchSpec(every=9 * 365 * 86400.0)]
)
async def test_watches_made_under_a_wrong_clock_run_when_it_is_right(
    tmp_path: Path, scripted_site: ScriptedSite, seed: str, spec: WatchSpec
) -> None:
    await watched_under_a_wrong_clock(tmp_path / "a", seed, spec)
    scripted_site.set("/", b"<p>Something else altogether stands here now.</p>")
    with Archive(tmp_path / "a", settings=settings()) as archive:
        async with open_watcher(archive) as watcher:
            assert await watcher.run_due() == 1
            assert await watcher.run_due() == 0
        assert [alert.kind for alert in WatchList(archive).alerts()] == ["changed"]
        due = watch_due(archive, seed)
        assert WatchList(archive).bring_back() == 0  # a long interval of its own is left alone
        assert watch_due(archive, seed) == due


async def test_paused_watches_stay_paused_whatever_the_clock_was(
    tmp_path: Path, scripted_site: ScriptedSite, seed: str
) -> None:
    await watched_under_a_wrong_clock(tmp_path / "a", seed, WatchSpec(every=600.0))
    with Archive(tmp_path / "a", settings=settings()) as archive:
        WatchList(archive).pause([seed])
        async with open_watcher(archive) as watcher:
            assert await watcher.run_due() == 0
        assert watch_due(archive, seed) == NEVER


def test_the_verb_that_runs_watches_brings_those_of_a_wrong_clock_back(
    tmp_path: Path, scripted_site: ScriptedSite, seed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(watched_under_a_wrong_clock(tmp_path / "a", seed, WatchSpec(every=600.0)))
    with Archive(tmp_path / "a", settings=settings()) as archive:
        assert watch_due(archive, seed) > to_millis(utc_now() + timedelta(days=1))
    assert main(["--archive", str(tmp_path / "a"), "watch", "run", "--once", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["url"] == seed


# Versions of the future


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive") as opened:
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


def test_a_version_of_the_future_is_put_only_with_a_word_by_the_command_line(
    archive: Archive, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(b"<p>then")
    words = ["--archive", str(archive.folder), "put", URL, str(page), "--at", "2099-01-01"]
    assert main(words) == 2
    told = capsys.readouterr().err
    assert "2099-01-01T00:00:00Z is more than a day ahead of the clock" in told
    assert "--future" in told
    assert main([*words, "--future"]) == 0
    assert archive.get(URL).time == datetime(2099, 1, 1, tzinfo=UTC)


def test_a_version_of_the_future_is_put_only_with_a_word_over_http(archive: Archive, web: WebClient) -> None:
    head = {"Authorization": f"Bearer {accounts_of(archive).create_token('all', None, 'write', 0)}"}
    path = f"/api/v1/content?url={URL}&at=2099-01-01"
    refused = web.ask("PUT", path, b"<p>then", Content_Type="text/html", **head)
    assert refused.status == 422
    assert "more than a day ahead of the clock" in refused.json()["detail"]
    assert web.ask("PUT", f"{path}&future=true", b"<p>then", Content_Type="text/html", **head).status == 200


def test_a_clock_that_is_some_hours_behind_needs_no_word(archive: Archive, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(b"<p>soon")
    soon = (utc_now() + timedelta(hours=20)).isoformat()
    assert main(["--archive", str(archive.folder), "put", URL, str(page), "--at", soon]) == 0


def test_an_import_counts_and_names_captures_of_the_future(
    archive: Archive, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "both.warc"
    file.write_bytes(
        response(URL, "2020-01-01T00:00:00Z", b"<p>then") + response(URL, "2099-01-01T00:00:00Z", b"<p>later")
    )
    words = ["--archive", str(archive.folder), "import", str(file)]
    assert main([*words, "--json"]) == 0
    shown = capsys.readouterr()
    assert (json.loads(shown.out)["versions"], json.loads(shown.out)["future"]) == (2, 1)
    assert "1 capture is more than a day ahead of the clock" in shown.err
    assert f"future: {URL} at 2099-01-01T00:00:00Z" in shown.err
    assert main([*words, "--json"]) == 0
    assert "ahead of the clock" not in capsys.readouterr().err  # it was there already
