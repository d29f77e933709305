"""The demo tells a year of five sites: the same from the same seed, and with what its first page promises."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from served_archive import WebClient, running

from letopis.archive import Archive
from letopis.cli.main import main
from letopis.index.link_index import LinkIndex
from letopis.operations.words import word_index
from letopis_demo.guide import guide_page, serving_guide, tour
from letopis_demo.story import TAG, WATCHED, index_story, tell_story
from letopis_demo.story_sites import (
    DAYS,
    DEADLINE_DAY,
    GONE_DAY,
    LIST_MENDED_DAY,
    MINISTRY,
    MOVED_DAY,
    SHOP,
    SITES,
    UNIVERSITY,
    story_pages,
)  # fmt: skip

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    with Archive(tmp_path_factory.mktemp("story") / "archive", clock=lambda: NOW) as archive:
        assert tell_story(archive) > 3000
        yield archive


@pytest.fixture(scope="module")
def web(told: Archive) -> Iterator[WebClient]:
    with running(told) as client:
        yield client


def day(number: int) -> datetime:
    return NOW.replace(hour=12) - timedelta(days=DAYS - number)


def run(archive: Archive, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["--archive", str(archive.folder), *words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("site", list(SITES))
def test_the_same_seed_gives_the_same_year(site: str) -> None:
    for number in range(0, DAYS, 61):
        assert list(story_pages(site, 1, number)) == list(story_pages(site, 1, number))
    assert any(list(story_pages(site, 1, number)) != list(story_pages(site, 2, number)) for number in range(0, DAYS, 9))


@pytest.mark.parametrize("site", list(SITES))
def test_links_of_the_sites_lead_to_pages_or_to_what_the_story_tells(site: str) -> None:
    for number in (0, GONE_DAY + 7, MOVED_DAY + 7, DAYS - 1):
        pages = {page.url: page for page in story_pages(site, 1, number)}
        for page in pages.values():
            for target in re.findall(r'href="([^"]+)"', page.html):
                known = pages.get(f"http://{site}{target}")
                assert known is not None or "/statya-" in target
                gone = known is not None and known.status == 404
                assert not gone or (target == "/goods/atlas" and GONE_DAY <= number < LIST_MENDED_DAY)


def test_a_year_is_told_once(told: Archive) -> None:
    assert tell_story(told) == 0


def test_the_year_is_indexed_before_the_tour_is_named(told: Archive, web: WebClient) -> None:
    index_story(told)
    assert (word_index(told).catch_up(), LinkIndex(told).catch_up()) == (0, 0)
    searches = [stop for stop in tour(NOW) if stop.path.startswith("/search")]
    assert len(searches) == 2
    for stop in searches:
        page = web.get(stop.path).text
        assert ('class="hits' in page, "still being indexed" in page) == (True, False)


def test_prices_change_over_the_year(told: Archive) -> None:
    versions = told.versions(f"http://{SHOP}/goods/fountain-pen")
    assert len(versions) >= 5
    assert versions[0].time < day(10)


def test_the_deadline_of_the_ministry_is_found_as_of_its_days(
    told: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("search", '"třiceti dnů"', "--json", "--at")
    assert "zadosti" in run(told, capsys, *words, f"{day(DEADLINE_DAY - 10):%Y-%m-%d}")
    assert "zadosti" not in run(told, capsys, *words, f"{day(DEADLINE_DAY + 20):%Y-%m-%d}")
    assert str(NOW.year - 1) in run(told, capsys, "when", "třiceti dnů")


def test_links_break_and_are_mended(told: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    assert "/goods/atlas" in run(told, capsys, "broken", SHOP, "--at", f"{day(GONE_DAY + 14):%Y-%m-%d}")
    assert "/goods/atlas" not in run(told, capsys, "broken", SHOP)


def test_a_course_moves(told: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    since, until = (f"{day(MOVED_DAY + days):%Y-%m-%d}" for days in (-10, 10))
    assert "/studium/archivy" in run(told, capsys, "map", "diff", UNIVERSITY, since, until)


def test_watches_have_told_of_changes_and_of_the_outage(told: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    alerts = run(told, capsys, "watch", "alerts", "--limit", "200", "--json")
    assert alerts.count('"kind": "changed"') >= 10
    assert f"{MINISTRY}/zadosti is unavailable" in alerts
    assert f"{MINISTRY}/zadosti is available again after 3 failed checks" in alerts
    prices = [one for one in map(json.loads, alerts.splitlines()) if one["name"] == "price"]
    assert len(prices) == len({one["version"] for one in prices}) >= 5, "the watch of the price tells of its changes"
    assert all(one["difference"].count("EUR") == 2 for one in prices)
    listed = run(told, capsys, "watch", "list", "--tag", TAG, "--json")
    assert all(url in listed for url in WATCHED)


@pytest.mark.parametrize("stop", tour(NOW), ids=lambda stop: stop.title)
def test_every_stop_of_the_tour_has_something_to_show(stop, web: WebClient, told: Archive) -> None:
    assert web.get(stop.path).status == 200
    program, *words = shlex.split(stop.command)
    assert (program, main(["--archive", str(told.folder), *words])) == ("letopis", 0)


def test_the_tour_shows_the_course_that_moved_on_the_map(web: WebClient) -> None:
    stop = next(stop for stop in tour(NOW) if stop.path.startswith(f"/site/{UNIVERSITY}"))
    leaf = re.search(r'<div class="leaf">(?:(?!</div>).)*/studium/archivy.*?</div>', web.get(stop.path).text, re.DOTALL)
    assert leaf is not None
    assert re.search(r'badge moved">moved</span>.*from <a [^>]*>/predmety/archivy</a>', leaf[0], re.DOTALL)


def test_the_first_page_is_served_and_leads_to_the_interface() -> None:
    async def shown() -> str:
        async with serving_guide("http://127.0.0.1:8080/", NOW) as address:
            return await asyncio.to_thread(lambda: urllib.request.urlopen(address, timeout=300).read().decode())

    page = asyncio.run(shown())
    assert page == guide_page("http://127.0.0.1:8080/", NOW)
    assert f'href="http://127.0.0.1:8080/url/http://{MINISTRY}/zadosti"' in page


def test_the_written_tour_names_days_of_every_year() -> None:
    text = (Path(__file__).parent.parent.parent / "docs" / "guide" / "tour.md").read_text()
    asked = [int(days) for days in re.findall(r"^\$ letopis .*'(\d+) days ago'", text, re.MULTILINE)]
    shown_until = (DEADLINE_DAY, DEADLINE_DAY, LIST_MENDED_DAY)
    assert all(DAYS - days < until for days, until in zip(asked, shown_until, strict=True)), asked
    assert re.findall(r"^\$ letopis .*\d{4}-\d\d", text, re.MULTILINE) == []
