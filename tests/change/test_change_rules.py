"""Single rules by which noise is told from news."""

from __future__ import annotations

import textwrap
from itertools import pairwise

import pytest

from letopis.change.fingerprints import fingerprint
from letopis.change.profiles import PageHabits
from letopis.change.verdict import compare
from letopis.extract import read_page
from letopis.model import Block, BlockKind, Page

BODY = [f"Paragraph number {n} tells at some length about the town and its people." for n in "abcdef"]
P, ITEM, CELL, ALT = BlockKind.PARAGRAPH, BlockKind.ITEM, BlockKind.CELL, BlockKind.ALT


def made(*blocks: tuple[BlockKind, str] | str, frame: tuple[int, ...] = ()) -> Page:
    given = [Block(P, block) if isinstance(block, str) else Block(*block) for block in blocks]
    return Page("http://example.test/", "text/html", blocks=tuple(given), frame=frozenset(frame))


def changed(new: Page, old: Page, habits: PageHabits | None = None) -> bool:
    return bool(compare(new, [old], habits=habits or PageHabits()).meaningful)


def test_text_cut_into_other_blocks_is_the_same_text() -> None:
    long = "One sentence about the mill. Another one about the river that drives it."
    assert not changed(made(*BODY, "One sentence about the mill.", long[29:]), made(*BODY, long))
    assert not changed(made(long[29:], *BODY, long[:28]), made(*BODY, long))
    assert changed(made(*BODY, "One sentence about the mill.", long[29:] + " And a bridge over it."), made(*BODY, long))


def test_figures_that_change_places_between_cells_are_a_change() -> None:
    old, new = made(*BODY, (CELL, "1"), (CELL, "23")), made(*BODY, (CELL, "12"), (CELL, "3"))
    assert changed(new, old)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("Petrol", "35.90", "Diesel", "33.50"), ("Petrol", "33.50", "Diesel", "35.90")),
        (("Novák", "yes", "Malý", "no"), ("Novák", "no", "Malý", "yes")),
        (("1.", "Rovers", "2.", "United"), ("1.", "United", "2.", "Rovers")),
        (("10:15", "Praha"), ("10:45", "Praha")),
    ],
)
def test_what_a_table_tells_of_the_cell_beside_it_is_a_change(old: tuple[str, ...], new: tuple[str, ...]) -> None:
    before, after = (made(*BODY, *((CELL, text) for text in texts)) for texts in (old, new))
    assert changed(after, before)


def test_rows_of_a_table_that_change_places_as_they_are_say_the_same() -> None:
    rows = [
        [(CELL, name), (CELL, price)] for name, price in (("Petrol", "35.90"), ("Diesel", "33.50"), ("Gas", "18.20"))
    ]
    assert not changed(made(*BODY, *rows[2], *rows[0], *rows[1]), made(*BODY, *rows[0], *rows[1], *rows[2]))


def test_a_result_turned_round_is_a_change() -> None:
    assert changed(made(*BODY, "Rovers against United ended 1:2"), made(*BODY, "Rovers against United ended 2:1"))


def test_a_sentence_repeated_in_a_row_is_a_banner() -> None:
    banner = ["Breaking news", *["The king of the mountain has resigned today"] * 6]
    assert not changed(made(*BODY, *banner), made(*BODY))
    assert changed(made(*BODY, banner[1]), made(*BODY))


@pytest.mark.parametrize("fact", [("v4.3.4", "v4.4.1"), ("press@example.org", "office@example.org")])
def test_versions_and_addresses_count_in_the_frame_too(fact: tuple[str, str]) -> None:
    old, new = made(*BODY, (ITEM, fact[0]), frame=(6,)), made(*BODY, (ITEM, fact[1]), frame=(6,))
    assert changed(new, old)
    assert not changed(made(*BODY, (ITEM, "Shop"), frame=(6,)), made(*BODY, (ITEM, "Magazine"), frame=(6,)))


def test_a_large_frame_around_nothing_stays_frame() -> None:
    menu = [
        (ITEM, f"Entry {letter * times} of the menu") for letter in "abcdefghijklmnopqrstuvwxyz" for times in (1, 2, 3)
    ]
    frame = tuple(range(len(menu)))
    assert not changed(made(*menu[1:], frame=frame[:-1]), made(*menu, frame=frame))
    assert changed(made(*menu[1:8], frame=frame[:7]), made(*menu[:8], frame=frame[:8]))


def test_a_line_of_copyright_says_nothing() -> None:
    old = made(*BODY, "Copyright 2025, The Foundation. Its feather logo is a trademark.")
    assert not changed(made(*BODY, "Copyright 2026, The Foundation. Its logo is a trademark."), old)
    assert changed(made(*BODY, "The copyright of 2026 was given to the Foundation."), old)


def test_a_cell_that_takes_a_state_of_other_cells_is_a_change() -> None:
    rows = [(CELL, text) for n in range(40) for text in (f"host-{n}", "down" if n in (3, 9) else "verified")]
    back = [(CELL, "verified") if at == 7 else row for at, row in enumerate(rows)]
    assert changed(made(*back), made(*rows))


def test_a_picture_that_says_what_others_say_is_a_mark() -> None:
    offers = [block for n in "abcd" for block in (f"Offer {n} at a price", (ALT, "Sold out"))]
    assert changed(made(*offers), made(*offers[:1], *offers[2:]))
    assert not changed(made(*offers, (ALT, "Oak leaf logo")), made(*offers))


