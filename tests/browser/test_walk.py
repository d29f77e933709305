"""People walk through the pages with a browser: wide and narrow, light and dark, with and without scripts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from looks import NARROW, WIDE, in_every_look
from playwright.sync_api import expect
from served_archive import WebClient

from letopis_demo import World

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

Visit = Callable[..., Any]
TABLET = {"width": 700, "height": 900}


@pytest.fixture
def visit(open_tab: Visit, browsed: WebClient) -> Visit:
    """Opens a tab on the archive."""
    return partial(open_tab, browsed)


def fits(tab: Any) -> bool:
    """Whether nothing but the boxes that scroll is wider than the window."""
    tab.wait_for_load_state()
    return bool(tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


@in_every_look
def test_a_walk_from_the_overview_to_a_change_a_site_and_a_search(visit: Visit, look: Any) -> None:
    with visit(**look) as tab:
        tab.goto("/")
        assert fits(tab)
        tab.locator("[aria-labelledby=changes] a.page").first.click()
        tab.get_by_role("heading", name="Availability").wait_for()
        tab.locator(".strip rect.up").first.wait_for()
        assert fits(tab)
        tab.get_by_role("button", name="Compare").click()
        tab.get_by_role("heading", name="What changed").wait_for()
        tab.locator(".words ins, .words del").first.wait_for()
        for name in ("Side by side", "Rendered", "Links", "Source"):
            tab.get_by_role("link", name=name, exact=True).click()
            tab.locator("a[aria-current=page]").get_by_text(name, exact=True).wait_for()
            assert fits(tab), name
        for _ in ("of the page", "of its site"):
            with tab.expect_navigation():
                tab.locator(".crumbs a").click()
        tab.locator(".tree a.page").nth(4).wait_for(state="attached")
        assert fits(tab)
        tab.locator("#find").fill("garden patient")
        tab.locator("#find").press("Enter")
        tab.get_by_role("heading", name="Search").wait_for()
        assert fits(tab)


@pytest.mark.parametrize("size", [WIDE, TABLET, NARROW], ids=["wide", "tablet", "narrow"])
def test_every_other_page_fits_and_says_nothing_on_the_console(visit: Visit, browsed_world: World, size: Any) -> None:
    site = f"/site/{browsed_world.hosts[0]}?view="
    views = [site + view for view in ("picture", "links", "pages", "changes", "broken", "ranks", "report", "audit")]
    plain = [
        f"/compare/{browsed_world.url(0, 0)}",
        "/sites",
        "/watches",
        "/crawl",
        "/jobs",
        "/duplicates",
        "/storage",
        "/settings",
        "/search",
    ]
    with visit(viewport=size) as tab:
        for address in (*views, *plain):
            tab.goto(address)
            assert fits(tab), address


def test_the_picture_of_a_site_is_drawn_and_leads_to_its_pages(visit: Visit, browsed_world: World) -> None:
    with visit(viewport=WIDE) as tab:
        tab.goto(f"/site/{browsed_world.hosts[0]}?view=picture")
        assert tab.locator(".treemap a").count() >= 5
        tab.locator(".treemap a").nth(3).click(position={"x": 6, "y": 6})
        tab.get_by_role("heading", name="Availability").wait_for()


@in_every_look
def test_the_hours_of_changes_are_a_table_of_shades(visit: Visit, browsed_world: World, look: Any) -> None:
    with visit(**look, java_script_enabled=False) as tab:
        tab.goto(f"/site/{browsed_world.hosts[0]}?view=changes")
        assert tab.locator(".hours td.heat4").count() >= 1
        assert fits(tab)


def test_the_picture_of_links_leads_to_its_pages_with_the_keyboard_too(visit: Visit, browsed_world: World) -> None:
    with visit(viewport=WIDE, java_script_enabled=False) as tab:
        tab.goto(f"/site/{browsed_world.hosts[0]}?view=links")
        dot = tab.locator("svg.web a").nth(2)
        name = dot.locator("title").text_content()
        dot.focus()
        tab.keyboard.press("Enter")
        tab.get_by_role("heading", name="Availability").wait_for()
        assert name.endswith(tab.url.partition("://")[2].partition("://")[2])


@pytest.mark.parametrize("width", [700, 900, 1280])
def test_the_links_to_other_changes_cover_nothing_of_the_choice_of_versions(
    visit: Visit, browsed_world: World, width: int
) -> None:
    with visit(viewport={"width": width, "height": 900}) as tab:
        tab.goto(f"/compare/{browsed_world.url(0, 0)}")
        chosen = tab.locator(".pair form.inline > :is(label, button, span)").evaluate_all(PLACES)
        for place in tab.locator(".pair-bar .steps a").evaluate_all(PLACES):
            assert not [one for one in chosen if _cross(one, place)]


def _cross(one: list[int], other: list[int]) -> bool:
    """Whether two boxes (left, right, top, bottom) share more than an edge."""
    across = min(one[1], other[1]) - max(one[0], other[0])
    return across > 1 and min(one[3], other[3]) - max(one[2], other[2]) > 1


def test_the_menu_of_a_guest_is_one_line_on_the_phone_in_czech_too(visit: Visit) -> None:
    with visit(viewport=NARROW, locale="cs") as tab:
        tab.goto("/login")
        tops = {top for _, _, top, _ in tab.locator(".menu > *").evaluate_all(PLACES)}
        assert max(tops) - min(tops) < 10


PLACES = """all => all.map(one => one.getBoundingClientRect()).map(({left, right, top, bottom}) =>
  [left, right, top, bottom].map(Math.round))"""


def test_on_the_phone_the_picture_of_links_fits_with_names_that_can_be_read_and_grows(
    visit: Visit, browsed_world: World
) -> None:
    with visit(viewport=NARROW, has_touch=True) as tab:
        tab.goto(f"/site/{browsed_world.hosts[0]}?view=links")
        picture, names = tab.locator("svg.web"), tab.locator("svg.web text")
        box = picture.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= NARROW["width"]
        assert box["height"] > box["width"], "upright, as the phone is held"
        for larger in (False, True):
            if larger:
                tab.get_by_role("button", name="Larger").tap()
                assert picture.bounding_box()["width"] > box["width"]
            places = names.evaluate_all(PLACES)
            assert len(places) > 3
            assert all(bottom - top >= 11 for _, _, top, bottom in places)
            pairs = [(one, other) for one in places for other in places if one < other]
            assert [pair for pair in pairs if _cross(*pair)] == []
        tab.get_by_role("button", name="Whole picture").tap()
        dot = tab.locator("svg.web a").first
        dot.locator("circle").last.tap()
        assert tab.locator("svg.web a.near").count() > 1, "its neighbours stay as they were"
        tab.get_by_role("button", name="Larger").tap()
        place = dot.bounding_box()
        assert 0 <= place["x"] <= 390
        assert 0 <= place["y"] <= 844
        tab.locator("[data-chosen] a").tap()
        tab.get_by_role("heading", name="Availability").wait_for()


def test_on_the_phone_the_bar_of_the_replay_is_one_line_that_opens(visit: Visit, browsed_world: World) -> None:
    with visit(viewport=NARROW) as tab:
        tab.goto(f"/web/2/{browsed_world.url(0, 0)}")
        bar = tab.locator("header.replay")
        assert bar.bounding_box()["height"] < 70
        assert browsed_world.hosts[0] in bar.locator("h1").inner_text()
        for told in (bar.locator(".when time"), bar.locator(".when small")):
            place = told.bounding_box()
            assert told.is_visible()
            assert 0 <= place["x"] < place["x"] + place["width"] <= 390
            assert told.evaluate("one => one.closest('.when').scrollWidth <= one.closest('.when').clientWidth")
        assert bar.get_by_role("link", name="Later").or_(bar.get_by_role("link", name="Earlier")).first.is_visible()
        assert not bar.get_by_role("link", name="All captures").is_visible()
        bar.locator("label[for=bar-more]").click()
        assert bar.get_by_role("link", name="All captures").is_visible()
        assert fits(tab)


def test_fingers_make_what_is_picked_wider_and_narrower(visit: Visit) -> None:
    with visit(viewport=NARROW, has_touch=True) as tab:
        tab.goto("/watches/1/pick")
        heading = tab.frame_locator(".picker iframe").locator("h1").first
        heading.wait_for()
        tab.locator("[data-moves]").wait_for()
        box = heading.bounding_box()
        tab.touchscreen.tap(box["x"] + 20, box["y"] + box["height"] / 2)
        first = tab.locator("#picked").input_value()
        assert first
        tab.get_by_role("button", name="Wider").tap()
        wider = tab.locator("#picked").input_value()
        assert wider != first
        tab.get_by_role("button", name="Narrower").tap()
        assert tab.locator("#picked").input_value() != wider
        assert fits(tab)


def test_everything_can_be_read_without_scripts(visit: Visit, browsed_world: World) -> None:
    home = browsed_world.url(0, 0)
    with visit(viewport=WIDE, java_script_enabled=False) as tab:
        for address in (
            "/",
            f"/url/{home}",
            f"/compare/{home}",
            f"/site/{browsed_world.hosts[0]}",
            "/crawl",
            "/search",
        ):
            tab.goto(address)
            assert tab.locator("h1").is_visible()
        tab.goto(f"/site/{browsed_world.hosts[0]}")
        branch = tab.locator(".tree details").first
        branch.locator("summary").first.click()
        assert branch.get_attribute("open") is None


def test_the_keyboard_reaches_the_content_and_the_search_box(visit: Visit) -> None:
    with visit(viewport=WIDE) as tab:
        tab.goto("/")
        tab.keyboard.press("Tab")
        expect(tab.locator(".skip")).to_be_focused()
        tab.keyboard.press("Enter")
        expect(tab.locator("#main")).to_be_focused()
        tab.keyboard.press("/")
        expect(tab.locator("#find")).to_be_focused()
        tab.keyboard.press("Escape")


def test_words_are_completed_where_words_are_searched_and_in_no_other_box(visit: Visit) -> None:
    with visit(viewport=WIDE) as tab:
        for page, typed in (("/", "#find"), ("/search", "form.ask-words input[name=q]")):
            tab.goto(page)
            box = tab.locator(typed)
            box.press_sequentially("patient gard")
            offered = tab.locator(f"datalist#{box.get_attribute('list')} option")
            expect(offered.and_(tab.locator("[value='patient garden']"))).to_have_count(1)
        for page in ("/search", "/watches", "/settings", "/docs", "/saved/new"):
            tab.goto(page)
            boxes = tab.locator("input[list^=words-of]").all()
            asked = [box.evaluate("box => new URL(box.form.action).pathname") for box in boxes]
            assert asked == (["/find", "/search"] if page == "/search" else ["/find"]), page


def test_a_page_that_loads_itself_again_does_not_cut_off_what_the_reader_has_just_opened(visit: Visit) -> None:
    leave = "({ loadAgain }) => { location.assign('/sites'); setTimeout(loadAgain); }"
    with visit(viewport=WIDE) as tab:
        tab.goto("/")
        tab.evaluate(f"() => {{ import('/static/letopis.js').then({leave}); }}")
        tab.wait_for_url("**/sites")


def test_the_rendered_comparison_cannot_reach_our_page(visit: Visit, browsed_world: World) -> None:
    with visit(viewport=WIDE) as tab:
        tab.goto(f"/compare/{browsed_world.url(0, 0)}?view=visual")
        frame = tab.locator("iframe.framed")
        assert frame.get_attribute("sandbox") == ""
        assert tab.evaluate("document.querySelector('iframe').contentDocument") is None
        inner = tab.frame_locator("iframe.framed")
        inner.locator("body").wait_for()
        inner.locator("ins.letopis, del.letopis").first.wait_for()


def test_on_the_phone_hosts_of_a_crawl_are_cards_that_need_no_scrolling_to_the_side(visit: Visit) -> None:
    with visit(viewport=NARROW) as tab:
        tab.goto("/crawl")
        for _ in ("as it was sent", "as the script draws it anew"):
            group = tab.get_by_role("group", name="Hosts")
            assert group.evaluate("box => box.scrollWidth <= box.clientWidth")
            labels = (
                group.locator("tbody tr")
                .first.locator("td[data-label]")
                .evaluate_all("all => all.map(one => one.dataset.label)")
            )
            assert labels == ["Host", "Fetches", "Never visited", "Overdue", "Failures in a row", "Requested pause"]
            tab.locator("[data-live]").wait_for()


def test_live_figures_move_while_somebody_looks(visit: Visit) -> None:
    with visit(viewport=WIDE) as tab:
        tab.goto("/crawl")
        tab.locator("[data-live]").wait_for(state="visible")
        expect(tab.locator("[data-rate=fetched]")).to_have_text("0.0")
        for part in tab.locator("[data-fresh]").all():
            part.evaluate("part => part.dataset.old = 'as it was sent'")
        expect(tab.locator("[data-fresh]")).to_have_count(2)
        expect(tab.locator("[data-old]")).to_have_count(0, timeout=60_000)


def open_bar(tab: Any) -> None:
    folded = tab.locator(".moment:not([open]) > summary")
    if folded.is_visible():
        folded.click()


def show_as_of(tab: Any, moment: datetime) -> None:
    """Sets the time bar to the end of a day; a phone has it folded to a line."""
    open_bar(tab)
    tab.get_by_role("textbox", name="As of").fill(moment.strftime("%Y-%m-%dT23:59"))
    with tab.expect_navigation():
        tab.locator(".time-bar button").click()


@in_every_look
def test_somebody_browses_the_map_of_a_site_at_two_dates(visit: Visit, browsed_world: World, look: Any) -> None:
    first, last = (browsed_world.start + timedelta(days=days) for days in (0, 4))
    with visit(**look) as tab:
        tab.goto(f"/site/{browsed_world.hosts[0]}")
        now = tab.locator(".tree a.page").count()
        show_as_of(tab, first)
        assert tab.locator(".time-bar.past").count() == 1
        assert 1 <= tab.locator(".tree a.page").count() <= now
        assert fits(tab)
        with tab.expect_navigation():
            tab.get_by_role("link", name="Changes", exact=True).click()
        show_as_of(tab, last)
        folded = tab.locator("details:not([open]) > summary", has_text="compared with")
        if folded.count():  # on a phone
            folded.click()
        tab.get_by_label("compared with").fill(first.strftime("%Y-%m-%dT00:00"))
        with tab.expect_navigation():
            tab.locator("form.inline", has=tab.get_by_label("compared with")).get_by_role("button").click()
        assert tab.locator(".badge.changed, .badge.appeared").count() >= 1
        assert fits(tab)
        open_bar(tab)
        with tab.expect_navigation():
            tab.get_by_role("link", name="Back to now").click()
        assert tab.locator(".time-bar.past").count() == 0
