"""The pure parts behind the pages: differences laid out, strips, bars, heat, lists in parts."""

from __future__ import annotations

import ast
import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from growth import grows_with_the_square
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from letopis.archive.activity import ChangeRow, HourRow
from letopis.change.text_diff import diff_pieces
from letopis.config import DatabaseSettings, FetchSettings, ServeSettings, Settings
from letopis.index.map_formats import shared_ending
from letopis.index.page_ranks import SiteDiagram
from letopis.model import Check, Outcome
from letopis.operations.settings import shown_settings
from letopis.web import pages
from letopis.web.charts import (
    CalendarCapture,
    availability_strip,
    bars,
    calendar_months,
    changes_by_hour,
    heat_map,
    section_of,
)
from letopis.web.comparison import DiffRow, count_words, running_text, side_by_side
from letopis.web.engine_words import full_sentence
from letopis.web.languages import grouped as number
from letopis.web.maps import COLOURS, HEIGHT, WIDTH, TitleShortener, draw_links
from letopis.web.pages import environment, human_size, local_url, url_in_path
from letopis.web.tables import list_page

START = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = st.lists(st.sampled_from(["one two", "three", "", "four five six", "eins zwei"]), max_size=12).map("\n".join)


def text_of(rows: list[DiffRow], side: int) -> list[str]:
    lines = [row[side] for row in rows if not row.hidden and row[side] is not None]
    return ["".join(run.text for run in line.runs) for line in lines]  # type: ignore[union-attr]


@given(TEXTS, TEXTS)
@hypothesis_settings(max_examples=150, deadline=None)
def test_both_columns_hold_their_own_text_in_order(old: str, new: str) -> None:
    rows = side_by_side(diff_pieces(old + "\n", new + "\n"))
    for side, text in ((0, old), (1, new)):
        lines = (text + "\n").split("\n")[:-1]
        numbers = [row[side].number for row in rows if not row.hidden and row[side] is not None]  # type: ignore[union-attr]
        assert numbers == sorted(set(numbers))
        assert text_of(rows, side) == [lines[number - 1] for number in numbers]
    hidden = sum(row.hidden for row in rows)
    assert hidden + sum(row.new is not None for row in rows) == len((new + "\n").split("\n")) - 1


@given(TEXTS, TEXTS)
@hypothesis_settings(max_examples=100, deadline=None)
def test_the_running_text_holds_both_texts(old: str, new: str) -> None:
    runs = running_text(diff_pieces(old, new))
    assert "".join(run.text for run in runs if run.kind != "came") == old
    assert "".join(run.text for run in runs if run.kind != "gone") == new


def test_replaced_paragraphs_stand_before_what_took_their_place_one_by_one() -> None:
    runs = running_text(diff_pieces("same\nold one\nformer two\nend\n", "same\nfresh uno\nrecent dos\nend\n"))
    shown = [(run.kind, run.text) for run in runs if run.kind in ("gone", "came")]
    assert shown == [
        ("gone", "old one\n"), ("came", "fresh uno\n"), ("gone", "former two\n"), ("came", "recent dos\n")
    ]  # fmt: skip


def test_long_equal_stretches_are_folded_at_words() -> None:
    middle = "word " * 400
    runs = running_text(diff_pieces(f"first\n{middle}\nlast\n", f"FIRST\n{middle}\nLAST\n"))
    folded = [run.text for run in runs if run.kind == "fold"]
    assert len(folded) == 1
    assert folded[0].startswith("word")
    assert folded[0].endswith("word ")


def test_words_that_went_and_came_are_counted() -> None:
    assert count_words(diff_pieces("a b c\n", "a x y c\n")) == (1, 2)


def check(hours: float, outcome: Outcome, version: int | None = None) -> Check:
    available = outcome not in (Outcome.UNAVAILABLE, Outcome.REFUSED)
    return Check("u", "u", START + timedelta(hours=hours), available, 200, outcome, version)


def test_a_strip_shows_each_state_until_the_next_check() -> None:
    checks = [check(0, Outcome.NEW, 0), check(5, Outcome.UNAVAILABLE, 0), check(6, Outcome.CHANGED, 1)]
    found = availability_strip(checks, START + timedelta(hours=10))
    assert found is not None
    assert [(span.state, span.x, span.width) for span in found.spans] == [
        ("up", 0, 500),
        ("down", 500, 100),
        ("up", 600, 400),
    ]
    assert [(tick.number, tick.x) for tick in found.ticks] == [(0, 0), (1, 600)]
    assert found.up_share == pytest.approx(0.9)


def test_a_strip_of_one_check_now_and_of_none() -> None:
    assert availability_strip([], START) is None
    found = availability_strip([check(0, Outcome.REFUSED)], START)
    assert found is not None
    assert (found.spans[0].state, found.up_share) == ("refused", 0.0)


