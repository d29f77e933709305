from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from letopis.change.fingerprints import fingerprint, known_share, long_paragraphs
from letopis.change.profiles import HostProfile, PageHabits
from letopis.change.verdict import compare
from letopis.config import ChangeSettings
from letopis.model import Block, BlockKind, Link, LinkType, Page

MakePage = Callable[..., Page]

BODY = [
    "The committee met on the hill and spoke of water, roads and the school for three hours.",
    "A second paragraph tells who came and why the mayor stayed away from the meeting.",
    "The third one lists what was decided, with the names of those who voted against it.",
]


def test_first_version_is_not_judged(page: MakePage) -> None:
    change = compare(page(*BODY), [])
    assert change.meaningful is None


def test_same_bytes_mean_same_text_and_no_change(page: MakePage) -> None:
    change = compare(page(*BODY), [page(*BODY)], same_bytes=True)
    assert (change.same_bytes, change.same_text, change.meaningful) == (True, True, False)


def test_other_bytes_with_the_same_text_are_no_meaningful_change(page: MakePage) -> None:
    change = compare(page(*BODY), [page(*[text.upper() for text in BODY])])
    assert (change.same_bytes, change.same_text, change.meaningful) == (False, True, False)


def test_a_changed_sentence_is_named_and_scored(page: MakePage) -> None:
    new = [*BODY[:2], "The third one lists what was decided, and nobody voted against it."]
    change = compare(page(*new), [page(*BODY)])
    assert change.meaningful
    assert 0.05 < change.score < 1
    assert [block.action for block in change.blocks] == ["removed", "added"]
    assert change.blocks[1].text == new[2]


def test_one_sentence_counts_on_a_page_of_any_length(page: MakePage) -> None:
    body = [f"Paragraph {n} of a long law says something about case {n} and its exceptions." for n in range(500)]
    new = list(body)
    new[250] = new[250].replace("something", "nothing at all")
    assert compare(page(*new), [page(*body)]).meaningful


@pytest.mark.parametrize(
    ("before", "after"),
    [("Price: 5,99 €", "Price: 6,99 €"), ("Release v4.3.2", "Release v4.3.3"), ("In stock", "Sold out today")],
)
def test_short_facts_count(page: MakePage, before: str, after: str) -> None:
    history = [page(before, *BODY)] * 5
    assert compare(page(after, *BODY), history).meaningful


def test_clocks_and_counters_do_not_count_even_at_the_first_look(page: MakePage) -> None:
    old = page("Monday, 3 March 2025 10:00:01", *BODY, "1,200 views", "Posted 4 minutes ago")
    new = page("Tuesday, 4 March 2025 12:30:44", *BODY, "1,345 views", "Posted 9 minutes ago")
    change = compare(new, [old])
    assert change.meaningful is False
    assert not change.blocks
    assert not change.same_text


def test_reordered_blocks_do_not_count(page: MakePage) -> None:
    assert compare(page(*BODY[::-1]), [page(*BODY)]).meaningful is False


ADS = ["Buy two lamps and pay one", "Seven nights by the sea", "Faster tyres for winter", "Shoes that last", "New tea"]


def test_a_slot_that_changes_at_every_visit_is_learned(page: MakePage) -> None:
    history = [page(*BODY, "Sponsored", ad, "Imprint") for ad in ADS[:4]]
    assert compare(page(*BODY, "Sponsored", ADS[4], "Imprint"), history).meaningful is False


def test_news_beside_a_restless_slot_still_counts(page: MakePage) -> None:
    history = [page(*BODY, "Sponsored", ad, "Imprint") for ad in ADS[:4]]
    new = page("A bridge fell into the river last night.", *BODY, "Sponsored", ADS[4], "Imprint")
    change = compare(new, history)
    assert change.meaningful
    assert [block.text for block in change.blocks] == ["A bridge fell into the river last night."]


def test_a_list_that_grows_daily_is_news_not_noise(page: MakePage) -> None:
    items = [f"Headline number {n} about the town" for n in range(40)]
    history = [page("News", *items[40 - n - 20 : 40 - n], "Imprint") for n in range(12, 4, -1)][::-1]
    assert compare(page("News", *items[17:37], "Imprint"), history).meaningful


def test_a_page_that_is_all_new_at_every_visit_counts(page: MakePage) -> None:
    def front(day: int) -> Page:
        return page("News", *[f"Story {day}-{n} told at length by our own writer" for n in range(30)], "Imprint")

    history = [front(day) for day in range(8, 0, -1)]
    assert compare(front(9), history).meaningful


def test_a_page_that_alternates_between_two_states_calms_down(page: MakePage) -> None:
    with_notice, without = page("Please rotate your device", *BODY, *BODY), page(*BODY, *BODY)
    history = [with_notice if n % 2 else without for n in range(8)]
    assert compare(with_notice, history).meaningful is False
    assert compare(with_notice, [without] * 4).meaningful


def test_habits_kept_between_visits_answer_like_the_history(page: MakePage) -> None:
    states = [page(*BODY, "Sponsored", ad, "Imprint") for ad in ADS]
    habits = PageHabits()
    for old, new in pairwise(states[:4]):
        habits.observe(fingerprint(old), fingerprint(new))
    kept = PageHabits.from_bytes(habits.to_bytes())
    assert compare(states[4], [states[3]], habits=kept).meaningful is False


