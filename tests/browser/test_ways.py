"""Archived pages with their scripts in a real browser, years later, with nothing of the web in reach but a log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from many_ways import SITE, WAYS, WAYS_AT, WAYS_STAMP, remember_ways
from playwright.sync_api import expect
from served_archive import WebClient, running

from letopis.archive import Archive


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebClient]:
    with Archive(tmp_path_factory.mktemp("ways") / "a", clock=lambda: WAYS_AT) as archive:
        remember_ways(archive)
        with running(archive, replay=True) as web:
            yield web


def of_pages(asked: list[str]) -> list[str]:
    """What pages asked of the live web; the browser itself asks its maker."""
    return [line for line in asked if "google" not in line]


def test_a_page_loads_its_content_in_every_way_and_asks_nobody_else(
    ways: WebClient, logged_browser: tuple[Any, list[str]]
) -> None:
    browser, asked = logged_browser
    del asked[:]
    tab = browser.new_page()
    try:
        tab.goto(f"{ways.address}/web/{WAYS_STAMP}/{SITE}/")
        tab.wait_for_url(f"{ways.replay}/web/{WAYS_STAMP}/{SITE}/")
        frame = tab.frame_locator("main iframe")
        frame.locator(f"#ways li:nth-child({len(WAYS)})").wait_for(state="attached")
        told = frame.locator("#ways li").all_inner_texts()
    finally:
        tab.close()
    assert told == [f"{name} works" for name in WAYS]
    assert of_pages(asked) == []


def test_the_frame_follows_what_is_shown_and_an_uncaptured_page_can_be_saved(
    ways: WebClient, logged_browser: tuple[Any, list[str]]
) -> None:
    browser, asked = logged_browser
    del asked[:]
    tab = browser.new_page()
    try:
        tab.goto(f"{ways.replay}/web/20250506070809/{SITE}/")
        bar, frame = tab.locator("header.replay"), tab.frame_locator("main iframe")
        assert "365 d earlier than asked for" in bar.inner_text()
        bar.locator(".missing").wait_for()
        fetching = bar.locator(".fetch").get_attribute("href") or ""
        assert fetching.startswith(f"{ways.address}/missing?page=")
        assert "&at=20250506070809&url=http" in fetching
        frame.locator("#next").click()
        frame.locator("p#next").wait_for()
        tab.wait_for_url(f"{ways.replay}/web/20250506070809/{SITE}/next")
        expect(bar.locator("h1")).to_have_text("www.ways-of.example/next")
        expect(bar.locator(".missing"), "what is missing is told of the page that is shown").to_be_hidden()
        tab.goto(f"{ways.replay}/web/{WAYS_STAMP}/{SITE}/")
        frame.locator("#lost").click()
        save = bar.locator("a", has_text="Save this page")
        save.wait_for()
        expect(bar).to_contain_text("lost.example/page")
        save.click()
        tab.wait_for_url(f"{ways.address}/save?url=https%3A%2F%2Flost.example%2Fpage")
        assert tab.get_by_text("People with an account can save it").is_visible()
        assert "lost.example/page" in (tab.locator("main a", has_text="Sign in").get_attribute("href") or "")
    finally:
        tab.close()
    assert of_pages(asked) == []


def test_without_a_replay_origin_in_reach_a_page_is_shown_without_scripts(
    ways: WebClient, logged_browser: tuple[Any, list[str]]
) -> None:
    browser, _ = logged_browser
    for options in ({"java_script_enabled": False}, {}):
        tab = browser.new_page(**options)
        try:
            tab.route(f"{ways.replay}/**", lambda route: route.abort())
            tab.goto(f"{ways.address}/web/{WAYS_STAMP}/{SITE}/")
            tab.frame_locator("main iframe[src]").locator("p.old").wait_for()
            assert tab.url.startswith(ways.address)
            assert tab.frame_locator("main iframe[src]").locator("#ways li").count() == 0
        finally:
            tab.close()