def test_clocks_do_not_make_a_place_restless() -> None:
    """A line with a clock in it changes at every visit; that must not hide what else it says."""
    states = [made(*BODY, f"141 hosts verified @ 2026-03-0{n} 12:3{n}:44", "Imprint") for n in range(1, 9)]
    habits = PageHabits()
    for old, new in pairwise(states):
        habits.observe(fingerprint(old), fingerprint(new))
    assert not changed(made(*BODY, "141 hosts verified @ 2026-03-09 12:39:44", "Imprint"), states[-1], habits)
    assert changed(made(*BODY, "139 hosts verified @ 2026-03-09 12:39:44", "Imprint"), states[-1], habits)


def test_an_entry_replaced_where_hardly_anything_changes_is_a_change() -> None:
    """Even an entry that came at the visit before: among many quiet visits nothing there is passing."""
    before, old, new = (made(*BODY, (ITEM, "Alpha"), (ITEM, mark)) for mark in ("g7d2", "a1c7", "k5x9"))
    habits = PageHabits()
    habits.unchanged(20)
    habits.observe(fingerprint(before), fingerprint(old))
    assert changed(new, old, habits)
    assert not changed(new, old)


H2, TITLE = BlockKind.H2, BlockKind.TITLE
NOTICE = (
    "Here you find contents of third parties",
    "To show third-party contents we need your consent.",
    "Activate external content",
)


def test_a_heading_with_another_label_is_the_same_heading() -> None:
    old = made((ITEM, "B. Sources"), *BODY, (H2, "B. Sources"))
    assert not changed(made((ITEM, "Appendix B. Sources"), *BODY, (H2, "Appendix B. Sources")), old)
    assert not changed(made((ITEM, "7.1) Sources"), *BODY, (H2, "7.1) Sources")), old)
    assert changed(made((ITEM, "B. Sources and their owners"), *BODY, (H2, "B. Sources and their owners")), old)


def test_places_in_a_table_of_results_are_no_labels() -> None:
    old = [(ITEM, f"{place}. Team of the {town} town") for place, town in enumerate(("old", "new", "far"), 1)]
    new = [(ITEM, f"{place}. Team of the {town} town") for place, town in enumerate(("far", "old", "new"), 1)]
    assert changed(made(*BODY, *new), made(*BODY, *old))


def test_a_title_that_adds_what_the_page_says_is_the_same_title() -> None:
    said = [*BODY, "This is memo 6585 of the working group on mills and rivers."]
    old = made((TITLE, "Water mills by the rivers"), *said)
    assert not changed(made((TITLE, "Memo 6585 - Water mills by the rivers"), *said), old)
    assert changed(made((TITLE, "Sold out until next summer - Water mills by the rivers"), *said), old)


@pytest.mark.parametrize("filler", ["A bc def g hij klm", "uvw xyz. A bc def", "Lorem ipsum dolor sit amet."])
def test_filler_says_nothing(filler: str) -> None:
    assert not changed(made(*BODY, filler, filler), made(*BODY))
    assert changed(made(*BODY, "Now the mill is open", "and the river too"), made(*BODY))


def test_a_notice_that_asks_to_agree_is_not_what_a_page_says() -> None:
    assert not changed(made(*BODY, *NOTICE), made(*BODY))
    assert not changed(made(*BODY), made(*NOTICE, *BODY))
    assert changed(made(*BODY, *NOTICE, "The mill burnt down on Monday night, nobody was hurt."), made(*BODY))


def test_on_a_page_about_agreeing_such_a_notice_is_text() -> None:
    terms = [*BODY, "Cookies of third parties are kept for a year on this site."]
    assert changed(made(*terms, *NOTICE), made(*terms))


def test_what_stands_behind_the_label_of_adverts_is_none_of_the_page() -> None:
    old = made(*BODY, "Advertisement", "A journey to the sea in spring")
    new = made(
        *BODY, "Advertisement", "Cheap cars of the year, and a journey to the sea in spring", (ITEM, "Cheap cars")
    )
    assert not changed(new, old)
    assert changed(made(*BODY, "Advertisement", "A journey to the sea", "Nobody may enter the mill any more."), old)


def test_contents_that_name_headings_of_both_states_say_nothing_new() -> None:
    headings = [(H2, f"{n}. Chapter of the {word}") for n, word in enumerate(("mill", "river", "bridge"), 1)]
    contents = [(ITEM, text) for _, text in headings]
    assert not changed(made(*contents, *headings, *BODY), made(*headings, *BODY))
    assert changed(made(*contents, (ITEM, "4. Chapter of the flood"), *headings, *BODY), made(*headings, *BODY))


def text_file(*lines: str) -> Page:
    return read_page("\n".join(lines).encode(), "http://a.test/log.txt", (("Content-Type", "text/plain"),))


def test_a_new_line_of_a_log_is_that_line_and_not_the_whole_file() -> None:
    log = [f"2026-01-{n % 28 + 1:02} 10:00:00 app[{n}]: request {7919 * n} answered" for n in range(300)]
    change = compare(text_file(*log, "2026-02-01 10:00:00 app[9]: disk is full"), [text_file(*log)])
    assert (change.meaningful, change.reason) == (True, "text: 1 added")
    assert [block.text for block in change.blocks] == ["2026-02-01 10:00:00 app[9]: disk is full"]
    assert change.score < 0.2


def test_one_more_of_a_line_that_repeats_is_news_in_a_text_file() -> None:
    line = "worker failed and is started again"
    assert compare(text_file("Log", *[line] * 9), [text_file("Log", *[line] * 8)]).meaningful


def test_prose_that_was_broken_at_another_width_says_the_same() -> None:
    prose = "The council met on Monday and spoke of the bridge, of the school and of all that the town needs. " * 6
    narrow, wide = (text_file(*textwrap.wrap(prose, width)) for width in (50, 76))
    assert compare(wide, [narrow]).meaningful is False
