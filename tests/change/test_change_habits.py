"""What a place that always changes may hide, and what it may not: a sentence that was never there is news."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import cycle, islice, pairwise

import pytest

from letopis.change.fingerprints import digits_folded, fingerprint
from letopis.change.noise import MuteRules
from letopis.change.profiles import PageHabits
from letopis.change.verdict import compare
from letopis.model import Block, BlockKind, Change, Page

MakePage = Callable[..., Page]

HEADLINES = [
    "Flood closes the old bridge", "Council buys new buses", "School opens after the fire",
    "Prices of bread rise again", "River is clean, says study", "Mayor leaves his office", "Train strike ends tonight",
    "Hospital gets a new wing", "Team wins the cup final", "Storm warning for the coast", "Library to open on Sundays",
]  # fmt: skip
STANDING = [f"Standing text number {n} tells of the town and of its people, and stays." for n in range(60)]


def front(top: str, standing: int = 20, kind: BlockKind = BlockKind.H2) -> Page:
    blocks = [Block(BlockKind.H1, "Town news"), Block(kind, top)]
    blocks += [Block(BlockKind.PARAGRAPH, text) for text in STANDING[:standing]]
    return Page("http://town.test/", "text/html", blocks=tuple(blocks))


def judged(pages: Iterable[Page], rules: MuteRules | None = None) -> list[Change]:
    """Every page against the one before, as visits judge them."""
    habits, found, before = PageHabits(), list[Change](), None
    for page in pages:
        now = fingerprint(page)
        if before is not None:
            found.append(compare(now, [before], habits=habits, rules=rules or MuteRules()))
            habits.observe(before, now)
        before = now
    return found


@pytest.mark.parametrize("kind", [BlockKind.H2, BlockKind.PARAGRAPH, BlockKind.ITEM, BlockKind.LINK])
@pytest.mark.parametrize("standing", [2, 20, 60])
def test_a_headline_that_is_new_at_every_look_is_news_at_every_look(standing: int, kind: BlockKind) -> None:
    changes = judged(front(text, standing, kind) for text in HEADLINES)
    assert [change.meaningful for change in changes] == [True] * (len(HEADLINES) - 1)
    assert not any(change.muted for change in changes)


def test_known_items_that_take_turns_are_muted_and_named() -> None:
    changes = judged(front(text) for text in islice(cycle(HEADLINES[:3]), 12))
    assert [change.meaningful for change in changes[-4:]] == [False] * 4
    assert {(one.why, one.text) for one in changes[-1].muted} <= {
        (why, text) for why in ("known item", "comes and goes") for text in HEADLINES[:3]
    }
    assert "frequent changes" in changes[-1].reason


def test_a_counter_below_a_heading_like_the_title_is_muted_though_news_stands_beside_it() -> None:
    head = (Block(BlockKind.TITLE, "Town news"), Block(BlockKind.H1, "Town news"))
    pages = [
        Page("http://town.test/", "text/html", blocks=(*head, Block(BlockKind.PARAGRAPH, f"Visitors so far: {n}"),
             *front(HEADLINES[n // 2]).blocks[1:]))
        for n in range(20)
    ]  # fmt: skip
    told = [change.meaningful for change in judged(pages)]
    assert told[1::2] == [True] * 9
    assert told[8::2] == [False] * 6


def test_news_where_known_items_take_turns_is_news() -> None:
    pages = [front(text) for text in islice(cycle(HEADLINES[:3]), 12)]
    assert judged([*pages, front("Dam breaks above the town")])[-1].meaningful


def rotating(items: list[str], shown: int, visits: int) -> list[Page]:
    """A list that shows some of its items and moves on by one at every visit."""
    return [listed(*((items[(at + n) % len(items)]) for n in range(shown))) for at in range(visits)]


def listed(*items: str) -> Page:
    page = front("Today", kind=BlockKind.H2)
    return page._replace(blocks=(*page.blocks[:2], *(Block(BlockKind.ITEM, text) for text in items), *page.blocks[2:]))


@pytest.mark.parametrize("shown", [1, 4, 10])
def test_a_list_that_moves_on_by_one_known_item_says_nothing_once_all_were_seen(shown: int) -> None:
    pages = rotating(HEADLINES, shown, 3 * len(HEADLINES))
    changes = judged(pages)
    assert [change.meaningful for change in changes[14:]] == [False] * len(changes[14:])
    assert {one.why for one in changes[-1].muted} <= {"known item", "comes and goes"}
    assert all(change.meaningful for change in changes[: len(HEADLINES) - shown]), "until then each item is new"


@pytest.mark.parametrize(
    "last",
    [
        ("Dam breaks above the town", *HEADLINES[:3]),
        (*HEADLINES[:3], "Dam breaks above the town"),
        HEADLINES[:3],
        (*HEADLINES[:4], HEADLINES[7]),
    ],
)
def test_what_a_list_of_known_items_never_said_and_another_length_of_it_are_news(last: tuple[str, ...]) -> None:
    assert judged([*rotating(HEADLINES, 4, 33), listed(*last)])[-1].meaningful


@pytest.mark.parametrize(
    ("before", "after"), [("Bread costs 19.90 EUR", "Bread costs 17.50 EUR"), ("Pool is open", "Pool is closed")]
)
def test_a_price_or_a_state_in_a_list_of_known_items_is_news(before: str, after: str) -> None:
    items = [*HEADLINES[:9], before, after]
    pages = rotating(items, 4, 33)
    assert judged([*pages, listed(before, *HEADLINES[:3]), listed(after, *HEADLINES[:3])])[-1].meaningful


def test_items_that_come_back_to_a_list_that_seldom_changes_are_news() -> None:
    pages = [page for page in rotating(HEADLINES[:6], 4, 18) for _ in range(5)]
    assert [change.meaningful for change in judged(pages)[4::5]] == [True] * 17


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Visitors so far: {}", "counter"),
        ("Your session is k{}q9zt4", "identifier"),
        ("In the town hall on {} March 2026 the council meets in public", "date"),
    ],
)
def test_counters_identifiers_and_dates_are_muted_after_some_visits(text: str, why: str) -> None:
    changes = judged(front(text.format(n), kind=BlockKind.PARAGRAPH) for n in range(11, 23))
    assert not changes[-1].meaningful
    assert {one.why for one in changes[-1].muted} in ({why}, {"counter"})


@pytest.mark.parametrize("text", ["Gold: {}.50 €", "Rate of today {} %", "Now USD {}"])
def test_a_price_is_news_however_often_it_changes(text: str) -> None:
    changes = judged(front(text.format(100 + 7 * n % 13), kind=BlockKind.PARAGRAPH) for n in range(12))
    assert all(change.meaningful for change in changes)


def test_a_state_that_returns_after_it_had_settled_is_news_each_time() -> None:
    states = [text for _ in range(5) for text in ["In stock"] * 6 + ["Sold out today"] * 6]
    pages = [front(text, kind=BlockKind.PARAGRAPH) for text in states]
    changes = judged(pages)
    turned = [change for (a, b), change in zip(pairwise(states), changes, strict=True) if a != b]
    assert all(change.meaningful for change in turned)


@pytest.mark.parametrize("stays", [1, 2, 5])
def test_a_sentence_that_takes_back_the_one_before_is_news(stays: int) -> None:
    first, then = "The contract holds until the end of the year", "The council gave notice to the builders"
    states = [text for text in (first, then, first) for _ in range(stays)]
    changes = judged(front(text, kind=BlockKind.PARAGRAPH) for text in states)
    turned = [change.meaningful for (a, b), change in zip(pairwise(states), changes, strict=True) if a != b]
    assert turned == [True, True]


@pytest.mark.parametrize(
    ("one", "other"),
    [("Stav silnice: sjízdná", "Stav silnice: nesjízdná"), ("Stav serveru: v provozu", "Stav serveru: mimo provoz"),
     ("Аэропорт открыт", "Аэропорт закрыт"), ("The pass is passable", "The pass is impassable")],
)  # fmt: skip
def test_a_state_and_its_denial_are_news_though_they_take_turns(one: str, other: str) -> None:
    changes = judged(front(text, kind=BlockKind.PARAGRAPH) for text in islice(cycle((one, other)), 12))
    assert all(change.meaningful for change in changes)


@pytest.mark.parametrize(
    ("old", "new"),
    [("Downloads: 17", "Downloads: 18"), ("Updated 14:05", "Updated 14:06"), ("Temperature 5 °C", "Temperature 6 °C")],
)
def test_what_somebody_wants_to_hear_counts_though_it_ticks(old: str, new: str) -> None:
    before, after = (front(text, kind=BlockKind.PARAGRAPH) for text in (old, new))
    assert not compare(after, [before]).meaningful
    assert compare(after, [before], rules=MuteRules(never=frozenset({digits_folded(old)}))).meaningful


def test_words_in_another_order_are_an_edit(page: MakePage) -> None:
    old = page(*STANDING[:5], "Members pay first and guests pay when they leave the house")
    new = page(*STANDING[:5], "Guests pay first and members pay when they leave the house")
    assert compare(new, [old]).meaningful


def test_sentences_in_the_head_of_a_page_count(page: MakePage) -> None:
    old = page("This is the main blog. The core team writes here.", *STANDING[:5], frame=(0,))
    new = page("This is the main blog. All teams of the project write here.", *STANDING[:5], frame=(0,))
    assert compare(new, [old]).meaningful


def test_a_list_of_contents_that_repeats_another_says_nothing() -> None:
    entries = [f"Chapter about matter {name}" for name in ("earth", "water", "fire", "air", "iron", "salt")]
    items = [Block(BlockKind.ITEM, text) for text in entries]
    body = [Block(BlockKind.PARAGRAPH, text) for text in STANDING[:5]]
    short = Page("http://a.test/", "text/html", blocks=(*items, *body))
    both = Page("http://a.test/", "text/html", blocks=(Block(BlockKind.H2, "Quick contents"), *items, *items, *body))
    assert compare(short, [both]).meaningful is False
    assert compare(both, [short]).meaningful is False


def test_what_somebody_muted_does_not_count_whatever_its_numbers() -> None:
    old, new = front("Visitor number 17 of our park"), front("Visitor number 18 of our park")
    assert compare(new, [old]).meaningful
    change = compare(new, [old], rules=MuteRules(always=frozenset({"visitor number 0 of our park"})))
    assert (change.meaningful, change.reason) == (False, "only what was muted")
    assert [(one.why, one.action) for one in change.muted] == [("rule", "removed"), ("rule", "added")]


def test_a_muted_place_is_silent_whatever_stands_there() -> None:
    old, new = (front(text, kind=BlockKind.PARAGRAPH) for text in HEADLINES[:2])
    assert compare(new, [old], rules=MuteRules(behind=frozenset({"town news"}))).meaningful is False


def test_what_somebody_wants_to_hear_is_not_muted_however_often_it_changes() -> None:
    pages = [front(f"Visitors so far: {n}", kind=BlockKind.PARAGRAPH) for n in range(11, 23)]
    rules = MuteRules(never=frozenset({"visitors so far 0"}))
    assert all(change.meaningful for change in judged(pages, rules))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (front("Same"), front("Same"), "same text"),
        (front("Seen 14:05"), front("Seen 14:06"), "only clocks and counters"),
        (front("Council buys buses"), front("Mayor leaves his office"), "text: 1 added, 1 removed"),
    ],
)
def test_every_verdict_has_its_reason(old: Page, new: Page, reason: str) -> None:
    assert compare(new, [old]).reason == reason
