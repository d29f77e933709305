"""What stands on the first screen of a phone, what is folded, and how it opens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from looks import NARROW, WIDE
from served_archive import WebClient

from letopis_demo import World

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

Visit = Callable[..., Any]
CONTENT = ".tree, .treemap, svg.web, .cards, dl.figures"


@pytest.fixture
def visit(open_tab: Visit, browsed: WebClient, signed_in: Any) -> Visit:
    """Opens a tab of an owner on the archive."""
    return partial(open_tab, browsed, (signed_in,))


@pytest.mark.parametrize("view", ["map", "picture", "links", "pages", "ranks", "audit"])
def test_the_content_of_a_site_begins_in_the_first_half_of_a_phone(
    visit: Visit, browsed_world: World, view: str
) -> None:
    with visit(viewport=NARROW) as tab:
        tab.goto(f"/site/{browsed_world.hosts[0]}?view={view}")
        first = tab.locator(CONTENT).locator("visible=true").first
        first.wait_for()
        assert first.bounding_box()["y"] < NARROW["height"] / 2


def test_the_time_and_the_actions_of_a_site_are_folded_on_a_phone_and_open_where_there_is_room(
    visit: Visit, browsed_world: World
) -> None:
    with visit(viewport=NARROW) as tab:
        tab.goto(f"/site/{browsed_world.hosts[0]}")
        crawl = tab.get_by_role("button", name="Crawl it again")
        date = tab.get_by_role("textbox", name="As of")
        assert (crawl.is_visible(), date.is_visible()) == (False, False)
        tab.locator(".site-head .doing > summary").click()
        tab.locator(".moment > summary").click()
        crawl.wait_for()
        date.wait_for()
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    with visit(viewport=WIDE) as tab:
        tab.goto(f"/site/{browsed_world.hosts[0]}")
        tab.get_by_role("button", name="Crawl it again").wait_for()
        tab.get_by_role("textbox", name="As of").wait_for()


EMPTY_LABELS = """() => [...document.querySelectorAll(".cards td[data-label]")].filter((cell) => {
    const seen = cell.checkVisibility() && getComputedStyle(cell, "::before").display !== "none";
    const said = cell.innerText.trim() || cell.querySelector("svg, input, button, progress");
    return seen && (!said || said === "–");
}).map((cell) => cell.dataset.label)"""


@pytest.mark.parametrize("view", ["pages", "changes", "broken", "ranks", "report", "audit"])
def test_no_card_of_a_phone_has_a_label_without_a_value(visit: Visit, browsed_world: World, view: str) -> None:
    with visit(viewport=NARROW) as tab:
        tab.goto(f"/site/{browsed_world.hosts[0]}?view={view}")
        tab.locator(".cards, .empty").first.wait_for()
        tab.wait_for_function("!document.querySelector('[data-again]')")
        assert tab.evaluate(EMPTY_LABELS) == []


@pytest.mark.parametrize("view", ["pages", "ranks"])
def test_values_of_a_card_of_a_phone_share_a_line(visit: Visit, browsed_world: World, view: str) -> None:
    """Forty pages with a label and a value a line each were a wall."""
    with visit(viewport=NARROW) as tab:
        tab.goto(f"/site/{browsed_world.hosts[0]}?view={view}")
        tab.locator(".packed .folding tbody tr").first.wait_for()
        heights = tab.locator(".packed .folding tbody tr").evaluate_all("all => all.map(one => one.offsetHeight)")
        assert sorted(heights)[len(heights) // 2] < 100


def test_a_card_of_a_phone_shows_what_matters_and_opens_to_the_rest(visit: Visit, browsed_world: World) -> None:
    with visit(viewport=NARROW) as tab:
        tab.goto(f"/site/{browsed_world.hosts[0]}?view=pages")
        card = tab.locator(".cards tbody tr").first
        last = card.locator("[data-aside]").first
        more = card.get_by_role("button", name="More")
        more.wait_for()
        assert last.is_visible() is False
        more.click()
        last.wait_for()
        card.get_by_role("button", name="Less").click()
        last.wait_for(state="hidden")
    with visit(viewport=WIDE) as tab:
        tab.goto(f"/site/{browsed_world.hosts[0]}?view=pages")
        tab.locator(".cards tbody tr [data-aside]").first.wait_for()
        assert tab.get_by_role("button", name="More").count() == 0


def test_checks_and_sites_are_rows_of_one_line_on_a_phone_and_open_to_the_rest(
    visit: Visit, browsed_world: World
) -> None:
    with visit(viewport=NARROW) as tab:
        for address in (f"/url/{browsed_world.url(0, 0)}", "/sites"):
            tab.goto(address)
            tab.locator(".one-line .folding tr").first.wait_for()
            heights = tab.locator(".one-line .folding tbody tr").evaluate_all("all => all.map(one => one.offsetHeight)")
            assert max(heights) < 60, address
            row = tab.locator(".one-line .folding tbody tr").first
            row.get_by_role("button", name="More").click()
            row.locator("[data-aside]").first.wait_for()


def test_the_list_of_versions_says_on_a_phone_what_changed_and_opens_to_the_rest(
    visit: Visit, browsed_world: World
) -> None:
    with visit(viewport=NARROW) as tab:
        tab.goto(f"/url/{browsed_world.url(0, 0)}")
        row = tab.locator("[aria-labelledby=versions] .folding tbody tr").first
        more = row.get_by_role("button", name="More")
        version, word = row.locator("td").first.bounding_box(), more.bounding_box()
        assert abs(version["y"] - word["y"]) < 20, "one line: which version, when, and what opens the rest"
        row.locator(".badge").first.wait_for()
        opened = row.get_by_role("link", name="Show version")
        assert opened.is_visible() is False
        more.click()
        opened.wait_for()


def test_addresses_break_between_their_parts_and_badges_cover_no_text_on_a_phone(
    visit: Visit, browsed_world: World
) -> None:
    meet = """() => [...document.querySelectorAll(".issues tbody tr")].filter((row) => {
        const boxes = [row.querySelector("a"), row.querySelector(".badge")];
        const [name, badge] = boxes.map((one) => one.getBoundingClientRect());
        return badge.top < name.bottom - 1 && badge.left < name.right;
    }).length"""
    with visit(viewport=NARROW) as tab:
        tab.goto(f"/site/{browsed_world.hosts[0]}?view=audit")
        tab.locator(".issues tbody tr").first.wait_for()
        assert tab.evaluate(meet) == 0
        heading = tab.locator("h1").first
        parts = heading.evaluate(
            "one => [...one.childNodes].filter(each => each.nodeType === 3).map(each => each.data)"
        )
        assert "".join(parts) == browsed_world.hosts[0]
        assert len(list(filter(None, parts))) == browsed_world.hosts[0].count(".") + 1


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_an_issue_of_an_audit_leads_to_its_table(visit: Visit, browsed_world: World, size: Any) -> None:
    with visit(viewport=size) as tab:
        tab.goto(f"/site/{browsed_world.hosts[0]}?view=audit")
        issue = tab.locator(".issues tbody a").first
        issue.wait_for()
        with tab.expect_navigation():
            issue.click()
        heading = tab.locator("#pages")
        tab.wait_for_function("document.activeElement?.id === 'pages'")
        assert 0 <= heading.bounding_box()["y"] < size["height"] / 2
        assert tab.locator("#pages ~ .cards tbody tr").first.bounding_box()["y"] < size["height"]


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_form_of_a_watch_is_folded_and_can_be_saved_from_wherever_one_is(visit: Visit, size: Any) -> None:
    with visit(viewport=size) as tab:
        tab.goto("/watches/1")
        tab.get_by_role("link", name="Edit", exact=True).click()
        tab.wait_for_function("document.activeElement?.id === 'edit'")
        save = tab.get_by_role("button", name="Save", exact=True)
        part = tab.locator(".part", has_text="When it is checked")
        assert part.locator("select[name=every]").is_visible() is False
        part.locator("summary").click()
        part.locator("select[name=every]").select_option("other")
        part.locator("input[name=span]").fill("90m")
        box = save.bounding_box()
        assert box["y"] + box["height"] <= size["height"], "it sticks to the edge of the window"


def test_a_span_of_ones_own_is_asked_for_when_it_is_chosen(visit: Visit) -> None:
    with visit(viewport=WIDE) as tab:
        tab.goto("/watches")
        own = tab.locator(".first-line input[name=span]")
        assert own.is_visible() is False
        tab.get_by_label("How often").select_option("other")
        own.wait_for()
