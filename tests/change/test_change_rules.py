"""Single rules by which noise is told from news."""

from __future__ import annotations

from itertools import pairwise

import pytest

from letopis.change import PageHabits, compare, fingerprint
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
    old, new = made(*BODY, (ITEM, "Alpha"), (ITEM, "Gamma inc")), made(*BODY, (ITEM, "Alpha"), (ITEM, "Delta co"))
    before = made(*BODY, (ITEM, "Alpha"), (ITEM, "Beta firm"))
    habits = PageHabits()
    habits.unchanged(20)
    habits.observe(fingerprint(before), fingerprint(old))
    assert changed(new, old, habits)
    assert not changed(new, old)