def test_a_strip_of_thousands_of_failures_stays_drawable() -> None:
    checks = [check(at, Outcome.UNAVAILABLE if at % 2 else Outcome.UNCHANGED, 0) for at in range(5000)]
    found = availability_strip(checks, START + timedelta(hours=5000))
    assert found is not None
    assert len(found.spans) <= 800
    assert found.up_share == pytest.approx(0.5, abs=0.01)


def test_the_highest_bar_fills_the_drawing_and_bars_do_not_overlap() -> None:
    made = bars([("a", 1, 1), ("b", 0, 0), ("c", 4, 0)])
    assert (made[2].lower_y, made[2].lower_height) == (0, 100)
    assert (made[0].upper_y, made[0].upper_height, made[0].lower_y) == (50, 25, 75)
    assert all(one.x + one.width < two.x for one, two in itertools.pairwise(made))
    assert bars([]) == []


def test_the_heat_map_has_the_liveliest_pages_first_and_every_day() -> None:
    found = heat_map([ChangeRow("a", 10, 1), ChangeRow("b", 10, 2), ChangeRow("b", 12, 8)], 10, 12)
    assert [row.url for row in found.rows] == ["b", "a"]
    assert [cell.shade for cell in found.rows[0].cells] == [1, 0, 4]
    assert (found.pages, found.changes, found.days) == (2, 11, ["1970-01-11", "1970-01-12", "1970-01-13"])


def test_lists_are_cut_into_parts_whatever_is_asked_for() -> None:
    rows = list(range(101))
    assert [list_page(rows, text).number for text in ("", "2", "3", "99", "-1", "x", "٣", "9" * 30)] == [
        1,
        2,
        3,
        3,
        1,
        1,
        1,
        1,
    ]
    last = list_page(rows, "3")
    assert (list(last.rows), last.earlier, last.later) == ([100], 2, None)
    assert (list_page([], "").pages, list_page([], "").later) == (1, None)


def test_values_are_written_for_people() -> None:
    assert [human_size(n) for n in (0, 999, 1000, 1_500_000, 10**16)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.5 MB",
        "10000.0 TB",
    ]
    assert number(1234567) == "1\u202f234\u202f567"
    assert url_in_path("http://a/b%20c") == "http://a/b%20c"
    assert url_in_path("http://a/b%20c?d=e f") == "http://a/b%2520c%3Fd=e%20f"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://x.org/a?from=x.org", "/a?from=x.org"),
        ("https://x.org/", "/"),
        ("http://www.x.org/a", "www.x.org/a"),
        ("http://other.org/x.org/", "other.org/x.org/"),
    ],
)
def test_a_list_of_a_site_leaves_out_its_own_name_alone(url: str, shown: str) -> None:
    assert local_url(url, "x.org") == shown


def test_messages_become_sentences_and_addresses_stay_as_they_are() -> None:
    assert full_sentence("no page is known") == "No page is known."
    assert full_sentence("http://x.org/ was never seen; try again") == "http://x.org/ was never seen; try again."


def test_the_name_of_the_site_is_left_out_of_titles_that_most_pages_end_with() -> None:
    titles = ["Home | Shop", "Clocks | Shop", "Lamps - Other"]
    names = TitleShortener(titles)
    assert [names.of(title) for title in titles] == ["Home", "Clocks", "Lamps - Other"]
    assert TitleShortener(["A | B", "C | D", "E"]).of(titles[0]) == "Home | Shop"


@pytest.mark.parametrize("title", [" ", " - ", " -  a", "- a", "| "])
def test_the_time_to_shorten_a_title_grows_with_its_length(title: str) -> None:
    def shortened(text: str) -> tuple[str, str]:
        return TitleShortener([f"{text}|", text]).of(text), shared_ending([f"{text}|", text])

    assert not grows_with_the_square(shortened, lambda n: title * n)


def test_maps_leave_out_what_most_titles_end_with() -> None:
    assert shared_ending(["Home | Shop", "Clocks | Shop", "Lamps"]) == " | Shop"
    assert shared_ending(["A - B-C", "D - B-C"]) == " - B-C"
    assert shared_ending(["A | B - C", "D | B - C"]) == " | B - C"
    assert shared_ending(["A-B", "C|D"]) == ""


def test_secrets_are_never_shown_and_places_only_to_owners() -> None:
    database = DatabaseSettings(url="postgresql://letopis:hush@db.local/web")
    fetch = FetchSettings(headers=("Authorization: hush",))
    given = Settings(database=database, fetch=fetch, serve=ServeSettings(port=9))
    for owner in (True, False):
        rows = {row.name: row for row in shown_settings(given, owner=owner, edited={})}
        assert "hush" not in str(rows)
        assert rows["fetch.headers"].value == "set"
        assert (rows["database.url"].value == "postgresql://letopis:…@db.local/web") is owner
        assert (rows["serve.port"].value, rows["serve.port"].changed) == ("9", True)
        assert rows["store.same"].changed is False


