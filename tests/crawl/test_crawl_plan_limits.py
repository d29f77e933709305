"""Limits and rules of a crawl that waits in the archive hold for whoever goes on with it, across restarts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from scripted_site import ScriptedSite

from letopis.archive import Archive, utc_now
from letopis.archive.queues import crawl_plans
from letopis.cli.main import main
from letopis.crawl import CrawlOptions, enqueue_seeds

NOW = utc_now()


@pytest.fixture
def sites() -> Iterator[list[ScriptedSite]]:
    """Three sites of five pages; each page links to all pages of its site and to the other sites."""
    made = [ScriptedSite() for _ in range(3)]
    links = "".join(f"<a href='/{number}'>{number}</a>" for number in range(4))
    links += "".join(f"<a href='{site.url('/')}'>there</a>" for site in made)
    for site in made:
        for path in ("/", "/0", "/1", "/2", "/3"):
            site.set(path, links.encode())
    yield made
    for site in made:
        site.close()


def run(folder: Path, *words: str) -> None:
    assert main(["--archive", str(folder), "-q", *words]) == 0


def go_on(folder: Path, *words: str) -> None:
    run(folder, "crawl", "--once", "--delay", "0", *words)


def asked(site: ScriptedSite) -> set[str]:
    return {path for _, path, _ in site.log if path not in ("/robots.txt", "/sitemap.xml")}


def test_no_more_pages_are_planned_than_the_limit_says_however_often_it_goes_on(
    tmp_path: Path, sites: list[ScriptedSite]
) -> None:
    seed = sites[0].url("/")
    run(tmp_path, "crawls", "add", seed, "--limit", "3")
    go_on(tmp_path, "--limit", "1")
    go_on(tmp_path)
    go_on(tmp_path)
    assert asked(sites[0]) == {"/", "/0", "/1"}
    with Archive(tmp_path) as archive:
        assert [plan.planned for plan in crawl_plans(archive)] == [3]


def test_a_raised_limit_brings_what_the_old_one_left_out(tmp_path: Path, sites: list[ScriptedSite]) -> None:
    seed = sites[0].url("/")
    run(tmp_path, "crawls", "add", seed, "--limit", "2")
    go_on(tmp_path)
    run(tmp_path, "crawls", "add", seed, "--limit", "5", "--revisit-now")
    go_on(tmp_path, "--revisit-now")
    assert asked(sites[0]) == {"/", "/0", "/1", "/2", "/3"}


def test_no_more_hosts_are_met_than_the_plan_allows(tmp_path: Path, sites: list[ScriptedSite]) -> None:
    run(tmp_path, "crawls", "add", sites[0].url("/"), "--scope", "any", "--max-hosts", "2")
    go_on(tmp_path)
    assert [len(asked(site)) for site in sites] == [5, 5, 0]


def test_a_limited_crawl_does_not_bound_one_without_limits(tmp_path: Path, sites: list[ScriptedSite]) -> None:
    run(tmp_path, "crawls", "add", sites[0].url("/"), "--limit", "2")
    run(tmp_path, "crawls", "add", sites[1].url("/"))
    go_on(tmp_path)
    assert [len(asked(site)) for site in sites] == [2, 5, 0]


def test_rules_of_a_plan_decide_which_addresses_are_asked(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    seed = scripted_site.set("/", b"<a href='/list?page=1&amp;sort=a'>1</a> <a href='/list?sort=b'>none</a>")
    scripted_site.set("/list?page=1", b"first")
    base = scripted_site.url("/list").partition("://")[2]
    rules = f"<urltransform><varlist base='{base}'><var name='page'/></varlist></urltransform>"
    run(tmp_path / "waiting", "crawls", "add", seed, "--rules", rules)
    go_on(tmp_path / "waiting")
    assert asked(scripted_site) == {"/", "/list?page=1"}
    scripted_site.log.clear()
    go_on(tmp_path / "at once", seed, "--rules", rules)
    assert asked(scripted_site) == {"/", "/list?page=1"}


def test_plans_of_earlier_releases_have_no_limits(tmp_path: Path) -> None:
    row = [["http://example.org/"], "host", [], [], 2, False]
    with Archive(tmp_path) as archive:
        with archive.catalog.transaction() as cursor:
            archive.catalog.queues.set_plans(cursor, json.dumps([row, [*row, "http"]]))
        first, second = crawl_plans(archive)
    assert (first.origin, first.limit, first.is_limited, first.hosts) == ("cli", None, False, ())
    assert (second.origin, second.depth, second.include) == ("http", 2, ())


def test_a_crawl_asks_for_nothing_more_after_its_bytes(tmp_path: Path, sites: list[ScriptedSite]) -> None:
    seed = sites[0].url("/")
    run(tmp_path, "crawl", seed, "--once", "--delay", "0", "--max-bytes", "400")
    few = len(asked(sites[0]))
    assert 0 < few < 5
    run(tmp_path, "crawl", "--once", "--delay", "0", "--max-bytes", "1MiB")
    assert len(asked(sites[0])) == 5


def test_a_crawl_ends_after_its_time_though_pages_are_due_later(tmp_path: Path, sites: list[ScriptedSite]) -> None:
    run(tmp_path, "crawl", sites[0].url("/"), "--delay", "0", "--max-time", "5s")
    assert "/" in asked(sites[0])


def test_a_plan_that_has_had_its_bytes_is_asked_for_no_more_whoever_goes_on(
    tmp_path: Path, sites: list[ScriptedSite]
) -> None:
    run(tmp_path, "crawls", "add", sites[0].url("/"), "--max-bytes", "400")
    go_on(tmp_path)
    few = asked(sites[0])
    go_on(tmp_path, "--revisit-now")
    assert asked(sites[0]) == few != {"/", "/0", "/1", "/2", "/3"}
    with Archive(tmp_path) as archive:
        assert crawl_plans(archive)[0].taken >= 400
        left = next(path for path in ("/0", "/1", "/2", "/3") if path not in few)
        last = archive.history(sites[0].url(left))[-1]
        assert (last.available, last.failure) == (None, "setting")


def test_a_plan_whose_time_is_over_is_asked_for_no_more(tmp_path: Path, sites: list[ScriptedSite]) -> None:
    with Archive(tmp_path, clock=lambda: NOW - timedelta(hours=2)) as archive:
        enqueue_seeds(archive, CrawlOptions((sites[0].url("/"),), max_seconds=3600))
    go_on(tmp_path)
    assert asked(sites[0]) == set()


@pytest.mark.parametrize("words", [("crawl", "--max-bytes", "many"), ("crawls", "add", "--max-time", "soon")])
def test_limits_that_are_none_are_refused_before_anything_is_stored(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert main(["--archive", str(tmp_path), *words, "http://127.0.0.1:1/"]) == 2
    with Archive(tmp_path) as archive:
        assert crawl_plans(archive) == []
