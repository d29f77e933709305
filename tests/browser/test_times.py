"""Times on the pages: UTC, or those of the reader's device once they chose so; relative ones have the exact time."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from looks import WIDE
from served_archive import WebClient

from letopis_demo import World

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

Visit = Callable[..., Any]
TOKYO = ZoneInfo("Asia/Tokyo")


DATED = "select option, svg title, figcaption"
"""Times in lists of versions and beside and inside of pictures."""


def in_tokyo(text: str) -> str:
    """A text with its times, which are UTC, as they are in Tokyo."""
    return re.sub(
        r"\d{4}-\d\d-\d\d \d\d:\d\d",
        lambda found: datetime.fromisoformat(f"{found[0]}Z").astimezone(TOKYO).strftime("%Y-%m-%d %H:%M"),
        text,
    )


def first_time(tab: Any, selector: str) -> tuple[datetime, Any]:
    """The moment that an element means, and the element."""
    found = tab.locator(selector).first
    return datetime.fromisoformat(found.get_attribute("datetime")), found


def test_a_reader_who_chose_the_time_of_their_device_gets_it_on_every_page(
    open_tab: Visit, browsed: WebClient, browsed_world: World
) -> None:
    exact = "main time[datetime]:not([data-ago])"
    with open_tab(browsed, viewport=WIDE, timezone_id="Asia/Tokyo") as tab:
        tab.goto(f"/url/{browsed_world.url(0, 0)}")
        moment, shown = first_time(tab, exact)
        assert shown.inner_text() == moment.strftime("%Y-%m-%d %H:%M")
        plain = tab.locator(DATED).all_text_contents()
        assert plain != [in_tokyo(text) for text in plain]
        tab.get_by_role("button", name="Show times of this device").click()
        assert shown.inner_text() == moment.astimezone(TOKYO).strftime("%Y-%m-%d %H:%M")
        assert "Asia/Tokyo" in tab.locator("[data-zone-name]").inner_text()
        assert tab.locator(DATED).all_text_contents() == [in_tokyo(text) for text in plain]
        for address in (f"/url/{browsed_world.url(0, 1)}", "/watches"):
            tab.goto(address)
            assert "Asia/Tokyo" in tab.locator("[data-zone-name]").inner_text()
        moment, ago = first_time(tab, "main time[data-ago]")
        assert ago.get_attribute("title") == moment.astimezone(TOKYO).strftime("%Y-%m-%d %H:%M")
        tab.get_by_role("button", name="Show times in UTC").click()
        assert ago.get_attribute("title") == moment.strftime("%Y-%m-%d %H:%M UTC")
        tab.reload()
        assert tab.locator("[data-zone-name]").inner_text() == "All times are UTC"
