"""An application captured whole and replayed a year later, its server off: it works, and asks nobody else."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from patience import UNHURRIED
from playwright.sync_api import expect
from served_archive import running
from single_page import SEARCH_STEPS, single_page

from letopis import Monitor
from letopis.archive import Archive
from letopis.config import FetchSettings, Settings
from letopis.fetch.page_steps import parse_steps
from letopis.urls import surt

THEN = datetime(2025, 3, 4, 12, tzinfo=UTC)
NEXT_YEAR = "20260304120000"


def test_an_application_works_a_year_later_with_its_server_off(
    tmp_path: Path, logged_browser: tuple[Any, list[str]]
) -> None:
    browser, left = logged_browser
    settings = Settings(fetch=FetchSettings(private="always"), capture=UNHURRIED)
    with Archive(tmp_path / "a", settings=settings, clock=lambda: THEN) as archive:
        with single_page() as page, Monitor(archive) as monitor:
            options = monitor.options._replace(now=True, browser=True, steps=parse_steps(SEARCH_STEPS))
            (check,) = monitor.look([page.url], options)
        assert check.available
        (found,) = archive.sets.of(page.url)
        members = {surt(member.url).partition(")")[2] for member in archive.sets.members(found)}
        assert {"/app.js", "/routes.js", "/stars.js", "/film.wav", "/late.png", "/icon.png"} <= members
        del left[:]
        with running(archive, replay=True) as web:
            tab = browser.new_page()
            try:
                tab.goto(f"{web.replay}/web/{NEXT_YEAR}/{page.url}")
                _used(tab)
            finally:
                tab.close()
        assert [line for line in left if "google" not in line] == [], "the browser itself asks its maker"
    assert page.asked.count(("GET", "/")) == 1


def _used(tab: Any) -> None:
    """Everything that a reader does on it."""
    inside = tab.frame_locator("main iframe")
    inside.locator("#items li:nth-child(3)", has_text="Volume 3 ***").wait_for()
    expect(inside.locator("#items li"), "scripts run on what the server sent").to_have_count(3)
    tab.locator("link[rel=icon][href$='/icon.png']").wait_for(state="attached")
    inside.locator("#note", has_text="Open on Sundays").wait_for()
    inside.locator("#length", has_text="1 s").wait_for()
    inside.locator("#q").fill("brno")
    inside.locator("#go").click()
    inside.locator("#answer", has_text="2 volumes on Brno").wait_for()
    inside.locator("#lazy").scroll_into_view_if_needed()
    tab.frames[1].wait_for_function("document.querySelector('#lazy').naturalWidth > 0")
    inside.locator("a", has_text="Maps").click()
    tab.wait_for_url("**/maps")
    expect(tab.locator("header.replay h1")).to_have_text(re.compile("/maps$"))
    inside.locator("#route", has_text="/api/route/maps was never captured here").wait_for()
    tab.go_back()
    inside.locator("#route", has_text="All").wait_for()
    tab.wait_for_url(re.compile(r"/web/\d+/http://[\d.:]+/$"))
    tab.locator(".missing").wait_for(state="hidden")
    _tells_missing(tab, "maps", "late")
    _tells_missing(tab, "", "now")
    tab.locator(".missing", has_text="now").wait_for()
    assert tab.locator(".missing li").all_text_contents() == ["now"], "what an address lacked that was left is not told"


def _tells_missing(tab: Any, route: str, url: str) -> None:
    script = "([route, url]) => top.postMessage({ letopis: 'missing', page: document.URL + route, urls: [url] }, '*')"
    tab.frames[1].evaluate(script, [route, url])