def test_a_year_of_captures_is_a_sheet_of_its_months() -> None:
    days = [
        ("2026-02-01", [CalendarCapture("10:00:00", "/a", 503)]),
        ("2026-03-31", [CalendarCapture("10:00:00", "/b", 200)] * 9 + [CalendarCapture("11:00:00", "/c", 200, True)]),
    ]
    february, march = calendar_months(days)
    assert (february.name, february.lead, len(february.squares), len(march.squares)) == ("2026-02", 6, 28, 31)
    assert february.squares[0] == (1, "2026-02-01", 1, "error", "/a")
    assert march.squares[30][2:] == (10, "version", "/c")
    assert (march.squares[0].kind, march.squares[0].address) == ("same", "")


@pytest.mark.parametrize(
    ("url", "section"),
    [
        ("http://a.example/", "/"),
        ("http://a.example", "/"),
        ("http://a.example/news", "/"),
        ("http://a.example/news/", "/news/"),
        ("http://a.example/news/2026/one.html?x=/y/", "/news/"),
        ("http://a.example//odd/x", "/odd/"),
    ],
)
def test_a_section_is_the_first_folder_of_an_address(url: str, section: str) -> None:
    assert section_of(url) == section


def test_changes_are_counted_by_section_and_hour_the_liveliest_first() -> None:
    rows = [HourRow("http://a.example/news/1", 9, 2), HourRow("http://a.example/news/2", 9, 3)]
    rows += [HourRow("http://a.example/", 23, 1), HourRow("http://a.example/news/1", 0, 1)]
    found = changes_by_hour(rows)
    assert [(row.name, row.total) for row in found.rows] == [("/news/", 6), ("/", 1)]
    assert (found.rows[0].hours[9], found.rows[0].hours[0], found.rows[1].hours[23]) == (5, 1, 1)
    assert (found.sections, found.changes, len(found.rows[0].hours)) == (2, 7, 24)
    many = changes_by_hour([HourRow(f"http://a.example/{number}/x", 1, 1) for number in range(40)])
    assert (len(many.rows), many.sections, many.changes) == (16, 40, 40)


@st.composite
def sketches(draw: st.DrawFn) -> SiteDiagram:
    count = draw(st.integers(0, 60))
    urls = [f"http://a.example/s{draw(st.integers(0, 9))}/{number}" for number in range(count)]
    place = st.integers(0, max(count - 1, 0))
    links = draw(st.sets(st.tuples(place, place).filter(lambda pair: pair[0] != pair[1]), max_size=80 if count else 0))
    return SiteDiagram(urls, [3.0 / (number + 1) for number in range(count)], sorted(links) if count > 1 else [], count)


@given(sketches())
@hypothesis_settings(max_examples=15, deadline=None)
def test_a_drawing_keeps_on_its_sheet_with_room_between_circles_and_labels(found: SiteDiagram) -> None:
    drawn = draw_links(found, lambda url: f"A page called {url[-6:]}")
    assert [dot.url for dot in drawn.dots] == found.urls
    for at, dot in enumerate(drawn.dots):
        assert dot.radius <= dot.x <= WIDTH - dot.radius
        assert dot.radius <= dot.y <= HEIGHT - dot.radius
        assert 1 <= dot.colour <= COLOURS
        for other in drawn.dots[:at]:
            assert (dot.x - other.x) ** 2 + (dot.y - other.y) ** 2 >= 34**2
    assert len(drawn.lines) == len({frozenset(link) for link in found.links})
    assert sum(1 + line.both for line in drawn.lines) == len(found.links)
    assert sum(dot.links_in for dot in drawn.dots) == sum(dot.links_out for dot in drawn.dots) == len(found.links)
    assert draw_links(found, lambda url: f"A page called {url[-6:]}") == drawn


def test_sections_without_a_colour_of_their_own_share_the_last() -> None:
    few = draw_links(SiteDiagram([f"http://a.example/{n}/x" for n in range(6)], [1.0] * 6, [], 6), str)
    assert few.keys == [(n + 1, f"/{n}/") for n in range(6)]
    many = draw_links(SiteDiagram([f"http://a.example/{n}/x" for n in range(9)], [1.0] * 9, [], 9), str)
    assert many.keys[-2:] == [(5, "/4/"), (6, "")]
    assert [dot.colour for dot in many.dots] == [1, 2, 3, 4, 5, 6, 6, 6, 6]


def test_no_page_hides_a_name_that_every_template_shares() -> None:
    shared, folder = environment.globals, Path(pages.__file__).parent
    calls = [node for file in sorted(folder.glob("*.py")) for node in ast.walk(ast.parse(file.read_text("utf-8")))
             if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "render_page"]  # fmt: skip
    assert len(calls) > 20
    assert [(call.lineno, word.arg) for call in calls for word in call.keywords if word.arg in shared] == []
