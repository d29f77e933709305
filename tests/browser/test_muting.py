"""Buttons that decide what is told: what is muted and what never is, and whether a notification arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_site import ScriptedSite
from served_archive import WebClient, running

from letopis.archive import OWN, READ, WRITE, Archive
from letopis.archive.accounts import accounts_of
from letopis.config import FetchSettings, MonitorSettings, Settings
from letopis.monitor.checker import CheckOptions
from letopis.operations import Context, bind
from letopis.operations.checks import check_pages
from letopis.operations.muting import mute_list
from letopis.operations.watches import watch_add
from letopis.web.pages import url_in_path

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

SETTINGS = Settings(fetch=FetchSettings(private="always"), monitor=MonitorSettings(min_interval=0, delay=0))
STANDING = "".join(f"<p>Standing paragraph {name} tells of the town and of its people.</p>" for name in "abcdefgh")
PASSWORD = "a long password"


class WatchedPage:
    """A page with a counter on a real server, and an owner's archive that has looked at it ten times."""

    def __init__(self, site: ScriptedSite, archive: Archive, web: WebClient) -> None:
        self.site, self.web, self.url = site, web, site.url("/page")
        self.context = Context(archive, user="", rights=READ | WRITE | OWN, private_ok=True)
        self.verdict = [self.look(number) for number in range(10, 20)][-1]

    def look(self, number: int) -> str:
        self.site.set("/page", f"<p>Visitors so far: {number}</p>{STANDING}".encode())
        return check_pages(self.context, [self.url], CheckOptions(now=True, private_ok=True))[0].verdict

    def rules(self) -> list[tuple[str, str]]:
        return [
            (rule.place, rule.kind)
            for rule in mute_list(self.context, bind(mute_list.parameters, {}, self.context.moment()))
        ]


@pytest.fixture
def page(tmp_path: Path, scripted_site: ScriptedSite) -> Iterator[WatchedPage]:
    with Archive(tmp_path / "archive", settings=SETTINGS) as archive, running(archive) as web:
        accounts_of(archive).add("olga", "owner", PASSWORD, 0)
        yield WatchedPage(scripted_site, archive, web)


def test_muted_changes_are_shown_with_buttons_that_undo_it_or_keep_it(
    page: WatchedPage, open_tab: Callable[..., Any], session_of: Callable[..., Any]
) -> None:
    assert page.verdict == "noise"
    host = page.url.split("/")[2]
    with open_tab(page.web, (session_of(page.web, "olga"),)) as tab:
        tab.goto(f"/compare/{url_in_path(page.url)}")
        tab.get_by_text("2 frequent changes muted").click()
        row = tab.locator("details.muted li").first
        assert "counter" in row.inner_text()
        row.get_by_label("Where").select_option("host")
        with tab.expect_navigation():
            row.get_by_role("button", name="Always mute this").click()
        assert page.rules() == [(host, "always")]
        tab.get_by_text("2 frequent changes muted").click()
        with tab.expect_navigation():
            tab.locator("details.muted li").first.get_by_role("button", name="Do not mute this").click()
    assert (page.url, "never") in page.rules()
    assert page.look(20) == "changed"


def test_the_button_of_a_watch_sends_a_notification_and_says_what_became_of_it(
    page: WatchedPage, open_tab: Callable[..., Any], session_of: Callable[..., Any]
) -> None:
    page.site.set("/hook", b"taken")
    asked = {"url": [page.url], "notify": [page.site.url("/hook")]}
    watch_add(page.context, bind(watch_add.parameters, asked, page.context.moment()))
    with open_tab(page.web, (session_of(page.web, "olga"),)) as tab:
        tab.goto("/watches")
        tab.get_by_label(f"Select {page.url}").check()
        tab.get_by_role("button", name="Send a test").click()
        tab.get_by_role("status").get_by_text("delivered").wait_for()
    assert [path for method, path, _ in page.site.log if method == "POST"] == ["/hook"]
