"""A value in another cell of its row, beside empty ones: nothing but its column says what it is."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from letopis.change.filters import ContentFilter, filter_page
from letopis.change.verdict import compare
from letopis.extract import read_page
from letopis.model import Change, Page
from letopis.model.page import FilterKind

Rows = Sequence[Sequence[str]]
PRICES: Rows = (("", "Mon", "Tue", "Wed"), ("Bread", "5", "", "7"), ("Milk", "", "8", ""), ("Free", "", "yes", "no"))
STANDING = "<p>Standing text tells of the town and of its people, and stays.</p>" * 3


def html(rows: Rows, after: str = STANDING, cell: str = "<td>{}</td>") -> Page:
    table = "".join(f"<tr>{''.join(map(cell.format, row))}</tr>" for row in rows)
    body = f"<html><body><h1>Prices</h1><table>{table}</table>{after}</body></html>"
    return read_page(body.encode(), "http://shop.test/", (("Content-Type", "text/html"),))


def sheet(rows: Rows, separator: str = "\t", kind: str = "text/tab-separated-values") -> Page:
    text = "\n".join(separator.join(row) for row in rows)
    return read_page(text.encode(), "http://shop.test/prices", (("Content-Type", kind),))


def with_row(at: int, *cells: str, rows: Rows = PRICES) -> Rows:
    return (*rows[:at], cells, *rows[at + 1 :])


def judged(old: Page, new: Page) -> Change:
    return compare(new, [old])


MOVES = [
    with_row(1, "Bread", "", "5", "7"),
    with_row(2, "Milk", "8", "", ""),
    with_row(2, "Milk", "", "", "8"),
    with_row(3, "Free", "yes", "", "no"),
    with_row(0, "Mon", "", "Tue", "Wed"),
]


@pytest.mark.parametrize("rows", MOVES)
@pytest.mark.parametrize("read", [html, sheet])
def test_a_value_that_moves_beside_an_empty_cell_is_told(rows: Rows, read: Callable[[Rows], Page]) -> None:
    old, new = read(PRICES), read(rows)
    for change in (judged(old, new), judged(new, old)):
        assert (change.same_text, change.meaningful) == (False, True)
        assert {block.action for block in change.blocks} == {"added", "removed"}


@pytest.mark.parametrize(
    "cell", ["<td>{}</td>", "<td>&nbsp;{}</td>", "<th>{} </th>", "<td><p>{}</p></td>", "<td><b>{}</b>"]
)
def test_cells_are_empty_however_they_are_written(cell: str) -> None:
    for rows in MOVES:
        assert judged(html(PRICES, cell=cell), html(rows, cell=cell)).meaningful


@pytest.mark.parametrize("after", ["", "tail", STANDING, "<table><tr><td>1<td>2</table>"])
def test_the_last_cell_of_a_table_may_be_the_empty_one(after: str) -> None:
    change = judged(html([("Bread", "5", "")], after), html([("Bread", "", "5")], after))
    assert [(block.action, block.text) for block in change.blocks] == [("removed", "| 5"), ("added", "| | 5")]


def test_a_price_list_separated_by_commas_is_told_too() -> None:
    old, *others = (sheet(rows, ",", "text/csv") for rows in (PRICES, *MOVES))
    assert all(judged(old, new).meaningful for new in others)


def test_a_moved_value_is_told_where_a_watch_looks_at_a_part_of_the_page() -> None:
    filters = [ContentFilter(FilterKind.EXCLUDE, pattern) for pattern in ("^Prices$", "^Bread$", "Standing.*")]
    for rows in MOVES:
        assert judged(filter_page(html(PRICES), filters), filter_page(html(rows), filters)).meaningful


def test_another_column_of_nothing_moves_no_value() -> None:
    for place in range(5):
        rows = [(*row[:place], "", *row[place:]) for row in PRICES]
        assert judged(html(PRICES), html(rows)).same_text
    assert judged(sheet(PRICES[1:]), sheet([("", *row) for row in PRICES[1:]])).same_text


def test_another_order_of_markup_around_the_same_cells_moves_nothing() -> None:
    assert judged(html(PRICES), html(PRICES, cell="<td class='x'><span>{}</span></td>")).same_text
    assert judged(html(PRICES), html(PRICES, after=f"<div>{STANDING}</div>")).same_text


def month(first: int, days: int = 30) -> Rows:
    cells = [*[""] * first, *map(str, range(1, days + 1)), *[""] * 14]
    return [cells[at : at + 7] for at in range(0, 42, 7)]


def test_the_days_of_a_calendar_begin_elsewhere_every_month() -> None:
    for first in range(7):
        assert judged(html(month(0)), html(month(first))).same_text


def test_moves_are_found_in_any_table_and_only_these() -> None:
    chance = random.Random(4)
    for _ in range(60):
        rows = [[f"label{n}", *chance.choices(["", f"v{n}", f"w{n}x"], k=4)] for n in range(5)]
        moved = [list(row) for row in rows]
        row = chance.choice(moved)
        row[1:] = chance.sample(row[1:], 4)
        said, says = ([cell for one in table for cell in one if cell] for table in (rows, moved))
        if said == says:
            assert judged(html(rows), html(moved)).same_text == (rows == moved)
