"""Whoever goes on with a crawl goes as far as it was told to go, and no further."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_site import ScriptedSite

from letopis.archive import Archive
from letopis.archive.queues import CrawlPlan, crawl_plans, drop_site, queue_counts
from letopis.cli.main import main
from letopis.config import CrawlSettings, Settings
from letopis.crawl import CrawlLimits, CrawlOptions, crawl, enqueue_seeds
from letopis.crawl.selection import may_follow_move
from letopis.daemon import Daemon, Service
from letopis.errors import UsageError
from letopis.urls import host as host_of
from letopis.urls.scope import ScopeKind


@pytest.fixture
def other_site() -> Iterator[ScriptedSite]:
    site = ScriptedSite()
    site.set("/", b"<a href='/x'>x</a>")
    yield site
    site.close()


@pytest.fixture
def seed(scripted_site: ScriptedSite, other_site: ScriptedSite) -> str:
    """A site of four pages in a row, each with a link to the other site."""
    for number in range(1, 4):
        links = f"<a href='{other_site.url('/')}'>away</a> <a href='/{number + 1}'>next</a>"
        scripted_site.set(f"/{number}", links.encode())
    return scripted_site.set("/", b"<a href='/1'>first</a> <a href='/private/1'>private</a>")


def run(folder: Path, *words: str) -> None:
    assert main(["--archive", str(folder / "archive"), "-q", "crawl", "--once", "--delay", "0", *words]) == 0


def asked(site: ScriptedSite) -> list[str]:
    return [path for _, path, _ in site.log if path not in ("/robots.txt", "/sitemap.xml")]


def test_a_crawl_without_seeds_stays_on_the_hosts_of_those_it_goes_on_with(
    tmp_path: Path, scripted_site: ScriptedSite, other_site: ScriptedSite, seed: str
) -> None:
    run(tmp_path, seed, "--limit", "1")
    run(tmp_path)
    assert {"/", "/1", "/2", "/3"} <= set(asked(scripted_site))
    assert other_site.log == []


def test_patterns_and_depth_hold_for_whoever_goes_on(tmp_path: Path, scripted_site: ScriptedSite, seed: str) -> None:
    run(tmp_path, seed, "--limit", "1", "--exclude", "private", "--depth", "2")
    run(tmp_path)
    assert asked(scripted_site) == ["/", "/1", "/2"]


def test_more_may_be_left_out_but_nothing_is_added(tmp_path: Path, scripted_site: ScriptedSite, seed: str) -> None:
    run(tmp_path, seed, "--limit", "1", "--exclude", "private")
    run(tmp_path, "--exclude", "/2$")
    assert asked(scripted_site) == ["/", "/1"]


def test_everywhere_has_to_be_said(
    tmp_path: Path, scripted_site: ScriptedSite, other_site: ScriptedSite, seed: str
) -> None:
    run(tmp_path, seed, "--limit", "1")
    run(tmp_path, "--scope", "any")
    assert asked(other_site)[:1] == ["/"]


def test_what_is_planted_while_a_crawl_runs_is_crawled_as_far_as_it_was_meant(
    tmp_path: Path, scripted_site: ScriptedSite, other_site: ScriptedSite, seed: str
) -> None:
    """As the daemon does it, for which the web interface plans."""
    settings = Settings(crawl=CrawlSettings(delay=0.0, commit_every=0.05, sitemaps=False))
    with Archive(tmp_path / "archive", settings=settings) as archive:
        enqueue_seeds(archive, CrawlOptions((other_site.url("/x"),), ScopeKind.PAGE))
        planted = False

        def look(figures: object) -> None:
            nonlocal planted
            if not planted:
                planted = True
                enqueue_seeds(archive, CrawlOptions((seed,)))

        asyncio.run(crawl(archive, CrawlOptions(limits=CrawlLimits(once=True)), look))
        asyncio.run(crawl(archive, CrawlOptions(limits=CrawlLimits(once=True))))
        assert [plan.scope for plan in crawl_plans(archive)] == ["page", "host"]
    assert {"/", "/1", "/2", "/3"} <= set(asked(scripted_site))
    assert asked(other_site) == ["/x"]


def test_an_archive_that_remembers_no_crawl_stays_on_the_hosts_it_has_visited(
    tmp_path: Path, scripted_site: ScriptedSite, other_site: ScriptedSite, seed: str
) -> None:
    run(tmp_path, seed, "--limit", "1")
    with Archive(tmp_path / "archive") as archive, archive.catalog.transaction() as cursor:
        archive.catalog.queues.set_plans(cursor, "")
    run(tmp_path)
    assert {"/", "/1", "/2", "/3"} <= set(asked(scripted_site))
    assert other_site.log == []


def test_the_same_seeds_asked_again_replace_what_was_kept_of_them(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        for depth in (1, 2):
            enqueue_seeds(archive, CrawlOptions(("http://a.example/",), depth=depth))
        enqueue_seeds(archive, CrawlOptions(("http://b.example/",), exclude=("x",), requisites=True))
        plans = crawl_plans(archive)
    assert [(plan.seeds, plan.depth) for plan in plans] == [(("http://a.example/",), 2), (("http://b.example/",), None)]
    assert plans[1].exclude == ("x",)
    assert plans[1].requisites


def test_a_site_that_was_dropped_is_not_crawled_again_whoever_links_there(
    tmp_path: Path, scripted_site: ScriptedSite, other_site: ScriptedSite, seed: str
) -> None:
    """As the REST interface drops it: its planned pages, and that it was ever asked for."""
    run(tmp_path, other_site.url("/"), "--limit", "1")
    with Archive(tmp_path / "archive") as archive:
        assert drop_site(archive, host_of(other_site.url("/"))) > 0
        assert crawl_plans(archive) == []
        enqueue_seeds(archive, CrawlOptions((seed,)))
    before = len(other_site.log)
    run(tmp_path)
    assert {"/", "/1", "/2", "/3"} <= set(asked(scripted_site))
    assert len(other_site.log) == before


@pytest.mark.parametrize(
    ("seed_at", "target", "may"),
    [
        ("http://example.org/", "https://www.example.org/", True),
        ("http://example.org/", "http://93.184.216.34/", True),
        ("http://example.org/", "http://127.0.0.1:8080/", False),
        ("http://example.org/", "http://10.0.0.1/", False),
        ("http://example.org/", "http://[::1]/", False),
        ("http://example.org/", "http://localhost/", False),
        ("http://127.0.0.1/", "http://127.0.0.2:81/", True),
        ("http://localhost:8000/", "http://127.0.0.1/", True),
    ],
)
def test_a_seed_of_the_internet_does_not_move_into_a_private_network(seed_at: str, target: str, may: bool) -> None:
    assert may_follow_move(seed_at, target) is may


@pytest.mark.parametrize("words", [("--include", "["), ("--exclude", "(x"), ("--include", "x" * 1001), ("ftp://x/",)])
def test_what_is_refused_leaves_nothing_behind(tmp_path: Path, seed: str, words: tuple[str, ...]) -> None:
    folder = tmp_path / "archive"
    assert main(["--archive", str(folder), "-q", "crawl", seed, "--once", "--delay", "0", *words]) == 2
    with Archive(folder) as archive:
        assert crawl_plans(archive) == []
        assert sum(queue_counts(archive)) == 0


def test_a_filter_of_the_settings_that_makes_no_sense_is_told_before_anything_is_stored(
    tmp_path: Path, seed: str
) -> None:
    settings = Settings(crawl=CrawlSettings(fetch_if="host ~~ 3"))
    with Archive(tmp_path / "archive", settings=settings) as archive:
        with pytest.raises(UsageError):
            asyncio.run(crawl(archive, CrawlOptions((seed,), limits=CrawlLimits(once=True))))
        assert crawl_plans(archive) == []


def keep_bad_plan(folder: Path) -> None:
    """As an earlier release kept it: patterns were looked at after they were stored."""
    with Archive(folder) as archive, archive.catalog.transaction() as cursor:
        bad = CrawlPlan(("http://bad.example/",), "host", ("[",), (), None, False)
        archive.catalog.queues.set_plans(cursor, json.dumps([bad, *crawl_plans(archive)]))


def test_a_plan_that_cannot_be_carried_out_is_named_and_the_others_go_on(
    tmp_path: Path, scripted_site: ScriptedSite, seed: str, capfd: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, seed, "--limit", "1")
    keep_bad_plan(tmp_path / "archive")
    capfd.readouterr()
    assert main(["--archive", str(tmp_path / "archive"), "crawl", "--once", "--delay", "0"]) == 0
    assert "the crawl of http://bad.example/ is left out: '[' is not a regular" in capfd.readouterr().err
    assert {"/", "/1", "/2", "/3"} <= set(asked(scripted_site))


async def test_a_daemon_names_a_plan_that_it_leaves_out(
    tmp_path: Path, scripted_site: ScriptedSite, seed: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(crawl=CrawlSettings(delay=0.0, commit_every=0.05, sitemaps=False))
    with Archive(tmp_path / "archive", settings=settings) as archive:
        enqueue_seeds(archive, CrawlOptions((seed,)))
        keep_bad_plan(tmp_path / "archive")

        async def until_crawled() -> None:
            while "/3" not in asked(scripted_site):
                await asyncio.sleep(0.05)
            os.kill(os.getpid(), signal.SIGTERM)

        log = logging.getLogger("letopis.events")
        service = Service(until_crawled, lambda: None)
        await asyncio.wait_for(Daemon(archive, CrawlOptions(), log, [service]).run(), 300)
    assert [record.getMessage() for record in caplog.records if "bad.example" in record.getMessage()]
    assert {"/", "/1", "/2", "/3"} <= set(asked(scripted_site))