def test_a_slot_is_restless_by_visits_not_by_versions(page: MakePage) -> None:
    """A notice that is replaced once a month is seen as new although every version changed it."""
    states = [page(*BODY, "Notice", text, "Imprint") for text in ADS]
    habits = PageHabits()
    for old, new in pairwise(states[:4]):
        habits.observe(fingerprint(old), fingerprint(new))
        habits.unchanged(30)
    assert compare(states[4], [states[3]], habits=habits).meaningful


def frame_pages(page: MakePage, menu: list[str], count: int = 12) -> list[Page]:
    return [
        page(*menu, f"Page {n} has a text of its own about subject number {n}.", "Imprint and contact")
        for n in range(count)
    ]


MENU = ["Home page", "All news", "Sport and games", "Contact us"]


def test_a_changed_menu_is_discounted_once_the_host_is_known(page: MakePage) -> None:
    host = HostProfile()
    for known in frame_pages(page, MENU):
        host.observe(fingerprint(known))
    old, new = (
        page(*MENU, *BODY, "Imprint and contact"),
        page(*MENU[:2], "Olympia", *MENU[3:], *BODY, "Imprint and contact"),
    )
    assert compare(new, [old] * 5, host).meaningful is False
    added = page(*MENU[:3], "Olympia", *MENU[3:], *BODY, "Imprint and contact")
    assert compare(added, [old] * 5, host).meaningful is False
    assert compare(added, [old] * 5).meaningful


def test_blocks_that_the_page_marks_as_frame_are_discounted(page: MakePage) -> None:
    old = page(*MENU, *BODY, frame=(0, 1, 2, 3))
    new = page(*MENU[:3], "Olympia and more", "Contact us", *BODY, frame=(0, 1, 2, 3, 4))
    assert compare(new, [old]).meaningful is False


def test_a_page_that_is_all_frame_is_judged_like_any_other(page: MakePage) -> None:
    assert compare(page(*MENU, "Olympia and more", frame=(0, 1, 2, 3, 4)), [page(*MENU, frame=(0, 1, 2, 3))]).meaningful


# The two failures of the document's rule.

WARNING = "Please switch on JavaScript and allow cookies in your browser, otherwise this page cannot be shown to you."
PARAGRAPHS = ChangeSettings(count="paragraphs-50")


def test_one_long_warning_on_a_page_of_short_lines_hides_nothing(page: MakePage) -> None:
    old = page(WARNING, *[f"Result {n}: won" for n in range(20)])
    new = page(WARNING, *[f"Result {n}: lost" for n in range(20)])
    assert compare(new, [old], settings=PARAGRAPHS).meaningful is False
    assert compare(new, [old]).meaningful


def test_text_known_from_another_address_does_not_hide_a_change(page: MakePage) -> None:
    new, old, elsewhere = page(BODY[0]), page(BODY[1]), page(BODY[0])
    seen_anywhere = {block for known in (old, elsewhere) for block, _ in long_paragraphs(known)}
    assert known_share(new, seen_anywhere) == 1.0
    assert compare(new, [old]).meaningful
    assert compare(new, [old], settings=PARAGRAPHS).meaningful


def test_the_documents_rule_measures_known_length(page: MakePage) -> None:
    new = page(*BODY, "short")
    share = known_share(new, {block for block, _ in long_paragraphs(page(*BODY[:2]))})
    assert share is not None
    assert 0.6 < share < 0.7
    assert compare(new, [page(*BODY[:2])], settings=PARAGRAPHS).meaningful
    assert known_share(page("short", "too short"), set()) is None
    assert compare(page("short b"), [page("short a")], settings=PARAGRAPHS).meaningful


def test_documents_without_text_are_judged_by_their_bytes() -> None:
    empty = Page("http://example.test/a.png", "image/png")
    assert compare(empty, [empty]).meaningful
    assert compare(empty, [empty], same_bytes=True).meaningful is False


def test_pages_of_links_alone_are_judged_by_targets() -> None:
    one = Page("u", "text/html", links=(Link("http://a.test/", LinkType.A),))
    two = Page("u", "text/html", links=(Link("http://b.test/", LinkType.A),))
    assert compare(one, [one]).meaningful is False
    assert compare(two, [one]).meaningful


def test_fingerprints_without_texts_suffice(page: MakePage) -> None:
    old = replace(fingerprint(page(*BODY)), blocks=())
    change = compare(page(*BODY, "A wholly new paragraph about the fire at the mill."), [old])
    assert change.meaningful
    assert [block.action for block in change.blocks] == ["added"]


def test_the_threshold_is_the_owners(page: MakePage) -> None:
    old, new = page(*BODY), page(*BODY, "A wholly new paragraph about the fire at the mill.")
    assert compare(new, [old], settings=ChangeSettings(threshold=0.95)).meaningful
    assert compare(new, [old], settings=ChangeSettings(threshold=0.3)).meaningful is False


def test_hidden_words_speak_softly(page: MakePage) -> None:
    old, new = page(*BODY, *BODY), page(*BODY, *BODY)
    keywords = tuple(Block(BlockKind.KEYWORDS, text) for text in ("town", "council"))
    assert compare(Page(new.url, new.content_type, blocks=new.blocks + keywords[:1]), [old]).meaningful is False


def test_a_replaced_page_scores_one(page: MakePage) -> None:
    change = compare(page("502 Bad gateway at the server of our provider"), [page(*BODY)])
    assert change.meaningful
    assert change.score == 1.0
