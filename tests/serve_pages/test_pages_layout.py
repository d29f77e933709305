"""The pure parts behind the pages: differences laid out, strips, bars, heat, lists in parts."""

from __future__ import annotations

import itertools
import threading
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from letopis.catalog.activity import ChangeRow
from letopis.change import pieces
from letopis.config import DatabaseSettings, FetchSettings, ServeSettings, Settings
from letopis.graph import MapPage
from letopis.model import Check, Outcome
from letopis.serve.pages.bars import bars
from letopis.serve.pages.differing import Row, counted, running, side_by_side
from letopis.serve.pages.heat import heat
from letopis.serve.pages.paging import part
from letopis.serve.pages.remembered import Remembered
from letopis.serve.pages.rendering import inside, number, size
from letopis.serve.pages.settings import shown
from letopis.serve.pages.strip import strip
from letopis.serve.pages.times import end_of
from letopis.serve.pages.tree import Names

START = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = st.lists(st.sampled_from(["one two", "three", "", "four five six", "eins zwei"]), max_size=12).map("\n".join)


def text_of(rows: list[Row], side: int) -> list[str]:
    lines = [row[side] for row in rows if not row.hidden and row[side] is not None]
    return ["".join(run.text for run in line.runs) for line in lines]  # type: ignore[union-attr]


@given(TEXTS, TEXTS)
@hypothesis_settings(max_examples=150, deadline=None)
def test_both_columns_hold_their_own_text_in_order(old: str, new: str) -> None:
    rows = side_by_side(pieces(old + "\n", new + "\n"))
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
    runs = running(pieces(old, new))
    assert "".join(run.text for run in runs if run.kind != "came") == old
    assert "".join(run.text for run in runs if run.kind != "gone") == new


def test_long_equal_stretches_are_folded_at_words() -> None:
    middle = "word " * 400
    runs = running(pieces(f"first\n{middle}\nlast\n", f"FIRST\n{middle}\nLAST\n"))
    folded = [run.text for run in runs if run.kind == "fold"]
    assert len(folded) == 1
    assert folded[0].startswith("word")
    assert folded[0].endswith("word ")


def test_words_that_went_and_came_are_counted() -> None:
    assert counted(pieces("a b c\n", "a x y c\n")) == (1, 2)


def check(hours: float, outcome: Outcome, version: int | None = None) -> Check:
    available = outcome not in (Outcome.UNAVAILABLE, Outcome.REFUSED)
    return Check("u", "u", START + timedelta(hours=hours), available, 200, outcome, version)


def test_a_strip_shows_each_state_until_the_next_check() -> None:
    checks = [check(0, Outcome.NEW, 0), check(5, Outcome.UNAVAILABLE, 0), check(6, Outcome.CHANGED, 1)]
    found = strip(checks, START + timedelta(hours=10))
    assert found is not None
    assert [(span.state, span.x, span.width) for span in found.spans] == [
        ("up", 0, 500),
        ("down", 500, 100),
        ("up", 600, 400),
    ]
    assert [(tick.number, tick.x) for tick in found.ticks] == [(0, 0), (1, 600)]
    assert found.up_share == pytest.approx(0.9)


def test_a_strip_of_one_check_now_and_of_none() -> None:
    assert strip([], START) is None
    found = strip([check(0, Outcome.REFUSED)], START)
    assert found is not None
    assert (found.spans[0].state, found.up_share) == ("refused", 0.0)


def test_a_strip_of_thousands_of_failures_stays_drawable() -> None:
    checks = [check(at, Outcome.UNAVAILABLE if at % 2 else Outcome.UNCHANGED, 0) for at in range(5000)]
    found = strip(checks, START + timedelta(hours=5000))
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
    found = heat([ChangeRow("a", 10, 1), ChangeRow("b", 10, 2), ChangeRow("b", 12, 8)], 10, 12)
    assert [row.url for row in found.rows] == ["b", "a"]
    assert [cell.shade for cell in found.rows[0].cells] == [1, 0, 4]
    assert (found.pages, found.changes, found.days) == (2, 11, ["1970-01-11", "1970-01-12", "1970-01-13"])


def test_lists_are_cut_into_parts_whatever_is_asked_for() -> None:
    rows = list(range(101))
    assert [part(rows, text).number for text in ("", "2", "3", "99", "-1", "x", "٣", "9" * 30)] == [
        1,
        2,
        3,
        3,
        1,
        1,
        1,
        1,
    ]
    last = part(rows, "3")
    assert (list(last.rows), last.earlier, last.later) == ([100], 2, None)
    assert (part([], "").pages, part([], "").later) == (1, None)


def test_remembered_values_are_made_once_and_again_when_old() -> None:
    now, made = [0.0], []

    def make() -> int:
        made.append(1)
        return len(made)

    known = Remembered(lambda: now[0])
    assert [known.get("a", 5, make) for _ in range(3)] == [1, 1, 1]
    now[0] = 5.0
    assert known.get("a", 5, make) == 2
    threads = [threading.Thread(target=known.get, args=("b", 5, make)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 3


def test_values_are_written_for_people() -> None:
    assert [size(n) for n in (0, 999, 1000, 1_500_000, 10**16)] == ["0 B", "999 B", "1.0 kB", "1.5 MB", "10000.0 TB"]
    assert number(1234567) == "1\u202f234\u202f567"
    assert inside("http://a/b%20c") == "http://a/b%20c"
    assert inside("http://a/b%20c?d=e f") == "http://a/b%2520c%3Fd=e%20f"


def test_a_bare_date_means_all_of_that_day() -> None:
    assert end_of("2026-01-02", START) == datetime(2026, 1, 2, 23, 59, 59, 999000, tzinfo=UTC)
    assert end_of("2026-01-02T10:00:00Z", START).hour == 10


def test_the_name_of_the_site_is_left_out_of_titles_that_most_pages_end_with() -> None:
    titles = ["Home | Shop", "Clocks | Shop", "Lamps - Other"]
    names = Names(titles)
    pages = [MapPage("u", title, 200, "en", 1, "text/html", 0, None) for title in titles]
    assert [names.of(page) for page in pages] == ["Home", "Clocks", "Lamps - Other"]
    assert Names(["A | B", "C | D", "E"]).of(pages[0]) == "Home | Shop"


def test_secrets_are_never_shown_and_places_only_to_owners() -> None:
    database = DatabaseSettings(url="postgresql://letopis:hush@db.local/web")
    fetch = FetchSettings(headers=("Authorization: hush",))
    given = Settings(database=database, fetch=fetch, serve=ServeSettings(port=9))
    for owner in (True, False):
        rows = {row.name: row for row in shown(given, owner=owner)}
        assert "hush" not in str(rows)
        assert rows["fetch.headers"].value == "set"
        assert (rows["database.url"].value == "postgresql://letopis:…@db.local/web") is owner
        assert (rows["serve.port"].value, rows["serve.port"].changed) == ("9", True)
        assert rows["store.same"].changed is False
